"""What every training loop relies on: closures, hooks, gradients left alone, silence, no random numbers of yours."""

from __future__ import annotations

import gc
import inspect
import logging
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import zoo

from .common import (
    P,
    assert_close,
    assert_finite,
    assert_same,
    every_optimizer,
    give_grads,
    make,
    params_of,
    quadratic,
    random_grads,
    run,
    take_step,
    values,
)

# Gradients


FEATURES: tuple[dict[str, Any], ...] = (
    {},
    {"weight_decay": 0.1},
    {"weight_decay": 0.1, "decay_mode": "l2"},
    {"maximize": True},
    {"centralize": True},
    {"orthograd": True},
    {"agc": 0.01},
    {"clip_norm": 0.1},
    {"clip_value": 0.1},
    {"cautious": True},
    {"cautious": "grams"},
    {"trust_ratio": True},
    {"rms_clip": 0.1},
    {"low_precision": "kahan"},
    {"amsgrad": True},
    {"adanorm": 0.9},
    {"nesterov": True, "momentum": 0.9},
)


def accepted(name: str) -> list[dict[str, Any]]:
    """The features that this optimizer has all options of, and takes together."""
    fields = zoo.optimizer_config(name).model_fields
    found = []
    for options in FEATURES:
        if set(options) <= set(fields):
            try:
                zoo.optimizer_config(name)(**options)
            except ValueError:
                continue
            found.append(options)
    return found


@every_optimizer
def test_the_step_leaves_gradients_alone(name: str) -> None:
    kept = accepted(name)
    assert len(kept) >= 10
    for options in kept:
        params = params_of()
        opt = make(name, params, **options)
        for seed in range(2):
            closure = give_grads(opt, params, random_grads(params, seed))
            if closure is not None:
                opt.step(closure)
                continue
            grads = [p.grad for p in params]
            held = values([g for g in grads if g is not None])
            opt.step()
            assert all(p.grad is g for p, g in zip(params, grads, strict=True)), options
            assert_same([p.grad for p in params if p.grad is not None], held, f"{options}: gradient")


@every_optimizer
def test_both_ways_of_zero_grad(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, [0])
    opt.zero_grad(set_to_none=False)
    assert all(p.grad is not None and not p.grad.any() and not p.grad.requires_grad for p in params)
    opt.zero_grad()
    assert all(p.grad is None for p in params)


@every_optimizer
def test_clipped_gradients_train(name: str) -> None:
    params = params_of(dtype=torch.float64)
    opt = make(name, params)
    run(opt, params, [90])  # some only look at the first gradient
    if opt.needs_closure:

        def closure() -> Tensor:
            opt.zero_grad()
            loss = sum((p**2).sum() for p in params)
            loss.backward()
            nn.utils.clip_grad_norm_(params, 0.5)
            return loss

        before = values(params)
        opt.step(closure)
    else:
        give_grads(opt, params, random_grads(params, 0, scale=100.0))
        norm = nn.utils.clip_grad_norm_(params, 0.5)
        assert norm > 10
        before = values(params)
        opt.step()
    assert_finite(params)
    assert any(not torch.equal(p, q) for p, q in zip(params, before, strict=True))


# Closures


@pytest.mark.parametrize("outside", ["enabled", "no_grad"])
@every_optimizer
def test_the_closure_runs_first_with_gradients_and_its_loss_is_returned(name: str, outside: str) -> None:
    params, copies = params_of(), params_of()
    opt, plain = make(name, params), make(name, copies)
    run(opt, params, [90])
    run(plain, copies, [90])
    loss_of = quadratic(params, random_grads(params, 0))
    calls: list[tuple[bool, float]] = []
    before = values(params)

    def closure() -> Tensor:
        opt.zero_grad()
        loss = loss_of()
        loss.backward(create_graph=opt.needs_create_graph)
        calls.append((torch.is_grad_enabled(), float(loss.detach())))
        if len(calls) == 1:
            assert_same(params, before)
        return loss

    with torch.set_grad_enabled(outside == "enabled"):
        loss = opt.step(closure)
        assert torch.is_grad_enabled() is (outside == "enabled")
    assert isinstance(loss, Tensor)
    assert float(loss.detach()) == calls[0][1]
    assert all(enabled for enabled, _ in calls)
    if not opt.needs_closure:
        assert len(calls) == 1
        take_step(plain, copies, random_grads(copies, 0))
        assert_close(params, copies, 1e-6)
    assert any(not torch.equal(p, q) for p, q in zip(params, before, strict=True))
    for p in params:
        p.grad = None  # a gradient with a graph and its parameter would keep one another alive


