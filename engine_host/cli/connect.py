"""`sndr connect`: editors and agents of this machine set to the endpoint."""

import asyncio
import os
import sys

import click

from engine_host.cli.output import Exit, Output, command, problem_lines
from engine_host.cli.start.host import connected
from engine_host.cli.text.tables import pairs, table
from engine_host.client.sync import ControlClient
from engine_host.connect import change, found
from engine_host.connect.clients.definition import Client
from engine_host.connect.clients.programs import Readers, variables
from engine_host.connect.clients.table import client_named
from engine_host.connect.facts import ANY_KEY, KEY_VARIABLE, Facts, address, facts_of, key_from
from engine_host.connect.machine import Machine
from engine_host.connect.records import Records
from engine_host.connect.settings import check_possible, settings_of
from engine_host.connect.shells import NAMES, Shell, lines
from engine_host.connect.words import OUTCOMES, STATES, outcome_of
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.endpoint.connect import (
    ClientChange,
    ClientEntry,
    ClientList,
    ClientSettings,
    ConnectionState,
    ProbeStep,
)
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import Engine, Request, RequestPage
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops


@click.command("connect")
@click.argument("client_name", metavar="[CLIENT]", required=False)
@click.option("--write", is_flag=True, help="Show what would change in its files, ask, and write it.")
@click.option("--undo", is_flag=True, help="Put back what was there before --write.")
@click.option("--probe", is_flag=True, help="Try it as the client would: models, stream, tool call, cancel.")
@click.option("--yes", is_flag=True, help="Write, or undo, without asking.")
@click.option(
    "--model",
    help="Which model, also one that a request loads (default: the one that was started first).",
)
@click.option("--url", help="Another address of the endpoint: behind a proxy, or by a name of its own.")
@click.option(
    "--shell",
    type=click.Choice(NAMES),
    help="For env: the shell that the lines are for (default: yours).",
)
@click.option(
    "--for",
    "readers",
    type=click.Choice([one.value for one in Readers]),
    default=Readers.OPENAI.value,
    show_default=True,
    help="For env: whose variables; those of Claude Code and Ollama lead programs of yours here.",
)
@command("sndr connect", "sndr connect zed --write", 'eval "$(sndr connect env)"')
def connect(
    out: Output,
    client_name: str | None,
    write: bool,
    undo: bool,
    probe: bool,
    yes: bool,
    model: str | None,
    url: str | None,
    shell: str | None,
    readers: str,
) -> Exit | None:
    """List the editors and agents of this machine, or say what CLIENT has to be told.

    `sndr connect env` prints variables for a shell: eval "$(sndr connect env)".
    """
    if undo and (write or probe):
        raise click.UsageError("--undo goes without --write and --probe.")
    if (write or undo or probe) and client_name is None:
        raise click.UsageError("Name the client: `sndr connect` lists them.")
    records = Records(Folders.resolve().data)
    if client_name is None:
        _list(out, records, model, url)
        return None
    client = client_named(client_name)
    if undo:
        return _undo(out, client, records, yes)
    check_possible(client)
    with connected() as control:
        facts = _facts(out, control, model, url)
        if write and (ended := _write(out, client, facts, records, yes)) is not None:
            return ended
        if probe:
            return _probe(out, client, facts, control)
    if client.name == "env":
        _environment(out, facts, shell, Readers(readers))
    elif not write:
        _settings(out, client, facts, records)
    return None


def _facts(out: Output, control: ControlClient, model: str | None, url: str | None) -> Facts:
    page = control.call(endpoint_ops.ENDPOINT_MODELS)
    facts = facts_of(control.call(ops.HOST).endpoint, page, model, url)
    others = [one.id for one in page.models if one.chat and one.id != facts.model]
    if model is None and others:
        out.note(f"The model is {facts.model}; --model takes another: {', '.join(others)}.")
    return facts


