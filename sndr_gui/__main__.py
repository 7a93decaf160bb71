"""The entry: the window."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from sndr_gui.kit import display
from sndr_gui.kit.single_window import ANOTHER, IN_THE_WAY, Answered, Claim, Hung, claim, links_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine_host.client import Folders
    from sndr_gui.host.process import HostProcess


def main(argv: list[str] | None = None) -> int:
    """Run the window until it is closed; the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    from sndr_gui.kit.versions import refusal_here

    if (sentence := refusal_here()) is not None:
        print(sentence, file=sys.stderr)
        return 3
    if (sentence := display.refusal(sys.platform, os.environ, arguments)) is not None:
        print(sentence, file=sys.stderr)
        return display.NO_DISPLAY
    from engine_host.client import Folders

    folders = Folders.resolve()
    claimed: Claim | None = None
    if ANOTHER not in arguments:
        found = claim(folders, links_of(arguments))
        if isinstance(found, Answered):
            print("The window that runs was brought to the front.", file=sys.stderr)
            return 0
        if isinstance(found, Hung):
            _install_language(folders)
            from sndr_gui.views.window.hung import ask

            ask(found.pid, arguments)
            return IN_THE_WAY
        claimed = found
    from sndr_gui.host.process import HostProcess

    process = HostProcess(folders)
    # It takes longer than the window's first picture, and begins before Qt is read.
    process.begin()
    _install_language(folders)
    return _window()(arguments, folders, process, claimed)


def _window() -> Callable[[list[str], Folders, HostProcess, Claim | None], int]:
    """Read Qt and the window."""
    from sndr_gui.kit.loop.plain_imports import keep_imports_plain

    keep_imports_plain()
    from sndr_gui.app import main as window

    return window


def _install_language(folders: Folders) -> None:
    """Install the language; before anything that has texts is imported."""
    from sndr_gui.kit.language import install_language

    install_language(folders)


if __name__ == "__main__":
    sys.exit(main())
