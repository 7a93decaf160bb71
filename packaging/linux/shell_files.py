"""What shells and `man` know of `sndr`: its manual page, and completion for bash, zsh and fish.

`shell_files.py FOLDER` writes them below FOLDER as they lie below /usr/share. All comes from the commands
themselves, by which the program reads its arguments.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from click.shell_completion import get_completion_class

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from engine_host import __version__
from engine_host.cli.output import MEANINGS
from engine_host.cli.root import root
from engine_host.cli.text.whole_help import WholeHelp

# Below /usr/share, as each shell of Debian looks for it.
COMPLETIONS = {
    "bash": "bash-completion/completions/sndr",
    "zsh": "zsh/vendor-completions/_sndr",
    "fish": "fish/vendor_completions.d/sndr.fish",
}
MANUAL = "man/man1/sndr.1"
PLACES = (MANUAL, *COMPLETIONS.values())
_VARIABLES = {
    "SNDR_HOME": "One folder for settings, data, cache and sockets, in the place of the XDG folders.",
    "SNDR_CACHE": "The folder of built engines and environments.",
    "SNDR_LANGUAGE": "The language of sentences: en, de, ru, zh or ja.",
    "NO_COLOR": "Print without colours.",
}
_FILES = {
    "~/.config/sndr/settings.toml": "The settings of this user; sndr settings shows and changes them.",
    "~/.local/share/sndr": "Data: presets, chats, measurements, logs.",
    "~/.cache/sndr": "Engines that were built or installed.",
}
_BOLD = {1: r"\fB", 2: r"\fR"}
_OPTION = re.compile(r"(?<![\w-])(--?[a-z][\w-]*)")


def completion(shell: str) -> str:
    """Return the script that completes `sndr` in a shell."""
    made = get_completion_class(shell)
    assert made is not None
    return made(root, {}, "sndr", "_SNDR_COMPLETE").source()


def manual(day: str) -> str:
    """Return the manual page, in man(7), as of a day."""
    parts = [
        f'.TH SNDR 1 "{day}" "sndr {_plain(__version__)}" "User Commands"',
        # Command lines are neither stretched nor hyphenated.
        ".ad l",
        ".nh",
        ".SH NAME",
        r"sndr \- run language models on your own GPUs, and watch them",
        ".SH SYNOPSIS",
        r".B sndr",
        r"[\fB\-\-host\fR \fINAME\fR] \fICOMMAND\fR [\fIARGUMENT\fR ...]",
        ".SH DESCRIPTION",
        *_text(root.help or ""),
        ".SH OPTIONS",
        *_options(root, click.Context(root, info_name="sndr")),
        ".SH COMMANDS",
        "Each group of commands has a section of its own below.",
    ]
    assert isinstance(root, WholeHelp)
    for title, commands in root.sectioned(click.Context(root)):
        parts.append(f".SH {_plain(title.upper())}")
        for name, one in commands:
            for path, command in _with_those_below(one, ("sndr", name)):
                parts += _about(path, command)
    parts.append(".SH EXIT STATUS")
    for code, meaning in MEANINGS.items():
        parts += [".TP", rf"\fB{code.value}\fR", _escaped(meaning)]
    for title, rows in (("ENVIRONMENT", _VARIABLES), ("FILES", _FILES)):
        parts.append(f".SH {title}")
        for name, meaning in rows.items():
            parts += [".TP", rf"\fB{_plain(name)}\fR", _escaped(meaning)]
    return "\n".join(parts) + "\n"


def _with_those_below(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            if one is not None and not one.hidden:
                yield from _with_those_below(one, (*path, name))


def _about(path: tuple[str, ...], command: click.Command) -> list[str]:
    context = click.Context(command, info_name=" ".join(path))
    pieces = command.collect_usage_pieces(context)
    named = rf".SS \fB{_plain(' '.join(path))}\fR {_plain(' '.join(pieces))}".rstrip()
    return [named, *_text(command.help or ""), *_options(command, context)]


def _options(command: click.Command, context: click.Context) -> list[str]:
    parts = []
    for one in command.get_params(context):
        if "--help" in one.opts or (record := one.get_help_record(context)) is None:
            continue
        names, meaning = record
        if isinstance(one, click.Option):
            parts += [".TP", _plain(_OPTION.sub("\x01\\1\x02", names)).translate(_BOLD), _escaped(meaning)]
    return parts


def _text(words: str) -> list[str]:
    """Return paragraphs; one that click keeps as it is, behind a \\b, keeps lines and columns here too."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", words.strip()):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            parts += [".PP", ".nf", *(_no_request(_plain(line.rstrip())) for line in lines[1:]), ".fi"]
        elif any(lines):
            parts += [".PP", _escaped(" ".join(lines))]
    return parts


def _plain(words: str) -> str:
    r"""Return words as roff prints them: a hyphen is one of the command line, and \ is no command.

    A line may end behind a bar, stroke or comma, where a word would be longer than a narrow one.
    """
    found = words.replace("\\", r"\e").replace("-", r"\-")
    found = re.sub(r"(?<=[\w\]>])([|/,])(?=[\w\[<])", r"\1\\:", found)
    return re.sub(r"[^\x00-\x7f]", lambda sign: f"\\[u{ord(sign[0]):04X}]", found)


def _escaped(words: str) -> str:
    """Return words as one line that is no request of roff."""
    return _no_request(_plain(" ".join(words.split())))


def _no_request(line: str) -> str:
    return rf"\&{line}" if line.startswith((".", "'")) else line


def write(share: Path, date: float) -> None:
    """Write all of it below a folder, the manual as of a date in seconds."""
    day = datetime.fromtimestamp(date, UTC).date().isoformat()
    files = {MANUAL: manual(day)} | {place: completion(shell) for shell, place in COMPLETIONS.items()}
    for place, text in files.items():
        path = share / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="written below it, as below /usr/share")
    write(parser.parse_args().folder, datetime.now(UTC).timestamp())
