"""`sndr status`: what is of now, and how many starts there were before."""

from typing import Any

from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.test_commands import ENGINE, Sndr, engines
from tests.unit.cli.test_run import HOST


def started(number: int, state: str) -> dict[str, Any]:
    """An engine of the past; a higher number is newer."""
    return {**ENGINE, "id": f"engine-{number}", "state": state, "created_at": float(number)}


def test_starts_that_ended_are_counted_and_shown_when_asked_for(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines(
        started(1, "unloaded"), started(2, "failed"), started(3, "ready"), started(4, "unloaded")
    )
    _, out, _ = sndr("status")
    assert "engine-3" in out
    assert "engine-1" not in out
    assert "engine-2" not in out, "a newer start took its place"
    assert "3 earlier starts: sndr status --all" in out
    _, out, _ = sndr("status", "--all")
    assert all(f"engine-{number}" in out for number in range(1, 5))
    assert "earlier" not in out


def test_a_newest_start_that_failed_is_shown(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/engines"] = engines(started(1, "failed"), started(2, "failed"))
    _, out, _ = sndr("status")
    assert "engine-2" in out
    assert "1 earlier start: sndr status --all" in out
    host.answers["GET /v1/engines"] = engines(started(1, "unloaded"))
    _, out, _ = sndr("status")
    assert "No engine runs." in out
