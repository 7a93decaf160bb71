"""The public endpoint: OpenAI over loopback TCP, routed to the engines."""

from engine_host.gateway.access.binding import Bound, bind_endpoint
from engine_host.gateway.app import Gateway, Limits
from engine_host.gateway.directory import ActivityHook, Directory, Target
from engine_host.gateway.request_log import RequestLog

__all__ = [
    "ActivityHook",
    "Bound",
    "Directory",
    "Gateway",
    "Limits",
    "RequestLog",
    "Target",
    "bind_endpoint",
]
