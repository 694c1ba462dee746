"""Checkpoints and copies: whatever way an optimizer's state takes, training goes on as if nothing had happened."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

import zoo

from .common import (
    ENGINES,
    P,
    assert_close,
    assert_same,
    assert_same_state,
    every_optimizer,
    group_values,
    has_option,
    make,
    own_params,
    params_of,
    random_grads,
    run,
    save_load,
    take_step,
    twin,
    values,
)

PRECISIONS: dict[str, tuple[torch.dtype, dict[str, Any]]] = {
    "float32": (torch.float32, {}),
    "float64": (torch.float64, {}),
    "bfloat16": (torch.bfloat16, {}),
    "bfloat16-float32_state": (torch.bfloat16, {"state_dtype": "float32"}),
    "float32-bfloat16_state": (torch.float32, {"state_dtype": "bfloat16"}),
    "bfloat16-kahan": (torch.bfloat16, {"low_precision": "kahan"}),
    "bfloat16-stochastic": (torch.bfloat16, {"low_precision": "stochastic"}),
}


class Model(nn.Module):
    """Two layers of the same kind, so that one can be left without gradients."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 3)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.randn(p.shape, generator=generator))


def step_layer(opt: Any, model: Model, layers: tuple[str, ...], seed: int) -> None:
    """A step in which only these layers have gradients."""
    named = list(model.named_parameters())
    grads = random_grads([p for _, p in named], seed)
    take_step(
        opt,
        [p for _, p in named],
        [g if name.partition(".")[0] in layers else None for (name, _), g in zip(named, grads, strict=True)],
    )


@pytest.mark.parametrize("precision", PRECISIONS)
@every_optimizer
def test_state_dict_round_trip_is_bit_exact(name: str, precision: str) -> None:
    dtype, options = PRECISIONS[precision]
    params = params_of(dtype=dtype)
    opt = make(name, params, **options)
    run(opt, params, range(3))
    copies = twin(params)
    resumed = make(name, copies, **options)
    resumed.load_state_dict(save_load(opt.state_dict()))
    assert_same_state(resumed, opt)
    run(opt, params, range(3, 6))
    run(resumed, copies, range(3, 6))
    assert_same(copies, params)
    assert_same_state(resumed, opt)


@every_optimizer
def test_resume_is_exact_after_any_number_of_steps(name: str) -> None:
    params = params_of([(3, 2), (2,)])
    opt = make(name, params)
    for seed in range(7):
        copies = twin(params)
        resumed = make(name, copies)
        resumed.load_state_dict(opt.state_dict())
        run(opt, params, [seed])
        run(resumed, copies, [seed])
        assert_same(copies, params, f"after {seed} steps: parameter")


