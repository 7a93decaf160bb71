"""Changes the keys of the action that is chosen on the sheet: at once, and for the next start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QKeySequenceEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.host.notices import Notices
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.kit.shortcuts import SHORTCUTS, choose, each, is_fixed, keys, page_keys, refusal
from sndr_gui.views.shortcuts.rebinding import native, rebind
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.labels import set_text, set_tone, text
from sndr_gui.views.widgets.layout import row


class KeysEditor(QWidget):
    """Waits for other keys of what is chosen, refuses those that are taken, and goes back to the usual ones.

    Signals:
        changed: an action has other keys
    """

    changed = Signal()

    def __init__(
        self,
        window: QWidget,
        file: SettingsFile,
        notices: Notices,
        pages: Mapping[str, tuple[str, str]],
    ) -> None:
        """`pages` has of each action that opens a page its words and its usual keys."""
        super().__init__()
        self._window, self._file, self._notices, self._pages = window, file, notices, pages
        self._name, self._does = "", ""
        self.said = text("", "muted", wrap=True)
        self.field = QKeySequenceEdit()
        self.field.setMaximumSequenceLength(1)
        self.field.setAccessibleName(tr("Other keys for the chosen action"))
        self.field.setFixedWidth(180)
        self.field.editingFinished.connect(self._on_pressed)
        self.usual = button(
            tr("Usual keys"), self._on_usual, hint=tr("Give this action its usual keys again")
        )
        self.all_usual = button(
            tr("All usual keys"), self._on_all_usual, hint=tr("Give all actions their usual keys")
        )
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(8)
        lines.addWidget(self.said)
        lines.addLayout(row(self.field, self.usual, None, self.all_usual))
        self._refresh()

    def show_action(self, name: str, does: str) -> None:
        """Edit this action; an empty name is none."""
        self._name, self._does = name, does
        self.field.clear()
        self._refresh()

    def _refresh(self, problem: str = "") -> None:
        fixed = is_fixed(self._name)
        can = bool(self._name) and not fixed
        if problem:
            said = problem
        elif not self._name:
            said = tr("Choose an action to give it other keys.")
        elif fixed:
            said = tr("{does}: a single control reads these keys, so they stay as they are.", does=self._does)
        else:
            said = tr(
                "{does}: {keys}. Press other keys in the field below.",
                does=self._does,
                keys=native(self._keys(self._name)),
            )
        set_text(self.said, said)
        set_tone(self.said, "warn" if problem else "muted")
        self.field.setEnabled(can)
        self.usual.setEnabled(can and self._name in self._file.current.keys)
        self.all_usual.setEnabled(bool(self._file.current.keys))

    def _usual(self, name: str) -> str:
        return self._pages[name][1] if name in self._pages else SHORTCUTS[name].keys

    def _keys(self, name: str) -> str:
        return page_keys(name.partition(" ")[2], self._usual(name)) if name in self._pages else keys(name)

    def _taken(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Each action with its words and its keys as Qt writes them."""
        found = {name: (one.does, each(name)) for name, one in SHORTCUTS.items()}
        found |= {name: (does, (self._keys(name),)) for name, (does, _) in self._pages.items()}
        return {name: (does, tuple(map(_plain, pressed))) for name, (does, pressed) in found.items()}

    def _on_pressed(self) -> None:
        pressed = self.field.keySequence().toString(QKeySequence.SequenceFormat.PortableText)
        self.field.clear()
        if not pressed or not self._name or pressed == _plain(self._keys(self._name)):
            return
        if problem := refusal(self._name, pressed, self._taken()):
            self._refresh(problem)
            return
        self._take({**self._file.current.keys, self._name: pressed})

    def _on_usual(self) -> None:
        usual = _plain(self._usual(self._name))
        if problem := refusal(self._name, usual, self._taken()):
            self._refresh(problem)
            return
        self._take({name: own for name, own in self._file.current.keys.items() if name != self._name})

    def _on_all_usual(self) -> None:
        self._take({})

    def _take(self, own: dict[str, str]) -> None:
        before = {name: self._keys(name) for name in (*SHORTCUTS, *self._pages)}
        choose(own)
        moved = [(keys, self._keys(name)) for name, keys in before.items() if keys != self._keys(name)]
        # By way of keys that nobody presses: two actions may have swapped theirs.
        for place, (was, _) in enumerate(moved):
            rebind(self._window, was, _between(place))
        for place, (_, now) in enumerate(moved):
            rebind(self._window, _between(place), now)
        try:
            self._file.write(replace(self._file.current, keys=own))
        except OSError as error:
            self._notices.warning(
                "window settings", tr("The keys hold until the window closes: {error}.", error=error)
            )
        self._refresh()
        self.changed.emit()


def _plain(pressed: str) -> str:
    return QKeySequence(pressed).toString(QKeySequence.SequenceFormat.PortableText)


def _between(place: int) -> str:
    modifiers = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
    return QKeySequence(modifiers.value | (Qt.Key.Key_F20.value + place % 15)).toString()
