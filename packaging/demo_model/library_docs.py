# ruff: noqa: E501 - the table of verbs
"""Questions and answers from Python's own documentation (PSF licence): functions, modules, terms, FAQ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rst import Directive, blocks, inline, markdown, split_directives

CALLABLE = (
    "function",
    "method",
    "classmethod",
    "staticmethod",
    "class",
    "decorator",
    "coroutinefunction",
    "coroutinemethod",
    "decoratormethod",
    "abstractmethod",
    "awaitablefunction",
    "awaitablemethod",
)
NAMED = (*CALLABLE, "exception", "data", "attribute", "opcode", "c:function")
KINDS = {
    "classmethod": "class method",
    "staticmethod": "static method",
    "coroutinefunction": "coroutine function",
    "coroutinemethod": "coroutine method",
    "decoratormethod": "decorator",
    "data": "value",
    "awaitablefunction": "coroutine function",
    "abstractmethod": "method",
    "awaitablemethod": "coroutine",
}

VERBS = {
    "return": "returns", "create": "creates", "set": "sets", "get": "gets", "raise": "raises", "call": "calls",
    "open": "opens", "close": "closes", "read": "reads", "write": "writes", "print": "prints", "send": "sends",
    "convert": "converts", "check": "checks", "test": "tests", "remove": "removes", "add": "adds",
    "append": "appends", "insert": "inserts", "delete": "deletes", "make": "makes", "copy": "copies",
    "move": "moves", "change": "changes", "update": "updates", "find": "finds", "search": "searches",
    "split": "splits", "join": "joins", "compare": "compares", "compute": "computes", "load": "loads",
    "parse": "parses", "run": "runs", "execute": "executes", "start": "starts", "stop": "stops", "wait": "waits",
    "register": "registers", "unregister": "unregisters", "enable": "enables", "disable": "disables",
    "encode": "encodes", "decode": "decodes", "format": "formats", "generate": "generates", "give": "gives",
    "determine": "determines", "display": "displays", "acquire": "acquires", "release": "releases",
    "initialize": "initializes", "construct": "constructs", "receive": "receives", "flush": "flushes",
    "dump": "dumps", "perform": "performs", "apply": "applies", "clear": "clears", "reset": "resets",
    "replace": "replaces", "rename": "renames", "retrieve": "retrieves", "iterate": "iterates", "yield": "yields",
    "put": "puts", "pop": "pops", "push": "pushes", "try": "tries", "attempt": "attempts", "process": "processes",
    "handle": "handles", "connect": "connects", "bind": "binds", "listen": "listens", "accept": "accepts",
    "draw": "draws", "turn": "turns", "show": "shows", "hide": "hides", "extract": "extracts", "fetch": "fetches",
    "list": "lists", "store": "stores", "save": "saves", "restore": "restores", "use": "uses", "do": "does",
    "mark": "marks", "cancel": "cancels", "schedule": "schedules", "seek": "seeks", "truncate": "truncates",
    "compile": "compiles", "evaluate": "evaluates", "import": "imports", "install": "installs", "build": "builds",
    "assert": "asserts", "fail": "fails", "calculate": "calculates", "rotate": "rotates", "sort": "sorts",
    "reverse": "reverses", "count": "counts", "shuffle": "shuffles", "choose": "chooses", "round": "rounds",
    "emit": "emits", "log": "logs", "provide": "provides", "define": "defines", "declare": "declares",
    "resolve": "resolves", "issue": "issues", "invoke": "invokes", "shut": "shuts", "terminate": "terminates",
    "kill": "kills", "suspend": "suspends", "block": "blocks", "exit": "exits", "enter": "enters",
    "allow": "allows", "attach": "attaches", "detach": "detaches", "associate": "associates", "assign": "assigns",
    "extend": "extends", "expand": "expands", "normalize": "normalizes", "quote": "quotes", "escape": "escapes",
    "query": "queries", "report": "reports", "indicate": "indicates", "configure": "configures",
    "download": "downloads", "upload": "uploads", "prompt": "prompts", "ask": "asks", "echo": "echoes",
    "serialize": "serializes", "swap": "swaps", "unpack": "unpacks", "pack": "packs", "visit": "visits",
    "walk": "walks", "map": "maps", "match": "matches", "merge": "merges", "modify": "modifies",
    "obtain": "obtains", "discard": "discards", "divide": "divides", "multiply": "multiplies", "exchange": "exchanges",
    "force": "forces", "instantiate": "instantiates", "notify": "notifies", "wake": "wakes", "spawn": "spawns",
    "skip": "skips", "step": "steps", "specify": "specifies", "select": "selects", "prepare": "prepares",
    "produce": "produces", "decrement": "decrements", "increment": "increments", "concatenate": "concatenates",
    "center": "centers", "capitalize": "capitalizes", "strip": "strips", "group": "groups", "look": "looks",
    "override": "overrides", "undo": "undoes", "play": "plays", "post": "posts", "freeze": "freezes",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One documented name: dotted name, kind in words, signature and the blocks of its description."""

    name: str
    kind: str
    signature: str
    parts: tuple[tuple[str, str], ...]
    module: str


