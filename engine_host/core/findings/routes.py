"""Findings about routes: targets that nothing can be, and ids that hide an engine."""

from engine_host.core.findings.text import WARNING, Text
from engine_host.protocol.errors import Reason

ROUTES = {
    "route.target_unknown": Text(
        WARNING,
        "{route} leads to {target}, and no engine, preset or model here has that name[; {near} is alike].",
        Reason.NOT_FOUND,
        "Start an engine under that name, or lead the route elsewhere.",
        "sndr routes set {route_word} ENGINE",
    ),
    "route.takes_name": Text(
        WARNING,
        "There is a route {route}: requests for {route} go to {targets}, and not to this engine.",
        Reason.CONFLICT,
        "Lead the route to this engine, or start it under another name.",
        "sndr routes set {route_word} {route_word}",
    ),
    "route.hides_engine/later": Text(
        WARNING,
        "An engine starts, or is loaded on demand, as {route}, and requests for {route} go to {targets}.",
        Reason.CONFLICT,
        "Lead the route to that engine, or give the engine another name.",
        "sndr routes set {route_word} {route_word}",
    ),
    "route.hides_engine": Text(
        WARNING,
        "An engine runs as {route}, and requests for {route} go to {targets}.",
        Reason.CONFLICT,
        "Lead the route to that engine, or give the engine another name.",
        "sndr routes set {route_word} {route_word}",
    ),
}
