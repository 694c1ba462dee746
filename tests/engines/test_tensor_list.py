"""A list of tensors does what a loop over them does, in few calls, and says so when it cannot."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.helpers.calls import CALLS, Call
from zoo.engines.tensor_list import TensorList

SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (5,), (3, 4), (0, 4), (4, 4), (2, 3, 2, 2)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16]

Operation = Callable[..., Any]

PURE: dict[str, Operation] = {
    "add": lambda a, b, k, t: a + b,
    "add_number": lambda a, b, k, t: a + k,
    "radd": lambda a, b, k, t: k + a,
    "add_shared": lambda a, b, k, t: a + t,
    "shared_add": lambda a, b, k, t: t + a,
    "add_alpha": lambda a, b, k, t: torch.add(a, b, alpha=k),
    "add_shared_alpha": lambda a, b, k, t: a.add(t, alpha=k),
    "add_number_alpha": lambda a, b, k, t: a.add(2.0, alpha=k),
    "sub": lambda a, b, k, t: a - b,
    "sub_alpha": lambda a, b, k, t: a.sub(b, alpha=k),
    "sub_shared": lambda a, b, k, t: a - t,
    "shared_sub": lambda a, b, k, t: t - a,
    "rsub": lambda a, b, k, t: k - a,
    "rsub_function": lambda a, b, k, t: torch.rsub(a, b, alpha=2),
    "mul": lambda a, b, k, t: a * b,
    "mul_int": lambda a, b, k, t: a * 3,
    "mul_true": lambda a, b, k, t: a * True,
    "shared_mul": lambda a, b, k, t: t * a,
    "div": lambda a, b, k, t: a / b,
    "div_number": lambda a, b, k, t: a / k,
    "div_rounded": lambda a, b, k, t: torch.div(a, b, rounding_mode="floor"),
    "rdiv": lambda a, b, k, t: k / a,
    "shared_div": lambda a, b, k, t: t / a,
    "floordiv": lambda a, b, k, t: a // k,
    "remainder": lambda a, b, k, t: k % a,
    "pow_2": lambda a, b, k, t: a**2,
    "pow_half": lambda a, b, k, t: a**0.5,
    "pow_list": lambda a, b, k, t: torch.pow(a.abs(), b),
    "pow_shared": lambda a, b, k, t: a.pow(t),
    "rpow": lambda a, b, k, t: 2.0**a,
    "square": lambda a, b, k, t: a.square(),
    "neg": lambda a, b, k, t: -a,
    "abs": lambda a, b, k, t: abs(a),
    "sign": lambda a, b, k, t: torch.sign(a),
    "sqrt": lambda a, b, k, t: a.sqrt(),
    "rsqrt": lambda a, b, k, t: torch.rsqrt(a),
    "exp": lambda a, b, k, t: a.exp(),
    "tanh": lambda a, b, k, t: torch.tanh(a),
    "round": lambda a, b, k, t: a.round(),
    "round_decimals": lambda a, b, k, t: a.round(decimals=1),
    "lerp": lambda a, b, k, t: a.lerp(b, k),
    "lerp_shared": lambda a, b, k, t: a.lerp(b, t.to(a.dtype)),
    "lerp_list": lambda a, b, k, t: torch.lerp(a, b, b.sign()),
    "addcmul": lambda a, b, k, t: torch.addcmul(a, b, b, value=k),
    "addcmul_shared": lambda a, b, k, t: a.addcmul(b, t.to(a.dtype)),
    "addcdiv": lambda a, b, k, t: a.addcdiv(b, a, value=k),
    "addcdiv_tensor_value": lambda a, b, k, t: a.addcdiv(b, a, value=t),
    "clamp_min": lambda a, b, k, t: a.clamp(min=k),
    "clamp_both": lambda a, b, k, t: a.clamp(-0.5, max=k),
    "clamp_lists": lambda a, b, k, t: torch.clamp(a, min=b, max=b + 1),
    "clamp_max_list": lambda a, b, k, t: a.clamp(max=b),
    "clamp_min_shared": lambda a, b, k, t: a.clamp(min=t),
    "maximum": lambda a, b, k, t: torch.maximum(a, b),
    "minimum_shared": lambda a, b, k, t: torch.minimum(a, t),
    "shared_maximum": lambda a, b, k, t: torch.maximum(t, a),
    "where": lambda a, b, k, t: torch.where(a * b > 0, a, b),
    "where_number": lambda a, b, k, t: torch.where(a > b, a, k),
    "mask": lambda a, b, k, t: (a * b > 0).to(a.dtype),
    "compare": lambda a, b, k, t: a >= k,
    "equal": lambda a, b, k, t: a == b,
    "convert": lambda a, b, k, t: a.to(torch.float64),
    "convert_float": lambda a, b, k, t: a.float(),
    "norm": lambda a, b, k, t: a.norm(),
    "norm_zero": lambda a, b, k, t: a.norm(p=0),
    "norm_one": lambda a, b, k, t: torch.norm(a, 1),
    "norm_dim": lambda a, b, k, t: a.norm(dim=-1, keepdim=True),
    "vector_norm": lambda a, b, k, t: torch.linalg.vector_norm(a),
    "vector_norm_dtype": lambda a, b, k, t: torch.linalg.vector_norm(a, ord=3, dtype=torch.float64),
    "mean": lambda a, b, k, t: a.mean(),
    "mean_square_dim": lambda a, b, k, t: a.pow(2).mean(dim=-1, keepdim=True),
    "sum": lambda a, b, k, t: a.sum(),
    "max": lambda a, b, k, t: a.max(),
    "max_dim": lambda a, b, k, t: torch.max(a, 0),
    "max_two": lambda a, b, k, t: torch.max(a, b),
    "zeros_like": lambda a, b, k, t: torch.zeros_like(a),
    "clone": lambda a, b, k, t: a.clone(),
    "flat": lambda a, b, k, t: a.reshape(-1),
    "view": lambda a, b, k, t: a.view(a.shape),
    "transpose": lambda a, b, k, t: a.transpose(0, -1),
    "matmul": lambda a, b, k, t: a @ a.transpose(-1, -2),
    "mm": lambda a, b, k, t: torch.mm(a.t(), a),
    "qr": lambda a, b, k, t: torch.linalg.qr(a.double()),
    "index": lambda a, b, k, t: a[..., :1],
    "index_mask": lambda a, b, k, t: a[a > 0],
    "stack": lambda a, b, k, t: torch.stack([a, b.expand_as(a)]),
    "einsum": lambda a, b, k, t: torch.einsum("...i,...i->...", a, a),
    "isfinite": lambda a, b, k, t: torch.isfinite(a).all(),
    "ternary": lambda a, b, k, t: t * a / (b.abs().sqrt() / k).add_(1e-8),
}

IN_PLACE: dict[str, Operation] = {
    "add_": lambda a, b, k, t: a.add_(b),
    "add_alpha_": lambda a, b, k, t: a.add_(b, alpha=k),
    "add_shared_": lambda a, b, k, t: a.add_(t),
    "sub_": lambda a, b, k, t: a.sub_(b),
    "mul_": lambda a, b, k, t: a.mul_(k),
    "add_number_": lambda a, b, k, t: a.add_(k),
    "sub_number_": lambda a, b, k, t: a.sub_(k),
    "div_number_": lambda a, b, k, t: a.div_(k),
    "pow_number_": lambda a, b, k, t: a.abs_().pow_(k),
    "clamp_min_": lambda a, b, k, t: a.clamp_min_(k),
    "mul_self_": lambda a, b, k, t: a.mul_(a),
    "mul_shared_": lambda a, b, k, t: a.mul_(t),
    "div_": lambda a, b, k, t: a.div_(b),
    "pow_": lambda a, b, k, t: a.pow_(2),
    "square_": lambda a, b, k, t: a.square_(),
    "lerp_": lambda a, b, k, t: a.lerp_(b, k),
    "lerp_shared_": lambda a, b, k, t: a.lerp_(b, t.to(a.dtype)),
    "addcmul_": lambda a, b, k, t: a.mul_(0.9).addcmul_(b, b, value=k),
    "addcdiv_": lambda a, b, k, t: a.addcdiv_(b, b.abs() + 1, value=k),
    "clamp_": lambda a, b, k, t: a.clamp_(max=k, min=-0.5),
    "copy_": lambda a, b, k, t: a.copy_(b),
    "copy_shared_": lambda a, b, k, t: a.copy_(t),
    "zero_": lambda a, b, k, t: a.zero_(),
    "fill_": lambda a, b, k, t: a.fill_(k),
    "sign_": lambda a, b, k, t: a.sign_(),
    "sqrt_": lambda a, b, k, t: a.sqrt_(),
    "masked_fill_": lambda a, b, k, t: a.masked_fill_(a > 0, k),
    "maximum_out_first": lambda a, b, k, t: torch.maximum(a, b, out=a),
    "mul_out_second": lambda a, b, k, t: torch.mul(b, a, out=a),
    "sub_alpha_out": lambda a, b, k, t: torch.sub(a, b, alpha=2, out=a),
}

OPERATIONS = PURE | IN_PLACE
ASK_SHAPE = {"view"}
ASK_DTYPE = {"lerp_shared", "lerp_shared_", "addcmul_shared", "mask"}

Shapes = list[tuple[int, ...]]


def draw(shapes: Shapes, dtype: torch.dtype, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def held(x: Any) -> tuple[Tensor, ...]:
    """The tensors of a list, whose operations are typed as those of one tensor."""
    assert isinstance(x, TensorList)
    return x.tensors


def parts(value: Any) -> list[Any]:
    """What an operation returned, as a flat list of its tensors or lists."""
    return [part for item in value for part in parts(item)] if isinstance(value, tuple) else [value]


def assert_same(actual: Tensor, expected: Tensor) -> None:
    assert actual.stride() == expected.stride()
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def looped(operation: Operation, columns: list[list[Tensor]], *shared: Any) -> list[Any] | Exception:
    """The results of the operation, tensor by tensor, or what it raised."""
    try:
        return [operation(*row, *shared) for row in zip(*columns, strict=True)]
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return error


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the operators that torch dispatches."""
    counts: Counter[str] = Counter()

    class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            counts[func.overloadpacket.__name__] += 1
            return func(*args, **(kwargs or {}))

    with Mode():  # type: ignore[no-untyped-call]
        yield counts


