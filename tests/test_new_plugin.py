"""``zoo new-plugin``: what it writes builds, installs, passes its own tests and is listed, unedited."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from zoo.cli import app
from zoo.new_plugin import FILES, TEMPLATES, NewPluginError, write_plugin


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new package, as written."""
    return write_plugin("Test-Optimizers", tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module")
def site(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its wheel installed."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(package)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


def run(site: Path, cwd: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "ZOO_STRICT": "1"}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False, cwd=cwd
    )


def test_it_passes_its_own_tests(package: Path, site: Path) -> None:
    done = run(site, package, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_it_is_listed_shown_and_healthy(site: Path) -> None:
    assert "test_optimizers_step" in run(site, site, "-m", "zoo.cli", "list", "--family", "test_optimizers").stdout
    shown = run(site, site, "-m", "zoo.cli", "show", "test-optimizers-step").stdout
    assert "exp_avg" in shown
    assert "size ε" in shown.lower()
    assert run(site, site, "-m", "zoo.cli", "doctor").returncode == 0


def test_its_golden_numbers_are_its_references(package: Path) -> None:
    golden = package / "tests" / "golden" / "test_optimizers_step.json"
    before = golden.read_text()
    subprocess.run([sys.executable, "tests/reference.py"], cwd=package, check=True)
    assert golden.read_text() == before


def test_it_is_clean_by_the_rules_of_this_project(package: Path) -> None:
    rules = ["--select", "E,F,I,B,UP,SIM,RUF,PT,C4", "--ignore", "E501,RUF001,RUF002,RUF003"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", *rules, "."],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_nothing_of_the_template_is_left_unfilled_or_unused(tmp_path: Path) -> None:
    package = write_plugin("mine", tmp_path)
    for path in package.rglob("*"):
        assert "$" not in path.name
        assert path.is_dir() or "$" not in path.read_text().replace("${{ matrix.python }}", ""), path
    assert {path.name for path in TEMPLATES.iterdir()} == set(FILES.values())


@pytest.mark.parametrize(
    ("name", "optimizer", "problem"),
    [
        ("", None, "no name for a package"),
        ("../up", None, "no name for a package"),
        ("a b", None, "no name for a package"),
        ("class", None, "no name for a Python module"),
        ("mine", "not!a!name", "no name for a Python module"),
        ("mine", "plugin", "is a file of the package already"),
        ("json", None, "would hide the one that is there"),
        ("Torch", None, "would hide the one that is there"),
        ("zoo", None, "would hide the one that is there"),
        ("mine", "adam", "'adam' is already an optimizer (zoo_plugins.adaptive.adam:Adam)"),
    ],
)
def test_a_name_that_would_not_work_is_refused_and_nothing_written(
    tmp_path: Path, name: str, optimizer: str | None, problem: str
) -> None:
    with pytest.raises(NewPluginError) as caught:
        write_plugin(name, tmp_path, optimizer)
    assert problem in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    kept = tmp_path / "mine" / "work.py"
    kept.parent.mkdir()
    kept.write_text("precious")
    with pytest.raises(NewPluginError, match="exists already"):
        write_plugin("mine", tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "work.py"]
    assert kept.read_text() == "precious"


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert (write_plugin("mine", tmp_path, "Soft-Step") / "src" / "mine" / "soft_step.py").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_command_says_what_was_written_and_what_comes_next(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["new-plugin", "mine", "--into", str(tmp_path)])
    assert result.exit_code == 0
    assert f"written: {tmp_path / 'mine' / 'pyproject.toml'}" in result.output
    assert "zoo list --family mine" in result.output
    again = CliRunner().invoke(app, ["new-plugin", "mine", "--into", str(tmp_path)])
    assert again.exit_code == 2
    assert "exists already" in again.output
