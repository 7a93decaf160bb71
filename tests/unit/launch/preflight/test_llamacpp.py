"""What is worth knowing before a start, and what stops it."""

import pytest

from engine_host.launch.preflight.llamacpp import findings
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import ServerChoice
from tests.unit.launch.models import model, resolved, server

GPU = Gpu(index=0, uuid="GPU-0", name="RTX 3090", memory_total=24 << 30, memory_used=0)

PLENTY = 1 << 40
KV = 16 * 4 * 256 * 4096
# Compute and output buffers and the server itself.
REST = 256 * ((3 * 4096 + 4 * 1024) * 4 + 4096 * 2) + 32_000 * 4 + (90 << 20)
NEEDED = (1 << 30) + KV + REST


def test_a_start_that_fits_has_no_findings() -> None:
    assert findings(model(), resolved(), server(), PLENTY, PLENTY) == []


@pytest.mark.parametrize(("free", "short"), [(NEEDED, False), (NEEDED - 1, True)])
def test_memory_that_is_short_is_told_with_its_numbers(free: int, short: bool) -> None:
    found = findings(model(), resolved(), server(), free, PLENTY)
    assert bool(found) is short
    if found:
        (finding,) = found
        assert (finding.id, finding.severity, finding.reason) == (
            "memory_short",
            Severity.WARNING,
            Reason.OUT_OF_MEMORY,
        )
        told = {"weights": 1 << 30, "kv_estimate": KV, "free": free, "total": PLENTY}
        assert told.items() <= finding.evidence.items()
        assert finding.fix is not None
        assert " A context of 3,840 tokens fits." in finding.fix.text, "cells come in 256"


def test_memory_that_the_machine_does_not_have_stops_the_start() -> None:
    (finding,) = findings(model(), resolved(), server(), 1 << 20, NEEDED - 1)
    assert (finding.severity, finding.reason) == (Severity.ERROR, Reason.OUT_OF_MEMORY)
    (finding,) = findings(model(), resolved(), server(), 1 << 20, NEEDED)
    assert finding.severity is Severity.WARNING


def test_a_cache_that_cannot_be_estimated_is_not_called_nothing() -> None:
    (finding,) = findings(model(layers=None), resolved(), server(), 1 << 20, PLENTY)
    assert finding.evidence["kv_estimate"] is None
    assert finding.fix is not None
    assert "context of" not in finding.fix.text


def test_memory_is_not_counted_where_a_device_holds_it() -> None:
    assert findings(model(), resolved(), server(devices=("CUDA0",)), 1, 1) == []


def test_a_context_beyond_training_is_told() -> None:
    capped = resolved()
    capped.cap("context", 2048, "no more")
    (finding,) = findings(model(context=2048), capped, server(), PLENTY, PLENTY)
    assert (finding.id, finding.severity) == ("context_beyond_training", Severity.WARNING)
    assert finding.evidence == {"trained": 2048, "context": 4096}
    assert finding.fix is not None
    assert finding.fix.settings == {"context": 2048}
    assert findings(model(context=None), resolved(), server(), PLENTY, PLENTY) == []


@pytest.mark.parametrize("speculation", ["draft-mtp", "ngram-simple,draft-mtp"])
def test_drafting_without_a_layer_for_it_stops_the_start(speculation: str) -> None:
    (finding,) = findings(model(), resolved(speculation=speculation), server(), PLENTY, PLENTY)
    assert (finding.severity, finding.reason) == (Severity.ERROR, Reason.UNSUPPORTED)
    assert finding.fix is not None


def test_a_layer_for_drafting_is_offered_when_it_is_not_used() -> None:
    (finding,) = findings(model(mtp_layers=1), resolved(), server(), PLENTY, PLENTY)
    assert (finding.id, finding.severity) == ("mtp_available", Severity.INFO)
    assert finding.fix is not None
    assert finding.fix.settings == {"speculation": "draft-mtp"}
    assert findings(model(mtp_layers=1), resolved(speculation="draft-mtp"), server(), PLENTY, PLENTY) == []
    assert findings(model(), resolved(speculation="ngram-simple"), server(), PLENTY, PLENTY) == []


def test_the_prebuilt_server_offers_the_build() -> None:
    (finding,) = findings(model(), resolved(), server(ServerChoice.PREBUILT), PLENTY, PLENTY)
    assert (finding.id, finding.severity) == ("prebuilt_server", Severity.INFO)
    assert finding.fix is not None
    assert finding.fix.action is not None
    assert finding.fix.action.path == "/v1/servers/build"


@pytest.mark.parametrize("choice", [ServerChoice.PREBUILT, ServerChoice.BUILT, ServerChoice.OWN])
def test_a_gpu_that_stays_idle_is_told_with_the_build_that_uses_it(choice: ServerChoice) -> None:
    (finding,) = findings(model(), resolved(), server(choice), PLENTY, PLENTY, gpus=(GPU,))
    assert (finding.id, finding.severity) == ("gpu_unused", Severity.WARNING)
    assert finding.message.startswith("RTX 3090 stays idle")
    assert finding.fix is not None
    assert finding.fix.action is not None
    assert finding.fix.action.path == "/v1/servers/build"
    assert ("engine.server" in finding.fix.text) is (choice is ServerChoice.OWN)
    (small,) = findings(model(size=1 << 20), resolved(), server(choice), PLENTY, PLENTY, gpus=(GPU,))
    assert small.severity is Severity.INFO


def test_a_gpu_that_is_used_or_not_wanted_is_not_called_idle() -> None:
    used = server(devices=("CUDA0: RTX 3090",))
    assert findings(model(), resolved(), used, PLENTY, PLENTY, gpus=(GPU,)) == []
    assert findings(model(), resolved(gpu_layers=0), server(), PLENTY, PLENTY, gpus=(GPU,)) == []
