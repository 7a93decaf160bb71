"""`sndr keys`: who may use the endpoint, with or without a running host."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import connected, may_do_without
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.sync import ControlClient
from engine_host.connect.facts import KEY_VARIABLE
from engine_host.core.addresses import is_loopback
from engine_host.core.errors import HostError
from engine_host.core.keys.file import KeyFile
from engine_host.core.paths import Folders
from engine_host.core.settings import SettingsFile
from engine_host.protocol.endpoint.keys import ApiKey, CreateKey, KeyPage, Permission
from engine_host.protocol.operations import endpoint as endpoint_ops

Answer = TypeVar("Answer")


@click.group(cls=WholeHelp)
def keys() -> None:
    """Say who may use the endpoint: make, list and revoke API keys."""


@keys.command("create")
@click.argument("name")
@click.option(
    "--may",
    "permissions",
    multiple=True,
    type=click.Choice([permission.value for permission in Permission]),
    help="infer asks models (what a key may by default), admin also sees how the endpoint is used.",
)
@command("sndr keys create laptop", "sndr keys create ops --may infer --may admin")
def create(out: Output, name: str, permissions: tuple[str, ...]) -> Exit | None:
    """Make a key called NAME and print it, this once: only its hash is kept."""
    wanted = tuple(Permission(one) for one in dict.fromkeys(permissions)) or (Permission.INFER,)
    asked = CreateKey(name=name, permissions=wanted)
    made = _asked(
        lambda client: client.call(endpoint_ops.CREATE_KEY, asked),
        lambda file: file.create(asked.name, asked.permissions),
    )
    out.result(made, made.key)
    out.note("Keep it now: it is not shown again. Clients send it as Authorization: Bearer KEY or x-api-key.")
    kept = _asked(lambda client: client.call(endpoint_ops.KEYS), KeyFile.page).keys
    if [one.id for one in kept] == [made.entry.id]:
        out.note(
            "It is the first key: from now on the endpoint refuses every request without one, those of this "
            "machine too (curl, editors and agents that are set up already). `sndr connect CLIENT` says "
            f"where a client takes it from, a shell has it after `export {KEY_VARIABLE}=KEY`. The window and "
            f"`sndr chat` need none. `sndr keys revoke {made.entry.id}` takes it back."
        )
    return None


@keys.command("list")
@command("sndr keys list")
def show(out: Output) -> Exit | None:
    """Print the names of the keys, what each may do, and the plain file that some come from."""
    page = _asked(lambda client: client.call(endpoint_ops.KEYS), KeyFile.page)
    rows = [(one.id, one.name, " ".join(one.permissions), _day(one), _remark(one)) for one in page.keys]
    lines = table(("id", "name", "may", "made", "note"), rows) if rows else ["No key: any is accepted here."]
    if page.plain_file:
        lines += [
            "",
            f"{page.plain_file} holds keys as plain text. They work without it: delete the file, or make new "
            "ones with sndr keys create NAME.",
        ]
    out.result(page, lines)
    return None


@keys.command("revoke")
@click.argument("key")
@command("sndr keys revoke laptop")
def revoke(out: Output, key: str) -> Exit | None:
    """Revoke KEY, a name or an id; the next request with it is refused."""
    page = _asked(
        lambda client: client.call(endpoint_ops.REVOKE_KEY, id=key),
        lambda file: _revoked(file, key),
    )
    left = f"{len(page.keys)} left." if page.keys else "No API key is left, so the endpoint asks for none."
    out.result(page, f"{key} is revoked. {left}")
    return None


def _asked(host: Callable[[ControlClient], Answer], without: Callable[[KeyFile], Answer]) -> Answer:
    """Have the host do it where one runs; else do it in the file that the next one reads."""
    folders = Folders.resolve()
    try:
        with connected(folders) as client:
            return host(client)
    except HostError as error:
        if not may_do_without(error):
            raise
    return without(KeyFile(folders.config))


def _revoked(file: KeyFile, which: str) -> KeyPage:
    settings = SettingsFile(Folders.resolve().settings)
    settings.load()
    file.revoke(which, needed=not is_loopback(settings.current.endpoint.host))
    return file.page()


def _day(key: ApiKey) -> str:
    return datetime.fromtimestamp(key.created_at).strftime("%Y-%m-%d") if key.created_at else ""


def _remark(key: ApiKey) -> str:
    remarks = ["from api-keys" if key.plain_file else "", "short: replace it" if key.weak else ""]
    return ", ".join(filter(None, remarks))
