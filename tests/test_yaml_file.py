"""YAML as data: numbers of YAML 1.2, a line for everything, and files that would do harm refused at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import zoo
from zoo.yaml_file import MAX_BYTES, parse_yaml, read_yaml

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6e-4", 0.0006),
        ("1E3", 1000.0),
        ("-.5", -0.5),
        (".inf", float("inf")),
        ("010", 10),
        ("no", "no"),
        ("yes", "yes"),
        ("true", True),
        ("null", None),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("'6e-4'", "6e-4"),
        ("[0.9, 0.95]", [0.9, 0.95]),
        ("&a {x: 1}", {"x": 1}),
        ("9" * 5000, "9" * 5000),  # not an int: Python itself refuses to read one that long
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    found = parse_yaml(f"key: {text}", "file").value["key"]
    assert found == value
    assert type(found) is type(value)


def test_every_value_knows_its_line() -> None:
    document = parse_yaml("a:\n  b:\n    - x\n    - y: 1\n", "file")
    assert document.line(("a", "b", 1, "y")) == 4
    assert document.line(("a", "b", 0)) == 3
    assert document.line(("a", "missing", "deeper")) == 1


def test_an_alias_is_the_value_that_it_stands_for() -> None:
    assert parse_yaml("a: &x {k: 1}\nb: [*x, *x]", "file").value["b"] == [{"k": 1}, {"k": 1}]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (
            "a: 1\nb: !!python/object/apply:os.system ['exit 1']",
            2,
            "tag 'tag:yaml.org,2002:python/object/apply:os.system'",
        ),
        ("a: !custom 1", 1, "tag '!custom'"),
        ("a: 1\n!!str b: 2", 2, "key that is no plain text"),
        ("a: &a [1, *a]", 1, "inside the value that it stands for"),
        ("a: *b", 1, "no &b before it"),
        (BOMB, 5, "unfolds to more than"),
        ("a: 1\nb: 2\na: 3", 3, "'a' twice, first on line 1"),
        ("? [a]\n: 1", 1, "key that is no plain text"),
        ("a: &m {x: 1}\nb:\n  <<: *m", 3, "merge key"),
        ("a: 1\n---\nb: 2", 2, "more than one document"),
        ("a: [1, 2\nb: 3", 2, "is no YAML"),
        ("a: b: c", 1, "is no YAML"),
        ("- " * 100 + "x", 1, "levels deep"),
        ("[" * 50_000, 1, "is no YAML"),
        ("a: \x00", None, "is no YAML"),
    ],
)
def test_what_is_no_plain_data_is_refused_with_its_line(text: str, line: int | None, problem: str) -> None:
    start = time.perf_counter()
    with pytest.raises(zoo.RegistryFileError) as caught:
        parse_yaml(text, "team.yaml")
    assert time.perf_counter() - start < 2
    assert caught.value.line == line
    assert problem in str(caught.value)
    assert str(caught.value).startswith("team.yaml:" if line is None else f"team.yaml:{line}: ")


def test_nothing_runs_while_a_file_is_read(tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    with pytest.raises(zoo.RegistryFileError):
        parse_yaml(
            f"a: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{trap}']]", "file"
        )
    assert not trap.exists()


def test_a_file_of_ten_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("a: [" + "x, " * 3_500_000 + "x]")
    start = time.perf_counter()
    with pytest.raises(zoo.RegistryFileError, match=f"larger than {MAX_BYTES // 1024} KiB"):
        read_yaml(path)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [(b"a: 1\nb: \xff\xfe", 2, "no UTF-8"), (bytes(range(256)), 2, "no UTF-8"), (b"\x89PNG\r\n\x1a\n", 1, "no UTF-8")],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, line: int, problem: str) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(content)
    with pytest.raises(zoo.RegistryFileError, match=problem) as caught:
        read_yaml(path)
    assert caught.value.line == line


def test_a_folder_or_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.yaml"):
        with pytest.raises(zoo.RegistryFileError, match="can't be read") as caught:
            read_yaml(path)
        assert str(path) in str(caught.value)


def test_a_byte_order_mark_is_no_key() -> None:
    path_text = "\ufeffversion: 1".encode()
    assert parse_yaml(path_text.decode("utf-8-sig"), "file").value == {"version": 1}
