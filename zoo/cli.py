"""The command line: ``zoo list``, ``zoo show``, ``zoo schema``, ``zoo race``. Nothing here imports torch before it must."""

from __future__ import annotations

import functools
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from . import __version__, registry
from .errors import AmbiguousOptimizerError, ParameterGroupError, PluginError, RegistryFileError, UnknownOptimizerError
from .race.cli import race_command
from .race.tasks import TASKS
from .spec import OptimizerSpec

if TYPE_CHECKING:
    from .registry_file import Preset

__all__ = ["app", "main"]

app = typer.Typer(
    name="zoo",
    help="Any PyTorch optimizer by name.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RegistryOption = Annotated[
    str | None, typer.Option("--registry", help="A registry file, or 'default'; else ZOO_REGISTRY, else the default.")
]
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
    registry_file: RegistryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
) -> None:
    """List the optimizers that there are; with --registry also its presets and aliases."""
    names = registry.list_optimizers(pattern, family=family, tag=tag, registry=registry_file)
    rows = [(name, registry.optimizer_spec(name, registry=registry_file), _kind(name)) for name in names]
    if as_json:
        typer.echo(json.dumps([{**_record(spec), "name": name, **kind} for name, spec, kind in rows], indent=1))
        return
    if markdown:
        typer.echo("| name | family | year | what it does |\n| --- | --- | --- | --- |")
        for name, spec, kind in rows:
            typer.echo(f"| `{name}` | {spec.family} | {_year(spec)} | {_summary(spec, kind)} |")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("family", no_wrap=True)
    table.add_column("year")
    table.add_column("what it does")
    for name, spec, kind in rows:
        table.add_row(name, spec.family, _year(spec), _summary(spec, kind))
    console = _console()
    console.print(table)
    what = "name" if registry_file is not None else "optimizer"
    console.print(f"{len(rows)} {what}{'' if len(rows) == 1 else 's'}; `zoo show NAME` tells more.", highlight=False)


def _kind(name: str) -> dict[str, str]:
    """What a listed name is, where the list holds more than optimizers."""
    return {"kind": name.kind, "optimizer": name.optimizer} if isinstance(name, registry.ListedName) else {}


def _summary(spec: OptimizerSpec, kind: dict[str, str]) -> str:
    return spec.summary if kind.get("kind", "optimizer") == "optimizer" else f"{kind['kind']} of {kind['optimizer']}"


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
def show_command(
    name: Annotated[str, typer.Argument(help="Name of an optimizer, alias or preset.")],
    registry_file: RegistryOption = None,
) -> None:
    """Show an optimizer: what it is, what it costs, which options it has. Of a preset: what it sets, and its source."""
    console = _console()
    preset = registry.preset(name, registry=registry_file)
    if preset is not None:
        _show_preset(name, preset, console)
        return
    spec = registry.optimizer_spec(name, registry=registry_file)
    cls = registry.optimizer_class(name, registry=registry_file)
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


def _show_preset(name: str, preset: Preset, console: Console) -> None:
    console.print(
        f"[bold]{name}[/bold] (preset of {preset.optimizer}): {preset.description}".rstrip(": "), highlight=False
    )
    if preset.source:
        console.print(f"Source: {preset.source}", highlight=False, markup=False)
    console.print()
    options = Table(box=None, pad_edge=False)
    for title in ("for", "option", "value"):
        options.add_column(title, no_wrap=title == "option")
    for rule, values in [("all", preset.options), *((str(rule.match), rule.options) for rule in preset.param_groups)]:
        for option, value in values.items():
            options.add_row(rule, option, str(value))
    console.print(options, highlight=False, markup=False)
    console.print()
    console.print(f'import zoo\nopt = zoo.create_optimizer("{name}", model)', highlight=False)


@app.command("doctor")
def doctor_command(
    registry_file: RegistryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Do not import the optimizers themselves.")] = False,
) -> None:
    """Check every installed plugin, every optimizer and the registry file; exit code 1 where something is wrong."""
    from .doctor import examine

    report = examine(registry_file, deep=not quick)
    if as_json:
        typer.echo(json.dumps(report.record(), indent=1))
    else:
        table = Table(box=None, pad_edge=False)
        for title in ("plugin", "distribution", "version", "state", "optimizers"):
            table.add_column(title, no_wrap=True)
        for plugin in report.plugins:
            count = "" if plugin.state in ("broken", "disabled") else str(plugin.optimizers)
            table.add_row(plugin.name, plugin.distribution, plugin.version, plugin.state, count)
        console = _console()
        console.print(table, highlight=False, markup=False)
        for problem in report.problems:
            console.print(f"{problem.where}: {problem.cause}", highlight=False, markup=False)
            console.print(f"  remedy: {problem.remedy}", highlight=False, markup=False)
        console.print(
            "Nothing is wrong." if not report.problems else f"{len(report.problems)} to look at.", highlight=False
        )
    if report.problems:
        raise typer.Exit(1)


@app.command("schema")
def schema_command(
    name: Annotated[str, typer.Argument(help="An optimizer's name, or 'registry' for registry.yaml.")],
) -> None:
    """Print the JSON schema of an optimizer's options, or of a registry file, for editors to complete from."""
    if name == "registry":
        from .registry_file import RegistryFile

        schema = RegistryFile.model_json_schema()
    else:
        schema = registry.optimizer_config(name).model_json_schema()
    typer.echo(json.dumps(schema, indent=1, ensure_ascii=False))


@app.command("new-plugin")
def new_plugin_command(
    name: Annotated[str, typer.Argument(help="Name of the package: my-optimizers.")],
    into: Annotated[Path, typer.Option(help="Folder that the package's folder goes into.")] = Path(),
    optimizer: Annotated[
        str | None, typer.Option(help="Name of its optimizer; default: the package's with _step.")
    ] = None,
) -> None:
    """Write a complete plugin package: an optimizer, its entry point, tests, README, CI."""
    from .new_plugin import NewPluginError, write_plugin

    try:
        folder = write_plugin(name, into, optimizer)
    except (NewPluginError, OSError) as error:
        typer.echo(f"zoo new-plugin: {error}", err=True)
        raise typer.Exit(2) from None
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        typer.echo(f"written: {path}")
    typer.echo(f"\nNext:\n  cd {folder}\n  pip install -e '.[dev]'\n  pytest\n  zoo list --family {_module(folder)}")


def _module(folder: Path) -> str:
    return next((folder / "src").iterdir()).name


@app.command("race")
@functools.wraps(race_command)
def _race_command(*arguments: Any, **options: Any) -> None:
    try:
        for task in registry.race_tasks():
            TASKS.register(task)
    except ValueError as error:  # two tasks of one name
        typer.echo(f"zoo race: {error}", err=True)
        raise typer.Exit(2) from None
    race_command(*arguments, **options)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as a line of its own, without the place in the code that a user of the command line can't care for."""
    typer.echo(str(message) if str(message).startswith("zoo: ") else f"zoo: {message}", err=True)


def main() -> None:
    """Entry point of ``zoo``: errors that a user can cause are one line on stderr, exit code 2."""
    warnings.showwarning = _warn
    try:
        app()
    except (
        AmbiguousOptimizerError,
        ParameterGroupError,
        PluginError,
        RegistryFileError,
        UnknownOptimizerError,
    ) as error:
        typer.echo(f"zoo: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
