"""The question of a start that finds a window which does not answer, before this process has a window."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import Enum

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMessageBox

from engine_host.client import Folders, OwnProgram, command_of
from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.language import translate_qt
from sndr_gui.kit.settings import SettingsFile


class Decision(Enum):
    """The person's answer."""

    LEAVE = "leave"
    AGAIN = "again"
    ANOTHER = "another"


def sentence(pid: int | None) -> str:
    """Return what is so, for the dialog and the terminal alike."""
    if pid is None:
        return tr("The window that runs does not answer.")
    return tr("The window that runs (process {pid}) does not answer.", pid=pid)


def question(pid: int | None) -> QMessageBox:
    """Return the dialog; what is asked of it stands in its buttons."""
    box = QMessageBox()
    box.setWindowTitle(tr("SNDR does not answer"))
    box.setIcon(QMessageBox.Icon.Warning)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(sentence(pid))
    box.setInformativeText(
        tr("It may be busy for a moment. Engines are processes of their own and go on either way.")
    )
    again = box.addButton(tr("Try again"), QMessageBox.ButtonRole.AcceptRole)
    box.addButton(tr("Start another window"), QMessageBox.ButtonRole.ActionRole)
    leave = box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(again)
    box.setEscapeButton(leave)
    return box


def decision(box: QMessageBox) -> Decision:
    """Return what was answered."""
    clicked = box.clickedButton()
    role = box.buttonRole(clicked) if clicked is not None else QMessageBox.ButtonRole.RejectRole
    return {
        QMessageBox.ButtonRole.AcceptRole: Decision.AGAIN,
        QMessageBox.ButtonRole.ActionRole: Decision.ANOTHER,
    }.get(role, Decision.LEAVE)


def ask(pid: int | None, arguments: Sequence[str]) -> None:
    """Ask what to do, and return to leave it; else another start takes this process's place."""
    print(sentence(pid), "--another starts another window.", file=sys.stderr)
    app = QApplication([sys.argv[0], *arguments])
    app.setDesktopFileName("sndr")
    translate_qt(app)
    theme.setup(app, SettingsFile(Folders.resolve().config / "window.json").current.look)
    box = question(pid)
    box.exec()
    answer = decision(box)
    if answer is Decision.LEAVE:
        return
    more = ["--another"] if answer is Decision.ANOTHER else []
    words = [*command_of(OwnProgram.WINDOW), *more, *arguments]
    # One process has one QApplication: what comes next is a start of its own.
    os.execv(words[0], words)
