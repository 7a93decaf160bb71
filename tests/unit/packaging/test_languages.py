"""The files of translations: complete, made from their sources, and true to what the program says."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PySide6.QtCore import QLocale

from engine_host.protocol.language import LANGUAGES
from engine_host.protocol.language.filled import filled
from engine_host.protocol.language.numbers import measured, written

LOCALES = Path(__file__).resolve().parents[3] / "resources" / "locales"
Script = Callable[[str], ModuleType]
OTHERS = sorted(set(LANGUAGES) - {"en"})
_found: list[Any] = []


@pytest.fixture
def wanted(script: Script) -> list[Any]:
    """Every message; to parse all sources for them takes two seconds."""
    if not _found:
        _found.extend(script("messages").messages())
    return _found


def test_every_language_has_every_message(script: Script, wanted: list[Any]) -> None:
    po, style = script("po"), script("style")
    assert len(wanted) > 2500
    assert sorted(po.PLURALS) == OTHERS == sorted(path.name for path in LOCALES.iterdir() if path.is_dir())
    wrong = {}
    for language in OTHERS:
        source = LOCALES / language / "LC_MESSAGES" / "sndr.po"
        there = po.parse(source.read_text(encoding="utf-8"))
        wrong[language] = po.faults(language, there, wanted) + style.strays(language, there)
        if source.with_suffix(".mo").read_bytes() != po.compiled(language, there):
            wrong[language].append("sndr.mo is not made from sndr.po: make languages")
    assert not any(wrong.values()), wrong
    assert (LOCALES / "sndr.pot").read_text(encoding="utf-8") == po.written("", wanted), "make languages"


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("Läuft auf {name}", "'{n} runs on {name}': other values: 'Läuft auf {name}'"),
        ("{n} läuft auf {nmae}", "other values"),
        ("{n} läuft\nauf {name}", "other lines"),
        (" {n} läuft auf {name}", "blanks at an end"),
        ("", "has no translation in each of its 1 forms"),
        ("{n} läuft auf {name}", ""),
    ],
)
def test_what_is_wrong_with_a_translation_is_told(script: Script, said: str, fault: str) -> None:
    po = script("po")
    entry = po.Entry("{n} runs on {name}", said=[said])
    found = po.faults("de", [entry], [entry])
    assert [fault in one for one in found] == ([True] if fault else [])


@pytest.mark.parametrize(
    ("language", "english", "said", "fault"),
    [
        ("de", "Look at your job.", "Deinen Auftrag ansehen.", "'Deinen' in place of Sie, Ihr"),
        ("de", "the “{name}”", "das “{name}”", "other quotes than „“"),
        ("ru", "{free} GiB are free.", "Свободно {free} GiB.", "'GiB' in place of единицы"),
        ("ru", "Download it.", "Загрузите его.", "'Загруз' in place of скачать"),
        ("ru", "Load it.", "Загрузите её.", ""),
        ("zh", "VRAM is full.", "内存已满。", "in place of 显存"),
        ("zh", "It ended, and fails.", "已结束,失败。", "in place of 全角标点"),
        ("zh", "All files (*);;Models", "所有文件 (*);;模型", ""),
        ("ja", "the server", "サーバ", "in place of 末尾の長音"),
        ("ja", "It ended.", "終了しました", "no final point"),
        ("de", "{n} % of it", "{n} % davon", "geschütztes Leerzeichen vor %"),
        ("ru", "{n:.0%} of it", "{n:.0%} от этого", ""),
        ("zh", "{n} % of it", "其中 {n} %", "前无空格"),
    ],
)
def test_stray_words_and_signs_are_told(
    script: Script, language: str, english: str, said: str, fault: str
) -> None:
    found = script("style").strays(language, [script("po").Entry(english, said=[said])])
    assert [fault.replace("'", "") in one.replace("'", "") for one in found] == ([True] if fault else [])


def test_what_is_gone_missing_or_fuzzy_is_told(script: Script) -> None:
    po = script("po")
    old, new = po.Entry("old", said=["alt"]), po.Entry("new")
    unsure = po.Entry("{n} line", "{n} lines", said=["{n} строка", "{n} строки"], fuzzy=True)
    assert po.faults("ru", [old, unsure], [new, unsure]) == [
        "'new' is missing",
        "'old' is not said any more",
        "'{n} line' is fuzzy",
        "'{n} line' has no translation in each of its 3 forms",
    ]
    assert b"old" not in po.compiled("ru", [unsure])


def test_a_file_is_read_as_it_was_written(script: Script) -> None:
    po = script("po")
    entries = [
        po.Entry('one\ttab "quoted" \\ end', said=["tab"], files=["a.py", "b.py"]),
        po.Entry("first line\nsecond line " + "word " * 40 + "end", said=["long " * 40 + "end\nsecond"]),
        po.Entry("{n} line", "{n} lines", said=["{n} Zeile", "{n} Zeilen"], fuzzy=True),
        po.Entry("empty", said=[""]),
    ]
    assert po.parse(po.written("de", entries)) == entries


def test_every_sentence_of_the_host_is_a_message(script: Script) -> None:
    messages = script("messages")
    spoken = messages.spoken()
    assert {
        "HostError",
        "Problem",
        "Fix",
        "Finding",
        "Job",
        "JobStep",
        "NoticeEvent",
        "Alert",
    } <= spoken.keys()
    made = []
    for path in sorted((messages.ROOT / "engine_host").rglob("*.py")):
        name = path.relative_to(messages.ROOT).as_posix()
        if name.startswith((*messages.LEFT_OUT, "engine_host/cli")):
            continue
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                made += [
                    f"{name}:{one.lineno}"
                    for one in messages.sentences_of(call, spoken)
                    if isinstance(one, ast.JoinedStr)
                ]
            made += [f"{name}:{line}" for line in untranslated(call)]
    assert made == [], "tr(…) with values, in place of an f-string"


def untranslated(node: ast.AST) -> list[int]:
    """Return the lines where a job is given what it left or undid as words that are no message."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
        return []
    if node.targets[0].attr not in ("left", "undone"):
        return []
    ways = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
    return [
        one.lineno
        for one in ways
        if isinstance(one, ast.JoinedStr)
        or (isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value)
    ]


