"""The way of an answer from the engine's form into the one that the client reads."""

from engine_host.gateway.error_answers import EndpointError, Form


class Passage:
    """Passes one answer on as it is; those that change something derive from it.

    A stream is fed as it comes, and what is whole of it goes on at once: nothing waits for its end.
    """

    form = Form.OPENAI

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
