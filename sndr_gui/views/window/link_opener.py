"""Follows links into the window: to a page, and to what is chosen on it; nothing is started by one."""

from __future__ import annotations

from PySide6.QtCore import QObject

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from sndr_gui.models.window.links import Link, LinkRefusedError, parse
from sndr_gui.views.window.context import PageContext
from sndr_gui.views.window.pages import PAGES, page_entry

_NOTICE = "link"


class LinkOpener(QObject):
    """Follows links about this machine's host; what they name is looked up there first."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._waiting: Link | None = None
        context.session.connection.changed.connect(self._on_link)

    def open(self, text: str) -> None:
        """Follow a link, or say why not; what it names is looked up as soon as the host answers."""
        try:
            link = parse(text, frozenset(page.name for page in PAGES))
        except LinkRefusedError as refused:
            self._context.session.notices.warning(_NOTICE, str(refused))
            return
        if link.preset or link.host:
            self._waiting = link
            self._on_link()
        else:
            self._context.go(link.page)
            self._say(link)

    def _on_link(self) -> None:
        link, session = self._waiting, self._context.session
        if link is None or not session.connection.connected:
            return
        self._waiting = None
        if link.host:
            if link.host in session.state.remote_hosts:
                self._context.show_host(link.host)
                self._say(link)
            else:
                self._lacks(tr("There is no host called {host}.", host=link.host), link)
            return

        async def work(client: AsyncControlClient) -> None:
            known = {item.preset.id for item in (await client.call(ops.PRESETS)).presets}
            if link.preset in known:
                self._show_preset(link)
                self._say(link)
            else:
                self._lacks(tr("There is no preset {preset}.", preset=link.preset), link)

        def failed(error: HostError) -> None:
            said = str(error) if error.lost else error.problem.sentence()
            session.notices.error(_NOTICE, tr("A link was not followed: {said}", said=said))

        session.command("follow a link", work, failed=failed)

    def _show_preset(self, link: Link) -> None:
        context = self._context
        match link.page:
            case "launch":
                context.show_preset(link.preset)
            case "fit":
                context.open_fit(link.preset)
            case _:
                context.go("presets")
                context.presets.open(link.preset)

    def _say(self, link: Link) -> None:
        # Who did not click one sees that a link from somewhere else did this, and that it did no more.
        about = f", {link.preset or link.host}" if link.preset or link.host else ""
        title = page_entry(link.page).title
        self._context.session.notices.info(
            _NOTICE, tr("A link led here: {title}{about}. It started nothing.", title=title, about=about)
        )

    def _lacks(self, said: str, link: Link) -> None:
        self._context.go(link.page)
        title = page_entry(link.page).title
        self._context.session.notices.warning(
            _NOTICE, tr("{said} The link led to {title} alone.", said=said, title=title)
        )