@dataclass(frozen=True)
class ModuleText:
    """One documented module: its one-line synopsis and the blocks of its introduction."""

    name: str
    synopsis: str
    parts: tuple[tuple[str, str], ...]


def read_library(folder: Path) -> tuple[list[Entry], list[ModuleText]]:
    """Parse every ``library/*.rst.txt`` below the documentation `folder`."""
    entries: list[Entry] = []
    modules: list[ModuleText] = []
    for file in sorted((folder / "library").glob("*.rst.txt")):
        text = file.read_text(encoding="utf-8")
        current = ""
        intro: list[tuple[str, str]] = []
        synopsis = ""
        state = "before"
        for part in split_directives(text):
            if isinstance(part, Directive):
                if part.kind in ("module", "currentmodule"):
                    current = part.arguments[0] if part.arguments else current
                    if part.kind == "module" and not synopsis:
                        synopsis, state = part.options.get("synopsis", ""), "intro"
                elif part.kind in NAMED:
                    if state == "intro":
                        state = "done"
                    entries += walk(part, current, "")
            elif state == "intro":
                for kind, body in blocks(part):
                    if kind == "title":
                        state = "done"
                        break
                    if "Source code" not in body:
                        intro.append((kind, body))
        if synopsis and current:
            name = file.name.removesuffix(".rst.txt")
            modules.append(
                ModuleText(
                    name if "." in current or name in current else current, inline(synopsis), tuple(intro)
                )
            )
    return entries, modules


def walk(part: Directive, module: str, owner: str) -> Iterator[Entry]:
    """Yield the entries of one directive and of those inside it."""
    if not part.arguments:
        return
    signature = part.arguments[0]
    for more in part.arguments[1:]:  # a signature may go on over several lines
        if signature.count("(") <= signature.count(")"):
            break
        signature = signature.rstrip("\\").rstrip() + " " + more
    signature = signature.rstrip("\\").strip().replace("\\\\", "\0").replace("\\*", "*").replace("\0", "\\")
    bare = re.split(r"[(\[ ]", signature)[0]
    if part.kind in (
        "method",
        "attribute",
        "classmethod",
        "staticmethod",
        "coroutinemethod",
        "abstractmethod",
    ):
        full = f"{owner}.{bare}" if owner and "." not in bare else bare
    else:
        full = bare
    name = (
        full
        if not module or full.startswith(module + ".") or (part.kind == "exception" and not module)
        else (f"{module}.{full}")
    )
    if module in ("", "builtins") or name.startswith("builtins."):
        name = full
    description = tuple(blocks(part.body))
    shown = name + signature[len(bare) :] if part.kind in CALLABLE else name
    if description and re.fullmatch(r"[\w.]+", name):
        yield Entry(name, KINDS.get(part.kind, part.kind), shown, description, module)
    for inner in split_directives(part.body):
        if isinstance(inner, Directive) and inner.kind in NAMED:
            yield from walk(inner, module, full if part.kind in ("class", "exception") else owner)


