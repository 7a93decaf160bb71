"""Clients of the control API, and what the window shares with the host.

The names here are imported when they are used: the window paints before it imports pydantic.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine_host.core.errors import HostError
    from engine_host.core.outside.files import read_text
    from engine_host.core.paths import Folders
    from engine_host.core.processes.crash_marks import Crash, CrashMark, marked, take_crashes
    from engine_host.core.processes.dumps import refuse_core_dumps
    from engine_host.core.processes.own_programs import OwnProgram, command_of
    from engine_host.core.rates import decode_rate
    from engine_host.core.sse import DONE, SseMessage
    from engine_host.core.visible import visible

__all__ = [
    "DONE",
    "Crash",
    "CrashMark",
    "Folders",
    "HostError",
    "OwnProgram",
    "SseMessage",
    "command_of",
    "decode_rate",
    "marked",
    "read_text",
    "refuse_core_dumps",
    "take_crashes",
    "visible",
]
_MODULES = {
    "DONE": "sse",
    "Crash": "processes.crash_marks",
    "CrashMark": "processes.crash_marks",
    "Folders": "paths",
    "HostError": "errors",
    "OwnProgram": "processes.own_programs",
    "SseMessage": "sse",
    "command_of": "processes.own_programs",
    "decode_rate": "rates",
    "marked": "processes.crash_marks",
    "read_text": "outside.files",
    "refuse_core_dumps": "processes.dumps",
    "take_crashes": "processes.crash_marks",
    "visible": "visible",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"engine_host.core.{_MODULES[name]}"), name)
