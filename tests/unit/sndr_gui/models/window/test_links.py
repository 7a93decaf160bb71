"""Links into the window: what is followed, and everything that is not."""

import random

import pytest

from sndr_gui.models.window.links import Link, LinkFault, LinkRefusedError, parse

PAGES = frozenset({"home", "launch", "fit", "logs"})


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("sndr://chat", Link("chat")),
        ("sndr://chat/", Link("chat")),
        ("sndr://page/logs", Link("logs")),
        ("sndr://page/logs/", Link("logs")),
        ("sndr://page/launch?preset=qwen3.5-4b_x", Link("launch", preset="qwen3.5-4b_x")),
        ("sndr://page/launch?preset=qwen%2D4b", Link("launch", preset="qwen-4b")),
        ("sndr://page/fit?preset=a", Link("fit", preset="a")),
        ("sndr://preset/a-b.c", Link("presets", preset="a-b.c")),
        ("sndr://host/gpu-1", Link("hosts", host="gpu-1")),
    ],
)
def test_what_is_followed(text: str, link: Link) -> None:
    assert parse(text, PAGES) == link
    assert parse(link.text, PAGES) == link
    assert link.command == f"sndr open '{link.text}'" or link.command == f"sndr open {link.text}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("https://example.org", LinkFault.OTHER_SCHEME),
        ("javascript:alert(1)", LinkFault.OTHER_SCHEME),
        ("file:///etc/passwd", LinkFault.OTHER_SCHEME),
        ("SNDR://chat", LinkFault.OTHER_SCHEME),
        (" sndr://chat", LinkFault.OTHER_SCHEME),
        ("sndr:chat", LinkFault.OTHER_SCHEME),
        ("", LinkFault.OTHER_SCHEME),
        ("--engine-host", LinkFault.OTHER_SCHEME),
        ("sndr://chat" + "a" * 100_000, LinkFault.TOO_LONG),
        ("sndr://page/launch?preset=" + "%41" * 40_000, LinkFault.TOO_LONG),
        ("sndr://chat\n", LinkFault.CHARACTERS),
        ("sndr://page/lo\x00gs", LinkFault.CHARACTERS),
        ("sndr://page/\x1b[31mlogs", LinkFault.CHARACTERS),
        ("sndr://page/l\u202eogs", LinkFault.CHARACTERS),
        ("sndr://page/l ogs", LinkFault.CHARACTERS),
        ("sndr://preset/100%", LinkFault.CHARACTERS),
        ("sndr://preset/%zz", LinkFault.CHARACTERS),
        ("sndr://preset/\ud800", LinkFault.CHARACTERS),
        ("sndr://", LinkFault.FORM),
        ("sndr:///etc/passwd", LinkFault.FORM),
        ("sndr://preset/a/b", LinkFault.FORM),
        ("sndr://page/launch#now", LinkFault.FORM),
        ("sndr://page/launch?preset=a?preset=b", LinkFault.FORM),
        ("sndr://user@chat", LinkFault.FORM),
        ("sndr://chat:80", LinkFault.FORM),
        ("sndr://chat/engine-1", LinkFault.FORM),
        ("sndr://start/qwen", LinkFault.UNKNOWN_KIND),
        ("sndr://run/rm", LinkFault.UNKNOWN_KIND),
        ("sndr://page", LinkFault.UNKNOWN_PAGE),
        ("sndr://page/admin", LinkFault.UNKNOWN_PAGE),
        ("sndr://page/%6cogs", LinkFault.UNKNOWN_PAGE),
        ("sndr://page/..", LinkFault.UNKNOWN_PAGE),
        ("sndr://page/logs?preset=a", LinkFault.UNKNOWN_QUERY),
        ("sndr://page/launch?start=1", LinkFault.UNKNOWN_QUERY),
        ("sndr://page/launch?preset", LinkFault.UNKNOWN_QUERY),
        ("sndr://page/launch?preset=a&start=1", LinkFault.UNKNOWN_QUERY),
        ("sndr://page/launch?preset=a&preset=b", LinkFault.UNKNOWN_QUERY),
        ("sndr://chat?text=hello", LinkFault.UNKNOWN_QUERY),
        ("sndr://host/gpu?connect=1", LinkFault.UNKNOWN_QUERY),
        ("sndr://preset", LinkFault.NAME),
        ("sndr://preset/..", LinkFault.NAME),
        ("sndr://preset/%2e%2e%2f%2e%2e%2fetc", LinkFault.NAME),
        ("sndr://preset/..%5c..", LinkFault.NAME),
        ("sndr://preset/%ff", LinkFault.NAME),
        ("sndr://preset/a%00b", LinkFault.NAME),
        ("sndr://preset/a%0ab", LinkFault.NAME),
        ("sndr://preset/a%E2%80%AEb", LinkFault.NAME),
        ("sndr://page/launch?preset=", LinkFault.NAME),
        ("sndr://page/launch?preset=%3Cb%3E", LinkFault.NAME),
        ("sndr://host/-oProxyCommand=x", LinkFault.NAME),
        ("sndr://host/gpu%20-oX", LinkFault.NAME),
        ("sndr://host/GPU", LinkFault.NAME),
    ],
)
def test_what_is_refused_and_why(text: str, fault: LinkFault) -> None:
    with pytest.raises(LinkRefusedError) as refused:
        parse(text, PAGES)
    assert refused.value.fault is fault
    said = str(refused.value)
    assert len(said.encode()) < 400
    assert not set(said) & {"\n", "\x00", "\x1b", "\u202e"}


def test_of_any_text_comes_a_known_page_or_a_refusal() -> None:
    numbers = random.Random(4)
    pieces = [
        "sndr://",
        "page/",
        "preset/",
        "host/",
        "launch",
        "?preset=",
        "%2f",
        "%",
        "..",
        "a",
        "\x00",
        "é",
        "&",
        "#",
        "/",
    ]
    followed = 0
    for _ in range(3_000):
        text = "".join(numbers.choices(pieces, k=numbers.randint(1, 6)))
        try:
            link = parse(text, PAGES)
        except LinkRefusedError:
            continue
        followed += 1
        assert link.page in PAGES | {"chat", "presets", "hosts"}
        assert parse(link.text, PAGES) == link
    assert followed
