r"""NAdamW: AdamW with Nesterov momentum. Dozat, 2016; as run in Dahl et al., 2023, arXiv:2306.07179."""

from __future__ import annotations

from torch import Tensor

from zoo import Granularity, Scalars, State, helpers

from .adamw import AdamW, AdamWConfig


class NAdamWConfig(AdamWConfig):
    """Options of NAdamW: those of AdamW."""


class NAdamW(AdamW, rule=Granularity.ELEMENTWISE):
    r"""AdamW that looks ahead along its momentum: the new gradient counts once more before the division.

    .. math::
        θ_t = (1 - γλ)\, θ_{t-1} - γ\, \frac{(β_1 m_t + (1-β_1) g_t) / (1-β_1^t)}{\sqrt{v_t / (1-β_2^t)} + ε}

    State: as Adam, 8 bytes a float32 parameter. Unlike ``nadam``, there is no momentum schedule, and both terms have
    the bias correction of the present step, as the benchmark that made this form known has it.
    Good for: AdamW's tasks; the baseline of training-algorithm benchmarks.
    """

    Config = NAdamWConfig
    fused_kernel = None

    def direction(self, g: Tensor, s: State, c: Scalars) -> Tensor:
        return helpers.nesterov_ema(s.exp_avg, g, c.beta1)
