"""Tuning a learning rate."""

from __future__ import annotations

import math

import pytest

import zoo
from zoo.race.learning_rates import DIGITS, OPTIONS, SOURCE
from zoo.race.tuning import GRID, climb, tune

from .tiny import TINY


@pytest.mark.parametrize("best", [GRID[0], 3e-3, 1.0, GRID[-1]])
@pytest.mark.parametrize("start", [1e-4, 2e-3, 1.0])
def test_climbing_finds_the_valley_from_either_side(best: float, start: float) -> None:
    assert climb(lambda lr: abs(math.log(lr / best)), start) == (best, 0.0)


def test_climbing_stays_where_all_is_equally_bad() -> None:
    assert climb(lambda lr: math.inf, 1e-3) == (1e-3, math.inf)


def test_tuning_beats_a_default_that_is_too_small() -> None:
    lr, loss, at_default = tune(TINY, "sgd", steps=20)
    assert lr > 1e-2
    assert loss < 0.9 * at_default


@pytest.mark.parametrize("table", [DIGITS, SOURCE, OPTIONS], ids=["digits", "source", "options"])
def test_the_tables_name_optimizers_and_rates_that_there_are(table: dict[str, object]) -> None:
    assert {"sgd"} <= set(table) <= set(zoo.list_optimizers())
    if table is not OPTIONS:
        assert set(table.values()) <= set(GRID)
