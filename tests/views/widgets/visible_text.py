"""Reads the text that a widget shows."""

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QLabel, QWidget


def visible_text(widget: QWidget) -> str:
    """Everything that is said below a widget."""
    # A child that a layout was given counts as hidden until Qt shows it, in the next turn of the event loop.
    for child in widget.findChildren(QWidget):
        QCoreApplication.sendPostedEvents(child, QEvent.Type.MetaCall.value)
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget))
