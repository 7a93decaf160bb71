"""A command that waits says for what, once it waits for longer than a person takes for an answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from engine_host.cli.output import output_here
from engine_host.cli.text.chosen_host import chosen_host, typed
from engine_host.protocol.operations.definition import Operation

PATIENCE = 2.0
"""Seconds without a word."""
NOTHING_DONE = "Nothing was changed: the same command begins anew."


@contextmanager
def told_when_long(text: str) -> Iterator[None]:
    """Say on stderr what is done, should it take longer than `PATIENCE`; not with --json."""
    # Asked for here: a context of click is of its thread alone.
    out = output_here()
    timer = threading.Timer(PATIENCE, out.note, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def waiting_for_host(operation: Operation[Any, Any]) -> Iterator[None]:
    """Say what the engine host was asked, should its answer take long, or be no longer waited for."""
    # What stands behind the semicolon is for whoever writes a client: what the answer is.
    asked = operation.text.partition(";")[0].rstrip(".") + "."
    where = f" on {chosen_host()}" if chosen_host() else ""
    begun = f"The engine host was asked for this, and may do it all the same: {asked}"
    if operation.only_plans:
        begun = NOTHING_DONE
    with (
        told_when_long(f"Waiting for the engine host{where}. Asked for: {asked}"),
        nullcontext() if operation.method == "GET" else told_if_interrupted(begun),
    ):
        yield


@contextmanager
def told_if_interrupted(goes_on: str) -> Iterator[None]:
    """Have the program say what goes on, should Ctrl+C end it in here; of several the outermost is said."""
    said = typed(goes_on)
    try:
        yield
    except KeyboardInterrupt as error:
        error.__notes__ = [said]
        raise
