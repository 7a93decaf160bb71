"""Fields that show their error below themselves, choices, and the known values below a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication, QElapsedTimer, QEvent, QObject, QSize, Qt
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QCompleter,
    QLineEdit,
    QStyle,
    QStyleOptionComboBox,
    QVBoxLayout,
    QWidget,
)

from sndr_gui.kit.numbers import parse_float, parse_int
from sndr_gui.views.widgets.labels import restyle, set_text, text

_WIDEST_POPUP = 420


class ChoiceBox(QComboBox):
    """A choice whose list is as wide as its entries, and that a wheel does not change by accident."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        # Qt's default gives the box the focus when the wheel turns over it, and then the wheel changes it.
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._letters = 8
        self._searched = ""
        self._search = QElapsedTimer()

    def setMinimumContentsLength(self, letters: int) -> None:
        """Ask for room for so many letters, whatever is offered."""
        self._letters = letters
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        if self.sizeAdjustPolicy() is QComboBox.SizeAdjustPolicy.AdjustToContents:
            return super().sizeHint().expandedTo(self._room(QSize()))
        return self._room(self.iconSize())

    def minimumSizeHint(self) -> QSize:
        adjusts = self.sizeAdjustPolicy() is QComboBox.SizeAdjustPolicy.AdjustToContents
        return self._room(QSize() if adjusts else self.iconSize())

    def _room(self, icon: QSize) -> QSize:
        """The size for its letters and an icon, as Qt computes it; its own way makes the list at once."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        words = self.fontMetrics()
        width = self._letters * words.horizontalAdvance("X") + (icon.width() + 4 if icon.isValid() else 0)
        height = max(max(words.height(), 14) + 2, icon.height() + 2)
        kind = QStyle.ContentsType.CT_ComboBox
        return self.style().sizeFromContents(kind, option, QSize(width, height), self)

    def changeEvent(self, event: QEvent) -> None:
        # Qt asks the list for its delegate, and makes it for that: eight widgets of a box that nothing fills.
        if event.type() is QEvent.Type.StyleChange and self.findChild(QAbstractItemView) is None:
            QWidget.changeEvent(self, event)
            self.updateGeometry()
        else:
            super().changeEvent(event)

    def fill(self, entries: Sequence[tuple[str, object]], value: object) -> None:
        """Offer these entries with their values, and show the one that is chosen; else the first."""
        if [self.itemData(place) for place in range(self.count())] != [data for _, data in entries]:
            self.clear()
            for label, data in entries:
                self.addItem(label, data)
        for number, (label, _data) in enumerate(entries):
            self.setItemText(number, label)
        place = next((number for number, entry in enumerate(entries) if entry[1] == value), 0)
        self.setCurrentIndex(place)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # Qt looks for a beginning alone, and takes a space for a choice: "RTX 3060" chose "RTX A4000".
        if event.type() is QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            letters = event.text()
            if letters.isprintable() and letters and (self._typing or letters != " "):
                self._find(letters)
                return True
        return super().eventFilter(watched, event)

    @property
    def _typing(self) -> bool:
        pause = QApplication.keyboardInputInterval() * 3
        return bool(self._searched) and self._search.isValid() and self._search.elapsed() < pause

    def _find(self, letters: str) -> None:
        """Go to the first entry that begins with what is typed, else the first that has it anywhere."""
        self._searched = (self._searched if self._typing else "") + letters
        self._search.start()
        wanted = self._searched.casefold()
        labels = [self.itemText(place).casefold() for place in range(self.count())]
        found = [place for place, label in enumerate(labels) if wanted in label]
        found.sort(key=lambda place: not labels[place].startswith(wanted))
        if found:
            self.view().setCurrentIndex(self.model().index(found[0], self.modelColumn()))

    def showPopup(self) -> None:
        self.view().installEventFilter(self)
        self._searched = ""
        wanted = self.view().sizeHintForColumn(0) + 16
        self.view().setMinimumWidth(max(self.width(), min(wanted, _WIDEST_POPUP)))
        super().showPopup()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class NumberField(QWidget):
    """A line for a number; what cannot be taken stays as typed, is marked and explained."""

    def __init__(
        self, name: str, low: float, high: float, edited: Callable[[], object], *, tokens: bool = False
    ) -> None:
        """`tokens`: it counts tokens."""
        super().__init__()
        self._low, self._high, self._tokens = low, high, tokens
        self.edit = QLineEdit()
        self.edit.setAccessibleName(name)
        self.edit.textChanged.connect(self._on_changed)
        self.edit.textEdited.connect(edited)
        self.edit.editingFinished.connect(self._on_finished)
        self.wrong = text("", "bad", wrap=True)
        self.wrong.hide()
        self.setFocusProxy(self.edit)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        lines.addWidget(self.edit)
        lines.addWidget(self.wrong)

    def _read(self) -> tuple[float | None, str]:
        if isinstance(self._low, int) and isinstance(self._high, int):
            return parse_int(self.edit.text(), self._low, self._high, self._tokens)
        return parse_float(self.edit.text(), self._low, self._high)

    @property
    def value(self) -> float | None:
        """The number, or None where the field is empty or wrong."""
        return self._read()[0]

    @property
    def count(self) -> int | None:
        """The number of a field for whole numbers."""
        value = self.value
        return None if value is None else int(value)

    @property
    def error(self) -> str:
        """The allowed values, when something else was typed."""
        return self._read()[1]

    def _on_finished(self) -> None:
        """Show a whole number as it was understood: 128k becomes 131072."""
        if (
            (count := self.count) is not None
            and isinstance(self._low, int)
            and isinstance(self._high, int)
            and self.edit.text() != str(count)
        ):
            self.edit.setText(str(count))

    def _on_changed(self) -> None:
        error = self.error
        set_text(self.wrong, error)
        self.wrong.setVisible(bool(error))
        self.edit.setAccessibleDescription(error)
        marked = "true" if error else ""
        if (self.edit.property("invalid") or "") != marked:
            self.edit.setProperty("invalid", marked)
            restyle(self.edit)


class Completer(QCompleter):
    """Offers values that contain what is typed; Enter takes the one that is chosen, or what is typed."""

    def __init__(self, known: Sequence[str], line: QLineEdit) -> None:
        super().__init__(list(known), line)
        self._line = line
        self.setFilterMode(Qt.MatchFlag.MatchContains)
        self.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        line.setCompleter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Give Enter to the line where nothing is chosen: Qt's own list takes it and closes, no more."""
        if (
            isinstance(watched, QAbstractItemView)
            and isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            and not watched.currentIndex().isValid()
        ):
            watched.hide()
            QCoreApplication.sendEvent(self._line, event)
            return True
        return super().eventFilter(watched, event)
