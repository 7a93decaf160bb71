"""One request's way through the gateway: wait for a slot, ask the engine, pass its answer on.

All sending to the client happens in one coroutine. Everything that can end the exchange from outside (the
client leaves, somebody cancels, the program closes) calls `stop`, which breaks the engine's connection and
frees the slot at once, and lets that coroutine find out why. A client that reads nothing holds it up in a
send, but no slot once the engine has sent all; the connection's own deadline ends that. One that is ended
from outside has a moment to take the last words, then it is left alone.
"""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum

from starlette.types import Receive, Send

from engine_host.core.sse import FRAME_END
from engine_host.gateway import error_answers as faults
from engine_host.gateway.access.admission import Admission, Ticket
from engine_host.gateway.call import AskAgainError, Call
from engine_host.gateway.directory import Target
from engine_host.gateway.gathering.asking import ToldError, in_pieces
from engine_host.gateway.kept_connections import KeptConnections
from engine_host.gateway.meter import Figures, Meter, figures_of_answer
from engine_host.gateway.refusals import check_schema, refusal
from engine_host.gateway.request_log import Entry
from engine_host.gateway.routing import failures
from engine_host.gateway.routing.delta_filter import delta_filter
from engine_host.gateway.routing.renaming import Renaming
from engine_host.gateway.sending import send_fault, send_json
from engine_host.gateway.streaming.beginning import answerer, headers
from engine_host.gateway.streaming.direct import WritePiece
from engine_host.gateway.streaming.incoming import Incoming
from engine_host.gateway.streaming.pace import Pace
from engine_host.gateway.upstream import AnswerTooLargeError, Upstream, UpstreamLostError
from engine_host.protocol.errors import Reason

_log = logging.getLogger(__name__)

_PING = b": ping" + FRAME_END
_LONG = 1 << 16
_MOVE_INTERVAL = 1.0
"""Seconds between two words to a stream about its place in the queue, but for that it is next.

Where many wait, each end of an answer moves all of them."""


class Stop(Enum):
    """Why an exchange was ended from outside."""

    CLIENT_LEFT = "client left"
    CANCELLED = "cancelled"
    CLOSING = "closing"


