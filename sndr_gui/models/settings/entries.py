"""The table of the host's settings as the window shows them."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.plans import ServerChoice


@dataclass(frozen=True)
class Entry:
    """One setting as it is shown: its group, label, help and the kind of its control."""

    name: str
    group: str
    label: str
    help: str
    kind: str
    choices: tuple[str, ...] = ()


ENTRIES = (
    Entry("endpoint.host", "Endpoint", "Address", "127.0.0.1 keeps it on this machine.", "text"),
    Entry("endpoint.port", "Endpoint", "Port", "Where editors and agents connect.", "number"),
    Entry(
        "endpoint.allowed_hosts",
        "Endpoint",
        "Allowed host names",
        "Further names of this machine (box.example.org), and web pages that may ask (https://chat.example.org).",
        "words",
    ),
    Entry(
        "endpoint.queue_limit",
        "Endpoint",
        "Waiting requests",
        "More than this many are refused at once.",
        "number",
    ),
    Entry(
        "models.folders",
        "Models",
        "Model folders",
        "Looked through for GGUF files and checkpoints.",
        "folders",
    ),
    Entry(
        "models.other_programs",
        "Models",
        "Models of other programs",
        "Also list files that other programs downloaded.",
        "switch",
    ),
    Entry(
        "engine.server",
        "Engine",
        "llama.cpp server",
        "Automatic takes the fastest one that is here.",
        "choice",
        tuple(c.value for c in ServerChoice if c is not ServerChoice.VENV),
    ),
    Entry(
        "engine.own_server",
        "Engine",
        "Your own llama-server",
        "Path of a llama-server that you built yourself.",
        "path",
    ),
    Entry("engine.streams", "Engine", "Streams", "Requests answered in parallel.", "number"),
    Entry(
        "engine.context",
        "Engine",
        "Context",
        "Tokens for one stream, unless a start says otherwise.",
        "number",
    ),
    Entry("engine.threads", "Engine", "Threads", "CPU threads of an engine.", "number"),
    Entry("engine.keep", "Engine", "Keep engines running", "Engines go on when the program ends.", "switch"),
    Entry(
        "patches.off",
        "Patches",
        "Switched off",
        "Patches or families that no start of vLLM gets.",
        "words",
    ),
    Entry(
        "patches.on",
        "Patches",
        "Switched on",
        "Patches that are not on by themselves.",
        "words",
    ),
    Entry(
        "host.outlive_window",
        "Program",
        "Stay after the window closes",
        "The engine host and the endpoint go on.",
        "switch",
    ),
    Entry(
        "host.log_level",
        "Program",
        "Log level",
        "How much the engine host writes to its log.",
        "choice",
        ("debug", "info", "warning", "error"),
    ),
)
