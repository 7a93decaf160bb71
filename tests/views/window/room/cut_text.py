"""Finds words that have less room than they need: in labels, buttons, check boxes and heads of tables."""

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QEvent, QRect, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractScrollArea, QHeaderView, QLabel, QPushButton, QWidget

from sndr_gui.views.widgets.copying import WrapAnywhereLabel
from sndr_gui.views.widgets.labels import ElidedLabel

SLACK = 1
_GIVES_WAY = (ElidedLabel, WrapAnywhereLabel)
"""What ends with an ellipsis and is whole in its tooltip, or breaks anywhere."""


def cut_texts(page: QWidget) -> Iterator[str]:
    """Yield what is cut on a page, as it would be painted now."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    for label in page.findChildren(QLabel):
        if label.isVisible() and label.text() and not isinstance(label, _GIVES_WAY):
            if label.wordWrap():
                short = label.heightForWidth(label.width()) - label.height()
            else:
                wanted = label.sizeHint()
                short = max(wanted.width() - label.width(), wanted.height() - label.height())
            if short > SLACK:
                yield f"{label.text()!r} lacks {short} pixels"
            elif (over := _outside(label)) > SLACK:
                yield f"{label.text()!r} is {over} pixels outside of what it stands in"
    for button in page.findChildren(QAbstractButton):
        if button.isVisible() and button.text():
            short = button.sizeHint().width() - button.width()
            if short > SLACK:
                yield f"button {button.text()!r} lacks {short} pixels"
            elif (over := _outside(button)) > SLACK:
                yield f"button {button.text()!r} is {over} pixels outside of what it stands in"
    for head in page.findChildren(QHeaderView):
        model = head.model()
        if not head.isVisible() or head.orientation() is not Qt.Orientation.Horizontal or model is None:
            continue
        for place in range(head.count()):
            title = str(model.headerData(place, Qt.Orientation.Horizontal) or "")
            short = head.fontMetrics().horizontalAdvance(title) + 14 - head.sectionSize(place)
            if title and not head.isSectionHidden(place) and short > SLACK:
                yield f"head {title!r} lacks {short} pixels"


def _outside(part: QWidget) -> int:
    """Return by how many pixels a widget is cut by one that it stands in, up to what scrolls."""
    inner, over = part, 0
    place = QRect(part.rect())
    while (outer := inner.parentWidget()) is not None and not inner.isWindow():
        place.translate(inner.pos())
        if isinstance(outer, QAbstractScrollArea) or isinstance(outer.parentWidget(), QAbstractScrollArea):
            return over
        over = max(over, -place.left(), place.right() + 1 - outer.width(), -place.top())
        over = max(over, place.bottom() + 1 - outer.height())
        inner = outer
    return over


def lengthened(text: str) -> str:
    """Return a text that is longer by two fifths, and can break as it can."""
    words, more = text.split(" "), round(len(text) * 0.4)
    longer = " ".join(word + word[-1:].lower() * round(len(word) * 0.4) for word in words)
    return longer if len(longer) >= len(text) + more else longer + "n" * (len(text) + more - len(longer))


def lengthen(page: QWidget) -> None:
    """Make captions of labels and buttons longer, as another language would; numbers stay.

    Not those of check boxes, which Qt cannot break: the one of Launch has no room for more.
    """
    parts: list[QLabel | QAbstractButton] = [*page.findChildren(QLabel), *page.findChildren(QPushButton)]
    for part in parts:
        text = part.text()
        if text and text[0].isalpha() and not any(letter.isdigit() for letter in text) and part.isVisible():
            part.setText(lengthened(text))
