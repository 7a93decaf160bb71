"""Checks llama.cpp's CUDA build on this machine through the host, and prints a table.

usage: python packaging/gpu/llamacpp.py --folder BUILD/bin [--out FILE] [--small]
                                           [--speed | --fit] [--gpu N …]

For the bundled model and random ones of real shapes: decode through host and endpoint beside `llama-bench` of
the same build in the same run, KV types, flash attention, drafts, a part of the layers on the processor, and
the memory that the calculator predicted beside the buffers that the server printed.
"""

import argparse
import json
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx
from host_under_test import HostUnderTest, processes_of, wait_for
from judge import HEADING, Row, as_json

from engine_host.bench.random_model import QWEN3_06B, Shape, write_random_model
from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.command import LOG_LEVEL
from engine_host.protocol.engines import Engine
from engine_host.protocol.launch.fit import FitRequest
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest, Overrides, ServerChoice
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "resources" / "models" / "sndr-demo" / "sndr-demo-q8_0.gguf"
QWEN3_8B = Shape(
    layers=36, width=4096, feed_forward=12288, heads=32, kv_heads=8, head_size=128, vocabulary=151_936,
    context=40_960,
)  # fmt: skip
LEAST_SHARE = 0.98
# The server without this program: where the distance to llama-bench, which samples nothing, comes from.
ALONE: dict[str, tuple[list[str], dict[str, Any]]] = {
    "as it starts by itself": ([], {}),
    "its log as this program asks for": (["--log-verbosity", LOG_LEVEL], {}),
    "one sampler, greedy": ([], {"samplers": ["top_k"], "top_k": 1}),
    "sampling on the GPU": (["--backend-sampling"], {}),
    "sampling on the GPU, greedy": (["--backend-sampling"], {"samplers": ["top_k"], "top_k": 1}),
    "one thread": (["--threads", "1"], {}),
}
REPEATS = 5
TOKENS = 128
PATIENCE = 240.0


