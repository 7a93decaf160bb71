"""The user's settings: one TOML file, checked, with the layer that set each value."""

import contextlib
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tomlkit.exceptions import TOMLKitError

from engine_host.core import atomic_file
from engine_host.core.addresses import is_loopback
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.keys.file import KeyFile
from engine_host.core.likely_causes import unreadable_file
from engine_host.core.mending.settings_text import (
    changed_lines,
    fault_line,
    line_at,
    line_of,
    readable,
    what_is_wrong,
    without,
)
from engine_host.core.outside import files
from engine_host.protocol.allowed import refusal
from engine_host.protocol.bench.checks import VerifyAfterStart
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Layer, ServerChoice, Setting
from engine_host.protocol.settings import SettingsRepair

_LARGEST = 1 << 20


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class EndpointSettings(_Group):
    """Settings of the public endpoint, to which editors and agents connect."""

    host: str = Field("127.0.0.1", min_length=1)
    port: int = Field(8020, ge=1, le=65535)
    allowed_hosts: tuple[str, ...] = ()
    queue_limit: int = Field(64, ge=0, le=10_000)
    load_wait: int = Field(600, ge=0, le=86_400)
    path: str = Field("", max_length=200, pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    tls_certificate: str | None = Field(None, min_length=1)
    tls_key: str | None = Field(None, min_length=1)


class ModelSettings(_Group):
    """Settings for finding model files."""

    folders: tuple[str, ...] = ()
    other_programs: bool = True


class EngineSettings(_Group):
    """Defaults for every start."""

    server: Literal[ServerChoice.AUTO, ServerChoice.BUILT, ServerChoice.PREBUILT, ServerChoice.OWN] = (
        ServerChoice.AUTO
    )
    own_server: str | None = None
    vllm: str | None = Field(None, min_length=1, max_length=4096)
    vllm_before: str | None = Field(None, min_length=1, max_length=4096)
    streams: int = Field(8, ge=1, le=256)
    context: int | None = Field(None, ge=128)
    threads: int | None = Field(None, ge=1, le=1024)
    keep: bool = False
    verify: VerifyAfterStart = "off"


class PatchSettings(_Group):
    """Switches of vLLM's patches: ids, families or `all`; the most particular one decides."""

    off: tuple[str, ...] = ()
    on: tuple[str, ...] = ()


class AlertSettings(_Group):
    """Thresholds of alerts: degrees Celsius, shares of memory, GiB left on a disk; 0 switches one off."""

    gpu_temperature: int = Field(88, ge=0, le=120)
    gpu_memory: float = Field(0.99, ge=0, le=1)
    gpu_ecc: bool = True
    ram: float = Field(0.95, ge=0, le=1)
    disk_free: float = Field(5.0, ge=0, le=1_000_000)


class HostSettings(_Group):
    """Settings of the engine host itself."""

    outlive_window: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    gpu_trace: str | None = Field(None, min_length=1, max_length=4096)


class Settings(_Group):
    """Everything a person can set, by group."""

    endpoint: EndpointSettings = EndpointSettings()
    models: ModelSettings = ModelSettings()
    engine: EngineSettings = EngineSettings()
    patches: PatchSettings = PatchSettings()
    alerts: AlertSettings = AlertSettings()
    host: HostSettings = HostSettings()


class SettingsFile:
    """The settings as resolved now; keeps what the file says apart from the defaults."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: dict[str, dict[str, Any]] = {}
        self.current = Settings()
        self.problem: Problem | None = None
        """The fault of a file whose other values are used; None where the whole file is."""

    def load(self) -> None:
        """Read the file; a missing one means defaults.

        Raises HostError(setting_invalid) that names the key and the file, and leaves the file alone.
        """
        written = self._read().unwrap()
        self.current = self._check(written)
        self._written = written
        self.problem = None

    def load_what_holds(self) -> None:
        """Read the file; of one that is wrong use the values that are right, and keep its fault.

        The file is left alone. A wrong value of the endpoint brings all of the endpoint's defaults, so that
        nothing is ever served to more people, or with less protection, than was meant.
        """
        try:
            self.load()
        except HostError as error:
            self.problem = error.problem
            written: dict[str, Any] = {}
            with contextlib.suppress(HostError):
                written = self._read().unwrap()
            for group, key in _wrong_keys(written):
                if not key or group == "endpoint":
                    written.pop(group, None)
                elif isinstance(written.get(group), dict):
                    written[group].pop(key, None)
            self.current = Settings.model_validate(written)
            self._written = written

    def repaired(self) -> tuple[str, str] | None:
        """Return the text of the file and the text that a repair would leave; None where there is none.

        Lines that are no TOML become comments, and settings that are wrong or unknown are taken out.
        """
        try:
            before = files.read_text(self.path, _LARGEST)
            text = readable(before)
            if text is None:
                return None
            wrong = [
                f"{group}.{key}" if key else group for group, key in _wrong_keys(tomlkit.parse(text).unwrap())
            ]
            return before, without(text, wrong)
        except (OSError, ValueError, TOMLKitError, RecursionError):
            return None

    def preview(self) -> SettingsRepair:
        """Return what is wrong with the file now, and the diff of a repair."""
        looked = SettingsFile(self.path)
        looked.load_what_holds()
        found = looked.repaired() if looked.problem is not None else None
        return SettingsRepair(
            file=str(self.path), problem=looked.problem, diff=changed_lines(*found) if found else ""
        )

    def mend(self, how: Literal["repair", "set_aside", "read_again"]) -> tuple[str, ...]:
        """Repair the file, set it aside, or read it again; the names of the values that changed by it.

        A file that is right is never touched. Raises what `repair` and `set_aside` raise.
        """
        before = dict(_flat(self.current))
        self.load_what_holds()
        if self.problem is not None and how != "read_again":
            self.repair() if how == "repair" else self.set_aside()
        return tuple(name for name, value in _flat(self.current) if before[name] != value)

    def repair(self) -> Path:
        """Write the repaired text, with the file as it was beside it; the path of that.

        Raises HostError(setting_invalid) where it cannot be repaired, HostError(disk_full),
        HostError(not_writable).
        """
        found = self.repaired()
        if found is None:
            raise HostError(
                Reason.SETTING_INVALID,
                tr("{path} cannot be repaired by itself.", path=self.path),
                cause="It is no text, or what is wrong is not on lines of its own.",
                fix=Fix(text="Correct it by hand, or set it aside.", command="sndr settings set-aside"),
                evidence={"file": str(self.path)},
            )
        before, after = found
        kept = self._aside("before-repair")
        atomic_file.write(kept, before)
        atomic_file.write(self.path, after, follow=True)
        self.load_what_holds()
        return kept

    def set_aside(self) -> Path:
        """Move the file away, so that the defaults hold; where it is now. Raises HostError(not_writable)."""
        kept = self._aside("set-aside")
        try:
            os.replace(self.path, kept)
        except OSError as error:
            raise atomic_file.saving_failed(kept, error) from error
        self.load_what_holds()
        return kept

    def _aside(self, why: str) -> Path:
        name = f"{self.path.name}.{why}-{time.strftime('%Y%m%d-%H%M%S')}"
        return next(
            path
            for path in (self.path.with_name(name + end) for end in ("", *map("-{}".format, range(2, 1000))))
            if not os.path.lexists(path)
        )

    def _read(self) -> tomlkit.TOMLDocument:
        """The file as a document that keeps comments and order."""
        try:
            return tomlkit.parse(files.read_text(self.path, _LARGEST))
        except FileNotFoundError:
            return tomlkit.document()
        except (TOMLKitError, ValueError, RecursionError) as error:
            raise HostError(
                Reason.SETTING_INVALID,
                tr("{path} is not valid TOML: {error}.", path=self.path, error=self._said(error)),
                cause="The file was edited or damaged.",
                fix=Fix(
                    text="Correct that line, have it repaired, or set the file aside.",
                    command="sndr settings repair",
                ),
                evidence={"file": str(self.path), **self._place(fault_line)},
            ) from error
        except OSError as error:
            raise HostError(
                Reason.SETTING_INVALID,
                tr("{path} cannot be read: {error}.", path=self.path, error=error.strerror),
                cause=unreadable_file(),
                fix="Make the file readable for you.",
                evidence={"file": str(self.path), "errno": error.errno},
            ) from error

    def _said(self, error: Exception) -> str:
        try:
            return what_is_wrong(files.read_text(self.path, _LARGEST), error)
        except (OSError, ValueError):
            return str(error)

    def _place(self, find: Callable[[str], int | None]) -> dict[str, Any]:
        """Return the line of a fault with its number, where it can be told."""
        try:
            text = files.read_text(self.path, _LARGEST)
        except (OSError, ValueError):
            return {}
        line = find(text)
        return {} if line is None else {"line": line, "text": line_at(text, line)}

    def change(self, values: dict[str, Any]) -> tuple[str, ...]:
        """Set dotted names to values (None removes the user's value) and save; the names that changed.

        A value that was wrong in the file already does not stop another from being mended: what was asked
        is saved, and the error names what is still wrong. Raises HostError(setting_invalid),
        HostError(disk_full), HostError(not_writable); but for that one case nothing changed then.
        """
        # Read anew: what was written into the file by hand meanwhile must not be lost.
        document = self._read()
        lists = {name for name, default in _flat(Settings()) if isinstance(default, list)}
        # One entry is what most lists hold, and brackets are hard to write in a shell.
        values = {
            name: [value] if name in lists and isinstance(value, str) else value
            for name, value in values.items()
        }
        for name, value in values.items():
            try:
                _put(document, name, value)
            except (TOMLKitError, ValueError, TypeError) as error:
                raise _unwritable(name, value) from error
        written = document.unwrap()
        still_wrong: HostError | None = None
        try:
            checked = Settings.model_validate(written)
        except ValidationError as error:
            for entry in error.errors():
                for name, value in values.items():
                    group, _, key = name.partition(".")
                    if value is not None and entry["loc"][:2] in {(group,), (group, key)}:
                        raise _refused(name, entry) from error
            still_wrong = self._wrong(error, saved=tuple(values))
        else:
            if "endpoint.host" in values:
                _check_reach(checked.endpoint.host, self.path.parent)
        atomic_file.write(self.path, tomlkit.dumps(document), follow=True)
        if still_wrong is not None:
            raise still_wrong
        self.problem = None
        before = dict(_flat(self.current))
        self._written, self.current = written, checked
        return tuple(name for name, value in _flat(checked) if before[name] != value)

    def settings(self) -> tuple[Setting, ...]:
        """Every setting by its dotted name, with the layer that set it."""
        return tuple(
            Setting(
                name=name,
                value=value,
                layer=Layer.USER if self.is_set(name) else Layer.ENGINE,
                why=str(self.path) if self.is_set(name) else "default",
            )
            for name, value in _flat(self.current)
        )

    def is_set(self, name: str) -> bool:
        """Return True if the user's file sets this dotted name."""
        group, _, key = name.partition(".")
        return key in self._written.get(group, {})

    def _check(self, written: dict[str, Any]) -> Settings:
        try:
            return Settings.model_validate(written)
        except ValidationError as error:
            raise self._wrong(error) from error

    def _wrong(self, error: ValidationError, saved: tuple[str, ...] = ()) -> HostError:
        """Build the error for an invalid file: the key at fault, and the names in `saved` that were written
        all the same."""
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "settings"
        place = self._place(lambda text: line_of(text, key))
        where = tr("{path}, line {place}", path=self.path, place=place["line"]) if place else str(self.path)
        if first["type"] == "extra_forbidden":
            message = tr("There is no setting {key} (in {where}).", key=key, where=where)
            advice = tr("Remove it. {known}", known=_known(key))
        else:
            message = tr(
                "{key} in {where} is wrong: {refusal} (it is {first}).",
                key=key,
                where=where,
                refusal=refusal(first, Settings),
                first=repr(first["input"]),
            )
            advice = tr("Change that value, or remove it to have the default.")
        name = ".".join(str(part) for part in first["loc"][:2])
        if saved:
            message = tr(
                "{saved} was saved, but the file is not used yet: {message}",
                saved=", ".join(saved),
                message=message,
            )
        return HostError(
            Reason.SETTING_INVALID,
            message,
            fix=Fix(text=advice, command=f"sndr settings unset {name}"),
            evidence={
                "key": key,
                "file": str(self.path),
                **place,
                "errors": error.error_count(),
                "saved": list(saved),
            },
        )


def _wrong_keys(written: dict[str, Any]) -> list[tuple[str, str]]:
    """Return group and key of every value that is wrong or unknown; an empty key is the whole group."""
    try:
        Settings.model_validate(written)
    except ValidationError as error:
        places = [tuple(map(str, entry["loc"][:2])) for entry in error.errors()]
        return [(place[0], place[1] if len(place) > 1 else "") for place in places if place]
    return []


def _put(document: tomlkit.TOMLDocument, name: str, value: Any) -> None:
    """Set a dotted name, or take it away; a table without entries goes, unless it holds comments."""
    group, _, key = name.partition(".")
    if not isinstance(document.get(group, {}), dict):
        del document[group]
    if value is not None:
        if group not in document:
            document[group] = tomlkit.table()
        document[group][key] = value
    elif group in document:
        entries = document[group]
        entries.pop(key, None)
        if not entries.unwrap() and "#" not in entries.as_string():
            del document[group]


def _refused(name: str, entry: Any) -> HostError:
    """A value that was asked for and is not taken; nothing was saved."""
    if entry["type"] == "extra_forbidden":
        return HostError(
            Reason.SETTING_INVALID,
            tr("There is no setting {name}.", name=name),
            fix=_known(name),
            evidence={"key": name},
        )
    return HostError(
        Reason.SETTING_INVALID,
        tr(
            "{name} cannot be {entry}: {refusal}. Nothing was changed.",
            name=name,
            entry=repr(entry["input"]),
            refusal=refusal(entry, Settings),
        ),
        fix=Fix(
            text="Give another value, or take the default again.",
            command=f"sndr settings unset {shlex.quote(name)}",
        ),
        evidence={"key": name, "value": str(entry["input"])[:200]},
    )


def _known(name: str = "") -> str:
    names = [known for known, _ in _flat(Settings())]
    near = near_names(name, names)
    meant = tr("Did you mean {near}? ", near=near[0]) if name and near else ""
    return tr("{meant}Known settings: {names}.", meant=meant, names=", ".join(names))


def _unwritable(name: str, value: Any) -> HostError:
    """A value that TOML has no form for, such as nothing in a list; nothing was saved."""
    return HostError(
        Reason.SETTING_INVALID,
        tr(
            "{name} cannot be {value}: it has no form in a settings file. Nothing was changed.",
            name=name,
            value=str(value)[:200],
        ),
        fix="Give another value.",
        evidence={"key": name},
    )


def _check_reach(host: str, config: Path) -> None:
    if is_loopback(host) or KeyFile(config).read():
        return
    raise HostError(
        Reason.SETTING_INVALID,
        tr(
            "endpoint.host cannot be {host}: anybody in the network could use it. Nothing was changed.",
            host=host,
        ),
        cause="No API key is configured.",
        fix=Fix(text="Make a key, then try again.", command="sndr keys create NAME"),
        evidence={"key": "endpoint.host", "value": host},
    )


def _flat(settings: Settings) -> list[tuple[str, Any]]:
    dumped = settings.model_dump(mode="json")
    return [(f"{group}.{key}", value) for group, entries in dumped.items() for key, value in entries.items()]
