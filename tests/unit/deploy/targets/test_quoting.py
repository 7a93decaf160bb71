"""Values that are hard to write down, read back by who reads them: a shell, systemd's rules, YAML."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from engine_host.core.errors import HostError
from engine_host.deploy.deployment import Root, name_of
from engine_host.deploy.targets.quoting import compose, shell, unit, unit_plain, unit_value
from engine_host.deploy.targets.yaml_text import yaml_text
from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import deployed, rendered, wanted_of

HARD = """a b'c"d$e${HOME}`id`%h%%\\n;&|*?~#!{}[]<>()=:,@ é"""
PRINTABLE = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=40)


@given(PRINTABLE)
def test_a_shell_reads_a_word_back(text: str) -> None:
    assert shlex.split(shell(text, {})) == [text]


@given(PRINTABLE, PRINTABLE)
def test_a_shell_reads_a_word_with_a_folder_back(before: str, after: str) -> None:
    quoted = shell(f"{before}{Root.MODELS}{after}", {Root.MODELS: "$models"})
    assert shlex.split(quoted) == [f"{before}$models{after}"]


@given(PRINTABLE)
def test_a_unit_has_neither_specifiers_nor_variables_of_a_value(text: str) -> None:
    for quoted, dollar in ((unit(text, {}), "$$"), (unit_value(text, {}), "$")):
        plain = quoted
        if quoted.startswith('"'):
            assert quoted.endswith('"')
            # C's escapes, of which only these two are written.
            plain = quoted[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        elif text:
            assert " " not in quoted
        assert plain == text.replace("%", "%%").replace("$", dollar)


def test_a_unit_keeps_the_specifiers_of_folders() -> None:
    roots = {Root.CACHE: "%C/sndr"}
    assert unit(f"{Root.CACHE}/100%", roots) == '"%C/sndr/100%%"'
    assert unit_plain(f"{Root.CACHE}/a b%", roots) == "%C/sndr/a b%%"


@given(PRINTABLE)
def test_compose_has_no_variables_of_a_value(text: str) -> None:
    assert compose(text, {}).replace("$$", "$") == text
    assert compose(text, {}).count("$") == 2 * text.count("$")


@given(st.dictionaries(st.from_regex("[a-z]{1,8}", fullmatch=True), PRINTABLE, max_size=4))
def test_yaml_reads_texts_back(values: dict[str, str]) -> None:
    assert yaml.safe_load(yaml_text([values], ("about: this # file",))) == (values or {})


@pytest.mark.parametrize(
    "word", ["no", "on", "1e3", "0o17", "1_000", "null", "~", "2026-11-21", "0x1F", ".5"]
)
def test_yaml_quotes_what_some_readers_take_for_something_else(word: str) -> None:
    assert f'"{word}"' in yaml_text([{"word": word}], ())


def test_an_argument_arrives_whatever_it_holds() -> None:
    wanted = wanted_of("qwen3-embedding-0.6b")
    argument = json.dumps({"a": HARD})
    hard = replace(wanted, values={**wanted.values, "extra_arguments": ["--hf-overrides", argument]})
    pod = rendered(hard, RenderTarget.KUBERNETES).files[0].text
    container = next(one for one in yaml.safe_load_all(pod) if one["kind"] == "Deployment")
    words = container["spec"]["template"]["spec"]["containers"][0]["args"]
    assert argument in words
    project = yaml.safe_load(rendered(hard, RenderTarget.COMPOSE).files[0].text)
    assert argument.replace("$", "$$") in project["services"]["engine"]["command"]
    for target in (RenderTarget.SHELL, RenderTarget.DOCKER, RenderTarget.PODMAN):
        assert shlex.quote(argument) in rendered(hard, target).files[0].text
    for target in (RenderTarget.SYSTEMD, RenderTarget.QUADLET):
        assert unit(argument, {}) in rendered(hard, target).files[0].text


def test_a_line_break_is_refused() -> None:
    wanted = wanted_of("qwen3-embedding-0.6b")
    hard = replace(wanted, values={**wanted.values, "extra_arguments": ["--a", "b\nExecStart=/bin/x"]})
    with pytest.raises(HostError) as refused:
        deployed(hard, RenderTarget.SYSTEMD)
    assert refused.value.reason is Reason.SETTING_INVALID


@given(PRINTABLE)
def test_names_are_what_everybody_takes(text: str) -> None:
    name = name_of(text)
    assert len(name) + len("-watchdog") <= 63
    assert name.replace("-", "").isalnum()
    assert name.isascii()
    assert not name.endswith("-")


def test_no_secret_has_a_value(tmp_path: Path) -> None:
    wanted = wanted_of("qwen3.6-27b-k8v4-2x24")
    assert wanted.engine is PresetEngine.VLLM
    for target in RenderTarget:
        for file in rendered(wanted, target).files:
            for line in file.text.splitlines():
                if "VLLM_API_KEY=" in line or "HF_TOKEN=" in line:
                    assert line.startswith("# ") or line.rstrip().endswith("="), (file.name, line)
