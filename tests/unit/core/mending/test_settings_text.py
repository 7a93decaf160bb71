"""A settings file that is wrong: the line at fault, and a text without what is wrong."""

import pytest

from engine_host.core.mending.settings_text import MARK, fault_line, line_at, line_of, readable, without

TEXT = '# mine\n[endpoint]\nport = 70000\n\n[models]\nfolders = [\n  "/a",\n]\n'


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("endpoint.port", 3),
        ("models.folders.0", 6),
        ("models", 5),
        ("endpoint.host", 2),
        ("engine", None),
        ("engine.port", None),
    ],
)
def test_a_setting_is_found_by_its_line(key: str, line: int | None) -> None:
    assert line_of(TEXT, key) == line


def test_dotted_keys_and_plain_ones_have_lines_too() -> None:
    assert line_of("endpoint.port = 3\n", "endpoint.port") == 1
    assert line_of("endpoint = 3\n", "endpoint") == 1
    assert line_of('\n["endpoint"]\n"port" = 3\n', "endpoint.port") == 3
    assert line_at(TEXT, 3) == "port = 70000"
    assert (line_at(TEXT, None), line_at(TEXT, 99)) == ("", "")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[endpoint\nport = 1\n", 1),
        ("[a]\nport = = 3\n", 2),
        ('x = "open\n', 1),
        ("[a]\nb = 1\nbroken = [\n", 3),
        ("[a]\nbroken = [\n[b]\nc = 1\n", 2),
        ("", None),
        ("a = 1\n", None),
    ],
)
def test_a_fault_has_a_line(text: str, line: int | None) -> None:
    assert fault_line(text) == line


def test_a_repair_takes_out_what_cannot_be_read_and_leaves_the_rest() -> None:
    found = readable("[endpoint]\nport = = 3\nqueue_limit = 5\nwhat is this\n")
    assert found is not None
    assert found == f"[endpoint]\n{MARK}port = = 3\nqueue_limit = 5\n{MARK}what is this\n"
    assert readable("a = 1\n") == "a = 1\n"
    assert readable(found) == found, "a second repair changes nothing"
    assert readable("[a]\nb = [\n1,\n") is not None
    assert readable("= =\n" * 60) is None, "nothing of it is a settings file"


def test_settings_are_taken_out_with_the_comments_kept() -> None:
    text = without(
        "# mine\n[endpoint]\n# why\nport = 1\nhost = 'x'\n[what]\na = 1\n", ["endpoint.port", "what", "no"]
    )
    assert text == "# mine\n[endpoint]\n# why\nhost = 'x'\n"
    assert without("endpoint = 3\n", ["endpoint"]) == ""
