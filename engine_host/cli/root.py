"""`sndr`: everything that the window does, on the command line."""

import os
import shlex
from collections.abc import Sequence

import click

from engine_host import __version__
from engine_host.cli.output import MEANINGS, Exit, Output, command
from engine_host.cli.text.chosen_host import choose_host
from engine_host.cli.text.loaded_on_use import LoadedOnUse
from engine_host.cli.text.tables import folded
from engine_host.cli.text.usage_errors import in_one_sentence
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.remote.host_command import HERE

_CODES = "\n".join(
    line for code, said in MEANINGS.items() for line in folded(f"  {code.value:>3}  {said}", 78, " " * 7)
)

_COMMANDS: dict[str, tuple[str, ...]] = {
    "serve": ("serve:serve",),
    "setup": ("first_run.commands:setup",),
    "status": ("status:status",),
    "open": ("start.window:open_window",),
    "top": ("top.commands:top",),
    "telemetry": ("telemetry.commands:telemetry",),
    "alerts": ("top.alerts:alerts",),
    "doctor": ("bench.doctor:doctor",),
    "diagnostics": ("diagnostics.commands:diagnostics",),
    "autopsy": ("autopsy.commands:autopsy",),
    "run": ("run:run",),
    "launch": ("launch:launch",),
    "stop": ("run:stop",),
    "restart": ("start.repeat:restart",),
    "on-demand": ("on_demand.commands:on_demand",),
    "chat": ("chat:chat",),
    "chats": ("chats.commands:chats",),
    "models": ("library.commands:models",),
    "fit": ("fit:fit",),
    "render": ("render:render",),
    "engine": (
        "engine:engine",
        "remote.pin:engine_pin",
    ),
    "patches": ("patches:patches",),
    "presets": (
        "presets.commands:presets",
        "presets.edit:vary",
        "presets.edit:set_values",
        "presets.verdicts:verdicts",
        "presets.verify:verify",
    ),
    "bench": (
        "bench.kernels:bench",
        "bench.quality:quality",
        "bench.endpoint:endpoint",
        "bench.lab:lab_run",
        "bench.soak:lab_soak",
        "bench.profile:lab_profile",
        "bench.reproduce:lab_reproduce",
        "bench.sweep:lab_sweep",
        "bench.sweep:lab_sweeps",
        "bench.lab:lab_list",
        "bench.lab:lab_report",
        "bench.lab:lab_compare",
        "bench.baseline:lab_baseline",
        "bench.baseline:lab_check",
        "bench.verify:lab_verify",
        "bench.lab:lab_remove",
        "bench.repair:lab_repair",
    ),
    "prove": ("bench.prove:prove",),
    "jobs": ("engine:jobs",),
    "events": ("status:events",),
    "logs": ("status:logs",),
    "settings": ("settings:settings",),
    "autostart": ("at_login.commands:autostart",),
    "keys": ("keys:keys",),
    "routes": ("routes.commands:routes",),
    "host": (
        "remote.commands:host",
        "remote.sheet:sheet",
        "remote.sheet:profile",
        "remote.watch:watch",
        "remote.install:install",
        "remote.install:update",
        "remote.install:uninstall",
        "remote.transfers:send",
        "remote.transfers:fetch",
        "remote.services:unit",
        "remote.services:container",
        "remote.logs:host_logs",
        "remote.power:host_power",
        "remote.staging:stage",
        "remote.staging:promote",
        "remote.staging:rollback",
        "remote.pin:host_pin",
    ),
    "services": ("remote.services:services", "remote.logs:service_logs"),
    "gpu": ("remote.power:gpu",),
    "connect": ("connect:connect",),
    "requests": ("requests.commands:requests",),
    "quit": ("serve:quit_host",),
}
"""Each command: where below this package it lies, and where those lie that are added to it."""

SECTIONS = {
    "Start and stop": ("run", "launch", "on-demand", "stop", "restart", "services", "render"),
    "Models and presets": ("models", "presets", "fit", "engine", "patches"),
    "Measure": ("bench", "prove"),
    "Endpoint and clients": ("chat", "chats", "connect", "keys", "routes", "requests"),
    "Other machines": ("host",),
    "Look and mend": (
        "status", "top", "telemetry", "alerts", "doctor", "autopsy", "diagnostics", "logs", "events", "jobs",
    ),
    "Host": ("setup", "open", "serve", "quit", "settings", "autostart", "gpu", "version"),
}  # fmt: skip
"""The commands by what they are for, as help, manual page and README have them."""

# By what click's completion in a shell asks.
_COMPLETE = "_SNDR_COMPLETE"
_PROTOCOL = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"


@click.group(
    cls=WholeHelp,
    sections=SECTIONS,
    commands=LoadedOnUse("engine_host.cli", _COMMANDS),
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
    if (why := HERE.get(context.invoked_subcommand or "")) is not None:
        raise click.UsageError(f"`sndr {context.invoked_subcommand}` goes without --host: {why}")
    choose_host(context, host)


@click.command("version")
@command("sndr version")
def version(out: Output) -> Exit | None:
    """Say which version this is and which protocol it speaks."""
    out.result({"program": __version__, "protocol": _PROTOCOL}, f"sndr {__version__} (protocol {_PROTOCOL})")
    return None


root.add_command(version)


def carry_out(words: Sequence[str]) -> int:
    """Run one command; its exit code. Raises KeyboardInterrupt, and BrokenPipeError when nobody reads on."""
    if (completing := os.environ.get(_COMPLETE)) is not None:
        from engine_host.cli.text.completion import complete

        return complete(root, _COMPLETE, completing)
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
    """Return the error in one sentence; of a --host too late, where it belongs."""
    error = in_one_sentence(error, root, words)
    if not isinstance(error, click.NoSuchOption) or error.option_name != "--host":
        return error
    if (why := HERE.get(words[0] if words else "")) is not None:
        return click.UsageError(f"`sndr {words[0]}` goes without --host: {why}", error.ctx)
    at = next(number for number, word in enumerate(words) if word.partition("=")[0] == "--host")
    _, joined, name = words[at].partition("=")
    after = at + 1 if joined else at + 2
    name = name if joined else next(iter(words[at + 1 : after]), "NAME")
    meant = shlex.join(["sndr", "--host", name, *words[:at], *words[after:]])
    return click.UsageError(f"--host goes before the command: {meant}", error.ctx)
