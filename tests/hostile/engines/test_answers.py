"""A hostile engine: its metrics, models, slots and probes, read by the host; its answers, passed on."""

import asyncio
import contextlib
import functools
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from hypothesis import strategies as st

from engine_host.core.errors import HostError
from engine_host.engines.adapter import Adapter
from engine_host.engines.llamacpp.status import LlamaCppAdapter
from engine_host.engines.metrics import Metrics
from engine_host.engines.vllm.metrics import readings
from engine_host.engines.vllm.status import VllmAdapter
from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.meter import Meter, figures_of_answer
from engine_host.gateway.openai.completion_logprobs import CompletionLogprobs
from engine_host.gateway.openai.infill import InfillAnswer
from engine_host.gateway.openai.usage import UsageFilter
from engine_host.gateway.upstream import AnswerTooLargeError
from engine_host.protocol.engines import Readings, Verification
from tests.hostile.effort import check_problem, fuzz, linear
from tests.hostile.making import http
from tests.plan_samples import plain_plan

pytestmark = pytest.mark.fuzz
ADAPTERS: tuple[Adapter, ...] = (LlamaCppAdapter(), VllmAdapter())
SECONDS = 5.0


@dataclass
class HostileEngine:
    """Answers what it is told to, whatever is asked."""

    socket: str
    loop: asyncio.AbstractEventLoop
    answers: list[bytes] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answers[0] if len(self.answers) == 1 else self.answers.pop(0))
            await writer.drain()
        writer.close()

    def ask(self, work: Callable[[httpx.AsyncClient], Awaitable[object]]) -> object:
        """Do something with a client of this engine; it may take five seconds."""

        async def bounded() -> object:
            transport = httpx.AsyncHTTPTransport(uds=self.socket, verify=False, trust_env=False)
            async with (
                asyncio.timeout(SECONDS),
                httpx.AsyncClient(transport=transport, base_url="http://engine") as client,
            ):
                return await work(client)

        return self.loop.run_until_complete(bounded())


@pytest.fixture
def engine() -> Iterator[HostileEngine]:
    """A hostile engine that listens."""
    with tempfile.TemporaryDirectory() as folder:
        loop = asyncio.new_event_loop()
        made = HostileEngine(str(Path(folder) / "e.sock"), loop)
        server = loop.run_until_complete(asyncio.start_unix_server(made.handle, made.socket))
        yield made
        server.close()
        loop.run_until_complete(server.wait_closed())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def told(found: Readings | Verification) -> None:
    """What came out can be sent and read."""
    assert type(found).model_validate_json(found.model_dump_json()) == found


def test_metrics_text() -> None:
    def check(content: bytes) -> None:
        text = content.decode("utf-8", "replace")
        for read in (readings, lambda text: Metrics(text, "llamacpp:").latency("x", "X")):
            try:
                found = read(text)
            except ValueError:
                continue  # As it says it does.
            if isinstance(found, Readings):
                told(found)

    fuzz("metrics", http.metrics, check)
    linear(lambda size: lambda: readings('vllm:x{le="1"} 1\n' * size), 400)


def test_readings(engine: HostileEngine) -> None:
    def check(answers: list[bytes]) -> None:
        for adapter in ADAPTERS:
            engine.answers = [*answers]
            try:
                found = engine.ask(adapter.read)
            except (httpx.HTTPError, ValueError):
                continue  # As it says it does.
            assert isinstance(found, Readings)
            told(found)

    one = st.one_of(http.answers_with(http.metrics), http.answers_with(http.slots))
    fuzz("readings of an engine", st.lists(one, min_size=2, max_size=2), check)


def test_the_proof_that_it_answers(engine: HostileEngine) -> None:
    plans = [
        plain_plan(name="demo"),
        plain_plan(name="demo", speculation="draft-mtp"),
        plain_plan(argv=("--embeddings",)),
    ]

    def check(made: tuple[int, list[bytes]]) -> None:
        for adapter in ADAPTERS:
            engine.answers = [*made[1]]
            prove = functools.partial(adapter.verify, plan=plans[made[0]], began=0.0)
            try:
                found = engine.ask(prove)
            except HostError as error:
                check_problem(error.problem)
            except httpx.HTTPError:
                continue  # As it says it does.
            else:
                assert isinstance(found, Verification)
                told(found)

    listed, completed = http.answers_with(http.models), http.answers_with(http.completions)
    several = st.tuples(listed, completed, http.answers_with(http.metrics), completed).map(list)
    fuzz("proof that an engine answers", st.tuples(st.integers(0, 2), several), check)


def test_health(engine: HostileEngine) -> None:
    def check(content: bytes) -> None:
        engine.answers = [content]
        for adapter in ADAPTERS:
            assert engine.ask(adapter.healthy) in {True, False}

    fuzz("health of an engine", http.answers_with(http.bodies), check, usual=0.5)


@pytest.mark.parametrize("way", ["endless body", "endless headers", "compressed"])
def test_no_answer_fills_the_memory(engine: HostileEngine, way: str) -> None:
    head = b"HTTP/1.1 200 OK\r\n"
    engine.answers = [
        {
            "endless body": head + b"\r\n" + b"x" * (40 << 20),
            "endless headers": head + b"X: y\r\n" * (1 << 20),
            "compressed": http.answer(b"200 OK", [b"Content-Encoding: gzip"], b"\x1f\x8b", True),
        }[way]
    ]
    for adapter in ADAPTERS:
        with pytest.raises((httpx.HTTPError, ValueError)):
            engine.ask(adapter.read)


def test_streams_on_their_way_through_the_gateway() -> None:
    def check(pieces: list[bytes]) -> None:
        meter, through = Meter(), (UsageFilter(), CompletionLogprobs(2), InfillAnswer("id", "m", 0))
        for piece in pieces:
            meter.feed(piece)
            for one in through:
                try:
                    passed = one.feed(piece)
                except EndpointError as error:
                    check_problem(error.problem())
                except AnswerTooLargeError:
                    continue
                else:
                    assert isinstance(passed, bytes | tuple)
        figures = [meter.figures(), through[2].figures(), *map(figures_of_answer, pieces)]
        for found in figures:
            counts = (found.prompt_tokens, found.cached_tokens, found.generated_tokens, found.decode_rate)
            assert all(count is None or 0 <= count < 1 << 49 for count in counts)

    fuzz("streams through the gateway", st.lists(http.streams, max_size=5), check)


def test_whole_answers_that_are_brought_into_another_form() -> None:
    def check(body: bytes) -> None:
        for convert in (CompletionLogprobs(2).convert, InfillAnswer("id", "m", 0).convert):
            try:
                convert(body)
            except EndpointError as error:
                check_problem(error.problem())
                error.encoded()

    fuzz("answers in another form", st.one_of(http.chunks, http.bodies), check)
