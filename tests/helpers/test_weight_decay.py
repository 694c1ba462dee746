"""Decay: into a copy of the gradient, decoupled, independent, cautious."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors

UNIT = st.floats(0, 1)


@given(tensors(2, dtype=torch.float32), UNIT)
def test_l2_decay_is_torchs_and_leaves_the_gradient_alone(xs: list[Tensor], weight_decay: float) -> None:
    grad, param = xs
    before = grad.clone()
    assert torch.equal(helpers.l2_decay(grad, param, weight_decay), grad.add(param, alpha=weight_decay))
    assert torch.equal(grad, before)


@given(tensors(1, dtype=torch.float32), UNIT, UNIT)
def test_decoupled_decay_is_torchs_adamw(xs: list[Tensor], lr: float, weight_decay: float) -> None:
    (param,) = xs
    expected = param.clone().mul_(1 - lr * weight_decay)
    assert torch.equal(helpers.decay_(param, helpers.decay_fraction(lr, weight_decay)), expected)


@given(UNIT, UNIT, UNIT)
def test_decay_fractions(lr: float, weight_decay: float, ratio: float) -> None:
    assert helpers.decay_fraction(lr, weight_decay) == lr * weight_decay
    assert helpers.decay_fraction(lr, weight_decay, "independent") == weight_decay, "not scaled by lr"
    assert helpers.decay_fraction(lr, weight_decay, ratio=ratio) == pytest.approx(lr * weight_decay * ratio)
    tensor_lr = torch.tensor(lr, dtype=torch.float64)
    assert helpers.decay_fraction(tensor_lr, weight_decay) == lr * weight_decay
    assert helpers.decay_fraction(tensor_lr, weight_decay, "independent") == weight_decay


@given(tensors(2), UNIT)
def test_cautious_decay_acts_only_where_update_and_parameter_agree(xs: list[Tensor], fraction: float) -> None:
    param, update = xs
    decay = helpers.cautious_decay(param, update, fraction)
    opposed = torch.sign(update) * torch.sign(param) < 0
    torch.testing.assert_close(decay, torch.where(opposed, 0.0, fraction * param))
    assert (decay.abs() <= param.abs()).all()


def test_cautious_decay_sees_the_sign_of_the_tiniest_numbers() -> None:
    param, update = torch.tensor([1e-30, 1e-30]), torch.tensor([-1e-30, 1e-30])
    assert (update * param == 0).all(), "a product would underflow"
    assert helpers.cautious_decay(param, update, 0.5).tolist() == pytest.approx([0.0, 5e-31])
