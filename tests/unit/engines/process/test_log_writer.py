"""The lines of an engine that serves: what is written down of them, in what form, and in what time."""

import time
from pathlib import Path

import pytest

from engine_host.engines.llamacpp.served_lines import LLAMA_CPP_LINES
from engine_host.engines.process.log_writer import LONGEST_LINE, LONGEST_MATCHED, MARK, Lines, Rules
from engine_host.engines.served_lines import NO_LINES, ServedLines
from engine_host.engines.vllm.served_lines import VLLM_LINES

RULES = ServedLines(
    prefix=r"(?:T \w+: )?", templates=("took # ms", "ids [#]", "of # in #"), patterns=(r"name \w{1,8}",)
)
HERE = Path(__file__).parent
BEFORE = {
    "llama.cpp": "0.02.269.837 W srv    operator(): ",
    "vllm": "(EngineCore pid=7) ERROR 11-22 19:03:37 [core.py:3] ",
}
TABLES = {"llama.cpp": LLAMA_CPP_LINES, "vllm": VLLM_LINES}


def rules(table: ServedLines = RULES) -> Rules:
    return Rules(table.prefix, list(table.templates), list(table.patterns), table.left_out)


def withheld(*chunks: bytes, table: ServedLines = RULES) -> str:
    """What is written of these chunks while requests may come."""
    lines = Lines(rules(table), withhold=True)
    return (b"".join(map(lines.feed, chunks)) + lines.end()).decode()


@pytest.mark.parametrize(
    "line",
    [
        "took 5 ms",
        "T f: took -0.25 ms",
        "T f:  took   1,024  ms",
        "ids [1,2,3]",
        "of 0x7ffe in 1e-05",
        "",
        "   ",
    ],
)
def test_a_line_that_is_known_is_written_as_it_is(line: str) -> None:
    assert withheld(line.encode() + b"\n") == line + "\n"


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("took five ms", "[withheld: 12 bytes]"),
        ("T f: took 5 ms of secret", "T f: [withheld: 19 bytes]"),
        ("T f: secret: took 5 ms", "T f: [withheld: 17 bytes]"),
        ("took 5 ms\x1b[31m", "[withheld: 14 bytes]"),
        ("name longerthaneight", "[withheld: 20 bytes]"),
        ("sécret", "[withheld: 7 bytes]"),
        ("4111 1111 1111 1111", "[withheld: 19 bytes]"),
    ],
)
def test_of_any_other_its_length_is_told(line: str, written: str) -> None:
    assert withheld(line.encode() + b"\n") == written + "\n"


def test_lines_that_follow_one_another_are_told_together() -> None:
    text = b"T f: root ::= secret\nb ::= c\n\n# d\nT g: more\ntook 5 ms\ne\n"
    assert withheld(text).splitlines() == [
        "T f: [withheld: 2 lines, 22 bytes]",
        "",
        "[withheld: 3 bytes]",
        "T g: [withheld: 4 bytes]",
        "took 5 ms",
        "[withheld: 1 bytes]",
    ]


def test_a_line_in_pieces_is_judged_as_one() -> None:
    assert withheld(b"took ", b"5 m", b"s\nsec", b"ret\n", b"took 6") == (
        "took 5 ms\n[withheld: 6 bytes]\n[withheld: 6 bytes]\n"
    )


def test_endless_lines_are_withheld_in_pieces() -> None:
    text = withheld(b"x" * (LONGEST_LINE + 5), b"x" * 7 + b"\n")
    assert "x" not in text
    assert text.splitlines() == [f"[withheld: {LONGEST_LINE + 5} bytes]", "[withheld: 7 bytes]"]


def test_what_was_printed_before_the_mark_is_written_as_it_is() -> None:
    lines = Lines(rules(), withhold=False)
    assert lines.feed(b"any line\nand a part") == b"any line\n"
    assert lines.feed(b" of one" + MARK + b"\nany line\n") == b"and a part of one\n[withheld: 8 bytes]\n"
    assert lines.feed(MARK + b"\ntook 5 ms\n") == b"took 5 ms\n", "a second mark says nothing new"


