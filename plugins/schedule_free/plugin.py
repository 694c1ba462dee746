"""The schedule-free family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl

_PAPER = Paper("The Road Less Scheduled", 2024, "2405.15682")
_TABLE = (
    ("schedule_free_sgd", "ScheduleFreeSGD", "SGD with averaged iterates in the place of a schedule."),
    ("schedule_free_adamw", "ScheduleFreeAdamW", "AdamW with averaged iterates in the place of a schedule."),
    ("schedule_free_radam", "ScheduleFreeRAdam", "Schedule-free AdamW that needs no warm-up either."),
)


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """Schedule-free optimizers."""
    for name, cls, summary in _TABLE:
        yield OptimizerSpec(
            name,
            f"zoo_plugins.schedule_free.{name}:{cls}",
            family="schedule_free",
            summary=summary,
            paper=_PAPER,
            aliases=(name.replace("schedule_free", "schedulefree"),),
            tags=("elementwise", "schedule-free", "modes"),
        )
