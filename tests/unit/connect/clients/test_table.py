"""Each client is told what its documents ask for, with the endpoint's own facts."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from engine_host.connect.clients.table import CLIENTS, client_named
from engine_host.connect.facts import Facts
from engine_host.connect.formats.text import changed, value_of
from engine_host.connect.formats.tree import at
from engine_host.connect.settings import settings_of
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.connect import ClientSettings
from engine_host.protocol.errors import Reason
from tests.unit.connect.samples import FACTS, URL, WITH_KEY, machine

HOSTILE = Facts(URL, "a\"b'c\\$(id)`x` ${y} é\U0001f600 #: {env:HOME}", 4096, key_needed=False)


def told(name: str, facts: Facts = FACTS) -> ClientSettings:
    """A client's settings on a Linux machine."""
    return settings_of(client_named(name), machine(Path("/person")), facts)


def value(name: str, facts: Facts = FACTS, which: int = 0) -> Any:
    """What the text of one of its files says."""
    client = client_named(name)
    text = told(name, facts).texts[which].text
    return value_of(text.encode(), client.files[which].format)


def test_golden_opencode() -> None:
    assert told("opencode").texts[0].place == "/person/.config/opencode/opencode.json"
    assert value("opencode") == {
        "$schema": "https://opencode.ai/config.json",
        "provider": {
            "sndr": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "SNDR Control Center",
                "options": {"baseURL": URL, "apiKey": "sk-local"},
                "models": {
                    "qwen": {
                        "name": "qwen",
                        "tool_call": True,
                        "attachment": False,
                        "limit": {"context": 65_536, "output": 16_384},
                    }
                },
            }
        },
        "model": "sndr/qwen",
    }
    assert value("opencode", WITH_KEY)["provider"]["sndr"]["options"]["apiKey"] == "{env:SNDR_API_KEY}"


def test_golden_codex() -> None:
    assert told("codex", WITH_KEY).texts[0].text == (
        'model = "qwen"\nmodel_provider = "sndr"\nmodel_context_window = 65536\n'
        "model_auto_compact_token_limit = 55705\n\n"
        '[model_providers.sndr]\nname = "SNDR Control Center"\nbase_url = "https://box.example.org/llm/v1"\n'
        'wire_api = "responses"\nrequires_openai_auth = false\nenv_key = "SNDR_API_KEY"'
    )
    assert "env_key" not in value("codex")["model_providers"]["sndr"], "it would ask for a variable"