class GaveWayError(Exception):
    """A provider or a replica failed before its answer had begun, and another one is to be asked."""

    def __init__(self, fault: faults.EndpointError) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Exchange:
    """One admitted or waiting request; `run` sends the whole answer."""

    def __init__(
        self,
        target: Target,
        call: Call,
        ticket: Ticket,
        entry: Entry,
        admission: Admission,
        receive: Receive,
        send: Send,
        *,
        ping_interval: float,
        note_interval: float,
        close_grace: float,
        answer_limit: int,
        kept: KeptConnections,
        begun: bool = False,
        gives_way: bool = False,
        write_piece: WritePiece | None = None,
    ) -> None:
        """`begun`: the headers of a stream are sent already.

        `gives_way`: there is another one to ask where this one fails before its answer has begun.
        `write_piece` is a shorter way than `send` for a piece of a stream.
        """
        self._gives_way, self._gave_way = gives_way, False
        self._target = target
        self._call = call
        self._form = faults.form_of(entry.route)
        self._lines = call.passage is not None and call.passage.lines
        self._ticket = ticket
        self._entry = entry
        self._admission = admission
        self._receive = receive
        self._send = send
        self._write_piece = write_piece if entry.capture is None else None
        self._ping_interval = ping_interval
        self._note_interval = note_interval
        self._close_grace = close_grace
        self._answer_limit = answer_limit
        self._kept = kept
        self._deadline: asyncio.Timeout | None = None
        self._upstream: Upstream | None = None
        self._stopped: Stop | None = None
        self._begun = begun
        self._responded = begun
        self._at_frame_end = True
        self._sends = 0
        self._idle = False
        self._failure: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._renaming = Renaming(target.name) if target.route and not self._lines else None
        self._meter = entry.meter = Meter()
        self._incoming: Incoming | None = None
        entry.stop = lambda: self.stop(Stop.CANCELLED)

    def stop(self, cause: Stop) -> None:
        """End the exchange: the engine's work on it is aborted and its slot free before this returns."""
        if self._stopped is not None:
            return
        self._stopped = cause
        if self._upstream is not None:
            self._upstream.abort()
        # Before the slot goes: who waits must find the refusal, not a place that was lost.
        self._ticket.fault = self._stop_fault()
        self._ticket.changed.set()
        self._admission.release(self._ticket)
        if self._deadline is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._close_grace)

    async def run(self) -> None:
        """Wait, ask, answer; the slot is free and the entry closed when this returns or raises.

        Raises GaveWayError where another one is to be asked; the entry is then open, and nothing sent.
        """
        watcher = asyncio.create_task(self._watch_client())
        try:
            async with asyncio.timeout(None) as self._deadline:
                await self._answer_all()
        except TimeoutError:
            if self._stopped is None:
                raise
            await self._give_up()
        finally:
            self._deadline = None
            watcher.cancel()
            if self._upstream is not None:
                self._upstream.close()
            self._admission.release(self._ticket)
            if not self._gave_way:
                self._entry.cancelled()

    async def _answer_all(self) -> None:
        """The answer, or the error that takes its place."""
        try:
            await self._wait_for_slot()
            self._entry.admitted()
            while not await self._answered():
                pass
        except faults.EndpointError as fault:
            await self._refuse(failures.whose(self._target, fault))
        except AnswerTooLargeError as error:
            await self._refuse(faults.answer_too_large(error.limit))
        except UpstreamLostError as error:
            await self._broken(error)
        except Exception:
            # The server writes the traceback to the host's log.
            await self._refuse(faults.internal())
            raise

    async def _answered(self) -> bool:
        """Ask the engine and pass its answer on; False when it has to be asked with another request."""
        self._call = in_pieces(self._call, self._target)
        try:
            await (self._stream() if self._call.stream else self._whole())
        except AskAgainError as again:
            self._call = again.call
            self._meter = self._entry.meter = Meter()
            if self._upstream is not None:
                self._upstream.close()
            return False
        return True

    async def _give_up(self) -> None:
        """Abandon a client that reads nothing; one that got no response yet is sent its error."""
        fault = self._stop_fault()
        if self._responded or self._stopped is Stop.CLIENT_LEFT:
            self._record(fault, self._meter.figures())
            return
        try:
            async with asyncio.timeout(self._close_grace):
                await self._refuse(fault)
        except TimeoutError:
            _log.info("%s: the client reads nothing; it was not told why its request ended.", self._entry.id)

    def _stop_fault(self) -> faults.EndpointError:
        """Return the error for a client whose request was ended from outside."""
        if self._stopped is Stop.CLOSING:
            return faults.closed_meanwhile()
        return faults.cancelled()

    async def _watch_client(self) -> None:
        """Notice the client's leaving while the answer is being made."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.stop(Stop.CLIENT_LEFT)

    async def _wait_for_slot(self) -> None:
        """Return with a slot; a waiting stream is told how many are ahead; raises EndpointError."""
        ticket = self._ticket
        clock = asyncio.get_running_loop().time
        told, told_at = -1, -_MOVE_INTERVAL
        while not ticket.granted:
            ahead = self._admission.ahead(ticket)
            self._entry.placed(ahead + 1)
            is_next = ahead == 0 and told != 0
            if self._call.stream and not self._lines and (is_next or clock() - told_at >= _MOVE_INTERVAL):
                told, told_at, engine = ahead, clock(), ticket.engine
                await self._begin((b"x-sndr-waiting", str(ahead + 1).encode()))
                busy = f"{self._admission.active(engine)} of {self._admission.slots(engine)} busy"
                await self._send_piece(f": waiting for a free slot, {ahead} ahead, {busy}\n\n".encode())
            await self._admission.wait(ticket, self._note_interval)

    async def _open(self) -> Upstream:
        """Connect to the engine. Raises UpstreamLostError when it takes none, and when stopped."""
        if self._call.schema is not None:
            await check_schema(self._target, self._call.schema)
        if self._is_stopped():
            raise UpstreamLostError("stopped before the engine was asked")
        if self._entry.capture is not None:
            self._entry.capture.to_engine(self._call.path, self._call.body)
        upstream = await Upstream.open(self._target, "POST", self._call.path, self._call.body, self._kept)
        self._upstream = upstream
        if self._call.passage is not None:
            self._call.passage.begun()
        if not self._call.tentative and self._call.otherwise is None:
            # The engine has done its work, and may do the next, however long a client takes to read.
            upstream.on_complete = lambda: self._admission.release(self._ticket)
        # `stop` may have come while the connection was made, and found nothing to break.
        if self._is_stopped():
            upstream.abort()
        return upstream

    async def _refused(self, status: int, body: bytes) -> faults.EndpointError:
        """The engine's refusal. Raises AskAgainError where another request may fare better."""
        call = self._call
        if call.otherwise is not None and status in call.otherwise_at:
            raise AskAgainError(call.otherwise)
        return await refusal(self._target, call.path, call.body, status, body, call.reader)

    def _check_status(self, status: int) -> None:
        """Raise EndpointError for a status that is neither an answer nor an error."""
        if 300 <= status < 400 and self._target.provider is not None:
            raise failures.provider_redirected(self._target, status)
        if not 200 <= status < 300 and status < 400:
            raise failures.unreadable(self._target)

    def _is_stopped(self) -> bool:
        return self._stopped is not None

    async def _whole(self) -> None:
        """Pass on one whole answer."""
        await (upstream := await self._open()).head()
        body = await upstream.rest(self._answer_limit)
        if (secrets := delta_filter(self._target.key)) is not None:
            body = secrets.whole(body)
        if self._entry.capture is not None:
            self._entry.capture.from_engine(body, upstream.status)
        self._check_status(upstream.status)
        if upstream.status >= 400:
            raise await self._refused(upstream.status, body)
        failures.check_answer(self._target, body)
        if (gather := self._call.gather) is not None:
            try:
                # A long one beside the loop, which passes on what others are answered.
                body = gather(body) if len(body) < _LONG else await asyncio.to_thread(gather, body)
            except ToldError as told:
                raise await self._refused(told.status, told.body) from None
        if (infill := self._call.infill) is not None:
            body, figures = infill.convert(body), infill.figures()
        else:
            figures = figures_of_answer(body)
            if self._call.passage is not None:
                body = self._call.passage.convert(body)
        if self._renaming is not None:
            body = self._renaming.convert(body)
        self._finish(figures)
        await self._answer(upstream.status, body)

    async def _stream(self) -> None:
        """Pass on an event stream, piece by piece as it comes."""
        upstream = await self._open()
        while not await upstream.head(self._ping_interval):
            await self._comment(_PING)
        self._check_status(upstream.status)
        capture = self._entry.capture
        if capture is not None:
            capture.from_engine(b"", upstream.status)
        if upstream.status >= 400:
            body = await upstream.rest()
            if capture is not None:
                capture.from_engine(body)
            raise await self._refused(upstream.status, body)
        await self._begin()
        # One timer for the stream's life, none for a piece.
        self._timer = asyncio.get_running_loop().call_later(
            self._ping_interval, self._ping_if_idle, upstream, -1
        )
        try:
            await self._relay(upstream)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _ping_if_idle(self, upstream: Upstream, sends: int) -> None:
        """Have a ping sent when nothing was since the last look."""
        if self._sends == sends:
            if upstream.is_full:
                # It is the client who is slow: the engine writes on, and is done while this one reads.
                self._admission.lend(self._ticket)
            self._idle = True
            upstream.nudge()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._ping_interval, self._ping_if_idle, upstream, self._sends)

    async def _relay(self, upstream: Upstream) -> None:
        """The loop that every piece passes which `_direct` leaves to it; nothing in it may be slow."""
        infill, passage, renaming = self._call.infill, self._call.passage, self._renaming
        feed: Callable[[bytes], bool] = self._meter.feed
        # What is translated comes in frames.
        form = faults.Form.OPENAI if self._lines else self._form
        incoming = Incoming(upstream, self._target, form, self._entry.id, self._entry.capture)
        self._incoming = incoming
        pace = Pace(upstream, asyncio.get_running_loop().time)
        if self._write_piece is not None and infill is None and not self._target.key:
            upstream.on_piece = self._direct(self._write_piece, upstream, incoming, pace)
        while (piece := await incoming.read()) is not None and self._failure is None:
            if not piece:
                if self._idle and self._at_frame_end:
                    await self._comment(_PING)
                self._idle = False
                continue
            first = feed(piece)
            if infill is not None:
                piece, first = infill.feed(piece)
            else:
                if self._meter.progress is not None:
                    self._entry.reading(*self._meter.progress)
                    self._meter.progress = None
                if passage is not None:
                    piece = passage.feed(piece)
            if first:
                self._entry.first_content()
            if self._meter.over and not self._call.tentative:
                # Clients leave, or ask again, as soon as they have read this piece.
                self._finish(self._meter.figures())
            if renaming is not None:
                piece = renaming.feed(piece)
            if piece:
                await self._send_piece(piece)
            pace.passed(piece.count(FRAME_END))
        if (failure := self._failure) is not None:
            self._failure = None  # Another request may be asked for.
            raise failure
        rest = passage.end() if passage is not None else b""
        if renaming is not None:
            rest = renaming.feed(rest) + renaming.end()
        if not self._entry.ended:
            self._finish(infill.figures() if infill is not None else self._meter.figures())
        if infill is not None:
            await self._send_piece(infill.end())
        if rest:
            await self._send_piece(rest)
        await self._close()

    def _direct(
        self, write: WritePiece, upstream: Upstream, incoming: Incoming, pace: Pace
    ) -> Callable[[bytes], bool]:
        """Return what passes on a piece of text while the loop waits and all before it is sent.

        It is called once for each token, and has at hand what it needs.
        """
        text, concerns, passed = self._meter.text, incoming.concerns, pace.passed
        steps = [step.feed for step in (self._call.passage, self._renaming) if step is not None]

        def pass_on(piece: bytes) -> bool:
            if concerns(piece) or self._idle or not write(b"") or (frames := text(piece)) is None:
                return False
            try:
                for translate in steps:
                    piece = translate(piece)
            except Exception as error:  # noqa: BLE001
                # Raised again by the loop, where the client is told.
                self._failure = error
                upstream.nudge()
                return True
            if piece:
                self._sends += 1
                self._at_frame_end = piece.endswith(FRAME_END)
                write(piece)
            passed(frames)
            return True

        return pass_on

    def _finish(self, figures: Figures) -> None:
        """Close the entry and free the slot before the client reads the end; only the first call counts."""
        if self._entry.ended:
            return
        if figures.error is not None:
            reason = Reason.ENGINE_CRASHED if self._target.provider is None else Reason.PROVIDER_FAILED
            told = None if self._incoming is None else self._incoming.fault
            fault = told or faults.EndpointError(500, "engine_error", figures.error, reason)
            self._entry.failed(fault.problem(), figures)
        else:
            self._entry.done(figures)
        self._admission.release(self._ticket)

    async def _broken(self, error: UpstreamLostError) -> None:
        """Report why the engine's answer is not whole, if the client still listens."""
        figures = self._meter.figures()
        if self._stopped is Stop.CLIENT_LEFT:
            # Some clients leave with the finish reason, before the frames that follow it.
            if figures.finish is not None:
                self._finish(figures)
            self._entry.cancelled(figures)
            return
        if self._stopped is not None:
            await self._refuse(self._stop_fault(), figures)
            return
        stopped = self._admission.draining(self._target.engine)
        await self._refuse(failures.of_lost(self._target, error, stopped=stopped), figures)

    async def _refuse(self, fault: faults.EndpointError, figures: Figures | None = None) -> None:
        """Answer with an error, as a status or, when the stream has begun, as its last frame."""
        self._give_way(fault)
        self._record(fault, figures)
        if self._stopped is Stop.CLIENT_LEFT:
            return
        if not self._begun:
            self._responded = True
            await send_fault(self._send, fault, self._entry.id, self._form)
            return
        passage = self._call.passage
        told = (
            fault.frame(self._form, self._entry.id)
            if passage is None
            else passage.failure(fault, self._entry.id)
        )
        await self._send_piece((b"" if self._at_frame_end or self._lines else FRAME_END) + told)
        await self._close()

    def _give_way(self, fault: faults.EndpointError) -> None:
        """Raise GaveWayError where another one can be asked, and the client has nothing yet."""
        untouched = not (self._begun or self._responded or self._entry.ended) and self._stopped is None
        if self._gives_way and untouched and failures.gives_way(fault):
            self._gave_way = True
            raise GaveWayError(fault)

    def _record(self, fault: faults.EndpointError, figures: Figures | None) -> None:
        """Close the entry with an error and free the slot."""
        if self._stopped in (Stop.CLIENT_LEFT, Stop.CANCELLED):
            self._entry.cancelled(figures)
        else:
            self._entry.failed(fault.problem(), figures)
        self._admission.release(self._ticket)

    async def _begin(self, *more: tuple[bytes, bytes]) -> None:
        """Send the headers of a stream, once."""
        if self._begun:
            return
        self._begun = self._responded = True
        told = [*headers(self._target, self._entry.id, lines=self._lines), *more]
        await self._send({"type": "http.response.start", "status": 200, "headers": told})

    async def _comment(self, text: bytes) -> None:
        """Send what keeps a connection alive and says nothing; lines of JSON have no such thing."""
        if not self._lines:
            await self._begin()
            await self._send_piece(text)

    async def _send_piece(self, piece: bytes) -> None:
        self._sends += 1
        self._at_frame_end = piece.endswith(FRAME_END)
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _close(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer(self, status: int, body: bytes) -> None:
        self._responded = True
        name, value = answerer(self._target)
        told = ((name.decode(), value.decode()),)
        await send_json(self._send, status, body, self._entry.id, told)
