"""The table of what keys do besides opening pages; controls take their keys from it, the sheet shows it."""

from dataclasses import dataclass


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
    "palette": Shortcut("Ctrl+K", "Find and run a command"),
    "sheet": Shortcut("?", "Show the shortcuts; while you type, F1 does", also="F1"),
    "filter": Shortcut("Ctrl+F", "Filter what the page lists"),
    "back": Shortcut("Alt+Left", "Leave what is open, then the page"),
    "forward": Shortcut("Alt+Right", "Forward to the page that Back came from"),
    "fold": Shortcut("Ctrl+B", "Fold the sidebar to icons, or unfold it"),
    "host": Shortcut("Ctrl+H", "Choose the host that the pages are about"),
    "close": Shortcut("Ctrl+Q", "Close the window"),
    "relaunch": Shortcut("Ctrl+R", "Start the chosen engine again", ("home", "engine")),
    "stop": Shortcut("Ctrl+Shift+S", "Stop the chosen engine", ("home", "engine")),
    "start": Shortcut("Ctrl+Return", "Start what is chosen", ("launch",)),
    "into the list": Shortcut("Down", "From the filter into the list", ("launch",)),
    "open preset": Shortcut("Return", "Open the chosen preset", ("presets",)),
    "remove model": Shortcut("Delete", "Delete the chosen model; it can come back", ("library",)),
    "remove preset": Shortcut("Delete", "Remove the chosen preset of your own", ("presets",)),
    "save": Shortcut("Ctrl+S", "Review the changes and save", ("presets",)),
    "leave editor": Shortcut("Esc", "From a preset back to the list", ("presets",)),
    "send": Shortcut("Return", "Send the message", ("chat",)),
    "new line": Shortcut("Shift+Return", "Begin a new line", ("chat",)),
    "stop answer": Shortcut("Ctrl+.", "Stop the answer and keep its text", ("chat",), also="Esc"),
    "new chat": Shortcut("Ctrl+N", "Begin a new chat", ("chat",)),
    "history": Shortcut("Ctrl+J", "Show the conversations that were kept, or hide them", ("chat",)),
    "compare": Shortcut("Ctrl+\\", "Ask two models side by side, or one again", ("chat",)),
    "chat options": Shortcut("Ctrl+Shift+O", "System prompt and sampling", ("chat",)),
    "export chat": Shortcut("Ctrl+Shift+E", "Export the conversation", ("chat",)),
    "edit question": Shortcut("Up", "In an empty field: edit the last question", ("chat",)),
    "regenerate": Shortcut("Ctrl+Shift+R", "Answer the last question again", ("chat",)),
    "rename chat": Shortcut("F2", "Rename the chosen conversation", ("chat",)),
    "remove chat": Shortcut("Delete", "Delete the chosen conversation; it can come back", ("chat",)),
    "inspect": Shortcut("Return", "Show all of the chosen request", ("monitor",)),
    "cancel request": Shortcut("Delete", "Cancel the chosen request", ("monitor",)),
    "marks": Shortcut("Ctrl+E", "Choose which events are marked on the graphs", ("monitor",)),
    "mark to mark": Shortcut(
        "Left", "In a graph from mark to mark, in the scrubber back in time", ("monitor",)
    ),
    "past": Shortcut("Left", "In the scrubber: back in time", ("logs",)),
    "now": Shortcut("Esc", "From a moment of the past back to now", ("monitor", "logs")),
    "leave host": Shortcut("Esc", "From a host back to all of them", ("hosts",)),
}
"""In the order of the sheet; a control asks for its keys by the name."""


def keys(name: str) -> str:
    """Return the keys of an action of the table."""
    return SHORTCUTS[name].keys
