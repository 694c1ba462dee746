"""The command: what it prints, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

import zoo
from zoo.cli import app
from zoo.race import picture
from zoo.race.tasks import TASKS, RaceTask

from .test_runner import Raising
from .tiny import TINY


def race(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["race", *arguments, "--out", str(folder)])


def without_times(path: Path) -> Any:
    record = json.loads(path.read_text())
    for lap in record["laps"]:
        del lap["times"]
    return record


def test_a_race_leaves_a_table_json_markdown_and_a_picture(tmp_path: Path) -> None:
    result = race(tmp_path, "Adam", "sgd", "--steps", "3", "--lr", "SGD=0.05")
    assert result.exit_code == 0, result.output
    assert "adam: step 3 of 3, loss" in result.output
    assert "sgd, momentum 0.9" in result.output and "accuracy" in result.output
    record = json.loads((tmp_path / "digits.json").read_text())
    assert [(lap["optimizer"], lap["status"]) for lap in record["laps"]] == [("adam", "finished"), ("sgd", "finished")]
    assert record["laps"][1]["lr"] == 0.05
    assert "| adam |" in (tmp_path / "digits.md").read_text()
    assert (tmp_path / "digits.png").read_bytes()[:4] == b"\x89PNG"
    assert result.output.count("written: ") == 3


def test_a_fresh_process_gives_the_same_json_but_for_times(tmp_path: Path) -> None:
    commands = [
        ["race", "adam", "lion", "sgd", "--task", task, "--steps", "3", "--seed", "0"] for task in ("digits", "source")
    ]
    fresh = [[*command, "--out", str(tmp_path / "fresh")] for command in commands]
    code = f"from zoo.cli import app\nfor command in {fresh}: app(command, standalone_mode=False)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    torch.rand(3)
    for command in commands:
        assert CliRunner().invoke(app, [*command, "--out", str(tmp_path / "here")]).exit_code == 0
    for name in ("digits.json", "source.json"):
        assert without_times(tmp_path / "fresh" / name) == without_times(tmp_path / "here" / name)


def test_names_are_raced_once_however_they_are_spelled(tiny: RaceTask, tmp_path: Path) -> None:
    assert race(tmp_path, "adam", "ADAM", "schedule-free sgd", "--task", "tiny").exit_code == 0
    record = json.loads((tmp_path / "tiny.json").read_text())
    assert [lap["optimizer"] for lap in record["laps"]] == ["adam", "schedule_free_sgd"]
    assert record["steps"] == TINY.steps


def test_a_preset_races_under_its_own_name_with_its_own_options(tiny: RaceTask, tmp_path: Path) -> None:
    result = race(tmp_path, "adamw", "gpt-pretrain", "--task", "tiny", "--lr", "adamw=0.01")
    assert result.exit_code == 0, result.output
    adamw, preset = json.loads((tmp_path / "tiny.json").read_text())["laps"]
    assert (preset["optimizer"], preset["lr"], preset["lr_source"]) == ("gpt_pretrain", 6e-4, "default")
    assert preset["train_losses"][0] == adamw["train_losses"][0]
    assert preset["train_losses"][1] != adamw["train_losses"][1]


def test_a_diverged_optimizer_does_not_stop_the_others(tiny: RaceTask, tmp_path: Path) -> None:
    result = race(tmp_path, "sgd", "adam", "--task", "tiny", "--lr", "sgd=1e38")
    assert result.exit_code == 0, result.output
    assert [lap["status"] for lap in without_times(tmp_path / "tiny.json")["laps"]] == ["diverged", "finished"]


def test_a_failing_optimizer_is_named_and_the_code_is_1(
    tiny: RaceTask, tmp_path: Path, optimizers: Callable[..., None]
) -> None:
    optimizers(lion=lambda model: Raising(model.parameters(), lr=0.1))
    result = race(tmp_path, "lion", "adam", "--task", "tiny")
    assert result.exit_code == 1
    assert result.stderr == "zoo race: lion failed: RuntimeError: no third step\n"
    assert [lap["status"] for lap in without_times(tmp_path / "tiny.json")["laps"]] == ["failed", "finished"]


@pytest.fixture
def interrupted() -> Iterator[Callable[[int], str]]:
    """A task that presses Ctrl-C at the n-th training loss."""

    def register(at: int) -> str:
        def build(seed: int) -> Any:
            problem, calls = TINY.build(seed), iter(range(1, 10**6))

            def loss(model: Any, batch: Any) -> torch.Tensor:
                if next(calls) == at:
                    raise KeyboardInterrupt
                return problem.loss(model, batch)

            return type(problem)(problem.model, problem.batches, loss, problem.evaluate, problem.data)

        return TASKS.register(RaceTask("interrupted", "", build, 5)).name

    yield register
    TASKS.unregister("interrupted")


def test_an_interrupt_leaves_what_was_finished(interrupted: Callable[[int], str], tmp_path: Path) -> None:
    result = race(tmp_path, "adam", "sgd", "lion", "--task", interrupted(7))
    assert result.exit_code == 130
    assert result.stderr == "zoo race: interrupted; not finished: sgd, lion\n"
    record = without_times(tmp_path / "interrupted.json")
    assert [lap["optimizer"] for lap in record["laps"]] == ["adam"]
    assert record["unfinished"] == ["sgd", "lion"]


def test_an_interrupt_before_anything_was_finished_writes_nothing(
    interrupted: Callable[[int], str], tmp_path: Path
) -> None:
    assert race(tmp_path, "adam", "--task", interrupted(2)).exit_code == 130
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adma"], "unknown optimizer 'adma'; closest: adam"),
        (["adam", "--task", "digit"], "unknown task 'digit'; did you mean 'digits'? tasks: digits, source"),
        (["adam", "--lr", "lion=1"], "--lr lion=1: lion is not in the race (adam)"),
        (["adam", "--lr", "lino=1"], "unknown optimizer 'lino'"),
        (["adam", "--lr", "adam"], "--lr adam: give NAME=VALUE"),
        (["adam", "--lr", "adam=fast"], "--lr adam=fast: 'fast' is not a number"),
        (["adam", "--lr", "adam=nan"], "a finite number of 0 or more"),
        (["adam", "--lr", "adam=-1"], "a finite number of 0 or more"),
        (["adam", "--lr", "adam=1", "--lr", "ADAM=2"], "adam has a learning rate already, 1"),
        (["adam", "--steps", "0"], "--steps"),
        (["adam", "--seed", "-1"], "--seed"),
        ([], "OPTIMIZERS"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = race(tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert message.lower() in " ".join(result.stderr.split()).lower()
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = race(tmp_path / "file", "adam")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "choose a folder" in result.stderr


def test_missing_packages_are_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    result = race(tmp_path / "a", "adam")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "scikit-learn: pip install 'optimizer-zoo[race]'" in result.stderr
    monkeypatch.setattr(picture.importlib.util, "find_spec", lambda name: None)
    result = race(tmp_path / "b", "adam")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "matplotlib: pip install 'optimizer-zoo[race]'" in result.stderr


def test_help_names_the_tasks_and_every_option() -> None:
    text = CliRunner().invoke(app, ["race", "--help"]).output
    assert all(word in text for word in ("digits or source", "--task", "--steps", "--seed", "--lr", "--out"))
    assert zoo.__version__