def _list(out: Output, records: Records, model: str | None, url: str | None) -> None:
    where: str | None = None
    facts: Facts | None = None
    remark = ""
    try:
        with connected() as control:
            where = address(control.call(ops.HOST).endpoint, url)
            facts = _facts(out, control, model, url)
    except HostError as error:
        # Without a host or a model the list still says what is here.
        if error.reason not in {Reason.HOST_UNREACHABLE, Reason.NO_ENGINE_RUNS, Reason.ENGINE_NOT_READY}:
            raise
        remark = error.problem.sentence()
    page = found.client_list(Machine.here(), records, where, facts)
    out.result(page, _list_lines(page))
    if remark:
        out.note(f"\n{remark}")
    else:
        out.note(f"\n{where} · {facts.model if facts else ''}. What to set: sndr connect CLIENT")


def _list_lines(page: ClientList) -> list[str]:
    here = [entry for entry in page.clients if entry.found]
    others = [entry for entry in page.clients if not entry.found]
    headings = ("client", "name", "settings", "address or file")
    rows = [_row(entry) for entry in (*here, *others)]
    shown = table(headings, rows)
    result = ["On this machine:", shown[0], *shown[1 : len(here) + 1]] if here else ["None was found here."]
    return [*result, "", "Others:", *shown[len(here) + 1 :]] if others else result


def _row(entry: ClientEntry) -> tuple[str, str, str, str]:
    place = entry.address or (entry.files[0] if entry.files else "")
    return entry.name, entry.title, STATES[entry.state] + (" (--undo)" if entry.undo else ""), place


def _settings(out: Output, client: Client, facts: Facts, records: Records) -> None:
    settings = settings_of(client, Machine.here(), facts)
    entry = found.entry_of(client, Machine.here(), records, facts.url, facts)
    out.note(f"{client.title}: {facts.model} at {facts.url}, context {facts.context:,} tokens")
    if client.files:
        state, where = STATES[entry.state], f" ({entry.address})" if entry.address else ""
        out.note(f"{state[:1].upper()}{state[1:]}{where}.")
    for line in problem_lines(entry.problem) if entry.problem is not None else ():
        out.note(line)
    out.note("")
    out.result(settings, _settings_lines(settings))
    for warning in settings.warnings:
        out.note(f"\nWarning: {warning}")
    for note in settings.notes:
        out.note(f"\n{note}")
    if client.files and entry.problem is None and entry.state is not ConnectionState.CONNECTED:
        out.note(f"\nWrite it: sndr connect {client.name} --write")


def _settings_lines(settings: ClientSettings) -> list[str]:
    result = pairs([(field.caption, field.value) for field in settings.fields])
    for text in settings.texts:
        result += [
            *([""] if result else []),
            *([f"{text.place}:"] if len(settings.texts) > 1 else []),
            text.text,
        ]
    return result


def _environment(out: Output, facts: Facts, shell: str | None, readers: Readers) -> None:
    chosen = Shell.named(shell) if shell else _own_shell()
    found_here = variables(facts, readers)
    printed = lines(found_here, chosen)
    if left_out := [name for name in variables(facts, Readers.ALL) if name not in found_here]:
        # At the end: an eval without quotes makes one line of them all.
        printed.append(f"# Left out: {', '.join(left_out)} (--for anthropic, ollama or all)")
    out.result({"shell": chosen.value, "variables": found_here}, printed, verbatim=True)
    if facts.key_needed and not os.environ.get(KEY_VARIABLE):
        out.note(
            f"The endpoint asks for a key, and {KEY_VARIABLE} is empty here: requests get 401 until one is "
            f"in it: `{lines({KEY_VARIABLE: 'KEY'}, chosen)[0]}`. `sndr keys create NAME` makes a key."
        )


def _own_shell() -> Shell:
    if sys.platform == "win32":
        return Shell.POWERSHELL
    return Shell.FISH if os.path.basename(os.environ.get("SHELL", "")) == "fish" else Shell.SH


def _write(out: Output, client: Client, facts: Facts, records: Records, yes: bool) -> Exit | None:
    proposed = change.propose(client, Machine.here(), facts, records)
    if not proposed.files:
        out.result(proposed.shown(), f"{client.title} is set to {facts.model} at {facts.url} already.")
        return None
    for warning in settings_of(client, Machine.here(), facts).warnings:
        out.note(f"Warning: {warning}\n")
    for file in proposed.shown().files:
        for line in file.difference.splitlines():
            out.note(line)
    if not yes and not _agreed(out, client):
        return Exit.INTERRUPTED
    done = change.write(proposed, records)
    out.result(done, _written_lines(done))
    return None


