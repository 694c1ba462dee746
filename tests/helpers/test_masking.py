"""Cautious masking in its published variants."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from torch import Tensor

from zoo import helpers

from .strategies import tensors


@given(tensors(2))
def test_the_mean_variant_divides_by_the_kept_share(xs: list[Tensor]) -> None:
    update, grad = xs
    mask = (torch.sign(update) * torch.sign(grad) > 0).double()
    expected = update * (mask / mask.mean().clamp(min=1e-3))
    torch.testing.assert_close(helpers.cautious(update, grad, "mean"), expected)
    torch.testing.assert_close(helpers.cautious(update, grad), expected)


@given(tensors(2))
def test_the_count_variant_multiplies_by_elements_over_kept_plus_one(xs: list[Tensor]) -> None:
    update, grad = xs
    mask = (torch.sign(update) * torch.sign(grad) > 0).double()
    expected = update * (mask * (mask.numel() / (mask.sum() + 1)))
    torch.testing.assert_close(helpers.cautious(update, grad, "count"), expected)


@given(tensors(2))
def test_the_plain_variant_never_grows(xs: list[Tensor]) -> None:
    update, grad = xs
    result = helpers.cautious(update, grad, "plain")
    agree = torch.sign(update) * torch.sign(grad) > 0
    assert torch.equal(result, torch.where(agree, update, 0.0))


@given(tensors(2))
def test_grams_takes_the_gradients_sign_and_the_updates_size(xs: list[Tensor]) -> None:
    update, grad = xs
    result = helpers.cautious(update, grad, "grams")
    assert torch.equal(result, torch.sign(grad) * update.abs())


@given(tensors(2))
def test_what_is_kept_never_opposes_the_gradient(xs: list[Tensor]) -> None:
    update, grad = xs
    variants: tuple[helpers.CautiousVariant, ...] = ("mean", "count", "plain", "grams")
    for variant in variants:
        result = helpers.cautious(update, grad, variant)
        assert (torch.sign(result) * torch.sign(grad) >= 0).all()


def test_full_agreement_leaves_the_update_as_it_is() -> None:
    update = torch.randn(10)
    assert torch.equal(helpers.cautious(update, update), update)


def test_the_scale_is_bounded_where_almost_nothing_agrees() -> None:
    update = torch.ones(10_000)
    grad = -torch.ones(10_000)
    assert torch.equal(helpers.cautious(update, grad), torch.zeros(10_000))
    grad[0] = 1.0
    assert helpers.cautious(update, grad).max().item() == pytest.approx(1000)


def test_signs_of_the_tiniest_numbers_count() -> None:
    tiny = torch.tensor([1e-30, -1e-30])
    assert (tiny * tiny == 0).all(), "a product would underflow"
    assert helpers.signs_agree(tiny, tiny).all()
    assert not helpers.signs_agree(tiny, -tiny).any()
    assert not helpers.signs_agree(torch.zeros(2), tiny).any()


def test_an_unknown_variant_is_named() -> None:
    with pytest.raises(ValueError, match="'median'.*'mean', 'count', 'plain' or 'grams'"):
        helpers.cautious(torch.ones(2), torch.ones(2), "median")  # type: ignore[arg-type]
