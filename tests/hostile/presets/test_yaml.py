"""Presets of strangers: YAML of every kind, files in a person's folder, exported files, edits."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from engine_host.catalog.drafts import edited, lint
from engine_host.catalog.exchange import check_import, export
from engine_host.catalog.resolve import TargetHardware, resolve
from engine_host.catalog.yaml.file import MAX_BYTES, dump, parse
from engine_host.core.outside import json_text
from engine_host.fit.shapes.read import model_of_config
from engine_host.protocol.presets import PresetChange, PresetLint
from tests.hostile.effort import check_problem, clear, fuzz, linear
from tests.hostile.making.text import HOSTILE, long_words, words
from tests.hostile.making.values import NUMBERS, values
from tests.unit.catalog.small import MODEL, PRESET, PROFILE, VARIATION, Small

pytestmark = pytest.mark.fuzz
EXCHANGE = "sndr_preset: 1\n" + "".join(
    f"{part}:\n" + "".join(f"  {line}\n" for line in text.strip().splitlines())
    for part, text in (
        ("preset", PRESET.replace("small-one", "theirs")),
        ("model", MODEL),
        ("profile", PROFILE),
    )
)
SPECIAL = (
    *(
        "&a [*a]",
        "*a",
        "!!python/object/apply:os.system [id]",
        "!!binary aGk=",
        "<<: *a",
        "? [a, b]\n: c",
        "? a",
    ),
    *(
        "---\n---",
        "...",
        "%YAML 9.9\n---",
        "%TAG ! tag:x,2000:\n---",
        "|\n  a",
        ">+2\n   a",
        "'",
        '"',
        "\t- a",
        "- - - a",
    ),
    *(
        "{a: {a: {a: {}}}}",
        "[[[[]]]]",
        "[" * 100,
        "{a: " * 100,
        "- " * 200,
        "a: b: c",
        "a: [1, 2",
        "0x10",
        "1_0",
        "1e999",
    ),
    *(
        ".inf",
        ".nan",
        "2001-01-01",
        "012",
        "~",
        "null",
        "yes",
        "12:30:45",
        "-",
        "!",
        "&",
        "*",
        "@",
        "`",
        "%",
        "#",
        ": ",
    ),
    *(
        "\u2028",
        "\ufeff",
        "\x85",
        "\r",
        "a: 1\r\nb: 2",
        '"\\x00"',
        '"\\ud800"',
        '"\\U0010ffff"',
        "\U0001f600: 1",
        "\x07",
    ),
)
_scalars = st.one_of(
    st.sampled_from(SPECIAL),
    st.sampled_from(NUMBERS).map(str),
    words,
    long_words.map(lambda word: word[:3000]),
    words.map(lambda word: repr(word)),
)


def mutated(sound: str) -> st.SearchStrategy[str]:
    """Return a text with some of its values, keys and lines replaced."""
    lines = sound.strip().splitlines()

    def change(changes: list[tuple[int, int, str]]) -> str:
        made = [*lines]
        for place, kind, value in changes:
            at = place % len(made)
            key, colon, _ = made[at].partition(":")
            if kind == 0:
                made[at] = f"{key}{colon} {value}"
            elif kind == 1:
                made[at] = f"{made[at]}\n{value}"
            elif kind == 2:
                made[at] = value
            elif kind == 3:
                made[at] = "  " + made[at]
            elif kind == 4:
                made.insert(at, made[at])
            else:
                made[at] = f"{key[: len(key) - len(key.lstrip())]}{value}:{made[at].partition(':')[2]}"
        return "\n".join(made) + "\n"

    one = st.tuples(st.integers(0, 80), st.integers(0, 5), _scalars)
    return st.lists(one, min_size=1, max_size=4).map(change)


texts = st.one_of(
    st.sampled_from([PRESET, MODEL, PROFILE, VARIATION]).flatmap(mutated),
    st.lists(_scalars, max_size=6).map("\n".join),
    st.text(max_size=60),
)


def test_yaml() -> None:
    def check(text: str) -> None:
        document = clear(lambda: parse(text, "the text"))
        if document is None:
            return
        assert all(isinstance(key, str) for key in document.data)
        assert parse(dump(document.data), "again").data == document.data

    fuzz("YAML", texts, check)


def test_values_are_written_as_they_are_read() -> None:
    def check(value: dict[str, Any]) -> None:
        try:
            data = json_text.parse_object(json_text_of(value))
        except ValueError:
            return
        read = clear(lambda: parse(dump(data), "it"))
        assert read is None or read.data == data

    fuzz("values as YAML", st.dictionaries(words, values, max_size=4), check, usual=0.5)


def json_text_of(value: Any) -> bytes:
    """Return a value as JSON, for what YAML can hold too."""
    import json

    return json.dumps(value).encode()


def test_files_of_a_person() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = Small(Path(folder))

        def check(made: tuple[str, str]) -> None:
            place, text = made
            path = small.own / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
            try:
                catalog = small.read()
                for fault in catalog.faults:
                    assert len(fault.model_dump_json()) < 64 << 10
                assert "small-one" in catalog.presets, "one bad file hides no good one"
                for name in catalog.ids():
                    for machine in (None, TargetHardware("card", 2)):
                        found = clear(lambda name=name, machine=machine: resolve(catalog, name, machine))  # type: ignore[misc]
                        assert found is None or found.model_dump_json()
                for one in catalog.models.values():
                    clear(lambda one=one: model_of_config(one.entry.shape, "it"))  # type: ignore[misc]
            finally:
                path.unlink()

        kinds = {
            "mine.yaml": VARIATION,
            "models/tiny.yaml": MODEL,
            "profiles/quick.yaml": PROFILE,
            "two.yaml": PRESET,
        }
        one = st.sampled_from(sorted(kinds)).flatmap(
            lambda name: st.tuples(st.just(name), mutated(kinds[name]))
        )
        fuzz("files of a person's presets", one, check, usual=1.5)


def test_exported_files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = Small(Path(folder))
        catalog = small.read()
        ids = st.one_of(st.none(), st.sampled_from([*HOSTILE, "theirs", "small-one"]))

        def check(made: tuple[str, str | None, bool]) -> None:
            text, new_id, replacing = made
            found = clear(lambda: check_import(catalog, text, small.place, new_id, replacing=replacing))
            if found is None:
                return
            for path, content in found.writes:
                assert path.resolve().is_relative_to(small.own.resolve()), path
                assert path.suffix == ".yaml"
                assert "/" not in path.stem
                assert len(content) < 4 * MAX_BYTES
            for demand in found.demands:
                assert demand.model_dump_json()

        fuzz("exported presets", st.tuples(mutated(EXCHANGE), ids, st.booleans()), check, usual=1.5)


def test_drafts_and_edits() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = Small(Path(folder))
        catalog = small.read()
        paths = st.lists(
            st.one_of(st.sampled_from(["settings", "context", "card", "id"]), words), min_size=1, max_size=4
        )
        changes = st.builds(
            lambda path, value, remove: PresetChange.model_construct(
                path=tuple(path), value=value, remove=remove
            ),
            paths,
            st.one_of(words, st.integers(-5, 10**20), st.lists(words, max_size=3), st.none(), st.booleans()),
            st.booleans(),
        )

        def check(made: tuple[str, list[PresetChange]]) -> None:
            text, asked = made
            found = clear(lambda: lint(catalog, text, small.own / "mine.yaml", "mine.yaml", PRESET))
            assert found is not None
            assert PresetLint.model_validate_json(found.model_dump_json())
            clear(lambda: edited(text, asked))

        texts = st.one_of(mutated(PRESET), mutated(VARIATION))
        fuzz("drafts and edits of presets", st.tuples(texts, st.lists(changes, max_size=2)), check, usual=1.5)


LARGE: dict[str, Callable[[int], str]] = {
    "keys": lambda size: "format: 1\n" + "".join(f"k{n}: 1\n" for n in range(size)),
    "unknown settings": lambda size: (
        PRESET + "".join(f"  s{n}: 1\n" for n in range(0)) + "x:\n" + "  a: 1\n" * min(size, 1)
    ),
    "a list": lambda size: PRESET.replace("[--from-preset]", "[" + "a, " * size + "b]"),
    "caveats": lambda size: PRESET.replace("[Nothing was measured.]", "[" + "Nothing., " * size + "b]"),
    "flow maps": lambda size: "format: 1\nx: [" + "{a: 1}, " * size + "1]\n",
    "comments": lambda size: PRESET + "# x\n" * size,
    "one long text": lambda size: PRESET.replace("A test.", "x" * 10 * size),
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_preset_takes_time_by_its_length(tmp_path: Path, kind: str) -> None:
    small = Small(tmp_path)
    catalog = small.read()
    make = LARGE[kind]
    linear(
        lambda size: lambda: lint(catalog, make(size), small.own / "x.yaml", "x.yaml"),
        150,
        times=6,
        slack=4.0,
    )


def test_an_export_comes_back(tmp_path: Path) -> None:
    small = Small(tmp_path)
    text = export(small.read(), "small-one")
    found = check_import(small.read(), text, small.place)
    assert found.writes == ()
    check_problem  # noqa: B018 - used where a fault is one
