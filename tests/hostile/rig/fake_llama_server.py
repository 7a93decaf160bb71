"""A FAKE llama-server: no model, answers as fast as they are read, of any size.

It answers `--version` and `--help` as a llama-server does, and serves on the Unix socket after `--host`. A
request says in its field `fake` how it wants to be answered: `tokens` frames of `size` letters, `pause`
seconds between them, an error of `status`, a connection that breaks after `breaks` frames, or `crash`: the
process ends.
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from dataclasses import dataclass
from typing import Any

import httptools

VERSION = "version: 11549 (0123456)"
LINES = 20
"""Lines that a real server writes to its log for a request, at the level that it is started with."""
_FLAGS = {
    **dict.fromkeys(("-m, --model", "-a, --alias", "-c, --ctx-size", "-np, --parallel", "-t, --threads")),
    **dict.fromkeys(
        ("-tb, --threads-batch", "--port", "--slots", "--metrics", "--jinja", "-cram, --cache-ram")
    ),
    **dict.fromkeys(
        ("--log-verbosity", "--log-colors", "--offline", "-fa, --flash-attn", "-ub, --ubatch-size")
    ),
    **dict.fromkeys(("-b, --batch-size", "--embeddings", "--pooling", "--no-kv-unified", "--no-repack")),
    "--host": "ip address to listen, or bind to an UNIX socket if the address ends with .sock",
    "-ctk, --cache-type-k": "KV cache data type for K\n  allowed values: f32, f16, bf16, q8_0\n  (default)",
    "-ctv, --cache-type-v": "KV cache data type for V\n  allowed values: f32, f16, bf16, q8_0\n  (default)",
    "--spec-type": "one of\n  none,draft-mtp,ngram-simple",
}
HELP = "\n".join(f"{name}  N  {text or 'as the real one'}" for name, text in _FLAGS.items())
_READ: dict[str, Any] = {
    # Also taken for a vLLM, whose names for the same are other ones.
    "/tokenize": {"tokens": [1, 2], "token_strs": ["x", "y"]},
    "/detokenize": {"content": "x", "prompt": "x"},
    "/apply-template": {"prompt": "x"},
    "/v1/messages/count_tokens": {"input_tokens": 2},
    "/v1/responses/input_tokens": {"object": "response.input_tokens", "input_tokens": 2},
    "/v1/chat/completions/input_tokens": {"object": "response.input_tokens", "input_tokens": 2},
}
"""The answers of routes that only read a text."""


@dataclass
class _Counts:
    """The counters that its metrics tell."""

    generated: int = 0
    prompts: int = 0
    busy: int = 0
    requests: int = 0


class _Connection(asyncio.Protocol):
    """One connection; each of ours asks once."""

    def __init__(self, name: str, slots: int, counts: _Counts) -> None:
        self._name, self._slots, self._counts = name, slots, counts
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = bytearray()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._may_write.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path, body = self._url.decode(), bytes(self._body)
        self._url, self._body = b"", bytearray()
        self._task = asyncio.get_running_loop().create_task(self._answer(path, body))

    async def _answer(self, path: str, raw: bytes) -> None:
        if path in {"/health", "/v1/models", "/metrics", "/slots"}:
            self._say(200, self._look(path))
            return
        body = json.loads(raw) if raw else {}
        how = body.get("fake") or {}
        if how.get("crash"):
            print("fatal: the FAKE engine was told to crash", flush=True)
            os._exit(9)
        if status := how.get("status"):
            self._say(
                status, {"error": {"code": status, "message": "as it was asked to", "type": "fake_error"}}
            )
            return
        counts = self._counts
        counts.busy += 1
        counts.requests += 1
        print(
            "\n".join(f"0.00.{counts.requests:06} I slot {n}: a line of the log" for n in range(LINES)),
            flush=True,
        )
        try:
            if path in _READ:
                self._say(200, _READ[path])
            elif path == "/v1/embeddings":
                self._say(
                    200, {"object": "list", "data": [{"index": 0, "embedding": [0.5] * 8}], "usage": {}}
                )
            elif body.get("stream"):
                await self._stream(path, how)
            else:
                await self._whole(path, how)
        finally:
            counts.busy -= 1

    def _look(self, path: str) -> Any:
        counts = self._counts
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": self._name}]}
        if path == "/slots":
            return [{"id": n, "n_ctx": 256, "is_processing": n < counts.busy} for n in range(self._slots)]
        if path == "/metrics":
            return (
                f"llamacpp:tokens_predicted_total {counts.generated}\n"
                f"llamacpp:prompt_tokens_total {counts.prompts}\nllamacpp:requests_deferred 0\n"
            )
        return {"status": "ok"}

    def _say(self, status: int, answer: Any) -> None:
        data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self._transport.write(head.encode() + data)

    async def _whole(self, path: str, how: dict[str, Any]) -> None:
        tokens = int(how.get("tokens", 8))
        await asyncio.sleep(float(how.get("pause", 0)) * tokens)
        text = "x" * int(how.get("size", 4)) * tokens
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        choice |= {"message": {"role": "assistant", "content": text}} if "chat" in path else {"text": text}
        self._say(200, {"id": "fake", "object": "fake", "choices": [choice], **self._figures(tokens)})

    async def _stream(self, path: str, how: dict[str, Any]) -> None:
        tokens, text = int(how.get("tokens", 8)), "x" * int(how.get("size", 4))
        pause, breaks = float(how.get("pause", 0)), how.get("breaks")
        begin, frame, end = self._told(path, text, tokens)
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            + begin
        )
        for number in range(tokens):
            if number == breaks:
                self._transport.abort()
                return
            self._transport.write(frame)
            self._counts.generated += 1
            await self._may_write.wait()
            if pause:
                await asyncio.sleep(pause)
            elif number % 64 == 63:
                await asyncio.sleep(0)
        self._transport.write(end + b"0\r\n\r\n")

    def _told(self, path: str, text: str, tokens: int) -> tuple[bytes, bytes, bytes]:
        """The beginning of a stream, what is there once a token, and its end, in the form of its path."""
        written = text * tokens
        figures = self._figures(tokens)
        if path == "/v1/messages":
            usage = {"input_tokens": 5, "output_tokens": tokens}
            message = {"id": "fake", "type": "message", "role": "assistant", "model": self._name}
            block = {"type": "text", "text": ""}
            delta: dict[str, Any] = {"type": "text_delta", "text": text}
            begin = {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
            return (
                _event(begin) + _event({"type": "content_block_start", "index": 0, "content_block": block}),
                _event({"type": "content_block_delta", "index": 0, "delta": delta}),
                _event({"type": "content_block_stop", "index": 0})
                + _event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
                + _event({"type": "message_stop"}),
            )
        if path == "/v1/responses":
            words = {"type": "output_text", "text": written}
            item: dict[str, Any] = {"type": "message", "id": "msg", "role": "assistant", "content": [words]}
            usage = {"input_tokens": 5, "output_tokens": tokens, "total_tokens": 5 + tokens}
            made = {"id": "fake", "object": "response", "created_at": 1, "model": self._name}
            delta = {"type": "response.output_text.delta", "item_id": "msg", "delta": text}
            return (
                _event({"type": "response.created", "response": made})
                + _event({"type": "response.output_item.added", "item": {**item, "content": []}}),
                _event(delta),
                _event({"type": "response.output_item.done", "item": item})
                + _event(
                    {"type": "response.completed", "response": {**made, "output": [item], "usage": usage}}
                ),
            )
        if path in {"/completion", "/infill"}:
            piece = {"index": 0, "content": text, "tokens": [1], "stop": False}
            last = {**piece, "content": "", "tokens": [], "stop": True, "stop_type": "eos", **figures}
            return b"", _frame(piece), _frame({**last, "generation_settings": {}, "tokens_predicted": tokens})
        part: dict[str, Any] = {"delta": {"content": text}} if "chat" in path else {"text": text}
        # As llama.cpp's: what names the model costs whoever renames it.
        named = {"created": 1, "id": "fake", "model": self._name, "object": "fake"}
        frame = _frame({"choices": [{"index": 0, "finish_reason": None, **part}], **named})
        end = {"id": "fake", "choices": [{"index": 0, "finish_reason": "stop", "delta": {}}], **figures}
        return b"", frame, _frame(end) + _chunk(b"data: [DONE]\n\n")

    def _figures(self, tokens: int) -> dict[str, Any]:
        self._counts.prompts += 5
        usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
        return {"usage": usage, "timings": {"predicted_n": tokens, "predicted_per_second": 1000.0}}


def _frame(value: dict[str, Any]) -> bytes:
    return _chunk(b"data: " + json.dumps(value).encode() + b"\n\n")


def _event(value: dict[str, Any]) -> bytes:
    return _chunk(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode())


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _serve(arguments: list[str]) -> None:
    given = dict(itertools.pairwise(arguments))
    socket, name, slots = given["--host"], given["--alias"], int(given["--parallel"])
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    counts = _Counts()
    server = await loop.create_unix_server(lambda: _Connection(name, slots, counts), socket, backlog=1024)
    print(f"main: FAKE server, listening on {socket}", flush=True)
    await ended.wait()
    server.close()


if __name__ == "__main__":
    if "--version" in sys.argv:
        print(VERSION)
    elif "--help" in sys.argv:
        print(HELP)
    else:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(sys.argv[1:]))
