"""The newest figure of an engine is one figure, whichever page shows it."""

import re
from pathlib import Path

import pytest

import sndr_gui
from engine_host.protocol.engines import EngineState, Readings
from engine_host.protocol.events import TelemetryEvent
from engine_host.protocol.telemetry import Sample
from sndr_gui.host.state import HostState
from sndr_gui.models.engine.now import decode_now, kv_tokens_now, memory_now
from tests.views.samples import host as samples


@pytest.mark.parametrize(("sampled_at", "shown"), [(101.0, 2.0), (99.0, 1.0)])
def test_the_newer_one_of_sample_and_state_is_shown(sampled_at: float, shown: float) -> None:
    state = HostState()
    readings = Readings(at=100.0, decode_rate=1.0, memory=1, kv_tokens=1)
    engine = samples.engine(EngineState.READY, id="e", readings=readings)
    names = ("decode_rate", "memory", "kv.tokens")
    values = {f"engine.e.{name}": 2.0 for name in names}
    state.apply(TelemetryEvent(seq=1, sample=Sample(at=sampled_at, values=values)))
    for now in (decode_now, memory_now, kv_tokens_now):
        assert now(state, engine) == shown
        assert now(HostState(), samples.engine(EngineState.READY, readings=None)) is None


def test_no_other_module_of_the_window_chooses_between_sample_and_state() -> None:
    root = Path(sndr_gui.__file__).parent
    own = re.compile(r"readings\.(decode_rate|memory)\b")
    others = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if own.search(path.read_text(encoding="utf-8"))
    ]
    assert others == []