@pytest.fixture(autouse=True)
def _as_in_a_step() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_a_loop_over_the_tensors(name: str, dtype: torch.dtype) -> None:
    shared = (0.9, torch.tensor(0.5, dtype=torch.float32))
    compared = 0
    mixes: list[Shapes] = [*([shape] * 2 for shape in SHAPES), [(3, 4), (5, 2)], [(2,), (2, 3, 2, 2)], SHAPES]
    for shapes in mixes:
        columns = [draw(shapes, dtype, seed) for seed in (0, 1)]
        twins = copy.deepcopy(columns)
        a, b = (TensorList(column) for column in twins)
        before = [t.clone() for t in twins[1]]
        expected = looped(OPERATIONS[name], columns, *shared)
        if isinstance(expected, Exception):
            with pytest.raises(type(expected)):
                OPERATIONS[name](a, b, *shared)
            continue
        if name in ASK_SHAPE and len(set(shapes)) > 1:
            with pytest.raises(ValueError, match="shape is not the same for all tensors"):
                OPERATIONS[name](a, b, *shared)
            continue
        result = OPERATIONS[name](a, b, *shared)
        compared += 1
        if name in IN_PLACE:
            assert result is a
        else:
            for tensor, kept in zip(held(a), columns[0], strict=True):
                assert_same(tensor, kept)
        for tensor, kept in zip(held(b), before, strict=True):
            assert_same(tensor, kept)
        for index, single in enumerate(expected):
            for part, expected_part in zip(parts(result), parts(single), strict=True):
                assert isinstance(part, TensorList)
                assert_same(held(part)[index], expected_part)
    assert compared >= 2
    assert shared[1] == 0.5


