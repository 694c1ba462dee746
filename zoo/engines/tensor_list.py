"""Many tensors under the name of one: a rule written for one tensor runs over a whole list of them.

A :class:`TensorList` is a tensor by type and holds tensors by content. torch hands every function that meets one to
``__torch_function__``, which has two ways to answer: one ``torch._foreach_*`` call for the whole list where torch has
it for such operands, else the same function once a tensor. Both give what a loop over the tensors would give.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, NoReturn

import torch
from torch import Tensor

__all__ = ["TensorList"]

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


class TensorList(Tensor):
    """Tensors that take part in every operation side by side, and come out as a list again.

    Operands may be further lists of the same length, numbers, or plain tensors that all share (0-dim or broadcast).
    In-place operations change the tensors held and return the list itself. Reductions and comparisons give a list
    of their results; a function that returns several tensors gives a tuple of lists. What is no tensor (``shape``,
    ``dtype``, ``ndim``, …) is returned once if it is equal for all.

    On the CPU results are bit for bit those of a loop. On accelerators the ``_foreach`` kernels may round reductions,
    quotients and powers in another order, as they do in torch's own optimizers.

    Args:
        tensors: the tensors, one or more; they are held, not copied.

    Raises:
        ValueError: without tensors; for an operation on lists of different lengths; for an attribute that differs.
        TypeError: for what needs the one value or the elements of a tensor (``bool``, ``float``, iteration), and
            for an operation that would change one plain tensor by all of the list.
    """

    tensors: tuple[Tensor, ...]
    """The tensors themselves: the way out."""

    @staticmethod
    def __new__(cls: type[TensorList], tensors: Sequence[Tensor]) -> TensorList:
        items = tuple(tensors) if not isinstance(tensors, Tensor) else ()
        if not items:
            got = "one tensor, not a sequence of them" if isinstance(tensors, Tensor) else "no tensors"
            raise ValueError(f"TensorList: got {got}; give a list or tuple of at least one tensor")
        for index, item in enumerate(items):
            if not isinstance(item, Tensor) or isinstance(item, TensorList):
                raise TypeError(f"TensorList: item {index} is a {type(item).__name__}; every item must be a tensor")
        return _listed(items)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        kwargs = kwargs or {}
        whole = _WHOLE.get(func)
        result = NotImplemented if whole is None else whole(args, kwargs)
        return _one_by_one(func, args, kwargs) if result is NotImplemented else result

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> NoReturn:
        raise TypeError(f"TensorList: {func} was called past __torch_function__, where a list has no data of its own")

    def __iter__(self) -> NoReturn:
        _refuse("iteration", (self,), {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"TensorList({', '.join(f'{t.dtype}{list(t.shape)}' for t in self.tensors)})"

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)


def _listed(tensors: tuple[Tensor, ...]) -> TensorList:
    made: TensorList = Tensor._make_wrapper_subclass(TensorList, (0,))  # type: ignore[attr-defined]
    made.tensors = tensors
    return made


def _name(func: Callable[..., Any]) -> str:
    of_attribute = func.__name__ in ("__get__", "__set__", "__delete__")
    return str(func.__self__.__name__ if of_attribute else func.__name__)  # type: ignore[attr-defined]


def _refuse(name: str, args: Args, kwargs: Kwargs) -> NoReturn:
    count = len(next(_lists_in((args, *kwargs.values()))).tensors)
    raise TypeError(
        f"TensorList: {name} needs one tensor, this stands for {count}; choose with torch.where instead of a branch, "
        "or go through .tensors"
    )


# One by one: the same function, once a tensor.


def _one_by_one(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    lists = tuple(_lists_in((args, *kwargs.values())))
    count = _common_length(_name(func), lists)
    _check_target(_name(func), args, kwargs)
    if kwargs:
        by_name = zip(*(_spread(value, count) for value in kwargs.values()), strict=False)
        named = (dict(zip(kwargs, row, strict=True)) for row in by_name)
        results = [func(*row, **options) for row, options in zip(_rows(args, count), named, strict=True)]
    else:
        results = [func(*row) for row in _rows(args, count)]
    return _gathered(func, results, lists)


def _lists_in(value: Any) -> Iterator[TensorList]:
    if isinstance(value, TensorList):
        yield value
    elif type(value) in (tuple, list):
        for part in value:
            yield from _lists_in(part)


def _spread(value: Any, count: int) -> Iterable[Any]:
    """The value for each tensor in turn; lists inside tuples and lists are taken apart as well."""
    if isinstance(value, TensorList):
        return value.tensors
    if type(value) in (tuple, list) and any(_lists_in(value)):
        return map(type(value), _rows(value, count))
    return repeat(value, count)


def _rows(values: Sequence[Any], count: int) -> Iterable[tuple[Any, ...]]:
    return zip(*(_spread(value, count) for value in values), strict=True) if values else repeat((), count)


def _common_length(name: str, lists: Sequence[TensorList]) -> int:
    counts = {len(x.tensors) for x in lists}
    if len(counts) > 1:
        raise ValueError(f"TensorList: {name} of lists of {' and '.join(map(str, sorted(counts)))} tensors; pair equal lengths")
    return counts.pop()


def _check_target(name: str, args: Args, kwargs: Kwargs) -> None:
    changes_first = name.endswith("_") and not name.endswith("__") or name == "__setitem__"
    targets = (*(args[:1] if changes_first else ()), kwargs.get("out"))
    if any(isinstance(target, Tensor) and not isinstance(target, TensorList) for target in targets):
        raise TypeError(f"TensorList: {name} would write every tensor of a list into one plain tensor; make its target a list")


def _gathered(func: Callable[..., Any], results: Sequence[Any], lists: Sequence[TensorList]) -> Any:
    """One result out of those of each tensor."""
    first = results[0]
    if all(isinstance(result, Tensor) for result in results):
        # Functions that return their argument (in place, out=, .to() with nothing to do) return the list itself.
        for x in lists:
            if first is x.tensors[0] and all(map(operator.is_, results, x.tensors)):
                return x
        return _listed(tuple(results))
    if isinstance(first, (tuple, list)) and any(isinstance(part, Tensor) for part in first):
        if len({len(result) for result in results}) == 1:
            parts = [_gathered(func, part, lists) for part in zip(*results, strict=True)]
            return getattr(type(first), "_make", type(first))(parts)
    elif all(type(result) is type(first) and result == first for result in results):
        return first
    shown = sorted({repr(result) if not isinstance(result, (tuple, list)) or isinstance(result, torch.Size) else f"{len(result)} parts" for result in results})
    raise ValueError(
        f"TensorList: {_name(func)} is not the same for all tensors ({', '.join(shown[:3])}); compute what depends on "
        "it in a function that runs once a tensor, or go through .tensors"
    )


# As a whole: one call for the list.


@dataclass(frozen=True)
class _Foreach:
    """One ``torch._foreach_*`` function and what its overloads take.

    A signature has a letter an operand: L for a list of tensors, S for a number, T for one 0-dim tensor.
    """

    run: Callable[..., Any]
    signatures: Mapping[str, frozenset[str]]
    """The options of each signature."""
    in_place: _Foreach | None = None
    """The variant that writes into the first operand; None where this is it."""

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        if kwargs:
            if self.in_place and kwargs.get("out") is args[0]:
                return self.in_place(args, {name: value for name, value in kwargs.items() if name != "out"})
            if any(isinstance(value, Tensor) for value in kwargs.values()):
                return NotImplemented
        lists = [arg for arg in args if isinstance(arg, TensorList)]
        if not lists or (self.in_place is None and not isinstance(args[0], TensorList)):
            return NotImplemented
        kinds = "".join(_kind(arg, lists[0].tensors[0]) for arg in args)
        if kinds not in self.signatures:
            kinds = kinds.replace("T", "L")
        if kinds not in self.signatures or not kwargs.keys() <= self.signatures[kinds]:
            return NotImplemented
        count = _common_length(self.run.__name__, lists)
        operands = [
            arg.tensors if isinstance(arg, TensorList) else (arg,) * count if kind == "L" else arg
            for arg, kind in zip(args, kinds, strict=True)
        ]
        results = self.run(*operands, **kwargs)
        return args[0] if self.in_place is None else _listed(tuple(results))
