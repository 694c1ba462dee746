r"""Schedule-free SGD. Defazio et al., "The Road Less Scheduled", 2024, arXiv:2405.15682."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Scalars, State
from zoo.config import Fraction, LearningRate

from .base import ScheduleFree, ScheduleFreeConfig


class ScheduleFreeSGDConfig(ScheduleFreeConfig):
    """Options of schedule-free SGD; defaults are the authors'."""

    lr: LearningRate = Field(1.0, description="Learning rate γ: 10 to 50 times that of a scheduled SGD.")
    momentum: Fraction = Field(0.9, description="β, the share of the average x in the trained weights y.")


class ScheduleFreeSGD(ScheduleFree[ScheduleFreeSGDConfig]):
    r"""SGD on z, gradients at y between z and its average x: no schedule, no stopping time.

    .. math::
        y_t = (1-β) z_t + β x_t, \quad z_{t+1} = z_t - γ (∇f(y_t) + λ y_t), \quad x_{t+1} = (1-c_{t+1}) x_t + c_{t+1} z_{t+1}

    with c = γ_max²/Σγ_max². State: ``z``, 4 bytes a float32 parameter. Call ``train()`` and ``eval()``. At lr 0
    nothing moves (the authors' code still averages). Good for: SGD without choosing a schedule.
    """

    def interpolation(self, options: Any) -> Any:
        return options.momentum

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        return self.averaged_step(g, p, s, c)
