"""`sndr chats`: list, show, export and remove what Chat has kept on this machine; no host is asked."""

import time
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.text.tables import table
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.chats import export as exports
from engine_host.client.chats.record import LONGEST_TITLE, title_of
from engine_host.client.chats.store import ChatStore
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_LONGEST_SHOWN = 60


@click.group(cls=WholeHelp)
def chats() -> None:
    """List, export and remove the conversations of the window's Chat.

    They lie in files of this machine that only you can read, the newest 500; `keep conversations` in the
    window's Settings switches that off. An ID can be given by its beginning.
    """


@chats.command("list")
@click.option("--search", metavar="WORDS", default="", help="Only those whose title or messages hold them.")
@command("sndr chats list --search kernel")
def list_chats(out: Output, search: str) -> Exit | None:
    """List the conversations, the newest first."""
    store = _store()
    found, damaged = store.search(search) if search.strip() else store.entries()
    result = {
        "folder": str(store.folder),
        "unreadable": damaged,
        "chats": [
            {
                "id": entry.id,
                "title": entry.title,
                "changed": entry.changed,
                "host": entry.host,
                "engines": list(entry.engines),
                "messages": entry.messages,
            }
            for entry in found
        ],
    }
    rows = [
        (
            entry.id,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.changed)),
            str(entry.messages),
            ", ".join(entry.engines) or "-",
            title_of(entry.title)[:_LONGEST_SHOWN],
        )
        for entry in found
    ]
    lines = table(("id", "changed", "messages", "models", "title"), rows) if rows else []
    if not rows:
        lines = [
            "No conversation holds these words." if search.strip() else "No conversation is kept here.",
        ]
    out.result(result, lines)
    if damaged:
        out.note(f"{damaged} of the files in {store.folder} cannot be read.")
    return None


@chats.command("export")
@click.argument("chat", metavar="ID")
@click.option("--format", "form", type=click.Choice(["md", "json"]), help="The ending of PATH, or md.")
@click.option("--output", metavar="PATH", help="Write it to this file, readable by you alone.")
@command("sndr chats export 3f2a --output talk.md")
def export_chat(out: Output, chat: str, form: str | None, output: str | None) -> Exit | None:
    """Print a conversation as Markdown, or as JSON with every branch; or write it to a file."""
    store = _store()
    found = store.read(_whole_id(store, chat))
    as_json = form == "json" or (
        form is None and (out.as_json or (output or "").casefold().endswith(".json"))
    )
    text = exports.as_json(found) if as_json else exports.as_markdown(found)
    if output is not None:
        exports.write(Path(output), text)
        out.result({"path": output, "id": found.id}, f"Written to {output}.")
    else:
        out.result(found, text.rstrip("\n"))
    return None


@chats.command("rename")
@click.argument("chat", metavar="ID")
@click.argument("title")
@command("sndr chats rename 3f2a 'Kernel questions'")
def rename_chat(out: Output, chat: str, title: str) -> Exit | None:
    """Give a conversation another title."""
    if not title_of(title):
        raise click.UsageError(f"The title is empty. Give up to {LONGEST_TITLE} characters.")
    store = _store()
    renamed = store.rename(_whole_id(store, chat), title)
    out.result({"id": renamed.id, "title": renamed.title}, f"{renamed.id} is “{renamed.title}”.")
    return None


@chats.command("remove")
@click.argument("chat", metavar="[ID]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every conversation, also those that cannot be read.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command("sndr chats remove 3f2a", "sndr chats remove --all --yes")
def remove_chats(out: Output, chat: tuple[str, ...], every: bool, yes: bool) -> Exit | None:
    """Delete conversations for good."""
    if bool(chat) is every:
        raise click.UsageError("Name conversations, or give --all: `sndr chats list` lists them.")
    store = _store()
    found = list(store.ids()) if every else [_whole_id(store, one) for one in dict.fromkeys(chat)]
    if every and not yes and out.as_json:
        raise click.UsageError("With --json nobody is asked: give --yes too.")
    if every and found and not yes:
        click.confirm(f"Delete {len(found)} conversations for good?", abort=True, err=True)
    for one in found:
        store.remove(one)
    said = f"{len(found)} conversations" if every else ", ".join(found)
    out.result({"removed": found}, f"Removed {said}.")
    return None


def _store() -> ChatStore:
    return ChatStore(Folders.resolve().chats)


def _whole_id(store: ChatStore, said: str) -> str:
    """The id that is meant. Raises HostError(not_found), HostError(conflict) for the beginning of several."""
    ids = store.ids()
    begun = [one for one in ids if said and one.startswith(said)]
    if said in ids or len(begun) == 1:
        return said if said in ids else begun[0]
    if begun:
        raise HostError(
            Reason.CONFLICT,
            tr("{said} is the beginning of {count} conversations.", said=said, count=len(begun)),
            cause=tr(
                "They are {begun}{what}.", begun=", ".join(begun[:5]), what=" …" if len(begun) > 5 else ""
            ),
            fix=Fix(text="Give more of it.", command="sndr chats list"),
        )
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no conversation {said}.", said=said[:80]),
        cause="It was deleted, or held on another machine or by another user.",
        fix=Fix(text="See which there are.", command="sndr chats list"),
    )
