"""Kahan summation and stochastic rounding keep what a plain bfloat16 update loses."""

from __future__ import annotations

import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

HALF = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=32)
NORMAL = st.floats(-6e4, 6e4, width=32, allow_subnormal=False)


def noise(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randint(0, 2**16, shape, dtype=torch.int32, generator=torch.Generator().manual_seed(seed))


@HALF
def test_kahan_learns_where_a_plain_update_stalls(dtype: torch.dtype) -> None:
    plain, kahan = torch.ones(3, dtype=dtype), torch.ones(3, dtype=dtype)
    compensation = torch.zeros(3)
    update = torch.full((3,), 1e-4)
    for _ in range(1000):
        plain.copy_(plain.float() - update)
        helpers.kahan_sub_(kahan, kahan.float(), update, compensation)
    assert dtype != torch.bfloat16 or torch.equal(plain, torch.ones(3, dtype=dtype)), "plain bfloat16 stalls"
    torch.testing.assert_close(kahan.float() + compensation, torch.full((3,), 0.9), rtol=1e-5, atol=0)
    torch.testing.assert_close(kahan.float(), torch.full((3,), 0.9), rtol=torch.finfo(dtype).eps, atol=0)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=50))
def test_kahan_in_the_parameters_own_dtype_sums_better(updates: list[float]) -> None:
    param, compensation = torch.tensor(100.0), torch.tensor(0.0)
    exact = torch.tensor(100.0, dtype=torch.float64)
    for update in updates:
        helpers.kahan_sub_(param, param, torch.tensor(update), compensation)
        exact -= update
    assert (param.double() + compensation.double()).item() == pytest.approx(exact.item(), abs=2e-6)


@HALF
def test_compiled_rounding_by_arithmetic_is_the_cast(dtype: torch.dtype) -> None:
    values = torch.randint(-(2**31), 2**31 - 1, (20_000,), generator=torch.Generator().manual_seed(0))
    bits = values.to(torch.int32).view(torch.float32)
    bits = bits[bits.abs() < 6.5e4]
    torch._dynamo.reset()

    def run(param: Tensor) -> tuple[Tensor, Tensor]:
        target, compensation = torch.zeros_like(param, dtype=dtype), torch.zeros_like(param)
        helpers.kahan_sub_(target, param, torch.zeros_like(param), compensation)
        return target, compensation

    compiled = torch.compile(run, backend="eager", fullgraph=True)
    for ours, eager in zip(compiled(bits), run(bits), strict=True):
        assert torch.equal(ours, eager)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@HALF
def test_a_compiler_that_fuses_casts_does_not_lose_the_compensation(dtype: torch.dtype) -> None:
    def run(param: Tensor, update: Tensor, compensation: Tensor) -> None:
        helpers.kahan_sub_(param, param.float(), update, compensation)

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True)
    update = torch.full((64,), 1e-4)
    results = []
    for step in (compiled, run):
        param, compensation = torch.ones(64, dtype=dtype), torch.zeros(64)
        for _ in range(50):
            step(param, update, compensation)
        results.append((param, compensation))
    assert torch.equal(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1])
    torch.testing.assert_close(results[0][0].float() + results[0][1], torch.full((64,), 0.995), rtol=1e-6, atol=0)


@HALF
@given(value=NORMAL, bits=st.integers(0, 2**16 - 1))
def test_stochastic_rounding_goes_to_a_neighbour(dtype: torch.dtype, value: float, bits: int) -> None:
    values = torch.tensor([value])
    target = torch.zeros(1, dtype=dtype)
    helpers.stochastic_round_(target, values, torch.tensor([bits], dtype=torch.int32))
    nearest = values.to(dtype)
    neighbours = [nearest.item()]
    for step in (-1, 1):
        neighbours.append((nearest.view(torch.int16) + step).view(dtype).item())
    if nearest.item() == 0:
        tiny = torch.tensor([1], dtype=torch.int16).view(dtype).item()
        neighbours += [tiny, -tiny, 0.0]
    assert target.item() in neighbours
    if nearest.item() == value:
        assert target.item() == value, "a representable value stays"


@HALF
@pytest.mark.parametrize("value", [1.001, -1.001, 3.1415, 1e-3, -7.3e-6, 2.9e-8, 1234.5])
def test_stochastic_rounding_is_right_on_average(dtype: torch.dtype, value: float) -> None:
    values = torch.full((200_000,), value)
    target = torch.zeros(200_000, dtype=dtype)
    helpers.stochastic_round_(target, values, noise((200_000,)))
    spread = target.double().std().item()
    assert len(set(target.tolist())) <= 2
    assert target.double().mean().item() == pytest.approx(values[0].item(), abs=5 * spread / 200_000**0.5 + 1e-12)


@HALF
@given(value=FLOATS)
def test_infinities_and_nan_stay_what_they_are(dtype: torch.dtype, value: float) -> None:
    target = torch.zeros(1, dtype=dtype)
    helpers.stochastic_round_(target, torch.tensor([value]), torch.tensor([2**16 - 1], dtype=torch.int32))
    if value != value:
        assert torch.isnan(target).all()
    elif abs(value) == float("inf"):
        assert target.item() == value
    else:
        assert not torch.isnan(target).any()


def test_other_dtypes_are_copied() -> None:
    target = torch.zeros(3)
    values = torch.randn(3)
    assert torch.equal(helpers.stochastic_round_(target, values, noise((3,))), values)


@HALF
def test_stochastic_rounding_compiles(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    values, draws = torch.randn(50), noise((50,))
    compiled = torch.compile(helpers.stochastic_round_, backend="aot_eager", fullgraph=True)
    expected = helpers.stochastic_round_(torch.zeros(50, dtype=dtype), values, draws)
    assert torch.equal(compiled(torch.zeros(50, dtype=dtype), values, draws), expected)


@HALF
def test_stochastic_rounding_learns_where_a_plain_update_stalls(dtype: torch.dtype) -> None:
    param = torch.ones(2000, dtype=dtype)
    for step in range(1000):
        helpers.stochastic_round_(param, param.float() - 1e-4, noise((2000,), step))
    assert param.float().mean().item() == pytest.approx(0.9, abs=2e-3)
