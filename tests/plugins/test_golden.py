"""Every optimizer reproduces its reference's trajectory, in every engine.

The records of ``golden_cases/`` (a module a family) say which file belongs to which call.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest
import torch

import zoo

from . import golden_cases
from .golden_cases.case import Case

GOLDEN = Path(__file__).parents[1] / "golden"
PROBLEM = json.loads((GOLDEN / "problem.json").read_text())


def _cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for module in pkgutil.iter_modules(golden_cases.__path__):
        for name, case in getattr(
            importlib.import_module(f"{golden_cases.__name__}.{module.name}"), "CASES", {}
        ).items():
            assert name not in cases, f"case {name} is claimed twice"
            cases[name] = case
    return cases


CASES = _cases()


def trajectory_error(case: Case, reference: dict[str, Any], engine: str) -> float:
    """Largest relative error over the recorded steps (and the evaluation weights)."""
    dtype = getattr(torch, reference["dtype"])
    params = [
        torch.nn.Parameter(torch.tensor(values, dtype=dtype).reshape(shape))
        for values, shape in zip(PROBLEM["params"], PROBLEM["shapes"], strict=True)
    ]
    opt = zoo.create_optimizer(case.optimizer, params, engine=engine, **case.call(reference["kwargs"]))
    if hasattr(opt, "train"):
        opt.train()
    worst = 0.0

    def compare(key: str) -> float:
        errors = []
        for p, values in zip(params, reference["params"][key], strict=True):
            expected = torch.tensor(values, dtype=dtype).reshape(p.shape)
            scale = expected.abs().clamp(min=1e-3 * float(expected.abs().max()))
            errors.append(float(((p.detach() - expected).abs() / scale).max()))
        return max(errors)

    for step, grads in enumerate(PROBLEM["grads"], start=1):
        for p, values in zip(params, grads, strict=True):
            p.grad = torch.tensor(values, dtype=dtype).reshape(p.shape)
        opt.step()
        if str(step) in reference["params"]:
            worst = max(worst, compare(str(step)))
    if "eval" in reference["params"]:
        opt.eval()
        worst = max(worst, compare("eval"))
    return worst


@pytest.mark.parametrize("engine", ["loop", "blocked", "foreach"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_trajectory_is_the_references(name: str, engine: str) -> None:
    case, reference = CASES[name], json.loads((GOLDEN / f"{name}.json").read_text())
    error = trajectory_error(case, reference, engine)
    if case.departs:
        assert reference["kind"] == "port", f"{name} is binding: no departure is allowed"
        assert error > case.rtol, f"{name} agrees after all: drop 'departs'"
    else:
        assert error <= max(case.rtol, 1e-4 if reference["dtype"] == "float32" else 0.0)


def test_every_reference_of_a_registered_optimizer_is_used() -> None:
    files = {path.name.removesuffix(".json") for path in GOLDEN.glob("*.json")} - {"problem"}
    assert set(CASES) <= files
    names = {name.replace("_", "") for name in zoo.list_optimizers()}
    assert {file for file in files if file.split(".")[0].replace("_", "") in names} <= set(CASES)
