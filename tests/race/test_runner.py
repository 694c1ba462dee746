"""The race itself: fair, repeatable, and robust against what one optimizer does."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from zoo.race.errors import RaceError
from zoo.race.isolation import isolated
from zoo.race.runner import EVALUATIONS, Lap, Race, run_race
from zoo.race.tasks import Evaluation

from .tiny import TINY

Optimizers = Callable[..., None]


def numbers(lap: Lap) -> tuple[Any, ...]:
    return lap.losses, lap.held_out, lap.state_bytes, lap.status, lap.lr


def by_name(race: Race) -> dict[str, Lap]:
    return {lap.optimizer: lap for lap in race.laps}


def test_equal_seeds_give_equal_numbers_and_other_seeds_others() -> None:
    first, second, other = (run_race(TINY, ["adam", "lion"], steps=5, seed=seed) for seed in (3, 3, 4))
    assert [numbers(lap) for lap in first.laps] == [numbers(lap) for lap in second.laps]
    assert [numbers(lap) for lap in first.laps] != [numbers(lap) for lap in other.laps]


def test_every_optimizer_starts_from_the_same_weights_and_sees_the_same_batches() -> None:
    laps = run_race(
        TINY, ["adam", "sgd", "lion"], steps=4, learning_rates=dict.fromkeys(("adam", "sgd", "lion"), 0.0)
    ).laps
    assert laps[0].losses == laps[1].losses == laps[2].losses
    assert len(set(laps[0].losses)) == 4


def test_a_result_does_not_depend_on_who_else_races(optimizers: Optimizers) -> None:
    def thirsty(model: nn.Module) -> torch.optim.Optimizer:
        torch.rand(5)  # an optimizer that helps itself to the global random numbers
        return torch.optim.SGD(model.parameters(), lr=0.1 + float(torch.rand(())))

    optimizers(thirsty=thirsty)
    alone = run_race(TINY, ["thirsty"], steps=3).laps[0]
    behind = by_name(run_race(TINY, ["adam", "thirsty", "sgd"], steps=3))["thirsty"]
    assert numbers(alone) == numbers(behind)


def global_state() -> tuple[Any, ...]:
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy.random.get_state()[1].tolist(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        torch.get_num_threads(),
        torch.is_grad_enabled(),
    )


def test_the_callers_random_numbers_and_switches_are_left_alone() -> None:
    before = global_state()
    run_race(TINY, ["adam", "prodigy"], steps=2)
    assert global_state() == before
    with isolated(0):
        drawn = float(torch.rand(())), random.random(), numpy.random.rand()
        assert torch.are_deterministic_algorithms_enabled()
    assert global_state() == before
    with isolated(0):
        assert (float(torch.rand(())), random.random(), numpy.random.rand()) == drawn


def _fail_isolated() -> None:
    with isolated(0):
        torch.rand(3)
        raise ZeroDivisionError


def test_an_error_leaves_the_callers_random_numbers_alone_too() -> None:
    before = global_state()
    with pytest.raises(ZeroDivisionError):
        _fail_isolated()
    assert global_state() == before


def test_a_race_under_no_grad_trains_all_the_same() -> None:
    with torch.no_grad():
        (lap,) = run_race(TINY, ["adam"], steps=2).laps
    assert lap.status == "finished", lap.message


def test_the_learning_rate_is_the_given_else_the_tasks_else_the_optimizers() -> None:
    race = run_race(TINY, ["adam", "sgd", "lion"], steps=1, learning_rates={"sgd": 0.25})
    assert [(lap.lr, lap.lr_source) for lap in race.laps] == [(0.01, "tuned"), (0.25, "given"), (1e-4, "default")]
    (lap,) = run_race(TINY, ["adam"], steps=1, learning_rates={"adam": 0.5}).laps
    assert (lap.lr, lap.lr_source) == (0.5, "given")
    assert dict(by_name(race)["sgd"].options) == {"momentum": 0.9}


def test_the_loss_is_measured_before_the_first_step_and_some_twenty_times() -> None:
    (lap,) = run_race(TINY, ["adam"], steps=100).laps
    steps = [step for step, _ in lap.held_out]
    assert steps == [*range(0, 101, 100 // EVALUATIONS)]
    assert lap.result == lap.held_out[-1][1]
    assert lap.train_loss == pytest.approx(sum(lap.losses[-10:]) / 10)
    assert lap.train_loss < 0.7 * lap.losses[0]
    assert 0 < lap.optimizer_seconds < lap.step_seconds < lap.seconds


def test_a_diverged_optimizer_stops_and_the_others_go_on() -> None:
    race = run_race(TINY, ["sgd", "adam"], steps=30, learning_rates={"sgd": 1e38})
    laps = by_name(race)
    assert laps["sgd"].status == "diverged"
    assert len(laps["sgd"].losses) < 30
    assert math.isnan(laps["sgd"].train_loss) and math.isnan(laps["sgd"].result.loss)
    assert laps["adam"].status == "finished"
    assert [lap.optimizer for lap in race.ranked()] == ["adam", "sgd"]


class Breaking(torch.optim.SGD):
    """Does its damage at its third step."""

    taken = 0

    def damage(self) -> None:
        raise NotImplementedError

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.taken += 1
        if self.taken == 3:
            self.damage()


class Raising(Breaking):
    def damage(self) -> None:
        raise RuntimeError("no third step")


class Poisoning(Breaking):
    @torch.no_grad()
    def damage(self) -> None:
        for p in self.param_groups[0]["params"]:
            p.fill_(math.nan)


def test_an_optimizer_that_raises_is_reported_and_the_others_go_on(optimizers: Optimizers) -> None:
    optimizers(raising=lambda model: Raising(model.parameters(), lr=0.1))
    laps = by_name(run_race(TINY, ["raising", "adam"], steps=5))
    assert (laps["raising"].status, laps["raising"].message) == ("failed", "RuntimeError: no third step")
    assert laps["raising"].last_step == 3
    assert laps["adam"].status == "finished"


def test_weights_that_break_at_the_last_step_are_seen(optimizers: Optimizers) -> None:
    optimizers(poisoning=lambda model: Poisoning(model.parameters(), lr=0.1))
    (lap,) = run_race(TINY, ["poisoning"], steps=3).laps
    assert all(math.isfinite(loss) for loss in lap.losses)
    assert lap.status == "diverged"


class Impatient:
    """Presses Ctrl-C at a step of one optimizer."""

    def __init__(self, name: str, step: int) -> None:
        self.name, self.step = name, step

    def stepped(self, lap: Lap) -> None:
        if (lap.optimizer, len(lap.losses)) == (self.name, self.step):
            raise KeyboardInterrupt

    def ended(self, lap: Lap) -> None:
        assert lap.status == "finished"


def test_an_interrupt_leaves_what_was_finished() -> None:
    before = global_state()
    race = run_race(TINY, ["adam", "sgd", "lion"], steps=5, watcher=Impatient("sgd", 2))
    assert [lap.optimizer for lap in race.laps] == ["adam"]
    assert race.unfinished == ["sgd", "lion"]
    assert global_state() == before


class Faulty(Impatient):
    def stepped(self, lap: Lap) -> None:
        raise BrokenPipeError


def test_a_watchers_error_is_not_the_optimizers() -> None:
    with pytest.raises(BrokenPipeError):
        run_race(TINY, ["adam"], steps=2, watcher=Faulty("adam", 0))


def test_a_wrong_option_shows_before_anything_is_trained() -> None:
    with pytest.raises(RaceError, match=r"(?s)sgd can't race on tiny: .*lr"):
        run_race(TINY, ["adam", "sgd"], steps=1, learning_rates={"sgd": -1.0}, watcher=Faulty("adam", 0))


def test_ranking_puts_the_lowest_held_out_loss_first() -> None:
    laps = [
        Lap(name, 0.1, "given", status="finished", held_out=[(1, Evaluation(loss, 0.5))])
        for name, loss in (("b", 2.0), ("a", 1.0), ("c", 3.0))
    ]
    race = Race(TINY, 1, 0, 1, {}, [Lap("failed", 0.1, "given", status="failed"), *laps])
    assert [lap.optimizer for lap in race.ranked()] == ["a", "b", "c", "failed"]
