"""TOML that was sound before somebody changed it."""

from hypothesis import strategies as st

from tests.hostile.making.text import long_words, words

VALUES = st.one_of(
    st.sampled_from(
        [
            '"x"',
            "1",
            "inf",
            "nan",
            "-inf",
            "-1",
            "1979-05-27T07:32:00Z",
            "[]",
            "{}",
            "true",
            "9" * 5000,
            "0x" + "f" * 400,
        ]
    ),
    st.sampled_from(
        ["[" * 3000, "{a=" * 200, '"""', "'" * 3, '"\\ud800"', '"\\u0000"', '"../../x:y"', '"a" * 3']
    ),
    st.sampled_from(["[]", "{}", "[[1]]", "{a.b=1}", "1e999"]),
    words.map(repr),
    long_words.map(repr),
)


def changed(sound: str) -> st.SearchStrategy[str]:
    """Make texts of a sound one: other values, lines between its lines, and its beginnings."""
    lines = sound.splitlines()

    def with_changes(changes: list[tuple[int, str, bool]]) -> str:
        found = [*lines]
        for place, value, key in changes:
            line = found[place % len(found)]
            found[place % len(found)] = f"{line.partition(' = ')[0]} = {value}" if key else f"{line}\n{value}"
        return "\n".join(found)

    change = st.tuples(st.integers(0, len(lines)), VALUES, st.booleans())
    return st.one_of(
        st.lists(change, min_size=1, max_size=4).map(with_changes),
        st.integers(0, len(sound)).map(lambda end: sound[:end]),
    )
