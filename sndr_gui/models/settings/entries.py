"""The table of the host's settings as the window shows them."""

from __future__ import annotations

from dataclasses import dataclass

from engine_host.protocol.language import tr, translated
from engine_host.protocol.launch.plans import ServerChoice
from engine_host.protocol.settings import MEANINGS


@dataclass(frozen=True)
class Entry:
    """One setting as it is shown: its group, label and the kind of its control."""

    name: str
    group: str
    label: str
    kind: str
    choices: tuple[str, ...] = ()

    @property
    def help(self) -> str:
        """Its meaning and unit, in a sentence; empty for one that this version does not know."""
        return translated(MEANINGS.get(self.name, ""))


ENTRIES = (
    Entry("endpoint.host", tr("Endpoint"), tr("Address"), "text"),
    Entry("endpoint.port", tr("Endpoint"), tr("Port"), "number"),
    Entry("endpoint.allowed_hosts", tr("Endpoint"), tr("Allowed host names"), "words"),
    Entry("endpoint.queue_limit", tr("Endpoint"), tr("Queue limit"), "number"),
    Entry("endpoint.load_wait", tr("Endpoint"), tr("Wait for a load"), "number"),
    Entry("endpoint.path", tr("Endpoint"), tr("Path"), "text"),
    Entry("endpoint.tls_certificate", tr("Endpoint"), tr("TLS certificate"), "path"),
    Entry("endpoint.tls_key", tr("Endpoint"), tr("TLS key"), "path"),
    Entry("models.folders", tr("Models"), tr("Model folders"), "folders"),
    Entry("models.other_programs", tr("Models"), tr("Models of other programs"), "switch"),
    Entry(
        "engine.server",
        tr("Engine"),
        tr("llama.cpp server"),
        "choice",
        tuple(c.value for c in ServerChoice if c is not ServerChoice.VENV),
    ),
    Entry("engine.own_server", tr("Engine"), tr("Your own llama-server"), "path"),
    Entry("engine.vllm", tr("Engine"), "vLLM", "path"),
    Entry("engine.vllm_before", tr("Engine"), tr("Previous vLLM"), "path"),
    Entry("engine.streams", tr("Engine"), tr("Streams"), "number"),
    Entry("engine.context", tr("Engine"), tr("Context"), "number"),
    Entry("engine.threads", tr("Engine"), tr("Threads"), "number"),
    Entry("engine.keep", tr("Engine"), tr("Keep engines running"), "switch"),
    Entry("engine.verify", tr("Engine"), tr("After a start, verify"), "choice", ("off", "smoke", "full")),
    Entry("patches.off", tr("Patches"), tr("Switched off"), "words"),
    Entry("patches.on", tr("Patches"), tr("Switched on"), "words"),
    Entry("alerts.gpu_temperature", tr("Alerts"), tr("GPU temperature"), "number"),
    Entry("alerts.gpu_memory", tr("Alerts"), tr("GPU memory"), "number"),
    Entry("alerts.gpu_ecc", tr("Alerts"), tr("GPU memory errors"), "switch"),
    Entry("alerts.ram", tr("Alerts"), "RAM", "number"),
    Entry("alerts.disk_free", tr("Alerts"), tr("Free space of disks"), "number"),
    Entry("host.outlive_window", tr("Program"), tr("Keep the host running"), "switch"),
    Entry("host.log_level", tr("Program"), tr("Log level"), "choice", ("debug", "info", "warning", "error")),
    Entry("host.gpu_trace", tr("Program"), tr("Recorded GPU trace"), "path"),
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
