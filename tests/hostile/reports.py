"""Everything that is computed of a model whose files a stranger wrote."""

from engine_host.core.outside import json_text
from engine_host.fit.report import report, start_of
from engine_host.fit.start import Device, Model
from engine_host.protocol.launch.fit import FitReport, FitRequest
from tests.hostile.effort import clear

GPU = Device("card", 24 << 30, 1 << 30, "8.6", 936e9, 71e12, 16, 1.0)
MEMORY = Device("memory", 64 << 30, 8 << 30)


def computed(model: Model) -> None:
    """Compute what a model needs on two GPUs and on a processor; what comes out can be sent and read."""
    for cpu, devices in ((False, (GPU, GPU)), (True, (MEMORY,))):
        request = FitRequest(model=model.name, cpu=cpu, streams=4, speculation=True)
        start = start_of(request, model, devices, cpu=cpu)
        found = clear(lambda request=request, start=start: report(request, model, start))  # type: ignore[misc]
        if found is not None:
            sent = found.model_dump_json()
            json_text.refuse_huge(sent)
            assert FitReport.model_validate_json(sent) == found
