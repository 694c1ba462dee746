"""The distribution: what importing costs, and that nothing is left out of it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import zoo

tomllib = pytest.importorskip("tomllib")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_importing_zoo_imports_no_torch_and_no_pydantic() -> None:
    code = "import sys, zoo; zoo.list_optimizers(); print(sorted({'torch', 'pydantic', 'rich', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_package_is_in_the_distribution() -> None:
    folders = {"zoo": ROOT / "zoo", "zoo_plugins": ROOT / "plugins"}
    present = {
        ".".join((name, *path.parent.relative_to(folder).parts))
        for name, folder in folders.items()
        for path in folder.rglob("__init__.py")
    }
    assert present == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_family_is_an_entry_point() -> None:
    families = {path.parent.name for path in (ROOT / "plugins").glob("*/plugin.py")}
    declared = PROJECT["project"]["entry-points"]["zoo.plugins"]
    assert declared == {family: f"zoo_plugins.{family}.plugin" for family in families}
    assert families <= {entry.name for entry in entry_points(group="zoo.plugins")}


def test_every_public_name_exists_and_is_documented() -> None:
    for name in zoo.__all__:
        value = getattr(zoo, name)
        assert name == "__version__" or value.__doc__, name
    assert set(dir(zoo)) >= set(zoo.__all__)


def test_the_core_never_imports_the_built_in_plugins() -> None:
    for path in (ROOT / "zoo").rglob("*.py"):
        assert "zoo_plugins" not in path.read_text(), path


def test_optimizer_files_are_short() -> None:
    long = {
        path.name: count
        for path in (ROOT / "plugins").glob("*/*.py")
        if path.name != "plugin.py" and (count := len(path.read_text().splitlines())) > 120
    }
    assert long == {}