@every_optimizer
def test_a_closure_that_raises_changes_nothing(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, [0])
    before, saved = values(params), opt.state_dict()
    counts = [float(state.get("step", 0)) for state in saved["state"].values()]

    def closure() -> Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        opt.step(closure)
    assert_same(params, before)
    assert [float(state.get("step", 0)) for state in opt.state_dict()["state"].values()] == counts


@every_optimizer
def test_without_what_it_needs_the_step_says_so(name: str) -> None:
    cls = zoo.optimizer_class(name)
    params = params_of()
    opt = make(name, params)
    for p, g in zip(params, random_grads(params, 0), strict=True):
        p.grad = g
    before = values(params)
    if cls.needs_closure:
        with pytest.raises((TypeError, RuntimeError, ValueError), match="closure"):
            opt.step()
        assert_same(params, before)
    elif cls.needs_create_graph:
        with pytest.raises(RuntimeError, match="create_graph"):
            opt.step()
        assert_same(params, before)
    else:
        assert opt.step() is None


@pytest.mark.parametrize("name", zoo.list_optimizers(tag="create-graph"))
def test_graphs_of_second_order_steps_are_freed(name: str) -> None:
    params = params_of([(4, 4)])
    opt = make(name, params)

    def live_tensors() -> int:
        return sum(isinstance(thing, Tensor) for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        counts = []
        for seed in range(8):
            run(opt, params, [seed])
            opt.zero_grad()
            counts.append(live_tensors())
    finally:
        gc.enable()
    assert counts[-1] <= counts[2] + 1, counts


# Hooks and labels


@every_optimizer
def test_all_six_kinds_of_hooks_run_in_their_place(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, [90])
    seen: list[str] = []
    before = values(params)

    def pre_step(o: Any, args: Any, kwargs: Any) -> None:
        assert o is opt
        assert_same(params, before)
        seen.append("step_pre")

    def post_step(o: Any, args: Any, kwargs: Any) -> None:
        assert any(not torch.equal(p, q) for p, q in zip(params, before, strict=True))
        seen.append("step_post")

    def pre_state(o: Any) -> None:
        seen.append("state_pre")

    def post_state(o: Any, state_dict: Any) -> Any:
        seen.append("state_post")
        return {**state_dict, "extra": 1}

    def pre_load(o: Any, state_dict: Any) -> Any:
        seen.append("load_pre")
        return {k: v for k, v in state_dict.items() if k != "extra"}

    def post_load(o: Any) -> None:
        seen.append("load_post")

    handles = [
        opt.register_step_pre_hook(pre_step),
        opt.register_step_post_hook(post_step),
        opt.register_state_dict_pre_hook(pre_state),
        opt.register_state_dict_post_hook(post_state),
        opt.register_load_state_dict_pre_hook(pre_load),
        opt.register_load_state_dict_post_hook(post_load),
    ]
    run(opt, params, [0])
    saved = opt.state_dict()
    assert saved["extra"] == 1
    opt.load_state_dict(saved)
    assert seen == ["step_pre", "step_post", "state_pre", "state_post", "load_pre", "load_post"]
    assert saved["extra"] == 1
    for handle in handles:
        handle.remove()
    run(opt, params, [1])
    opt.load_state_dict(opt.state_dict())
    assert len(seen) == 6


@every_optimizer
def test_the_profiler_shows_the_step_by_name(name: str) -> None:
    params = params_of([(2, 2)])
    opt = make(name, params)
    run(opt, params, [0])
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        run(opt, params, [1])
        opt.zero_grad()
    labels = {event.name for event in profile.function_events}
    cls = type(opt).__name__
    assert f"Optimizer.step#{cls}.step" in labels
    assert f"Optimizer.zero_grad#{cls}.zero_grad" in labels


# GradScaler


@every_optimizer
def test_a_skipped_step_of_the_scaler_does_not_count(name: str) -> None:
    params, copies = params_of(), params_of()
    opt, plain = make(name, params), make(name, copies)
    if opt.needs_closure:
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(torch.ones(()))
        for p in params:
            p.grad = torch.ones_like(p)
        with pytest.raises(RuntimeError, match=r"(?i)closure"):
            scaler.step(opt, closure=lambda: None)
        return
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for seed in range(4):
        grads = random_grads(params, seed)
        scaler.scale(torch.ones(()))
        give_grads(opt, params, [g * scaler.get_scale() for g in grads])
        overflow = seed == 1
        if overflow:
            params[0].grad = torch.full_like(params[0], float("inf"))
        before = values(params)
        scaler.step(opt)
        scaler.update()
        if overflow:
            assert_same(params, before)
        else:
            take_step(plain, copies, grads)
    assert scaler.get_scale() == 2.0
    assert_close(params, copies, 1e-6)
    for p, q in zip(params, copies, strict=True):
        if "step" in opt.state[p]:
            assert opt.state[p]["step"] == plain.state[q]["step"] == 3


# Quiet, and no random numbers but its own


@every_optimizer
def test_nothing_is_printed_or_warned(
    name: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    params = params_of()
    with caplog.at_level(logging.INFO):
        opt = make(name, params)
        run(opt, params, range(3))
        repr(opt)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert not [str(w.message) for w in recwarn.list]


@every_optimizer
def test_the_global_generator_is_not_consumed(name: str) -> None:
    params = params_of()
    before = torch.get_rng_state()
    opt = make(name, params)
    run(opt, params, range(3))
    opt.state_dict()
    opt.materialize_state()
    assert torch.equal(torch.get_rng_state(), before)


@every_optimizer
def test_the_result_does_not_depend_on_the_global_generator(name: str) -> None:
    results = []
    for seed in (0, 1):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            params = params_of()
            run(make(name, params), params, range(3))
            results.append(values(params))
    assert_same(*results)


# Signs, signatures, representation


@pytest.mark.parametrize("weight_decay", [0.0, 0.1], ids=["no_decay", "decay"])
@every_optimizer
def test_maximize_is_a_mirror(name: str, weight_decay: float) -> None:
    params, copies = params_of(), params_of()
    opt = make(name, params, weight_decay=weight_decay)
    mirror = make(name, copies, weight_decay=weight_decay, maximize=True)
    for seed in range(4):
        grads = random_grads(params, seed)
        if opt.needs_closure or opt.needs_create_graph:
            _mirrored_step(opt, params, grads, 1)
            _mirrored_step(mirror, copies, grads, -1)
        else:
            take_step(opt, params, grads)
            take_step(mirror, copies, [-g for g in grads])
    assert_close(params, copies, 1e-6)


def _mirrored_step(opt: Any, params: list[nn.Parameter], grads: list[Tensor], sign: int) -> None:
    loss_of = quadratic(params, grads)

    def closure() -> Tensor:
        with torch.enable_grad():
            loss = sign * loss_of()
            found = torch.autograd.grad(loss, params, create_graph=opt.needs_create_graph)
            for p, g in zip(params, found, strict=True):
                p.grad = g
        return loss.detach()

    if opt.needs_closure:
        opt.step(closure)
    else:
        closure()
        opt.step()


@every_optimizer
def test_the_signature_lists_every_option(name: str) -> None:
    cls = zoo.optimizer_class(name)
    parameters = inspect.signature(cls).parameters
    assert list(parameters) == ["params", *cls.Config.model_fields]
    for option, field in cls.Config.model_fields.items():
        assert parameters[option].default == field.default
        assert field.description, f"{option} has no description"
    by_position = cls([P(2)], 0.125)
    assert by_position.param_groups[0]["lr"] == by_position.defaults["lr"] == 0.125
    assert set(by_position.defaults) == set(cls.Config.model_fields)


@every_optimizer
def test_the_representation_names_what_differs(name: str) -> None:
    opt = make(name, params_of(), weight_decay=0.25)
    assert type(opt).__name__ in repr(opt)
    assert "weight_decay=0.25" in repr(opt)
    assert "3 parameters" in repr(opt)


@every_optimizer
def test_it_is_a_torch_optimizer(name: str) -> None:
    opt = make(name, params_of())
    assert isinstance(opt, torch.optim.Optimizer)
    assert isinstance(opt, zoo.BaseOptimizer)
    assert type(opt).__doc__
    assert opt.param_groups[0]["optimizer"]