@settings(max_examples=150, deadline=None)
@given(
    shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4),
    dtype=st.sampled_from(DTYPES),
    shared_dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**31),
    k=st.floats(-2, 2).filter(lambda k: k != 0),
    program=st.lists(
        st.tuples(st.sampled_from(sorted(OPERATIONS.keys() - ASK_SHAPE)), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=8,
    ),
)
def test_program_is_a_loop_over_the_tensors(
    *,
    shapes: list[tuple[int, ...]],
    dtype: torch.dtype,
    shared_dtype: torch.dtype,
    seed: int,
    k: float,
    program: list[tuple[str, int, int]],
) -> None:
    t = torch.tensor(0.5, dtype=shared_dtype)
    pool = [draw(shapes, dtype, seed + i) for i in range(3)]
    variables = [TensorList(column) for column in copy.deepcopy(pool)]
    for name, first, second in program:
        i, j = first % len(pool), second % len(pool)
        if name in ASK_DTYPE and len({t.dtype for t in pool[i]}) > 1:
            with pytest.raises(ValueError, match="dtype is not the same for all tensors"):
                OPERATIONS[name](variables[i], variables[j], k, t)
            return
        expected = looped(OPERATIONS[name], [pool[i], pool[j]], k, t)
        if isinstance(expected, Exception):
            with pytest.raises(type(expected)):
                OPERATIONS[name](variables[i], variables[j], k, t)
            return
        result = OPERATIONS[name](variables[i], variables[j], k, t)
        columns = [list(column) for column in zip(*map(parts, expected), strict=True)]
        pool.extend(columns)
        variables.extend(parts(result))
        # All of it, not only the result: views and in-place operations reach other variables.
        for column, variable in zip(pool, variables, strict=True):
            for tensor, expected_tensor in zip(held(variable), column, strict=True):
                assert_same(tensor, expected_tensor)


