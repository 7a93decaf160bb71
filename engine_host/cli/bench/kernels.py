"""`sndr bench`, and the kernels that the program brings along on this machine's own GPU."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_SCRIPT = Path(__file__).parents[2] / "bench" / "kernels" / "turboquant.py"


@click.group(cls=WholeHelp)
def bench() -> None:
    """Measure engines, and what the program brings along."""


@bench.command("kernels")
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Python with torch for CUDA and Triton (default: that of the newest installed vLLM).",
)
@click.option(
    "--vllm",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder that holds vllm/, to measure vLLM's own kernels (default: that Python's).",
)
@click.option("--quick", is_flag=True, help="Our kernels alone.")
@command("sndr bench kernels --quick")
def kernels(out: Output, python: Path | None, vllm: Path | None, quick: bool) -> Exit | None:
    """Time and check the TurboQuant kernels on this GPU, beside vLLM's and FlashAttention 3.

    Random data, medians with spread, shares of the copy bandwidth measured in the same run, each answer
    compared with float64. It takes a minute and 20 GB of GPU memory: stop engines first.
    """
    if host := chosen_host():
        raise click.UsageError(f"This measures the GPU of this machine, without --host {host}.")
    python = python or _installed_python()
    words = [str(python), str(_SCRIPT)]
    if quick:
        words.append("--quick")
    else:
        words += _beside(python, vllm)
    with tempfile.TemporaryDirectory(prefix="sndr-") as scratch:
        figures = Path(scratch) / "figures.json"
        done = subprocess.run(
            [*words, "--out", str(figures)],
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE if out.as_json else None,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not figures.is_file():
            errors = done.stderr.strip().splitlines()
            raise HostError(
                Reason.ENGINE_UNUSABLE,
                "The kernels could not be measured.",
                cause=errors[-1]
                if errors
                else tr("Python ended with {returncode}.", returncode=done.returncode),
                fix="It needs an NVIDIA GPU, and a Python whose torch sees it.",
                evidence={"python": str(python), "exit": done.returncode, "said": "\n".join(errors[-20:])},
            )
        if out.as_json:
            out.record({"figures": json.loads(figures.read_text(encoding="utf-8"))})
    return None


def _installed_python() -> Path:
    """The Python of the newest installed vLLM for CUDA. Raises HostError(not_found)."""
    found = (Folders.resolve().cache / "vllm-environments").glob("*-cuda/bin/python")
    newest = max(found, key=lambda path: [int(part) for part in _numbers(path)], default=None)
    if newest is None:
        raise HostError(
            Reason.NOT_FOUND,
            "vLLM for CUDA is not installed here.",
            cause="The kernels run in its environment, which has torch and Triton.",
            fix=Fix(
                text="Install it, or name another Python.", command="sndr engine install vllm --build cuda"
            ),
        )
    return newest


def _numbers(python: Path) -> list[str]:
    return [part for part in python.parents[1].name.removesuffix("-cuda").split(".") if part.isdigit()]


def _beside(python: Path, vllm: Path | None) -> list[str]:
    """Return the arguments that add vLLM's kernels, if that version has both, and FlashAttention 3."""
    site = vllm or next((python.parents[1] / "lib").glob("python3.*/site-packages"), None)
    words: list[str] = []
    if site is None:
        return words
    if (site / "vllm" / "v1" / "attention" / "ops" / "turboquant_soa").is_dir():
        words += ["--vllm", str(site)]
    flash = next((site / "vllm" / "vllm_flash_attn").glob("_vllm_fa3_C*.so"), None)
    return words if flash is None else [*words, "--flash", str(flash)]
