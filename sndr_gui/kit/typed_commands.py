"""Commands as they are typed for the host that a widget is about."""

from PySide6.QtWidgets import QWidget

from engine_host.protocol.remote.host_command import for_host

_PROPERTY = "sndr_host"


def mark_host(widget: QWidget, name: str) -> None:
    """Let a widget and all within it be about a host on another machine; this one has the empty name."""
    widget.setProperty(_PROPERTY, name)


def typed_for(widget: QWidget, text: str) -> str:
    """Return a text in which each of our commands names the host that a widget is about."""
    return for_host(text, _host_of(widget))


def _host_of(widget: QWidget) -> str:
    at: QWidget | None = widget
    while at is not None:
        if (name := at.property(_PROPERTY)) is not None:
            return str(name)
        at = at.parentWidget()
    return ""