def lists(*shapes: tuple[int, ...], count: int = 2) -> list[Any]:
    """Lists of tensors of these shapes; Any, for they are used as the one tensor that a rule sees."""
    return [TensorList(draw(list(shapes), torch.float32, seed)) for seed in range(count)]


Pair = Callable[[Any, Any, Any], Any]

CALLED: dict[str, tuple[Pair, dict[str, int]]] = {
    "number": (lambda a, b, t: a * 0.5, {"_foreach_mul": 1}),
    "number_first": (lambda a, b, t: 2 + a, {"_foreach_add": 1}),
    "list": (lambda a, b, t: a / b, {"_foreach_div": 1}),
    "shared": (lambda a, b, t: a / t, {"_foreach_div": 1}),
    "shared_first": (lambda a, b, t: t * a, {"_foreach_mul": 1}),
    "shared_without_overload": (lambda a, b, t: a - t, {"_foreach_sub": 1}),
    "alpha": (lambda a, b, t: a.add_(b, alpha=2.0), {"_foreach_add_": 1}),
    "lerp": (lambda a, b, t: a.lerp_(b, 0.1), {"_foreach_lerp_": 1}),
    "lerp_shared": (lambda a, b, t: a.lerp_(b, t), {"_foreach_lerp_": 1}),
    "addcmul": (lambda a, b, t: a.addcmul_(b, b, value=0.1), {"_foreach_addcmul_": 1}),
    "addcdiv": (lambda a, b, t: torch.addcdiv(a, b, b), {"_foreach_addcdiv": 1}),
    "sqrt": (lambda a, b, t: a.sqrt(), {"_foreach_sqrt": 1}),
    "sign": (lambda a, b, t: torch.sign(a), {"_foreach_sign": 1}),
    "abs": (lambda a, b, t: abs(a), {"_foreach_abs": 1}),
    "neg": (lambda a, b, t: -a, {"_foreach_neg": 1}),
    "square": (lambda a, b, t: a.square(), {"_foreach_mul": 1}),
    "square_by_pow": (lambda a, b, t: a**2, {"_foreach_mul": 1}),
    "pow": (lambda a, b, t: a**3, {"_foreach_pow": 1}),
    "rpow": (lambda a, b, t: 2**a, {"_foreach_pow": 1}),
    "rsub": (lambda a, b, t: 1 - a, {"_foreach_neg": 1, "_foreach_add_": 1}),
    "rdiv": (lambda a, b, t: 1 / a, {"_foreach_reciprocal": 1, "_foreach_mul": 1}),
    "clamp": (lambda a, b, t: a.clamp_(-1, 1), {"_foreach_clamp_min_": 1, "_foreach_clamp_max_": 1}),
    "clamp_list": (lambda a, b, t: a.clamp(min=b), {"_foreach_clamp_min": 1}),
    "maximum": (lambda a, b, t: torch.maximum(a, b), {"_foreach_maximum": 1}),
    "maximum_out": (lambda a, b, t: torch.maximum(a, b, out=a), {"_foreach_maximum_": 1}),
    "copy": (lambda a, b, t: a.copy_(b), {"_foreach_copy_": 1}),
    "zero": (lambda a, b, t: a.zero_(), {"_foreach_zero_": 1}),
    "norm": (lambda a, b, t: a.norm(), {"_foreach_norm": 1}),
    "vector_norm": (lambda a, b, t: torch.linalg.vector_norm(a, ord=1), {"_foreach_norm": 1}),
    "largest": (lambda a, b, t: a.max(), {"_foreach_max": 1}),
    "convert": (lambda a, b, t: a.to(torch.float64), {"empty_like": 2, "_foreach_copy_": 1}),
    "no_foreach": (lambda a, b, t: a > b, {"gt": 2}),
}


