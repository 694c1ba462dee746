"""Numbers at the edge: zeros, infinities, degenerate statistics, and precision too low for the update."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import zoo

from .common import (
    LR_ESTIMATED,
    P,
    assert_close,
    assert_finite,
    assert_same,
    every_optimizer,
    has_option,
    lively_lr,
    make,
    moves,
    params_of,
    random_grads,
    run,
    take_step,
    twin,
    values,
)

FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "cautious": {"cautious": True},
    "trust_ratio": {"trust_ratio": True},
    "rms_clip": {"rms_clip": 1.0},
    "orthograd": {"orthograd": True},
    "centralize": {"centralize": True},
    "agc": {"agc": 0.1},
    "clip_norm": {"clip_norm": 1.0},
    "cautious_weight_decay": {"weight_decay": 0.1, "cautious_weight_decay": True},
}
if_feature = pytest.mark.parametrize("feature", FEATURES)

NOISY: dict[str, str] = {}
"""Optimizers that add noise of their own, so that a zero gradient moves them; and why."""


def no_decay(name: str) -> dict[str, Any]:
    """Options under which nothing but the gradient moves a parameter."""
    return {"weight_decay": 0.0, **({"lambd": 0.0} if has_option(name, "lambd") else {})}


@if_feature
@every_optimizer
def test_zero_gradients_move_nothing_and_leave_no_nan(name: str, feature: str) -> None:
    params = params_of()
    opt = make(name, params, **{**no_decay(name), **FEATURES[feature], "weight_decay": 0.0})
    before = values(params)
    zeros = [torch.zeros_like(p) for p in params]
    take_step(opt, params, zeros)
    take_step(opt, params, zeros)
    if name not in NOISY:
        assert_same(params, before)
    run(opt, params, range(2))
    assert_finite(params)
    assert any(not torch.equal(p, q) for p, q in zip(params, before, strict=True))


@if_feature
@every_optimizer
def test_zero_weights_rows_and_parameters_stay_finite(name: str, feature: str) -> None:
    params = params_of([(4, 3), (4, 3), (4, 3), (3,)])
    with torch.no_grad():
        params[0].zero_()
        params[1][1].zero_()
        params[3].zero_()
    opt = make(name, params, **FEATURES[feature])
    for seed in range(3):
        grads = random_grads(params, seed)
        grads[1][2].zero_()
        grads[2].zero_()
        take_step(opt, params, grads)
        assert_finite(params, f"after step {seed + 1}")


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30], ids=str)
@every_optimizer
def test_tiny_and_huge_gradients_stay_finite(name: str, scale: float) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(3), scale=scale)
    assert_finite(params)
    run(opt, params, range(3, 5))
    assert_finite(params)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")], ids=str)
@every_optimizer
def test_a_non_finite_gradient_is_skipped_on_request(name: str, bad: float) -> None:
    params, copies = params_of(), params_of()
    opt, clean = make(name, params, skip_nonfinite=True), make(name, copies, skip_nonfinite=True)
    for seed in range(4):
        if seed == 2:
            grads = random_grads(params, 99)
            grads[1][0] = bad
            take_step(opt, params, grads)
        run(opt, params, [seed])
        run(clean, copies, [seed])
    assert_same(params, copies)
    assert (opt.skipped_steps, clean.skipped_steps) == (1, 0)


@every_optimizer
def test_a_non_finite_gradient_never_raises(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, [0])
    for bad in (float("nan"), float("inf")):
        grads = random_grads(params, 1)
        grads[0][0, 0] = bad
        take_step(opt, params, grads)
    run(opt, params, [2])


DEGENERATE = {
    "rank_0": lambda p, seed: torch.zeros_like(p),
    "rank_1": lambda p, seed: torch.ones_like(p),
    "repeated": lambda p, seed: random_grads([p], 0)[0],
    "one_element": lambda p, seed: torch.zeros_like(p).index_fill_(0, torch.tensor([0]), 1.0),
    "tiny": lambda p, seed: random_grads([p], seed)[0] * 1e-20,
}


@pytest.mark.parametrize("kind", DEGENERATE)
@every_optimizer
def test_degenerate_statistics_neither_raise_nor_spoil(name: str, kind: str) -> None:
    params = params_of([(4, 4), (5, 2), (1, 1), (0, 0), (3,)])
    opt = make(name, params)
    for seed in range(6):
        take_step(opt, params, [DEGENERATE[kind](p, seed) if p.numel() else torch.zeros_like(p) for p in params])
        assert_finite(params)
    run(opt, params, [7, 8])
    assert_finite(params)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@every_optimizer
def test_half_precision_follows_float32(name: str, dtype: torch.dtype) -> None:
    params = params_of(dtype=dtype)
    wide = [torch.nn.Parameter(p.detach().float()) for p in params]
    opt, full = make(name, params, state_dtype="float32"), make(name, wide)
    before = values(wide)
    for seed in range(3):
        grads = [g * 0.1 for g in random_grads(params, seed)]
        take_step(opt, params, grads)
        take_step(full, wide, [g.float() for g in grads])
    for p, q, old in zip(params, wide, before, strict=True):
        assert_finite([p])
        spacing = torch.finfo(dtype).eps * q.detach().abs()
        error = (p.detach().float() - q.detach()).abs()
        moved = (q.detach() - old).abs().max()
        assert bool((error <= 3 * spacing + 0.2 * moved + 1e-6).all()), float((error - 3 * spacing).max() / moved)


# Updates below the spacing of bfloat16


STEADY: dict[str, dict[str, Any]] = {
    "adabound": {"final_lr": 1e-5},
    "adasmooth": {"betas": (0.01, 0.01)},
    "nero": {"constraints": False},
    "radam": {"betas": (0.9, 0.5)},
    "rprop": {"etas": (0.5, 1.0001)},
    "schedule_free_radam": {"silent_sgd_phase": True},
}
"""Options that leave out first steps of another size than the later ones."""

FROM_THE_START: dict[str, str] = {
    "ftrl": "its weights are computed anew from a sum of gradients",
    "madgrad": "its weights are computed anew from where they started and a sum of gradients",
    "mirror_madgrad": "its weights are averaged with a point that its state keeps",
}
"""Optimizers whose plain bfloat16 weights lose nothing for good, and why."""


def _learned(name: str, lr: float, steps: int, dtype: torch.dtype, **options: Any) -> float:
    """How far ``steps`` constant gradients move ones, on average, against the gradient."""
    p = torch.nn.Parameter(torch.ones(16, 16, dtype=dtype))
    opt = make(name, [p], lr=lr, **{**no_decay(name), **STEADY.get(name, {}), **options})
    for _ in range(steps):
        take_step(opt, [p], [torch.ones_like(p)])
    if hasattr(opt, "eval"):
        opt.eval()
    return float((1 - p.detach().double()).mean())


STALL_STEPS = 48
SMALL_STEP = 2.0**-9 / 8
"""An eighth of what it takes for 1 to round to the next smaller bfloat16."""

NOT_SCALED_BY_LR: dict[str, str] = {**LR_ESTIMATED, "nero": "it projects the weights onto a sphere"}
"""Optimizers whose step does not follow lr, and why: their update cannot be made small by lr."""


@every_optimizer
def test_plain_bfloat16_stalls_where_kahan_and_stochastic_rounding_learn(name: str) -> None:
    lr = zoo.optimizer_config(name).model_fields["lr"].default or 1e-3
    wanted = SMALL_STEP * STALL_STEPS
    for _ in range(15):  # an lr at which float32 takes steps of the wanted size
        moved = _learned(name, lr, STALL_STEPS, torch.float32)
        if 0.7 < moved / wanted < 1.4:
            break
        lr *= min(max(wanted / max(moved, 1e-12), 0.01), 100.0)
    else:
        assert name in NOT_SCALED_BY_LR, f"moved {moved}, not {wanted}, at lr {lr}"
        return
    found = {
        how or "plain": _learned(name, lr, STALL_STEPS, torch.bfloat16, state_dtype="float32", low_precision=how)
        for how in (None, "kahan", "stochastic")
    }
    if name not in FROM_THE_START:
        assert abs(found["plain"]) < 0.6 * moved, found
    assert found["kahan"] == pytest.approx(moved, rel=0.25), found
    assert found["stochastic"] == pytest.approx(moved, rel=0.4), found


@every_optimizer
def test_stochastic_rounding_repeats_by_seed(name: str) -> None:
    options: dict[str, Any] = {"low_precision": "stochastic", "state_dtype": "float32"}
    if has_option(name, "d0"):
        options["d0"] = 0.1  # steps that rounding can be seen in
    runs = []
    for seed in (1, 1, 2):
        params = params_of([(16, 16), (8,)], dtype=torch.bfloat16)
        opt = make(name, params, seed=seed, **options)
        run(opt, params, range(3))
        runs.append(values(params))
    assert_same(runs[0], runs[1])
    assert any(not torch.equal(p, q) for p, q in zip(runs[0], runs[2], strict=True))


@pytest.mark.parametrize("how", ["kahan", "stochastic"])
@every_optimizer
def test_low_precision_options_leave_float32_alone(name: str, how: str) -> None:
    params, copies = params_of(), params_of()
    opt, plain = make(name, params, low_precision=how), make(name, copies)
    run(opt, params, range(3))
    run(plain, copies, range(3))
    assert_close(params, copies, 1e-5)


@every_optimizer
def test_state_dtype_is_kept_while_training(name: str) -> None:
    for dtype, wanted in ((torch.bfloat16, "float32"), (torch.float32, "bfloat16")):
        params = params_of(dtype=dtype)
        opt = make(name, params, state_dtype=wanted)
        run(opt, params, range(2))
        assert_finite(params)
        for p in params:
            for key, value in opt.state[p].items():
                if value.is_floating_point() and value.shape == p.shape and key != "kahan_compensation" and p.ndim:
                    assert value.dtype is getattr(torch, wanted), key


@every_optimizer
def test_weight_decay_pulls_towards_zero(name: str) -> None:
    def shrinkage(decay: float) -> float:
        params = [P(6, 4, seed=3, dtype=torch.float64)]
        opt = make(name, params, lr=lively_lr(name), weight_decay=decay)
        for seed in range(3):
            take_step(opt, params, [g * 0.1 for g in random_grads(params, seed)])
        return float(params[0].detach().norm())

    assert shrinkage(1.0) < shrinkage(0.0)


def test_moves_are_what_is_measured() -> None:
    p = torch.nn.Parameter(torch.ones(2))
    before = values([p])
    with torch.no_grad():
        p.sub_(0.5)
    moved: list[Tensor] = moves([p], before)
    assert_same(moved, [torch.full((2,), -0.5)])
    assert_same(twin([p]), [p])
