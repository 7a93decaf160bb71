"""The lines of an ssh configuration, read with care; ssh itself decides what they mean."""

import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine_host.core.outside import files

CONFIG_VARIABLE = "SNDR_SSH_CONFIG"
"""The variable that names another configuration than the user's own; it stands for `ssh -F`."""
_LARGEST = 1 << 20
_DEEPEST = 8
_MOST = 1000
_EQUALS = re.compile(r"^(\w+)\s*=")


def config_file(environment: Mapping[str, str]) -> Path:
    """Return the configuration that ssh is to read: the user's own, or the one that the variable names."""
    return files.expanded(environment.get(CONFIG_VARIABLE) or "~/.ssh/config")


def config_lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each line as its keyword in small letters and its values, included files in their place."""
    yield from _lines(path, path.parent, 0)


def _lines(path: Path, below: Path, depth: int) -> Iterator[tuple[str, list[str]]]:
    try:
        text = files.read(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        # `Host=a`, `Host = a` and `Host a` are the same.
        try:
            words = shlex.split(_EQUALS.sub(r"\1 ", line.strip()), comments=True)
        except ValueError:
            continue
        if not words:
            continue
        word, values = words[0].lower(), words[1:]
        if word != "include":
            yield word, values
        elif depth < _DEEPEST:
            for value in values:
                expanded = os.path.expanduser(value)
                for one in sorted(glob.glob(os.path.join(below, expanded)))[:_MOST]:
                    yield from _lines(Path(one), below, depth + 1)
