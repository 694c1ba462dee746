"""A new plugin package, complete: what ``zoo new-plugin`` writes."""

from __future__ import annotations

import datetime
import importlib.util
import json
import keyword
import re
import runpy
import shutil
import tempfile
from pathlib import Path
from string import Template

from . import registry
from .errors import AmbiguousOptimizerError, UnknownOptimizerError

__all__ = ["NewPluginError", "write_plugin"]

TEMPLATES = Path(__file__).with_name("plugin-template")
FILES = {
    ".github/workflows/tests.yml": "workflow.yml.txt",
    ".gitignore": "gitignore.txt",
    "README.md": "README.md.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "src/$module/__init__.py": "init.py.txt",
    "src/$module/$optimizer.py": "optimizer.py.txt",
    "src/$module/plugin.py": "plugin.py.txt",
    "tests/reference.py": "reference.py.txt",
    "tests/test_$module.py": "test_module.py.txt",
}
"""What goes where."""


class NewPluginError(ValueError):
    """The package can't be written as asked; nothing was written."""


def write_plugin(name: str, into: Path = Path(), optimizer: str | None = None) -> Path:
    """Write a plugin package into a new folder and return that folder.

    Args:
        name: the distribution's name, such as ``"my-optimizers"``; also the folder's.
        into: where the folder goes.
        optimizer: name of its optimizer; default: the package's name with ``_step``.

    Raises:
        NewPluginError: a name is malformed or taken, or the folder exists; nothing was written.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*", name):
        raise NewPluginError(f"{name!r} is no name for a package; use letters and digits joined by '-'")
    module = re.sub(r"[-.]", "_", name).lower()
    optimizer = f"{module}_step" if optimizer is None else re.sub(r"[- ]", "_", optimizer).lower()
    for label, value in (("package", module), ("optimizer", optimizer)):
        if not value.isidentifier() or keyword.iskeyword(value):
            raise NewPluginError(f"{value!r} is no name for a Python module, so the {label} can't have it")
    if module in ("tests", "reference") or importlib.util.find_spec(module) is not None:
        raise NewPluginError(f"a package {module!r} would hide the one that is there; choose another name")
    if optimizer in ("plugin", "__init__"):
        raise NewPluginError(f"{optimizer}.py is a file of the package already; choose another name for the optimizer")
    _check_free(optimizer)
    folder = into / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NewPluginError(f"{folder} exists already; choose another name or place")
    values = {
        "distribution": name,
        "module": module,
        "optimizer": optimizer,
        "cls": "".join(part.capitalize() for part in optimizer.split("_")),
        "year": str(datetime.date.today().year),
    }
    into.mkdir(parents=True, exist_ok=True)
    # Written beside its place and moved there whole, so that an interruption leaves nothing half done.
    with tempfile.TemporaryDirectory(dir=into, prefix=f".{name}-") as scratch:
        draft = Path(scratch) / name
        for place, template in FILES.items():
            _write(draft / Template(place).substitute(values), _filled(template, values))
        _write(draft / "src" / module / "py.typed", "")
        golden = _golden(draft / "tests" / "reference.py")
        _write(draft / "tests" / "golden" / f"{optimizer}.json", golden)
        if folder.exists():
            folder.rmdir()
        shutil.move(draft, folder)
    return folder


def _check_free(optimizer: str) -> None:
    try:
        taken = registry.optimizer_spec(optimizer)
    except UnknownOptimizerError:
        return
    except AmbiguousOptimizerError as error:
        raise NewPluginError(f"{error}; choose another name for yours with --optimizer") from None
    raise NewPluginError(
        f"{optimizer!r} is already an optimizer ({taken.target}); choose another name for yours with --optimizer"
    )


def _filled(template: str, values: dict[str, str]) -> str:
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _golden(reference: Path) -> str:
    """The golden trajectory, by the reference that was just written."""
    return json.dumps(runpy.run_path(str(reference))["golden"](), indent=1) + "\n"
