"""The table of the host's settings as the window shows them."""

from __future__ import annotations

from dataclasses import dataclass

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
    Entry("endpoint.host", "Endpoint", "Address", "127.0.0.1 keeps it on this machine.", "text"),
    Entry("endpoint.port", "Endpoint", "Port", "Port of the OpenAI endpoint.", "number"),
    Entry(
        "endpoint.allowed_hosts",
        "Endpoint",
        "Allowed host names",
        "Host names (box.example.org) or web origins (https://chat.example.org).",
        "words",
    ),
    Entry(
        "endpoint.queue_limit",
        "Endpoint",
        "Queue limit",
        "Requests beyond this many waiting are refused.",
        "number",
    ),
    Entry(
        "endpoint.load_wait",
        "Endpoint",
        "Wait for a load",
        "Seconds that a request waits for a model that it loads; 0 lets none wait.",
        "number",
    ),
    Entry(
        "endpoint.path",
        "Endpoint",
        "Path",
        "Where a proxy shows the endpoint, such as /llm; empty without one.",
        "text",
    ),
    Entry(
        "endpoint.tls_certificate",
        "Endpoint",
        "TLS certificate",
        "A PEM file with the certificate and its chain; with the key the endpoint speaks https.",
        "path",
    ),
    Entry(
        "endpoint.tls_key",
        "Endpoint",
        "TLS key",
        "The PEM file with the certificate's key, which nobody else may read.",
        "path",
    ),
    Entry(
        "models.folders",
        "Models",
        "Model folders",
        "Searched for GGUF files and checkpoints.",
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
        "Automatic uses the fastest one installed.",
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
    Entry(
        "engine.vllm",
        "Engine",
        "vLLM",
        "The version that starts use where none is named, such as 0.32.0-cuda; or a folder with one.",
        "path",
    ),
    Entry(
        "engine.vllm_before",
        "Engine",
        "vLLM before",
        "What `sndr engine pin --back` uses again.",
        "path",
    ),
    Entry("engine.streams", "Engine", "Streams", "Requests in parallel.", "number"),
    Entry(
        "engine.context",
        "Engine",
        "Context",
        "Tokens per stream, unless a start sets it.",
        "number",
    ),
    Entry("engine.threads", "Engine", "Threads", "CPU threads of an engine.", "number"),
    Entry(
        "engine.keep",
        "Engine",
        "Keep engines running",
        "Engines keep running when the program ends.",
        "switch",
    ),
    Entry(
        "engine.verify",
        "Engine",
        "After a start, verify",
        "Checks the answers of every engine that was started; Bench shows what came of it.",
        "choice",
        ("off", "smoke", "full"),
    ),
    Entry(
        "patches.off",
        "Patches",
        "Switched off",
        "Patches or families left out of every vLLM start.",
        "words",
    ),
    Entry(
        "patches.on",
        "Patches",
        "Switched on",
        "Patches added to every vLLM start.",
        "words",
    ),
    Entry(
        "alerts.gpu_temperature",
        "Alerts",
        "GPU temperature",
        "Degrees Celsius from which a GPU is too hot; 0 never tells.",
        "number",
    ),
    Entry(
        "alerts.gpu_memory",
        "Alerts",
        "GPU memory",
        "Share of a GPU's memory in use from which it is full (0.99); 0 never tells.",
        "number",
    ),
    Entry(
        "alerts.gpu_ecc", "Alerts", "GPU memory errors", "Tell of errors that ECC cannot correct.", "switch"
    ),
    Entry(
        "alerts.ram",
        "Alerts",
        "RAM",
        "Share of RAM in use from which it is full (0.95); 0 never tells.",
        "number",
    ),
    Entry(
        "alerts.disk_free",
        "Alerts",
        "Free space of disks",
        "GiB below which the disk of models, data or cache is full; 0 never tells.",
        "number",
    ),
    Entry(
        "host.outlive_window",
        "Program",
        "Keep the host running",
        "Host and endpoint keep running when the window closes.",
        "switch",
    ),
    Entry(
        "host.log_level",
        "Program",
        "Log level",
        "Detail of the engine host's log.",
        "choice",
        ("debug", "info", "warning", "error"),
    ),
    Entry(
        "host.gpu_trace",
        "Program",
        "Recorded GPU trace",
        "A file of `sndr telemetry record`, played in Monitor beside what is measured, marked as recorded.",
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
