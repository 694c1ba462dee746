"""The tasks: nothing held out is trained on, the same data and batches every time, networks that can learn."""

from __future__ import annotations

import itertools
import string
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from zoo.race import digits, source
from zoo.race.errors import RaceError
from zoo.race.gpt import GPT
from zoo.race.isolation import isolated
from zoo.race.runner import run_race
from zoo.race.tasks import TASKS, Problem, RaceTask

from .tiny import TINY, build

BUILT_IN = ("digits", "source")


def built(task: str, seed: int = 0) -> Problem:
    with isolated(seed):
        return TASKS.get(task).build(seed)


def pictures(tensor: Tensor) -> set[bytes]:
    return {picture.numpy().tobytes() for picture in tensor}


def test_no_digit_is_on_both_sides_and_none_is_lost() -> None:
    data = digits.load()
    assert not pictures(data.pictures) & pictures(data.held_out_pictures)
    assert len(data.pictures) + len(data.held_out_pictures) == 1797
    assert set(data.held_out_labels.tolist()) == set(data.labels.tolist()) == set(range(10))


def test_digits_batches_are_training_pictures_with_their_labels_each_once_an_epoch() -> None:
    data = digits.load()
    labels = {picture.numpy().tobytes(): int(label) for picture, label in zip(data.pictures, data.labels, strict=True)}
    count = len(data.labels) // digits.BATCH
    seen = []
    for x, y in itertools.islice(built("digits").batches(), count):
        assert [labels[picture.numpy().tobytes()] for picture in x] == y.tolist()
        seen += [picture.numpy().tobytes() for picture in x]
    assert len(seen) == len(set(seen)) == count * digits.BATCH


def test_no_window_held_out_stands_in_the_training_text() -> None:
    text = source.load()
    assert not set(text.train_files) & set(text.held_out_files)
    assert len(text.held_out) > 100
    assert all(len(window) == source.CONTEXT + 1 and window not in text.train for window in text.held_out)
    assert 800_000 < len(text.train) < 1_500_000


def test_source_batches_are_windows_of_the_training_text() -> None:
    text = source.load()
    symbols = source.ALPHABET + "\0"
    plain = "".join(character if character in source.ALPHABET else "\0" for character in text.train)
    batch = next(built("source").batches())
    assert batch.shape == (source.BATCH, source.CONTEXT + 1)
    for window in batch:
        assert "".join(symbols[token] for token in window) in plain


def test_source_reads_modules_of_python_alone_each_text_once(tmp_path: Path) -> None:
    body = "".join(f"value_{number} = {number}\n" for number in range(4000))
    for name in ("abc.py", "bisect.py"):
        (tmp_path / name).write_text(f"# {name}\n" + body)
    (tmp_path / "calendar.py").write_text("# abc.py\n" + body)
    (tmp_path / "no_module_of_python.py").write_text("# of one machine\n" + body)
    text = source.load(tmp_path)
    assert (*text.train_files, *text.held_out_files) == ("abc.py", "bisect.py")


def test_source_without_a_library_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "abc.py").write_text("pass\n")
    with pytest.raises(RaceError, match="try --task digits"):
        source.load(tmp_path)


def test_every_character_has_one_token() -> None:
    assert len(set(source.ALPHABET)) == len(source.ALPHABET)
    assert set(string.ascii_letters + string.digits + string.punctuation + " \n\t") == set(source.ALPHABET)
    assert source.encode(source.ALPHABET + "é✓").tolist() == [*range(len(source.ALPHABET)), *[len(source.ALPHABET)] * 2]


def test_the_gpt_does_not_see_the_future_and_ties_its_embedding() -> None:
    with isolated(0):
        model = GPT(vocabulary=11, context=8, width=16, depth=2, heads=2)
        tokens = torch.randint(11, (2, 8))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    with torch.no_grad():
        first, second = model(tokens), model(changed)
    assert first.shape == (2, 8, 11)
    assert torch.allclose(first[:, :5], second[:, :5], atol=1e-6)
    assert not torch.allclose(first[:, 5:], second[:, 5:], atol=1e-3)
    assert not any(p.shape == (11, 16) for name, p in model.named_parameters() if name != "token_embedding.weight")


@pytest.mark.parametrize("task", BUILT_IN)
def test_a_seed_decides_weights_and_batches_and_not_the_data(task: str) -> None:
    first, again, other = built(task), built(task), built(task, seed=1)

    def weights(problem: Problem) -> Tensor:
        return torch.cat([p.detach().flatten() for p in problem.model.parameters()])

    def inputs(problem: Problem) -> Tensor:
        batch = next(problem.batches())
        return batch if isinstance(batch, Tensor) else batch[0]

    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))
    assert torch.equal(inputs(first), inputs(again))
    assert torch.equal(inputs(first), inputs(first))
    assert not torch.equal(inputs(first), inputs(other))
    assert first.data == other.data


@pytest.mark.parametrize(("task", "steps", "share"), [("digits", 80, 0.4), ("source", 24, 0.8)])
def test_the_networks_learn(task: str, steps: int, share: float) -> None:
    (lap,) = run_race(TASKS.get(task), ["adamw"], steps=steps).laps
    assert lap.result.loss < share * lap.held_out[0][1].loss
    assert lap.train_loss < share * lap.losses[0]
    assert lap.result.accuracy > lap.held_out[0][1].accuracy + 0.1


def test_digits_without_scikit_learn_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(RaceError, match=r"needs scikit-learn: pip install 'optimizer-zoo\[race\]'"):
        digits.load()


def test_a_task_can_be_added_once_under_its_name(tiny: RaceTask) -> None:
    assert TASKS.register(TINY) is tiny
    assert TASKS.names()[-1] == "tiny"
    with pytest.raises(ValueError, match=r"a task 'tiny' already \(a linear map\)"):
        TASKS.register(RaceTask("tiny", "another", build, 1))


def test_an_unknown_task_gets_the_closest_name_and_all_names() -> None:
    with pytest.raises(RaceError, match="unknown task 'sorce'; did you mean 'source'\\? tasks: digits, source"):
        TASKS.get("sorce")


def test_tasks_and_command_import_nothing_heavy() -> None:
    code = "import sys, zoo.race.cli; print([name for name in ('torch', 'sklearn', 'matplotlib', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
