"""Many tensors under the name of one: a rule written for one tensor runs over a whole list of them.

A :class:`TensorList` is a tensor by type and holds tensors by content. torch hands every function that meets
one to ``__torch_function__``, which has two ways to answer: one ``torch._foreach_*`` call for the whole list
where torch has it for such operands, else the same function once a tensor. Either gives what a loop gives.
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

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


class TensorList(Tensor):
    """Tensors that take part in every operation side by side, and come out as a list again.

    Operands may be further lists of the same length, numbers, or plain tensors that all share (0-dim or
    broadcast). In-place operations change the tensors held and return the list itself. Reductions and
    comparisons give a list of their results; a function that returns several tensors gives a tuple of lists.
    What is no tensor (``shape``, ``dtype``, ``ndim``, …) is returned once if it is equal for all.

    On the CPU results are bit for bit those of a loop. On accelerators ``_foreach`` kernels may round norms,
    quotients and powers differently, as they do in torch's own optimizers. Where autograd records, every
    operation is a loop.

    Args:
        tensors: the tensors, one or more, each once; they are held, not copied.

    Raises:
        ValueError: without tensors; for an operation on lists of different lengths; for an attribute or a
            number of results that differs.
        TypeError: for what needs the value or the elements of one tensor (``bool``, ``float``, iteration);
            for an operation that would write all of the list into one plain tensor.
    """

    tensors: tuple[Tensor, ...]
    """The tensors themselves: the way out."""

    @staticmethod
    def __new__(cls: type[TensorList], tensors: Sequence[Tensor]) -> TensorList:
        if isinstance(tensors, Tensor):
            raise TypeError("TensorList: got one tensor; give a list or tuple of tensors")
        items = tuple(tensors)
        if not items:
            raise ValueError("TensorList: got no tensors; a list holds at least one")
        for index, item in enumerate(items):
            if not isinstance(item, Tensor) or isinstance(item, TensorList):
                raise TypeError(f"TensorList: item {index} is a {type(item).__name__}, not a tensor")
        return _listed(items)

    @classmethod
    def __torch_function__(
        cls, func: Function, types: Sequence[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        kwargs = kwargs or {}
        whole = _WHOLE.get(func) if args else None
        result = NotImplemented if whole is None else whole(args, kwargs)
        return _one_by_one(func, args, kwargs) if result is NotImplemented else result

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Function, types: Sequence[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> NoReturn:
        raise TypeError(f"TensorList: {func} got here past __torch_function__; a list has no data of its own")

    def __iter__(self) -> NoReturn:
        _refuse("iteration", (self,), {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"TensorList({', '.join(f'{t.dtype}{list(t.shape)}' for t in self.tensors)})"

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)


def _listed(tensors: Iterable[Tensor]) -> TensorList:
    made: TensorList = Tensor._make_wrapper_subclass(TensorList, (0,))
    made.tensors = tuple(tensors)
    return made


# One by one: the same function, once a tensor.


def _one_by_one(func: Function, args: Args, kwargs: Kwargs) -> Any:
    # An attribute arrives as the __get__ of its descriptor.
    name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__  # type: ignore[attr-defined]
    values = (*args, *kwargs.values())
    lists = tuple(_lists_in(values))
    count = _common_length(name, lists)
    in_place = (name.endswith("_") and not name.endswith("__")) or name == "__setitem__"
    target = args[0] if in_place and args else kwargs.get("out")
    if isinstance(target, Tensor) and not isinstance(target, TensorList):
        raise TypeError(f"TensorList: {name} would write {count} tensors into a plain one; write to a list")

    def once(*row: Any) -> Any:
        return func(*row[: len(args)], **dict(zip(kwargs, row[len(args) :], strict=True)))

    columns = (_column(value, count) for value in values)
    return _gathered(name, list(map(once if kwargs else func, *columns)), lists)


def _lists_in(values: Iterable[Any]) -> Iterator[TensorList]:
    for value in values:
        if isinstance(value, TensorList):
            yield value
        elif type(value) in (tuple, list):
            yield from _lists_in(value)


def _common_length(name: str, lists: Sequence[TensorList]) -> int:
    counts = {len(x.tensors) for x in lists}
    if len(counts) > 1:
        raise ValueError(f"TensorList: {name} of lists of {' and '.join(map(str, sorted(counts)))} tensors")
    return counts.pop()


def _column(value: Any, count: int) -> Iterable[Any]:
    """The value for each tensor in turn; a tuple or Python list that holds lists is taken apart."""
    if isinstance(value, TensorList):
        return value.tensors
    if type(value) in (tuple, list) and any(True for _ in _lists_in(value)):
        return map(type(value), zip(*(_column(part, count) for part in value), strict=True))
    return repeat(value, count)


def _gathered(name: str, results: Sequence[Any], lists: Sequence[TensorList]) -> Any:
    """One result out of one for each tensor."""
    first = results[0]
    if all(isinstance(result, Tensor) for result in results):
        # A function that returns its argument (in place, out=, .to() with nothing to do) returns the list.
        for x in lists:
            if first is x.tensors[0] and all(map(operator.is_, results, x.tensors)):
                return x
        return _listed(results)
    if isinstance(first, (tuple, list)) and any(isinstance(part, Tensor) for part in first):
        if len({len(result) for result in results}) == 1:
            parts = [_gathered(name, column, lists) for column in zip(*results, strict=True)]
            return getattr(type(first), "_make", type(first))(parts)
        results = [f"{len(result)} tensors" for result in results]
    elif all(type(result) is type(first) and result == first for result in results):
        return first
    found = ", ".join(sorted(set(map(str, results)))[:3])
    raise ValueError(
        f"TensorList: {name} is not the same for all tensors: {found}; "
        "compute what depends on it in a function that runs once a tensor, or go through .tensors"
    )


def _refuse(name: str, args: Args, kwargs: Kwargs) -> NoReturn:
    raise TypeError(
        f"TensorList: {name} needs one tensor, and this stands for {len(args[0].tensors)}; "
        "choose by torch.where instead of a branch, or go through .tensors"
    )


# As a whole: one call for the list.


@dataclass(frozen=True)
class _Foreach:
    """A ``torch._foreach_*`` function and what it takes.

    A signature is a letter an operand: L for a list of tensors, S for a number, T for one 0-dim tensor.
    """

    name: str
    run: Function
    signatures: Mapping[str, frozenset[str]]
    """The keywords that go with each signature."""

    def __call__(self, args: Args, kwargs: Kwargs) -> Any:
        lists = [arg for arg in args if isinstance(arg, TensorList)]
        in_place = self.name.endswith("_")
        # Where autograd records, the loop does: not every foreach function has a derivative.
        if torch.is_grad_enabled() or not lists or (in_place and lists[0] is not args[0]):
            return NotImplemented
        if kwargs.get("out") is args[0] and self.name + "_" in _FOREACH:
            return _FOREACH[self.name + "_"](args, {k: v for k, v in kwargs.items() if k != "out"})
        kinds = "".join(_kind(arg, lists[0].tensors[0]) for arg in args)
        if kinds == "TL" and self.name in ("add", "mul") and not kwargs:
            args, kinds = args[::-1], "LT"
        if kinds not in self.signatures:
            kinds = kinds.replace("T", "L")
        known = self.signatures.get(kinds)
        if known is None or any(k not in known or isinstance(v, Tensor) for k, v in kwargs.items()):
            return NotImplemented
        count = _common_length(self.name, lists)
        operands = (
            arg.tensors if isinstance(arg, TensorList) else (arg,) * count if kind == "L" else arg
            for arg, kind in zip(args, kinds, strict=True)
        )
        results = self.run(*operands, **kwargs)
        return args[0] if in_place else _listed(results)


def _kind(arg: Any, like: Tensor) -> str:
    if isinstance(arg, TensorList):
        return "L"
    if isinstance(arg, Tensor):
        # As one 0-dim tensor it is taken for a number: the result has the same dtype only if both have.
        return "T" if arg.ndim == 0 and arg.dtype == like.dtype and arg.device == like.device else "L"
    return "S" if _is_number(arg) else "?"


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def _foreach(name: str) -> _Foreach:
    """The foreach function of this name, with the signatures that its schemas list."""
    letters = {"List[Tensor]": "L", "number": "S", "Tensor": "T"}
    signatures: dict[str, frozenset[str]] = {}
    overloads = getattr(torch.ops.aten, f"_foreach_{name}")
    for overload in overloads.overloads():
        arguments = getattr(overloads, overload)._schema.arguments
        keywords = [a for a in arguments if a.kwarg_only or a.has_default_value()]
        operands = [letters.get(str(a.type), "?") for a in arguments if a not in keywords]
        if "?" not in operands and not any(a.is_out for a in arguments):
            signatures["".join(operands)] = frozenset(a.name for a in keywords)
    if name.startswith(("maximum", "minimum")):
        signatures.pop("LS", None)  # torch.maximum itself takes no number
    return _Foreach(name, getattr(torch, f"_foreach_{name}"), signatures)


# Functions that are a foreach function under a condition or another name, or two of them in a row.


def _dtypes(x: Any) -> set[torch.dtype]:
    return {t.dtype for t in x.tensors} if isinstance(x, TensorList) else set()


def _is_floating(x: Any) -> bool:
    return isinstance(x, TensorList) and all(dtype.is_floating_point for dtype in _dtypes(x))


def _copy_(args: Args, kwargs: Kwargs) -> Any:
    # Some versions of torch write a list of mixed dtypes as if all had the first one's.
    return _FOREACH["copy_"](args, kwargs) if len(_dtypes(args[0])) == 1 else NotImplemented


def _mul_(args: Args, kwargs: Kwargs) -> Any:
    # On the CPU the foreach kernel rounds the number to half precision first; mul_ does not.
    half = _is_number(args[-1]) and not _dtypes(args[0]).isdisjoint((torch.bfloat16, torch.float16))
    return NotImplemented if half and args[0].tensors[0].is_cpu else _FOREACH["mul_"](args, kwargs)


def _to(args: Args, kwargs: Kwargs) -> Any:
    x, *to = args
    dtypes = _dtypes(x)
    convert = not kwargs and len(to) == 1 and isinstance(to[0], torch.dtype) and to[0] not in dtypes
    if not convert or not dtypes or any(dtype.is_complex for dtype in dtypes):
        return NotImplemented
    return _listed(torch.empty_like(t, dtype=to[0]) for t in x.tensors).copy_(x)


def _norm(args: Args, kwargs: Kwargs) -> Any:
    # torch.norm calls the order p, torch.linalg.vector_norm calls it ord; both list every default.
    given = {k: v for k, v in kwargs.items() if v is not _NORM_DEFAULTS.get(k, ...)}
    order = given.pop("p" if "p" in given else "ord", 2)
    order = 2 if order == "fro" else order
    return NotImplemented if given or not _is_number(order) else _FOREACH["norm"](args, {"ord": order})


_NORM_DEFAULTS = {"dim": None, "keepdim": False, "dtype": None, "out": None}


def _square(args: Args, kwargs: Kwargs, suffix: str = "") -> Any:
    return _FOREACH["mul" + suffix](args * 2, kwargs) if _is_floating(args[0]) else NotImplemented


def _pow(args: Args, kwargs: Kwargs, suffix: str = "") -> Any:
    # torch.pow multiplies where the exponent is 2; the foreach kernels of some devices do not.
    if _is_number(args[-1]) and args[-1] == 2 and _is_floating(args[0]):
        return _FOREACH["mul" + suffix](args[:1] * 2, kwargs)
    return _FOREACH["pow" + suffix](args, kwargs)


def _rpow(args: Args, kwargs: Kwargs) -> Any:
    return torch.pow(args[1], args[0])


def _rsub(args: Args, kwargs: Kwargs) -> Any:
    # y - x as (-x) + y: the same number, unless -x leaves the range of an integer dtype.
    same = not kwargs and _is_floating(args[0]) and _is_number(args[-1])
    return args[0].neg().add_(args[-1]) if same else NotImplemented


def _rdiv(args: Args, kwargs: Kwargs) -> Any:
    return args[0].reciprocal() * args[1]


def _clamp(args: Args, kwargs: Kwargs, suffix: str = "") -> Any:
    given = {**dict(zip(("input", "min", "max"), args, strict=False)), **kwargs}
    x = given.pop("input")
    bounds = {side: given.pop(side) for side in ("min", "max") if given.get(side) is not None}
    split = len(bounds) == 1 or (bounds and all(map(_is_number, bounds.values())))
    if not split or any(value is not None for value in given.values()):
        return NotImplemented
    for side, bound in bounds.items():
        x = getattr(x, f"clamp_{side}{suffix}")(bound)
    return x


_FOREACH = {key[9:]: _foreach(key[9:]) for key in dir(torch) if key.startswith("_foreach_")}
_NEEDS_ONE = ["__bool__", "__int__", "__float__", "__complex__", "__index__", "__reduce_ex__"]
_BY_NAME: dict[str, Function] = {
    **_FOREACH,
    "copy_": _copy_,
    "mul_": _mul_,
    "to": _to,
    "norm": _norm,
    "square": _square,
    "square_": partial(_square, suffix="_"),
    "pow": _pow,
    "pow_": partial(_pow, suffix="_"),
    "__pow__": _pow,
    "__ipow__": partial(_pow, suffix="_"),
    "__rpow__": _rpow,
    "rsub": _rsub,
    "__rsub__": _rsub,
    "__rdiv__": _rdiv,
    "clamp": _clamp,
    "clamp_": partial(_clamp, suffix="_"),
    **{name: partial(_refuse, name) for name in (*_NEEDS_ONE, "item", "tolist", "numpy")},
}
_WHOLE: dict[Function, Function] = {torch.linalg.vector_norm: _norm} | {
    getattr(home, name): answer for home in (torch, Tensor) for name, answer in _BY_NAME.items() if hasattr(home, name)
}
"""What answers for the whole list, by the function of torch that was called."""
