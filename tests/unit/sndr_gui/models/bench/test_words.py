"""The table of runs: its tones are told by what a run is, in whichever language its state is said."""

import pytest

from engine_host.protocol.bench.lab import Figure, LabRun, PartResult, Quantity, Standing
from sndr_gui.models.bench import words
from tests.unit.cli.bench.test_lab import a_run

WELL = Figure(quantity=Quantity.TTFT, standing=Standing.PUBLISHED, value=0.1, samples=5)
PART = PartResult(name="p", streams=1, warm=1, measured=5, max_tokens=9, done=5, figures=(WELL,))


@pytest.mark.parametrize(
    ("run", "tone"),
    [
        (a_run(parts=(PART,)), "good"),
        (a_run(parts=(PART,), baseline=True), "good"),
        (a_run(), "bad"),
        (a_run(parts=(PART,), stale="driver"), "warn"),
        (a_run(complete=False, ended_by="cancelled"), "warn"),
    ],
)
def test_a_state_has_its_tone_in_every_language(
    monkeypatch: pytest.MonkeyPatch, run: LabRun, tone: str
) -> None:
    monkeypatch.setattr(words, "state_text", lambda _run: "vollständig")
    state = words.columns()[-1]
    assert state.tone is not None
    assert state.tone(run) == tone
