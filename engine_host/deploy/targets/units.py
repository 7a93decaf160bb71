"""The text of unit files, and the folder that they find their own files in."""

from collections.abc import Sequence

from engine_host.deploy.deployment import Deployment

Section = tuple[str, Sequence[tuple[str, str]]]
# Below a person's home; `%h` in a unit is that home.
FOLDER = ".local/share/sndr/deploy"


def unit_text(comments: Sequence[str], sections: Sequence[Section]) -> str:
    """A unit file."""
    lines = [f"# {comment}" for comment in comments]
    for name, entries in sections:
        lines += ["", f"[{name}]", *(f"{key}={value}" for key, value in entries)]
    return "\n".join(lines) + "\n"


def command_line(words: Sequence[str]) -> str:
    """A command line over several lines, an option with its value on each."""
    lines: list[list[str]] = []
    for word in words:
        if not lines or word.lstrip('"').startswith("-"):
            lines.append([word])
        else:
            lines[-1].append(word)
    return " \\\n    ".join(" ".join(line) for line in lines)


def folder_of(deployment: Deployment) -> str:
    """Return the folder of a unit's files, with systemd's word for the home."""
    return f"%h/{FOLDER}/{deployment.name}"
