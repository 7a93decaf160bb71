"""`sndr prove`: are the TurboQuant kernels right on this GPU, and how fast."""

import time

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.protocol.bench.proofs import Proof, ProofPage, ProofVerdict, ProveKernels
from engine_host.protocol.operations import table as ops


@click.command("prove")
@click.option(
    "--gpu", metavar="UUID", help="By its UUID or number (default: the one with the most free memory)."
)
@click.option("--installation", metavar="ID", help="Which vLLM, e.g. 0.32.0-cuda, or the folder of your own.")
@click.option(
    "--kv-cache-dtype",
    type=click.Choice(["turboquant_k8v4", "turboquant_4bit_nc"]),
    default="turboquant_k8v4",
    show_default=True,
    help="The type of the KV cache to prove.",
)
@click.option("--list", "listed", is_flag=True, help="Show what was proven here, and what holds.")
@command("sndr prove", "sndr prove --list")
def prove(
    out: Output, gpu: str | None, installation: str | None, kv_cache_dtype: str, listed: bool
) -> Exit | None:
    """Prove the TurboQuant kernels on this machine's GPU: right answers, and how fast.

    Every kernel against float64, answers of a small model with MTP on and off token by token (in
    batch-invariant mode), and decode beside bf16. It takes some minutes, and no engine may run. What comes
    out is kept, and a start with TurboQuant says so; 5 when the kernels are wrong here.
    """
    with find_or_start() as hold:
        if listed:
            page = hold.client.call(ops.PROOFS)
            out.result(page, _table(page))
            return None
        asked = ProveKernels(gpu=gpu, installation=installation, kv_cache_dtype=kv_cache_dtype)
        job = begin(hold.client, lambda: hold.client.call(ops.PROVE, asked), out)
    found = Proof.model_validate(job.result)
    out.result(found, _told(found))
    return None if found.verdict is ProofVerdict.RIGHT else Exit.ENGINE


def _told(proof: Proof) -> list[str]:
    where = f"{proof.gpu}, driver {proof.driver}, vLLM {proof.vllm}, {proof.kv_cache_dtype}"
    lines = [f"{proof.verdict.value.upper()} on {where} ({proof.seconds:.0f} s)"]
    if (tested := proof.self_test) is not None:
        worst = "no number" if tested.worst_error is None else f"{tested.worst_error:.1e}"
        lines.append(
            f"self-test: {'ok' if tested.passed else 'WRONG'}, {tested.shapes} shapes, kernels "
            f"{tested.kernels}, largest error {worst}, {tested.rows_that_differ} rows depend on others"
        )
    if (equal := proof.answers) is not None:
        lines.append(
            f"answers with MTP on and off: {equal.equal} of {equal.of} equal, {equal.accepted} of "
            f"{equal.drafted} drafts taken{f'; {equal.kernels}' if equal.kernels else ''}"
        )
    if (speed := proof.speed) is not None:
        bf16 = "bf16 not measured" if speed.bf16 is None else f"bf16 {speed.bf16:.3f} ms ({speed.bf16_by})"
        times = "" if speed.times_bf16 is None else f", {speed.times_bf16:.2f} × as fast"
        lines.append(f"decode of {speed.shape}: {speed.ours:.3f} ms, {bf16}{times}")
    if proof.why:
        lines.append(f"because {proof.why}")
    return lines


def _table(page: ProofPage) -> list[str]:
    if not page.proofs:
        return ["Nothing was proven on this machine yet.", "Prove TurboQuant on a GPU: sndr prove"]
    rows = [
        (
            time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at)),
            one.gpu,
            one.driver,
            one.vllm,
            one.kv_cache_dtype,
            one.verdict.value,
            one.summary() or one.why,
            one.stale or "holds",
        )
        for one in page.proofs
    ]
    return table(("when", "GPU", "driver", "vLLM", "KV type", "verdict", "figures", "now"), rows)
