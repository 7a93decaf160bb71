"""Finds every message: what the code says through `tr`, `ntr` and `plural`, and the tables of texts."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from po import Entry

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("sndr_gui", "engine_host")
# They run inside engines, or on other machines; and the catalogue itself.
LEFT_OUT = ("engine_host/overlay/patches", "engine_host/overlay/inject", "engine_host/remote/install/there")
# Tables that are translated where they are shown: the call that makes a row, its arguments that are texts.
TABLES = {
    "engine_host/protocol/engine_settings": ("EngineSetting", (0, 1), ()),
    "engine_host/fit": ("Part", (0,), ()),
    "engine_host/core/findings": ("Text", (1, 3), ("message", "fix")),
    "engine_host/engines": ("ExitRule", (2, 3, 4), ()),
    "engine_host/telemetry": ("_kind", (2,), ()),
}

# Values that the window shows as a word, by the names of their enumerations.
WORDS = {
    "engine_host/protocol": (
        "EngineState",
        "RequestState",
        "JobState",
        "ServiceState",
        "OnDemandState",
        "PresetStatus",
        "Workload",
        "Layer",
        "VerifyLevel",
        "Outcome",
    ),
    "sndr_gui/kit/look": ("Accent",),
}
# Of other tables: names of parts of memory, and switches of patches.
ALSO = (
    "draft head",
    "CUDA graphs",
    "KV cache",
    "KV cache and states",
    "compute",
    "model",
    "comes with the program",
    "this program's own folder",
    "processes",
    "states",
    "output",
    "server",
    "GPUs: none is listed",
    "Too little was measured to judge it: let it answer for ten seconds, and look again.",
    "series of the engine: it ended before its first readings",
    "the kernel's out-of-memory killer: this system does not count it",
    "what the start needed: its model could not be looked at",
    "the KV cache",
    "prefix hits",
    "the bandwidth of its memory",
    "requests",
    "on",
    "off",
    "default",
    "applied",
    "skipped",
    "failed",
    "reverted",
    "pending",
)

_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)(?::[^{}]*)?\}")
_LETTERS = re.compile(r"[^\W\d_]{2}|n/a")


def messages() -> list[Entry]:
    """Return every message, by the files that say it. Raises ValueError where one is no literal."""
    found: dict[str, Entry] = {}
    sentences = spoken()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.relative_to(ROOT).as_posix().startswith(LEFT_OUT):
                _add(found, path, _said(path, sentences))
    for folder, (name, places, words) in TABLES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            _add(found, path, ((text, "") for text in _rows(path, name, places, words)))
    for folder, classes in WORDS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            _add(found, path, ((text, "") for text in _values(path, classes)))
    _add(found, ROOT / "packaging/languages/messages.py", ((text, "") for text in ALSO))
    return list(found.values())


def spoken() -> dict[str, set[str]]:
    """Return the classes of the protocol that hold sentences, and which of their fields are some."""
    found = {"HostError": {"cause", "fix"}}
    for path in sorted((ROOT / "engine_host/protocol").rglob("*.py")):
        for node in _nodes(path, "Sentence"):
            if isinstance(node, ast.ClassDef):
                fields = {
                    one.target.id
                    for one in node.body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                    if isinstance(one.annotation, ast.Name) and one.annotation.id == "Sentence"
                }
                found |= {node.name: fields} if fields else {}
    return found


def sentences_of(call: ast.Call, spoken: dict[str, set[str]]) -> Iterator[ast.expr]:
    """Return what a call gives as sentences; of a choice each of its ways."""
    name = _name(call.func)
    given = [keyword.value for keyword in call.keywords if keyword.arg in spoken.get(name, ())]
    given += call.args[1:2] if name == "HostError" else []
    while given:
        one = given.pop()
        if isinstance(one, ast.IfExp):
            given += [one.body, one.orelse]
        elif isinstance(one, ast.BoolOp):
            given += one.values
        else:
            yield one


def _add(found: dict[str, Entry], path: Path, said: Iterator[tuple[str, str]]) -> None:
    name = path.relative_to(ROOT).as_posix()
    for one, many in said:
        if not _LETTERS.search(_PLACE.sub("", one)):
            continue
        entry = found.setdefault(one, Entry(one, many))
        if many and entry.many not in ("", many):
            raise ValueError(f"{name}: {one!r} has two plurals: {entry.many!r} and {many!r}")
        entry.many = entry.many or many
        if name not in entry.files:
            entry.files.append(name)


def _said(path: Path, spoken: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        words = [_text(argument) for argument in node.args]
        yield from ((_text(one), "") for one in sentences_of(node, spoken) if _text(one))
        if name == "tr":
            if not words or not words[0]:
                if isinstance(node.args[0], ast.Attribute | ast.Name):
                    # A row of a table, or a word of an enumeration.
                    continue
                raise ValueError(f"{path}:{node.lineno}: tr() of what is no literal")
            _check(f"{path}:{node.lineno}", words[:1], node)
            yield words[0], ""
        elif name == "ntr":
            if len(words) < 2 or not words[0] or not words[1]:
                # Where `plural` makes its messages.
                continue
            _check(f"{path}:{node.lineno}", words[:2], node)
            yield words[0], words[1]
        elif name == "plural" and len(words) > 1:
            if not words[1]:
                raise ValueError(f"{path}:{node.lineno}: plural() of what is no literal")
            many = words[2] if len(words) > 2 else ""
            yield f"{{n}} {words[1]}", f"{{n}} {many or words[1] + 's'}"


def _check(place: str, said: list[str], call: ast.Call) -> None:
    """Raise ValueError where a message names a value that the call does not give, or the other way round."""
    given = {keyword.arg or "" for keyword in call.keywords}
    # Without values it is a template for later; with `**values` they are not known here.
    if not given or "" in given:
        return
    named = set().union(*(_PLACE.findall(one) for one in said)) - ({"n"} if len(said) > 1 else set())
    if named != given:
        raise ValueError(f"{place}: {said[0]!r} names {sorted(named)}, and is given {sorted(given)}")


def _rows(path: Path, name: str, places: tuple[int, ...], words: tuple[str, ...]) -> Iterator[str]:
    for node in _nodes(path, f"{name}("):
        if isinstance(node, ast.Call) and _name(node.func) == name:
            said = [node.args[place] for place in places if place < len(node.args)]
            said += [keyword.value for keyword in node.keywords if keyword.arg in words]
            yield from filter(None, (_text(argument) for argument in said))


def _values(path: Path, classes: tuple[str, ...]) -> Iterator[str]:
    for node in _nodes(path, *(f"class {one}" for one in classes)):
        if isinstance(node, ast.ClassDef) and node.name in classes:
            values = (_text(one.value) for one in node.body if isinstance(one, ast.Assign))
            shown = {"Accent": str.capitalize, "Workload": lambda value: value.replace("-", " ")}
            yield from (shown.get(node.name, str)(value) for value in values if value)


def _nodes(path: Path, *signs: str) -> Iterator[ast.AST]:
    """Parse a file that has one of these texts: most have none, and parsing takes the time."""
    text = path.read_text(encoding="utf-8")
    if any(sign in text for sign in signs):
        yield from ast.walk(ast.parse(text))


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
