"""The table of compared starts: predicted beside measured, part by part."""

from __future__ import annotations

from engine_host.protocol.language import formed, tr
from engine_host.protocol.launch.fit import KV_TOKENS, Measured
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column


def start_key(one: Measured) -> str:
    """Return the key of a compared part."""
    return f"{one.at} {one.model} {one.part}"


def _error_tone(one: Measured) -> str:
    return "good" if abs(one.error) <= 0.03 else "warn" if abs(one.error) <= 0.15 else "bad"


def _figure(one: Measured, number: int) -> str:
    return formats.number(number) if one.part == KV_TOKENS else formats.size(number)


def start_columns() -> tuple[Column[Measured], ...]:
    """Return the columns of the table."""
    return (
        Column(tr("Model"), lambda one: one.model, tip=lambda one: one.model),
        Column(tr("Engine"), lambda one: one.engine, tip=lambda one: f"{one.engine} {one.version}"),
        Column(tr("On"), lambda one: one.gpu, tone=lambda _one: "muted", tip=lambda one: one.gpu),
        Column(tr("Part"), lambda one: one.part),
        Column(
            tr("Predicted"),
            lambda one: _figure(one, one.predicted),
            right=True,
            tip=lambda one: formats.number(one.predicted),
        ),
        Column(
            tr("Measured"),
            lambda one: _figure(one, one.measured),
            right=True,
            tip=lambda one: formats.number(one.measured),
        ),
        Column(
            tr("Error"),
            lambda one: formed(one.error, "+.1%") if one.measured else formats.UNMEASURED,
            sort=lambda one: abs(one.error),
            tone=_error_tone,
            right=True,
        ),
    )
