"""Root mean squares, of tensors and of lists, and the clips built on them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors

THRESHOLDS = st.floats(1e-3, 10)


@given(tensors(1))
def test_rms_is_the_root_of_the_mean_square(xs: list[Tensor]) -> None:
    torch.testing.assert_close(helpers.rms(xs[0]), xs[0].square().mean().sqrt())


def test_rms_of_complex_numbers_is_real() -> None:
    torch.testing.assert_close(helpers.rms(torch.tensor([3 + 4j, 0j])), torch.tensor(12.5**0.5))


@given(tensors(1), THRESHOLDS, st.floats(1e-3, 1))
def test_the_clipped_update_has_at_most_the_rms_allowed(xs: list[Tensor], threshold: float, lr: float) -> None:
    (update,) = xs
    clipped = helpers.rms_clip(update, threshold, lr)
    size = update.square().mean().sqrt()
    torch.testing.assert_close(clipped, update / (size / (threshold * lr)).clamp(min=1))
    if size <= threshold * lr:
        assert torch.equal(clipped, update), "left as it is"


def test_a_learning_rate_of_zero_gives_zeros() -> None:
    assert torch.equal(helpers.rms_clip(torch.zeros(3), 1.0, 0.0), torch.zeros(3))
    assert torch.equal(helpers.rms_clip(torch.zeros(3), 1.0, torch.tensor(0.0)), torch.zeros(3))


@given(st.lists(tensors(1, dtype=torch.float32).map(lambda xs: xs[0]), max_size=4), THRESHOLDS)
def test_lists_are_the_tensors_each_on_their_own(xs: list[Tensor], threshold: float) -> None:
    xs = [*xs, torch.zeros(0), torch.zeros(3)]
    for a, b in zip(helpers.foreach_rms(xs), [helpers.rms(x) for x in xs], strict=True):
        torch.testing.assert_close(a, b)
    for bound in (threshold, torch.tensor(threshold)):
        for a, x in zip(helpers.foreach_rms_clip(xs, bound, 0.5), xs, strict=True):
            torch.testing.assert_close(a, helpers.rms_clip(x, threshold, 0.5))


def test_empty_lists_are_lists() -> None:
    assert helpers.foreach_rms([]) == [] and helpers.foreach_rms_clip([]) == []


@given(tensors(2))
def test_the_stable_divisor_is_at_least_one(xs: list[Tensor]) -> None:
    grad, avg_sq = xs[0], xs[1].square()
    expected = (grad.square() / avg_sq.clamp(min=1e-16)).mean().sqrt().clamp(min=1)
    torch.testing.assert_close(helpers.stable_divisor(grad, avg_sq, 1e-8), expected)


@pytest.mark.parametrize("factor", [1.0, 0.5, 3.0])
def test_the_stable_divisor_is_the_ratio_of_the_gradient_to_its_second_moment(factor: float) -> None:
    grad = torch.full((5,), factor)
    assert helpers.stable_divisor(grad, torch.ones(5)).item() == pytest.approx(max(1.0, factor))
