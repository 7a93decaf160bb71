"""The table of engine settings: what its rows promise, and what the documents say of their way."""

import ast
import re
from pathlib import Path

import pytest

from engine_host.protocol.engine_settings.derived import exclusive, settings_by_option
from engine_host.protocol.engine_settings.row import LLAMA_CPP, VLLM, Argument
from engine_host.protocol.engine_settings.table import (
    SETTINGS,
    Overrides,
    foreign_to,
    means_something,
    with_defaults,
)
from tests.unit.deploy.samples import catalog

ROOT = Path(__file__).resolve().parents[4]


def test_an_argument_is_a_flag_with_the_value_or_words_for_it() -> None:
    plain = Argument("--flag", implied=("auto",), words={-1: ("--flag", "all")})
    assert plain.written(None) == plain.written("auto") == ()
    assert plain.written(-1) == ("--flag", "all")
    assert plain.written(0.5) == ("--flag", "0.5")
    assert plain.written(["a", "b"]) == ("--flag", "a", "b")
    assert Argument(words={True: ("--on",)}).written(False) is None, "there is no word for it"
    assert Argument("--a", ("-a",), words={1: ("--b", "x")}).flags == {"--a", "-a", "--b"}


def test_an_engine_gets_its_own_defaults_where_nothing_is_said() -> None:
    assert with_defaults(VLLM, {})["streams"] == 16
    assert with_defaults(LLAMA_CPP, {"streams": None})["streams"] == 8
    assert with_defaults(VLLM, {"streams": 3, "threads": 2}).keys() & {"streams", "threads"} == {"streams"}


def test_every_setting_belongs_to_an_engine_and_options_give_one_type() -> None:
    for name, row in SETTINGS.items():
        assert row.engines, name
        assert row.caption, name
        assert row.help, name
        assert not row.help.endswith("."), name
    for rows in settings_by_option().values():
        assert len({(row.kind, row.engines) for row in rows}) == 1
    assert set(foreign_to("sglang")) == set(foreign_to("vllm"))


def test_off_has_one_spelling_inside() -> None:
    given = Overrides(speculation="none", tool_parser="", reasoning_parser="none", dtype="none")
    assert (given.speculation, given.tool_parser, given.reasoning_parser) == ("off", "off", "off")
    assert given.dtype == "none", "which is no data type, and is refused as one"


def test_rows_name_settings_that_there_are() -> None:
    assert dict(exclusive()) == {"gpu_memory": "kv_cache_gib"}
    for name, row in SETTINGS.items():
        for other in filter(None, (row.excludes, row.only_with)):
            assert other in SETTINGS, name
    assert not means_something("draft_tokens", {})
    assert means_something("draft_tokens", {"speculation": "mtp"})
    assert means_something("streams", {"speculation": "off"})


@pytest.mark.parametrize("engine", [LLAMA_CPP, VLLM])
def test_the_catalogues_defaults_are_the_tables(engine: str) -> None:
    entry = next(one.entry for name, one in catalog().engines.items() if name == engine)
    said = entry.settings.model_dump(exclude_none=True, exclude_defaults=True)
    assert said == {name: SETTINGS[name].default_of(engine) for name in said}


def test_the_walk_of_the_documentation_names_what_is_there() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## From a typed value to the command line")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+\.py)` \| (.+?) \|", section, flags=re.MULTILINE)
    assert 6 <= len(rows) <= 8
    for file in re.findall(r"`([^`]+\.py)`", section):
        assert (ROOT / file).is_file(), file
    for file, functions in rows:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            names |= {
                f"{kind.name}.{node.name}"
                for node in kind.body
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }
        assert set(re.findall(r"`([^`]+)`", functions)) <= names, file
