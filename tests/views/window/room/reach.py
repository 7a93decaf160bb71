"""Finds what a person cannot get to see: contents wider than their view, and controls outside of it."""

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QEvent, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QComboBox,
    QLineEdit,
    QScrollArea,
    QScrollBar,
    QWidget,
)

_CONTROLS = (QAbstractButton, QAbstractItemView, QAbstractSlider, QComboBox, QLineEdit)


def out_of_reach(page: QWidget) -> Iterator[str]:
    """Yield what of a page lies where nobody can scroll to, as it would be painted now."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    for area in page.findChildren(QScrollArea):
        canvas = area.widget()
        if not area.isVisible() or canvas is None:
            continue
        for way, over in (
            ("wider", canvas.width() - area.viewport().width() if _fixed(area, True) else 0),
            ("higher", canvas.height() - area.viewport().height() if _fixed(area, False) else 0),
        ):
            if over > 0:
                yield f"{_called(canvas)} is {over} pixels {way} than its view, which has no scroll bar"
    for kind in _CONTROLS:
        for control in page.findChildren(kind):
            if (
                control.isVisible()
                and not isinstance(control, QScrollBar)
                and (over := _outside(control)) > 1
            ):
                yield f"{_called(control)} is {over} pixels outside of what it stands in"


def _fixed(area: QAbstractScrollArea, across: bool) -> bool:
    bar = area.horizontalScrollBar() if across else area.verticalScrollBar()
    policy = area.horizontalScrollBarPolicy() if across else area.verticalScrollBarPolicy()
    return policy is Qt.ScrollBarPolicy.ScrollBarAlwaysOff or not bar.isVisible()


def _outside(part: QWidget) -> int:
    """Return how many pixels of a control what it stands in cuts off, apart from what scrolls."""
    inner, over, place = part, 0, QRect(part.rect())
    while (outer := inner.parentWidget()) is not None and not inner.isWindow():
        place.translate(inner.pos())
        area = outer.parentWidget()
        scrolled = area if isinstance(area, QAbstractScrollArea) and area.viewport() is outer else None
        if scrolled is None or _fixed(scrolled, True):
            over = max(over, -place.left(), place.right() + 1 - outer.width())
        if scrolled is None or _fixed(scrolled, False):
            over = max(over, -place.top(), place.bottom() + 1 - outer.height())
        if scrolled is not None:
            place = QRect(outer.rect())
        inner = outer
    return over


def _called(part: QWidget) -> str:
    return f"{type(part).__name__} {part.accessibleName() or getattr(part, 'text', lambda: '')()!r}"
