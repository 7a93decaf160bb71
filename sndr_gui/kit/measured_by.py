"""Sentences on who measured a figure: client, endpoint and engine begin at different moments."""

from engine_host.protocol.language import tr

CLIENT = tr("Measured by the client: from its question to the first piece of the answer that it received.")
ENDPOINT = tr("Measured by the endpoint: from the request to the first piece of the answer that it sent.")
ENGINE_OR_ENDPOINT = tr("Measured by the engine with vLLM, by the endpoint with llama.cpp, which tells none.")
NOW = tr("Decode of all streams together, between the last two readings; 0 while none is written.")
START = tr("From the start of the engine's process until it had answered a first question.")
"""Of the one length of a start, `Engine.ready_after`."""
