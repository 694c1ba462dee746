"""The command line: output, exit codes, errors without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli import app


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_list_has_a_line_an_optimizer_and_needs_no_torch() -> None:
    code = "import sys; from zoo.cli import app; app(['list'], standalone_mode=False); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "False"
    assert {line.split()[0] for line in lines[1:-2] if not line.startswith(" ")} == set(zoo.list_optimizers())


def test_list_as_json_and_markdown_and_filtered() -> None:
    records = json.loads(invoke("list", "--json"))
    assert [record["name"] for record in records] == zoo.list_optimizers()
    assert records[0]["paper"]["title"]
    assert invoke("list", "adamw", "--markdown").splitlines()[2].startswith("| `adamw` | adaptive | 2019 |")
    assert [r["name"] for r in json.loads(invoke("list", "--json", "--family", "sign"))] == zoo.list_optimizers(
        family="sign"
    )


@pytest.mark.parametrize("name", zoo.list_optimizers())
def test_show_tells_options_state_and_source(name: str) -> None:
    text = invoke("show", name)
    spec = zoo.optimizer_spec(name)
    assert text.startswith(f"{name} ({spec.family})")
    for field in zoo.optimizer_config(name).model_fields:
        assert field in text
    assert f'zoo.create_optimizer("{name}", model.parameters())' in text
    assert "bytes an element" in text


def test_schema_is_json_schema() -> None:
    schema = json.loads(invoke("schema", "adamw"))
    assert schema["properties"]["weight_decay"]["minimum"] == 0
    assert schema["additionalProperties"] is False


def test_an_unknown_name_is_one_line_on_stderr_and_exit_code_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zoo.cli", "show", "adma"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("zoo: unknown optimizer 'adma'; closest: adam")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_version_and_help() -> None:
    assert invoke("--version").strip() == zoo.__version__
    text = invoke("--help")
    for command in ("list", "show", "schema", "doctor", "race"):
        assert command in text


def test_doctor_is_content_with_the_built_in_plugins() -> None:
    assert "optimizer-zoo" in invoke("doctor")
