"""Agents of the terminal: Claude Code, Codex, opencode, aider."""

from pathlib import Path
from typing import Any

from engine_host.connect.clients.definition import PROVIDER, TITLE, Client, ConfigFile, Dialect
from engine_host.connect.facts import ANY_KEY, KEY_VARIABLE, Facts
from engine_host.connect.formats.text import Format
from engine_host.connect.machine import Machine
from engine_host.protocol.endpoint.connect import ClientKind
from engine_host.protocol.language import tr

_COMPACT_AT = 0.85
"""The share of the context at which Codex begins to summarise; the summary needs room too."""


def _claude_folder(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def claude_variables(facts: Facts) -> dict[str, str]:
    """Return Claude Code's variables, but for the key."""
    return {
        "ANTHROPIC_BASE_URL": facts.root,
        "ANTHROPIC_MODEL": facts.model,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": facts.model,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": facts.model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": facts.model,
        # Of a model that it does not know it believes a million tokens.
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(facts.context),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(facts.output),
        # A line that is another in each request would stand before everything that could be reused.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    }


def _claude(facts: Facts) -> dict[str, Any]:
    env = claude_variables(facts)
    if facts.key_needed:
        return {"apiKeyHelper": f"printenv {KEY_VARIABLE}", "env": env}
    return {"env": {**env, "ANTHROPIC_AUTH_TOKEN": ANY_KEY}}


def _claude_notes(facts: Facts) -> tuple[str, ...]:
    notes = [tr("From then on each start of Claude Code asks this machine; undoing brings the rest back.")]
    if facts.model.startswith("claude-"):
        notes.append(
            tr(
                "For a name that begins with claude- it ignores the context given here: start "
                "the model with another one."
            )
        )
    if "/" in facts.model or ":" in facts.model:
        notes.append(tr("Names with / or : are trouble in its list of models: start the model with --name."))
    return tuple(notes)


def _codex_folder(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", machine.home / ".codex")


def _codex(facts: Facts) -> dict[str, Any]:
    provider: dict[str, Any] = {
        "name": TITLE,
        "base_url": facts.url,
        "wire_api": "responses",
        "requires_openai_auth": False,
    }
    if facts.key_needed:
        provider["env_key"] = KEY_VARIABLE
    return {
        "model": facts.model,
        "model_provider": PROVIDER,
        "model_context_window": facts.context,
        "model_auto_compact_token_limit": max(1, int(facts.context * _COMPACT_AT)),
        "model_providers": {PROVIDER: provider},
    }


def _codex_notes(_facts: Facts) -> tuple[str, ...]:
    return (tr("From then on each start of Codex asks this machine; undoing brings the rest back."),)


def _opencode_file(machine: Machine) -> Path:
    named = machine.env.get("OPENCODE_CONFIG", "")
    if named and "\0" not in named and Path(named).is_absolute():
        return Path(named)
    folder = machine.config / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


def _opencode(facts: Facts) -> dict[str, Any]:
    return {
        "$schema": "https://opencode.ai/config.json",
        "provider": {
            PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": TITLE,
                "options": {
                    "baseURL": facts.url,
                    "apiKey": f"{{env:{KEY_VARIABLE}}}" if facts.key_needed else ANY_KEY,
                },
                "models": {
                    facts.model: {
                        "name": facts.model,
                        "tool_call": facts.tools,
                        "attachment": facts.images,
                        "limit": {"context": facts.context, "output": facts.output},
                    }
                },
            }
        },
        "model": f"{PROVIDER}/{facts.model}",
    }


def _opencode_notes(facts: Facts) -> tuple[str, ...]:
    return (
        tr(
            "Choose it with /models, or opencode run --model {provider}/{model}; where you "
            "have set no model of your own, it is the one.",
            provider=PROVIDER,
            model=facts.model,
        ),
        tr("It asks twice at the beginning: a start with --streams 2 answers both at once."),
    )


def _aider(facts: Facts) -> dict[str, Any]:
    wanted = {"model": f"openai/{facts.model}", "openai-api-base": facts.url}
    return wanted if facts.key_needed else {**wanted, "openai-api-key": ANY_KEY}


def _aider_model(facts: Facts) -> dict[str, Any]:
    return {
        f"openai/{facts.model}": {
            "max_input_tokens": facts.input,
            "max_output_tokens": facts.output,
            "max_tokens": facts.output,
            "input_cost_per_token": 0,
            "output_cost_per_token": 0,
            "litellm_provider": "openai",
            "mode": "chat",
        }
    }


def _aider_notes(facts: Facts) -> tuple[str, ...]:
    if not facts.key_needed:
        return ()
    return (
        tr(
            'aider reads the key from its own variable: export AIDER_OPENAI_API_KEY="${key_variable}"',
            key_variable=KEY_VARIABLE,
        ),
    )


AGENTS = (
    Client(
        "claude",
        "Claude Code",
        ClientKind.AGENT,
        Dialect.MESSAGES,
        programs=("claude",),
        folders=lambda machine: (_claude_folder(machine),),
        files=(
            ConfigFile(
                Format.JSON,
                lambda machine: _claude_folder(machine) / "settings.json",
                _claude,
                ("env", "ANTHROPIC_BASE_URL"),
            ),
        ),
        notes=_claude_notes,
        first_request=24_100,
    ),
    Client(
        "codex",
        "Codex",
        ClientKind.AGENT,
        Dialect.RESPONSES,
        programs=("codex",),
        folders=lambda machine: (_codex_folder(machine),),
        files=(
            ConfigFile(
                Format.TOML,
                lambda machine: _codex_folder(machine) / "config.toml",
                _codex,
                ("model_providers", PROVIDER, "base_url"),
            ),
        ),
        notes=_codex_notes,
        first_request=7_900,
    ),
    Client(
        "opencode",
        "opencode",
        ClientKind.AGENT,
        programs=("opencode",),
        folders=lambda machine: (_opencode_file(machine).parent,),
        files=(
            ConfigFile(
                Format.JSON,
                _opencode_file,
                _opencode,
                ("provider", PROVIDER, "options", "baseURL"),
                frozenset({"$schema", "model"}),
            ),
        ),
        notes=_opencode_notes,
        first_request=8_500,
    ),
    Client(
        "aider",
        "aider",
        ClientKind.AGENT,
        programs=("aider",),
        patterns=(".aider.conf.yml", ".aider"),
        files=(
            ConfigFile(
                Format.YAML,
                lambda machine: machine.home / ".aider.conf.yml",
                _aider,
                ("openai-api-base",),
            ),
            ConfigFile(
                Format.JSON, lambda machine: machine.home / ".aider.model.metadata.json", _aider_model
            ),
        ),
        notes=_aider_notes,
    ),
)
