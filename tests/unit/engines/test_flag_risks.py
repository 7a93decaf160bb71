"""A flag that can do harm has its sentence, in every spelling; one that nobody knows has none."""

import pytest

from engine_host.deploy.llamacpp_image import image_server
from engine_host.engines.flag_risks import _RISKS, risk
from engine_host.engines.llamacpp import command as llamacpp
from engine_host.engines.vllm import command as vllm
from engine_host.protocol.engine_settings.row import LLAMA_CPP, SGLANG, VLLM


@pytest.mark.parametrize(
    ("engine", "word", "says"),
    [
        (LLAMA_CPP, "--mcp-servers-json", "Starts programs"),
        (LLAMA_CPP, "--mcp_servers_json", "Starts programs"),
        (LLAMA_CPP, "--mcp-servers-config", "Starts programs"),
        (LLAMA_CPP, "--tools", "run shell commands"),
        (LLAMA_CPP, "-ag", "run shell commands"),
        (LLAMA_CPP, "--log-prompts-dir", "Writes every prompt"),
        (LLAMA_CPP, "--log-file", "Writes the log"),
        (LLAMA_CPP, "--slot-save-path", "write conversations"),
        (LLAMA_CPP, "--path", "Serves every file"),
        (LLAMA_CPP, "--media-path", "read files"),
        (LLAMA_CPP, "--rpc", "other machines"),
        (LLAMA_CPP, "--lora", "Changes what the model answers"),
        (LLAMA_CPP, "--chat-template-file", "Replaces the chat template"),
        (VLLM, "--trust-remote-code", "Runs Python code"),
        (VLLM, "--trust_remote_code", "Runs Python code"),
        (VLLM, "--trust-rem", "short for --trust-remote-code: Runs Python code"),
        (VLLM, "--tool-parser-plugin=/tmp/x.py", "Imports Python code"),
        (VLLM, "--hf-overrides.architectures", "Overrides"),
        (VLLM, "--lora-modules", "Changes what the model answers"),
        (VLLM, "--chat-template", "Replaces the chat template"),
        (VLLM, "--api-server-count", "listens"),
        (VLLM, "--kv-transfer-config", "Sends what the engine works on"),
        (SGLANG, "--trust-remote-code", "Runs Python code"),
        (None, "--tools", "run shell commands"),
        (None, "--trust-remote-code", "Runs Python code"),
    ],
)
def test_what_can_do_harm_says_so(engine: str | None, word: str, says: str) -> None:
    assert says in (risk(engine, word) or "")


@pytest.mark.parametrize(
    ("engine", "word"),
    [(LLAMA_CPP, "--mcp"), (VLLM, "--made-up"), (VLLM, "--no-enable-log-requests"), (LLAMA_CPP, "value")],
)
def test_what_is_not_known_is_not_guessed(engine: str, word: str) -> None:
    assert risk(engine, word) is None


def test_the_table_names_flags_that_there_are() -> None:
    there = image_server("0").flags
    assert set(_RISKS[LLAMA_CPP]) <= there


def test_what_is_refused_anyway_is_not_asked_about() -> None:
    assert not set(_RISKS[LLAMA_CPP]) & set(llamacpp.owned_flags())
    assert not set(_RISKS[VLLM]) & set(vllm.owned_flags())
