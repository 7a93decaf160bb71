"""Kinds of words in code, a line at a time, by rules that look at each character once.

Made for answers of strangers: a lexer of patterns that go back and forth can take minutes for a text that was
written for it. The state of a line that ends within a string or a comment is what the next one begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

LONGEST_LINE = 1000
"""Characters; a longer line is no code that somebody reads."""
KEYWORD, STRING, NUMBER, COMMENT = "keyword", "string", "number", "comment"
ADDED, REMOVED = "added", "removed"

Span = tuple[int, int, str]


@dataclass(frozen=True)
class Rules:
    """One language: its words, its quotation marks and its comments."""

    words: str = ""
    quotes: str = "\"'"
    long_quotes: tuple[str, ...] = ()
    line_comments: tuple[str, ...] = ()
    block_comments: tuple[tuple[str, str], ...] = ()
    any_case: bool = False
    extra: str = ""
    """A pattern of one line for words that are keywords by their place."""


_C_COMMENTS = {"line_comments": ("//",), "block_comments": (("/*", "*/"),)}
_C_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register return short signed sizeof static struct switch typedef union unsigned void volatile "
    "while bool true false NULL nullptr class namespace template typename public private protected "
    "virtual override using new delete this try catch throw constexpr noexcept explicit friend operator "
    "final import package extends implements interface instanceof super abstract synchronized throws "
    "boolean byte null var record foreach string object async await readonly internal sealed get set in "
    "is as out ref lock fun val when companion"
)
_SCRIPT_WORDS = (
    "async await break case catch class const continue debugger default delete do else export extends "
    "false finally for from function if import in instanceof let new null of return static super switch "
    "this throw true try typeof undefined var void while yield interface type enum implements readonly as "
    "keyof declare namespace abstract public private protected satisfies"
)
_SHELL_WORDS = (
    "if then else elif fi for in do done while until case esac function return export local readonly set "
    "unset source alias echo cd exit sudo"
)
_PYTHON_WORDS = (
    "and as assert async await break class continue def del elif else except False finally for from "
    "global if import in is lambda match case None nonlocal not or pass raise return self True try while "
    "with yield"
)
_RUST_WORDS = (
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop "
    "match mod move mut pub ref return self Self static struct super trait true type unsafe use where "
    "while"
)
_GO_WORDS = (
    "break case chan const continue default defer else fallthrough for func go goto if import interface "
    "map nil package range return select struct switch type var true false string int error bool"
)
_SQL_WORDS = (
    "select from where insert into values update set delete create table drop alter add primary key "
    "foreign references join left right inner outer on group by order having limit offset union all "
    "distinct as and or not null is in like between exists case when then else end index view with "
    "returning default unique"
)
_RUBY_WORDS = (
    "begin break case class def do else elsif end ensure false for if in module next nil not or and redo "
    "rescue retry return self super then true undef unless until when while yield require local function "
    "repeat"
)

_LANGUAGES = {
    "python": Rules(_PYTHON_WORDS, long_quotes=('"""', "'''"), line_comments=("#",), extra=r"@[\w.]+"),
    "script": Rules(_SCRIPT_WORDS, long_quotes=("`",), **_C_COMMENTS),  # type: ignore[arg-type]
    "c": Rules(_C_WORDS, extra=r"^\s*#\s*\w+", **_C_COMMENTS),  # type: ignore[arg-type]
    "rust": Rules(_RUST_WORDS, quotes='"', extra=r"#!?\[[^\]]*\]", **_C_COMMENTS),  # type: ignore[arg-type]
    "go": Rules(_GO_WORDS, long_quotes=("`",), **_C_COMMENTS),  # type: ignore[arg-type]
    "shell": Rules(_SHELL_WORDS, line_comments=("#",), extra=r"\$\{?\w+\}?|(?<=\s)--?[A-Za-z][\w-]*"),
    "sql": Rules(_SQL_WORDS, line_comments=("--",), block_comments=(("/*", "*/"),), any_case=True),
    "json": Rules("true false null", quotes='"', extra=r'"(?:[^"\\]|\\.)*"(?=\s*:)'),
    "yaml": Rules(
        "true false null yes no", line_comments=("#",), extra=r"^\s*+(?:-\s++)*+[\w./-]++(?=:(?:\s|$))"
    ),
    "toml": Rules(
        "true false",
        long_quotes=('"""', "'''"),
        line_comments=("#", ";"),
        extra=r"^\s*\[[^\]]*\]|^\s*[\w.-]+(?=\s*=)",
    ),
    "css": Rules("", block_comments=(("/*", "*/"),), extra=r"(?<![\w-])[\w-]++(?=\s*+:)|@[\w-]++"),
    "markup": Rules("", block_comments=(("<!--", "-->"),), extra=r"</?[\w:-]++|/?>|(?<![\w:-])[\w:-]++(?==)"),
    "ruby": Rules(_RUBY_WORDS, line_comments=("#", "--")),
    "docker": Rules(
        "from run cmd copy add env arg entrypoint workdir expose volume user label healthcheck shell as",
        line_comments=("#",),
        any_case=True,
    ),
    "make": Rules(
        "ifeq ifneq endif else include define endef", line_comments=("#",), extra=r"^[\w./%-]+(?=\s*:)"
    ),
    "diff": Rules(),
}
_NAMES = {
    "python": "py python python3 py3 pycon",
    "script": "js jsx javascript ts tsx typescript mjs node",
    "c": "c h cpp c++ cc cxx hpp cs csharp java kotlin kt swift objc cuda cu glsl scala dart php",
    "rust": "rust rs",
    "go": "go golang",
    "shell": "sh bash zsh shell console fish shell-session terminal powershell ps1",
    "sql": "sql sqlite postgresql mysql",
    "json": "json jsonc json5 jsonl",
    "yaml": "yaml yml",
    "toml": "toml ini cfg conf properties systemd",
    "css": "css scss less",
    "markup": "html xml svg vue xhtml",
    "ruby": "ruby rb lua elixir perl",
    "docker": "dockerfile docker containerfile",
    "make": "makefile make",
    "diff": "diff patch",
}
_BY_NAME = {alias: language for language, aliases in _NAMES.items() for alias in aliases.split()}


