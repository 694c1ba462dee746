"""Saving and loading an optimizer's state, atomically and without changing what was saved."""

from __future__ import annotations

import logging
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .optimizer import BaseOptimizer

__all__ = ["Hyperparams", "load", "with_fresh_state"]

Hyperparams = Literal["load", "keep"]
logger = logging.getLogger("zoo")


def with_fresh_state(opt: BaseOptimizer[Any], saved: dict[str, Any]) -> dict[str, Any]:
    """``saved`` with fresh state for the trainable parameters that have none, if any has some; small views copied."""
    # Rules without state have empty entries while they run; torch's SGD has none either.
    state = {
        index: {name: _compact(tensor) for name, tensor in value.items()}
        for index, value in saved["state"].items()
        if value
    }
    saved["state"] = state
    if not state:
        return saved
    position = 0
    for group in opt.param_groups:
        for p in group["params"]:
            if p.requires_grad and position not in state:
                fresh = opt._fresh_state(p, group)
                if fresh:
                    state[position] = fresh
            position += 1
    saved["state"] = dict(sorted(state.items()))
    return saved


def _compact(value: Any) -> Any:
    """A view into a larger buffer as a tensor of its own, so that saving it does not save the buffer."""
    plain = type(value) is Tensor and value.layout is torch.strided
    if plain and value.untyped_storage().nbytes() > value.numel() * value.element_size():
        return value.clone()
    return value


def load(
    opt: BaseOptimizer[Any], state_dict: dict[str, Any], *, hyperparams: Hyperparams, strict: bool, assign: bool
) -> None:
    """Load ``state_dict`` into ``opt``: everything is checked and built first, then put in place at once."""
    if hyperparams not in ("load", "keep"):
        raise ValueError(f"hyperparams must be 'load' or 'keep', not {hyperparams!r}")
    state_dict = dict(state_dict)
    for pre_hook in opt._optimizer_load_state_dict_pre_hooks.values():
        replaced = pre_hook(opt, state_dict)
        if replaced is not None:
            state_dict = replaced
    saved_groups = state_dict["param_groups"]
    _check_sizes(opt, saved_groups)
    _check_owner(opt, saved_groups, strict)
    pairs = zip(opt.param_groups, saved_groups, strict=True)
    groups = [_merged_group(opt, group, saved, hyperparams) for group, saved in pairs]
    matches = _match(opt, saved_groups, strict)
    state: dict[Tensor, dict[str, Any]] = {}
    for key, value in state_dict["state"].items():
        if key not in matches:
            if isinstance(key, Tensor) or not strict:
                continue
            raise ValueError(f"{opt._name()}: the checkpoint has state for parameter {key!r}, which stands in no group")
        p, group_index = matches[key]
        if p is None:
            continue
        adapted = _adapted_state(opt, p, groups[group_index], value, strict=strict, assign=assign)
        if adapted:
            state[p] = adapted
    if hyperparams == "load":
        _report_changes(opt, groups)
    opt.__setstate__({"state": defaultdict(dict, state), "param_groups": groups})
    opt._tie_memory()
    for post_hook in opt._optimizer_load_state_dict_post_hooks.values():
        post_hook(opt)


def _check_sizes(opt: BaseOptimizer[Any], saved_groups: Sequence[Mapping[str, Any]]) -> None:
    if len(opt.param_groups) != len(saved_groups):
        raise ValueError(
            f"{opt._name()}: loaded state dict has a different number of parameter groups "
            f"({len(saved_groups)}) than this optimizer ({len(opt.param_groups)})"
        )
    for index, (group, saved) in enumerate(zip(opt.param_groups, saved_groups, strict=True)):
        if len(group["params"]) != len(saved["params"]):
            raise ValueError(
                f"{opt._name()}: loaded state dict contains a parameter group that doesn't match the size of "
                f"optimizer's group (param_groups[{index}]: {len(saved['params'])} saved, {len(group['params'])} here)"
            )


def _check_owner(opt: BaseOptimizer[Any], saved_groups: Sequence[Mapping[str, Any]], strict: bool) -> None:
    for group, saved in zip(opt.param_groups, saved_groups, strict=True):
        owner = saved.get("optimizer")
        # A class used directly has no registered name: its own name lacks the underscores.
        if strict and owner is not None and owner.replace("_", "") != group["optimizer"].replace("_", ""):
            raise ValueError(
                f"the checkpoint was written by optimizer {owner!r}, this one is {group['optimizer']!r}; "
                "create that optimizer, or pass strict=False to drop state that does not fit"
            )


def _merged_group(
    opt: BaseOptimizer[Any], group: dict[str, Any], saved: Mapping[str, Any], hyperparams: Hyperparams
) -> dict[str, Any]:
    fields = opt.Config.model_fields
    merged = dict(group)
    for key, value in saved.items():
        if key in ("params", "optimizer") or (key == "param_names" and "param_names" in group):
            continue
        if key in fields and hyperparams == "keep":
            continue
        merged[key] = _own_value(value, group.get(key))
    return merged


