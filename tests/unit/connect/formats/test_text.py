"""Files of settings changed in place: what is wanted is in them, and nothing else is different."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine_host.connect.formats.text import Format, changed, value_of
from engine_host.connect.formats.tree import FormatError

WANTED: dict[str, Any] = {"provider": {"ours": {"url": "http://a/v1", "limit": 5}}, "model": "ours/m"}
ENTRIES: dict[str, Any] = {"name": "S", "models": [{"name": "ours", "url": "http://a/v1", "roles": ["chat"]}]}


def after(text: str, kind: Format, wanted: Any = WANTED, unless_set: frozenset[str] = frozenset()) -> str:
    """The text after a change, which a second one leaves as it is."""
    once = changed(text.encode(), kind, wanted, unless_set)
    assert changed(once, kind, wanted, unless_set) == once
    return once.decode()


def kept(before: str, now: str) -> None:
    """Fail unless every line of the old text is still there, in its order; a comma may have come to one."""
    lines = iter(now.splitlines())
    for line in before.splitlines():
        assert any(line.replace(",", "") == other.replace(",", "") for other in lines), f"{line!r} is gone"


JSON = [
    "", "// nothing yet\n", "{}", "{ /* empty */ }", "{\n  // here\n}\n", '{"a": 1}',
    '{\n\t"a": 1, // about a\n\t"provider": {\n\t\t"other": {}, // theirs\n\t} // after\n}\n',
    '{\n  "a": [1, 2,], /* two */\n}\n// the end', '{"provider": {"ours": {"url": "http://b"}}}',
    '{"provider": null}',
]  # fmt: skip


@pytest.mark.parametrize("text", JSON)
def test_json(text: str) -> None:
    now = after(text, Format.JSON)
    value = value_of(now.encode(), Format.JSON)
    assert value["provider"]["ours"] == WANTED["provider"]["ours"]
    if '"provider": null' not in text and "http://b" not in text and len(text.splitlines()) > 1:
        kept(text, now)


def test_json_is_written_as_its_neighbours_are() -> None:
    text = '{\n\t"a": 1, // about a\n\t"provider": {\n\t\t"other": {}\n\t}\n}\n'
    assert after(text, Format.JSON) == (
        '{\n\t"a": 1, // about a\n\t"provider": {\n\t\t"other": {},\n\t\t"ours": {\n\t\t\t"url": "http://a/v1",\n'
        '\t\t\t"limit": 5\n\t\t}\n\t},\n\t"model": "ours/m"\n}\n'
    )


TOML = [
    "", "# mine\n", "model = 'x' # mine\n\n[a]\nb = 1\n", "[provider.other]\nurl = 'x' # c\n\n[z]\na = 1\n",
]  # fmt: skip


@pytest.mark.parametrize("text", TOML)
def test_toml(text: str) -> None:
    now = after(text, Format.TOML)
    assert value_of(now.encode(), Format.TOML)["provider"]["ours"] == WANTED["provider"]["ours"]
    kept(text.replace("'x' # mine", '"ours/m" # mine'), now)


YAML = [
    "", "# mine\n", "name: Mine\nmodels:\n  - name: o\n    x: 1 # c\n# end\n",
    "models:\n- name: o\n  x: 1\nz: 2\n",
    "models:\nq: 1\n", "z: |\n  text\n", "models:\n  - name: ours\n    # about it\n    roles: [edit]",
]  # fmt: skip


@pytest.mark.parametrize("text", YAML)
def test_yaml(text: str) -> None:
    now = after(text, Format.YAML, ENTRIES, frozenset({"name"}))
    value = value_of(now.encode(), Format.YAML)
    assert value["models"][-1]["url"] == "http://a/v1"
    assert value["name"] == ("Mine" if "Mine" in text else "S")
    assert value["models"][-1]["roles"] == (["edit"] if "edit" in text else ["chat"]), "theirs stays"
    kept(text, now)


def test_what_is_set_by_the_person_stays() -> None:
    text = '{"model": "mine"}'
    assert (
        value_of(after(text, Format.JSON, WANTED, frozenset({"model"})).encode(), Format.JSON)["model"]
        == "mine"
    )


@pytest.mark.parametrize(("kind", "text"), [
    (Format.JSON, '{\r\n  "a": 1, // x\r\n}\r\n'), (Format.TOML, "a = 1\r\n[b]\r\nc = 1\r\n"),
    (Format.YAML, "a: 1\r\nb:\r\n  - 1\r\n"),
])  # fmt: skip
def test_ends_of_lines_and_the_mark_in_front_stay(kind: Format, text: str) -> None:
    now = changed(b"\xef\xbb\xbf" + text.encode(), kind, {"new": "x"})
    assert now.startswith(b"\xef\xbb\xbf")
    assert now.count(b"\n") == now.count(b"\r\n") > text.count("\n")


@pytest.mark.parametrize(("kind", "text"), [
    (Format.JSON, '{"a": 1'), (Format.JSON, "{'a': 1}"), (Format.JSON, '{"a": 1} x'), (Format.JSON, "{/* "),
    (Format.JSON, '{"model": "a", "model": "b"}'), (Format.JSON, '{"provider": []}'), (Format.JSON, "[]"),
    (Format.JSON, "[" * 100_000), (Format.JSON, '{"a": "\\u12"}'), (Format.JSON, '{"a": "\n"}'),
    (Format.JSON, "{}\0"), (Format.JSON, '{"model": {"a": 1}}'),
    (Format.TOML, "a = "), (Format.TOML, "a = 1\na = 2\n"), (Format.TOML, "provider = 1\n"),
    (Format.TOML, "provider = {other = {a = 1}}\n"), (Format.TOML, "a = " + "[" * 100_000),
    (Format.YAML, "a: 1\na: 2\n"), (Format.YAML, "- a\n"), (Format.YAML, "{a: 1}"), (Format.YAML, "a: *b\n"),
    (Format.YAML, "a: 1\n---\nb: 1\n"), (Format.YAML, "a: &x [*x]\n"), (Format.YAML, "[" * 3000),
    (Format.YAML, "a: !!python/object/apply:os.system [id]\n"), (Format.YAML, "\ta: 1\n"),
    (Format.YAML, '? "model"'), (Format.YAML, "?  -  ? "),
    (Format.YAML, "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9))),
])  # fmt: skip
def test_what_cannot_be_read_or_changed_safely_is_refused(kind: Format, text: str) -> None:
    with pytest.raises(FormatError):
        changed(text.encode(), kind, WANTED)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(FormatError, match="UTF-8"):
        changed(b'{"a": "\xff"}', Format.JSON, WANTED)


PARTS = (
    "{", "}", "[", "]", ":", ",", '"model"', '"provider"', '"ours"', "// x\n", "/* y */", "\n", "  ", "- ",
    "name: ours\n", "models:", "provider:", "model:", "&a ", "*a", "!!str ", "|", ">", "#c", "1", "'y'",
    "=", "[provider]", "[[models]]", 'model = "x"\n', "\r\n", "? ", "---\n", "<<: ", "1e999", '"""', "\ud800",
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@example(["&a ", "{", "&a "], "")
@given(st.lists(st.sampled_from(PARTS), max_size=20), st.sampled_from(["", " "]))
def test_any_text_is_changed_for_good_or_refused(parts: list[str], between: str) -> None:
    content = between.join(parts).encode("utf-8", "surrogatepass")
    for kind in Format:
        try:
            now = changed(content, kind, WANTED, {"model"})
        except FormatError:
            continue
        assert changed(now, kind, WANTED, {"model"}) == now
