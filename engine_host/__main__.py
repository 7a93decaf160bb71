"""`python -m engine_host` is `sndr`; so is the program of that name."""

import signal

# While all else loads, Ctrl+C ends the program as it ends any other: Python would print where it came.
_typed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _typed:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import contextlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
from typing import NoReturn  # noqa: E402

from engine_host.cli import main as command_line  # noqa: E402


def main() -> NoReturn:
    """Run the command line and end at once, as mypy does.

    Python frees each object at its end: a fifth of a second of a host's end, a seventh of a short command.
    """
    try:
        if _typed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = command_line()
    except KeyboardInterrupt:
        code = 130
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.exit(code)  # It waits for them.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):  # A reader that is gone.
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
