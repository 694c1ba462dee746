"""What a race trains: tasks by name. A task names itself cheaply and builds its network and data when it is run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import RaceError
from .learning_rates import DIGITS, SOURCE

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["TASKS", "Evaluation", "Problem", "RaceTask", "TaskRegistry"]


@dataclass(frozen=True)
class Evaluation:
    """How good a network is on the held-out data.

    Args:
        loss: mean loss.
        accuracy: share of right answers, 0 to 1.
    """

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Problem:
    """A task built for one seed: the start that every optimizer gets, and what it is trained and judged by.

    Args:
        model: the network with its initial weights; each optimizer trains a copy.
        batches: starts the endless sequence of training batches; the same one at every call.
        loss: the training loss of a network on a batch, a 0-dim tensor.
        evaluate: judges a network on the held-out data; called without autograd, in the module's eval mode.
        data: what the data are, for the record: sizes and a fingerprint.
    """

    model: nn.Module
    batches: Callable[[], Iterator[Any]]
    loss: Callable[[nn.Module, Any], Tensor]
    evaluate: Callable[[nn.Module], Evaluation]
    data: Mapping[str, int | str]


@dataclass(frozen=True)
class RaceTask:
    """A task that optimizers can race on.

    Args:
        name: what ``--task`` calls it.
        summary: one line: the data and the network.
        build: makes the problem from a seed, which decides the initial weights and the batches and nothing else;
            raises :class:`~zoo.race.errors.RaceError` where the data are missing.
        steps: training steps that a race takes by default.
        learning_rates: tuned for this task, by optimizer name; every other optimizer uses its own default.
    """

    name: str
    summary: str
    build: Callable[[int], Problem]
    steps: int
    learning_rates: Mapping[str, float] = field(default_factory=dict)


class TaskRegistry:
    """The tasks that there are."""

    def __init__(self) -> None:
        self._tasks: dict[str, RaceTask] = {}

    def register(self, task: RaceTask) -> RaceTask:
        """Make a task known; an equal task again changes nothing.

        Raises:
            ValueError: another task has the name.
        """
        known = self._tasks.setdefault(task.name, task)
        if known != task:
            raise ValueError(f"there is a task {task.name!r} already ({known.summary}); choose another name")
        return task

    def unregister(self, name: str) -> None:
        """Forget a task; a ``KeyError`` where there is none of this name."""
        del self._tasks[name]

    def names(self) -> list[str]:
        """The names, in the order of registration."""
        return list(self._tasks)

    def get(self, name: str) -> RaceTask:
        """The task of this name.

        Raises:
            RaceError: there is none; the closest and all names are given.
        """
        if name in self._tasks:
            return self._tasks[name]
        closest = difflib.get_close_matches(name, self._tasks, n=1)
        hint = f"; did you mean {closest[0]!r}?" if closest else ";"
        raise RaceError(f"unknown task {name!r}{hint} tasks: {', '.join(self._tasks)}")


def _digits(seed: int) -> Problem:
    from .digits import build

    return build(seed)


def _source(seed: int) -> Problem:
    from .source import build

    return build(seed)


TASKS = TaskRegistry()
"""Every task; a plugin adds its own with ``TASKS.register``."""

TASKS.register(
    RaceTask("digits", "handwritten digits of scikit-learn, small convolutional network", _digits, 400, DIGITS)
)
TASKS.register(
    RaceTask("source", "source text of Python's standard library, character-level GPT", _source, 600, SOURCE)
)
