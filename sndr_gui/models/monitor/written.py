"""The words for how much of an answer is written: tokens where they are told, else pieces of its stream."""

from __future__ import annotations

from engine_host.protocol.engines import Request
from engine_host.protocol.language import tr
from sndr_gui.kit import formats


def written(request: Request) -> str:
    """Return how much was written: `1,204`, or `37 pieces` where no tokens are told."""
    if request.generated_tokens is None and request.pieces is not None:
        return formats.plural(request.pieces, "piece")
    return formats.count(request.generated_tokens)


def speed(request: Request) -> str:
    """Return how fast it is written: `142.6 tok/s`, or `12.3 pieces/s`."""
    if request.decode_rate is None and request.piece_rate is not None:
        return tr("{rate} pieces/s", rate=formats.number(request.piece_rate, ",.1f"))
    return formats.rate(request.decode_rate)


def told_in(request: Request) -> str:
    """Return what the amount is counted in, for who points at it."""
    if request.generated_tokens is None and request.pieces is not None:
        return tr(
            "Tokens are told at the end alone. Until then the pieces of the stream are counted: one is a "
            "token, several, or none."
        )
    return ""