@pytest.mark.parametrize("name", CALLED)
def test_operation_takes_as_many_calls_as_it_must(name: str) -> None:
    operation, expected = CALLED[name]
    a, b = lists((3,), (4, 2))
    t = torch.tensor(0.5)
    with counted() as counts:
        operation(a, b, t)
    assert counts == expected


def _adamw(g: Any, p: Any, s: dict[str, Any], step_size: Any, denom_scale: Any) -> Any:
    s["exp_avg"].lerp_(g, 1 - 0.9)
    s["exp_avg_sq"].mul_(0.999).addcmul_(g, g, value=1 - 0.999)
    denom = (s["exp_avg_sq"].sqrt() / denom_scale).add_(1e-8)
    p.mul_(1 - 1e-3 * 0.1)
    return p.sub_(step_size * s["exp_avg"] / denom)


@pytest.mark.parametrize("as_tensors", [False, True], ids=["floats", "tensors"])
def test_adamw_takes_the_same_few_calls_for_any_number_of_tensors(as_tensors: bool) -> None:
    scalars: list[Any] = [0.1, 0.5]
    if as_tensors:
        scalars = [torch.tensor(value) for value in scalars]
    seen = []
    for count in (1, 3, 40):
        shapes = [(2, 3), (5,), ()] * count
        g, p, m, v = (TensorList(draw(shapes, torch.float32, seed)) for seed in range(4))
        v.abs_()
        reference = [[t.clone() for t in held(x)] for x in (g, p, m, v)]
        with counted() as counts:
            result = _adamw(g, p, {"exp_avg": m, "exp_avg_sq": v}, *scalars)
        assert result is p
        assert all(name.startswith("_foreach_") for name in counts)
        seen.append(counts)
        for gi, pi, mi, vi in zip(*reference, strict=True):
            _adamw(gi, pi, {"exp_avg": mi, "exp_avg_sq": vi}, *scalars)
        for x, column in zip((g, p, m, v), reference, strict=True):
            for tensor, expected in zip(held(x), column, strict=True):
                assert_same(tensor, expected)
    assert seen[0] == seen[1] == seen[2]
    assert seen[0].total() == 10


