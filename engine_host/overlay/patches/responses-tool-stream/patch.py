"""The parts of one step in an order that closes what is open before it opens anything else."""


def tail_first(original):
    """As the original, with the rest of an open tool call's arguments in front.

    A group of tool calls whose first has no name continues the call that is open. Behind reasoning or
    content it would have to open a call without a name, and the stream would end there.
    """
    from functools import wraps

    from sndr_overlay.hits import count

    @wraps(original)
    def split_delta(delta):
        count("responses-tool-stream")
        parts = original(delta)
        tails = [part for part in parts if _continues(part)]
        return tails + [part for part in parts if not _continues(part)] if tails else parts

    return split_delta


def _continues(part):
    calls = part.tool_calls
    return bool(calls) and calls[0].function is not None and not calls[0].function.name
