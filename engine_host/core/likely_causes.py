"""Likely causes of what several places meet in the same way: something gave no answer, or not in time."""

from engine_host.protocol.language import tr


def slow_start() -> str:
    """Return why an engine may not have answered in time."""
    return tr("It may still read the model or compile, which takes longer on a busy machine.")


def slow_end() -> str:
    """Return why an engine may still be stopping."""
    return tr("It may be finishing answers, or waiting for a device or disk that does not answer.")


def odd_words_over_ssh() -> str:
    """Return why a machine may have answered a command over ssh with something else."""
    return tr("Its shell may print text of its own at login, or the connection ended in the middle.")


def lost_connection() -> str:
    """Return why a connection to another machine may not stand any more."""
    return tr("The network may be down, or that machine asleep, switched off or starting anew.")
