"""Many tensors that a rule written for one tensor can be given: every operation runs on each of them.

Where torch has a ``_foreach_`` kernel for an operation, one call serves the whole list; elsewhere the operation
runs tensor by tensor. Both give what a loop over the tensors would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

__all__ = ["TensorList"]

_UNARY = ("abs", "neg", "sqrt", "sign", "exp", "log", "floor", "ceil", "round", "reciprocal", "tanh", "sigmoid", "erf")
_BINARY = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max")
_TERNARY = ("addcmul", "addcdiv", "lerp")


def _kernels() -> dict[str, Callable[..., Any]]:
    """Operation name → foreach kernel, for those that this torch has; in-place ones end in ``_``."""
    found: dict[str, Callable[..., Any]] = {}
    for name in (*_UNARY, *_BINARY, *_TERNARY, "copy", "zero"):
        for spelled in (name, f"{name}_"):
            kernel = getattr(torch, f"_foreach_{spelled}", None)
            if kernel is not None:
                found[spelled] = kernel
    return found


_KERNELS = _kernels()
_SYNONYMS = {"negative": "neg", "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div"}
_OPERATORS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__pow__": "pow",
    "__neg__": "neg", "__abs__": "abs",
}  # fmt: skip
_MAPPED_OPERATORS = (
    "__rsub__", "__rtruediv__", "__rpow__", "__lt__", "__le__", "__gt__", "__ge__", "__and__", "__or__", "__xor__",
    "__invert__", "__matmul__", "__rmatmul__", "__getitem__", "__mod__", "__floordiv__",
)  # fmt: skip


class TensorList:
    """A list of tensors with a tensor's operators, methods and functions.

    Args:
        tensors: at least one; reductions of a list give a list of 0-dim tensors, which multiply a list each its own.

    Attributes such as ``shape`` or ``ndim`` are those that all tensors share; where they differ, asking is an error.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __iter__(self) -> NoReturn:
        raise TypeError("a TensorList stands for one tensor and can't be iterated; its tensors are in .tensors")

    def __bool__(self) -> NoReturn:
        raise TypeError("the truth of a TensorList is not one value; use torch.where instead of a branch")

    def __repr__(self) -> str:
        return f"TensorList({self.tensors!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        attribute = getattr(torch.Tensor, name)
        if callable(attribute):
            return lambda *args, **kwargs: _call(name, attribute, (self, *args), kwargs)
        return _joined([getattr(tensor, name) for tensor in self.tensors], f"attribute {name!r}")

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _call(getattr(func, "__name__", ""), func, args, kwargs or {})


def _call(name: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    kernel = _KERNELS.get(_SYNONYMS.get(name, name))
    if kernel is not None and _fits_kernel(name, args, kwargs):
        plain = [arg.tensors if isinstance(arg, TensorList) else arg for arg in args]
        if "value" in kwargs:  # the foreach kernels of addcmul and addcdiv take it by position
            plain.append(kwargs["value"])
        result = kernel(*plain, **{k: v for k, v in kwargs.items() if k == "alpha"})
        return args[0] if name.endswith("_") else TensorList(result)
    count = max(len(leaf) for leaf in _lists((args, kwargs)))
    results = [func(*_picked(args, i), **_picked(kwargs, i)) for i in range(count)]
    if name.endswith("_") and not name.endswith("__") and isinstance(args[0], TensorList):
        return args[0]
    return _joined(results, f"{name or func}()")


def _fits_kernel(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if not isinstance(args[0], TensorList) or set(kwargs) - {"value", "alpha"}:
        return False
    if "alpha" in kwargs and not isinstance(args[1], TensorList):
        return False
    if any(isinstance(value, (Tensor, TensorList)) for value in kwargs.values()):
        return False
    tensors, others = args[0].tensors, args[1:]
    if name.rstrip("_") in ("maximum", "minimum", *_TERNARY, "copy") and not isinstance(others[0], TensorList):
        return False
    for other in others:
        if isinstance(other, TensorList):
            # The kernels promote dtypes differently from torch's operators; equal dtypes are safe.
            if any(a.dtype is not b.dtype for a, b in zip(tensors, other.tensors, strict=True)):
                return name == "copy_"
        elif isinstance(other, Tensor) or isinstance(other, bool) or not isinstance(other, (int, float)):
            return False
        elif not tensors[0].is_floating_point():
            return False
    return len({tensor.dtype for tensor in tensors}) == 1


def _lists(value: Any) -> Iterator[TensorList]:
    if isinstance(value, TensorList):
        yield value
    elif isinstance(value, (tuple, list)):
        for entry in value:
            yield from _lists(entry)
    elif isinstance(value, dict):
        yield from _lists(list(value.values()))


def _picked(value: Any, index: int) -> Any:
    """The arguments of the call for tensor ``index``."""
    if isinstance(value, TensorList):
        return value.tensors[index]
    if isinstance(value, (tuple, list)):
        picked = [_picked(entry, index) for entry in value]
        return type(value)(*picked) if hasattr(value, "_fields") else type(value)(picked)
    if isinstance(value, dict):
        return {key: _picked(entry, index) for key, entry in value.items()}
    return value


def _joined(results: list[Any], what: str) -> Any:
    """The results of the calls as one: tensors as a list, tuples as a tuple of lists, equal values as that value."""
    first = results[0]
    if isinstance(first, Tensor):
        return TensorList(results)
    if isinstance(first, tuple) and any(isinstance(entry, Tensor) for entry in first):
        parts = [_joined(list(part), what) for part in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if all(result == first for result in results[1:]):
        return first
    raise ValueError(f"{what} differs between the tensors of a TensorList; wrap what depends on it in helpers.per_tensor")


def _operator(name: str, torch_name: str) -> Callable[..., Any]:
    def method(self: TensorList, *args: Any) -> Any:
        return _call(torch_name, getattr(torch.Tensor, torch_name), (self, *args), {})

    method.__name__ = name
    return method


for _name, _torch_name in _OPERATORS.items():
    setattr(TensorList, _name, _operator(_name, _torch_name))
for _name in _MAPPED_OPERATORS:
    setattr(TensorList, _name, _operator(_name, _name))
