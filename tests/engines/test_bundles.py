"""Small parameters share flat buffers; nobody who reads or writes their state can tell."""

from __future__ import annotations

import copy
import io

import pytest
import torch

import zoo

NAMES = ["adamw", "lion"]


def make(name: str, sizes: list[int], **options: object) -> tuple[list[torch.nn.Parameter], torch.optim.Optimizer]:
    torch.manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(size, 3)) for size in sizes]
    return params, zoo.create_optimizer(name, params, lr=1e-2, engine="blocked", **options)


def run(opt: torch.optim.Optimizer, steps: int, seed: int = 1) -> None:
    torch.manual_seed(seed)
    for _ in range(steps):
        for group in opt.param_groups:
            for p in group["params"]:
                p.grad = torch.randn_like(p)
        opt.step()


@pytest.mark.parametrize("name", NAMES)
def test_states_of_a_bundle_share_one_buffer(name: str) -> None:
    params, opt = make(name, [4, 5, 6])
    run(opt, 2)
    storages = {opt.state[p]["exp_avg"].untyped_storage().data_ptr() for p in params}
    assert len(storages) == 1
    assert [opt.state[p]["exp_avg"].shape for p in params] == [p.shape for p in params]


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_holds_its_own_elements_only(name: str) -> None:
    _params, opt = make(name, [4] * 200)
    run(opt, 1)
    buffer = io.BytesIO()
    torch.save(opt.state_dict()["state"][0], buffer)
    assert buffer.tell() < 4096


@pytest.mark.parametrize("name", NAMES)
def test_a_replaced_state_tensor_is_used_at_the_next_step(name: str) -> None:
    params, opt = make(name, [4, 5])
    others, twin = make(name, [4, 5])
    run(opt, 2)
    run(twin, 2)
    for p in params:
        opt.state[p]["exp_avg"] = torch.zeros_like(p)
    for p in others:
        twin.state[p]["exp_avg"].zero_()
    run(opt, 2, seed=2)
    run(twin, 2, seed=2)
    assert all(torch.equal(p, q) for p, q in zip(params, others, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_shares_nothing_with_its_original(name: str) -> None:
    _params, opt = make(name, [4, 5])
    run(opt, 2)
    twin = copy.deepcopy(opt)
    before = {i: {k: v.clone() for k, v in s.items()} for i, s in opt.state_dict()["state"].items()}
    run(twin, 3)
    after = opt.state_dict()["state"]
    assert all(torch.equal(before[i][k], after[i][k]) for i in before for k in before[i])


@pytest.mark.parametrize("name", NAMES)
def test_parameters_with_a_gradient_may_change_from_step_to_step(name: str) -> None:
    params, opt = make(name, [4, 5, 6, 7])
    others, twin = make(name, [4, 5, 6, 7])
    for group in twin.param_groups:
        group["engine"] = "loop"
    for active in ([0, 1, 2, 3], [1, 3], [0, 2], [0, 1, 2, 3], [2]):
        for current in (params, others):
            torch.manual_seed(len(active))
            for index, p in enumerate(current):
                p.grad = torch.randn_like(p) if index in active else None
        opt.step()
        twin.step()
    assert all(torch.equal(p, q) for p, q in zip(params, others, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_group_that_joins_later_is_bundled_too(name: str) -> None:
    _params, opt = make(name, [4, 5])
    run(opt, 2)
    late = torch.nn.Parameter(torch.ones(3))
    opt.add_param_group({"params": [late]})
    run(opt, 2)
    assert not torch.equal(late, torch.ones(3))
    assert len(opt.state) == 3
