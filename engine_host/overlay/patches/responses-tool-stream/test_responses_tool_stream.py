"""vLLM's own splitting and state machine, fed as its /v1/responses handler feeds them."""

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json
import vllm.entrypoints.openai.responses.serving as serving
from vllm.entrypoints.openai.responses import streaming_events as events

try:
    from vllm.entrypoints.generate.base.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall
except ImportError:  # where vLLM 0.26 has them
    from vllm.entrypoints.openai.engine.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall

processor = events.SimpleStreamingEventProcessor()
seen = []

def feed(message):
    for part in serving.split_delta(message):
        target, call = processor.resolve_target_state(part)
        if processor.needs_transition(target, call):
            seen.extend(event.type for event in processor.close_current())
            seen.extend(event.type for event in processor.open(target, call))
        seen.extend(event.type for event in processor.emit_delta(part, None, lambda _output: []))

def call(arguments, name=None):
    function = DeltaFunctionCall(name=name, arguments=arguments)
    return DeltaToolCall(index=0, id="call_1" if name else None, type="function", function=function)

feed(DeltaMessage(tool_calls=[call("{", "add")]))
try:
    feed(DeltaMessage(content="Done.", tool_calls=[call("}")]))
    seen.extend(event.type for event in processor.close_current())
    failure = None
except Exception as error:
    failure = type(error).__name__
print(json.dumps([failure, [kind for kind in seen if kind.endswith("arguments.done")]]))
"""


def test_the_stream_reaches_its_end() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer[0] == "ValidationError", "the symptom: a call without a name is opened"
    patched = run_in_engine(SCRIPT, ["responses-tool-stream"])
    assert patched.answer == [None, ["response.function_call_arguments.done"]]
    assert patched.outcome("responses-tool-stream") == "applied"
