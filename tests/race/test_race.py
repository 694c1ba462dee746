"""The race: real data, equal numbers for equal seeds, a table, JSON and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from zoo.cli import app
from zoo.race.runner import run_race
from zoo.race.tasks import TASKS

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


def race(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["race", *arguments, "--out", str(folder)])


def without_times(path: Path) -> Any:
    record = json.loads(path.read_text())
    for lap in record["laps"]:
        del lap["times"]
    return record


@pytest.mark.parametrize("task", TASKS)
def test_equal_seeds_give_equal_numbers_and_another_seed_others(task: str, tmp_path: Path) -> None:
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        result = race(tmp_path / name, "adam", "lion", "--task", task, "--steps", "6", "--seed", seed)
        assert result.exit_code == 0, result.output
    first, second, other = (without_times(tmp_path / name / f"{task}.json") for name in "abc")
    assert first == second
    assert first["laps"] != other["laps"]


def test_the_callers_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    run_race(TASKS["digits"], ["adam"], steps=2, seed=0, learning_rates={})
    assert torch.equal(before, torch.get_rng_state())


def test_every_optimizer_starts_from_the_same_weights_and_sees_the_same_batches() -> None:
    laps = run_race(TASKS["digits"], ["adam", "sgd"], steps=1, seed=0, learning_rates={})
    assert laps[0].losses == laps[1].losses


@pytest.mark.parametrize("task", TASKS)
def test_nothing_held_out_is_trained_on(task: str) -> None:
    inputs, _, held_out, _ = TASKS[task].data()
    if task == "digits":
        seen = {tuple(row.flatten().tolist()) for row in inputs}
        repeated = sum(tuple(row.flatten().tolist()) in seen for row in held_out)
        assert repeated == 0
        assert len(inputs) + len(held_out) == 1797
    else:
        assert len(inputs) > 10 * held_out.numel()
        assert bytes(held_out[:4].flatten().tolist()) not in bytes(inputs.tolist())


@pytest.mark.parametrize(("task", "steps"), [("digits", 80), ("source", 40)])
def test_the_networks_learn(task: str, steps: int) -> None:
    (lap,) = run_race(TASKS[task], ["adamw"], steps=steps, seed=0, learning_rates={})
    assert lap.held_out[-1][1] < 0.75 * lap.losses[0]


def test_a_race_leaves_a_table_json_and_a_picture(tmp_path: Path) -> None:
    result = race(tmp_path, "adam", "sgd", "--steps", "3", "--lr", "sgd=0.05")
    assert result.exit_code == 0, result.output
    assert "held-out accuracy" in result.output
    record = json.loads((tmp_path / "digits.json").read_text())
    assert [lap["optimizer"] for lap in record["laps"]] == ["adam", "sgd"]
    assert record["laps"][1]["lr"] == 0.05
    assert len(record["laps"][0]["train_losses"]) == 3
    assert record["laps"][0]["state_bytes"] > 2 * record["laps"][1]["state_bytes"] * 0.99
    assert (tmp_path / "digits.md").read_text().count("| adam |") == 1
    picture = (tmp_path / "digits.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(picture[16:20]) >= 1000


def test_a_diverged_optimizer_does_not_stop_the_others(tmp_path: Path) -> None:
    result = race(tmp_path, "sgd", "adam", "--steps", "30", "--lr", "sgd=1e30")
    assert result.exit_code == 0, result.output
    laps = {lap["optimizer"]: lap for lap in json.loads((tmp_path / "digits.json").read_text())["laps"]}
    assert laps["sgd"]["diverged"]
    assert laps["sgd"]["train_loss"] is None
    assert not laps["adam"]["diverged"]
    assert "diverged at step" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adam", "--task", "nope"], "unknown task 'nope'; tasks: digits, source"),
        (["adam", "--lr", "lion=1"], "lion is not in the race"),
        (["adam", "--lr", "adam=fast"], "give NAME=VALUE"),
        (["adam", "--lr", "adam=-1"], "0 or more"),
        (["adam", "--steps", "0"], "--steps"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = race(tmp_path, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())
