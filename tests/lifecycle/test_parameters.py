"""Parameters of every kind and at every time: late, frozen, empty, twice, odd in shape, stride or number."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import Parameter

import zoo

from .common import (
    P,
    assert_close,
    assert_finite,
    assert_same,
    assert_same_state,
    every_optimizer,
    make,
    moves,
    own_params,
    params_of,
    random_grads,
    run,
    save_load,
    take_step,
    twin,
    values,
)

DEGENERATE: tuple[tuple[int, ...], ...] = ((), (0,), (0, 4), (1,), (1, 1), (1, 5), (4,), (4, 4), (3, 2, 2, 2))


# Shapes


@pytest.mark.parametrize("shape", DEGENERATE, ids=str)
@every_optimizer
def test_a_parameter_of_any_shape_trains(name: str, shape: tuple[int, ...]) -> None:
    p = P(*shape)
    opt = make(name, [p])
    before = values([p])
    run(opt, [p], range(3))
    assert_finite([p])
    assert p.shape == shape
    if p.numel():
        assert not torch.equal(p, before[0])
    copies = twin([p])
    resumed = make(name, copies)
    resumed.load_state_dict(save_load(opt.state_dict()))
    run(opt, [p], [3])
    run(resumed, copies, [3])
    assert_same(copies, [p])


@pytest.mark.parametrize("position", ["first", "middle", "last"])
@every_optimizer
def test_an_empty_parameter_changes_nothing_for_the_others(name: str, position: str) -> None:
    shapes = [(4, 3), (3,)]
    params, others = params_of(shapes), params_of(shapes)
    mixed: list[Parameter] = list(others)
    at = {"first": 0, "middle": 1, "last": 2}[position]
    mixed[at:at] = [P(0, 4), P(0)]
    opt, plain = make(name, mixed), make(name, params)
    for seed in range(3):
        grads = random_grads(params, seed)
        take_step(plain, params, grads)
        full: list[Tensor] = list(grads)
        full[at:at] = [torch.zeros(0, 4), torch.zeros(0)]
        take_step(opt, mixed, full)
    assert_same(others, params)
    assert opt.state[mixed[at]].keys() == opt.state[mixed[at + 1]].keys() or not opt.state[mixed[at + 1]]
    fresh = make(name, twin(mixed))
    fresh.load_state_dict(save_load(opt.state_dict()))
    assert_same_state(fresh, opt)


@every_optimizer
def test_a_group_of_empty_parameters_only_is_harmless(name: str) -> None:
    empties = [P(0, 4), P(0)]
    opt = make(name, empties)
    run(opt, empties, range(2))
    fresh = make(name, twin(empties))
    fresh.load_state_dict(save_load(opt.state_dict()))


# Strides

LAYOUTS: dict[str, Any] = {
    "channels_last": lambda: P(3, 2, 4, 4, dtype=torch.double).detach().to(memory_format=torch.channels_last),
    "channels_last_3d": lambda: P(3, 2, 2, 4, 4, dtype=torch.double).detach().to(memory_format=torch.channels_last_3d),
    "transposed": lambda: P(5, 4, dtype=torch.double).detach().t(),
    "sliced": lambda: P(8, 8, dtype=torch.double).detach()[::2],
}
GRADIENTS: dict[str, Any] = {
    "like_the_weight": lambda g, p: torch.empty_like(p).copy_(g),
    "contiguous": lambda g, p: g,
    "reversed_strides": lambda g, p: g.permute(*reversed(range(g.ndim))).contiguous().permute(*reversed(range(g.ndim))),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@every_optimizer
def test_strides_do_not_change_the_result(name: str, layout: str) -> None:
    for kind, arrange in GRADIENTS.items():
        p = Parameter(LAYOUTS[layout]())
        strides = p.stride()
        q = Parameter(p.detach().clone(memory_format=torch.contiguous_format))
        assert q.stride() != strides
        opt, plain = make(name, [p]), make(name, [q])
        for seed in range(2):
            (g,) = random_grads([q], seed)
            take_step(opt, [p], [arrange(g, p)])
            take_step(plain, [q], [g])
        assert p.stride() == strides, kind
        assert_close([p], [q], 1e-8, f"{kind} gradient: parameter")


@every_optimizer
def test_an_expanded_gradient_is_as_good_as_a_full_one(name: str) -> None:
    params = params_of([(4, 3), (5,)])
    copies = twin(params)
    opt, plain = make(name, params), make(name, copies)
    for seed in range(2):
        rows = [torch.randn(p.shape[1:], generator=torch.Generator().manual_seed(seed)) for p in params]
        for p, q, row in zip(params, copies, rows, strict=True):
            p.grad = row.expand_as(p)
            q.grad = row.expand_as(p).contiguous()
        if opt.needs_closure or opt.needs_create_graph:
            take_step(opt, params, [p.grad for p in params])
            take_step(plain, copies, [q.grad for q in copies])
        else:
            opt.step()
            plain.step()
    assert_close(params, copies, 1e-6)


# Complex and sparse


@every_optimizer
def test_complex_parameters_train_as_their_real_view_or_are_refused(name: str) -> None:
    p = P(4, 4, dtype=torch.complex64)
    if not zoo.optimizer_class(name).supports_complex:
        with pytest.raises(ValueError, match="complex"):
            make(name, [P(2), p])
        return
    q = Parameter(torch.view_as_real(p.detach()).clone())
    opt, real = make(name, [p]), make(name, [q])
    for seed in range(4):
        (g,) = random_grads([p], seed)
        take_step(opt, [p], [g])
        take_step(real, [q], [torch.view_as_real(g)])
    assert_close([torch.view_as_real(p.detach())], [q], 1e-6)


def embedding(coalesced: bool = True, factor: float = 1.0) -> nn.Embedding:
    """Six rows of which 1 and 4 have a sparse gradient."""
    layer = nn.Embedding(6, 3, sparse=True, _weight=P(6, 3).detach().clone())
    rows = torch.randn(3, 3, generator=torch.Generator().manual_seed(3)) * factor
    grad = torch.sparse_coo_tensor(torch.tensor([[1, 4, 1]]), rows, (6, 3), check_invariants=True)
    layer.weight.grad = grad.coalesce() if coalesced else grad
    return layer


@every_optimizer
def test_sparse_gradients_are_taken_or_refused_with_one_message(name: str) -> None:
    cls = zoo.optimizer_class(name)
    layer = embedding()
    opt = make(name, layer.named_parameters())
    before = values([layer.weight])
    if opt.needs_closure or opt.needs_create_graph:
        assert not cls.supports_sparse
    if not cls.supports_sparse:
        message = r"does not support sparse gradients \(parameter 'weight'\).*densify=True"
        with pytest.raises(RuntimeError, match=message):
            opt.step()
        assert_same([layer.weight], before)
        assert not opt.state
        return
    opt.step()
    other = embedding(coalesced=False)
    make(name, other.named_parameters()).step()
    assert_close([layer.weight], [other.weight], 1e-6)
    assert_finite([layer.weight])
    assert bool((layer.weight.detach() != before[0])[[1, 4]].any())


@every_optimizer
def test_densify_takes_sparse_gradients_as_dense_ones(name: str) -> None:
    layer, other = embedding(coalesced=False), embedding()
    other.weight.grad = other.weight.grad.to_dense()
    opt, plain = make(name, [layer.weight], densify=True), make(name, [other.weight])
    if opt.needs_closure or opt.needs_create_graph:
        pytest.skip("gradients with a graph, and closures, are dense")
    if zoo.optimizer_class(name).supports_sparse:
        pytest.skip("takes sparse gradients itself")
    opt.step()
    plain.step()
    assert_close([layer.weight], [other.weight], 1e-6)
    assert layer.weight.grad.is_sparse


# Late, frozen, without gradients


@every_optimizer
def test_a_group_added_in_mid_training_trains(name: str) -> None:
    params, late = params_of(), P(4, 3, seed=9)
    opt = make(name, params)
    run(opt, params, range(2))
    opt.add_param_group({"params": [late], "weight_decay": 0.03})
    assert opt.param_groups[1]["weight_decay"] == 0.03
    assert set(opt.param_groups[1]) == set(opt.param_groups[0])
    before = values([late])
    for seed in range(2, 5):
        run(opt, [*params, late], [seed])
        assert_finite([*params, late])
    assert not torch.equal(late, before[0])
    copies, late_copy = twin(params), twin([late])
    resumed = make(name, [{"params": copies}, {"params": late_copy, "weight_decay": 0.03}])
    resumed.load_state_dict(save_load(opt.state_dict()))
    run(opt, [*params, late], [5])
    run(resumed, [*copies, *late_copy], [5])
    assert_same([*copies, *late_copy], [*params, late])


@every_optimizer
def test_a_refused_group_leaves_the_optimizer_as_it_was(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, [0])
    for group, error in [
        ({"params": [P(2)], "lr": -1.0}, ValueError),
        ({"params": [P(2)], "weigth_decay": 0.1}, ValueError),
        ({"params": [params[0]]}, ValueError),
        ({"params": "abc"}, TypeError),
        ([P(2)], TypeError),
    ]:
        with pytest.raises(error):
            opt.add_param_group(group)
        assert own_params(opt) == params or [id(p) for p in own_params(opt)] == [id(p) for p in params]
        assert len(opt.param_groups) == 1
    run(opt, params, [1])


@every_optimizer
def test_every_option_can_be_overridden_in_a_group(name: str) -> None:
    cls = zoo.optimizer_config(name)
    opt = make(name, params_of())
    given = {field: opt.param_groups[0][field] for field in cls.model_fields}
    opt.add_param_group({"params": [P(2, 2, seed=5)], **given})
    assert {k: v for k, v in opt.param_groups[1].items() if k in given} == given


@every_optimizer
def test_a_parameter_without_gradient_is_not_touched(name: str) -> None:
    for options in ({}, {"cautious": True}, {"cautious_weight_decay": True}, {"low_precision": "kahan"}):
        params = params_of([(4, 3), (3,), (4, 3)])
        opt = make(name, params, weight_decay=0.1, **options)
        before = values(params)
        for seed in range(3):
            grads: list[Tensor | None] = [*random_grads(params[:2], seed), None]
            take_step(opt, params, grads)
        if hasattr(opt, "eval"):
            opt.eval()
            opt.train()
        assert_same(params[2:], before[2:], f"{options}: parameter")
        assert params[2] not in opt.state
        assert not torch.equal(params[0], before[0])


@every_optimizer
def test_a_frozen_parameter_does_not_drift(name: str) -> None:
    params = params_of([(4, 3), (3, 3)])
    opt = make(name, params, weight_decay=0.1)
    run(opt, params, [0])
    params[1].requires_grad_(False)
    before = values(params)
    opt.zero_grad(set_to_none=False)
    assert params[1].grad is not None
    for seed in (1, 2):
        take_step(opt, params, [*random_grads(params[:1], seed), torch.zeros(3, 3)])
    take_step(opt, params, [*random_grads(params[:1], 3), None])
    assert_same(params[1:], before[1:])
    assert not torch.equal(params[0], before[0])


@every_optimizer
def test_a_late_parameter_gets_its_own_bias_correction(name: str) -> None:
    early, late = params_of([(4, 3), (4, 3)])
    fresh = twin([late])
    opt, plain = make(name, [early, late]), make(name, fresh)
    cls = zoo.optimizer_class(name)
    for seed in range(20):
        take_step(opt, [early, late], [*random_grads([early], seed), None])
    before = values([late])
    one = torch.ones(4, 3)
    take_step(opt, [early, late], [one, one])
    take_step(plain, fresh, [one])
    if cls.granularity is zoo.Granularity.GLOBAL or name in SHARED_COUNT:
        # One estimate for all parameters is the algorithm: who comes late gets the present one.
        assert_finite([late])
        assert not torch.equal(late, before[0])
    else:
        assert_close(moves([late], before), moves(fresh, before), 1e-5, "move")


SHARED_COUNT: dict[str, str] = dict.fromkeys(
    zoo.list_optimizers(family="schedule_free"), "the averaging weights are of the group"
)
"""Optimizers where a late parameter joins a schedule of its group, and why; beside those with global rules."""


@every_optimizer
def test_a_step_without_any_gradient_does_nothing(name: str) -> None:
    params = params_of()
    opt = make(name, [{"params": params[:1]}, {"params": params[1:]}])
    before = values(params)
    take_step(opt, params, [None] * len(params))
    assert_same(params, before)
    assert not opt.state
    run(opt, params, range(3))
    saved, before = opt.state_dict(), values(params)
    saved = save_load(saved)
    opt.zero_grad()
    take_step(opt, params, [None] * len(params))
    assert_same(params, before)
    now = opt.state_dict()
    for index, state in saved["state"].items():
        for key, value in state.items():
            assert_same([now["state"][index][key]], [value], key)
    for group, old in zip(now["param_groups"], saved["param_groups"], strict=True):
        assert group == old
    for p in params[1:]:
        p.requires_grad_(False)
    take_step(opt, params, [*random_grads(params[:1], 4), *random_grads(params[1:], 5)])
    assert_same(params[1:], before[1:])
    assert not torch.equal(params[0], before[0])


@every_optimizer
def test_groups_without_gradients_do_not_hold_others_up(name: str) -> None:
    params, copies = params_of([(4, 3), (3, 3)]), params_of([(4, 3), (3, 3)])
    opt = make(name, [{"params": params[1:]}, {"params": params[:1]}])
    plain = make(name, copies[:1])
    for seed in range(3):
        grads = random_grads(params[:1], seed)
        take_step(opt, params, [*grads, None])
        take_step(plain, copies[:1], grads)
    assert_close(params, copies, 1e-6)


# Groups as the caller gave them


@every_optimizer
def test_the_callers_groups_are_not_modified(name: str) -> None:
    a, b = params_of([(3, 2), (2,)])
    groups = [{"params": [a]}, {"params": [b]}]
    make(name, groups, lr=1e-3)
    opt = make(name, groups, lr=0.1)
    assert [group["lr"] for group in opt.param_groups] == [0.1, 0.1]
    assert [list(group) for group in groups] == [["params"], ["params"]]
    kept = opt.param_groups[0]
    run(opt, [a, b], [0])
    assert opt.param_groups[0] is kept


@every_optimizer
def test_the_same_parameter_twice_is_refused(name: str) -> None:
    a = P(3, 2)
    with pytest.raises(ValueError, match=r"twice|more than one"):
        make(name, [a, a])
    with pytest.raises(ValueError, match=r"twice|more than one"):
        make(name, [{"params": [a]}, {"params": [a]}])


@every_optimizer
def test_tied_weights_of_a_model_are_trained_once(name: str) -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    opt = zoo.create_optimizer(name, model)
    assert [id(p) for p in own_params(opt)] == [id(model[0].weight)]
    assert opt.param_groups[0]["param_names"] == ["0.weight"]


@every_optimizer
def test_what_cannot_train_is_refused(name: str) -> None:
    with pytest.raises(TypeError):
        make(name, P(3))
    with pytest.raises(TypeError):
        make(name, ["weight"])
    with pytest.raises(ValueError, match="empty"):
        make(name, [])
    with pytest.raises(TypeError, match="int64"):
        make(name, [torch.zeros(3, dtype=torch.int64)])
    with pytest.raises(ValueError, match="non-leaf"):
        make(name, [P(3) * 2])