@pytest.mark.parametrize("name", [name[9:] for name in sorted(dir(torch)) if name.startswith("_foreach_")])
def test_what_torch_has_a_foreach_function_for_is_a_loop(name: str) -> None:
    """By method and by function, with one, two and three lists: whatever torch takes."""
    functions: list[Operation] = [getattr(home, name) for home in (Tensor, torch) if hasattr(home, name)]
    for function in functions:
        for operands in (1, 2, 3):
            columns = [draw([(3, 3), (4, 4)], torch.float32, seed) for seed in range(operands)]
            columns = [[t.abs() / 4 for t in column] for column in columns]
            variables = [TensorList([t.clone() for t in column]) for column in columns]
            expected = looped(function, columns)
            if isinstance(expected, Exception):
                with pytest.raises(type(expected)):
                    function(*variables)
                continue
            result = function(*variables)
            for index, single in enumerate(expected):
                assert_same(held(result)[index], single)
            assert (result is variables[0]) == (expected[0] is columns[0][0]) == name.endswith("_")


def test_numbers_of_each_tensor_scale_that_tensor() -> None:
    (x,) = lists((3, 4), (2, 2), (5,), count=1)
    result = x * (1 / x.norm())
    for scaled, tensor in zip(held(result), held(x), strict=True):
        assert_same(scaled, tensor * (1 / tensor.norm()))
    assert all(norm.ndim == 0 for norm in held(x.norm()))


def test_attribute_is_plain_where_all_agree() -> None:
    (x,) = lists((3, 4), (3, 4), count=1)
    assert isinstance(x.shape, torch.Size)
    assert x.shape == (3, 4)
    assert (x.ndim, x.numel(), x.size(-1), x.dtype, x.device.type) == (2, 12, 4, torch.float32, "cpu")
    assert (x.is_floating_point(), x.is_complex(), x.grad) == (True, False, None)
    assert x.view(2, 6).shape == (2, 6)


@pytest.mark.parametrize(
    ("attribute", "found"),
    [
        (lambda x: x.shape, r"shape .*Size\(\[3, 4\]\), .*Size\(\[5\]\)"),
        (lambda x: x.numel(), "numel .*: 12, 5"),
        (lambda x: x.ndim, "ndim .*: 1, 2"),
        (len, "__len__ .*: 3, 5"),
        (lambda x: x.unbind(), "unbind .*: 3 tensors, 5 tensors"),
    ],
    ids=["shape", "numel", "ndim", "len", "unbind"],
)
def test_attribute_that_differs_is_an_error_that_names_it(attribute: Operation, found: str) -> None:
    (x,) = lists((3, 4), (5,), count=1)
    with pytest.raises(ValueError, match=f"TensorList: {found}; .*\\.tensors"):
        attribute(x)


def test_several_results_come_as_lists_with_their_names() -> None:
    (x,) = lists((3, 4), (5, 2), count=1)
    largest = x.max(dim=0)
    assert type(largest) is torch.return_types.max
    assert_same(held(largest.values)[1], held(x)[1].max(dim=0).values)
    assert held(largest.indices)[0].dtype == torch.int64
    q, r = torch.linalg.qr(x)
    for i, tensor in enumerate(held(x)):
        torch.testing.assert_close(held(q)[i] @ held(r)[i], tensor)
    first, second = x.tensor_split(2)
    assert [t.shape for t in (held(first)[1], held(second)[1])] == [(3, 2), (2, 2)]


