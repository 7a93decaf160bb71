"""`python -m engine_host` is `sndr`; so is the program of that name."""

import contextlib
import os
import sys
import threading
from typing import NoReturn

from engine_host.cli import main as command_line


def main() -> NoReturn:
    """Run the command line and end at once, as mypy does.

    Python frees each object at its end: a fifth of a second of a host's end, a seventh of a short command.
    """
    code = command_line()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.exit(code)  # It waits for them.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):  # A reader that is gone.
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
