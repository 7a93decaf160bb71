"""The entry: the window."""

import os
import sys

from sndr_gui.kit import display


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
    from sndr_gui.app import main as window

    return window(arguments)


if __name__ == "__main__":
    sys.exit(main())
