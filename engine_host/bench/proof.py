"""The parts of a proof of the TurboQuant kernels: self-test, equal answers, speed; each judged by itself."""

import asyncio
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pydantic import ValidationError

from engine_host.bench.gpu.token_answers import differing, prompts
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import silent_engine
from engine_host.core.outside import answers, files
from engine_host.engines.metrics import MOST_BYTES, Metrics
from engine_host.engines.process.tool import ToolError, run_tool
from engine_host.engines.temporary import TemporaryEngine
from engine_host.engines.vllm.command import STRIPPED_ENVIRONMENT
from engine_host.engines.vllm.metrics import PREFIX
from engine_host.protocol.bench.proofs import DecodeSpeed, EqualAnswers, ProofVerdict, SelfTest
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, LaunchRequest
from engine_host.protocol.patches import PatchChoice, ProcessPatches

HERE = Path(__file__).parent
PATCH = "turboquant-grouped-attention"
HEAD_SIZE = 128
STREAMS = 16
TOKENS = 200
DRAFTS = 3
_ANSWER_SECONDS = 300.0
_MOST_ANSWER = 4 << 20
_MOST_FIGURES = 4 << 20
_SHOWN = 20


@dataclass(frozen=True)
class Tools:
    """A Python with vLLM, the packages it has, and the variables that show it one GPU alone."""

    python: Path
    site_packages: Path
    variables: Mapping[str, str]
    scratch: Path
    inherited: Mapping[str, str]

    async def run(self, script: Path, *words: str, on_line: Callable[[str], None] = lambda _: None) -> Any:
        """Run a script that writes a JSON file. Raises HostError(engine_unusable)."""
        out = self.scratch / f"{script.stem}.json"
        out.unlink(missing_ok=True)
        await self.do([str(self.python), str(script), *words, "--out", str(out)], on_line)
        try:
            return json.loads(files.read_text(out, _MOST_FIGURES))
        except (OSError, ValueError) as error:
            raise _odd(script.name, error) from error

    async def do(self, argv: Sequence[str], on_line: Callable[[str], None] = lambda _: None) -> None:
        """Run a program to its end. Raises HostError(engine_unusable)."""
        kept = {
            name: value for name, value in self.inherited.items() if not name.startswith(STRIPPED_ENVIRONMENT)
        }
        variables = {**kept, "PYTHONUNBUFFERED": "1", **self.variables}
        try:
            await run_tool(argv, cwd=self.scratch, environment=variables, log=io.StringIO(), on_line=on_line)
        except ToolError as error:
            lines = list(error.tail)[-_SHOWN:]
            raise HostError(
                Reason.ENGINE_UNUSABLE,
                tr("{argv} did not get to its end.", argv=Path(argv[1]).name),
                cause=next((line for line in reversed(lines) if line.strip()), ""),
                fix="See what it said; it needs an NVIDIA GPU that this Python's torch sees.",
                evidence={"argv": list(argv), "said": lines},
            ) from error


async def self_test(tools: Tools, kv: str, on_line: Callable[[str], None]) -> SelfTest:
    """Compare every kernel with float64. Raises HostError(engine_unusable) when it could not be run."""
    found = await tools.run(HERE / "gpu" / "self_test.py", "--kv", kv, on_line=on_line)
    try:
        return SelfTest.model_validate(found)
    except ValidationError as error:
        raise _odd(tr("The self-test"), error) from error


async def make_model(tools: Tools) -> Path:
    """Write a model with an MTP layer whose drafts are sometimes taken. Raises HostError(engine_unusable)."""
    folder = tools.scratch / "tiny-mtp"
    argv = [str(tools.python), str(HERE / "gpu" / "tiny_mtp_model.py"), str(folder), str(HEAD_SIZE)]
    await tools.do(argv)
    return folder


async def speed(tools: Tools, kv: str) -> DecodeSpeed:
    """Time decode on one shape, ours and over a bf16 cache. Raises HostError(engine_unusable)."""
    words = ["--only", kv.removeprefix("turboquant_")]
    flash = next((tools.site_packages / "vllm" / "vllm_flash_attn").glob("_vllm_fa3_C*.so"), None)
    if flash is not None:
        words += ["--flash", str(flash)]
    found = await tools.run(HERE / "kernels" / "turboquant.py", *words)
    try:
        (measured,) = found
        ours, theirs = measured["results"]["ours"], measured["results"].get("bf16")
        _, head, heads, kv_heads, length, batch, rows, _ = measured["shape"]
        return DecodeSpeed(
            shape=f"{head}, {heads}/{kv_heads} heads, {length // 1024}k × {batch}, {rows} queries",
            ours=ours["ms"][0],
            bf16=theirs["ms"][0] if theirs else None,
            bf16_by=str(theirs["backend"]) if theirs else "",
            error=ours["error"],
        )
    except (ValueError, KeyError, TypeError, LookupError) as error:
        raise _odd(tr("The measurement of the kernels"), error) from error


def _odd(what: str, error: Exception) -> HostError:
    return HostError(
        Reason.ENGINE_UNUSABLE,
        tr("{what} wrote something else than it should.", what=what),
        cause=str(error)[:400],
        fix="Install this program and its vLLM again.",
    )