def test_lists_inside_sequences_and_indices_are_taken_apart() -> None:
    a, b = lists((3, 4), (5, 2))
    stacked = torch.stack([a, b], dim=1)
    assert [t.shape for t in held(stacked)] == [(3, 2, 4), (5, 2, 2)]
    b[a > 0] = 0.0
    for kept, tensor in zip(held(b), held(a), strict=True):
        assert kept[tensor > 0].abs().sum() == 0
        assert kept.abs().sum() > 0
    b[..., 0] = a[..., 1]
    for kept, tensor in zip(held(b), held(a), strict=True):
        assert_same(kept[..., 0], tensor[..., 1])


def test_functions_that_return_their_argument_return_the_list() -> None:
    a, b = lists((3, 4), (5,))
    assert a.to(torch.float32) is a
    assert a.contiguous() is a
    assert a.float() is a
    assert torch.add(a, b, out=b) is b
    out = TensorList([torch.empty(3, 4), torch.empty(5)])
    assert torch.minimum(a, b, out=out) is out
    assert_same(held(out)[1], torch.minimum(held(a)[1], held(b)[1]))
    kept = a
    a += b
    a *= 2
    a **= 2
    a[0] = 1.0
    assert a is kept


def test_arguments_by_name_are_as_in_a_loop() -> None:
    a, b = lists((3, 4), (5, 4))
    for call in (
        lambda a, b: torch.add(input=a, other=b),
        lambda a, b: torch.mul(a, other=2.0),
        lambda a, b: a.mul_(other=2.0),
        lambda a, b: torch.clamp(input=a, min=None, max=0.5),
        lambda a, b: torch.pow(input=a, exponent=2),
        lambda a, b: torch.where(condition=a > 0, input=a, other=b),
        lambda a, b: a.lerp(b, weight=0.3),
        lambda a, b: torch.rsub(a, other=2.0),
        lambda a, b: torch.square(input=a),
        lambda a, b: torch.linalg.vector_norm(x=a, ord=2, dim=-1),
    ):
        expected = looped(call, [[t.clone() for t in held(a)], list(held(b))])
        assert isinstance(expected, list), expected
        for tensor, single in zip(held(call(a, b)), expected, strict=True):
            assert_same(tensor, single)


def test_dtypes_promote_as_in_a_loop() -> None:
    dtypes = [torch.float32, torch.bfloat16, torch.int64, torch.bool]
    shapes: Shapes = [(3,), (), (2,), (3,)]
    mixed: Any = TensorList([torch.ones(shape, dtype=d) for shape, d in zip(shapes, dtypes, strict=True)])
    shared = [torch.tensor(2, dtype=dtype) for dtype in (torch.float64, torch.bfloat16, torch.int64)]
    for name in ("mul_int", "shared_mul", "add_shared", "clamp_min_shared", "square", "div_number"):
        for t in shared:
            result = PURE[name](mixed, None, 0.5, t)
            for got, tensor in zip(held(result), held(mixed), strict=True):
                assert_same(got, PURE[name](tensor, None, 0.5, t))
    small: Any = TensorList([torch.tensor([200, 3], dtype=torch.uint8)])
    assert_same(held(2.5 - small)[0], 2.5 - held(small)[0])
    mixed.copy_(TensorList([torch.full_like(t, 1, dtype=torch.float64) for t in held(mixed)]))
    assert [t.dtype for t in held(mixed)] == dtypes


def test_operands_of_different_lengths_are_refused_before_anything_changes() -> None:
    (a,), (b,) = lists((2,), (2,), count=1), lists((2,), (2,), (2,), count=1)
    before = [t.clone() for t in held(a)]
    operations: list[Operation] = [torch.add, torch.gt, Tensor.add_, Tensor.copy_]
    for operation in operations:
        with pytest.raises(ValueError, match="lists of 2 and 3 tensors"):
            operation(a, b)
    for tensor, kept in zip(held(a), before, strict=True):
        assert_same(tensor, kept)


