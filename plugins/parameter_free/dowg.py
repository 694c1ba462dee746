r"""DoWG: distance over weighted gradients. Khaled, Mishchenko & Jin, "DoWG Unleashed", 2023, arXiv:2305.16284."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import Scalars, helpers
from zoo.config import Positive

from .dog import DoG, DoGConfig


class DoWGConfig(DoGConfig):
    """Options of DoWG."""

    reps_rel: Positive = Field(1e-4, description="First distance as a share of 1 + ‖θ₀‖.")


class DoWG(DoG):
    r"""DoG with each gradient weighted by the distance at its time, which adapts to smooth problems too.

    .. math::
        \bar r_t = \max(\bar r_{t-1}, \|θ_t - θ_0\|), \quad G_t = G_{t-1} + \bar r_t^2 \|g_t\|^2, \quad
        θ_{t+1} = θ_t - γ\, \frac{\bar r_t^2}{\sqrt{G_t + ε}}\, g_t

    State: ``init_buffer``, 4 bytes a float32 parameter. The paper asks for a small first distance; as in DoG it is a
    share of the start's norm here. Good for: convex and smooth problems without a learning rate.
    """

    Config = DoWGConfig

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        guess = c.first * c.reps_rel * (1 + totals["start_sq"].sqrt())
        distance = torch.maximum(totals["distance_sq"].sqrt(), guess).to(torch.float64)
        shared["rbar"] = torch.maximum(shared["rbar"], distance)
        shared["G"] = shared["G"] + shared["rbar"].square() * totals["g_sq"]
        eta = shared["rbar"].square() / helpers.sqrt(torch.where(shared["G"] > 0, shared["G"], 1.0))
        return {"eta": eta if c.init_eta is None else eta * (1 - c.first) + c.init_eta * c.first}
