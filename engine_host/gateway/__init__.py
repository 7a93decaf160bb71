"""The public endpoint: OpenAI over loopback TCP, routed to the engines."""

from engine_host.gateway.binding import Bound, bind_endpoint
from engine_host.gateway.book import RequestBook
from engine_host.gateway.directory import ActivityHook, Directory, Target
from engine_host.gateway.gateway import Gateway, Limits

__all__ = [
    "ActivityHook",
    "Bound",
    "Directory",
    "Gateway",
    "Limits",
    "RequestBook",
    "Target",
    "bind_endpoint",
]
