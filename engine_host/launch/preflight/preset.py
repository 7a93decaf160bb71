"""Checks of a preset's start against what was measured with it."""

import re
from collections.abc import Iterator

from engine_host.engines.llamacpp.servers import build_fix
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import PresetEntry
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.plans import Finding


def without_gpu(preset: PresetEntry, server: str, *, gpus: bool) -> Finding:
    """A preset for GPUs, and a llama.cpp that uses none; `gpus`: this machine has NVIDIA's."""
    container = f"run it in a container: sndr launch {preset.id} --render docker"
    return Finding(
        id="engine.without_gpu",
        severity=Severity.ERROR,
        reason=Reason.ENGINE_UNUSABLE,
        message=f"{preset.id} is for GPUs, and this llama.cpp ({server}) was built without them.",
        fix=build_fix(f"Build llama.cpp for the GPU of this machine, or {container}")
        if gpus
        else Fix(
            text=f"Build llama.cpp for the GPU (AMD's and Intel's compute with Vulkan), or {container}",
            command="sndr engine build llama.cpp --backend vulkan",
        ),
        evidence={"preset": preset.id, "server": server},
    )


def other_versions(preset: PresetEntry, running: str) -> Iterator[Finding]:
    """Measurements that were all made with another version than the one that would run."""
    pins = list(dict.fromkeys(evidence.pin for evidence in preset.card.evidence))
    if not pins or any(_same(pin, running) for pin in pins):
        return
    yield Finding(
        id="preset.other_version",
        severity=Severity.INFO,
        message=f"What is known of {preset.id} was measured with {', '.join(pins)}; {running} runs here.",
        fix=Fix(
            text="Take its figures as a hint, and compare with what this machine does.",
            command=f"sndr presets show {preset.id}",
        ),
        evidence={"pins": pins, "version": running},
    )


def _same(pin: str, running: str) -> bool:
    """Whether two descriptions name one version or one commit, which may be cut short."""
    here = _VERSION.findall(running)
    return any(
        one.startswith(other) or other.startswith(one) for one in _VERSION.findall(pin) for other in here
    )


# 0.32.0, b8000, 0c1e57098: what has digits, and enough of them to mean one thing.
_VERSION = re.compile(r"\b(?=[\w.]*\d)[\w.]{5,}\b")
