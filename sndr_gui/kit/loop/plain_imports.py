"""Imports as Python does them, also where Qt is loaded."""

import builtins


def keep_imports_plain() -> None:
    """Take out what PySide does at each import for `from __feature__ import`, which nothing here asks for.

    It reads the source of every module that is imported after it, to look for "PySide6", and keeps the
    texts in memory: a seventh of what the window's imports took, and 15 MB.
    """
    import PySide6.QtCore  # noqa: F401 - puts it in, if nobody did

    if (plain := getattr(builtins, "__orig_import__", None)) is not None:
        builtins.__import__ = plain
