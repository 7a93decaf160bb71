"""`sndr settings`: read and change what the program remembers, with or without a running host."""

import json
import re
from pathlib import Path
from typing import Any, Literal

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import connected, may_do_without
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr, translated
from engine_host.protocol.launch.plans import Finding, Layer, Setting
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import MEANINGS, MendSettings, SettingPage, SettingsChange, SettingsRepair

_NEGATIVE = re.compile(r"-\d[\d.eE+-]*|-\.\d+")


class _NumberTaking(click.Command):
    """A command whose values may be negative numbers, which look like options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let what looks like a number through to its argument; a wrong option is refused as ever."""
        ctx.ignore_unknown_options = any(_NEGATIVE.fullmatch(word) for word in args)
        return super().parse_args(ctx, args)


@click.group(cls=WholeHelp, alone="get")
def settings() -> None:
    """Read and change settings."""


@settings.command("get")
@click.argument("name", required=False)
@command("sndr settings get", "sndr settings get endpoint.port")
def get(out: Output, name: str | None) -> Exit | None:
    """Print all settings with where each comes from, or the value of one."""
    page = _read()
    if name is None:
        rows = [
            (entry.name, json.dumps(entry.value), _layer(entry), translated(MEANINGS.get(entry.name, "")))
            for entry in page.settings
        ]
        heads = ("setting", "value", "set by", "what it is")
        out.result(page, [*table(heads, rows), "", f"File: {page.file}"])
        if page.problem is not None:
            out.note(f"warning: {page.problem.message} `sndr settings check` says more.")
        return None
    for entry in page.settings:
        if entry.name == name:
            out.result(entry, entry.value if isinstance(entry.value, str) else json.dumps(entry.value))
            return None
    raise _unknown(name, page)


@settings.command("set", cls=_NumberTaking)
@click.argument("name")
@click.argument("value")
@command("sndr settings set endpoint.port 8001")
def put(out: Output, name: str, value: str) -> Exit | None:
    """Set NAME to VALUE (a JSON value; plain words are text, and for a list its only entry)."""
    return _change(out, name, _value(value))


@settings.command("unset")
@click.argument("name")
@command("sndr settings unset endpoint.port")
def unset(out: Output, name: str) -> Exit | None:
    """Forget the value of NAME, so that the default holds again."""
    return _change(out, name, None)


@settings.command("check")
@command("sndr settings check")
def check(out: Output) -> Exit | None:
    """Say what is wrong with the file of the settings, at which line, and what a repair would change.

    A file that is wrong stops nothing: what of it is right is used, the defaults stand for the rest. Changes
    nothing. Exit code 2 where something is wrong.
    """
    found = _look()
    if out.as_json or found.problem is None:
        out.result(found, f"{found.file} is right.")
        return None if found.problem is None else Exit.USAGE
    code = out.problem(found.problem)
    for line in _shown(found):
        out.note(line)
    return code


@settings.command("repair")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@command("sndr settings repair --dry-run")
def repair(out: Output, dry_run: bool) -> Exit | None:
    """Take out of the file what is wrong, and keep the file as it was beside it.

    Lines that are no TOML become comments; settings that are unknown or have a wrong value are taken out.
    """
    found = _look()
    if found.problem is None:
        out.result(found, f"{found.file} is right.")
        return None
    if dry_run:
        out.result(found, [found.problem.message, *_shown(found)])
        return None
    page = _mend("repair")
    out.result(page, [*_shown(found), f"{page.file} is repaired; what it was stays beside it."])
    return None


@settings.command("set-aside")
@command("sndr settings set-aside")
def set_aside(out: Output) -> Exit | None:
    """Move a file that is wrong away, beside its place, and begin anew with the defaults."""
    found = _look()
    if found.problem is None:
        out.result(found, f"{found.file} is right, and stays.")
        return None
    page = _mend("set_aside")
    out.result(page, f"{page.file} is set aside beside its place; every setting has its default.")
    return None


def _look() -> SettingsRepair:
    folders = Folders.resolve()
    try:
        with connected(folders) as client:
            return client.call(ops.SETTINGS_REPAIR)
    except HostError as error:
        if not may_do_without(error):
            raise
    return SettingsFile(folders.settings).preview()


def _mend(how: Literal["repair", "set_aside"]) -> SettingPage:
    folders = Folders.resolve()
    try:
        with connected(folders) as client:
            return client.call(ops.MEND_SETTINGS, MendSettings(how=how))
    except HostError as error:
        if not may_do_without(error):
            raise
    file = SettingsFile(folders.settings)
    file.mend(how)
    return _page(file)


def _shown(found: SettingsRepair) -> list[str]:
    return ["", *found.diff.splitlines(), ""] if found.diff else ["It cannot be repaired by itself."]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _layer(setting: Setting) -> str:
    """Return the layer of a setting of the program, whose defaults are no engine's."""
    return "default" if setting.layer is Layer.ENGINE else setting.layer.value


def _read() -> SettingPage:
    folders = Folders.resolve()
    try:
        with connected(folders) as client:
            return client.call(ops.SETTINGS)
    except HostError as error:
        if not may_do_without(error):
            raise
    file = SettingsFile(folders.settings)
    file.load_what_holds()
    return _page(file)


def _change(out: Output, name: str, value: Any) -> Exit | None:
    file = Folders.resolve().settings
    before = _written(file)
    page = put_setting(name, value)
    now = next((entry for entry in page.settings if entry.name == name), None)
    if now is None:
        if _written(file) == before:
            raise _unknown(name, page)
        # What the file held and nothing knows; the error about it advises to take it out so.
        out.result(page, f"{name} is out of {page.file}.")
        return None
    out.result(now, f"{name} is {json.dumps(now.value)} ({_layer(now)}).")
    for warning in page.warnings:
        out.note(f"{warning.severity.value}: {warning.message}")
    return None


def put_setting(name: str, value: Any) -> SettingPage:
    """Set a setting, in the file where no host runs; None forgets it. Raises what the host raises."""
    folders = Folders.resolve()
    try:
        with connected(folders) as client:
            return client.call(ops.CHANGE_SETTINGS, SettingsChange(values={name: value}))
    except HostError as error:
        if not may_do_without(error):
            raise
    # Not loaded first: a file that holds a wrong value is what somebody may want to mend.
    from engine_host.operations.setting_checks import (  # Reads the patches' catalogue.
        check_endpoint,
        check_tls,
        check_trace,
        doubts,
    )

    file = SettingsFile(folders.settings)
    check_endpoint({name: value}, file.current.endpoint.host, None)
    if name.startswith("endpoint.tls_"):
        file.load()
        check_tls({name: value}, file.current.endpoint)
    check_trace({name: value})
    file.change({name: value})
    return _page(file, doubts({name: value}, folders.config / "patches", file.current.endpoint))


def _written(file: Path) -> bytes:
    """Return the content of a file; empty if it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _unknown(name: str, page: SettingPage) -> HostError:
    """There is no such setting: what may have been meant, and all there are."""
    known = [entry.name for entry in page.settings]
    near = near_names(name, known, 3)
    meant = tr("Did you mean {near}? ", near=" or ".join(near)) if near else ""
    return HostError(
        Reason.SETTING_INVALID,
        tr("There is no setting {name}.", name=name),
        fix=tr("{meant}Known settings: {known}.", meant=meant, known=", ".join(known)),
        evidence={"key": name},
    )


def _page(file: SettingsFile, warnings: tuple[Finding, ...] = ()) -> SettingPage:
    return SettingPage(
        seq=0, file=str(file.path), settings=file.settings(), warnings=warnings, problem=file.problem
    )
