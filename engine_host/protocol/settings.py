"""The program's settings, each with the layer that set it."""

from typing import Any, Literal

from pydantic import Field

from engine_host.protocol.base import Command, Wire
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding, Layer, Setting

__all__ = ["MEANINGS", "Layer", "MendSettings", "Setting", "SettingPage", "SettingsChange", "SettingsRepair"]


class SettingPage(Wire):
    """All settings as resolved now, and the file that holds the user's.

    `warnings` answers a change: what was saved and means nothing now. `problem`: the file is wrong there, and
    what of it is right is used; the defaults stand for the rest, as they do for the whole endpoint where a
    value of it is wrong.
    """

    seq: int
    file: str
    settings: tuple[Setting, ...]
    warnings: tuple[Finding, ...] = ()
    problem: Problem | None = None


class SettingsChange(Command):
    """Values to set; None removes the user's value, so that the default holds again."""

    values: dict[str, Any] = Field(min_length=1)


class SettingsRepair(Wire):
    """The change that a repair would make; no `diff` where the file is right, or cannot be repaired."""

    file: str
    problem: Problem | None = None
    diff: str = ""


class MendSettings(Command):
    """The way to mend the file: repair it, set it aside, or read it again after it was edited.

    A repair keeps the file as it was beside it.
    """

    how: Literal["repair", "set_aside", "read_again"]


MEANINGS = {
    "endpoint.host": tr("127.0.0.1 keeps it on this machine."),
    "endpoint.port": tr("Port of the OpenAI endpoint."),
    "endpoint.allowed_hosts": tr("Host names (box.example.org) or web origins (https://chat.example.org)."),
    "endpoint.queue_limit": tr("Requests beyond this many waiting are refused."),
    "endpoint.load_wait": tr("Seconds that a request waits for a model that it loads; 0 lets none wait."),
    "endpoint.path": tr("Where a proxy shows the endpoint, such as /llm; empty without one."),
    "endpoint.tls_certificate": tr(
        "A PEM file with the certificate and its chain; with the key the endpoint speaks https."
    ),
    "endpoint.tls_key": tr("The PEM file with the certificate's key, which nobody else may read."),
    "models.folders": tr("Searched for GGUF files and checkpoints."),
    "models.other_programs": tr("Also list files that other programs downloaded."),
    "engine.server": tr("Automatic uses the fastest one installed."),
    "engine.own_server": tr("Path of a llama-server that you built yourself."),
    "engine.vllm": tr(
        "The version that starts use where none is named, such as 0.32.0-cuda; or a folder with one."
    ),
    "engine.vllm_before": tr("What `sndr engine pin --back` uses again."),
    "engine.streams": tr("Requests in parallel."),
    "engine.context": tr("Tokens per stream, unless a start sets it."),
    "engine.threads": tr("CPU threads of an engine."),
    "engine.keep": tr("Engines keep running when the program ends."),
    "engine.verify": tr("Checks the answers of every engine that was started; Bench shows what came of it."),
    "patches.off": tr("Patches or families left out of every vLLM start."),
    "patches.on": tr("Patches added to every vLLM start."),
    "alerts.gpu_temperature": tr("Degrees Celsius from which a GPU is too hot; 0 never tells."),
    "alerts.gpu_memory": tr("Share of a GPU's memory in use from which it is full (0.99); 0 never tells."),
    "alerts.gpu_ecc": tr("Tell of errors that ECC cannot correct."),
    "alerts.ram": tr("Share of RAM in use from which it is full (0.95); 0 never tells."),
    "alerts.disk_free": tr("GiB below which the disk of models, data or cache is full; 0 never tells."),
    "host.outlive_window": tr("Host and endpoint keep running when the window closes."),
    "host.log_level": tr("Detail of the engine host's log."),
    "host.gpu_trace": tr(
        "A file of `sndr telemetry record`, played in Monitor beside what is measured, marked as recorded."
    ),
}
"""Each setting of the host in a sentence, with its unit: for window and command line alike."""