@pytest.mark.parametrize(
    "use",
    [bool, iter, list, float, int, range, pickle.dumps, Tensor.item, Tensor.tolist, Tensor.numpy],
    ids=["bool", "iter", "list", "float", "int", "index", "pickle", "item", "tolist", "numpy"],
)
def test_what_needs_one_tensor_is_refused(use: Callable[[Any], Any]) -> None:
    ones = TensorList([torch.ones((), dtype=torch.int64), torch.ones((), dtype=torch.int64)])
    with pytest.raises(TypeError, match=r"this stands for 2.*\.tensors"):
        use(ones)


def test_a_plain_tensor_is_never_written_to_by_a_list() -> None:
    (x,) = lists((2,), (2,), count=1)
    plain: Any = torch.ones(2)
    for write in (
        lambda: plain.add_(x),
        lambda: plain.copy_(x),
        lambda: torch.mul(x, x, out=plain),
        lambda: plain.__setitem__(0, x[0]),
    ):
        with pytest.raises(TypeError, match="would write 2 tensors into a plain one"):
            write()
    assert torch.equal(plain, torch.ones(2))
    for got, tensor in zip(held(plain + x), held(x), strict=True):
        assert_same(got, plain + tensor)


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        ([], ValueError, "at least one"),
        (torch.ones(3, 2), TypeError, "got one tensor"),
        ([torch.ones(1), 2.0], TypeError, "item 1 is a float"),
        ([TensorList([torch.ones(1)])], TypeError, "item 0 is a TensorList"),
    ],
    ids=["empty", "tensor", "number", "nested"],
)
def test_what_is_no_list_of_tensors_is_refused(tensors: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TensorList(tensors)


def test_errors_of_torch_come_through() -> None:
    (a,), (b,) = lists((2,), (3,), count=1), lists((2,), (4,), count=1)
    with pytest.raises(RuntimeError, match="must match the size"):
        a + b
    with pytest.raises(TypeError, match="unsupported operand"):
        a + "x"


def test_a_list_past_torch_function_is_refused() -> None:
    (x,) = lists((2,), count=1)
    with torch._C.DisableTorchFunctionSubclass(), pytest.raises(TypeError, match="no data of its own"):
        torch.add(x, 1)


def test_a_list_is_a_tensor_that_shows_what_it_holds() -> None:
    (x,) = lists((2, 3), (), count=1)
    assert isinstance(x, Tensor)
    assert repr(x) == f"{x}" == "TensorList(torch.float32[2, 3], torch.float32[])"
    assert {x: 1}[x] == 1
    twin = copy.deepcopy(x)
    twin.zero_()
    assert isinstance(twin, TensorList)
    assert held(x)[0].abs().sum() > 0


def test_autograd_flows_through_every_tensor() -> None:
    with torch.enable_grad():
        leaves = [torch.full((2,), 3.0, requires_grad=True), torch.full((3,), 5.0, requires_grad=True)]
        x: Any = TensorList(leaves)
        y = torch.zeros_like(x).copy_(x).to(torch.float64) ** 2
        first, second = held(y.sum() + x.norm())
        (grad,) = torch.autograd.grad(second, leaves[1])
    assert first.requires_grad
    torch.testing.assert_close(grad, torch.full((3,), 10 + 3**-0.5))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_helper_takes_lists(call: Call) -> None:
    shapes = [shape for shape in SHAPES if len(shape) >= call.min_ndim]
    rows = [call.make(shape, torch.float32, seed) for seed, shape in enumerate(shapes)]
    variables: list[Any] = [TensorList([t.clone() for t in column]) for column in zip(*rows, strict=True)]
    results = call(variables)
    expected = [call(row) for row in rows]
    for result, singles in zip(results, zip(*expected, strict=True), strict=True):
        assert isinstance(result, TensorList)
        for tensor, single in zip(held(result), singles, strict=True):
            # Not to the bit: helpers may put plain tensors through a kernel of fewer roundings.
            torch.testing.assert_close(tensor, single, rtol=5e-7, atol=1e-7, equal_nan=True)
