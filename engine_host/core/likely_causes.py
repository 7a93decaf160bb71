"""Likely causes of what several places meet in the same way, one sentence for each."""

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


def lost_file() -> str:
    """Return why a file may not be where it was."""
    return tr("It may have been moved, renamed or deleted, or lie on a disk that is not attached.")


def unreadable_file() -> str:
    """Return why a file or a folder may not be read."""
    return tr("It may belong to somebody else, or lie on a disk that fails or is not attached.")


def unwritable_folder() -> str:
    """Return why nothing may be written or deleted in a folder."""
    return tr("The folder may belong to somebody else or be read-only, or its disk be full.")


def taken_port() -> str:
    """Return what may hold a port."""
    return tr("Engine hosts that still run hold ports, and so do services of the system.")


def foreign_address() -> str:
    """Return why nothing may listen on an address."""
    return tr("It may belong to another machine, or to a network that is not connected now.")


def kept_port() -> str:
    """Return why the system may refuse a port."""
    return tr("Ports below 1024 are kept for the system, unless an administrator gave them free.")


def silent_engine() -> str:
    """Return why an engine that runs may give no answer, or a broken one."""
    return tr("It may be overloaded, be stopping, or have ended just now.")


def none_started() -> str:
    """Return why no engine may run."""
    return tr("None was started yet, or the last one has ended.")


def busy_hub() -> str:
    """Return why the hub may refuse what it has."""
    return tr("The hub may be overloaded or in maintenance, or a proxy may answer in its place.")


def ended_host() -> str:
    """Return why an engine host may be gone."""
    return tr("Somebody may have ended it, or it died; its log has its last words.")


def unstartable_program() -> str:
    """Return why the system may not run an engine's program."""
    return tr("Its file may be gone, damaged, not executable, or built for another kind of machine.")


def full_system() -> str:
    """Return why the system may not start one process more."""
    return tr("The system may be out of memory, or of processes or open files for this user.")
