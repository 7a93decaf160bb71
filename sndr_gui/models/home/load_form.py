"""Settings for one load of a model on demand, as they are typed: each checked by its row of the table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from engine_host.protocol.endpoint.on_demand import LoadSetting
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.language import tr, unit
from sndr_gui.kit.numbers import decimal, whole
from sndr_gui.kit.setting_words import word_of


class LoadForm:
    """The values typed for each setting; one that is empty stays as the model's own start has it."""

    def __init__(self, name: str, settings: Sequence[LoadSetting]) -> None:
        self.name = name
        self.settings = tuple(settings)
        self._typed: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        """Keep what was typed or chosen; nothing is None, or an empty text."""
        if value is None or value == "":
            self._typed.pop(name, None)
        else:
            self._typed[name] = value

    def read(self) -> tuple[Overrides | None, dict[str, str]]:
        """Return the settings of the load, or None and what is wrong, by setting."""
        values: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        for setting in self.settings:
            if setting.name in self._typed:
                try:
                    values[setting.name] = read_value(setting, self._typed[setting.name])
                except ValueError as error:
                    wrong[setting.name] = str(error)
        if wrong:
            return None, wrong
        try:
            return Overrides.model_validate(values), {}
        except ValidationError as error:
            captions = {setting.name: word_of(setting.caption) for setting in self.settings}
            for one in error.errors(include_url=False):
                name = str(one["loc"][0]) if one["loc"] else ""
                said = str(one["msg"]).removeprefix("Value error, ")
                wrong[name] = f"{captions.get(name, name)}: {said}"
            return None, wrong

    @property
    def command(self) -> str:
        """Return the command that loads the model so."""
        words = ["sndr", "on-demand", "load", self.name]
        for setting in self.settings:
            if setting.name in self._typed:
                words += ["--set", f"{setting.name}={_said(setting, self._typed[setting.name])}"]
        return shlex.join(words)


def hint_of(setting: LoadSetting) -> str:
    """Return what a field takes, in words: its bounds, its steps and its unit."""
    if setting.step is None:
        return word_of(setting.help)
    least, most = setting.minimum, setting.maximum
    bounds = (
        tr("{least} to {most}", least=_number(least), most=_number(most))
        if least is not None and most is not None
        else ""
    )
    if not bounds and least is not None:
        bounds = tr("at least {number}", number=_number(least))
    elif not bounds and most is not None:
        bounds = tr("at most {number}", number=_number(most))
    whole = "" if setting.kind == "whole" else tr("in steps of {number}", number=_number(setting.step))
    told = " ".join(part for part in (bounds, unit(setting.unit), whole) if part)
    return f"{word_of(setting.help)} ({told})" if told else word_of(setting.help)


def shown_value(setting: LoadSetting) -> str:
    """Return the value that holds without another one."""
    value = setting.value
    if value is None:
        return tr("as the engine has it")
    if isinstance(value, bool):
        return tr("yes") if value else tr("no")
    shown = shlex.join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"{shown} {unit(setting.unit)}".strip()


def read_value(setting: LoadSetting, typed: Any) -> Any:
    """Return what was typed as a value of its kind. Raises ValueError with what it takes."""
    if setting.kind == "choice" or not isinstance(typed, str):
        return typed
    if setting.kind == "words":
        return shlex.split(typed)
    if setting.kind not in ("whole", "decimal"):
        return typed.strip()
    value: float | None
    why = ""
    try:
        value = whole(typed, setting.unit == "tokens") if setting.kind == "whole" else decimal(typed)
    except ValueError as error:
        value, why = None, str(error)
    if value is None:
        kind = tr("a whole number") if setting.kind == "whole" else tr("a number")
        said = tr("{caption} is {kind}.", caption=word_of(setting.caption), kind=kind)
        raise ValueError(f"{said} {why}".strip())
    least, most = setting.minimum, setting.maximum
    if (least is not None and value < least) or (most is not None and value > most):
        raise ValueError(f"{word_of(setting.caption)}: {hint_of(setting)}.")
    return value


def _said(setting: LoadSetting, typed: Any) -> str:
    """A value as the command line takes it: numbers without the signs that part their digits."""
    if isinstance(typed, bool):
        return str(typed).lower()
    if setting.kind in ("whole", "decimal"):
        with suppress(ValueError):
            return str(read_value(setting, typed))
    return str(typed).strip()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.10g}"
