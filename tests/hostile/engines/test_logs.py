"""Log lines of hostile models, patches and requests: read in linear time, and no reader of them ends."""

import time
from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from engine_host.core.log_buffer import severity_of
from engine_host.engines.llamacpp.log import LlamaCppStageReader
from engine_host.engines.llamacpp.log import explain_exit as explain_llamacpp
from engine_host.engines.llamacpp.served_lines import LLAMA_CPP_LINES
from engine_host.engines.llamacpp.status import LlamaCppAdapter
from engine_host.engines.process.log_writer import Lines, Rules
from engine_host.engines.served_lines import ServedLines
from engine_host.engines.stage_reader import MOST_BUFFERS
from engine_host.engines.vllm.log import VllmStageReader
from engine_host.engines.vllm.log import explain_exit as explain_vllm
from engine_host.engines.vllm.served_lines import VLLM_LINES
from engine_host.engines.vllm.status import VllmAdapter
from tests.hostile.effort import check_problem, fuzz, linear
from tests.hostile.making.lines import PIECES, lines
from tests.pace import within

pytestmark = pytest.mark.fuzz
READERS = (LlamaCppStageReader, VllmStageReader)
ADAPTERS = (LlamaCppAdapter(), VllmAdapter())
codes = st.one_of(
    st.none(), st.sampled_from([0, 1, 2, 137, 139, 255, 256, 300, 2**31, -9, -11, -40, -64, -65, -1000])
)


def rules(of: ServedLines) -> Rules:
    return Rules(of.prefix, list(of.templates), list(of.patterns))


JUDGES = (rules(LLAMA_CPP_LINES), rules(VLLM_LINES))


def test_stages() -> None:
    def check(printed: list[str]) -> None:
        for kind in READERS:
            reader = kind()
            for line in printed:
                change = reader.feed(line)
                if change is not None:
                    assert len(change.detail) <= 2000
            assert len(reader.buffers) <= MOST_BUFFERS
            assert all(0 <= size < 1 << 62 for size in reader.buffers.values())
            names = (reader.attention.backend, *reader.attention.passed_over, *reader.attention.others)
            assert all(len(name) <= 60 for name in names)
            assert len(names) <= 40

    fuzz("stages of a start", st.lists(lines, max_size=12), check)


def test_exits() -> None:
    def check(made: tuple[int | None, list[str]]) -> None:
        code, printed = made
        for explain in (explain_llamacpp, explain_vllm):
            check_problem(explain(code, printed, "model {x}", "version {0}"))

    fuzz("reasons of an end", st.tuples(codes, st.lists(lines, max_size=12)), check)


def test_severity_noise_and_what_is_withheld() -> None:
    def check(line: str) -> None:
        severity_of(line)
        for adapter in ADAPTERS:
            adapter.is_noise(line)
        raw = line.encode("utf-8", "replace")
        for judge in JUDGES:
            prefix, _ = judge.judge(raw)
            assert len(prefix) <= len(raw)
            writer = Lines(judge, withhold=True)
            written = writer.feed(raw + b"\n" + raw) + writer.end()
            assert len(written) <= 2 * len(raw) + 400

    fuzz("severity, noise, withheld lines", lines, check)


def test_a_flood_of_buffers_is_bounded() -> None:
    for kind, line in zip(
        READERS, ("x{n} KV buffer size = 1 MiB", "Model loading took {n} GiB"), strict=True
    ):
        reader = kind()
        for n in range(5_000):
            reader.feed(line.format(n=n))
        assert len(reader.buffers) <= MOST_BUFFERS


ACTS: dict[str, Callable[[str], object]] = {
    "llama.cpp's stages": lambda line: LlamaCppStageReader().feed(line),
    "vLLM's stages": lambda line: VllmStageReader().feed(line),
    "llama.cpp's end": lambda line: explain_llamacpp(1, [line], "m", "s"),
    "vLLM's end": lambda line: explain_vllm(1, [line], "m", "v"),
    "severity": severity_of,
    "llama.cpp's withheld lines": lambda line: JUDGES[0].judge(line.encode()),
    "vLLM's withheld lines": lambda line: JUDGES[1].judge(line.encode()),
}


@pytest.mark.parametrize("name", ACTS)
def test_no_line_costs_more_than_it_is_long(name: str) -> None:
    """Of 2,000 letters, which is all that patterns see, and of 256 KB."""
    act = ACTS[name]
    dearest: tuple[float, str] = (0.0, "")
    for piece in PIECES:
        line = piece * (2_000 // len(piece))
        spent = min(_seconds(act, line) for _ in range(3))
        dearest = max(dearest, (spent, piece))
    assert within(dearest[0], 0.005), f"2,000 letters of {dearest[1]!r} took {dearest[0] * 1000:.1f} ms"
    piece = dearest[1]
    linear(lambda size: lambda: act(piece * (size // len(piece))), 32 << 10)


def _seconds(act: Callable[[str], object], line: str) -> float:
    at = time.thread_time()
    act(line)
    return time.thread_time() - at
