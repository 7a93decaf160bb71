"""Values that a person types, checked before anything is asked of the host: ids of presets, hardware."""

import math
import re
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from engine_host.protocol.catalog import Id
from engine_host.protocol.remote.hosts import HostName

_ID: TypeAdapter[str] = TypeAdapter(Id)
_HOST: TypeAdapter[str] = TypeAdapter(HostName)
_COUNTED = re.compile(r"(?P<count>\d+)\s*[x×]\s*(?P<name>\S.*)")
_MOST = 8


class FiniteRange(click.FloatRange):
    """A number within bounds; `nan` is within any bounds, and `inf` where there is none above."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises click.BadParameter for one that is out of bounds or no finite number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class PresetId(click.ParamType[str]):
    """An id that a preset can have."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id as it is. Raises click.BadParameter that says what an id may hold."""
        try:
            return _ID.validate_python(value)
        except ValidationError:
            self.fail(
                f"{str(value)[:80]!r} cannot be the id of a preset. Use small letters, digits, dots, hyphens "
                "and underscores, a letter or digit first, 80 characters at most.",
                param,
                ctx,
            )


class NewHostName(click.ParamType[str]):
    """A name by which a host can be kept."""

    name = "host"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is. Raises click.BadParameter that says what a name may hold."""
        try:
            return _HOST.validate_python(value)
        except ValidationError as error:
            why = str(error.errors(include_url=False, include_input=False)[0]["msg"])
            self.fail(f"{str(value)[:80]!r}: {why.removeprefix('Value error, ')}.", param, ctx)


def counted_hardware(hardware: str | None, count: int | None) -> tuple[str | None, int | None]:
    """Split `2x rtx-3090` into a hardware name and a count.

    Raises click.UsageError if --count gives another number than --hardware.
    """
    found = _COUNTED.fullmatch((hardware or "").strip())
    if found is None:
        return hardware, count
    given = int(found["count"])
    if not 1 <= given <= _MOST:
        raise click.UsageError(f"--hardware takes 1 to {_MOST} GPUs, not {given}.")
    if count not in {None, given}:
        raise click.UsageError(f"--hardware says {given} GPUs and --count says {count}: give one of them.")
    return found["name"], given