def test_golden_claude_code() -> None:
    env = value("claude")["env"]
    assert (env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_AUTH_TOKEN"]) == ("http://127.0.0.1:8020", "sk-local")
    assert env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "65536"
    assert all(isinstance(one, str) for one in env.values())
    with_key = value("claude", WITH_KEY)
    assert with_key["env"]["ANTHROPIC_BASE_URL"] == "https://box.example.org/llm"
    assert with_key["apiKeyHelper"] == "printenv SNDR_API_KEY"


# As their publishers have them: extensions/copilot/package.json of microsoft/vscode,
# crates/settings_content/src/language_model.rs of zed-industries/zed.
PUBLISHED: dict[str, dict[str, type]] = {
    "vscode": {
        "id": str, "name": str, "url": str, "toolCalling": bool, "vision": bool, "maxInputTokens": int,
        "maxOutputTokens": int,
    },
    "zed": {
        "name": str, "display_name": str, "max_tokens": int, "max_output_tokens": int, "capabilities": dict,
    },
}  # fmt: skip
ZED_CAPABILITIES = {"tools", "images", "parallel_tool_calls", "prompt_cache_key"}


@pytest.mark.parametrize("facts", [FACTS, WITH_KEY, HOSTILE])
def test_editors_that_were_not_tried_get_what_they_publish(facts: Facts) -> None:
    (code,) = value("vscode", facts)
    assert set(code) <= {"name", "vendor", "apiKey", "apiType", "models"}
    zed = value("zed", facts)["language_models"]["openai_compatible"]["sndr"]
    assert set(zed) == {"api_url", "available_models"}
    for name, (model,) in (("vscode", code["models"]), ("zed", zed["available_models"])):
        assert {field: type(one) for field, one in model.items()} == PUBLISHED[name]
        assert any("not tried here" in note for note in told(name, facts).notes)
    capabilities = zed["available_models"][0]["capabilities"]
    assert set(capabilities) == ZED_CAPABILITIES, "Zed has no default for any of them"
    assert {type(one) for one in capabilities.values()} == {bool}
    assert capabilities["prompt_cache_key"], "it is how a thread is told from another"


def test_what_people_meet_after_the_set_up_is_told_before() -> None:
    assert any("chat.byokUtilityModelDefault" in note for note in told("vscode").notes)
    assert any("endpoint.allowed_hosts host.docker.internal" in note for note in told("open-webui").notes)


def test_golden_zed_and_vscode() -> None:
    zed = value("zed")["language_models"]["openai_compatible"]["sndr"]
    assert zed["api_url"] == URL
    assert zed["available_models"][0]["max_tokens"] == 65_536
    code = value("vscode", WITH_KEY)[0]
    assert code["vendor"] == "customendpoint"
    assert code["models"][0]["url"] == "https://box.example.org/llm/v1/chat/completions"
    assert code["models"][0]["maxInputTokens"] + code["models"][0]["maxOutputTokens"] == 65_536
    assert "apiKey" not in code


def test_zoo_code_goes_on_with_roo_code() -> None:
    roo, zoo = told("roo"), told("zoo")
    assert roo.fields == zoo.fields
    assert any("sndr connect zoo" in note for note in roo.notes)


def test_golden_continue_and_aider() -> None:
    said = value("continue", WITH_KEY)
    model = said["models"][0]
    assert model["name"] == "qwen (SNDR)", "in a list of models a program's name says nothing"
    assert at(said, client_named("continue").files[0].address) == "https://box.example.org/llm/v1"
    assert model["apiKey"] == "${{ secrets.SNDR_API_KEY }}"
    assert model["capabilities"] == ["tool_use", "image_input"]
    assert model["defaultCompletionOptions"] == {"contextLength": 65_536, "maxTokens": 16_384}
    assert value("aider") == {"model": "openai/qwen", "openai-api-base": URL, "openai-api-key": "sk-local"}
    assert "openai-api-key" not in value("aider", WITH_KEY)
    assert value("aider", which=1)["openai/qwen"]["max_input_tokens"] == 49_152


def test_golden_forms() -> None:
    fields = {one.caption: one.value for one in told("cline", WITH_KEY).fields}
    assert (fields["Base URL"], fields["API Key"]) == ("https://box.example.org/llm/v1", "$SNDR_API_KEY")
    assert fields["Context Window Size"] == "65536"


def test_where_the_files_lie() -> None:
    home = Path("/person")

    def files(**env: str) -> list[str]:
        here = machine(home, env.pop("system", "linux"), **env)
        return [str(client.files[0].path(here)) for client in CLIENTS if client.files]

    linux, mac, windows = files(), files(system="darwin"), files(system="win32", APPDATA="/roaming")
    assert "/person/.config/Code/User/chatLanguageModels.json" in linux
    assert "/person/Library/Application Support/Code/User/chatLanguageModels.json" in mac
    assert "/person/.config/zed/settings.json" in mac
    assert {"/roaming/Code/User/chatLanguageModels.json", "/roaming/Zed/settings.json"} <= set(windows)
    moved = files(XDG_CONFIG_HOME="/x", CODEX_HOME="/c", CLAUDE_CONFIG_DIR="/d")
    assert {"/x/opencode/opencode.json", "/c/config.toml", "/d/settings.json"} <= set(moved)
    assert files(XDG_CONFIG_HOME="relative", CODEX_HOME="") == linux


@pytest.mark.parametrize("client", [one for one in CLIENTS if one.files], ids=lambda one: str(one.name))
def test_no_key_is_written_and_the_address_is_found_again(client: Any) -> None:
    for facts in (FACTS, WITH_KEY, HOSTILE):
        for config in client.files:
            wanted = config.wanted(facts)
            tree = value_of(changed(b"", config.format, wanted), config.format)
            assert tree == wanted
            if config.address:
                assert str(at(tree, config.address)).startswith(facts.root)
            assert "sk-local" not in json.dumps(tree) or not facts.key_needed


def test_names_of_strangers_stay_text_in_programs() -> None:
    assert compile(told("python", HOSTILE).texts[0].text, "x", "exec")
    assert tomllib.loads(told("codex", HOSTILE).texts[0].text)["model"] == HOSTILE.model


def test_a_context_that_is_too_small_is_said() -> None:
    small = Facts(URL, "demo", 8192, key_needed=False, tools=False)
    assert "does not fit" in told("claude", small).warnings[0]
    assert "summarises again" in told("codex", small).warnings[0]
    assert "calls no tools" in told("codex", small).warnings[1]
    assert told("codex").warnings == ()
    assert told("zed", small).warnings == ()


@pytest.mark.parametrize("trained", [None, 8192, 32_768, 262_144])
def test_a_longer_context_is_advised_only_of_a_model_that_can_have_one(trained: int | None) -> None:
    small = Facts(URL, "demo", 8192, key_needed=False, context_trained=trained)
    warning = told("claude", small).warnings[0]
    if trained is None or trained > 100_000:
        assert "Start the model with a longer --context" in warning
        assert "another model" not in warning
    else:
        assert f"Choose another model: this one was trained for {trained:,} tokens" in warning
        assert "--context" not in warning


def test_cursor_is_told_the_truth_and_unknown_ones_the_nearest_name() -> None:
    with pytest.raises(HostError) as caught:
        told("cursor")
    assert caught.value.reason is Reason.UNSUPPORTED
    with pytest.raises(HostError) as unknown:
        client_named("opncode")
    assert "opencode" in unknown.value.problem.cause
    assert client_named("Claude-Code").name == "claude"
