"""The command line: ``zoo list``, ``zoo show``, ``zoo schema``, ``zoo race``. Nothing here imports torch before it must."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from . import __version__, registry
from .errors import AmbiguousOptimizerError, PluginError, UnknownOptimizerError
from .race.cli import race_command
from .spec import OptimizerSpec

__all__ = ["app", "main"]

app = typer.Typer(
    name="zoo",
    help="Any PyTorch optimizer by name.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SHAPES = ((768,), (768, 768), (64, 32, 3, 3))


def _console() -> Console:
    # Not a terminal: a width that tables fit in, whatever the pipe.
    return Console() if sys.stdout.isatty() else Console(width=120)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Any PyTorch optimizer by name."""


@app.command("list")
def list_command(
    pattern: Annotated[str | None, typer.Argument(help="Names to list, with wildcards: '*adam*'.")] = None,
    family: Annotated[str | None, typer.Option(help="Only this family.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only optimizers with this tag.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
) -> None:
    """List the optimizers that there are."""
    specs = [registry.optimizer_spec(name) for name in registry.list_optimizers(pattern, family=family, tag=tag)]
    if as_json:
        typer.echo(json.dumps([_record(spec) for spec in specs], indent=1))
        return
    if markdown:
        typer.echo("| name | family | year | what it does |\n| --- | --- | --- | --- |")
        for spec in specs:
            typer.echo(f"| `{spec.name}` | {spec.family} | {_year(spec)} | {spec.summary} |")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("family", no_wrap=True)
    table.add_column("year")
    table.add_column("what it does")
    for spec in specs:
        table.add_row(spec.name, spec.family, _year(spec), spec.summary)
    console = _console()
    console.print(table)
    console.print(f"{len(specs)} optimizers; `zoo show NAME` tells more.", highlight=False)


def _year(spec: OptimizerSpec) -> str:
    return str(spec.paper.year) if spec.paper else ""


def _record(spec: OptimizerSpec) -> dict[str, Any]:
    paper = spec.paper
    return {
        "name": spec.name,
        "family": spec.family,
        "summary": spec.summary,
        "aliases": list(spec.aliases),
        "tags": sorted(spec.tags),
        "paper": None if paper is None else {"title": paper.title, "year": paper.year, "url": paper.url},
        "target": spec.target,
    }


@app.command("show")
def show_command(name: Annotated[str, typer.Argument(help="An optimizer's name or alias.")]) -> None:
    """Show an optimizer: what it is, what it costs, which options it has."""
    spec = registry.optimizer_spec(name)
    cls = registry.optimizer_class(name)
    console = _console()
    console.print(f"[bold]{spec.name}[/bold] ({spec.family}): {spec.summary}", highlight=False)
    if spec.paper is not None:
        console.print(f"{spec.paper.title}, {spec.paper.year}. {spec.paper.url or ''}".rstrip(), highlight=False)
    if spec.aliases:
        console.print(f"Also known as {', '.join(spec.aliases)}.", highlight=False)
    console.print()
    state = Table(title="State of a float32 parameter", title_justify="left", box=None, pad_edge=False)
    for title in ("shape", "tensors", "bytes an element"):
        state.add_column(title, justify="right" if title.startswith("bytes") else "left")
    for shape in SHAPES:
        summary = cls.state_summary(shape)
        count = 1
        for size in shape:
            count *= size
        total = sum(entry[2] for entry in summary.values()) / count
        state.add_row(" × ".join(map(str, shape)), ", ".join(summary) or "none", f"{total:.2f}")
    console.print(state)
    console.print()
    options = Table(title="Options", title_justify="left", box=None, pad_edge=False)
    for title in ("option", "type", "default", "meaning"):
        options.add_column(title, no_wrap=title in ("option", "default"))
    properties = cls.Config.model_json_schema()["properties"]
    for field, info in cls.Config.model_fields.items():
        options.add_row(field, describe_type(properties[field]), repr(info.default), info.description or "")
    console.print(options, highlight=False)
    console.print()
    console.print(f'import zoo\nopt = zoo.create_optimizer("{spec.name}", model.parameters())', highlight=False)


def describe_type(schema: dict[str, Any]) -> str:
    """A JSON schema of one option in words: its type and range."""
    if "anyOf" in schema:
        return " or ".join(describe_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    kind = schema.get("type", "any")
    text = {"null": "none", "number": "float", "array": "tuple", "boolean": "bool", "integer": "int"}.get(kind, kind)
    if kind == "array" and schema.get("prefixItems"):
        text = f"{len(schema['prefixItems'])} × {describe_type(schema['prefixItems'][0])}"
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    bounds = [f"{sign} {schema[key]:g}" for key, sign in signs if key in schema and abs(schema[key]) < 1e9]
    return f"{text} {', '.join(bounds)}".strip()


@app.command("doctor")
def doctor_command() -> None:
    """Check every installed plugin; exit code 1 where something is wrong."""
    found = registry.plugins()
    table = Table(box=None, pad_edge=False)
    for title in ("plugin", "distribution", "version", "state", "optimizers"):
        table.add_column(title, no_wrap=True)
    for plugin in found:
        table.add_row(plugin.name, plugin.distribution, plugin.version, plugin.state, str(len(plugin.specs)))
    console = _console()
    console.print(table)
    wrong = [plugin for plugin in found if plugin.state == "broken"]
    for plugin in wrong:
        console.print(f"{plugin.name} of {plugin.distribution}: {plugin.cause}", highlight=False)
        console.print(f"  remedy: {plugin.remedy}", highlight=False)
    clashes = registry.clashes()
    for name, owners in clashes.items():
        console.print(f"{name}: in {', '.join(owners)}; ask for one as {owners[0]}:{name}", highlight=False)
    if wrong or clashes:
        raise typer.Exit(1)


@app.command("schema")
def schema_command(name: Annotated[str, typer.Argument(help="An optimizer's name or alias.")]) -> None:
    """Print the JSON schema of an optimizer's options."""
    typer.echo(json.dumps(registry.optimizer_config(name).model_json_schema(), indent=1, ensure_ascii=False))


app.command("race")(race_command)


def main() -> None:
    """Entry point of ``zoo``: errors that a user can cause are one line on stderr, exit code 2."""
    try:
        app()
    except (AmbiguousOptimizerError, PluginError, UnknownOptimizerError) as error:
        typer.echo(f"zoo: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
