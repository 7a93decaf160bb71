"""Rows of a table, each a pass, a failure or a figure, from what the host says of a start."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import httpx

from engine_host.bench.gpu.token_answers import differing
from engine_host.core.errors import HostError
from engine_host.overlay.summary import process_name
from engine_host.protocol.bench.proofs import Proof, ProofVerdict
from engine_host.protocol.bench.quality import QualityReport
from engine_host.protocol.engines import StageTime, Verification
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.fit import KV_TOKENS, Measured
from engine_host.protocol.patches import EnginePatches, PatchOutcome, ProcessRole

TOLERANCE = 0.03
"""How far a prediction of memory may be from what was reserved."""
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The city"}},
            "required": ["city"],
        },
    },
}
"""The tool that a model is offered."""
_BAD = {PatchOutcome.SKIPPED, PatchOutcome.FAILED, PatchOutcome.REVERTED}


@dataclass(frozen=True)
class Row:
    """One line of the table; `passed` is None for a figure that nothing is asked of."""

    part: str
    check: str
    passed: bool | None
    found: str

    @property
    def verdict(self) -> str:
        """The word in the table."""
        return {True: "pass", False: "FAIL", None: "figure"}[self.passed]

    def line(self) -> str:
        """One row of a Markdown table."""
        found = self.found.replace("|", "/").replace("\n", " ")
        return f"| {self.part} | {self.check} | {self.verdict} | {found} |"


HEADING = "| part | check | verdict | found |\n|---|---|---|---|"


@dataclass
class Table:
    """Rows as they come; each is printed at once, since a run may be cut off."""

    rows: list[Row] = field(default_factory=list)

    def add(self, *rows: Row) -> None:
        """Take them in and print them."""
        for row in rows:
            self.rows.append(row)
            print(row.line(), flush=True)

    def attempt(self, part: str, check: str, found: Callable[[], Iterable[Row]]) -> None:
        """Add what a check finds; one that raises is a row that failed, and the others go on."""
        try:
            # One by one: those before an error stay.
            for row in found():
                self.add(row)
        except (HostError, httpx.HTTPError, RuntimeError, OSError, ValueError, LookupError) as error:
            self.add(Row(part, check, False, f"{type(error).__name__}: {error}"))


def as_json(rows: Iterable[Row], **more: Any) -> dict[str, Any]:
    """The whole run as one object."""
    kept = list(rows)
    return {**more, "failed": sum(row.passed is False for row in kept), "rows": [asdict(row) for row in kept]}


def ready(
    part: str, verified: Verification | None, stages: Sequence[StageTime], drafts: bool
) -> Iterable[Row]:
    """How long a start took, and where the time went."""
    if verified is None:
        yield Row(part, "ready", False, "it was not verified")
        return
    yield Row(part, "ready", verified.token_generated, f"after {verified.ready_after:.1f} s")
    times = (f"{stage.name} {stage.ended_at - stage.started_at:.1f}" for stage in stages if stage.ended_at)
    yield Row(part, "stages, s", None, " · ".join(times))
    if drafts:
        yield Row(part, "drafts are made", bool(verified.speculation_moved), "by vLLM's own counter")


def ledger(part: str, patches: EnginePatches) -> Iterable[Row]:
    """Every planned patch took effect somewhere, none was given up, and all workers have the same."""
    chosen = set(patches.planned.chosen) if patches.planned else set()
    applied: dict[str, list[str]] = {patch: [] for patch in sorted(chosen)}
    given_up = []
    for process in patches.processes:
        for result in process.results:
            where = applied.setdefault(result.patch, [])
            if result.outcome is PatchOutcome.APPLIED and process_name(process) not in where:
                where.append(process_name(process))
            if result.outcome in _BAD:
                given_up.append(f"{result.patch} {result.outcome} in {process_name(process)} {result.detail}")
    yield Row(part, "ledger: none given up", not given_up, "; ".join(given_up) or patches.summary)
    nowhere = [patch for patch in sorted(chosen) if not applied[patch]]
    found = "; ".join(nowhere) or f"{len(chosen)} patches"
    yield Row(part, "ledger: each planned patch is applied", bool(chosen) and not nowhere, found)
    for patch, places in applied.items():
        yield Row(part, f"patch {patch}", None, ", ".join(places) or "nowhere")
    workers = [
        {result.patch for result in process.results if result.outcome is PatchOutcome.APPLIED}
        for process in patches.processes
        if process.role is ProcessRole.WORKER
    ]
    if len(workers) > 1:
        yield Row(
            part, "all workers have the same", len(set(map(frozenset, workers))) == 1, f"{len(workers)}"
        )
    overhead = [process.overhead_ms for process in patches.processes if process.overhead_ms is not None]
    if overhead:
        yield Row(part, "overlay's cost, most of a process", None, f"{max(overhead):.0f} ms")


def probe(part: str, patches: EnginePatches) -> Iterable[Row]:
    """Every process says what is live in it; helpers, which compile or track resources, are not asked."""
    asked = 0
    dead: list[str] = []
    hits: dict[str, int] = {}
    for process in patches.processes:
        if process.role is ProcessRole.HELPER:
            continue
        for result in process.results:
            if result.outcome is not PatchOutcome.APPLIED:
                continue
            if result.probe is None:
                dead.append(f"{result.patch} in {process_name(process)}: no answer")
                continue
            asked += 1
            if not result.probe.live:
                dead.append(f"{result.patch} in {process_name(process)}: {result.probe.why}")
            if result.probe.hits is not None:
                hits[result.patch] = hits.get(result.patch, 0) + result.probe.hits
    yield Row(
        part, "probe: what is applied is live", asked > 0 and not dead, "; ".join(dead) or f"{asked} live"
    )
    if hits:
        counted = ", ".join(f"{patch} {count}" for patch, count in sorted(hits.items()))
        yield Row(part, "probe: times reached", None, counted)


def gpu_memory(part: str, cards: Sequence[Gpu], pids: Sequence[int], gpus: int) -> Iterable[Row]:
    """The engine's processes hold memory of as many GPUs as it was given, as the driver tells."""
    held = []
    for gpu in cards:
        for holder in gpu.holders:
            if holder.pid in pids:
                size = "unknown" if holder.memory is None else f"{holder.memory / 2**30:.2f} GiB"
                held.append((gpu.index, f"GPU {gpu.index}: {holder.name or holder.pid} {size}"))
    right = len({index for index, _ in held}) == gpus
    listed = sorted({holder.pid for gpu in cards for holder in gpu.holders})
    found = "; ".join(text for _, text in held) or f"the driver lists {listed}, the engine is {list(pids)}"
    yield Row(part, f"memory by process on {gpus} GPUs", right, found)


