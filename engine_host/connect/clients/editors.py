"""Editors and their extensions: VS Code, Zed, Cline, Roo Code, Zoo Code, Continue, Cursor."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine_host.connect.clients.definition import PROVIDER, TITLE, Client, ConfigFile, key_or_variable
from engine_host.connect.facts import ANY_KEY, KEY_VARIABLE, Facts
from engine_host.connect.formats.text import Format
from engine_host.connect.machine import Machine
from engine_host.protocol.endpoint.connect import ClientKind
from engine_host.protocol.language import tr

_CODE = "Code"


def _code_folder(machine: Machine) -> Path:
    return machine.application / _CODE / "User"


def _vscode(facts: Facts) -> list[dict[str, Any]]:
    # VS Code keeps a key among its own secrets and refers to it; only one that is none may stand here.
    key = {} if facts.key_needed else {"apiKey": ANY_KEY}
    return [
        {
            "name": TITLE,
            "vendor": "customendpoint",
            **key,
            "apiType": "chat-completions",
            "models": [
                {
                    "id": facts.model,
                    "name": f"{facts.model} (SNDR)",
                    "url": f"{facts.url}/chat/completions",
                    "toolCalling": facts.tools,
                    "vision": facts.images,
                    "maxInputTokens": facts.input,
                    "maxOutputTokens": facts.output,
                }
            ],
        }
    ]


def _vscode_notes(facts: Facts) -> tuple[str, ...]:
    notes = [
        tr("VS Code 1.122 or newer; restart it when the model does not show up in the list of models."),
        tr("It completes no lines by a model of your own, only chats and edits."),
        tr(
            "Titles and commit messages stay off until its setting chat.byokUtilityModelDefault says "
            "Main Agent Model."
        ),
        tr("VS Code's window was not tried here; its published code takes these fields from here."),
    ]
    if facts.key_needed:
        notes.append(
            tr("Give it the key in Chat: Manage Language Models; VS Code keeps it among its secrets.")
        )
    if not facts.tools:
        notes.append(tr("This model calls no tools, so VS Code does not offer it for its agent."))
    return tuple(notes)


def _zed_folder(machine: Machine) -> Path:
    if machine.system == "win32":
        return machine.application / "Zed"
    # On macOS too, whatever the variable says there.
    return machine.home / ".config" / "zed" if machine.system == "darwin" else machine.config / "zed"


def _zed(facts: Facts) -> dict[str, Any]:
    return {
        "language_models": {
            "openai_compatible": {
                PROVIDER: {
                    "api_url": facts.url,
                    "available_models": [
                        {
                            "name": facts.model,
                            "display_name": f"{facts.model} (SNDR)",
                            "max_tokens": facts.context,
                            "max_output_tokens": facts.output,
                            "capabilities": {
                                "tools": facts.tools,
                                "images": facts.images,
                                "parallel_tool_calls": False,
                                # Names the thread: its turns stay together, here and among replicas.
                                "prompt_cache_key": True,
                            },
                        }
                    ],
                }
            }
        }
    }


def _zed_notes(facts: Facts) -> tuple[str, ...]:
    key = tr("the key") if facts.key_needed else tr("any key, {any_key} for one", any_key=ANY_KEY)
    return (
        tr(
            "Zed wants {key}: in {key_variable} where Zed is started, or once in its agent's settings.",
            key=key,
            key_variable=KEY_VARIABLE,
        ),
        tr("Its own llama.cpp provider finds everything by itself from the address without /v1."),
        tr("Zed itself was not tried here: these are the fields that its own source reads."),
    )


def _form(facts: Facts) -> Mapping[str, str]:
    return {
        "API Provider": "OpenAI Compatible",
        "Base URL": facts.url,
        "API Key": key_or_variable(facts),
        "Model ID": facts.model,
        "Context Window Size": str(facts.context),
        "Max Output Tokens": str(facts.output),
        "Supports Images": "yes" if facts.images else "no",
    }


def _by_form(_facts: Facts) -> tuple[str, ...]:
    return (
        tr("It keeps its settings in the editor's own database, so they are typed into its form."),
        tr("Not the LM Studio provider: that one speaks another protocol."),
    )


def _roo_notes(facts: Facts) -> tuple[str, ...]:
    return (
        tr(
            "Roo Code ended on 15 May 2026. Zoo Code goes on with it and has the same form: sndr connect zoo."
        ),
        *_by_form(facts),
    )


def _continue(facts: Facts) -> dict[str, Any]:
    capabilities = [*(["tool_use"] if facts.tools else []), *(["image_input"] if facts.images else [])]
    return {
        "name": TITLE,
        "version": "1.0.0",
        "schema": "v1",
        "models": [
            {
                "name": f"{facts.model} (SNDR)",
                "provider": "openai",
                "model": facts.model,
                "apiBase": facts.url,
                "apiKey": f"${{{{ secrets.{KEY_VARIABLE} }}}}" if facts.key_needed else ANY_KEY,
                "roles": ["chat", "edit", "apply"],
                **({"capabilities": capabilities} if capabilities else {}),
                "defaultCompletionOptions": {"contextLength": facts.context, "maxTokens": facts.output},
            }
        ],
    }


def _continue_notes(facts: Facts) -> tuple[str, ...]:
    if not facts.key_needed:
        return ()
    return (
        tr(
            "Continue reads the key from ~/.continue/.env: a line {key_variable}=KEY.",
            key_variable=KEY_VARIABLE,
        ),
    )


CURSOR = tr(
    "Cursor sends each request from its own servers, which cannot reach an address "
    "of this machine or of a private network. Use VS Code, Zed or an agent in its "
    "terminal."
)

EDITORS = (
    Client(
        "vscode",
        "VS Code",
        ClientKind.EDITOR,
        programs=("code",),
        folders=lambda machine: (machine.application / _CODE, machine.home / ".vscode"),
        files=(
            ConfigFile(
                Format.JSON,
                lambda machine: _code_folder(machine) / "chatLanguageModels.json",
                _vscode,
                ({"name": TITLE}, "models", {}, "url"),
            ),
        ),
        notes=_vscode_notes,
    ),
    Client(
        "zed",
        "Zed",
        ClientKind.EDITOR,
        programs=("zed", "zeditor"),
        folders=lambda machine: (_zed_folder(machine),),
        files=(
            ConfigFile(
                Format.JSON,
                lambda machine: _zed_folder(machine) / "settings.json",
                _zed,
                ("language_models", "openai_compatible", PROVIDER, "api_url"),
            ),
        ),
        notes=_zed_notes,
    ),
    Client(
        "cline",
        "Cline",
        ClientKind.EDITOR,
        programs=("cline",),
        patterns=(".vscode/extensions/saoudrizwan.claude-dev-*", ".cline"),
        fields=_form,
        notes=_by_form,
    ),
    Client(
        "roo",
        "Roo Code",
        ClientKind.EDITOR,
        patterns=(".vscode/extensions/rooveterinaryinc.roo-cline-*",),
        fields=_form,
        notes=_roo_notes,
    ),
    Client(
        "zoo",
        "Zoo Code",
        ClientKind.EDITOR,
        patterns=(".vscode/extensions/zoocodeorganization.zoo-code-*",),
        fields=_form,
        notes=_by_form,
    ),
    Client(
        "continue",
        "Continue",
        ClientKind.EDITOR,
        programs=("cn",),
        folders=lambda machine: (machine.home / ".continue",),
        patterns=(".vscode/extensions/continue.continue-*",),
        files=(
            ConfigFile(
                Format.YAML,
                lambda machine: machine.home / ".continue" / "config.yaml",
                _continue,
                ("models", {"name": "* (SNDR)"}, "apiBase"),
                frozenset({"name", "version", "schema"}),
            ),
        ),
        notes=_continue_notes,
    ),
    Client(
        "cursor",
        "Cursor",
        ClientKind.EDITOR,
        programs=("cursor",),
        folders=lambda machine: (machine.application / "Cursor", machine.home / ".cursor"),
        impossible=CURSOR,
    ),
)
