"""A reader of vLLM's own queue that waits for the next message."""

from tests.overlay_engine import run_in_engine

SCRIPT = """
import json
import os
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue

yields = 0
real = os.sched_yield

def counted():
    global yields
    yields += 1
    real()

os.sched_yield = counted
writer = MessageQueue(n_reader=1, n_local_reader=1)
reader = MessageQueue.create_from_handle(writer.export_handle(), 0)
writer.enqueue("first")
first = reader.dequeue(timeout=5)
yields = 0
try:
    reader.dequeue(timeout=1)
except TimeoutError:
    pass
waited = yields
writer.enqueue("second")
print(json.dumps({"yields": waited, "read": [first, reader.dequeue(timeout=5)]}))
"""


def test_a_waiting_reader_sleeps() -> None:
    stock = run_in_engine(SCRIPT)
    assert stock.answer["read"] == ["first", "second"]
    assert stock.answer["yields"] > 100, "vLLM has mended it: retire the patch"
    patched = run_in_engine(SCRIPT, ["cpu-queue-sleeps"])
    assert patched.answer == {"yields": 0, "read": ["first", "second"]}
    assert patched.outcome("cpu-queue-sleeps") == "applied"