def language_of(named: str) -> str:
    """Return the language of a block of code by what its fence says; empty for one without rules."""
    word = re.split(r"[\s,{:]", named.strip().casefold(), maxsplit=1)[0]
    return _BY_NAME.get(word, "")


def spans(line: str, language: str, state: str = "") -> tuple[list[Span], str]:
    """Return the coloured parts of a line, and the state for the next one.

    A state is the mark that ends a string or a comment which is still open, with its kind in front.
    """
    if not language or len(line) > LONGEST_LINE:
        return [], ""
    if language == "diff":
        return _diff_spans(line), ""
    found: list[Span] = []
    place = 0
    if state:
        kind, end = state.split(" ", 1)
        closed = line.find(end)
        if closed < 0:
            return [(0, len(line), kind)], state
        place = closed + len(end)
        found.append((0, place, kind))
    rules = _LANGUAGES[language]
    words = _words(language)
    for start, text, kind in _tokens(line, place, language):
        if kind == "open":
            end = _ends(rules)[text]
            kind = STRING if text in rules.long_quotes else COMMENT
            found.append((start, len(line) - start, kind))
            return found, f"{kind} {end}"
        if kind == "word":
            if (text.casefold() if rules.any_case else text) not in words:
                continue
            kind = KEYWORD
        found.append((start, len(text), kind))
    return found, ""


def _tokens(line: str, place: int, language: str) -> Iterator[tuple[int, str, str]]:
    """Yield what stands in a line; an opening mark whose end is not in it comes last."""
    rules = _LANGUAGES[language]
    pattern = _pattern(language)
    while (match := pattern.search(line, place)) is not None:
        kind = match.lastgroup or "word"
        text = match.group()
        place = max(match.end(), place + 1)
        if kind != "open":
            yield match.start(), text, kind
            continue
        closed = line.find(_ends(rules)[text], match.end())
        if closed < 0:
            yield match.start(), text, kind
            return
        place = closed + len(_ends(rules)[text])
        yield match.start(), line[match.start() : place], STRING if text in rules.long_quotes else COMMENT


@cache
def _words(language: str) -> frozenset[str]:
    return frozenset(_LANGUAGES[language].words.split())


def _ends(rules: Rules) -> dict[str, str]:
    return {mark: mark for mark in rules.long_quotes} | dict(rules.block_comments)


@cache
def _pattern(language: str) -> re.Pattern[str]:
    rules = _LANGUAGES[language]
    parts = []
    if opening := [*rules.long_quotes, *(begin for begin, _ in rules.block_comments)]:
        parts.append(f"(?P<open>{'|'.join(map(re.escape, opening))})")
    if rules.line_comments:
        marks = "|".join(map(re.escape, rules.line_comments))
        before = r"(?:(?<=\s)|^)" if "#" in rules.line_comments and language in ("shell", "yaml") else ""
        parts.append(f"(?P<comment>{before}(?:{marks}).*)")
    if rules.extra:
        parts.append(f"(?P<keyword>{rules.extra})")
    strings = "|".join(rf"{mark}(?:[^{mark}\\]|\\.)*+(?:{mark}|\\?$)" for mark in rules.quotes)
    parts.append(f"(?P<string>{strings})")
    parts.append(r"(?P<number>\b[0-9][\w.]*)")
    parts.append(r"(?P<word>[A-Za-z_]\w*)")
    return re.compile("|".join(parts))


def _diff_spans(line: str) -> list[Span]:
    kind = {"+": ADDED, "-": REMOVED, "@": KEYWORD}.get(line[:1], "")
    return [(0, len(line), kind)] if kind else []
