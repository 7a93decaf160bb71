"""`sndr`: everything that the window does, on the command line."""

import os
import sys
from collections.abc import Sequence

import click

from engine_host import __version__
from engine_host.cli_chat import chat
from engine_host.cli_engine import engine, jobs
from engine_host.cli_output import MEANINGS, Exit, Output, command
from engine_host.cli_run import run, stop
from engine_host.cli_serve import quit_host, serve
from engine_host.cli_settings import settings
from engine_host.cli_watch import events, logs, models, status
from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR

_CODES = "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"\b\nExit codes:\n{_CODES}\n\n\b\nEach command takes --json and --help.",
)
def root() -> None:
    """Run language models on this machine and watch them.

    `sndr run --demo` needs no GPU and no download: it starts the bundled model, asks it a question and serves
    it to editors until Ctrl+C.
    """


@click.command("version")
@command
def version(out: Output) -> Exit | None:
    """Say which version this is and which protocol it speaks."""
    protocol = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"
    out.result({"program": __version__, "protocol": protocol}, f"sndr {__version__} (protocol {protocol})")
    return None


for _command in (
    serve,
    status,
    run,
    stop,
    chat,
    models,
    engine,
    jobs,
    events,
    logs,
    settings,
    quit_host,
    version,
):
    root.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    try:
        code = root.main(
            args=None if arguments is None else list(arguments), prog_name="sndr", standalone_mode=False
        )
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Nobody reads any more; without this Python would complain once more at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE_CLOSED
    return code if isinstance(code, int) else Exit.OK
