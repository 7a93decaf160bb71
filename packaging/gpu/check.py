"""Checks the whole product on this machine, with a vLLM that is there already, and prints a table.

usage: python packaging/gpu/check.py --installation VENV [--cpu] [--gpus N] [--out FILE] [PART …]

start: the bundled model through host and endpoint (k8v4, MTP 3), the ledger, the probe, telemetry by process,
fit beside what was reserved, then `kill -9`. restart: the same plan again, then a worker killed, where there
are any. equal: answers with MTP on and off, in batch-invariant mode. Without a name these three are run.
prove: `sndr prove` on the freest GPU, or the one of `--gpu`. starts: the same plan again, by turns with
`engine-core-imports-early` and without (of a `--shape` only with it). reuse: a conversation, whose next turns
come from the prefix cache, in each `--type` (16 bits). turns: the time to the first token of next turns, in
`--shape`. quality: `sndr bench quality` of the bundled model or of `--model`. The file has what they found.
`make gpu-check` first makes what it needs. Each row is printed as soon as it is known; the exit code is 1
when one failed.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import judge
import next_turns
import psutil
import repeated_starts
from host_under_test import HostUnderTest, alive, processes_of, wait_for
from judge import HEADING, Row, Table

from engine_host.bench.gpu.token_answers import prompts
from engine_host.client.chat_stream import ask
from engine_host.protocol.bench.proofs import Proof, ProveKernels
from engine_host.protocol.bench.quality import MeasureQuality, QualityReport
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.fit import MeasuredPage
from engine_host.protocol.launch.plans import EngineKind, LaunchPlan, LaunchRequest, Overrides
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PatchChoice, ProcessRole
from engine_host.protocol.telemetry import TelemetryQuery

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "engine_host" / "bench" / "gpu" / "tiny_mtp_model.py"
PARTS = ("start", "restart", "equal")
ALSO = ("prove", "reuse", "turns", "quality", "starts")
PATCHES = (
    "turboquant-grouped-attention",
    "turboquant-boundary-layers",
    "draft-head-8-bit",
    "hopper-flash-attention-3",
)
ADD = "Write a function that adds two numbers"
PATIENCE = 540.0
_TOLD = 60.0
_TOKENS = 200
_AT_ONCE = 16


class Check:
    """One run on one machine."""

    def __init__(self, asked: argparse.Namespace, table: Table, host: HostUnderTest) -> None:
        self.asked = asked
        self.table = table
        self.host = host
        self.said: str | None = None
        self.results: dict[str, Any] = {}
        self.used_before = {gpu.index: gpu.memory_used for gpu in self.own_gpus()}

    def request(self, model: str, *, drafts: bool, **more: Any) -> LaunchRequest:
        """A start of a model: the cache and the drafts that the check is of."""
        overrides: dict[str, Any] = {"speculation": "mtp" if drafts else "off", "draft_tokens": 3}
        if self.asked.cpu:
            overrides |= {"kv_cache_gib": 1}
        else:
            overrides |= {
                "kv_cache_dtype": self.asked.kv,
                "tensor_parallel": self.asked.gpus,
                "eager": self.asked.eager,
                "extra_arguments": tuple(self.asked.argument),
            }
        overrides |= more
        quantised = str(overrides.get("kv_cache_dtype", "")).startswith("turboquant")
        return LaunchRequest(
            model=model,
            engine=EngineKind.VLLM,
            installation=str(self.asked.installation.absolute()),
            overrides=Overrides(**overrides),
            patches=PatchChoice(on=tuple(self.asked.patch) if quantised else ()),
            gpus=tuple(self.asked.gpu),
        )

    def machine(self) -> Iterable[Row]:
        """What this machine is."""
        info = self.host.info()
        yield Row("host", "starts", True, f"after {self.host.serves_after:.1f} s, {info.program}")
        cards = [
            f"{gpu.name} {gpu.memory_total // 2**20} MiB SM {gpu.compute_capability}" for gpu in info.gpus
        ]
        found = "; ".join(cards) or info.gpu_absence_detail
        enough = self.asked.cpu or len(info.gpus) >= self.asked.gpus
        yield Row("host", "GPUs", enough, f"{found}, driver {info.driver}, CUDA {info.cuda}")

    def planned(self, part: str, request: LaunchRequest) -> LaunchPlan:
        """The plan of a start, and the row that tells of it."""
        plan = self.host.plan(request)
        errors = [finding.message for finding in plan.findings if finding.severity.value == "error"]
        self.table.add(Row(part, "plan", plan.startable, "; ".join(errors) or plan.server_version))
        return plan

    def started(self, part: str, plan: LaunchPlan, *, drafts: bool) -> Engine:
        """A start of it, ready."""
        engine = self.host.start(plan)
        self.table.add(*judge.ready(part, engine.verified, engine.stages, drafts))
        return engine

    # ------------------------------------------------------------------ start

    def product(self) -> None:
        """The bundled model as a person would run it."""
        part = "start"
        # Eight streams of its whole length: what a small machine has room for.
        plan = self.planned(part, self.request("sndr-demo", drafts=True, context=4096, streams=8))
        began = time.time()
        engine = self.started(part, plan, drafts=True)
        self.table.attempt(part, "endpoint", lambda: self.endpoint(part))
        self.table.attempt(part, "several at once", lambda: self.several(part, engine))
        self.table.attempt(part, "ledger", lambda: self.patches(part, engine))
        self.table.attempt(part, "telemetry", lambda: self.telemetry(part, engine))
        self.table.attempt(part, "fit", lambda: self.reserved(part, began))
        self.table.attempt(
            part, "kill -9", lambda: self.killed(part, engine, processes_of(engine)[:1], "engine")
        )

    def endpoint(self, part: str) -> Iterable[Row]:
        """Models, a chat, its stream, a tool call: over TCP as editors ask."""
        models = [one["id"] for one in self._models()]
        yield Row(part, "endpoint lists the model", models == ["sndr-demo"], ", ".join(models))
        chat = ask(self.host.url, "sndr-demo", ADD, max_tokens=160)
        body: dict[str, Any] = {"model": "sndr-demo", "temperature": 0, "max_tokens": 160}
        question = [{"role": "user", "content": ADD}]
        answer = self.host.ask("chat/completions", {**body, "messages": question})
        text = str(answer["choices"][0]["message"]["content"])
        yield Row(part, "a chat", "def " in text, f"{' '.join(text.split())[:60]} … {chat.speed()}")
        if self.said is not None:
            yield Row(part, "it answers as before", self.said == text, f"{len(text)} characters")
        self.said = text
        chunks = self.host.stream("chat/completions", {**body, "messages": question})
        streamed = "".join(
            choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
        )
        yield Row(part, "its stream says the same", streamed == text, f"{len(chunks)} chunks")
        weather = [{"role": "user", "content": "What is the weather in Oslo?"}]
        called = self.host.ask("chat/completions", {**body, "messages": weather, "tools": [judge.WEATHER]})
        calls = called["choices"][0]["message"].get("tool_calls") or []
        functions = [call["function"] for call in calls]
        right = [(one["name"], json.loads(one["arguments"])) for one in functions] == [
            ("get_weather", {"city": "Oslo"})
        ]
        yield Row(part, "a tool call", right, json.dumps(functions))

    def _models(self) -> list[dict[str, Any]]:
        with httpx.Client(trust_env=False) as http:
            found = http.get(f"{self.host.url}/models").json()["data"]
        assert isinstance(found, list)
        return found

    def several(self, part: str, engine: Engine) -> Iterable[Row]:
        """Many streams at once: all end, drafts are taken, and how fast it was."""
        body = {"model": "sndr-demo", "max_tokens": _TOKENS, "temperature": 0, "ignore_eos": True}
        prompts = [f"def function_{number}(x):\n    " for number in range(32)]
        began = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(
                pool.map(lambda prompt: self.host.ask("completions", {**body, "prompt": prompt}), prompts)
            )
        seconds = time.monotonic() - began
        tokens = [answer["usage"]["completion_tokens"] for answer in answers]
        speed = f"{sum(tokens) / seconds:,.0f} tok/s, {len(tokens)} requests, {_AT_ONCE} at once"
        yield Row(part, "several at once", set(tokens) == {_TOKENS}, speed)
        yield judge.acceptance(part, self.counters(engine))

    def counters(self, engine: Engine) -> dict[str, float]:
        """The engine's own counters."""
        with self.host.engine_itself(engine) as http:
            return judge.counters(http.get("/metrics").text)

    def patches(self, part: str, engine: Engine) -> Iterable[Row]:
        """The ledger and the probe."""
        client = self.host.client
        yield from judge.ledger(part, client.call(ops.ENGINE_PATCHES, id=engine.id))
        yield from judge.probe(part, client.call(ops.PROBE_PATCHES, id=engine.id))

    def telemetry(self, part: str, engine: Engine) -> Iterable[Row]:
        """What the host measures while the engine is there."""
        pids = [process.pid for process in processes_of(engine)]
        if not self.asked.cpu:
            yield from judge.gpu_memory(part, self.host.info().gpus, pids, self.asked.gpus)
        memory = self.host.engine(engine.id).readings
        resident = memory.memory if memory else None
        found = f"{(resident or 0) / 2**30:.2f} GiB resident in {len(pids)} processes"
        yield Row(part, "main memory of the engine", bool(resident), found)
        series = [one.name for one in self.host.client.call(ops.TELEMETRY, TelemetryQuery()).series if one.at]
        wanted = {"gpu": not self.asked.cpu, engine.id: True}
        missing = [name for name, asked in wanted.items() if asked and not any(name in one for one in series)]
        yield Row(part, "series are kept", not missing, f"{len(series)} series")

    def reserved(self, part: str, began: float) -> Iterable[Row]:
        """Fit's prediction beside what this start reserved, and what the driver says of the whole."""

        def compared() -> MeasuredPage | None:
            page = self.host.client.call(ops.FIT_STARTS)
            return page if any(one.at >= began for one in page.starts) else None

        page = wait_for(compared, "a start that was compared", _TOLD)
        yield from judge.fit(part, [one for one in page.starts if one.at >= began])
        for index, taken in self.taken().items():
            yield Row(part, f"GPU {index}: taken since the start", None, f"{taken / 2**30:.2f} GiB")

    def own_gpus(self) -> Iterable[Gpu]:
        """The GPUs that this check may use: those that were named, else all."""
        gpus = self.host.info().gpus
        return [gpu for gpu in gpus if not self.asked.gpu or str(gpu.index) in self.asked.gpu]

    def taken(self) -> dict[int, int]:
        """Bytes of each GPU that were not taken when the host had just started."""
        return {gpu.index: gpu.memory_used - self.used_before.get(gpu.index, 0) for gpu in self.own_gpus()}

    def killed(self, part: str, engine: Engine, victims: list[psutil.Process], who: str) -> Iterable[Row]:
        """`kill -9`: the end is told with its reason, and nothing stays."""
        family = processes_of(engine)
        for victim in victims:
            victim.kill()
        ended = self.host.until(engine.id, {EngineState.FAILED}, _TOLD)
        problem = ended.problem
        told = f"{problem.reason}: {problem.message}" if problem else "no reason"
        yield Row(part, f"kill -9 of the {who} is told", problem is not None, told)
        yield from self.nothing_stays(part, engine, family)

    def nothing_stays(self, part: str, engine: Engine, family: list[psutil.Process]) -> Iterable[Row]:
        """No process, no file of the run, and the GPUs as they were before."""
        began = time.monotonic()
        limit = 512 * 2**20

        def left() -> dict[str, Any]:
            used = self.taken()
            names = (path.name for path in self.host.folders.run.rglob("*"))
            found = {
                "processes": alive(family),
                "files": [name for name in names if engine.plan.id in name],
                "GPU MiB": {index: size >> 20 for index, size in used.items() if size > limit},
            }
            return {name: what for name, what in found.items() if what}

        try:
            wait_for(lambda: not left(), "nothing to stay", _TOLD)
        except RuntimeError:
            yield Row(part, "nothing stays", False, json.dumps(left()))
        else:
            yield Row(part, "nothing stays", True, f"after {time.monotonic() - began:.1f} s")

    # ------------------------------------------------------------------ restart

    def again(self) -> None:
        """The same start once more, then a worker killed where the engine has any."""
        part = "restart"
        plan = self.planned(part, self.request("sndr-demo", drafts=True, context=4096, streams=8))
        engine = self.started(part, plan, drafts=True)
        self.table.attempt(part, "endpoint", lambda: self.endpoint(part))
        found = self.host.client.call(ops.ENGINE_PATCHES, id=engine.id)
        workers = [process.pid for process in found.processes if process.role is ProcessRole.WORKER]
        workers = [pid for pid in workers if pid not in {one.pid for one in processes_of(engine)[:1]}]
        if workers:
            victim = [psutil.Process(workers[-1])]
            self.table.attempt(part, "kill -9", lambda: self.killed(part, engine, victim, "worker"))
            return
        self.table.attempt(part, "stop", lambda: self.stopped(part, engine))

    def stopped(self, part: str, engine: Engine) -> Iterable[Row]:
        """An orderly end."""
        family = processes_of(engine)
        began = time.monotonic()
        self.host.stop(engine)
        yield Row(part, "stops", True, f"after {time.monotonic() - began:.1f} s")
        yield from self.nothing_stays(part, engine, family)

    # ------------------------------------------------------------------ equal

    def equality(self) -> None:
        """Answers with MTP on and off, token by token, of a model whose drafts are sometimes taken.

        vLLM has no batch-invariant mode for hybrids nor for its CPU build: there the model is in 32 bits.
        """
        part = "equal"
        model = self.host.home / "tiny-mtp"
        size = [] if self.asked.cpu else ["128"]
        python = self.asked.installation / "bin" / "python"
        subprocess.run([str(python), str(TINY), str(model), *size], check=True, capture_output=True)
        answers: dict[bool, list[list[int]]] = {}
        for drafts in (True, False):
            mode: dict[str, Any] = {"context": 4096, "streams": _AT_ONCE, "prefix_caching": False}
            mode |= {"dtype": "float32"} if self.asked.cpu else {"batch_invariant": True}
            what = f"{part}, MTP {'on' if drafts else 'off'}"
            engine = self.started(
                what, self.planned(what, self.request(str(model), drafts=drafts, **mode)), drafts=drafts
            )
            answers[drafts] = self.tokens(engine, 64 if self.asked.cpu else 512)
            if drafts:
                self.table.add(judge.acceptance(part, self.counters(engine)), *self.stopped(part, engine))
        self.table.add(judge.equal(part, answers[True], answers[False]))

    def tokens(self, engine: Engine, vocabulary: int) -> list[list[int]]:
        """The answers to prompts of 1 to 2500 token numbers, always the same ones, as token numbers."""
        body = {
            "model": engine.name,
            "max_tokens": 60 if self.asked.cpu else _TOKENS,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        with self.host.engine_itself(engine) as http, ThreadPoolExecutor(_AT_ONCE) as pool:

            def one(prompt: list[int]) -> list[int]:
                answer = http.post("/v1/completions", json={**body, "prompt": prompt})
                answer.raise_for_status()
                return list(answer.json()["choices"][0]["token_ids"])

            return list(pool.map(one, prompts(16 if self.asked.cpu else 40, vocabulary)))

    # ------------------------------------------------------------------ prove

    def proof(self) -> None:
        """`sndr prove` on this GPU, and what a plan then says."""
        part = "prove"
        asked = ProveKernels(
            installation=str(self.asked.installation.absolute()),
            kv_cache_dtype=self.asked.kv,
            gpu=self.asked.gpu[0] if self.asked.gpu else None,
        )
        job = self.host.ended(self.host.client.call(ops.PROVE, asked), "proof")
        found = Proof.model_validate(job.result)
        self.results[part] = job.result
        self.table.add(*judge.proof(part, found))
        plan = self.host.plan(self.request("sndr-demo", drafts=True, context=4096, streams=8))
        said = [one.message for one in plan.findings if one.id.startswith("turboquant")]
        self.table.add(Row(part, "a plan says so", "proven here" in " ".join(said), "; ".join(said)))

    # ------------------------------------------------------------------ reuse

    def reuse(self) -> None:
        """A conversation in each type, 16 bits by default: what its turns find in the prefix cache."""
        for kv in ("auto",) if self.asked.cpu else self.asked.type or ("auto",):
            self.conversation(f"reuse, {kv}" if self.asked.type else "reuse", kv)

    def conversation(self, part: str, kv: str) -> None:
        """One with the bundled model."""
        more = {} if self.asked.cpu else {"kv_cache_dtype": kv}
        request = self.request("sndr-demo", drafts=True, context=4096, streams=8, **more)
        engine = self.started(part, self.planned(part, request), drafts=True)
        self.table.attempt(part, "conversation", lambda: self.turns(part, engine))
        self.table.attempt(part, "ledger", lambda: self.patches(part, engine))
        self.table.attempt(part, "stop", lambda: self.stopped(part, engine))

    def long_turns(self) -> None:
        """Long conversations with each shape, random weights, not compiled."""
        for shape in self.asked.shape or ("qwen36-27b", "qwen36-35b-a3b"):
            part = f"turns, {shape}"
            model = next_turns.shape_of(shape, self.host.home / shape)
            mode: dict[str, Any] = {"context": next_turns.CONTEXT, "streams": 2, "eager": True}
            plan = self.planned(part, self.request(str(model), drafts=True, **mode))
            engine = self.started(part, plan, drafts=True)
            results = self.results.setdefault(part, [])
            found = next_turns.measure(part, self.host, engine, results, asked=not self.asked.cpu)
            self.table.attempt(part, "turns", found.__iter__)
            self.table.attempt(part, "stop", self.stopped(part, engine).__iter__)

    def turns(self, part: str, engine: Engine) -> Iterable[Row]:
        """Each turn is all before it and a new question, asked through the endpoint."""
        usages = next_turns.short_conversation(self.host, ADD)
        with self.host.engine_itself(engine) as http:
            metrics = http.get("/metrics").text
        # vLLM's CPU build has no prefix cache for hybrids that draft.
        yield judge.found_again(part, usages, metrics, asked=not self.asked.cpu)

    def repeated(self) -> None:
        """The same plan again and again, by turns with a patch that is to shorten a start."""

        model, room, kinds = repeated_starts.chosen(self.asked.shape, self.host.home, cpu=self.asked.cpu)

        def once(part: str, early: bool) -> Engine:
            request = self.request(model, drafts=True, **room)
            off = () if early else (repeated_starts.EARLY,)
            patches = PatchChoice(on=request.patches.on, off=off)
            plan = self.planned(part, request.model_copy(update={"patches": patches}))
            return self.started(part, plan, drafts=True)

        repeated_starts.measure(self.table, once, self.stopped, kinds=kinds)

    # ------------------------------------------------------------------ quality

    def quality(self) -> None:
        """`sndr bench quality`: each type beside 16 bits; one that cannot be run is a row that failed."""
        part = "quality"
        asked = MeasureQuality(
            model=self.asked.model,
            engine=EngineKind.VLLM,
            installation=str(self.asked.installation.absolute()),
            kv=tuple(self.asked.type or ()),
            # A run has ten minutes on some machines, and each type is a start.
            answers=4,
            answer_tokens=64,
            overrides=Overrides(extra_arguments=() if self.asked.cpu else tuple(self.asked.argument)),
            gpus=tuple(self.asked.gpu),
        )
        job = self.host.ended(self.host.client.call(ops.MEASURE_QUALITY, asked), part)
        self.results[part] = job.result
        self.table.add(*judge.quality(part, QualityReport.model_validate(job.result)))

    def run(self) -> None:
        """The parts that were asked for; one that breaks off does not keep the next from running."""
        self.table.attempt("host", "starts", self.machine)
        steps = {
            "start": self.product,
            "restart": self.again,
            "equal": self.equality,
            "prove": self.proof,
            "reuse": self.reuse,
            "turns": self.long_turns,
            "quality": self.quality,
            "starts": self.repeated,
        }
        for part in self.asked.part or PARTS:
            began = time.monotonic()

            def whole(part: str = part, began: float = began) -> Iterable[Row]:
                steps[part]()
                yield Row(part, "seconds of this part", None, f"{time.monotonic() - began:.0f}")

            self.table.attempt(part, "ran to its end", whole)


def main() -> int:
    """Run the parts, print the table, say how many rows failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", metavar=" | ".join((*PARTS, *ALSO)))
    parser.add_argument(
        "--installation", type=Path, required=True, help="a virtual environment with vLLM in it"
    )
    parser.add_argument("--cpu", action="store_true", help="vLLM's CPU build: no TurboQuant, 32 bits")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--gpu", action="append", default=[], help="one of them by its number, where other")
    parser.add_argument("--kv", default="turboquant_k8v4")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--patch", action="append", help="on here, beside those that are by default")
    parser.add_argument("--argument", action="append", help="one of vLLM's own, for each start")
    parser.add_argument("--model", default="sndr-demo", help="of quality: another one")
    parser.add_argument("--type", action="append", help="of quality and reuse: types of the KV cache")
    parser.add_argument("--shape", action="append", help="of turns, starts: one of tests/unit/fit/shapes")
    parser.add_argument("--out", type=Path, help="where the rows are also written, as JSON")
    asked = parser.parse_args()
    if unknown := set(asked.part) - {*PARTS, *ALSO}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    asked.patch = PATCHES if asked.patch is None else asked.patch
    asked.argument = ["--gdn-prefill-backend=triton"] if asked.argument is None else asked.argument
    table = Table()
    began = time.monotonic()
    print(HEADING, flush=True)
    results: dict[str, Any] = {}
    try:
        with HostUnderTest(PATIENCE) as host:
            check = Check(asked, table, host)
            results = check.results
            check.run()
            family = psutil.Process(host.process.pid).children(recursive=True)
            code = host.end()
            left = alive(family)
            found = f"exit code {code}, {len(left)} processes left"
            table.add(Row("host", "ends, and engines with it", code == 0 and not left, found))
    finally:
        report = judge.as_json(
            table.rows, asked=_plain(asked), seconds=round(time.monotonic() - began), results=results
        )
        if asked.out:
            asked.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(f"\n{len(table.rows)} rows, {report['failed']} failed, {report['seconds']} s")
    return int(bool(report["failed"]))


def _plain(asked: argparse.Namespace) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in vars(asked).items()}


if __name__ == "__main__":
    sys.exit(main())
