"""Where torch has the same optimizer: the same trajectories, errors, checkpoints and gradients through the step.

The inputs and the error inputs are torch's own published test database.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

import zoo

from .common import P, assert_close, assert_same, params_of, random_grads, save_load, take_step, twin

pytest.importorskip("expecttest", reason="torch's test database imports it")

from torch.testing._internal.common_optimizers import (
    ErrorOptimizerInput,
    OptimizerErrorEnum,
    OptimizerInput,
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
)

TRANSLATED: dict[str, dict[str, Any]] = {}
"""Options that make our optimizer torch's where the defaults differ, by our name."""

RENAMED: dict[str, dict[str, str]] = {}
"""torch's option → ours, by our name, where the words differ."""


def _ours(torch_name: str) -> str | None:
    try:
        return zoo.optimizer_spec(torch_name.lower()).name
    except zoo.UnknownOptimizerError:
        return next((name for name in zoo.list_optimizers() if name.replace("_", "") == torch_name.lower()), None)


@dataclass(frozen=True)
class Pair:
    """torch's optimizer and ours."""

    name: str
    info: Any

    def torch(self, params: Any, **options: Any) -> Any:
        return self.info.optim_cls(params, **options)

    def zoo(self, params: Any, **options: Any) -> Any:
        renamed = {RENAMED.get(self.name, {}).get(key, key): value for key, value in options.items()}
        return zoo.create_optimizer(self.name, params, **{**TRANSLATED.get(self.name, {}), **renamed})

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(4, 3), (2, 5)] if self.info.optim_cls is torch.optim.Muon else [(4, 3), (3,), (2, 3, 2), ()]


PAIRS = {name: Pair(name, info) for info in optim_db if (name := _ours(info.optim_cls.__name__)) is not None}
every_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


def inputs_of(pair: Pair) -> list[OptimizerInput]:
    """torch's inputs, each also with foreach and fused where torch has them."""
    found: list[OptimizerInput] = _get_optim_inputs_including_global_cliquey_kwargs(
        "cpu", torch.float64, pair.info, skip=("differentiable",)
    )
    return found


INPUTS = [
    pytest.param(pair, entry, id=f"{name}-{entry.desc or 'default'}-{index}")
    for name, pair in PAIRS.items()
    for index, entry in enumerate(inputs_of(pair))
]
ERRORS = [
    pytest.param(pair, entry, id=f"{name}-{entry.optimizer_error_input.desc}")
    for name, pair in PAIRS.items()
    for entry in pair.info.optim_error_inputs_func("cpu", torch.float32)
]


def options_of(entry: OptimizerInput) -> dict[str, Any]:
    """The input's options, its tensors copied."""
    return copy.deepcopy(entry.kwargs)


def step(pair: Pair, opt: Any, params: list[Parameter], seed: int) -> None:
    """One step with these seeded gradients, as this optimizer takes them."""
    grads = random_grads(params, seed)
    if pair.info.only_supports_sparse_grads:
        for p, g in zip(params, grads, strict=True):
            p.grad = g.to_sparse() if p.ndim else g.reshape(1).to_sparse().reshape(())
        opt.step()
    elif pair.info.step_requires_closure:
        _closure_step(opt, params, grads)
    else:
        take_step(opt, params, grads)


def _closure_step(opt: Any, params: list[Parameter], grads: list[Tensor]) -> None:
    def closure() -> Tensor:
        opt.zero_grad()
        loss = sum(((p - g) ** 2).sum() + (p**4).sum() / 10 for p, g in zip(params, grads, strict=True))
        loss.backward()
        return loss

    opt.step(closure)


def train(pair: Pair, opt: Any, params: list[Parameter], seeds: range) -> None:
    """A step a seed."""
    for seed in seeds:
        step(pair, opt, params, seed)


def shapes_of(pair: Pair) -> list[tuple[int, ...]]:
    return [(4, 3), (3,)] if pair.info.only_supports_sparse_grads else pair.shapes


def tolerance(dtype: torch.dtype) -> float:
    return 1e-10 if dtype is torch.float64 else 2e-5


def test_the_optimizers_that_torch_has_are_found() -> None:
    assert {"adam", "adamw", "sgd"} <= set(PAIRS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("pair", "entry"), INPUTS)