def _agreed(out: Output, client: Client) -> bool:
    """Ask for a yes. Raises HostError(consent_needed) where nobody can be asked."""
    if out.as_json or not _can_ask():
        raise HostError(
            Reason.CONSENT_NEEDED,
            tr("Nothing was written for {client}: nobody can be asked here.", client=client.title),
            cause="A client's files change after a yes, and with --json or without a terminal there is none.",
            fix=Fix(text="Say yes beforehand.", command=f"sndr connect {client.name} --write --yes"),
        )
    if click.confirm("\nWrite this?", default=False, err=True):
        return True
    out.note("Nothing was written.")
    return False


def _written_lines(done: ClientChange) -> list[str]:
    result = []
    for file in done.files:
        kept = f"; what was there is in {file.backup}" if file.backup else " (new)"
        result.append(f"Written: {file.path}{kept}")
    return [*result, f"Back: sndr connect {done.client} --undo"]


def _undo(out: Output, client: Client, records: Records, yes: bool) -> Exit | None:
    try:
        done = change.undo(client, records, anyway=yes)
    except HostError as error:
        lost = error.problem.evidence.get("difference")
        if not lost or out.as_json or not _can_ask():
            raise
        out.note(f"{error.problem.message} Undoing it all the same changes:\n")
        for line in str(lost).splitlines():
            out.note(line)
        question = "\nUndo it all the same? What stands there now is kept beside it."
        if not click.confirm(question, default=False, err=True):
            out.note("Nothing is undone.")
            return Exit.INTERRUPTED
        done = change.undo(client, records, anyway=True)
    paths = [
        (f"Removed: {file.path}, which was not there before" if file.removed else f"Put back: {file.path}")
        + (f"; what stood there is in {file.backup}" if file.backup else "")
        for file in done.files
    ]
    out.result(done, paths or [f"{done.title}: its files were as before already."])
    return None


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _probe(out: Output, client: Client, facts: Facts, control: ControlClient) -> Exit | None:
    from engine_host.connect.probe.run import probe as probe_endpoint

    key = key_from(os.environ)
    own = key or (control.call(endpoint_ops.OWN_KEY).key if facts.key_needed else None)
    if facts.key_needed and key is None:
        out.note(f"{KEY_VARIABLE} is not set: probing with a key of the host's own. The client needs one.")
    out.note(f"Probing {facts.url} as {client.title} does ({client.dialect.value}), with {facts.model}:\n")

    def tell(step: ProbeStep) -> None:
        for line in _step_lines(step):
            out.note(line)

    report = asyncio.run(probe_endpoint(client, facts, own or ANY_KEY, _Watch(control), tell))
    report = report.model_copy(update={"warnings": settings_of(client, Machine.here(), facts).warnings})
    for warning in report.warnings:
        out.note(f"\nWarning: {warning}")
    out.result(report, "\n" + outcome_of(report))
    return None if report.passed else Exit.FAILED


def _step_lines(step: ProbeStep) -> list[str]:
    took = "" if step.seconds is None else f"{step.seconds:6.2f} s"
    result = [f"{OUTCOMES[step.outcome]:8} {step.name:10} {took:9} {step.detail}"]
    if step.problem is not None:
        result += problem_lines(step.problem)[1:]
    return result


class _Watch:
    """The running host, asked without holding up the probe."""

    def __init__(self, control: ControlClient) -> None:
        self._control = control

    async def engines(self) -> tuple[Engine, ...]:
        """Return all engines."""
        return (await asyncio.to_thread(self._control.call, ops.ENGINES)).engines

    async def requests(self) -> tuple[Request, ...]:
        """Return the requests of all."""
        return (await asyncio.to_thread(self._requests)).requests

    def _requests(self) -> RequestPage:
        return self._control.call(endpoint_ops.REQUESTS, RequestQuery())
