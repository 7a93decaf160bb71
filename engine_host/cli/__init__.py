"""`sndr` begins here: Ctrl+C, and a reader that goes away, end it quietly whenever they come."""

import errno
import io
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A sign that the terminal's encoding lacks is no reason to lose the rest.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    # A host, and what programs read, speaks English: it carries what makes other languages of it.
    if {"serve", "--json"}.isdisjoint(words):
        from engine_host.protocol.language import chosen_language, install

        # Before what has texts is imported.
        install(chosen_language(os.environ.get("SNDR_LANGUAGE", ""), os.environ))
    try:
        # The commands take a moment to load, and Ctrl+C can come in it.
        from engine_host.core.processes.loading import loading

        with loading():
            from engine_host.cli.output import Exit, echo
            from engine_host.cli.root import carry_out
    except KeyboardInterrupt:
        return 130
    try:
        code = carry_out(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt as error:
        # Programs know it by the code; a person is told what goes on.
        for goes_on in getattr(error, "__notes__", ()) if "--json" not in words else ():
            # Below the ^C of the terminal.
            echo(f"\n{goes_on}", err=True)
        return Exit.INTERRUPTED
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            echo(f"Error: The output is not complete: {os.strerror(error.errno)}.", err=True)
            return Exit.SYSTEM
        if error.errno != errno.EPIPE:
            raise
        # Without this Python would complain of the pipe once more at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE_CLOSED
    return code
