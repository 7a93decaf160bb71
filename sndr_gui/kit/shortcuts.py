"""The table of what keys do besides opening pages; controls take their keys from it, the sheet shows it."""

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtGui import QKeySequence

from engine_host.protocol.language import tr


@dataclass(frozen=True)
class Shortcut:
    """Keys, what they do, the names of the pages on which they do it, and other keys that do the same.

    No page is every page.
    """

    keys: str
    does: str
    pages: tuple[str, ...] = ()
    also: str = ""

    @property
    def each(self) -> tuple[str, ...]:
        """All keys that do it."""
        return (self.keys, self.also) if self.also else (self.keys,)


SHORTCUTS = {
    "palette": Shortcut("Ctrl+K", tr("Find and run a command")),
    "sheet": Shortcut("?", tr("Show the shortcuts; while you type, F1 does"), also="F1"),
    "filter": Shortcut("Ctrl+F", tr("Filter what the page lists")),
    "back": Shortcut("Alt+Left", tr("Leave what is open, then the page")),
    "forward": Shortcut("Alt+Right", tr("Forward to the page that Back came from")),
    "fold": Shortcut("Ctrl+B", tr("Fold the sidebar to icons, or unfold it")),
    "host": Shortcut("Ctrl+H", tr("Choose the host that the pages are about")),
    "close": Shortcut("Ctrl+Q", tr("Close the window")),
    "relaunch": Shortcut("Ctrl+R", tr("Start the chosen engine again"), ("home", "engine")),
    "stop": Shortcut("Ctrl+Shift+S", tr("Stop the chosen engine"), ("home", "engine")),
    "start": Shortcut("Ctrl+Return", tr("Start what is chosen"), ("launch",)),
    "into the list": Shortcut("Down", tr("From the filter into the list"), ("launch",)),
    "open preset": Shortcut("Return", tr("Open the chosen preset"), ("presets",)),
    "remove model": Shortcut("Delete", tr("Delete the chosen model; it can come back"), ("library",)),
    "remove preset": Shortcut("Delete", tr("Remove the chosen preset of your own"), ("presets",)),
    "save": Shortcut("Ctrl+S", tr("Review the changes and save"), ("presets",)),
    "leave editor": Shortcut("Esc", tr("From a preset back to the list"), ("presets",)),
    "send": Shortcut("Return", tr("Send the message"), ("chat",)),
    "new line": Shortcut("Shift+Return", tr("Begin a new line"), ("chat",)),
    "stop answer": Shortcut("Ctrl+.", tr("Stop the answer and keep its text"), ("chat",), also="Esc"),
    "new chat": Shortcut("Ctrl+N", tr("Begin a new chat"), ("chat",)),
    "history": Shortcut("Ctrl+J", tr("Show the conversations that were kept, or hide them"), ("chat",)),
    "compare": Shortcut("Ctrl+\\", tr("Ask two models side by side, or one again"), ("chat",)),
    "chat options": Shortcut("Ctrl+Shift+O", tr("System prompt and sampling"), ("chat",)),
    "export chat": Shortcut("Ctrl+Shift+E", tr("Export the conversation"), ("chat",)),
    "edit question": Shortcut("Up", tr("In an empty field: edit the last question"), ("chat",)),
    "regenerate": Shortcut("Ctrl+Shift+R", tr("Answer the last question again"), ("chat",)),
    "rename chat": Shortcut("F2", tr("Rename the chosen conversation"), ("chat",)),
    "remove chat": Shortcut("Delete", tr("Delete the chosen conversation; it can come back"), ("chat",)),
    "inspect": Shortcut("Return", tr("Show all of the chosen request"), ("monitor",)),
    "cancel request": Shortcut("Delete", tr("Cancel the chosen request"), ("monitor",)),
    "marks": Shortcut(
        "Ctrl+E", tr("To the legend of the events: which are marked on the graphs"), ("monitor",)
    ),
    "mark to mark": Shortcut(
        "Left", tr("In a graph from mark to mark, in the scrubber back in time"), ("monitor",)
    ),
    "past": Shortcut("Left", tr("In the scrubber: back in time"), ("logs",)),
    "now": Shortcut("Esc", tr("From a moment of the past back to now"), ("monitor", "logs")),
    "leave host": Shortcut("Esc", tr("From a host back to all of them"), ("hosts",)),
}
"""In the order of the sheet; a control asks for its keys by the name."""


PAGE = "page "
"""Before the name of a page: the action that opens it."""

# Read and answered by single controls, and the ways of every text field: nobody chooses them.
_OF_CONTROLS = ("Left", "Return", "Delete", "Down", "Up", "Esc", "Shift+Return")
_OF_TEXT = ("Ctrl+A", "Ctrl+C", "Ctrl+V", "Ctrl+X", "Ctrl+Z", "Ctrl+Y")

_own: dict[str, str] = {}


def choose(own: Mapping[str, str]) -> None:
    """Take the keys that the person chose, by the names of the actions, for what asks from now on.

    What is no key leaves the usual ones; a file of settings may hold anything.
    """
    _own.clear()
    for name, pressed in own.items():
        plain = QKeySequence(pressed).toString(QKeySequence.SequenceFormat.PortableText)
        if plain and not is_fixed(name) and plain not in _own.values():
            _own[name] = plain


def keys(name: str) -> str:
    """Return the keys of an action of the table."""
    return _own.get(name) or SHORTCUTS[name].keys


def page_keys(name: str, usual: str) -> str:
    """Return the keys that open a page."""
    return _own.get(PAGE + name) or usual


def each(name: str) -> tuple[str, ...]:
    """Return all keys of an action of the table, those that the person chose first."""
    return (keys(name), *SHORTCUTS[name].each[1:])


def is_fixed(name: str) -> bool:
    """Tell whether an action has keys that nobody can choose, for a single control reads them."""
    return name in SHORTCUTS and SHORTCUTS[name].keys in _OF_CONTROLS


def refusal(name: str, pressed: str, usual: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """Return why an action cannot have these keys, in a sentence; empty where it can.

    `pressed` is as Qt writes it without the words of a language. `usual` has of each other action its words
    and all of its keys, for those that are in force where this one is.
    """
    if not pressed:
        return tr("Press a key together with Ctrl, Alt or Shift, or a function key.")
    last = pressed.rpartition("+")[2] or "+"
    if not pressed.startswith(("Ctrl+", "Alt+", "Meta+")) and not (last[0] == "F" and last[1:].isdigit()):
        return tr("It has to have Ctrl or Alt with it, or be a function key: the others are for typing.")
    if pressed in _OF_TEXT:
        return tr("{keys} belongs to every text field.", keys=pressed)
    for other, (does, all_of_them) in usual.items():
        if other != name and pressed in all_of_them:
            return tr("{keys} does something already: {does}.", keys=pressed, does=does)
    return ""