def test_torchs_inputs_give_torchs_trajectory(pair: Pair, entry: OptimizerInput, dtype: torch.dtype) -> None:
    theirs, ours = params_of(shapes_of(pair), dtype), params_of(shapes_of(pair), dtype)
    reference, opt = pair.torch(theirs, **options_of(entry)), pair.zoo(ours, **options_of(entry))
    before = [p.detach().clone() for p in ours]
    train(pair, reference, theirs, range(6))
    train(pair, opt, ours, range(6))
    assert_close(ours, theirs, tolerance(dtype))
    assert any(not torch.equal(p, q) for p, q in zip(ours, before, strict=True))


@pytest.mark.parametrize(("pair", "entry"), ERRORS)
def test_torchs_error_inputs_raise_the_same(pair: Pair, entry: ErrorOptimizerInput) -> None:
    given = entry.optimizer_error_input
    params = [P(1, 1)] if given.params is None else given.params
    # torch only warns of a parameter given twice in one group; here both forms are errors.
    expected = ValueError if entry.error_type is UserWarning else entry.error_type

    def use() -> None:
        opt = pair.zoo(params, **options_of(given))
        if entry.error_on is OptimizerErrorEnum.STEP_ERROR:
            opt.step()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(expected):
            use()


@pytest.mark.parametrize(("pair", "entry"), INPUTS)
def test_a_checkpoint_of_torch_continues_here_and_back(pair: Pair, entry: OptimizerInput) -> None:
    theirs = params_of(shapes_of(pair), torch.float64)
    reference = pair.torch(theirs, **options_of(entry))
    train(pair, reference, theirs, range(3))

    ours = twin(theirs)
    opt = pair.zoo(ours, **options_of(entry))
    opt.load_state_dict(save_load(reference.state_dict()))
    train(pair, reference, theirs, range(3, 6))
    train(pair, opt, ours, range(3, 6))
    assert_close(ours, theirs, 1e-10)

    back = twin(ours)
    returned = pair.torch(back, **options_of(entry))
    returned.load_state_dict(save_load(opt.state_dict()))
    train(pair, reference, theirs, range(6, 9))
    train(pair, returned, back, range(6, 9))
    assert_close(back, theirs, 1e-10)


@every_pair
def test_an_old_checkpoint_of_torch_loads(pair: Pair) -> None:
    theirs = params_of(shapes_of(pair), torch.float64)
    reference = pair.torch(theirs)
    train(pair, reference, theirs, range(3))
    old = save_load(reference.state_dict())
    for flag in pair.info.not_og_supported_flags:
        for group in old["param_groups"]:
            group.pop(flag, None)
    for state in old["state"].values():
        if isinstance(state.get("step"), Tensor):
            state["step"] = state["step"].item()
    ours = twin(theirs)
    opt = pair.zoo(ours)
    opt.load_state_dict(old)
    train(pair, reference, theirs, range(3, 5))
    train(pair, opt, ours, range(3, 5))
    assert_close(ours, theirs, 1e-10)


@every_pair
def test_a_fresh_checkpoint_of_torch_loads(pair: Pair) -> None:
    theirs = params_of(shapes_of(pair), torch.float64)
    ours = twin(theirs)
    reference, opt = pair.torch(theirs), pair.zoo(ours)
    opt.load_state_dict(reference.state_dict())
    returned = pair.torch(twin(theirs))
    returned.load_state_dict(opt.state_dict())
    train(pair, reference, theirs, range(2))
    train(pair, opt, ours, range(2))
    assert_close(ours, theirs, 1e-10)


@every_pair
def test_state_has_torchs_names_shapes_and_dtypes(pair: Pair) -> None:
    if pair.info.step_requires_closure:
        pytest.skip("torch keeps the state of all parameters with the first, in lists")
    theirs, ours = params_of(shapes_of(pair)), params_of(shapes_of(pair))
    reference, opt = pair.torch(theirs), pair.zoo(ours)
    train(pair, reference, theirs, range(2))
    train(pair, opt, ours, range(2))
    for p, q in zip(theirs, ours, strict=True):
        expected = {k: v for k, v in reference.state[p].items() if v is not None}
        assert set(expected) <= set(opt.state[q])
        for key, value in expected.items():
            assert opt.state[q][key].shape == value.shape, key
            assert opt.state[q][key].dtype == value.dtype, key


@every_pair
def test_torchs_options_and_defaults_are_ours(pair: Pair) -> None:
    translated = TRANSLATED.get(pair.name, {})
    opt = pair.zoo(params_of(pair.shapes))
    for key, value in pair.torch(params_of(pair.shapes)).defaults.items():
        ours = RENAMED.get(pair.name, {}).get(key, key)
        if ours in translated:
            continue
        assert ours in opt.defaults, f"torch's option {key!r} is missing"
        assert opt.defaults[ours] == value, f"default of {key!r}"


