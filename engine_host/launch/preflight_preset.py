"""Checks of a preset's start against what was measured with it."""

import re
from collections.abc import Iterator

from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import PresetEntry
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.plans import Finding


def without_gpu(preset: PresetEntry, server: str) -> Finding:
    """A preset for GPUs, and a llama.cpp that uses none."""
    return Finding(
        id="engine.without_gpu",
        severity=Severity.ERROR,
        reason=Reason.ENGINE_UNUSABLE,
        message=f"{preset.id} is for GPUs, and this llama.cpp ({server}) was built without them.",
        fix=Fix(
            text="Name a llama-server of your own that was built with CUDA, and set engine.server to own; or "
            f"run it in a container: sndr launch {preset.id} --render docker",
            command="sndr settings set engine.own_server PATH",
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
