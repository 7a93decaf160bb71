"""Carries out the step that standard input names, and prints its answer behind a mark."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any, Callable, Collection, Mapping

from engine_host.remote.install.there.places import Alone, failure_of
from engine_host.remote.install.there.programs import end_with_caller

MARK = "sndr-answer "


def carry_out(
    steps: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]],
    changing: Collection[str],
    ending_with_caller: Collection[str],
) -> int:
    """Do the step that standard input names; 0 also when it failed, as the answer says it.

    One of those that change something goes at a time; some end when nobody waits for them any more.
    """
    stream = sys.stdin.buffer
    asked = json.loads(stream.read(int(stream.readline())))
    os.umask(0o077)
    if asked["step"] in ending_with_caller:
        threading.Thread(target=end_with_caller, daemon=True).start()
    try:
        with Alone(asked["step"] in changing):
            answer: dict[str, Any] = {"done": steps[asked["step"]](asked)}
    except Exception as error:  # noqa: BLE001 - whatever it was, the answer says it
        failure = failure_of(error)
        answer = {"failed": failure.reason, "message": failure.message, "evidence": failure.evidence}
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write("\n" + MARK + json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0