def _own_value(value: Any, present: Any) -> Any:
    """A copy of a saved value; a list where a tuple stands becomes one."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    return tuple(value) if isinstance(value, list) and isinstance(present, tuple) else deepcopy(value)


def _report_changes(opt: BaseOptimizer[Any], groups: Sequence[Mapping[str, Any]]) -> None:
    changes = []
    for index, (old, new) in enumerate(zip(opt.param_groups, groups, strict=True)):
        for name in opt.Config.model_fields:
            before, after = old[name], new[name]
            if name == "lr":  # a scheduler's present value is no change of configuration
                before, after = old.get("initial_lr", before), new.get("initial_lr", after)
            if not _same(before, after):
                changes.append(f"param_groups[{index}].{name}: {before} -> {after}")
    if changes:
        warnings.warn(
            f"{opt._name()}: the checkpoint's options replace those given here ({'; '.join(changes)}); "
            "load_state_dict(..., hyperparams='keep') keeps yours",
            stacklevel=4,
        )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool(torch.equal(torch.as_tensor(a).cpu().double(), torch.as_tensor(b).cpu().double()))
    return bool(a == b)


def _match(
    opt: BaseOptimizer[Any], saved_groups: Sequence[Mapping[str, Any]], strict: bool
) -> dict[Any, tuple[Tensor | None, int]]:
    """Saved parameter id → (parameter, index of its group): by name where both sides have names, else by position."""
    named = all("param_names" in g for g in opt.param_groups) and all("param_names" in g for g in saved_groups)
    by_position = [
        (saved_id, p, index)
        for index, (group, saved) in enumerate(zip(opt.param_groups, saved_groups, strict=True))
        for saved_id, p in zip(saved["params"], group["params"], strict=True)
    ]
    if not named:
        return {saved_id: (p, index) for saved_id, p, index in by_position}
    ours = {
        name: (p, index)
        for index, group in enumerate(opt.param_groups)
        for name, p in zip(group["param_names"], group["params"], strict=True)
    }
    theirs = {name: i for g in saved_groups for name, i in zip(g["param_names"], g["params"], strict=True)}
    missing, unexpected = sorted(ours.keys() - theirs.keys()), sorted(theirs.keys() - ours.keys())
    if strict and (missing or unexpected):
        raise ValueError(
            f"{opt._name()}: parameter names differ from the checkpoint's: missing there {missing}, "
            f"unexpected there {unexpected}; rename them, or pass strict=False to load those that match"
        )
    return {saved_id: ours.get(name, (None, 0)) for name, saved_id in theirs.items()}


def _adapted_state(
    opt: BaseOptimizer[Any], p: Tensor, group: dict[str, Any], saved: Mapping[str, Any], *, strict: bool, assign: bool
) -> dict[str, Any]:
    expected = opt._fresh_state(torch.empty_like(p, device="meta"), group)
    given = {name: value for name, value in saved.items() if value is not None}
    foreign = [name for name in given if name not in expected]
    label = opt._label(p)
    if foreign:
        matching = [name for name in given if name in expected and name != "step"]
        if strict and not matching and any(name != "step" for name in expected):
            raise ValueError(
                f"{opt._name()}: state {sorted(foreign)} of parameter {label} belongs to another optimizer; "
                f"expected {sorted(expected)}"
            )
        logger.warning("%s: dropped unused state %s of parameter %s", opt._name(), sorted(foreign), label)
    fresh: dict[str, Tensor] | None = None
    adapted: dict[str, Any] = {}
    for name, like in expected.items():
        if name not in given:
            fresh = fresh or opt._fresh_state(p, group)
            adapted[name] = opt.missing_state(name, fresh[name], given)
        elif name == "step":
            adapted[name] = _step_tensor(given[name], p, group)
        else:
            value = given[name] if isinstance(given[name], Tensor) else torch.as_tensor(given[name], dtype=like.dtype)
            if value.shape != like.shape:
                raise ValueError(
                    f"{opt._name()}: state {name!r} of parameter {label} has shape {tuple(value.shape)}, "
                    f"but the parameter needs {tuple(like.shape)}; nothing was loaded"
                )
            # Saved dtypes are kept, whatever the parameter's; only a chosen state_dtype converts.
            dtype = like.dtype if group["state_dtype"] and like.is_floating_point() else value.dtype
            adapted[name] = _adapted_tensor(value, p.device, dtype, assign=assign)
    return adapted


def _step_tensor(value: Any, p: Tensor, group: Mapping[str, Any]) -> Tensor:
    device = p.device if group["capturable"] or group["fused"] else torch.device("cpu")
    if isinstance(value, Tensor):
        return value.detach().reshape(()).to(device=device, dtype=torch.float32, copy=True)
    return torch.tensor(float(value), dtype=torch.float32, device=device)


def _adapted_tensor(value: Tensor, device: torch.device, dtype: torch.dtype, *, assign: bool) -> Tensor:
    if assign and value.dtype == dtype and value.device == device:
        return value.detach()
    return value.detach().to(device=device, dtype=dtype, copy=True)
