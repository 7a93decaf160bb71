"""Writes what is on the screen as JSON, for the end-to-end tests: where to click and what is read there.

Off unless `SNDR_E2E_INSPECT` names a file; then SIGUSR1 writes it anew. It only reads: tests act by
keys and clicks.
"""

import asyncio
import json
import os
import signal
from typing import Any

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)


def watch() -> None:
    """Begin to answer SIGUSR1."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _write, os.environ["SNDR_E2E_INSPECT"])


def _write(path: str) -> None:
    shown = [
        _described(widget)
        for window in QApplication.topLevelWidgets()
        if window.isVisible()
        for widget in _in(window)
    ]
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(shown, file)
    os.replace(part, path)


def _in(window: QWidget) -> list[QWidget]:
    return [window, *(child for child in window.findChildren(QWidget) if child.isVisibleTo(window))]


def _described(widget: QWidget) -> dict[str, Any]:
    corner = widget.mapToGlobal(QPoint(0, 0))
    seen = widget.visibleRegion().boundingRect()
    return {
        "class": type(widget).__name__,
        "object": widget.objectName(),
        "name": widget.accessibleName(),
        "text": _text(widget),
        "enabled": widget.isEnabled(),
        "focus": widget.hasFocus(),
        "area": [corner.x() + seen.x(), corner.y() + seen.y(), seen.width(), seen.height()],
    }


def _text(widget: QWidget) -> str:
    if isinstance(widget, QLabel | QAbstractButton | QLineEdit):
        return widget.text()
    if isinstance(widget, QPlainTextEdit | QTextEdit):
        return widget.toPlainText()
    if isinstance(widget, QComboBox):
        return widget.currentText()
    return widget.windowTitle() if widget.isWindow() else ""