@every_optimizer
def test_resume_is_exact_with_several_groups(name: str) -> None:
    def groups(ps: list[nn.Parameter]) -> list[dict[str, Any]]:
        return [{"params": ps[:1], "weight_decay": 0.05}, {"params": ps[1:]}]

    params = params_of()
    opt = make(name, groups(params))
    run(opt, params, range(5))
    copies = twin(params)
    resumed = make(name, groups(copies))
    resumed.load_state_dict(save_load(opt.state_dict()))
    run(opt, params, range(5, 8))
    run(resumed, copies, range(5, 8))
    assert_same(copies, params)
    assert_same_state(resumed, opt)


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
@every_optimizer
def test_a_copy_continues_as_the_original(name: str, way: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    opt.register_step_post_hook(_do_nothing)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    duplicate = copy.deepcopy(opt) if way == "deepcopy" else pickle.loads(pickle.dumps(opt))
    copies = own_params(duplicate)
    assert all(p is not q for p, q in zip(params, copies, strict=True))
    run(opt, params, range(2, 5))
    run(duplicate, copies, range(2, 5))
    assert_same(copies, params)
    assert scheduler.optimizer is opt


def _do_nothing(*_: Any) -> None:
    return None


@every_optimizer
def test_checkpoint_before_the_first_step_loads_as_fresh(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    copies = twin(params)
    resumed = make(name, copies)
    resumed.load_state_dict(save_load(opt.state_dict()))
    run(opt, params, range(2))
    run(resumed, copies, range(2))
    assert_same(copies, params)


@every_optimizer
def test_loaded_state_is_not_shared(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    held = opt.state_dict()
    before = copy.deepcopy(held)
    other_params = twin(params)
    other = make(name, other_params)
    other.load_state_dict(held)
    run(other, other_params, range(2, 4))
    now = opt.state_dict()
    for index, state in before["state"].items():
        for key, value in state.items():
            assert_same([now["state"][index][key]], [value], key)


@every_optimizer
def test_state_dict_rolls_back_after_a_copy(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    saved, at = copy.deepcopy(opt.state_dict()), values(params)
    run(opt, params, range(2, 4))
    expected = values(params)
    opt.load_state_dict(saved)
    with torch.no_grad():
        for p, old in zip(params, at, strict=True):
            p.copy_(old)
    run(opt, params, range(2, 4))
    assert_same(params, expected)


@every_optimizer
def test_assign_takes_the_saved_tensors_themselves(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    saved = save_load(opt.state_dict())
    copies = twin(params)
    resumed = make(name, copies)
    resumed.load_state_dict(saved, assign=True)
    for index, p in enumerate(copies):
        for key, value in resumed.state[p].items():
            if key != "step":
                assert value.data_ptr() == saved["state"][index][key].data_ptr(), key
    run(opt, params, [2, 3])
    run(resumed, copies, [2, 3])
    assert_same(copies, params)


ESTIMATING = zoo.list_optimizers(tag="parameter-free")


@pytest.mark.parametrize("way", ["state_dict", "deepcopy", "pickle"])
@pytest.mark.parametrize("name", ESTIMATING)
def test_a_grown_estimate_survives(name: str, way: str) -> None:
    def groups(ps: list[nn.Parameter]) -> list[dict[str, Any]]:
        return [{"params": ps[:1]}, {"params": ps[1:]}]

    def towards_zero(o: Any, ps: list[nn.Parameter], steps: int) -> list[float]:
        """How far each step went."""
        distances = []
        for _ in range(steps):
            before = values(ps)
            take_step(o, ps, before)
            moved = [(p.detach() - q).norm() for p, q in zip(ps, before, strict=True)]
            distances.append(float(torch.stack(moved).norm()))
        return distances

    params = params_of([(4, 3), (3,)])
    opt = make(name, groups(params))
    first, *later = towards_zero(opt, params, 41)
    assert max(later) > 10 * first  # the estimate has grown
    if way == "state_dict":
        copies = twin(params)
        resumed = make(name, groups(copies))
        resumed.load_state_dict(save_load(opt.state_dict()))
    else:
        resumed = copy.deepcopy(opt) if way == "deepcopy" else pickle.loads(pickle.dumps(opt))
        copies = own_params(resumed)
    assert_same_state(resumed, opt)
    towards_zero(opt, params, 5)
    towards_zero(resumed, copies, 5)
    assert_same(copies, params)
    assert_same_state(resumed, opt)


STEP_FORMS = {
    "int": int,
    "float": float,
    "int64": lambda step: step.to(torch.int64),
    "float64": lambda step: step.double(),
    "one_element": lambda step: step.reshape(1).clone(),
}


@pytest.mark.parametrize("form", STEP_FORMS)
@every_optimizer
def test_any_saved_form_of_the_step_count_loads(name: str, form: str) -> None:
    params = params_of()
    opt = make(name, params, engine="loop")
    run(opt, params, range(3))
    saved = save_load(opt.state_dict())
    if not any("step" in state for state in saved["state"].values()):
        assert not any("step" in state for state in opt.state.values())
    for state in saved["state"].values():
        if "step" in state:
            state["step"] = STEP_FORMS[form](state["step"])
    start = values(params)
    run(opt, params, [3])
    for engine in ENGINES:
        copies = twin(start)
        resumed = make(name, copies, engine=engine)
        resumed.load_state_dict(saved, hyperparams="keep")
        assert {g["engine"] for g in resumed.param_groups} == {engine}
        run(resumed, copies, [3])
        assert_close(copies, params)
        for state in resumed.state.values():
            if "step" in state:
                assert state["step"].dtype is torch.float32
                assert state["step"].shape == ()
                assert state["step"] == 4


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16], ids=str)
@every_optimizer
def test_the_default_dtype_does_not_reach_the_state(name: str, default: torch.dtype, default_dtype: Any) -> None:
    params, copies = params_of(), params_of()
    run(make(name, copies), copies, range(2))
    default_dtype(default)
    opt = make(name, params)
    run(opt, params, range(2))
    for state in opt.state.values():
        for key, value in state.items():
            if value.is_floating_point():
                assert value.dtype is torch.float32, key
    assert_close(params, copies, 1e-6)


@pytest.fixture
def default_dtype() -> Iterator[Any]:
    before = torch.get_default_dtype()
    yield torch.set_default_dtype
    torch.set_default_dtype(before)


@every_optimizer
def test_a_large_step_count_is_kept_and_harmless(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    for count in (2**24 - 2, 2**24 + 2):
        saved = opt.state_dict()
        for state in saved["state"].values():
            if "step" in state:
                state["step"] = torch.tensor(float(count))
        opt.load_state_dict(saved)
        run(opt, params, [2])
        for p in params:
            assert bool(torch.isfinite(p).all())
            if "step" in opt.state[p]:
                assert opt.state[p]["step"] >= count
                assert opt.state[p]["step"] == count + 1 or count > 2**24


@every_optimizer
def test_named_parameters_find_their_state_by_name(name: str) -> None:
    params = {"a": P(3, 3, seed=1), "b": P(3, 3, seed=2)}
    opt = make(name, list(params.items()))
    run(opt, list(params.values()), range(3))
    copies = dict(zip("ba", twin([params["b"], params["a"]]), strict=True))
    resumed = make(name, list(copies.items()))
    resumed.load_state_dict(save_load(opt.state_dict()))
    for key in "ab":
        for slot, value in opt.state[params[key]].items():
            assert_same([resumed.state[copies[key]][slot]], [value], f"{key}.{slot}")
    grads = dict(zip("ab", random_grads(list(params.values()), 7), strict=True))
    take_step(opt, list(params.values()), list(grads.values()))
    take_step(resumed, list(copies.values()), [grads[key] for key in copies])
    assert_close([copies["a"], copies["b"]], [params["a"], params["b"]])


@every_optimizer
def test_names_that_differ_are_reported(name: str) -> None:
    params = params_of([(3,), (3,)])
    opt = make(name, list(zip(["a", "b"], params, strict=True)))
    run(opt, params, range(2))
    copies = twin(params)
    resumed = make(name, list(zip(["a", "c"], copies, strict=True)))
    with pytest.raises(ValueError, match=r"'c'.*'b'"):
        resumed.load_state_dict(opt.state_dict())
    assert not resumed.state
    resumed.load_state_dict(opt.state_dict(), strict=False)
    run(resumed, copies, [2])


@every_optimizer
def test_state_of_another_shape_is_refused_and_named(name: str) -> None:
    params = params_of([(4, 3), (5,)])
    opt = make(name, params)
    run(opt, params, range(2))
    others = params_of([(5,), (4, 3)])
    other = make(name, others)
    saved = opt.state_dict()
    if not any(value.ndim for state in saved["state"].values() for value in state.values()):
        other.load_state_dict(saved)  # nothing has a shape
        return
    with pytest.raises(ValueError, match=r"state '\w+' of parameter #\d has shape .* needs"):
        other.load_state_dict(saved)
    assert not other.state


@every_optimizer
def test_wrong_groups_or_sizes_leave_the_optimizer_unchanged(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    before = copy.deepcopy(opt)
    groups = [{"params": [p]} for p in params_of()]
    with pytest.raises(ValueError, match="different number of parameter groups"):
        opt.load_state_dict(make(name, groups).state_dict())
    with pytest.raises(ValueError, match="doesn't match the size"):
        opt.load_state_dict(make(name, params_of([(3,)])).state_dict())
    assert_same_state(opt, before)


@every_optimizer
def test_saved_hyperparameters_load_with_a_warning_or_ours_are_kept(name: str) -> None:
    params = params_of()
    opt = make(name, params, lr=1e-3, weight_decay=0.1)
    run(opt, params, [0])
    saved = opt.state_dict()
    loaded = make(name, twin(params), lr=5e-4, weight_decay=0.0)
    with pytest.warns(UserWarning, match=r"lr: 0.0005 -> 0.001.*weight_decay: 0.0 -> 0.1"):
        loaded.load_state_dict(saved)
    assert (loaded.param_groups[0]["lr"], loaded.param_groups[0]["weight_decay"]) == (1e-3, 0.1)
    kept = make(name, twin(params), lr=5e-4, weight_decay=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.load_state_dict(saved, hyperparams="keep")
    assert (kept.param_groups[0]["lr"], kept.param_groups[0]["weight_decay"]) == (5e-4, 0.0)
    with pytest.raises(ValueError, match="hyperparams"):
        kept.load_state_dict(saved, hyperparams="mine")


@every_optimizer
def test_another_optimizers_checkpoint_is_refused(name: str) -> None:
    params = params_of()
    other = make("sgd" if name != "sgd" else "lion", params, **({"momentum": 0.9} if name != "sgd" else {}))
    run(other, params, range(2))
    copies = twin(params)
    opt = make(name, copies)
    with pytest.raises(ValueError, match=type(other).__name__.lower()):
        opt.load_state_dict(other.state_dict())
    assert not opt.state
    fresh_params = twin(params)
    fresh = make(name, fresh_params)
    opt.load_state_dict(other.state_dict(), strict=False, hyperparams="keep")
    run(opt, copies, range(2))
    run(fresh, fresh_params, range(2))
    slots = {slot for state in fresh.state.values() for slot in state}
    if not slots & {slot for state in other.state.values() for slot in state}:
        assert_same(copies, fresh_params)
    assert {slot for state in opt.state.values() for slot in state} == slots


@every_optimizer
def test_old_checkpoints_without_newer_options_load(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    saved = opt.state_dict()
    copies = twin(params)
    resumed = make(name, copies)
    for option in zoo.optimizer_config(name).model_fields:
        older = copy.copy(saved)
        older["param_groups"] = [{k: v for k, v in g.items() if k != option} for g in saved["param_groups"]]
        resumed.load_state_dict(older)
        assert group_values(resumed) == group_values(opt), option
    fields = set(zoo.optimizer_config(name).model_fields) | {"optimizer"}
    oldest = {**saved, "param_groups": [{k: v for k, v in g.items() if k not in fields} for g in saved["param_groups"]]}
    oldest["param_groups"][0]["unheard_of"] = (1, None)
    resumed.load_state_dict(oldest)
    assert resumed.param_groups[0]["unheard_of"] == (1, None)
    run(opt, params, [2])
    run(resumed, copies, [2])
    assert_same(copies, params)
    assert resumed.state_dict()["param_groups"][0]["unheard_of"] == (1, None)


@every_optimizer
def test_state_and_groups_hold_builtins_and_tensors_only(name: str) -> None:
    params = [P(2, 2)]
    options: dict[str, Any] = {"betas": _Betas([0.5, 0.5])} if _two_betas(name) else {}
    opt = make(name, params, **options)
    run(opt, params, [0])
    for state in opt.state_dict()["state"].values():
        for key, value in state.items():
            assert type(value) is Tensor, f"{key}: {type(value)}"
    for group in opt.state_dict()["param_groups"]:
        for key, value in group.items():
            assert _is_builtin(value), f"{key}: {value!r}"
    if options:
        assert opt.param_groups[0]["betas"] == (0.5, 0.5)
    buffer = io.BytesIO()
    torch.save(opt.state_dict(), buffer)
    assert buffer.tell() < 10_000
    buffer.seek(0)
    torch.load(buffer, weights_only=True)


class _Betas(list):  # type: ignore[type-arg]
    """A list with a parent, as configuration libraries have them."""

    parent: Any = object()


def _two_betas(name: str) -> bool:
    return has_option(name, "betas") and len(zoo.optimizer_config(name).model_fields["betas"].default) == 2


def _is_builtin(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_builtin, value))
    return value is None or type(value) in (bool, int, float, str, Tensor)


# torch.distributed.checkpoint's helpers


@every_optimizer
def test_asking_for_distributed_state_before_training_changes_nothing(name: str) -> None:
    model, untouched = Model(), Model()
    opt, plain = make(name, model.parameters()), make(name, untouched.parameters())
    before = values(model.parameters())
    get_optimizer_state_dict(model, opt)
    assert_same(model.parameters(), before)
    assert all(p.grad is None for p in model.parameters())
    for seed in range(3):
        step_layer(opt, model, ("first", "second"), seed)
        step_layer(plain, untouched, ("first", "second"), seed)
    assert_same(model.parameters(), untouched.parameters())


@every_optimizer
def test_materialized_state_is_what_a_first_step_would_make(name: str) -> None:
    params, copies = params_of(), params_of()
    opt, plain = make(name, params), make(name, copies)
    opt.materialize_state()
    assert_same(params, copies)
    run(opt, params, range(2))
    run(plain, copies, range(2))
    assert_same(params, copies)
    assert_same_state(opt, plain)


@every_optimizer
def test_state_made_early_does_not_remember_the_lr_of_that_time(name: str) -> None:
    params, copies = params_of(), params_of()
    opt, plain = make(name, params, lr=0.5), make(name, copies, lr=0.5)
    opt.materialize_state()
    for each in (opt, plain):
        each.param_groups[0]["lr"] = 0.125
    run(opt, params, range(2))
    run(plain, copies, range(2))
    assert_same(params, copies)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
@pytest.mark.parametrize("flatten", [False, True], ids=["nested", "flattened"])
@every_optimizer
def test_distributed_checkpoint_of_partly_trained_parameters_loads(name: str, flatten: bool, strict: bool) -> None:
    options = StateDictOptions(flatten_optimizer_state_dict=flatten, strict=strict)
    model = Model()
    opt = make(name, model.parameters())
    for seed in range(2):
        step_layer(opt, model, ("first",), seed)
    saved = save_load(get_optimizer_state_dict(model, opt, options=options), weights_only=False)
    loaded = Model()
    loaded.load_state_dict(model.state_dict())
    resumed = make(name, loaded.parameters())
    set_optimizer_state_dict(loaded, resumed, saved, options=options)
    for seed in range(2, 4):
        step_layer(opt, model, ("first", "second"), seed)
        step_layer(resumed, loaded, ("first", "second"), seed)
    assert_same(loaded.parameters(), model.parameters())


@pytest.mark.parametrize("flatten", [False, True], ids=["nested", "flattened"])
@every_optimizer
def test_group_keys_survive_the_distributed_checkpoint(name: str, flatten: bool) -> None:
    options = StateDictOptions(flatten_optimizer_state_dict=flatten)

    def groups(model: Model) -> list[dict[str, Any]]:
        tags = {"parts": (1, None, True)}
        return [
            {"params": list(model.first.parameters()), "name": "first", "lr_mult": 0.5, "layer_id": 3, "tags": tags},
            {"params": list(model.second.parameters()), "name": "second", "lr_mult": 1, "layer_id": 4, "tags": None},
        ]

    model, loaded = Model(), Model()
    opt, resumed = make(name, groups(model)), make(name, groups(loaded))
    step_layer(opt, model, ("first", "second"), 0)
    set_optimizer_state_dict(loaded, resumed, get_optimizer_state_dict(model, opt, options=options), options=options)
    assert group_values(resumed) == group_values(opt)
    assert_same_state(resumed, opt)


@every_optimizer
def test_an_empty_group_survives_the_distributed_checkpoint(name: str) -> None:
    def groups(model: Model) -> list[dict[str, Any]]:
        return [{"params": list(model.parameters())}, {"params": [], "name": "none yet"}]

    model, loaded = Model(), Model()
    opt, resumed = make(name, groups(model)), make(name, groups(loaded))
    step_layer(opt, model, ("first", "second"), 0)
    set_optimizer_state_dict(loaded, resumed, get_optimizer_state_dict(model, opt))
    assert group_values(resumed) == group_values(opt)
    loaded.load_state_dict(model.state_dict())
    step_layer(opt, model, ("first", "second"), 1)
    step_layer(resumed, loaded, ("first", "second"), 1)
    assert_same(loaded.parameters(), model.parameters())


@every_optimizer
def test_frozen_parameters_keep_their_state_through_a_checkpoint(name: str) -> None:
    model, loaded = Model(), Model()
    opt, resumed = make(name, model.parameters()), make(name, loaded.parameters())
    step_layer(opt, model, ("first", "second"), 0)
    for m in (model, loaded):
        m.second.requires_grad_(False)
    step_layer(opt, model, ("first",), 1)
    resumed.load_state_dict(save_load(opt.state_dict()))
    loaded.load_state_dict(model.state_dict())
    for m in (model, loaded):
        m.second.requires_grad_(True)
    step_layer(opt, model, ("first", "second"), 2)
    step_layer(resumed, loaded, ("first", "second"), 2)
    assert_same(loaded.parameters(), model.parameters())
    assert_same_state(resumed, opt)
