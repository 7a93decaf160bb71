"""Lines that a follower of the log was too slow for are counted, and every other one is printed."""

import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from engine_host.protocol.engines import EngineState
from tests.integration.engines.conftest import built_folder
from tests.integration.host.conftest import RunningHost, new_host
from tests.integration.host_process import sndr, started

__all__ = ["built_folder", "new_host"]
LINES = 150_000
TALK = """case " $* " in *" --model "*)
  echo talk 0 of an engine
  while [ ! -e {go} ]; do sleep 0.05; done
  seq -f 'talk %.0f of an engine that says much' {lines} ;;
esac"""


def test_lines_that_a_frozen_follower_missed_are_counted(
    built_folder: Path, home: Path, new_host: Callable[..., RunningHost]
) -> None:
    wrapper, go = home / "llama-server", home / "go"
    server = built_folder / "bin" / "llama-server"
    wrapper.write_text(f'#!/bin/sh\n{TALK.format(go=go, lines=LINES)}\nexec {server} "$@"\n')
    wrapper.chmod(0o755)
    assert sndr("settings", "set", "engine.own_server", str(wrapper)).code == 0
    assert sndr("settings", "set", "engine.server", "own").code == 0
    host = new_host().connect()
    with started("logs", "--follow") as follower:
        engine = host.start(wait=False)
        told = talk_of(follower)
        assert next(told) == 0
        # More than is kept for a reader: 16 MB of events.
        follower.send_signal(signal.SIGSTOP)
        go.touch()
        host.until(engine.id, EngineState.READY)
        follower.send_signal(signal.SIGCONT)
        errors: list[str] = []
        reading = threading.Thread(target=lambda: errors.extend(follower.stderr or ()))
        reading.start()
        numbers = list(told)
        follower.kill()
        reading.join(10)
    missed = [int(one[1]) for one in (re.search(r"Left out of \S+: (\d+),", line) for line in errors) if one]
    assert missed, errors
    assert numbers == sorted(set(numbers))
    # What it missed ends before what the server itself says.
    assert len(numbers) + sum(missed) == LINES


def talk_of(follower: "subprocess.Popen[str]") -> Iterator[int]:
    """The numbers of the lines that a follower prints, up to the last."""
    for line in follower.stdout or ():
        if (found := re.search(r"talk (\d+) of an engine", line)) is not None:
            yield int(found[1])
            if int(found[1]) == LINES:
                return
