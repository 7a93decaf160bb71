"""The table of what keys do besides opening pages; controls take their keys from it, the sheet shows it."""

from dataclasses import dataclass

from engine_host.client.language import tr


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
    "marks": Shortcut("Ctrl+E", tr("Choose which events are marked on the graphs"), ("monitor",)),
    "mark to mark": Shortcut(
        "Left", tr("In a graph from mark to mark, in the scrubber back in time"), ("monitor",)
    ),
    "past": Shortcut("Left", tr("In the scrubber: back in time"), ("logs",)),
    "now": Shortcut("Esc", tr("From a moment of the past back to now"), ("monitor", "logs")),
    "leave host": Shortcut("Esc", tr("From a host back to all of them"), ("hosts",)),
}
"""In the order of the sheet; a control asks for its keys by the name."""


def keys(name: str) -> str:
    """Return the keys of an action of the table."""
    return SHORTCUTS[name].keys