def start(model: Path, installation: str, gpu: str, kv: str, *, drafts: bool) -> LaunchRequest:
    """The start whose answers are compared: batch-invariant, small, with room for another beside it.

    `gpu` is its UUID.
    """
    return LaunchRequest(
        model=str(model),
        engine=EngineKind.VLLM,
        installation=installation,
        gpus=(gpu,),
        overrides=Overrides(
            kv_cache_dtype=kv,
            speculation="mtp" if drafts else "off",
            draft_tokens=DRAFTS,
            context=4096,
            streams=STREAMS,
            batched_tokens=1024,
            gpu_memory=0.25,
            kv_cache_gib=1,
            prefix_caching=False,
            batch_invariant=True,
            # An earlier proof that failed must not keep this one from being made.
            allow_wrong_answers=True,
            # Graphs as in a usual start, without the minutes that compiling takes.
            extra_arguments=('--compilation-config={"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}',),
        ),
        patches=PatchChoice(on=(PATCH,)),
    )


@dataclass(frozen=True)
class Answered:
    """The answers of one start as token numbers, vLLM's counters of drafts, and the kernels that ran."""

    tokens: list[list[int]]
    drafted: int = 0
    accepted: int = 0
    kernels: str = ""


async def ask(engine: TemporaryEngine, told: Callable[[int], None] = lambda _: None) -> Answered:
    """Ask all prompts, sixteen at once. Raises HostError(engine_not_ready)."""
    asked = prompts()
    room, done = asyncio.Semaphore(STREAMS), 0

    async def one(prompt: Sequence[int]) -> list[int]:
        nonlocal done
        body = {
            "model": engine.plan.name,
            "prompt": list(prompt),
            "max_tokens": TOKENS,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        async with room:
            answer = await answers.fetch(
                engine.client, "/v1/completions", json=body, most=_MOST_ANSWER, seconds=_ANSWER_SECONDS
            )
        if not answer.is_success:
            raise ValueError(f"it answered {answer.status}: {answer.text[:300]}")
        found = answer.object()["choices"][0]["token_ids"]
        done += 1
        told(done)
        return [int(token) for token in found]

    try:
        tokens = list(await asyncio.gather(*map(one, asked)))
        said = await answers.fetch(engine.client, "/metrics", most=MOST_BYTES, seconds=30.0)
        counters = Metrics(said.text, PREFIX)
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise HostError(
            Reason.ENGINE_NOT_READY,
            tr("The engine did not answer: {error}.", error=f"{error!r:.300}"),
            cause=silent_engine(),
            fix="Try again; `sndr logs` has what it said.",
        ) from error
    return Answered(
        tokens,
        int(counters.total("spec_decode_num_draft_tokens_total") or 0),
        int(counters.total("spec_decode_num_accepted_tokens_total") or 0),
    )


def kernels_of(processes: Sequence[ProcessPatches]) -> str:
    """Return the kernels that an engine says it runs. Raises HostError(engine_unusable) for others.

    Answers of vLLM's own kernels, or of a model with other heads than it was made with, prove nothing.
    """
    results = [one for process in processes for one in process.results if one.patch == PATCH]
    sizes = {size for one in results for size in one.values.get("head_sizes", ())}
    if sizes == {HEAD_SIZE}:
        return next(one.detail for one in results if one.values)
    told = [f"{one.outcome.value}: {one.detail}" for one in results if one.detail]
    raise HostError(
        Reason.ENGINE_UNUSABLE,
        tr("The engine does not run these kernels on heads of {size}.", size=HEAD_SIZE),
        cause=tr("It tells: {told}", told=told) if told else "It tells no heads of its own.",
        fix="Read what it said in the log; it may be another vLLM than the kernels were written for.",
        evidence={"head_sizes": sorted(sizes), "said": told},
    )


def compared(with_drafts: Answered, without: Answered) -> EqualAnswers:
    """Compare the answers of two starts."""
    others = differing(with_drafts.tokens, without.tokens)
    total = max(len(with_drafts.tokens), len(without.tokens))
    return EqualAnswers(
        equal=total - len(others),
        of=total,
        drafted=with_drafts.drafted,
        accepted=with_drafts.accepted,
        differing=tuple(f"{index} from token {place}" for index, place in others),
        kernels=with_drafts.kernels,
    )


def judged(
    tested: SelfTest | None, equal: EqualAnswers | None, failures: Sequence[str]
) -> tuple[ProofVerdict, str]:
    """The verdict, and why it is no better. A speed decides nothing: slow kernels are right."""
    if tested is not None and not tested.passed:
        return ProofVerdict.WRONG, f"the self-test failed: {tested.why}"
    if equal is not None and equal.equal < equal.of:
        return ProofVerdict.WRONG, (
            f"{equal.of - equal.equal} of {equal.of} answers with MTP differ from those without: "
            + ", ".join(equal.differing[:5])
        )
    if equal is not None and not equal.accepted:
        return ProofVerdict.UNDECIDED, "no draft was taken, so answers with MTP say nothing"
    if tested is None or equal is None:
        return ProofVerdict.UNDECIDED, "; ".join(failures) or "a part was not run"
    return ProofVerdict.RIGHT, ""
