"""Claims that hold for every helper that computes on tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from zoo import helpers

from .calls import CALLS, SHAPES, Call

EVERY = pytest.mark.parametrize("call", CALLS, ids=str)

# Not in the table of calls: made of numbers, lists, randomness or shapes only; each has its own tests.
ELSEWHERE = {
    "adam_debias",
    "debias",
    "debias_beta",
    "sma_length",
    "sma_length_limit",
    "rectify",
    "sqrt",
    "maximum",
    "minimum",
    "where",
    "as_like",
    "is_batched",
    "per_tensor",
    "foreach_rms",
    "foreach_rms_clip",
    "rademacher_like",
    "gaussian_like",
    "hutchinson_hessian",
    "assign_hessian",
    "detach_grads_",
    "stochastic_round_",
    "collect_trainable",
    "default_to_fused_or_foreach",
    "view_as_real",
    "helper_table",
    "is_factorable",
    "factored_zeros",
    "all_finite",
    "zero_scalar",
    "zeros_like",
    "scaled",
}


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def as_tensors(call: Call, dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: torch.tensor(value, dtype=dtype) for name, value in call.numbers.items()}


def shapes_of(call: Call) -> list[tuple[int, ...]]:
    return [shape for shape in SHAPES if len(shape) >= call.min_ndim]


def test_every_public_function_is_covered() -> None:
    functions = {name for name in helpers.__all__ if inspect.isfunction(getattr(helpers, name))}
    assert functions == {call.name.split("[")[0] for call in CALLS} | ELSEWHERE


def test_every_public_name_resolves_and_is_listed_once() -> None:
    assert len(set(helpers.__all__)) == len(helpers.__all__)
    assert all(hasattr(helpers, name) for name in helpers.__all__)


@EVERY
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_float_and_tensor_numbers_agree(call: Call, dtype: torch.dtype) -> None:
    for shape in shapes_of(call):
        with_floats = call(call.make(shape, dtype))
        with_tensors = call(call.make(shape, dtype), as_tensors(call, dtype))
        for a, b in zip(with_floats, with_tensors, strict=True):
            torch.testing.assert_close(a, b, msg=f"{call} with {shape}")


@EVERY
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("number_dtype", [None, torch.float64, torch.float32], ids=["float", "float64", "float32"])
def test_the_dtype_is_kept(call: Call, dtype: torch.dtype, number_dtype: torch.dtype | None) -> None:
    numbers = None if number_dtype is None else as_tensors(call, number_dtype)
    for shape in shapes_of(call):
        for result in call(call.make(shape, dtype), numbers):
            assert result.dtype in (dtype, torch.bool), shape


@EVERY
def test_zeros_give_finite_results(call: Call) -> None:
    for shape in shapes_of(call):
        for dtype in (torch.float32, torch.float16):
            for scale in (0.0, 1e-38):
                for result in call(call.make(shape, dtype, scale=scale)):
                    assert torch.isfinite(result).all(), (shape, dtype, scale)


# A bias correction is never zero.
@pytest.mark.parametrize(
    "call", [call for call in CALLS if call.name not in ("adam_denominator", "root_plus")], ids=str
)
def test_zero_numbers_give_finite_results(call: Call) -> None:
    numbers = dict.fromkeys(call.numbers, 0.0)
    for shape in shapes_of(call):
        for result in call(call.make(shape, torch.float32), numbers):
            assert torch.isfinite(result).all(), shape


@EVERY
def test_only_what_ends_in_an_underscore_changes_its_arguments(call: Call) -> None:
    assert bool(call.changes) == call.name.endswith("_") or call.name == "decay_fraction"
    for shape in shapes_of(call):
        tensors = call.make(shape, torch.float32)
        before = [tensor.clone() for tensor in tensors]
        call(tensors)
        for index, (old, new) in enumerate(zip(before, tensors, strict=True)):
            assert index in call.changes or torch.equal(old, new), (shape, index)


class NoSync(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Fails where a value is read from a tensor, which on an accelerator would wait for the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten._local_scalar_dense.default, "a value was read from a tensor"
        return func(*args, **(kwargs or {}))


def test_the_guard_against_syncs_sees_one() -> None:
    with pytest.raises(AssertionError, match="was read"), NoSync():  # type: ignore[no-untyped-call]
        torch.ones(()).item()
    with pytest.raises(AssertionError, match="was read"), NoSync():  # type: ignore[no-untyped-call]
        torch.ones(3).add_(torch.ones(3), alpha=torch.tensor(2.0))  # type: ignore[arg-type]


@EVERY
def test_no_value_is_read(call: Call) -> None:
    tensors, numbers = call.make((3, 4), torch.float32), as_tensors(call, torch.float32)
    with NoSync():  # type: ignore[no-untyped-call]
        call(tensors, numbers)


@EVERY
@pytest.mark.parametrize("kind", ["float", "tensor"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiles_as_one_graph(call: Call, kind: str, backend: str) -> None:
    numbers = as_tensors(call, torch.float64) if kind == "tensor" else dict(call.numbers)

    def run(tensors: list[Tensor], numbers: dict[str, Any]) -> list[Tensor]:
        return call(tensors, numbers)

    compiled = torch.compile(run, backend=backend, fullgraph=True, dynamic=True)
    for shape in [(3, 4), (6, 5)]:
        expected = call(call.make(shape, torch.float32))
        for a, b in zip(compiled(call.make(shape, torch.float32), numbers), expected, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("call", [call for call in CALLS if call.numbers], ids=str)
def test_new_numbers_in_tensors_do_not_recompile(call: Call) -> None:
    graphs: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda t, n: call(t, n), backend=backend, fullgraph=True, dynamic=True)
    for factor in (1.0, 0.9, 0.5):
        numbers = {name: torch.tensor(value * factor) for name, value in call.numbers.items()}
        compiled(call.make((3, 4), torch.float32), numbers)
    assert len(graphs) == 1


@EVERY
@pytest.mark.filterwarnings("error")
def test_vmap_over_a_stack_equals_a_loop(call: Call) -> None:
    for shape in [(3, 4), (5,), ()]:
        if len(shape) < call.min_ndim:
            continue
        singles = [call.make(shape, torch.float64, seed) for seed in range(3)]
        stacked = [torch.stack(parts) for parts in zip(*singles, strict=True)]
        results = torch.func.vmap(lambda *tensors: tuple(call(list(tensors))))(*stacked)
        for seed, single in enumerate(singles):
            for a, b in zip(results, call(single), strict=True):
                torch.testing.assert_close(a[seed], b)


@EVERY
def test_memory_order_does_not_matter(call: Call) -> None:
    plain = call.make((3, 4), torch.float64)
    odd = [t.t().contiguous().t() if t.ndim == 2 else t.clone() for t in plain]
    for a, b in zip(call(odd), call(plain), strict=True):
        torch.testing.assert_close(a, b)


class Tensors:
    """Stands for several tensors: torch functions run once a tensor."""

    def __init__(self, parts: list[Tensor]) -> None:
        self.parts = parts

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        count = next(len(a.parts) for a in (*args, *kwargs.values()) if isinstance(a, cls))

        def part(value: Any, i: int) -> Any:
            return value.parts[i] if isinstance(value, cls) else value

        results = [
            func(*(part(a, i) for a in args), **{k: part(v, i) for k, v in kwargs.items()}) for i in range(count)
        ]
        if isinstance(results[0], tuple):
            return tuple(cls(list(column)) for column in zip(*results, strict=True))
        return cls(results) if isinstance(results[0], Tensor) else results


@pytest.mark.parametrize("name", ["centralize", "rms", "unit_norm", "newton_schulz"])
def test_helpers_that_look_at_shapes_run_once_a_tensor_of_a_list(name: str) -> None:
    parts = [torch.randn(3, 4), torch.randn(5, 2)]
    function = getattr(helpers, name)
    for a, b in zip(function(Tensors(parts)).parts, [function(part) for part in parts], strict=True):
        assert torch.equal(a, b)


def test_helpers_with_several_results_run_once_a_tensor_of_a_list() -> None:
    parts = [torch.randn(3, 4), torch.randn(5)]
    listed: Any = Tensors(parts)
    updates, ratios = helpers.project_scale_invariant(listed, listed, listed)
    for i, part in enumerate(parts):
        update, ratio = helpers.project_scale_invariant(part, part, part)
        assert torch.equal(updates.parts[i], update) and torch.equal(ratios.parts[i], ratio)  # type: ignore[attr-defined]


def test_the_table_has_a_line_for_every_function() -> None:
    rows = list(helpers.helper_table())
    functions = [name for name in sorted(helpers.__all__) if inspect.isfunction(getattr(helpers, name))]
    assert [row.name for row in rows] == functions
    for row in rows:
        assert row.signature.startswith(f"{row.name}(") and " -> " in row.signature
        assert "'Tensor'" not in row.signature
        assert row.summary and "\n" not in row.summary
    assert {r.name: r.signature for r in rows}["rms"] == "rms(x: Tensor) -> Tensor"