LISTED = (
    "1.41.982.374 I srv        update:    - prompt 0x7f26ec0090c0:      16 tokens, checkpoints:  1, "
    "    1.657 MiB",
    "1.41.980.102 I srv          load:    - prompt with length     116, lcp =       3, f_keep = 0.026, "
    "f_sim = 0.188",
    "3.59.865.587 I srv   prompt_save:  - saving prompt with length 36, total state size = 0.857 MiB "
    "(draft: 0.000 MiB)",
    "3.59.865.592 I srv         alloc:  - prompt is already in the cache, skipping",
    "3.59.865.592 I slot process_sing: id 61 | task -1 | saving idle slot to prompt cache",
    "0.17.690.575 I slot get_availabl: id 60 | task 781 |  - skipping, is_processing = 1",
    "0.01.799.327 I slot get_availabl: id  0 | task -1 |  - skipping, slot is empty",
    "0.02.811.403 I slot get_availabl: id  3 | task -1 |  - checking sim = 0.750 (15/20) > 0.100",
)


def test_the_lists_of_cached_prompts_and_of_slots_are_left_out() -> None:
    chosen = "1.41.980.103 I srv          load:  - found better prompt with f_keep = 0.500, f_sim = 0.600"
    text = "\n".join([*LISTED, chosen, *LISTED, LISTED[0] + "\r", "secret", LISTED[1], "more", ""])
    written = [chosen, "[withheld: 2 lines, 10 bytes]"]
    assert withheld(text.encode(), table=LLAMA_CPP_LINES).splitlines() == written
    lines = Lines(rules(LLAMA_CPP_LINES), withhold=False)
    assert lines.feed(LISTED[0].encode() + b"\n") == LISTED[0].encode() + b"\n", "a start is written whole"


@pytest.mark.parametrize("line", LISTED)
@pytest.mark.parametrize("more", [" of secret", "\x00", "\x1b[2K", ": error"])
def test_what_looks_like_a_list_and_says_more_is_told(line: str, more: str) -> None:
    assert "[withheld: " in withheld(f"{line}{more}\n".encode(), table=LLAMA_CPP_LINES)


def test_before_it_even_a_line_without_end_reaches_the_log() -> None:
    lines = Lines(rules(), withhold=False)
    assert lines.feed(b"\xff" * LONGEST_LINE) == b"\xff" * LONGEST_LINE
    assert lines.feed(b"rest") == b""
    assert lines.end() == b"rest"


def test_of_an_engine_that_nobody_knows_nothing_is_written() -> None:
    assert withheld(b"took 5 ms\n", table=NO_LINES) == "[withheld: 9 bytes]\n"


@pytest.mark.parametrize("name", TABLES)
def test_the_rules_of_an_engine_fit_into_a_pipe_and_each_template_is_met(name: str) -> None:
    table = TABLES[name]
    assert len(table.written()) < 60_000, "the host writes them before anybody reads"
    judge = rules(table)
    for template in table.templates:
        if "##" not in template:
            line = template.replace("#", "7")
            assert judge.judge(line.encode())[1], template
            assert judge.judge(f"{BEFORE[name]}{line}".encode())[1], template


# Lines that held a request in a real log, with other words: engine, what is kept, what is withheld.
@pytest.mark.parametrize("line", (HERE / "lines_withheld.txt").read_text().splitlines())
def test_what_quotes_a_request_is_withheld(line: str) -> None:
    name, kept, quoted = line.split("\t")
    assert rules(TABLES[name]).judge((kept + quoted).encode()) == (kept.encode(), False)


@pytest.mark.parametrize("line", (HERE / "lines_written.txt").read_text().splitlines())
def test_what_explains_an_end_and_what_was_measured_are_written(line: str) -> None:
    name, text = line.split("\t")
    assert rules(TABLES[name]).judge(text.encode())[1]


ADVERSE = (
    "1", "1,", "1.", "a", " ", "/", "a/", "a.c:", "File \"/", "(", "#0 0x", "sampler chain: dist -> ",
    "| - a", "0.0.0.0 W srv a: ", "vllm.a", "Engine 0: Avg prompt throughput: ", '- "GET /',
    "/a.c:1: GGML_ASSERT(", "CUDA error: a ", "(A pid=1) ", "statistics a: #",
    "python3.11/", "\u00e9", "\x00", "1a",
)  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_line_of_256_kib_takes_no_time(name: str) -> None:
    """The longest line that is matched at all, and one of 256 KiB, made of what patterns begin with."""
    judge = rules(TABLES[name])
    slowest = 0.0
    for piece in ADVERSE:
        for text in (piece * LONGEST_MATCHED, f"0.0.0.0 W srv a: {piece * LONGEST_MATCHED}"):
            for line in (text[:LONGEST_MATCHED].encode(), (text * 200).encode()[: 1 << 18]):
                began = time.thread_time()
                judge.judge(line)
                slowest = max(slowest, time.thread_time() - began)
    assert slowest < 0.1, slowest
