"""`sndr alerts` with a host of canned answers."""

import json
import time
from collections.abc import Callable

from tests.unit.cli.fake_host import FakeHost

Sndr = Callable[..., tuple[int, str, str]]
ALERT = {"id": "a1", "kind": "disk", "subject": "/models", "text": "The disk of /models has 1.0 GiB left."}


def test_what_lasts_what_was_and_what_was_a_moment(host: FakeHost, sndr: Sndr) -> None:
    now = time.time()
    found = [
        {**ALERT, "at": now - 90},
        {**ALERT, "at": now - 9000, "ended_at": now - 8970, "text": "GPU 0 is at 95 °C."},
        {
            **ALERT,
            "at": 5.0,
            "ended_at": 5.0,
            "kind": "engine_died",
            "engine": "e7",
            "text": "It \x1b[31mdied.",
        },
    ]
    host.answers["GET /v1/alerts"] = (200, {"seq": 1, "alerts": found})
    code, out, _ = sndr("alerts", "--all")
    assert code == 0
    assert "still, 1 min 30 s" in out
    assert "30.0 s" in out
    assert "sndr models list" in out
    assert "sndr autopsy e7" in out
    assert "\x1b" not in out
    assert "alerts.gpu_temperature" in out
    code, out, _ = sndr("alerts", "--json")
    assert [one["id"] for one in json.loads(out)["alerts"]] == ["a1"] * 3


def test_nothing_is_said_too_and_what_was_seen_is_put_away(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/alerts"] = host.answers["POST /v1/alerts/see"] = (200, {"seq": 1, "alerts": []})
    code, out, _ = sndr("alerts", "--seen")
    assert (code, out.splitlines()[0]) == (0, "Nothing needs attention.")
