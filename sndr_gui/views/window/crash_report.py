"""The dialog at the start after a crash: what ended, and the masked report of it; said once, sent nowhere."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from engine_host.client import Crash
from engine_host.protocol.language import tr
from sndr_gui.host.session import Session
from sndr_gui.models.logs.diagnostics import DiagnosticsModel
from sndr_gui.views.logs.diagnostics import DiagnosticsDialog

_ABOUT = tr(
    "What it left is shown here with all else that a bug report holds; keys, names "
    "of people and machines, addresses and your home folder are taken out. Nothing "
    "is sent anywhere. Copy it, save it, or close this: it does not come again."
)


def title_of(crashes: Sequence[Crash]) -> str:
    """Return what ended, in a sentence."""
    programs = {one.program for one in crashes}
    newest = max(one.started_at for one in crashes)
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(newest))
    if programs == {"window", "host"}:
        said = tr("The window and the engine host did not end in order last time")
    elif programs == {"window"}:
        said = tr("The window did not end in order last time")
    elif programs == {"host"}:
        said = tr("The engine host did not end in order last time")
    else:
        said = tr("The program did not end in order last time")
    return tr("{said} (started {moment})", said=said, moment=moment) if newest else said


class CrashDialog(DiagnosticsDialog):
    """Shows the reports of crashes first, with the rest of a bug report around them."""

    def __init__(self, parent: QWidget, session: Session, crashes: Sequence[Crash]) -> None:
        super().__init__(parent, DiagnosticsModel(session), title_of(crashes), _ABOUT, "crashes/")
