"""The steps of an install there; the one that standard input names is done.

These modules are sent to the other machine and need Python 3.8 and its standard library alone. What is to be
done comes as JSON; the answer is the last line that begins with a mark, because a shell may print things of
its own before it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any, Callable

from engine_host.remote.install.there.places import Alone, failure_of
from engine_host.remote.install.there.probing import probe
from engine_host.remote.install.there.programs import end_with_caller
from engine_host.remote.install.there.releases import begin, demo, environment, switch
from engine_host.remote.install.there.removal import abandon, uninstall

MARK = "sndr-answer "


STEPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    one.__name__: one for one in (probe, begin, environment, switch, demo, abandon, uninstall)
}


_CHANGING = STEPS.keys() - {"probe", "demo"}
# The others bring what they began to an end by themselves: half a switch would leave no host.
_END_WITH_CALLER = {"probe", "begin", "environment"}


def main() -> int:
    """Do the step that standard input names; 0 also when it failed, as the answer says it."""
    stream = sys.stdin.buffer
    asked = json.loads(stream.read(int(stream.readline())))
    os.umask(0o077)
    if asked["step"] in _END_WITH_CALLER:
        threading.Thread(target=end_with_caller, daemon=True).start()
    try:
        with Alone(asked["step"] in _CHANGING):
            answer: dict[str, Any] = {"done": STEPS[asked["step"]](asked)}
    except Exception as error:  # noqa: BLE001 - whatever it was, the answer says it
        failure = failure_of(error)
        answer = {"failed": failure.reason, "message": failure.message, "evidence": failure.evidence}
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write("\n" + MARK + json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0
