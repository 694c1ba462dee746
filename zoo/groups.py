"""Parameter groups from rules: which parameters a rule matches, and what it sets for them.

A rule looks at a parameter's dimensions, its name and the module that owns it. Every rule must match something, and no
parameter may be matched twice, so that a pattern that went wrong is said before training and not after it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from .errors import ParameterGroupError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["GroupRule", "Match", "named_parameters", "parameter_groups"]

_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_NDIM = re.compile(r"\s*(<=|>=|==|!=|<|>)?\s*([0-9]+)\s*")
_WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def _as_patterns(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_comparison(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _comparison(value: str) -> str:
    found = _NDIM.fullmatch(value)
    if found is None:
        raise PydanticCustomError(
            "ndim", "a comparison is needed, such as '<2', '>=2' or 1, not {text}", {"text": repr(value)}
        )
    return f"{found[1] or '=='}{found[2]}"


Patterns = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_patterns),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A wildcard pattern or several, any of which may match."""
Comparison = Annotated[
    str,
    BeforeValidator(_as_comparison),
    AfterValidator(_comparison),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^(<|<=|>|>=|==|!=)?[0-9]+$"}]}
    ),
]
"""A number of dimensions, or a comparison with one: ``1``, ``"<2"``, ``">=2"``."""


class Match(BaseModel):
    """What a parameter must be for a rule to concern it; everything given must hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ndim: Comparison | None = Field(None, description="Number of dimensions: '<2' is norms and biases.")
    name: Patterns = Field((), description="Wildcards for the parameter's name in the model, such as '*.embed*'.")
    module: Patterns = Field((), description="Wildcards for the class of the module that owns it, such as 'LayerNorm'.")

    @model_validator(mode="after")
    def _says_something(self) -> Match:
        if self.ndim is None and not self.name and not self.module:
            raise PydanticCustomError("empty_match", "a match needs at least one of ndim, name and module")
        return self

    def __str__(self) -> str:
        parts = [] if self.ndim is None else [f"ndim {self.ndim}"]
        parts += [f"{key} {' | '.join(patterns)}" for key in ("name", "module") if (patterns := getattr(self, key))]
        return ", ".join(parts)


class GroupRule(BaseModel):
    """Options for the parameters that match; every key but ``match`` and ``optional`` is an option of the optimizer."""

    model_config = ConfigDict(extra="allow", frozen=True)

    match: Match = Field(description="Which parameters.")
    optional: bool = Field(False, description="Whether the rule may match no parameter.")

    @property
    def options(self) -> dict[str, Any]:
        """What the rule sets."""
        return dict(self.model_extra or {})


@dataclass
class _Candidate:
    """A parameter, with every name it has and the classes of the modules that hold it."""

    tensor: Tensor
    names: list[str]
    modules: list[str]

    def matches(self, match: Match) -> bool:
        if match.ndim is not None:
            comparison, number = re.split(r"(?<=\D)(?=\d)", match.ndim)
            if not _COMPARISONS[comparison](self.tensor.ndim, int(number)):
                return False
        return _any(match.name, self.names) and _any(match.module, self.modules)


def _any(patterns: Sequence[str], texts: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns for text in texts)


def _is_module(params: Any) -> bool:
    # By its methods and not by isinstance: whoever only reads rules should not wait for torch.
    return hasattr(params, "named_parameters") and hasattr(params, "named_modules")


def named_parameters(model: Any) -> list[tuple[str, Tensor]]:
    """The parameters of a module that require grad, each once, under the first of its names.

    Names are those of the model itself: the prefixes of DataParallel, DDP, FSDP, activation checkpointing and
    ``torch.compile`` are left out, so that a checkpoint fits with and without them.
    """
    return [(candidate.names[0], candidate.tensor) for candidate in _of_module(model)]


def _of_module(model: Any) -> list[_Candidate]:
    while type(model).__name__ in ("DataParallel", "DistributedDataParallel") and hasattr(model, "module"):
        model = model.module
    found: dict[int, _Candidate] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, tensor in module.named_parameters(recurse=False, remove_duplicate=False):
            full = f"{prefix}.{name}" if prefix else name
            for wrapper in _WRAPPERS:
                full = full.replace(wrapper, "")
            if tensor.requires_grad:
                candidate = found.setdefault(id(tensor), _Candidate(tensor, [], []))
                candidate.names.append(full)
                candidate.modules.append(type(module).__name__)
    return list(found.values())


def _of_iterable(params: Iterable[Any], rules: Sequence[GroupRule]) -> Iterator[_Candidate]:
    for entry in params:
        if isinstance(entry, Mapping):
            raise ParameterGroupError(
                "rules for parameter groups need a model or parameters, not groups that are made already"
            )
        named = isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
        tensor = entry[1] if named else entry
        if not hasattr(tensor, "ndim"):
            raise TypeError(f"a parameter must be a tensor, not {type(tensor).__name__}")
        for rule in rules:
            if rule.match.module or (rule.match.name and not named):
                raise ParameterGroupError(
                    f"the rule for {rule.match} needs to know the model: give it, or, for names alone, model.named_parameters()"
                )
        yield _Candidate(tensor, [entry[0]] if named else [], [])


def parameter_groups(params: Any, rules: Sequence[GroupRule]) -> list[dict[str, Any]]:
    """The parameters of ``params`` in groups: first those that no rule matches, then those of each rule.

    Args:
        params: a module (its parameters that require grad), or tensors or ``(name, tensor)`` pairs.
        rules: what to set for which parameters. A tied parameter is matched by any of its names.

    Raises:
        ParameterGroupError: a rule matches nothing and is not optional, a parameter is matched by two rules, or a
            rule asks for names or modules that ``params`` does not tell.
    """
    if hasattr(params, "ndim") or isinstance(params, (set, frozenset)):
        raise TypeError(f"params must be a model or an ordered iterable of tensors, not a {type(params).__name__}")
    candidates = _of_module(params) if _is_module(params) else list(_of_iterable(params, rules))
    members: list[list[_Candidate]] = [[] for _ in range(len(rules) + 1)]
    problems = []
    used: set[int] = set()
    for candidate in candidates:
        matching = [index for index, rule in enumerate(rules) if candidate.matches(rule.match)]
        used.update(matching)
        if len(matching) > 1:
            label = " = ".join(candidate.names) or f"of shape {tuple(candidate.tensor.shape)}"
            both = " and ".join(f"rule {index} ({rules[index].match})" for index in matching)
            problems.append(f"parameter {label} is matched by {both}: narrow one of them")
        members[matching[0] + 1 if matching else 0].append(candidate)
    for index, rule in enumerate(rules):
        if index not in used and not rule.optional:
            problems.append(
                f"rule {index} ({rule.match}) matches no parameter: correct it, or give it 'optional: true'"
            )
    if problems:
        shown = problems[:5] + ([f"and {len(problems) - 5} more"] if len(problems) > 5 else [])
        raise ParameterGroupError("; ".join(shown))
    groups = []
    for index, group in enumerate(members):
        if group:
            named = [(c.names[0], c.tensor) if c.names else c.tensor for c in group]
            groups.append({"params": named, **(rules[index - 1].options if index else {})})
    return groups
