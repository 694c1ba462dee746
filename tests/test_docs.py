"""The generated pages and the README are in step with the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_generated_pages_are_in_step() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + "run `make docs`"


def test_links_between_pages_lead_somewhere() -> None:
    import re

    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+\.md)[)#]", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
