"""`sndr presets verify`: whether a preset's files are byte for byte those of the catalogue."""

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.job_progress import begin
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import CheckedFile, CheckedFiles


@click.command("verify")
@click.argument("preset")
@command("sndr presets verify qwen3-8b-k8v4-24")
def verify(out: Output, preset: str) -> Exit | None:
    """Hash the files of PRESET and compare them with the catalogue; 5 when one is another."""
    with find_or_start() as hold:
        ended = begin(hold.client, lambda: hold.client.call(ops.VERIFY_PRESET, id=preset), out)
    found = CheckedFiles.model_validate(ended.result)
    out.result(found, [_line(file) for file in found.files])
    return None if found.right else Exit.ENGINE


def _line(file: CheckedFile) -> str:
    if file.sha256 is None:
        return f"{file.name}: cannot be read: {file.problem}."
    if file.right:
        return f"{file.name}: right."
    return f"{file.name}: another file ({file.path}). Its SHA-256 is {file.sha256}, not {file.expected}."
