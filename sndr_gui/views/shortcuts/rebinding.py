"""Gives an action other keys while the window is open: its controls, and what they say about them."""

import re

from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QWidget

NAMES_KEYS = "namesKeys"
"""The property of a label whose sentence, which is the program's own, names keys."""


def native(pressed: str) -> str:
    """Return keys in the words of this machine's keyboard."""
    return QKeySequence(pressed).toString(QKeySequence.SequenceFormat.NativeText)


def rebind(window: QWidget, before: str, now: str) -> None:
    """Move what listens to some keys to others; no other action of the window has either of them."""
    old, new = QKeySequence(before), QKeySequence(now)
    for shortcut in window.findChildren(QShortcut):
        if shortcut.key() == old:
            shortcut.setKey(new)
    for button in window.findChildren(QAbstractButton):
        if button.shortcut() == old:
            button.setShortcut(new)
    said, say = native(before), native(now)
    for widget in window.findChildren(QWidget):
        if f"({said})" in (tip := widget.toolTip()):
            widget.setToolTip(tip.replace(f"({said})", f"({say})"))
        if isinstance(widget, QLineEdit):
            widget.setPlaceholderText(widget.placeholderText().replace(f"({said})", f"({say})"))
        elif isinstance(widget, QAbstractButton) and widget.text().endswith(f"  {said}"):
            widget.setText(widget.text().removesuffix(said) + say)
        elif isinstance(widget, QLabel) and widget.property(NAMES_KEYS):
            alone = rf"(?<![\w+]){re.escape(said)}(?![\w+])"
            widget.setText(re.sub(alone, lambda _found: say, widget.text()))
