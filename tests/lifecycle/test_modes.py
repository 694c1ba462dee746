"""Optimizers with a training and an evaluation mode: the weights kept are the weights meant, in any order of calls."""

from __future__ import annotations

import copy

import pytest
import torch

import zoo

from .common import (
    NAMES,
    P,
    assert_close,
    assert_same,
    every_optimizer,
    make,
    own_params,
    params_of,
    run,
    save_load,
    twin,
    values,
)

WITH_MODES = zoo.list_optimizers(tag="modes")
every_one_with_modes = pytest.mark.parametrize("name", WITH_MODES)


@every_optimizer
def test_tags_tell_what_the_class_needs(name: str) -> None:
    cls, tags = zoo.optimizer_class(name), zoo.optimizer_spec(name).tags
    assert ("modes" in tags) == (hasattr(cls, "train") and hasattr(cls, "eval"))
    assert ("create-graph" in tags) == cls.needs_create_graph
    assert ("closure" in tags) == cls.needs_closure
    granularities = {str(g.name).lower() for g in zoo.Granularity}
    assert tags & granularities == {str(cls.granularity.name).lower()}


def test_some_have_modes() -> None:
    assert WITH_MODES
    assert set(WITH_MODES) < set(NAMES)


@every_one_with_modes
def test_switching_twice_is_switching_once_and_back_is_exact(name: str) -> None:
    params = params_of(dtype=torch.float64)
    opt = make(name, params)
    run(opt, params, range(4))
    trained = values(params)
    opt.eval()
    averaged = values(params)
    assert any(not torch.equal(p, q) for p, q in zip(averaged, trained, strict=True))
    opt.eval()
    assert_same(params, averaged)
    opt.train()
    assert_close(params, trained, 1e-14)
    opt.train()
    assert_close(params, trained, 1e-14)
    with opt.averaged():
        assert_close(params, averaged, 1e-14)
    assert_close(params, trained, 1e-14)


@every_one_with_modes
def test_a_step_in_eval_mode_is_an_error_that_says_what_to_call(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(2))
    opt.eval()
    before, saved = values(params), copy.deepcopy(opt.state_dict())
    with pytest.raises(RuntimeError, match=r"opt\.train\(\)"):
        run(opt, params, [2])
    assert_same(params, before)
    assert opt.state_dict()["param_groups"] == saved["param_groups"]
    opt.train()
    run(opt, params, [2])


@pytest.mark.parametrize("mode", ["train", "eval"])
@every_one_with_modes
def test_a_checkpoint_of_either_mode_continues(name: str, mode: str) -> None:
    params = params_of(dtype=torch.float64)
    opt = make(name, params)
    run(opt, params, range(3))
    getattr(opt, mode)()
    copies = twin(params)
    resumed = make(name, copies)
    resumed.load_state_dict(save_load(opt.state_dict()))
    assert_same(copies, params)
    for each in (opt, resumed):
        each.eval()
    assert_close(copies, params, 1e-14)
    for each in (opt, resumed):
        each.train()
    run(opt, params, range(3, 5))
    run(resumed, copies, range(3, 5))
    assert_close(copies, params, 1e-13)


@every_one_with_modes
def test_a_copy_in_eval_mode_is_in_eval_mode(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    run(opt, params, range(3))
    opt.eval()
    duplicate = copy.deepcopy(opt)
    copies = own_params(duplicate)
    duplicate.eval()
    assert_same(copies, params)
    for each in (opt, duplicate):
        each.train()
    run(opt, params, [3])
    run(duplicate, copies, [3])
    assert_same(copies, params)


@pytest.mark.parametrize("mode", ["train", "eval"])
@every_one_with_modes
def test_a_group_added_later_is_in_the_mode_of_the_others(name: str, mode: str) -> None:
    params, late = params_of(), [P(3, 3, seed=7)]
    opt = make(name, params)
    run(opt, params, range(3))
    getattr(opt, mode)()
    opt.add_param_group({"params": late})
    start = values(late)
    opt.eval()
    opt.train()
    assert_same(late, start)
    run(opt, [*params, *late], [3, 4])
    assert not torch.equal(late[0], start[0])


@every_one_with_modes
def test_parameters_without_state_are_the_same_in_both_modes(name: str) -> None:
    params = params_of()
    opt = make(name, params)
    before = values(params)
    opt.eval()
    assert_same(params, before)
    opt.train()
    assert_same(params, before)
