"""Checks of a preset's start against what was measured with it."""

import re
from collections.abc import Iterator

from engine_host.core.findings.table import finding
from engine_host.engines.llamacpp.servers import build_fix
from engine_host.protocol.catalog import PresetEntry
from engine_host.protocol.launch.plans import Finding


def without_gpu(preset: PresetEntry, server: str, *, gpus: bool) -> Finding:
    """A preset for GPUs, and a llama.cpp that uses none; `gpus`: this machine has NVIDIA's."""
    return finding(
        "engine.without_gpu" if gpus else "engine.without_gpu/vulkan",
        fix=build_fix("") if gpus else None,
        preset=preset.id,
        server=server,
    )


def other_versions(preset: PresetEntry, running: str) -> Iterator[Finding]:
    """Measurements that were all made with another version than the one that would run."""
    pins = list(dict.fromkeys(evidence.pin for evidence in preset.card.evidence))
    if not pins or any(_same(pin, running) for pin in pins):
        return
    yield finding("preset.other_version", preset=preset.id, pins=pins, version=running)


def _same(pin: str, running: str) -> bool:
    """Return True when two descriptions name one version or one commit, which may be cut short."""
    here = _VERSION.findall(running)
    return any(
        one.startswith(other) or other.startswith(one) for one in _VERSION.findall(pin) for other in here
    )


# 0.32.0, b8000, 0c1e57098: what has digits, and enough of them to mean one thing.
_VERSION = re.compile(r"\b(?=[\w.]*\d)[\w.]{5,}\b")
