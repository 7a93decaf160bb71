"""What the palette finds: letters in their order, what fits best first, whatever the names are."""

import random
import string

import pytest

from sndr_gui.kit.settings import LONGEST_RECENT, MOST_RECENT
from sndr_gui.models.window import fuzzy
from sndr_gui.models.window.palette import ACTION, MOST_SHOWN, PAGE, Entry, Finder, with_recent


def entry(title: str, words: str = "", weight: int = 0, key: str = "") -> Entry:
    return Entry(title, "", print, words, weight, key)


def titles(entries: list[Entry], typed: str) -> list[str]:
    return [found.entry.title for found in Finder(entries).find(typed)]


def bold(title: str, typed: str) -> str:
    [found] = Finder([entry(title)]).find(typed)
    return "".join(found.title[place] for place in found.places)


def test_what_begins_so_comes_first() -> None:
    entries = [entry("Restart"), entry("Start qwen", "run"), entry("New start"), entry("Logs")]
    assert titles(entries, "start") == ["Start qwen", "New start", "Restart"]
    assert titles(entries, "RUN qw") == ["Start qwen"]
    assert titles(entries, "nothing") == []
    assert titles(entries, " ") == [one.title for one in entries]


@pytest.mark.parametrize(
    ("typed", "order"),
    [
        ("nc", ["New chat", "sync"]),
        ("mon", ["Monitor", "Show my-monad", "lemonade"]),
        ("q3c", ["Qwen3-Coder", "Aqua 13 ec"]),
        ("dsr", ["DeepSeek-R1", "Adds repairs"]),
        ("fit", ["Fit", "Fitting", "Fold it", "Outfit"]),
        ("kvc", ["engine KV cache", "Ark-vice"]),
        ("start qwen", ["Start qwen", "qwen: start", "Starting aqwenx"]),
    ],
)
def test_words_begun_and_letters_together_count(typed: str, order: list[str]) -> None:
    assert titles([entry(title) for title in reversed(order)], typed) == order


def test_pages_and_actions_come_before_names_that_fit_as_well() -> None:
    entries = [
        entry("Chat-7B"),
        entry("Start chat-7B"),
        entry("New chat", weight=ACTION),
        entry("Chat", weight=PAGE),
    ]
    assert titles(entries, "chat") == ["Chat", "New chat", "Chat-7B", "Start chat-7B"]
    # But what is typed almost whole is meant, and no page that has the letters somewhere.
    assert titles([entry("Doctor nit", weight=PAGE), entry("dot-4b")], "dot4")[0] == "dot-4b"


def test_letters_come_in_order_and_none_is_forgiven() -> None:
    assert titles([entry("Monitor")], "mnotir") == []
    assert titles([entry("Monitor")], "mntr") == ["Monitor"]
    assert titles([entry("Monitor")], "monitors") == []


@pytest.mark.parametrize(
    ("title", "typed", "shown"),
    [
        ("Start Qwen3-Coder", "qc", "QC"),
        ("Start Qwen3-Coder", "start cod", "StartCod"),
        ("ababac", "ac", "ac"),
        ("Größe der Maße", "maße", "Maße"),
        ("İstanbul model", "model", "model"),
        ("模型 测试", "测试", "测试"),
        ("🚀 rocket 🚀", "rock", "rock"),
    ],
)
def test_the_letters_that_were_typed_are_told(title: str, typed: str, shown: str) -> None:
    assert bold(title, typed) == shown


def test_a_run_is_marked_rather_than_scattered_letters() -> None:
    [found] = Finder([entry("Fold into fit")]).find("fit")
    assert found.places == (10, 11, 12)


def test_typing_on_finds_what_typing_at_once_finds() -> None:
    numbers = random.Random(17)
    letters = "abcQ -3"
    entries = [
        entry("".join(numbers.choices(letters, k=12)), "".join(numbers.choices(letters, k=5)))
        for _ in range(300)
    ]
    steps = Finder(entries)
    for typed in ("a", "ab", "ab ", "ab c", "ab cq", "ab c", "b", "", "3", "3-"):
        found = [one.entry for one in steps.find(typed)]
        assert found == [one.entry for one in Finder(entries).find(typed)], typed


def test_the_recent_ones_come_first_and_only_those_that_are_still_there() -> None:
    entries = [entry("Home"), entry("Logs"), entry("Start a", key="start a"), entry("Chat")]
    recent = ["Chat", "start a", "gone"]
    assert [found.title for found in Finder(entries, recent).find("")] == ["Chat", "Start a", "Home", "Logs"]
    assert len(Finder([entry(str(number)) for number in range(500)]).find("")) == MOST_SHOWN


def test_few_are_kept_and_the_newest_once() -> None:
    kept: tuple[str, ...] = ()
    for number in range(40):
        kept = with_recent(kept, entry(f"model {number}"))
    kept = with_recent(kept, entry("model 35"))
    assert kept[:3] == ("model 35", "model 39", "model 38")
    assert len(kept) == len(set(kept)) == MOST_RECENT
    [key] = with_recent((), entry("n" * 10_000))
    assert len(key) == LONGEST_RECENT


HOSTILE = [
    "a" * 10_000,
    "\u202eedirts\u202c over",
    "line one\nline two\r\nline three\x00\x1b[31m",
    "<b>bold</b><img src='file:///etc/passwd'>",
    "&lt;script&gt;",
    "\ud800 lone",
    "e\u0301" * 300,
    "",
    " \t ",
    "\u200f\u05e9\u05dc\u05d5\u05dd model",
    "👩‍👩‍👧‍👦" * 80,
    "ß" * 500,
    "İ" * 500,
]


def test_hostile_names_are_one_line_and_are_found() -> None:
    finder = Finder([entry(title, words=title) for title in HOSTILE])
    for typed in ("", "a", "a" * 5_000, "bold", "line", "\n", "\u202e", "<", "ß", "i", "\x00", "e", "."):
        for found in finder.find(typed):
            assert len(found.title) <= fuzzy.LONGEST_NAME
            assert not set(found.title) & {"\n", "\r", "\x00", "\x1b", "\u202e"}
            assert all(0 <= place < len(found.title) for place in found.places)


def test_thousands_of_names_are_found_by_looking_at_those_that_have_the_letters() -> None:
    numbers = random.Random(5)
    entries = [entry("".join(numbers.choices(string.ascii_lowercase[:20], k=30))) for _ in range(2_000)] + [
        entry("xyzzy")
    ]
    asked: list[str] = []
    finder = Finder(entries)
    before = fuzzy.score

    def counted(name: fuzzy.Name, word: str) -> int | None:
        asked.append(word)
        return before(name, word)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuzzy, "score", counted)
        assert [found.title for found in finder.find("xyz")] == ["xyzzy"]
    assert len(asked) == 1