def test_what_a_job_leaves_is_a_message_too() -> None:
    plain = ast.parse('control.left = f"{a} stays."\ncontrol.undone = "Nothing." if a else ""\n')
    said = ast.parse('control.left = tr("{a} stays.", a=a)\ncontrol.undone = ""\n')
    assert [untranslated(node) for node in plain.body] == [[1], [2]]
    assert [untranslated(node) for node in said.body] == [[], []]


def per_cents(tree: ast.AST) -> list[int]:
    """Return the lines where Python itself writes per cent: its sign stands as in no language of ours."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for one, after in zip(node.values, [*node.values[1:], None], strict=True):
                form = one.format_spec if isinstance(one, ast.FormattedValue) else None
                parts = form.values if isinstance(form, ast.JoinedStr) else []
                ends = [part.value for part in parts[-1:] if isinstance(part, ast.Constant)]
                next_is = after.value if isinstance(after, ast.Constant) else ""
                if isinstance(one, ast.FormattedValue) and (
                    any(str(end).endswith("%") for end in ends) or re.match(r"\s?%", str(next_is))
                ):
                    found.append(one.lineno)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "format":
            last = node.args[-1] if node.args else None
            if isinstance(last, ast.Constant) and str(last.value).endswith("%"):
                found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ('f"{a:.0%} of it"', [1]),
        ('f"{a:.1f} % of it"', [1]),
        ('f"{a}%"', [1]),
        ('format(a, ".2%")', [1]),
        ('formed(a, ".0%")', []),
        ('tr("{a:.0%} of it", a=a)', []),
        ('f"{percent(a)} of it"', []),
    ],
)
def test_a_per_cent_past_the_language_is_told(code: str, lines: list[int]) -> None:
    assert per_cents(ast.parse(code)) == lines


def test_per_cent_is_written_as_the_language_does(script: Script, wanted: list[Any]) -> None:
    root: Path = script("messages").ROOT
    found = []
    for path in sorted([*root.glob("engine_host/**/*.py"), *root.glob("sndr_gui/**/*.py")]):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        # Code for other processes, which have none of our modules.
        if name.startswith(("engine_host/overlay/", "engine_host/bench/kernels/")):
            continue
        if re.search(r"%[\"'}]|\} ?%", text):
            found += [f"{name}:{line}" for line in per_cents(ast.parse(text))]
    assert found == [], "formed(share, '.0%'), percent(…) or formats.percent(…), in place of an f-string"
    without = [entry.one for entry in wanted if re.search(r"[\d}]%(?!})", entry.one)]
    assert not without, "with a blank in English"


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_numbers_have_the_signs_of_the_language(language: str) -> None:
    locale = QLocale({"zh": "zh_CN"}.get(language, language))
    assert written("1,234,567", language) == locale.toString(1234567)
    assert written("0.5", language) == locale.toString(0.5, "f", 1)
    assert written("8,192", "en") == "8,192"


def test_numbers_in_sentences_of_the_host_have_them_too() -> None:
    assert filled("{bytes:gib} GiB of {tokens:,}", {"bytes": 2**29, "tokens": 8192}, "de") == (
        "0,5 GiB of 8.192"
    )
    assert filled("version {version} at {at:.1f}", {"version": "1.2.3", "at": 2.25}, "en") == (
        "version 1.2.3 at 2.2"
    )
    said = [filled("{share:.1%} full", {"share": 0.995}, language) for language in ("en", "de", "ru", "zh")]
    assert said == ["99.5 % full", "99,5\u00a0% full", "99,5\u00a0% full", "99.5% full"]


@pytest.mark.parametrize(
    ("text", "de", "ru", "ja"),
    [
        ("1,021.4 GiB", "1.021,4 GiB", "1\u00a0021,4 ГиБ", "1,021.4 GiB"),
        ("3 min 05 s", "3 min 05 s", "3 мин 05 с", "3 分 05 秒"),
        ("8,192", "8.192", "8\u00a0192", "8,192"),
        ("0.32.0", "0.32.0", "0.32.0", "0.32.0"),
        ("99.5 %", "99,5\u00a0%", "99,5\u00a0%", "99.5%"),
        ("0.5", "0.5", "0.5", "0.5"),
        ("at 2.5 s", "at 2.5 s", "at 2.5 s", "at 2.5 s"),
    ],
)
def test_measures_that_travel_have_the_signs_and_units_of_the_reader(
    text: str, de: str, ru: str, ja: str
) -> None:
    assert [measured(text, language) for language in ("en", "de", "ru", "ja")] == [text, de, ru, ja]
