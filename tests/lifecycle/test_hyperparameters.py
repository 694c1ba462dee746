"""Options: checked when given, read at every step, cycled by every scheduler."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch.optim import lr_scheduler as schedulers

import zoo

from .common import (
    P,
    assert_finite,
    assert_same,
    every_optimizer,
    has_option,
    lively_lr,
    make,
    params_of,
    random_grads,
    run,
    take_step,
    twin,
    values,
)

# Misspelt, misplaced, out of range


@pytest.mark.parametrize("key", ["weigth_decay", "Weight_Decay", "weight-decay", "weight decay", "lr_scheduler"])
@every_optimizer
def test_an_unknown_option_is_named_with_the_closest(name: str, key: str) -> None:
    places: dict[str, tuple[Any, dict[str, Any]]] = {
        "constructor": ([P(2, 2)], {key: 0.1}),
        "group": ([{"params": [P(2, 2)], key: 0.1}], {}),
    }
    for place, (params, options) in places.items():
        with pytest.raises(ValueError, match="unknown option") as caught:
            make(name, params, **options)
        message = str(caught.value)
        assert repr(key) in message
        if key != "lr_scheduler":
            assert "did you mean 'weight_decay'?" in message
        assert "Options: lr" in message
        assert name.replace("_", "") in message.lower().replace("_", "")
        if place == "group":
            assert "param_groups" in message


@every_optimizer
def test_an_option_of_other_optimizers_is_refused(name: str) -> None:
    for option in ("momentum", "betas"):
        if not has_option(name, option):
            with pytest.raises(ValueError, match=f"unknown option '{option}'"):
                make(name, [P(2, 2)], **{option: 0.9})


@every_optimizer
def test_tags_of_a_group_pass(name: str) -> None:
    tags = {"name": "head", "initial_lr": 0.1, "layer_name": "x", "lr_scale": 0.5, "tags": {"anything": [1]}}
    opt = make(name, [{"params": [P(2, 2)], **tags}])
    assert {key: opt.param_groups[0][key] for key in tags} == tags


@every_optimizer
def test_clean_numeric_text_becomes_a_number(name: str) -> None:
    given = yaml.safe_load("lr: 1e-3\nweight_decay: 1e-2")
    assert given["lr"] == "1e-3"
    opt = make(name, [{"params": [P(2, 2)], "lr": " 1e-4 "}, {"params": [P(3)]}], **given)
    assert [group["lr"] for group in opt.param_groups] == [1e-4, 1e-3]
    assert opt.param_groups[0]["weight_decay"] == 1e-2
    for lr in (np.float32(0.5), np.float64(0.5), Decimal("0.5"), "5e-1", 0.5):
        found = make(name, [P(2, 2)], lr=lr).param_groups[0]["lr"]
        assert type(found) is float, lr
        assert found == 0.5
    if has_option(name, "betas"):
        default = zoo.optimizer_config(name).model_fields["betas"].default
        for betas in (list(map(str, default)), np.array(default)):
            found = make(name, [P(2, 2)], betas=betas).param_groups[0]["betas"]
            assert found == tuple(default)
            assert type(found) is tuple
            assert {type(beta) for beta in found} == {float}


@pytest.mark.parametrize("value", ["nan", "1e-3x", True, "", None, math.nan, math.inf, -1.0, "inf", [1e-3]], ids=repr)
@every_optimizer
def test_what_is_no_learning_rate_is_refused(name: str, value: Any) -> None:
    if value is None and zoo.optimizer_config(name).model_fields["lr"].default is None:
        assert make(name, [P(2, 2)], lr=None).param_groups[0]["lr"] is None
        return
    for params, options in ([P(2, 2)], {"lr": value}), ([{"params": [P(2, 2)], "lr": value}], {}):
        with pytest.raises(ValueError, match="lr"):
            make(name, params, **options)


@every_optimizer
def test_every_number_refuses_nan_and_infinity(name: str) -> None:
    fields = zoo.optimizer_config(name).model_fields
    opt = make(name, [P(2, 2)])
    for option, field in fields.items():
        if isinstance(field.default, bool) or not isinstance(field.default, (float, int)):
            continue
        for bad in (math.nan, math.inf, -math.inf):
            with pytest.raises(ValueError, match=option):
                make(name, [P(2, 2)], **{option: bad})
            with pytest.raises(ValueError, match=option):
                opt.add_param_group({"params": [P(3)], option: bad})
    for option in ("betas", "eps", "weight_decay"):
        if option in fields and fields[option].default is not None:
            default = fields[option].default
            bad_value: Any = (-0.1,) * len(default) if isinstance(default, tuple) else -0.1
            with pytest.raises(ValueError, match=option):
                make(name, [P(2, 2)], **{option: bad_value})
    if "betas" in fields:
        count = len(fields["betas"].default)
        for bad_betas in ((0.9,) * (count + 1), (1.0,) * count, (math.nan,) * count):
            with pytest.raises(ValueError, match="betas"):
                make(name, [P(2, 2)], betas=bad_betas)


# Read at every step


@every_optimizer
def test_a_tensor_lr_belongs_to_its_group(name: str) -> None:
    lr = torch.tensor(0.1)
    a, b = params_of([(3, 2), (2, 2)])
    opt = make(name, [{"params": [a]}, {"params": [b]}], lr=lr)
    first, second = (group["lr"] for group in opt.param_groups)
    assert first is not second
    assert first is not lr
    assert second is not lr
    second.mul_(0.1)
    assert float(first) == float(lr) == pytest.approx(0.1)
    own = torch.tensor(0.2)
    opt.add_param_group({"params": [P(2)], "lr": own})
    assert opt.param_groups[2]["lr"] is not own


@every_optimizer
def test_a_tensor_lr_trains_as_a_float_and_stays_a_tensor(name: str) -> None:
    for lr in (torch.tensor(0.0625), torch.tensor([0.0625])):
        params, copies = params_of(), params_of()
        opt, plain = make(name, params, lr=lr), make(name, copies, lr=0.0625)
        run(opt, params, range(3))
        run(plain, copies, range(3))
        assert_same(params, copies)
        resumed = make(name, twin(params), lr=lr)
        resumed.load_state_dict(opt.state_dict())
        assert isinstance(resumed.param_groups[0]["lr"], torch.Tensor)
        assert resumed.param_groups[0]["lr"] is not opt.param_groups[0]["lr"]


def _sequential(opt: Any) -> Any:
    parts: list[Any] = [schedulers.LinearLR(opt, 0.5, total_iters=2), schedulers.CosineAnnealingLR(opt, 3)]
    return schedulers.SequentialLR(opt, parts, milestones=[2])


def _chained(opt: Any) -> Any:
    return schedulers.ChainedScheduler([schedulers.ConstantLR(opt, 0.5, 2), schedulers.ExponentialLR(opt, 0.9)])


SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "LambdaLR": lambda opt: schedulers.LambdaLR(opt, lambda epoch: 1 / (1 + epoch)),
    "MultiplicativeLR": lambda opt: schedulers.MultiplicativeLR(opt, lambda epoch: 0.8),
    "StepLR": lambda opt: schedulers.StepLR(opt, 2, 0.5),
    "MultiStepLR": lambda opt: schedulers.MultiStepLR(opt, [1, 3], 0.5),
    "ConstantLR": lambda opt: schedulers.ConstantLR(opt, 0.5, 2),
    "LinearLR": lambda opt: schedulers.LinearLR(opt, 0.25, total_iters=3),
    "ExponentialLR": lambda opt: schedulers.ExponentialLR(opt, 0.9),
    "SequentialLR": _sequential,
    "PolynomialLR": lambda opt: schedulers.PolynomialLR(opt, 4, 2.0),
    "CosineAnnealingLR": lambda opt: schedulers.CosineAnnealingLR(opt, 3),
    "CosineAnnealingWarmRestarts": lambda opt: schedulers.CosineAnnealingWarmRestarts(opt, 2),
    "ChainedScheduler": _chained,
    "ReduceLROnPlateau": lambda opt: schedulers.ReduceLROnPlateau(opt, factor=0.5, patience=0),
    "CyclicLR": lambda opt: schedulers.CyclicLR(opt, 1e-4, 1e-2, step_size_up=2, cycle_momentum=False),
    "OneCycleLR": lambda opt: schedulers.OneCycleLR(opt, 0.01, total_steps=6, cycle_momentum=False),
    "SWALR": lambda opt: torch.optim.swa_utils.SWALR(opt, swa_lr=0.05, anneal_epochs=3),
}


def test_every_scheduler_of_torch_is_walked() -> None:
    known = {k for k, v in vars(schedulers).items() if isinstance(v, type) and issubclass(v, schedulers.LRScheduler)}
    assert {k for k in known if k.strip("_") != "LRScheduler"} <= set(SCHEDULERS)


def walk(opt: Any, params: Any, scheduler: Any, steps: int = 5) -> list[list[dict[str, Any]]]:
    """Train under the scheduler; the options that each step saw."""
    seen = []
    for seed in range(steps):
        seen.append([{k: _copied(v) for k, v in g.items() if k != "params"} for g in opt.param_groups])
        take_step(opt, params, random_grads(params, seed))
        if isinstance(scheduler, schedulers.ReduceLROnPlateau):
            scheduler.step(1.0 + seed)
        else:
            scheduler.step()
    return seen


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@every_optimizer
def test_steps_use_what_the_scheduler_writes(name: str, scheduler: str) -> None:
    params, copies = params_of([(3, 2), (2,)]), params_of([(3, 2), (2,)])
    opt, by_hand = make(name, params, lr=0.01), make(name, copies, lr=0.01)
    seen = walk(opt, params, SCHEDULERS[scheduler](opt))
    assert len({group["lr"] for (group,) in seen}) > 1
    memory = {key for key in seen[0][0] if key not in zoo.optimizer_config(name).model_fields and key != "initial_lr"}
    for seed, (group,) in enumerate(seen):
        by_hand.param_groups[0].update({k: v for k, v in group.items() if k not in memory})
        take_step(by_hand, copies, random_grads(copies, seed))
    assert_same(params, copies)
    assert_finite(params)


@pytest.mark.parametrize("scheduler", ["LambdaLR", "SequentialLR", "OneCycleLR", "ReduceLROnPlateau"])
@every_optimizer
def test_a_tensor_lr_follows_the_same_schedule_as_a_float(name: str, scheduler: str) -> None:
    params, copies = params_of([(3, 2), (2,)]), params_of([(3, 2), (2,)])
    opt, plain = make(name, params, lr=torch.tensor(0.01, dtype=torch.float64)), make(name, copies, lr=0.01)
    seen = walk(opt, params, SCHEDULERS[scheduler](opt))
    expected = walk(plain, copies, SCHEDULERS[scheduler](plain))
    assert all(isinstance(group["lr"], torch.Tensor) for (group,) in seen)
    assert [float(group["lr"]) for (group,) in seen] == pytest.approx([group["lr"] for (group,) in expected])
    for p, q in zip(params, copies, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-7)


CYCLES: dict[str, Callable[..., Any]] = {
    "OneCycleLR": lambda opt, **kw: schedulers.OneCycleLR(opt, max_lr=0.01, total_steps=6, **kw),
    "CyclicLR": lambda opt, **kw: schedulers.CyclicLR(opt, 1e-4, 1e-2, step_size_up=2, **kw),
}

UNUSED_BETA1: dict[str, str] = {
    "adashift": "with the one gradient that it keeps here there is nothing to weigh",
    "dadapt_lion": "its momentum carries d, which starts near zero: the raw gradient decides the first signs",
}
"""Optimizers whose first beta does not reach the update of the first five steps, and why."""


@pytest.mark.parametrize("scheduler", CYCLES)
@every_optimizer
def test_cycled_momentum_is_used(name: str, scheduler: str) -> None:
    cycle = CYCLES[scheduler]
    key = next((key for key in ("momentum", "betas") if has_option(name, key)), None)
    shapes = [(16, 8), (4,)]
    params = params_of(shapes)
    if key is None:
        with pytest.raises(ValueError, match="momentum"):
            cycle(make(name, params), cycle_momentum=True)
        walk(opt := make(name, params), params, cycle(opt, cycle_momentum=False))
        assert_finite(params)
        return
    options = {"momentum": 0.9} if key == "momentum" else {}
    for lr in (0.01, torch.tensor(0.01)):
        params, copies = params_of(shapes, torch.float64), params_of(shapes, torch.float64)
        opt, still = make(name, params, lr=lr, **options), make(name, copies, lr=lr, **options)
        before = opt.param_groups[0][key]
        seen = walk(opt, params, cycle(opt, cycle_momentum=True))
        after = [group[key] for (group,) in seen]
        firsts = [value[0] if key == "betas" else value for value in after]
        assert len(set(firsts)) > 1
        assert all(type(value) is type(before) for value in after)
        if key == "betas":
            assert {len(value) for value in after} == {len(before)}
            assert {value[1:] for value in after} == {before[1:]}
        walk(still, copies, cycle(still, cycle_momentum=False))
        assert_finite(params)
        changed = any(not torch.equal(p, q) for p, q in zip(params, copies, strict=True))
        assert changed is (name not in UNUSED_BETA1)


@every_optimizer
def test_weight_decay_switched_on_in_mid_training_acts(name: str) -> None:
    params, copies = params_of(dtype=torch.float64), params_of(dtype=torch.float64)
    opt, plain = (make(name, ps, weight_decay=0.0, lr=lively_lr(name)) for ps in (params, copies))
    run(opt, params, range(2))
    run(plain, copies, range(2))
    assert_same(params, copies)
    opt.param_groups[0]["weight_decay"] = 0.5
    run(opt, params, [2])
    run(plain, copies, [2])
    assert any(not torch.equal(p, q) for p, q in zip(params, copies, strict=True))
    assert_finite(params)


@pytest.mark.parametrize("name", zoo.list_optimizers(tag="parameter-free"))
def test_several_learning_rates_scale_the_estimated_one(name: str) -> None:
    shapes = [(4, 3), (4, 3)]
    for ratio in (0.5, 0.0):
        params = [P(*shape, dtype=torch.float64) for shape in shapes]
        opt = make(name, [{"params": params[:1]}, {"params": params[1:], "lr": ratio}], lr=1.0)
        before = values(params)
        for _ in range(3):
            take_step(opt, params, [torch.ones(4, 3, dtype=torch.float64)] * 2)
        full, scaled = ((p.detach() - q).norm() for p, q in zip(params, before, strict=True))
        assert full > 0
        assert float(scaled / full) == pytest.approx(ratio, rel=0.3)


# lr = 0


@pytest.mark.parametrize("given", ["group", "constructor"])
@every_optimizer
def test_lr_zero_moves_nothing(name: str, given: str) -> None:
    for options in ({}, {"weight_decay": 0.1}, {"cautious": True}, {"trust_ratio": True}, {"rms_clip": 1.0}):
        params = params_of()
        opt = make(name, params, **options, **({"lr": 0.0} if given == "constructor" else {}))
        usual = zoo.optimizer_config(name).model_fields["lr"].default
        if given == "group":
            run(opt, params, [0])
        opt.param_groups[0]["lr"] = 0.0
        before = values(params)
        run(opt, params, [1, 2])
        assert_same(params, before, f"{options}: parameter")
        opt.param_groups[0]["lr"] = usual if usual is not None else 1e-3
        run(opt, params, [3, 4])
        assert_finite(params, str(options))
        assert any(not torch.equal(p, q) for p, q in zip(params, before, strict=True))


@every_optimizer
def test_warm_up_from_zero_is_finite_and_learns(name: str) -> None:
    params = params_of()
    before = values(params)
    opt = make(name, params)
    walk(opt, params, schedulers.LambdaLR(opt, lambda epoch: min(epoch / 3, 1.0)))
    assert_finite(params)
    assert any(not torch.equal(p, q) for p, q in zip(params, before, strict=True))


@every_optimizer
def test_effective_lr_is_a_number_a_group(name: str) -> None:
    params = params_of()
    opt = make(name, [{"params": params[:1]}, {"params": params[1:], "lr": 5e-4}])
    run(opt, params, range(2))
    before = opt.state_dict()
    rates = opt.effective_lr()
    assert len(rates) == 2
    assert all(math.isfinite(float(rate)) and float(rate) >= 0 for rate in rates)
    assert opt.state_dict()["param_groups"] == before["param_groups"]
