"""`sndr`: everything that the window does, on the command line."""

import os
import shlex
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from engine_host import __version__
from engine_host.cli.autopsy.commands import autopsy
from engine_host.cli.bench.doctor import doctor
from engine_host.cli.bench.endpoint import endpoint
from engine_host.cli.bench.kernels import bench
from engine_host.cli.bench.lab import lab_compare, lab_list, lab_remove, lab_report, lab_run
from engine_host.cli.bench.prove import prove
from engine_host.cli.bench.quality import quality
from engine_host.cli.bench.verify import lab_verify
from engine_host.cli.chat import chat
from engine_host.cli.connect import connect
from engine_host.cli.diagnostics.commands import diagnostics
from engine_host.cli.engine import engine, jobs
from engine_host.cli.fit import fit
from engine_host.cli.keys import keys
from engine_host.cli.launch import launch
from engine_host.cli.library.commands import models
from engine_host.cli.on_demand.commands import on_demand
from engine_host.cli.output import MEANINGS, Exit, Output, command
from engine_host.cli.patches import patches
from engine_host.cli.presets.commands import presets
from engine_host.cli.presets.edit import set_values, vary
from engine_host.cli.presets.verdicts import verdicts
from engine_host.cli.presets.verify import verify
from engine_host.cli.remote.commands import host
from engine_host.cli.remote.install import install, uninstall, update
from engine_host.cli.remote.logs import host_logs
from engine_host.cli.remote.pin import engine_pin, host_pin
from engine_host.cli.remote.power import gpu, host_power
from engine_host.cli.remote.services import container, services, unit
from engine_host.cli.remote.sheet import profile, sheet
from engine_host.cli.remote.staging import promote, rollback, stage
from engine_host.cli.remote.transfers import fetch, send
from engine_host.cli.remote.watch import watch
from engine_host.cli.render import render
from engine_host.cli.requests.commands import requests
from engine_host.cli.routes.commands import routes
from engine_host.cli.run import run, stop
from engine_host.cli.serve import quit_host, serve
from engine_host.cli.settings import settings
from engine_host.cli.start.repeat import restart
from engine_host.cli.start.window import open_window
from engine_host.cli.status import events, logs, status
from engine_host.cli.text.chosen_host import choose_host
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.cli.top.alerts import alerts
from engine_host.cli.top.commands import top
from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR
from engine_host.protocol.errors import Fix, Problem, Reason

_CODES = "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())


_HERE = {
    "connect": "it sets the editors of this machine. A route leads its endpoint there.",
    "host": "it says which hosts this machine knows.",
    "open": "the window is this machine's; it shows other hosts too: sndr open sndr://host/NAME.",
    "serve": "a host is started on its own machine: sndr host shell NAME.",
    "version": "it is about this program.",
}
"""The commands of this machine alone, and why."""

# By what click's completion in a shell asks.
_COMPLETE = "_SNDR_COMPLETE"
_PROTOCOL = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"


@click.group(
    cls=WholeHelp,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"\b\nExit codes:\n{_CODES}\n\n\b\nEach command takes --json and --help.",
)
@click.option(
    "--host", metavar="NAME", help="Do it on this host of another machine: `sndr host list` says which."
)
@click.version_option(__version__, "--version", message=f"sndr %(version)s (protocol {_PROTOCOL})")
@click.pass_context
def root(context: click.Context, host: str | None) -> None:
    """Run language models on this machine and watch them.

    `sndr run --demo` needs no GPU and no download: it starts the bundled model, asks it a question and serves
    it to editors until Ctrl+C.
    """
    if host is None:
        return
    if not host:
        # An unset variable of a shell; what was meant for another machine is not done here.
        raise click.UsageError("--host names no host: `sndr host list` says which there are.")
    if (why := _HERE.get(context.invoked_subcommand or "")) is not None:
        raise click.UsageError(f"`sndr {context.invoked_subcommand}` goes without --host: {why}")
    choose_host(context, host)


@click.command("version")
@command
def version(out: Output) -> Exit | None:
    """Say which version this is and which protocol it speaks."""
    out.result({"program": __version__, "protocol": _PROTOCOL}, f"sndr {__version__} (protocol {_PROTOCOL})")
    return None


for _command in (
    serve,
    status,
    open_window,
    top,
    alerts,
    doctor,
    diagnostics,
    autopsy,
    run,
    launch,
    stop,
    restart,
    on_demand,
    chat,
    models,
    fit,
    render,
    engine,
    patches,
    presets,
    bench,
    prove,
    jobs,
    events,
    logs,
    settings,
    keys,
    routes,
    host,
    services,
    gpu,
    connect,
    requests,
    quit_host,
    version,
):
    root.add_command(_command)
for _command in (vary, set_values, verdicts, verify):
    presets.add_command(_command)


host.add_command(sheet)
host.add_command(profile)
host.add_command(watch)
for _command in (
    install,
    update,
    uninstall,
    send,
    fetch,
    unit,
    container,
    host_logs,
    host_power,
    stage,
    promote,
    rollback,
):
    host.add_command(_command)
host.add_command(host_pin)
engine.add_command(engine_pin)
bench.add_command(quality)
bench.add_command(endpoint)
for _command in (lab_run, lab_list, lab_report, lab_compare, lab_verify, lab_remove):
    bench.add_command(_command)


def carry_out(words: Sequence[str]) -> int:
    """Run one command; its exit code. Raises KeyboardInterrupt, and BrokenPipeError when nobody reads on."""
    if (completing := os.environ.get(_COMPLETE)) is not None:
        return shell_complete(root, {}, "sndr", _COMPLETE, completing)
    try:
        # Not root.main(): that ends the program with 1 when the reader of its output goes away.
        with root.make_context("sndr", list(words)) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        told = _explained(error, words)
        if "--json" not in words:
            told.show()
            return told.exit_code
        # The command, which knows of --json, was not reached.
        at = told.ctx if isinstance(told, click.UsageError) else None
        where = at.command_path if at is not None else "sndr"
        fix = Fix(text="See what it takes.", command=f"{where} --help")
        problem = Problem(reason=Reason.BAD_REQUEST, message=told.format_message(), fix=fix)
        Output(as_json=True).problem(problem)
        return told.exit_code
    except (click.Abort, EOFError):
        return Exit.INTERRUPTED
    return code if isinstance(code, int) else Exit.OK


def _explained(error: click.ClickException, words: Sequence[str]) -> click.ClickException:
    """Return the error as it is, or of a --host that stands too late, with the place where it belongs."""
    if not isinstance(error, click.NoSuchOption) or error.option_name != "--host":
        return error
    if (why := _HERE.get(words[0] if words else "")) is not None:
        return click.UsageError(f"`sndr {words[0]}` goes without --host: {why}", error.ctx)
    at = next(number for number, word in enumerate(words) if word.partition("=")[0] == "--host")
    _, joined, name = words[at].partition("=")
    after = at + 1 if joined else at + 2
    name = name if joined else next(iter(words[at + 1 : after]), "NAME")
    meant = shlex.join(["sndr", "--host", name, *words[:at], *words[after:]])
    return click.UsageError(f"--host goes before the command: {meant}", error.ctx)
