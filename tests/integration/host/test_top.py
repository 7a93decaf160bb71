"""`sndr top` with a real host, also in a terminal; and what was measured outlives the host."""

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import islice

import pytest

from engine_host.cli.top.reading import readings
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryQuery
from tests.integration.host.conftest import RunningHost, wait_for
from tests.integration.host_process import SNDR, environment, sndr


def test_once_as_text_and_as_json(host: RunningHost) -> None:
    host.start()
    text = sndr("top", "--once")
    assert (text.code, text.err) == (0, "")
    assert "ready" in text.out
    assert "threads" in text.out
    told = json.loads(sndr("top", "--once", "--json").out)
    assert [one["state"] for one in told["engines"]] == ["ready"]
    assert told["host"]["ram_total"] > 0


def test_without_a_host_it_says_what_would_help() -> None:
    ended = sndr("top", "--json")
    assert ended.code == 3
    assert ended.problem()["fix"]["command"] == "sndr serve"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_in_a_terminal_until_it_is_interrupted(host: RunningHost, options: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*SNDR, "top", "--interval", "0.2", *options],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(TERM="xterm", COLUMNS="120", LINES="40"),
    )
    os.close(theirs)
    seen = b""
    try:
        while seen.count(b"threads") < 3:
            seen += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        if not options:
            while b"\x1b[?1049l" not in seen:
                seen += os.read(ours, 65536)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"Traceback" not in seen


def test_a_reading_that_takes_longer_than_the_interval_ends_nothing(host: RunningHost) -> None:
    seen = [one.at for one in islice(readings(host.client, 0.0), 3)]
    assert seen == sorted(seen)


def test_what_was_measured_outlives_the_host(host: RunningHost, new_host: Callable[..., RunningHost]) -> None:
    began = time.time()

    def measured(running: RunningHost) -> tuple[float | None, ...]:
        asked = TelemetryQuery(names=("ram.used",), since=began - 5)
        series = running.client.call(ops.TELEMETRY, asked).series
        return series[0].values if series else ()

    wait_for(lambda: len(measured(host)) >= 3, "three samples", 30)
    before = [value for value in measured(host) if value is not None]
    assert host.end(signal.SIGTERM) == 0
    again = new_host().connect()
    assert [value for value in measured(again) if value is not None][: len(before) - 1] == before[:-1]
