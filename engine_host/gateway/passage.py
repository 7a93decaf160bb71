"""The way of an answer from the engine's form into the one that the client reads."""

from typing import Protocol

from engine_host.gateway.error_answers import EndpointError, Form


class Passage:
    """Passes one answer on as it is; those that change something derive from it.

    A stream is fed as it comes, and what is whole of it goes on at once: nothing waits for its end.
    """

    form = Form.OPENAI
    lines = False
    """A stream of lines of JSON, in which no comment can stand."""

    def begun(self) -> None:
        """Note that the engine has the request."""

    def feed(self, data: bytes) -> bytes:
        """Return what the client gets for the next bytes of the engine's stream; raises EndpointError."""
        return data

    def end(self) -> bytes:
        """Return what the client gets after the engine's last byte."""
        return b""

    def convert(self, body: bytes) -> bytes:
        """Return the client's answer for a whole one of the engine; raises EndpointError."""
        return body

    def failure(self, fault: EndpointError, request_id: str) -> bytes:
        """Return the frames that tell a client, in the middle of its stream, that no more will come."""
        return fault.frame(self.form, request_id)


class Steps(Protocol):
    """The part of a translation that is there in each of them."""

    def feed(self, data: bytes) -> bytes | tuple[bytes, bool]:
        """Return what comes of the next bytes."""
        ...

    def end(self) -> bytes:
        """Return what comes after the last byte."""
        ...

    def convert(self, body: bytes) -> bytes:
        """Return what comes of a whole answer."""
        ...


class Two(Passage):
    """One translation after the other; the second one speaks to the client."""

    def __init__(self, first: Steps, second: Passage) -> None:
        self._first = first
        self._second = second
        self.form = second.form
        self.lines = second.lines

    def begun(self) -> None:
        """Note that the engine has the request."""
        if isinstance(self._first, Passage):
            self._first.begun()

    def feed(self, data: bytes) -> bytes:
        """Return what the client gets for the next bytes; raises EndpointError."""
        between = self._first.feed(data)
        return self._second.feed(between if isinstance(between, bytes) else between[0])

    def end(self) -> bytes:
        """Return what the client gets after the engine's last byte."""
        return self._second.feed(self._first.end()) + self._second.end()

    def convert(self, body: bytes) -> bytes:
        """Return the client's answer for a whole one; raises EndpointError."""
        return self._second.convert(self._first.convert(body))

    def failure(self, fault: EndpointError, request_id: str) -> bytes:
        """Return what tells a client that no more will come."""
        return self._second.failure(fault, request_id)