DIFFERENTIABLE = {name: pair for name, pair in PAIRS.items() if "differentiable" in pair.info.supported_impls}


@pytest.mark.parametrize("pair", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_gradients_flow_through_the_step_as_in_torch(pair: Pair) -> None:
    compared = refused = 0
    for entry in pair.info.optim_inputs_func("cpu"):
        if isinstance(entry.kwargs.get("lr"), Tensor):
            continue

        def outcome(build: Any, inputs: list[Tensor], options: dict[str, Any]) -> Tensor:
            p = inputs[0].clone()
            opt = build([p], differentiable=True, **options)
            for g in inputs[1:]:
                p.grad = g
                opt.step()
            return (p**3).sum()

        leaf = P(4, 3, dtype=torch.float64)
        inputs = [leaf, *(g.requires_grad_() for seed in range(3) for g in random_grads([leaf], seed))]
        direction = random_grads(inputs, 5)
        ends = []
        for sign in (1, -1):
            moved = [(x + sign * 1e-6 * d).detach() for x, d in zip(inputs, direction, strict=True)]
            ends.append(float(outcome(pair.torch, moved, options_of(entry))))
        slope = pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4)
        found = torch.autograd.grad(outcome(pair.zoo, inputs, options_of(entry)), inputs)
        assert along(found, direction) == slope, entry.desc
        try:
            end = outcome(pair.torch, inputs, options_of(entry))
            expected = torch.autograd.grad(end, inputs, materialize_grads=True)
        except RuntimeError:  # torch overwrites what its backward pass needs (amsgrad, adamax, rprop)
            refused += 1
            continue
        # torch detaches the first gradient of its momentum, and counts steps in float32 here.
        if along(expected, direction) == slope:
            assert_close(found, expected, 1e-4, f"{entry.desc}: outer gradient")
            compared += 1
    assert compared or refused


def along(gradients: Sequence[Tensor], direction: Sequence[Tensor]) -> float:
    """The slope that these gradients promise in this direction."""
    return float(sum((g * d).sum() for g, d in zip(gradients, direction, strict=True)))


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_gradients_flow_to_a_tensor_lr_as_in_torch(name: str) -> None:
    pair, found = PAIRS[name], []
    for build in (pair.torch, pair.zoo):
        lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
        p = P(4, 3, dtype=torch.float64).clone()
        opt = build([p], lr=lr, differentiable=True, weight_decay=0.1)
        for seed in range(3):
            (p.grad,) = random_grads([p], seed)
            opt.step()
        found.append(torch.autograd.grad((p**2).sum(), [lr])[0])
    assert_close([found[1]], [found[0]], 1e-4, "lr gradient")


@every_pair
def test_bfloat16_follows_torch_up_to_rounding(pair: Pair) -> None:
    # torch rounds after each operation, we compute in float32 and round once: no further from the truth than torch.
    if pair.info.only_supports_sparse_grads or pair.info.step_requires_closure:
        pytest.skip("needs sparse gradients or a closure")
    exact, theirs, ours = (params_of(pair.shapes, dtype) for dtype in (torch.float64, torch.bfloat16, torch.bfloat16))
    with torch.no_grad():
        for p, q in zip(exact, theirs, strict=True):
            p.copy_(q)
    runs = [(pair.torch(exact), exact), (pair.torch(theirs), theirs), (pair.zoo(ours), ours)]
    for opt, params in runs:
        for seed in range(3):
            for p, g in zip(params, random_grads(theirs, seed), strict=True):
                p.grad = g.to(p.dtype)
            opt.step()
    for p, q, r in zip(exact, theirs, ours, strict=True):
        spacing = torch.finfo(torch.bfloat16).eps * p.detach().abs().clamp(min=1e-2)
        ours_off, theirs_off = ((x.detach().double() - p.detach()).abs() for x in (r, q))
        assert bool((ours_off <= 2 * spacing + theirs_off).all())


def test_a_loaded_copy_is_independent_of_torchs() -> None:
    theirs = params_of()
    reference = torch.optim.Adam(theirs)
    train(PAIRS["adam"], reference, theirs, range(2))
    ours = twin(theirs)
    opt = zoo.create_optimizer("adam", ours)
    held = reference.state[theirs[0]]["exp_avg"].clone()
    opt.load_state_dict(reference.state_dict())
    train(PAIRS["adam"], opt, ours, range(2, 4))
    assert_same([reference.state[theirs[0]]["exp_avg"]], [held])
