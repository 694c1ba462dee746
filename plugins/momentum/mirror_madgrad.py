r"""Mirror MADGRAD. Defazio & Jelassi, "Adaptivity without Compromise", 2022, arXiv:2101.11075."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, Fraction, LearningRate

from .madgrad import cube_root, lifted


class MirrorMADGRADConfig(OptimizerConfig):
    """Options of Mirror MADGRAD; defaults are the authors'."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ: not comparable to SGD's or Adam's, sweep it anew.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled, independent: z decays.")
    momentum: Fraction = Field(0.9, description="Weight of the old iterate in the new one.")
    eps: Epsilon = Field(0.0, description="ε, added to the cube root, and to γ where γ is not 0; 0 is best.")


class MirrorMADGRAD(BaseOptimizer[MirrorMADGRADConfig], rule=Granularity.ELEMENTWISE):
    r"""MADGRAD with mirror descent in the place of dual averaging: it forgets where it started.

    .. math::
        v_t &= \sqrt{(t-1)/t}\; v_{t-1} + g_t^2, \qquad z_t = z_{t-1} - γ \sqrt[3]{t}\, \frac{g_t}{\sqrt[3]{v_t} + ε} \\
        θ_t &= μ\, θ_{t-1} + (1-μ)\, z_t

    State: ``grad_sum_sq`` (v), ``z``: 8 bytes a float32 parameter. Each parameter counts its own steps; decoupled decay
    shrinks z, from which θ follows. At lr 0 nothing moves. Good for: large transformers.
    """

    def init_state(self, p: Tensor, cfg: MirrorMADGRADConfig) -> dict[str, Tensor]:
        return {"grad_sum_sq": helpers.zeros_like(p), "z": p.clone()}

    def scalars(self, cfg: MirrorMADGRADConfig, step: Any) -> Scalars:
        lr = lifted(cfg.lr, cfg.eps)
        scalars = Scalars(
            keep=((step - 1) / step) ** 0.5,
            step_size=lr * step ** (1 / 3),
            share=(1 - cfg.momentum) * helpers.where(cfg.lr > 0, 1.0, 0.0),
            decays=cfg.weight_decay != 0 and cfg.decay_mode != "l2",
        )
        if cfg.decay_mode == "decoupled":
            scalars.decay = lr * cfg.weight_decay
        return scalars

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        if c.decays:
            s.z.mul_(1 - c.decay)
        helpers.addcmul_(s.grad_sum_sq.mul_(c.keep), g, g)
        helpers.addcdiv_(s.z, g, cube_root(s.grad_sum_sq, c.eps), -c.step_size)
        return helpers.scaled(p - s.z, c.share)

    def decay_mode(self, cfg: MirrorMADGRADConfig) -> str:
        return "l2" if cfg.decay_mode == "l2" else "rule"
