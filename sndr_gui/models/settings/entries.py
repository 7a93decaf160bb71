"""The table of the host's settings as the window shows them."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import ServerChoice


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
    Entry("endpoint.host", tr("Endpoint"), tr("Address"), tr("127.0.0.1 keeps it on this machine."), "text"),
    Entry("endpoint.port", tr("Endpoint"), tr("Port"), tr("Port of the OpenAI endpoint."), "number"),
    Entry(
        "endpoint.allowed_hosts",
        tr("Endpoint"),
        tr("Allowed host names"),
        tr("Host names (box.example.org) or web origins (https://chat.example.org)."),
        "words",
    ),
    Entry(
        "endpoint.queue_limit",
        tr("Endpoint"),
        tr("Queue limit"),
        tr("Requests beyond this many waiting are refused."),
        "number",
    ),
    Entry(
        "endpoint.load_wait",
        tr("Endpoint"),
        tr("Wait for a load"),
        tr("Seconds that a request waits for a model that it loads; 0 lets none wait."),
        "number",
    ),
    Entry(
        "endpoint.path",
        tr("Endpoint"),
        tr("Path"),
        tr("Where a proxy shows the endpoint, such as /llm; empty without one."),
        "text",
    ),
    Entry(
        "endpoint.tls_certificate",
        tr("Endpoint"),
        tr("TLS certificate"),
        tr("A PEM file with the certificate and its chain; with the key the endpoint speaks https."),
        "path",
    ),
    Entry(
        "endpoint.tls_key",
        tr("Endpoint"),
        tr("TLS key"),
        tr("The PEM file with the certificate's key, which nobody else may read."),
        "path",
    ),
    Entry(
        "models.folders",
        tr("Models"),
        tr("Model folders"),
        tr("Searched for GGUF files and checkpoints."),
        "folders",
    ),
    Entry(
        "models.other_programs",
        tr("Models"),
        tr("Models of other programs"),
        tr("Also list files that other programs downloaded."),
        "switch",
    ),
    Entry(
        "engine.server",
        tr("Engine"),
        tr("llama.cpp server"),
        tr("Automatic uses the fastest one installed."),
        "choice",
        tuple(c.value for c in ServerChoice if c is not ServerChoice.VENV),
    ),
    Entry(
        "engine.own_server",
        tr("Engine"),
        tr("Your own llama-server"),
        tr("Path of a llama-server that you built yourself."),
        "path",
    ),
    Entry(
        "engine.vllm",
        tr("Engine"),
        "vLLM",
        tr("The version that starts use where none is named, such as 0.32.0-cuda; or a folder with one."),
        "path",
    ),
    Entry(
        "engine.vllm_before",
        tr("Engine"),
        tr("vLLM before"),
        tr("What `sndr engine pin --back` uses again."),
        "path",
    ),
    Entry("engine.streams", tr("Engine"), tr("Streams"), tr("Requests in parallel."), "number"),
    Entry(
        "engine.context",
        tr("Engine"),
        tr("Context"),
        tr("Tokens per stream, unless a start sets it."),
        "number",
    ),
    Entry("engine.threads", tr("Engine"), tr("Threads"), tr("CPU threads of an engine."), "number"),
    Entry(
        "engine.keep",
        tr("Engine"),
        tr("Keep engines running"),
        tr("Engines keep running when the program ends."),
        "switch",
    ),
    Entry(
        "engine.verify",
        tr("Engine"),
        tr("After a start, verify"),
        tr("Checks the answers of every engine that was started; Bench shows what came of it."),
        "choice",
        ("off", "smoke", "full"),
    ),
    Entry(
        "patches.off",
        tr("Patches"),
        tr("Switched off"),
        tr("Patches or families left out of every vLLM start."),
        "words",
    ),
    Entry(
        "patches.on",
        tr("Patches"),
        tr("Switched on"),
        tr("Patches added to every vLLM start."),
        "words",
    ),
    Entry(
        "alerts.gpu_temperature",
        tr("Alerts"),
        tr("GPU temperature"),
        tr("Degrees Celsius from which a GPU is too hot; 0 never tells."),
        "number",
    ),
    Entry(
        "alerts.gpu_memory",
        tr("Alerts"),
        tr("GPU memory"),
        tr("Share of a GPU's memory in use from which it is full (0.99); 0 never tells."),
        "number",
    ),
    Entry(
        "alerts.gpu_ecc",
        tr("Alerts"),
        tr("GPU memory errors"),
        tr("Tell of errors that ECC cannot correct."),
        "switch",
    ),
    Entry(
        "alerts.ram",
        tr("Alerts"),
        "RAM",
        tr("Share of RAM in use from which it is full (0.95); 0 never tells."),
        "number",
    ),
    Entry(
        "alerts.disk_free",
        tr("Alerts"),
        tr("Free space of disks"),
        tr("GiB below which the disk of models, data or cache is full; 0 never tells."),
        "number",
    ),
    Entry(
        "host.outlive_window",
        tr("Program"),
        tr("Keep the host running"),
        tr("Host and endpoint keep running when the window closes."),
        "switch",
    ),
    Entry(
        "host.log_level",
        tr("Program"),
        tr("Log level"),
        tr("Detail of the engine host's log."),
        "choice",
        ("debug", "info", "warning", "error"),
    ),
    Entry(
        "host.gpu_trace",
        tr("Program"),
        tr("Recorded GPU trace"),
        tr(
            "A file of `sndr telemetry record`, played in Monitor beside what is measured, "
            "marked as recorded."
        ),
        "path",
    ),
)

EXPERT = frozenset(
    {
        "endpoint.host",
        "endpoint.allowed_hosts",
        "endpoint.queue_limit",
        "endpoint.load_wait",
        "endpoint.path",
        "endpoint.tls_certificate",
        "endpoint.tls_key",
        "engine.own_server",
        "engine.vllm_before",
        "engine.streams",
        "engine.threads",
        "engine.verify",
        "patches.off",
        "patches.on",
        "alerts.gpu_ecc",
        "host.log_level",
        "host.gpu_trace",
    }
)
"""Left out at the simple level, unless somebody set them."""
