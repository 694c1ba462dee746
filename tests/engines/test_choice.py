"""Which engine runs, and how it is chosen."""

from __future__ import annotations

import pytest
import torch

import zoo
from zoo.capabilities import capabilities_of
from zoo.engines import default_engine, set_default_engine


def engine_of(**options: object) -> str:
    leaf = torch.nn.Parameter(torch.ones(4))
    # A differentiable step changes tensors that are part of a graph, as in torch.
    opt = zoo.create_optimizer("adamw", [leaf.clone() if options.get("differentiable") else leaf], **options)
    return used_engine(opt)


def used_engine(opt: torch.optim.Optimizer) -> str:
    for group in opt.param_groups:
        for p in group["params"]:
            p.grad = torch.ones(4)
    opt.step()
    (plan,) = opt._engines.plans.values()  # type: ignore[attr-defined]
    return str(plan.batches[0].engine.name)


@pytest.fixture(autouse=True)
def _leave_no_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ZOO_ENGINE", raising=False)
    yield
    set_default_engine(None)


def test_auto_takes_torchs_kernel_where_it_is_exactly_the_rule() -> None:
    assert engine_of() == "fused"
    assert engine_of(amsgrad=True) == "fused"
    assert engine_of(cautious=True) == "blocked"
    assert engine_of(cautious="plain") == "blocked"
    assert engine_of(adamd=True) == "blocked"
    assert engine_of(decay_mode="independent", decoupled_weight_decay=False) == "blocked"


def test_auto_takes_blocks_for_elementwise_rules_on_the_cpu() -> None:
    assert used_engine(zoo.create_optimizer("lion", [torch.nn.Parameter(torch.ones(4))])) == "blocked"


def test_the_groups_choice_wins_then_flags_then_the_programs_then_the_environments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ZOO_ENGINE", "blocked")
    assert engine_of() == "blocked"
    set_default_engine("loop")
    assert engine_of() == "loop"
    assert engine_of(foreach=True) == "foreach"
    assert engine_of(fused=True) == "fused"
    assert engine_of(engine="blocked", foreach=True) == "blocked"


def test_differentiable_runs_the_loop_and_refuses_others() -> None:
    assert engine_of(differentiable=True) == "loop"
    with pytest.raises(ValueError, match="not differentiable"):
        engine_of(differentiable=True, engine="blocked")
    with pytest.raises(RuntimeError, match="does not support `differentiable`"):
        engine_of(differentiable=True, fused=True)


def test_an_unknown_engine_is_named_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="unknown engine 'warp'"):
        set_default_engine("warp")  # type: ignore[arg-type]
    monkeypatch.setenv("ZOO_ENGINE", "warp")
    with pytest.raises(ValueError, match="ZOO_ENGINE='warp'"):
        default_engine()


@pytest.mark.parametrize("name", zoo.list_optimizers())
def test_capturable_keeps_the_count_on_the_device_and_reads_nothing_back(name: str) -> None:
    """On meta tensors any read of a value raises: a step that runs there can be captured."""
    if not capabilities_of(zoo.optimizer_class(name)).capturable:
        pytest.skip(f"{name} declares that it can't be captured")
    params = [torch.nn.Parameter(torch.ones(4, 3, device="meta")), torch.nn.Parameter(torch.ones(3, device="meta"))]
    # The loop: torch's meta version of _foreach_mul reads a scalar that its device kernels do not.
    opt = zoo.create_optimizer(name, params, capturable=True, engine="loop")
    for _ in range(2):
        for p in params:
            p.grad = torch.ones_like(p)
        opt.step()
    for state in opt.state.values():
        assert all(tensor.is_meta for tensor in state.values())
