"""A command that waits says for what, once it waits for longer than a person takes for an answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from engine_host.cli.output import output_here

PATIENCE = 2.0
"""Seconds without a word."""


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
def waiting_for_host(asked: str) -> Iterator[None]:
    """Say what the engine host was asked, should its answer take long."""
    with told_when_long(f"Waiting for the engine host. Asked for: {asked}"):
        yield