def sentences(text: str, limit: int) -> str:
    """Return whole leading sentences of `text` within `limit` characters (the first one always)."""
    parts = re.split(r"(?<=[.!?:]) (?=[A-Z`(])", text)
    out = parts[0]
    for part in parts[1:]:
        if len(out) + len(part) + 1 > limit or part.endswith(":"):
            break
        out += " " + part
    return out.removesuffix(":").strip() + (
        "." if not out.rstrip().endswith((".", "!", "?", ")", ":")) else ""
    )


def describe(entry: Entry, limit: int = 260) -> str | None:
    """Return what the entry is or does in one or a few sentences, or None where the text does not say."""
    texts = [body for kind, body in entry.parts if kind == "paragraph"]
    if not texts:
        return None
    text = sentences(texts[0], limit)
    if len(text) < 12 or len(text) > 600:
        return None
    first, _, rest = text.partition(" ")
    head = f"`{entry.signature}`" if len(entry.signature) < 90 else f"`{entry.name}`"
    word = first.lower().rstrip(",")
    if word in VERBS and first[0].isupper():
        return f"{head} {VERBS[word]} {rest}"
    if word.endswith("s") and word in VERBS.values():
        return f"{head} {word} {rest}"
    if word == "raised":
        return f"{head} is raised {rest}"
    if entry.kind == "exception" or " is " in rest[:40] or " are " in rest[:40] or " classes " in rest[:40]:
        return f"{head} is {article(entry.kind)}. {text}"
    if first in ("A", "An", "The"):
        return f"{head} is {first.lower()} {rest}"
    if re.match(r"(Is|Has|Equivalent|Same|Like|Similar|Deprecated|Alias)\b", text):
        return f"{head}: {text}"
    if word in ("this", "it") and rest.split(" ", 1)[0] in ("is", "returns", "function", "class", "method"):
        return f"{head}: {text}"
    return f"{head} is {article(entry.kind)}. {text}"


def article(kind: str) -> str:
    """Return the kind with its article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def glossary(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield terms of Python's glossary and what they mean."""
    text = (folder / "glossary.rst.txt").read_text(encoding="utf-8")
    body = text[text.index(".. glossary::") :]
    for match in re.finditer(r"^   (\S[^\n]*)\n((?:      [^\n]*\n|\s*\n)+)", body, re.MULTILINE):
        parts = blocks("\n".join(line[6:] for line in match.group(2).split("\n")))
        if (
            parts
            and parts[0][0] == "paragraph"
            and len(match.group(1)) < 40
            and match.group(1)[0] not in "`>.:"
        ):
            yield (
                match.group(1),
                markdown([(k, sentences(b, 420) if k == "paragraph" else b) for k, b in parts[:1]], 500),
            )


def titled_sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield (title, text) of the sections of one file."""
    found = list(re.finditer(r"^(?:([=*#-])\1*\n)?(\S[^\n]*)\n([=*\-~^\"])\3{3,}\n", text, re.MULTILINE))
    for match, later in zip(found, [*found[1:], None], strict=False):
        yield inline(match.group(2)), text[match.end() : later.start() if later else len(text)]


def questions(folder: Path, limit: int = 1100) -> Iterator[tuple[str, str]]:
    """Yield the questions of Python's FAQ with their answers."""
    for file in sorted((folder / "faq").glob("*.rst.txt")):
        for title, body in titled_sections(file.read_text(encoding="utf-8")):
            answer = markdown(blocks(body), limit)
            if title.endswith("?") and len(answer) > 30:
                yield title, answer


def lessons(folder: Path, limit: int = 1800) -> Iterator[tuple[str, str]]:
    """Yield the titles of tutorial and how-to sections with their text."""
    for part in ("tutorial", "howto"):
        for file in sorted((folder / part).glob("*.rst.txt")):
            for title, body in titled_sections(file.read_text(encoding="utf-8")):
                answer = markdown(blocks(body), limit)
                if len(answer) > 200 and not answer.startswith(("-", "```", "*")):
                    yield title.strip("?"), answer
