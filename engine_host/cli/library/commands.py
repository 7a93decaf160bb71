"""`sndr models`: list, search, download, verify, remove and restore models."""

import click

from engine_host.cli.library.lines import (
    choice_lines,
    found_lines,
    library_lines,
    model_lines,
    verified_lines,
)
from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.reading import reading
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.library import (
    DownloadedModel,
    DownloadModel,
    HubChoice,
    HubFiles,
    HubFilesQuery,
    HubQuery,
    RemoveModel,
    VerifiedModel,
    VerifyModel,
)
from engine_host.protocol.operations import library as ops
from engine_host.protocol.operations import table

_SCAN = click.option("--scan", is_flag=True, help="Look through the folders again first.")
_REVISION = click.option("--revision", default="main", show_default=True, help="A branch, tag or commit.")


@click.group(cls=WholeHelp, invoke_without_command=True)
@_SCAN
@command("sndr models")
def models(out: Output, scan: bool) -> Exit | None:
    """List the models of this machine; find, download, verify and delete them."""
    if click.get_current_context().invoked_subcommand is None:
        _list(out, scan)
    return None


@models.command("list")
@_SCAN
@command("sndr models list", "sndr models list --scan")
def show_list(out: Output, scan: bool) -> Exit | None:
    """List the models found on this machine."""
    _list(out, scan)
    return None


@models.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(1, 50), default=20, show_default=True)
@command("sndr models search qwen3 8b gguf")
def search(out: Output, words: tuple[str, ...], limit: int) -> Exit | None:
    """Ask Hugging Face (or HF_ENDPOINT) for models; nothing is downloaded."""
    with find_or_start() as hold:
        found = hold.client.call(ops.SEARCH_HUB, HubQuery(words=" ".join(words), limit=limit))
    if found.offline is not None:
        return out.problem(found.offline)
    out.result(found, found_lines(found))
    return None


@models.command("files")
@click.argument("repository")
@_REVISION
@command("sndr models files Qwen/Qwen3-8B-GGUF")
def files(out: Output, repository: str, revision: str) -> Exit | None:
    """Say what can be downloaded of REPOSITORY (organisation/model): sizes, what is here, the disk."""
    with find_or_start() as hold:
        found = hold.client.call(ops.HUB_FILES, HubFilesQuery(repository=repository, revision=revision))
    out.result(found, choice_lines(found))
    return None


@models.command("download")
@click.argument("repository")
@click.option("--choice", "--quant", "choice", help="Which one: Q4_K_M, safetensors, or a file's name.")
@_REVISION
@click.option("--companion", "companions", multiple=True, help="Also this file: a projector or a drafter.")
@click.option("--dry-run", is_flag=True, help="Say what would come, and download nothing.")
@command(
    "sndr models download Qwen/Qwen3-8B-GGUF --quant Q4_K_M", "sndr models download Qwen/Qwen3-8B --dry-run"
)
def download(
    out: Output,
    repository: str,
    choice: str | None,
    revision: str,
    companions: tuple[str, ...],
    dry_run: bool,
) -> Exit | None:
    """Download a model, pinned to its commit and checked by its hashes.

    Ctrl+C pauses: the same command goes on from there. It lands in the cache of Hugging Face, where vLLM and
    others find it too.
    """
    with find_or_start() as hold:
        asked = HubFilesQuery(repository=repository, revision=revision)
        found = hold.client.call(ops.HUB_FILES, asked)
        chosen = _chosen(found, choice)
        if dry_run:
            out.result(found.model_copy(update={"choices": (chosen,)}), choice_lines(found, chosen))
            return None
        out.note(f"{chosen.label} of {found.repository} at {found.commit[:12]}: {size(chosen.size)}.")
        download = DownloadModel(
            repository=found.repository,
            revision=found.commit,
            choice=chosen.id,
            companions=companions,
            named="" if revision == found.commit else revision,
        )
        ended = begin(hold.client, lambda: hold.client.call(ops.DOWNLOAD_MODEL, download), out)
        done = DownloadedModel.model_validate(ended.result)
    mark = (
        "✓ verified"
        if done.verified
        else "UNVERIFIED: the hub tells no hash of " + ", ".join(done.unverified_files)
    )
    lines = [f"{size(done.carried)} downloaded in {done.seconds:.0f} s. {mark}", done.path]
    if done.listed_as is not None:
        lines += [f"Start it:  sndr run {done.listed_as}"]
    out.result(done, lines)
    return None


