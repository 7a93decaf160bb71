"""An engine for a measurement; its process and its log are real, vLLM is a FAKE that writes as it does."""

import sys
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.temporary import temporary_engine
from engine_host.engines.vllm.status import VllmAdapter
from tests.plan_samples import vllm_plan
from tests.unit.asynchronous import run

FAKE = """
core, api = "(EngineCore pid=7) ERROR 11-28 10:59:02 [core.py:1063] ", "(APIServer pid=3) "
for number in range(300):
    print(f"(APIServer pid=3) INFO 11-28 10:58:00 [loader.py:{number}] loading")
print(core + '  File "/v/flash_attn.py", line 300, in forward')
print(core + "RuntimeError: CUDA error: unknown error")
for number in range(60):
    print(f'{api}  File "/v/api_server.py", line {number}, in serve')
print(api + "RuntimeError: Engine core initialization failed. See root cause above.")
raise SystemExit(1)
"""


def test_the_lines_shown_lead_to_the_cause_not_to_the_end_of_the_log(tmp_path: Path) -> None:
    plan = vllm_plan().model_copy(update={"argv": (sys.executable, "-c", FAKE), "environment": {}})

    async def started() -> None:
        async with temporary_engine(plan, VllmAdapter(), tmp_path):
            raise AssertionError("it never answers")

    with pytest.raises(HostError) as raised:
        run(started())
    lines = raised.value.problem.evidence["lines"]
    assert lines[-1].endswith("RuntimeError: CUDA error: unknown error")
    assert "flash_attn.py" in lines[-2]
    assert len(lines) == 40
    assert list(tmp_path.rglob("*")) == [tmp_path / "ledger"], "nothing of it stays"
