"""The words for how long the host goes on, and for another one in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine_host.protocol.language import ntr, tr
from sndr_gui.kit import formats

if TYPE_CHECKING:
    from sndr_gui.host.session import Session


def lifetime(session: Session) -> str:
    """Return with whom the host of this machine ends: with this window only where that started it."""
    state, host = session.state, session.state.host
    if host is None or state.outlives_window:
        return tr("stays when this window closes")
    # A host that names nobody is from before commands started some.
    if session.connection.owned or not host.owner:
        return tr("ends with this window")
    others = {
        "the command that started it": tr("ends with the command that started it"),
        "the window that started it": tr("ends with the window that started it"),
    }
    return others.get(host.owner) or tr("ends with {owner}", owner=host.owner)


def run_again(session: Session, ended: tuple[str, ...]) -> bool:
    """Return True once all engines that ended with the host before were started again."""
    return bool(ended) and all(session.state.live_named(name) is not None for name in ended)


def replacement(session: Session, ended: tuple[str, ...]) -> str:
    """Return that the host is another one now, and which engines ended with the one before."""
    if session.connection.owned:
        said = tr("The engine host ended, and this window started a new one, which ends with it.")
    else:
        said = tr("The engine host ended, and another one answers now.")
    if not ended:
        return said
    engines = ntr(
        "{names} ended with the old one: start it again.",
        "{names} ended with the old one: start them again.",
        len(ended),
        names=formats.listed(ended),
    )
    return f"{said} {engines}"
