"""Table, JSON and Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from rich.console import Console

from zoo.race import report
from zoo.race.report import COLUMNS, RaceRecord, markdown, record, save, table
from zoo.race.runner import Lap, Race, run_race
from zoo.race.tasks import Evaluation

from .tiny import TINY


@pytest.fixture(scope="module")
def race() -> Race:
    """One of each: finished, diverged, failed, interrupted."""
    found = run_race(TINY, ["adam", "sgd", "lion"], steps=30, seed=2, learning_rates={"sgd": 1e38})
    found.laps.append(Lap("odd", 0.1, "default", status="failed", message="RuntimeError: no third step\nmore"))
    found.unfinished.append("late")
    return found


def fits(value: Any, kind: Any) -> bool:
    """Whether ``value`` is what the type ``kind`` says."""
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        return set(value) == set(hints) and all(fits(value[key], hint) for key, hint in hints.items())
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return isinstance(value, list) and all(fits(entry, arguments[0]) for entry in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(entry, arguments[1]) for entry in value.values())
    if origin is Literal:
        return value in arguments
    if arguments:
        return any(fits(value, argument) for argument in arguments)
    return kind is Any or type(value) is kind


def test_the_json_has_exactly_the_fields_of_its_types(race: Race, tmp_path: Path) -> None:
    data = json.loads(save(race, tmp_path)[0].read_text(), parse_constant=pytest.fail)
    assert fits(data, RaceRecord)
    assert not fits({**data, "more": 1}, RaceRecord)
    assert not fits({**data, "steps": "many"}, RaceRecord)
    assert [lap["status"] for lap in data["laps"]] == ["finished", "diverged", "finished", "failed"]
    adam, sgd = data["laps"][:2]
    assert (data["task"], data["steps"], data["seed"], data["unfinished"]) == ("tiny", 30, 2, ["late"])
    assert len(adam["train_losses"]) == 30
    assert adam["held_out_loss"] == adam["held_out"][-1]["loss"]
    # two float32 moments of each parameter
    assert 8 * data["parameters"] <= adam["state_bytes"] <= 8 * data["parameters"] + 16
    assert (sgd["train_loss"], sgd["held_out_loss"], sgd["train_losses"][-1]) == (None, None, None)
    assert (adam["lr"], adam["lr_source"], sgd["lr"], sgd["lr_source"]) == (0.01, "tuned", 1e38, "given")
    assert sgd["options"] == {"momentum": 0.9}


def test_equal_races_differ_in_times_only(race: Race) -> None:
    again = run_race(TINY, ["adam", "sgd", "lion"], steps=30, seed=2, learning_rates={"sgd": 1e38})
    first, second = record(race), record(again)
    for left, right in zip(first["laps"][:3], second["laps"], strict=True):
        assert left["times"] != right["times"]
        left["times"] = right["times"]
        assert left == right


def test_the_table_has_every_optimizer_best_first_and_all_columns(race: Race) -> None:
    console = Console(width=120, record=True)
    console.print(table(race))
    text = console.export_text()
    for word in " ".join(COLUMNS).split():
        assert word in text
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == [
        lap.optimizer + (", momentum 0.9" if lap.optimizer == "sgd" else "") for lap in race.ranked()
    ]
    best = race.ranked()[0]
    assert f"{best.train_loss:.4f}" in rows[0] and f"{best.result.loss:.4f}" in rows[0]
    assert f"{best.result.accuracy:.1%}" in rows[0]
    assert f"{best.step_seconds:.5f}" in rows[0] and f"{best.state_bytes / 1e6:.3f}" in rows[0]
    assert "diverged" in rows[2] and "at step" in rows[2]
    assert "failed" in rows[3] and "at step 1" in rows[3]
    assert "…" not in text


@pytest.mark.parametrize("width", [80, 120])
def test_no_name_or_number_is_cut(width: int) -> None:
    name = "a_name_of_thirty_characters_ab"
    lap = Lap(name, 0.0025, "given", status="finished", losses=[1.23456], held_out=[(1, Evaluation(2.34567, 0.981))])
    console = Console(width=width, record=True)
    console.print(table(Race(TINY, 1, 0, 1, {}, [lap])))
    rows = [line for line in console.export_text().splitlines() if line.startswith("│")]
    cells = ["".join(row.split("│")[column].strip() for row in rows) for column in range(1, 6)]
    assert cells == [name, "0.0025", "1.2346", "2.3457", "98.1%"]


def test_the_markdown_has_the_table_the_picture_and_where_learning_rates_come_from(race: Race) -> None:
    text = markdown(race, "tiny.png")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(row.count("|") == len(COLUMNS) + 1 for row in rows)
    assert rows[0] == f"| {' | '.join(COLUMNS)} |"
    assert len(rows) == 2 + len(race.laps)
    assert "](tiny.png)" in text
    assert "- adam: learning rate 0.01, tuned for this task" in text
    assert "- lion: learning rate 0.0001, the optimizer's own default" in text
    assert "- odd: learning rate 0.1, the optimizer's own default; failed (RuntimeError: no third step)" in text
    assert "- late: interrupted" in text


def test_saving_again_replaces_the_files_and_leaves_nothing_else(race: Race, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    paths = save(race, folder)
    before = [path.read_bytes() for path in paths]
    paths[0].write_text("old")
    assert [path.read_bytes() for path in save(race, folder)] == before
    assert sorted(path.name for path in folder.iterdir()) == ["tiny.json", "tiny.md", "tiny.png"]


def test_nothing_is_written_where_the_picture_fails(
    race: Race, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Race) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(report, "draw", broken)
    with pytest.raises(ZeroDivisionError):
        save(race, tmp_path)
    assert not list(tmp_path.iterdir())