def fit(part: str, starts: Sequence[Measured]) -> Iterable[Row]:
    """What fit predicted beside what the engine reserved."""
    if not starts:
        yield Row(part, "fit: the start was compared", False, "no comparison")
    for one in starts:
        tokens = one.part == KV_TOKENS
        sizes = (
            f"{one.predicted:,} tokens, {one.measured:,} made"
            if tokens
            else f"{one.predicted / 2**20:,.1f} MiB, {one.measured / 2**20:,.1f} MiB taken"
        )
        right = abs(one.error) <= TOLERANCE if tokens else None
        yield Row(part, f"fit: {one.part} predicted", right, f"{sizes} ({one.error:+.2%})")


def equal(part: str, one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> Row:
    """Answers of two starts, token by token."""
    others = differing(one, other)
    total = max(len(one), len(other))
    found = f"{total - len(others)} of {total}"
    if others:
        found += ", differing: " + ", ".join(f"{index} from token {place}" for index, place in others)
    enough = total > 0 and all(map(len, one))
    return Row(part, "answers with MTP equal those without", enough and not others, found)


def acceptance(part: str, metrics: Mapping[str, float]) -> Row:
    """How many drafts were taken, by vLLM's counters."""
    drafts = metrics.get("vllm:spec_decode_num_drafts_total", 0)
    drafted = metrics.get("vllm:spec_decode_num_draft_tokens_total", 0)
    accepted = metrics.get("vllm:spec_decode_num_accepted_tokens_total", 0)
    found = f"{accepted:,.0f} of {drafted:,.0f} drafted tokens"
    if drafts:
        found += f", length {1 + accepted / drafts:.2f}"
    return Row(part, "drafts were taken", drafted > 0 and accepted > 0, found)


def found_again(part: str, usages: Sequence[Mapping[str, Any]], metrics: str, *, asked: bool) -> Row:
    """The next turns of a conversation: at most one block is computed again beside what is new.

    `asked`: whether that is wanted here, or only told.
    """
    size = re.search(r'cache_config_info\{[^}]*\bblock_size="(\d+)"', metrics)
    block = int(size[1]) if size else 0
    right, told = block > 0 and len(usages) > 1, []
    for before, now in pairwise(usages):
        cached = (now.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        right = right and cached >= int(before["prompt_tokens"]) - block
        told.append(f"{cached} of {now['prompt_tokens']}")
    found = f"{', '.join(told)} tokens, blocks of {block}"
    return Row(part, "next turns come from the prefix cache", right if asked else None, found)


def proof(part: str, found: Proof) -> Iterable[Row]:
    """The parts of a proof, and its verdict."""
    tested, equal, speed = found.self_test, found.answers, found.speed
    if tested is not None:
        worst = "no number" if tested.worst_error is None else f"{tested.worst_error:.1e}"
        told = f"{tested.shapes} shapes, kernels {tested.kernels}, largest error {worst} {tested.why}"
        yield Row(part, "self-test", tested.passed, told)
    if equal is not None:
        told = f"{equal.equal} of {equal.of}, {equal.accepted:,} of {equal.drafted:,} drafts taken"
        yield Row(part, "answers with MTP equal those without", equal.passed, told)
    if speed is not None:
        bf16 = "not measured" if speed.bf16 is None else f"{speed.bf16:.4f} ms by {speed.bf16_by}"
        told = f"{speed.shape}: {speed.ours:.4f} ms, bf16 {bf16}"
        times = speed.times_bf16
        yield Row(part, "decode beside bf16", None, told + (f", {times:.2f} ×" if times else ""))
    right = found.verdict is ProofVerdict.RIGHT
    yield Row(part, "verdict", right, f"{found.verdict} after {found.seconds:.0f} s {found.why}")


def quality(part: str, report: QualityReport) -> Iterable[Row]:
    """Each type of the KV cache with its figures; one that could not be measured has failed."""
    where = f"{report.measured_positions} positions of {report.text}, windows of {report.asked.context}"
    yield Row(part, "measured", None, f"{report.model}, {report.server_version}: {where}")
    for row in report.rows:
        if row.perplexity is None:
            yield Row(part, row.kv, False, row.problem.sentence() if row.problem else "not measured")
            continue
        told = [f"perplexity {row.perplexity:.4f}"]
        if row.divergence is not None:
            told.append(f"KL {row.divergence:.6f} nats (99 % {row.divergence_99:.5f})")
            told.append(f"same best {row.same_best:.2%}")
        told.append(f"needles {sum(one.found for one in row.needles)} of {len(row.needles)}")
        if row.agreed:
            told.append(f"answers agree for {sorted(row.agreed)} of {report.asked.answer_tokens}")
        yield Row(part, row.kv, None, " · ".join(told))


def counters(text: str) -> dict[str, float]:
    """Counters of vLLM's /metrics, summed over their labels."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0]
            found[name] = found.get(name, 0.0) + float(value)
    return found