@models.command("downloads")
@command("sndr models downloads")
def downloads(out: Output) -> Exit | None:
    """List downloads that are not whole, deleted models that can come back, and the disk."""
    with find_or_start() as hold:
        page = hold.client.call(ops.LIBRARY)
    out.result(page, library_lines(page))
    return None


@models.command("discard")
@click.argument("download_id", metavar="DOWNLOAD")
@command("sndr models discard 3f2a9c1d")
def discard(out: Output, download_id: str) -> Exit | None:
    """Give up a paused download and remove what came of it."""
    with find_or_start() as hold:
        page = hold.client.call(ops.DISCARD_DOWNLOAD, id=download_id)
    out.result(page, library_lines(page))
    return None


@models.command("verify")
@click.argument("model")
@command("sndr models verify qwen3-8b")
def verify(out: Output, model: str) -> Exit | None:
    """Hash the files of MODEL and compare with what its place in a cache promises; 1 when one is another."""
    with find_or_start() as hold:
        found = VerifiedModel.model_validate(
            begin(
                hold.client, lambda: hold.client.call(ops.VERIFY_MODEL, VerifyModel(model=model)), out
            ).result
        )
    out.result(found, verified_lines(found))
    return Exit.FAILED if found.right is False else None


@models.command("remove")
@click.argument("model")
@click.option("--shared", is_flag=True, help="Also where it lies in the folder of another program.")
@command("sndr models remove qwen3-8b")
def remove(out: Output, model: str, shared: bool) -> Exit | None:
    """Delete MODEL; it can come back for a day. Not while an engine uses it."""
    with find_or_start() as hold:
        gone = hold.client.call(ops.REMOVE_MODEL, RemoveModel(model=model, shared=shared))
    out.result(
        gone,
        [
            f"{gone.model} is deleted. {size(gone.size)} are free once it is gone for good, in a day.",
            f"Back:       sndr models restore {gone.id}",
            "For good:   sndr models empty",
        ],
    )
    return None


@models.command("restore")
@click.argument("trashed_id", metavar="DELETED")
@command("sndr models restore 3f2a9c1d")
def restore(out: Output, trashed_id: str) -> Exit | None:
    """Put a deleted model back; `sndr models downloads` lists which can come back."""
    with find_or_start() as hold:
        back = hold.client.call(ops.RESTORE_MODEL, id=trashed_id)
    out.result(back, f"{back.model} is back at {back.path}.")
    return None


@models.command("empty")
@command("sndr models empty")
def empty(out: Output) -> Exit | None:
    """Delete for good what was deleted, which frees the disk."""
    with find_or_start() as hold:
        page = hold.client.call(ops.EMPTY_TRASH)
    out.result(page, f"Nothing is left in the trash. {size(page.free)} are free.")
    return None


def _list(out: Output, scan: bool) -> None:
    with reading() as host:
        page = host.call(table.SCAN_MODELS if scan else table.MODELS)
    out.result(page, model_lines(page))


def _chosen(found: HubFiles, wanted: str | None) -> HubChoice:
    """Return the choice that is meant; the only one where none was named."""
    if wanted is None and len(found.choices) == 1:
        return found.choices[0]
    same = [one for one in found.choices if wanted is not None and wanted in {one.id, *_names(one)}]
    same = same or [one for one in found.choices if wanted and one.label.lower() == wanted.lower()]
    # Q8_K_XL is the one that its makers call UD-Q8_K_XL.
    ending = f"-{wanted.lower()}" if wanted else ""
    same = same or [one for one in found.choices if ending and one.label.lower().endswith(ending)]
    if len(same) == 1:
        return same[0]
    known = ", ".join(f"{one.label} ({size(one.size)})" for one in found.choices) or tr("nothing to download")
    raise HostError(
        Reason.BAD_REQUEST if wanted is None or same else Reason.NOT_FOUND,
        tr("Which of {repository}?", repository=found.repository)
        if wanted is None
        else tr("{repository} has no {wanted} alone.", repository=found.repository, wanted=repr(wanted)),
        cause=tr("There are: {known}.", known=known),
        fix=Fix(text="Name one with --choice.", command=f"sndr models files {found.repository}"),
    )


def _names(choice: HubChoice) -> set[str]:
    return {file.name for file in choice.files} if choice.format == "GGUF" else set()
