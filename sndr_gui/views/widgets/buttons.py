"""Buttons with an icon, a tooltip and keys."""

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import QPushButton

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.kit.typed_commands import typed_for
from sndr_gui.views.widgets.labels import restyle


def tip(sentence: str, shortcut: str = "", command: str = "") -> str:
    """Return the text of a tooltip: what it does, its keys, and the equivalent command."""
    keys = (
        f"  ({QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)})" if shortcut else ""
    )
    return plain_tooltip(sentence + keys + (f"\n{command}" if command else ""))


class EnterButton(QPushButton):
    """A push button that Enter presses too, where it has the focus: not every desktop says so by itself."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.isAutoRepeat():
            self.click()
        else:
            super().keyPressEvent(event)


class Button(EnterButton):
    """A push button that leaves some room between its icon and its text."""

    def __init__(self, label: str, has_icon: bool = False) -> None:
        super().__init__()
        self._lead = " " if has_icon else ""
        # Clicking must not move the focus away from what the person types in; Tab still comes here.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAutoDefault(False)
        self.setText(label)

    def setText(self, text: str) -> None:
        """Show a text, when it is new."""
        if self.text() != text:
            # Qt takes the keys of a button away with its text.
            keys = self.shortcut()
            super().setText(self._lead + text)
            if not keys.isEmpty():
                self.setShortcut(keys)

    def setToolTip(self, said: str) -> None:
        """Say what it does; a command in it is the one for the host that the button is about."""
        super().setToolTip(typed_for(self, said))

    def showEvent(self, event: QShowEvent) -> None:
        # What it is about is known once it stands on its page.
        super().setToolTip(typed_for(self, self.toolTip()))
        super().showEvent(event)

    def text(self) -> str:
        """Return a label that shows its text literally."""
        return super().text().strip()


def button(
    label: str,
    clicked: Callable[[], object] | None = None,
    *,
    kind: str = "",
    icon: str = "",
    hint: str = "",
    shortcut: str = "",
    command: str = "",
) -> Button:
    """Return a button; `kind` is primary, danger or flat, `command` is shown in the tooltip."""
    made = Button(label, bool(icon))
    made.setAccessibleName(label.replace("&", ""))
    if kind:
        made.setProperty(kind, "true")
    if icon:
        token = {"primary": "on_accent", "flat": "muted"}.get(kind, "text")
        theme.ButtonIcon(made, icon, token)
    if shortcut:
        made.setShortcut(shortcut)
    if hint or shortcut or command:
        made.setToolTip(tip(hint or label, shortcut, command))
    if clicked is not None:
        made.clicked.connect(clicked)
    return made


def set_primary(made: Button, primary: bool) -> None:
    """Make a button the one thing to do on its page, or one of the others."""
    said = "true" if primary else "false"
    if made.property("primary") == said:
        return
    made.setProperty("primary", said)
    icon = made.findChild(theme.ButtonIcon)
    if isinstance(icon, theme.ButtonIcon):
        icon.show_colour("on_accent" if primary else "text")
    restyle(made)


def keep_to_paths(chooser: Button, host: str) -> None:
    """Let a button that chooses a file of this machine rest on the pages of another one, and say why."""
    if host:
        chooser.setEnabled(False)
        said = tr("Only files of this machine can be chosen: name the path on {host}.", host=host)
        command = chooser.toolTip().partition("\n")[2]
        chooser.setToolTip(plain_tooltip(f"{said}\n{command}" if command else said))


def link_button(address: str, label: str) -> Button:
    """Return a flat button that opens an address in the browser when it is clicked."""
    made = button(label, kind="flat", hint=tr("Open {address} in the browser", address=address))
    made.setAccessibleName(tr("Open {address}", address=address))

    def open_address() -> None:
        QDesktopServices.openUrl(QUrl(address))

    made.clicked.connect(open_address)
    return made


def icon_button(icon: str, name: str, clicked: Callable[[], object] | None = None) -> QPushButton:
    """Return a small button that is only an icon; its name is read by screen readers and is its tooltip."""
    made = Button("")
    made.setProperty("flat", "true")
    made.setProperty("square", "true")
    made.setAccessibleName(name)
    made.setToolTip(plain_tooltip(name))
    made.setIconSize(QSize(16, 16))
    theme.ButtonIcon(made, icon, "muted")
    if clicked is not None:
        made.clicked.connect(clicked)
    return made
