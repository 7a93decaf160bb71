"""Reads and writes the files of translations, and compiles them; gettext's own forms, without its tools."""

import ast
import re
import struct
from dataclasses import dataclass, field

PLURALS = {
    "de": (2, "(n != 1)"),
    "ru": (3, "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"),
    "zh": (1, "0"),
    "ja": (1, "0"),
}
"""For each language how many forms a number has, and which a number takes, as gettext writes it."""
_LINE = re.compile(r'^(?:(msgid|msgid_plural|msgstr)(?:\[(\d+)\])?\s+)?(".*")\s*$')
_PLACE = re.compile(r"\{[^{}]*\}")
_WIDTH = 96


@dataclass
class Entry:
    """One message: English, its plural if it has one, where it is said, and the translation in each form."""

    one: str
    many: str = ""
    files: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    fuzzy: bool = False


def parse(text: str) -> list[Entry]:
    """Parse the messages of a file, without its header. Raises ValueError at a line that is none."""
    found: list[Entry] = []
    entry, part, form = Entry(""), "", 0
    begun = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            if begun:
                found.append(entry)
                entry, begun = Entry(""), False
            if line.startswith("#,") and "fuzzy" in line:
                entry.fuzzy = True
            if line.startswith("#:"):
                entry.files += line[2:].split()
            continue
        if not line.strip():
            continue
        match = _LINE.match(line)
        if match is None:
            raise ValueError(f"line {number} is no message: {line[:60]}")
        said = ast.literal_eval(match[3])
        if match[1]:
            part, form = match[1], int(match[2] or 0)
            if part == "msgid" and begun:
                found.append(entry)
                entry = Entry("")
            begun = True
        if part == "msgid":
            entry.one += said
        elif part == "msgid_plural":
            entry.many += said
        elif part == "msgstr":
            entry.said += [""] * (form + 1 - len(entry.said))
            entry.said[form] += said
        else:
            raise ValueError(f"line {number} belongs to no message: {line[:60]}")
    if begun:
        found.append(entry)
    return [entry for entry in found if entry.one]


def written(language: str, entries: list[Entry]) -> str:
    """Return the text of a file; without a language it is the template."""
    parts = [_header(language)]
    for entry in entries:
        lines = [f"#: {name}" for name in entry.files]
        lines += ["#, fuzzy"] if entry.fuzzy else []
        lines.append(_quoted("msgid", entry.one))
        said = entry.said if language else []
        if entry.many:
            forms = PLURALS[language][0] if language else 2
            said = (said + [""] * forms)[:forms]
            lines.append(_quoted("msgid_plural", entry.many))
            lines += [_quoted(f"msgstr[{form}]", text) for form, text in enumerate(said)]
        else:
            lines.append(_quoted("msgstr", said[0] if said else ""))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def compiled(language: str, entries: list[Entry]) -> bytes:
    """Return the file that the program reads: what has a translation in every form, sorted."""
    table = {"": _header_lines(language)}
    for entry in entries:
        if entry.said and all(entry.said) and not entry.fuzzy:
            table[f"{entry.one}\0{entry.many}" if entry.many else entry.one] = "\0".join(entry.said)
    pairs = sorted((key.encode(), text.encode()) for key, text in table.items())
    places, texts = [], b""
    start = 28 + 16 * len(pairs)
    for column in (0, 1):
        for pair in pairs:
            places.append(struct.pack("<II", len(pair[column]), start + len(texts)))
            texts += pair[column] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 28 + 16 * len(pairs))
    return head + b"".join(places) + texts


def faults(language: str, entries: list[Entry], wanted: list[Entry]) -> list[str]:
    """Return what is wrong with a language's file, in sentences; `wanted` are the messages of the program."""
    found = []
    there = {(entry.one, entry.many) for entry in entries}
    known = {(entry.one, entry.many) for entry in wanted}
    found += [f"{one!r} is missing" for one, _many in sorted(known - there)]
    found += [f"{one!r} is not said any more" for one, _many in sorted(there - known)]
    for entry in entries:
        if entry.fuzzy:
            found.append(f"{entry.one!r} is fuzzy")
        forms = PLURALS[language][0] if entry.many else 1
        if len(entry.said) != forms or not all(entry.said):
            found.append(f"{entry.one!r} has no translation in each of its {forms} forms")
            continue
        for said in entry.said:
            found += [f"{entry.one!r}: {fault}: {said!r}" for fault in _differences(entry, said)]
    return found


def _differences(entry: Entry, said: str) -> list[str]:
    found = []
    mine = sorted(_PLACE.findall(said))
    allowed = [sorted(_PLACE.findall(english)) for english in (entry.one, entry.many or entry.one)]
    # A form for one alone may leave the number out: "one request".
    if mine not in allowed and not (entry.many and sorted([*mine, "{n}"]) in allowed):
        found.append("other values")
    if said.count("\n") != entry.one.count("\n"):
        found.append("other lines")
    if said.strip() != said and entry.one.strip() == entry.one:
        found.append("blanks at an end")
    return found


def _header_lines(language: str) -> str:
    lines = [
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        "MIME-Version: 1.0",
    ]
    if language:
        number, rule = PLURALS[language]
        lines += [f"Language: {language}", f"Plural-Forms: nplurals={number}; plural={rule};"]
    return "".join(f"{line}\n" for line in lines)


def _header(language: str) -> str:
    lines = _header_lines(language).splitlines(keepends=True)
    return "\n".join(['msgid ""', 'msgstr ""', *(_literal(line) for line in lines)])


def _quoted(name: str, text: str) -> str:
    if len(text) + len(name) < _WIDTH and "\n" not in text[:-1]:
        return f"{name} {_literal(text)}"
    pieces: list[str] = []
    for word in re.findall(r"[^\n ]*(?:\n|[ ]+|$)", text):
        if not pieces or len(pieces[-1]) + len(word) > _WIDTH - 2 or pieces[-1].endswith("\n"):
            pieces.append("")
        pieces[-1] += word
    return "\n".join([f'{name} ""', *(_literal(piece) for piece in pieces if piece)])


def _literal(text: str) -> str:
    for sign, code in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(sign, code)
    return f'"{text}"'
