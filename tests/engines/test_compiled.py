"""The compiled engine: one kernel a rule, no recompilation by any schedule, and nothing lost when compiling fails."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch._dynamo.utils import counters

import zoo
from zoo.engines import compiled


def graphs() -> int:
    return int(counters["stats"]["unique_graphs"])


def fill(params: list[torch.nn.Parameter]) -> None:
    for p in params:
        p.grad = torch.randn_like(p)


def test_no_schedule_and_no_size_recompiles() -> None:
    torch.manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(n)) for n in (3, 70, 20000, 30000)]
    opt = zoo.create_optimizer("adamw", params, engine="compiled", lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.01, total_steps=25)
    fill(params)
    opt.step()
    before = graphs()
    for step in range(20):
        fill(params)
        opt.step()
        schedule.step()  # moves lr and beta1
        opt.param_groups[0]["weight_decay"] = 0.01 * (step + 1)
    late = [torch.nn.Parameter(torch.randn(20000 + 17 * n)) for n in range(40)]
    opt.add_param_group({"params": late})
    fill([*params, *late])
    opt.step()
    assert graphs() == before


def test_one_kernel_serves_every_optimizer_of_a_rule() -> None:
    first = [torch.nn.Parameter(torch.ones(50))]
    fill(first)
    zoo.create_optimizer("adamw", first, engine="compiled").step()
    before = graphs()
    second = [torch.nn.Parameter(torch.ones(20001))]
    fill(second)
    zoo.create_optimizer("adamw", second, engine="compiled", lr=0.5, betas=(0.5, 0.6)).step()
    assert graphs() == before


def test_without_a_compiler_the_blocks_run_and_one_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(*_: object, **__: object) -> None:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(torch, "compile", lambda *_, **__: no_compiler)
    compiled._kernel.cache_clear()
    torch.manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(n)) for n in (5, 20000)]
    others = [torch.nn.Parameter(p.detach().clone()) for p in params]
    opt = zoo.create_optimizer("lion", params, engine="compiled", lr=1e-2)
    twin = zoo.create_optimizer("lion", others, engine="blocked", lr=1e-2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            fill(params)
            for p, q in zip(params, others, strict=True):
                q.grad = p.grad
            opt.step()
            twin.step()
    compiled._kernel.cache_clear()
    assert [str(w.message) for w in caught if "compiled engine cannot compile" in str(w.message)] != []
    assert len([w for w in caught if "compiled engine" in str(w.message)]) == 1
    assert all(torch.equal(p, q) for p, q in zip(params, others, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", zoo.list_optimizers())
def test_compiled_equals_loop(name: str, dtype: torch.dtype) -> None:
    if zoo.optimizer_class(name).needs_create_graph:
        pytest.skip("its gradients need a graph; its update is compiled like any other")
    results = []
    for engine in ("loop", "compiled"):
        torch.manual_seed(0)
        params = [
            torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in ((6, 4), (5,), (3, 2, 2, 2), (130, 130))
        ]
        opt = zoo.create_optimizer(name, params, engine=engine, weight_decay=0.01)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="zoo: the compiled engine")  # falling back is no success
            for _ in range(6):
                fill(params)
                opt.step()
        results.append([p.detach().float() for p in params])
    tolerance = 2e-5 if dtype is torch.float32 else 2e-2
    for expected, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
