"""A stranger's package, built into a wheel and installed, is found by name in a fresh process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parent / "plugin_packages"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny plugin installed from its wheel."""
    work = tmp_path_factory.mktemp("plugin")
    source = work / "source"
    shutil.copytree(PACKAGES / "zoo-tiny", source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(work), str(source)], check=True
    )
    (wheel,) = work.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(work / "site"), str(wheel)], check=True)
    return work / "site"


def run(site: Path, code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, cwd=site
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_listed_without_torch(site: Path) -> None:
    found = run(
        site,
        "import json, sys, zoo; spec = zoo.optimizer_spec('Tiny-CBRT');"
        "print(json.dumps([zoo.list_optimizers(family='tiny'), spec.name, 'torch' in sys.modules]))",
    )
    assert json.loads(found) == [["tiny_step"], "tiny_step", False]


def test_it_trains_like_any_other(site: Path) -> None:
    found = run(
        site,
        "import torch, zoo; p = torch.nn.Parameter(torch.full((3,), 8.0));"
        "opt = zoo.create_optimizer('tiny_step', [p], lr=0.5); p.grad = torch.full((3,), 8.0); opt.step();"
        "print(p.tolist(), opt.state_dict()['param_groups'][0]['optimizer'])",
    )
    assert found.strip() == "[7.0, 7.0, 7.0] tiny_step"


def test_the_command_line_shows_it(site: Path) -> None:
    found = run(site, "from zoo.cli import app; app(['show', 'tiny_step'], standalone_mode=False)")
    assert "Steps along the cube root of the gradient." in found
    assert "momentum" in found