def llama_bench(folder: Path, model: Path, layers: int) -> tuple[float, float]:
    """Return prefill and decode of llama-bench, tokens a second."""
    command = [
        str(folder / "llama-bench"), "-m", str(model), "-ngl", str(layers), "-fa", "1", "-p", "512",
        "-n", str(TOKENS), "-r", str(REPEATS), "-o", "json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(done.stdout[done.stdout.index("[") :])
    prefill = next(float(one["avg_ts"]) for one in found if one["n_prompt"])
    return prefill, next(float(one["avg_ts"]) for one in found if one["n_gen"])


def alone(folder: Path, model: Path, options: list[str], body: dict[str, Any]) -> list[float]:
    """Return the decode rates of a server that this program did not start, tokens a second."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        str(folder / "llama-server"), "--model", str(model), "--n-gpu-layers", "99", "--ctx-size", "4096",
        "--parallel", "1", "--flash-attn", "on", "--host", "127.0.0.1", "--port", str(port), *options,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
                wait_for(lambda: is_ready(client), "the server alone", PATIENCE)
                rates = []
                for number in range(REPEATS + 1):
                    asked = {
                        "prompt": f"{number} Once upon a time", "max_tokens": TOKENS, "ignore_eos": True,
                        "temperature": 0, **body,
                    }  # fmt: skip
                    answer = client.post("/v1/completions", json=asked).raise_for_status().json()
                    rates.append(float(answer["timings"]["predicted_per_second"]))
        finally:
            server.terminate()
    return rates[1:]


def is_ready(client: httpx.Client) -> bool:
    """Return True if the server answers and has loaded its model."""
    try:
        return client.get("/health").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def decode_rates(host: HostUnderTest, engine: Engine) -> list[float]:
    """Return the decode rates of a few answers, as the server timed them, tokens a second."""
    rates = []
    for number in range(REPEATS + 1):
        body: dict[str, Any] = {
            "model": engine.name,
            "prompt": f"{number} Once upon a time",
            "max_tokens": TOKENS,
            "ignore_eos": True,
            "temperature": 0,
        }
        rates.append(float(host.ask("completions", body)["timings"]["predicted_per_second"]))
    return rates[1:]


class Check:
    """One run: a host, the build that it uses, the rows."""

    def __init__(self, host: HostUnderTest, folder: Path, gpus: tuple[str, ...]) -> None:
        self.host, self.folder, self.gpus = host, folder, gpus
        self.rows: list[Row] = []
        values = {"engine.own_server": str(folder / "llama-server")}
        host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values=values))

    def add(self, part: str, check: str, found: Callable[[], Iterable[Row]]) -> None:
        """Print what a check finds; one that raises is a row that failed."""
        try:
            rows = list(found())
        except (HostError, RuntimeError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            rows = [Row(part, check, False, f"{type(error).__name__}: {error}"[:600])]
        for row in rows:
            self.rows.append(row)
            print(row.line(), flush=True)

    def started(self, model: Path, **settings: Any) -> Engine:
        """A start with these settings, ready."""
        request = LaunchRequest(
            model=str(model),
            engine=EngineKind.LLAMA_CPP,
            server=ServerChoice.OWN,
            overrides=Overrides(**settings),
            gpus=self.gpus,
        )
        return self.host.start(self.host.plan(request))

    def speed(self, name: str, model: Path) -> Iterable[Row]:
        """Decode through the host against llama-bench, interleaved: before and after."""
        before = llama_bench(self.folder, model, 99)
        engine = self.started(model, context=4096, streams=1, gpu_layers=-1, flash_attention="on")
        rates = decode_rates(self.host, engine)
        memory = {gpu.name: gpu.memory_used for gpu in self.host.info().gpus}
        pids = {process.pid for process in processes_of(engine)}
        holders = [holder for gpu in self.host.info().gpus for holder in gpu.holders if holder.pid in pids]
        self.host.stop(engine)
        after = llama_bench(self.folder, model, 99)
        bench = statistics.mean((before[1], after[1]))
        share = statistics.median(rates) / bench
        spread = f"{min(rates):.1f} to {max(rates):.1f}"
        yield Row(
            name, "decode against llama-bench", share >= LEAST_SHARE,
            f"{statistics.median(rates):.1f} tok/s ({spread}), {before[1]:.1f}, {after[1]:.1f}: {share:.3f}",
        )  # fmt: skip
        yield Row(name, "prefill of llama-bench", None, f"{before[0]:.0f} and {after[0]:.0f} tok/s")
        yield Row(
            name, "ready", True, f"after {engine.verified.ready_after:.1f} s" if engine.verified else "?"
        )
        yield Row(name, "memory by process", bool(holders), f"{[one.memory for one in holders]} of {memory}")

    def causes(self, name: str, model: Path) -> Iterable[Row]:
        """The server alone, in a few ways, beside llama-bench in the same minute."""
        bench = llama_bench(self.folder, model, 99)[1]
        for what, (options, body) in ALONE.items():
            rates = alone(self.folder, model, options, body)
            rate = statistics.median(rates)
            found = (
                f"{rate:.1f} tok/s ({min(rates):.1f} to {max(rates):.1f}): {rate / bench:.3f} of {bench:.1f}"
            )
            yield Row(name, f"server alone, {what}", None, found)

    def fit(self, name: str, model: Path, **settings: Any) -> Iterable[Row]:
        """The memory that was predicted beside what the server printed."""
        names = {"kv_type_k": "kv", "kv_type_v": "kv_v", "flash_attention": None}
        known = {names.get(key, key): value for key, value in settings.items()}
        question = FitRequest(
            model=str(model),
            engine=EngineKind.LLAMA_CPP,
            server=ServerChoice.OWN,
            use_gpus=self.gpus,
            **{key: value for key, value in known.items() if key in FitRequest.model_fields},
        )
        report = self.host.client.call(ops.FIT, question)
        engine = self.started(model, **settings)
        rate = statistics.median(decode_rates(self.host, engine))
        buffers = {key: value for key, value in engine.buffers.items() if value}
        pids = {process.pid for process in processes_of(engine)}
        seen = self.host.info().gpus
        held = {
            f"GPU {number}": [one.memory for one in gpu.holders if one.pid in pids]
            for number, gpu in enumerate(seen)
        }
        self.host.stop(engine)
        devices = {one.name: one.needed for one in report.devices}
        found = f"{rate:.1f} tok/s; predicted {devices}; printed {buffers}; held {held}"
        yield Row(name, str(settings), None, found)

    def drafts(self) -> Iterable[Row]:
        """The bundled model with its own MTP layer."""
        for kind in ("off", "draft-mtp"):
            engine = self.started(DEMO, context=4096, streams=1, gpu_layers=-1, speculation=kind)
            rate = statistics.median(decode_rates(self.host, engine))
            said = self.host.engine(engine.id).readings
            self.host.stop(engine)
            length = said.acceptance_length if said else None
            yield Row("demo", f"speculation {kind}", True, f"{rate:.1f} tok/s, acceptance length {length}")


def finished(check: Check, out: Path | None) -> int:
    """Write the rows down; 1 when one failed."""
    if out:
        out.write_text(json.dumps(as_json(check.rows), indent=1), encoding="utf-8")
    return int(any(row.passed is False for row in check.rows))


def main() -> int:
    """Run every check; 1 when one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--speed", action="store_true", help="speed and its causes only")
    part.add_argument("--fit", action="store_true", help="memory, offload and drafts only")
    parser.add_argument("--gpu", action="append", default=[], help="a GPU's number; all if none is said")
    parser.add_argument("--small", action="store_true", help="leave out the 8B shape")
    asked = parser.parse_args()
    print(HEADING, flush=True)
    with tempfile.TemporaryDirectory() as scratch, HostUnderTest(PATIENCE) as host:
        check = Check(host, asked.folder.absolute(), tuple(asked.gpu))
        models = {"demo": DEMO, "0.6B Q8_0": write_random_model(Path(scratch) / "small.gguf", QWEN3_06B)}
        if not asked.small:
            models["8B Q4_0"] = write_random_model(
                Path(scratch) / "large.gguf", QWEN3_8B, quantization="Q4_0"
            )
        for name, model in [] if asked.fit else models.items():
            check.add(name, "speed", lambda name=name, model=model: check.speed(name, model))
            check.add(name, "causes", lambda name=name, model=model: check.causes(name, model))
        last = list(models)[-1]
        if asked.speed:
            return finished(check, asked.out)
        layers = QWEN3_06B.layers if asked.small else QWEN3_8B.layers
        for settings in (
            {"gpu_layers": -1}, {"gpu_layers": layers // 2}, {"gpu_layers": 0},
            {"gpu_layers": -1, "kv_type_k": "q8_0", "kv_type_v": "q8_0"},
            {"gpu_layers": -1, "kv_type_k": "q4_0", "kv_type_v": "q4_0"},
            {"gpu_layers": -1, "flash_attention": "off"},
        ):  # fmt: skip
            given = {"context": 16_384, "streams": 2, "flash_attention": "on", **settings}
            check.add(last, "fit", lambda given=given: check.fit(last, models[last], **given))
        check.add("demo", "drafts", check.drafts)
        return finished(check, asked.out)


if __name__ == "__main__":
    raise SystemExit(main())
