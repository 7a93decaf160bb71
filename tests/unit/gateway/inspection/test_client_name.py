"""The names of clients, from the headers that they send."""

import pytest

from engine_host.gateway.inspection.client_name import client_name, known_part


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"user-agent": "claude-cli/2.1.329 (external, cli)", "x-app": "cli"}, "Claude Code 2.1.329"),
        ({"user-agent": "名前/2".encode().decode("latin-1")}, "名前 2"),
        ({"user-agent": "caf\xe9/2"}, "caf\xe9 2"),
        (
            {"user-agent": "codex_cli_rs/0.169.0 (Linux; x86_64)", "originator": "codex_cli_rs"},
            "Codex 0.169.0",
        ),
        ({"user-agent": "codex_exec/0.169.0", "originator": "codex_exec"}, "Codex 0.169.0"),
        ({"user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.1"}, "opencode 1.18.33"),
        ({"user-agent": "OpenAI/Python 3.52.0", "x-stainless-lang": "python"}, "OpenAI SDK 3.52.0 (python)"),
        ({"user-agent": "AsyncAnthropic/Python 2.11.0"}, "Anthropic SDK 2.11.0 (Python)"),
        ({"user-agent": "OpenAI/JS 6.49.0", "x-title": "Roo Code"}, "Roo Code"),
        ({"user-agent": "ZooCode/3.82.0", "x-title": "Zoo Code"}, "Zoo Code 3.82.0"),
        ({"user-agent": "curl/8.5.0"}, "curl 8.5.0"),
        ({"user-agent": "Mozilla/5.0 (X11)"}, "a browser"),
        ({"user-agent": "ai/6.0.1 ai-sdk/openai-compatible/1.0.2"}, "AI SDK 1.0.2"),
        ({"user-agent": "editor/1"}, "editor 1"),
        ({}, ""),
    ],
)
def test_a_client_is_named(headers: dict[str, str], name: str) -> None:
    assert client_name(headers) == name


@pytest.mark.parametrize(
    "text", ["\x1b[2Jx", "\u202ekcab", "a" * 10_000, "<b>bold</b>", "/" * 500, "OpenAI/\x1b[1m"]
)
@pytest.mark.parametrize("header", ["user-agent", "x-title", "originator", "x-stainless-lang"])
def test_a_hostile_name_is_short_and_steers_no_terminal(text: str, header: str) -> None:
    name = client_name({"user-agent": "OpenAI/Python 1", header: text})
    assert len(name) <= 60
    assert "\x1b" not in name
    assert "\u202e" not in name


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Claude Code 2.1", "Claude Code 2.1"),
        ("Codex in VS Code", "Codex in VS Code"),
        ("OpenAI SDK 1.99.1 (my secret)", "OpenAI SDK 1.99.1"),
        ("curl my-secret", "curl"),
        ("curlmysecret", ""),
        ("my secret", ""),
        ("my curl", ""),
        ("", ""),
    ],
)
def test_what_is_written_to_the_disk_is_no_word_of_a_client(name: str, known: str) -> None:
    assert known_part(name) == known
