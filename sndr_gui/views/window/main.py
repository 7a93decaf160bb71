"""The window: sidebar, pages, shortcuts, command palette, status bar; paints before the host is known."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QMouseEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMainWindow,
    QVBoxLayout,
    QWidget,
)

from engine_host.protocol.language import tr
from sndr_gui.host.notices import Notices
from sndr_gui.kit import theme
from sndr_gui.kit.look import level
from sndr_gui.kit.look.page_stack import PageStack
from sndr_gui.kit.settings import SettingsFile
from sndr_gui.kit.shortcuts import choose, each, keys
from sndr_gui.kit.single_window import Handover
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.kit.typed_commands import mark_host
from sndr_gui.models.window.history import History, Place
from sndr_gui.models.window.lifetime import lifetime
from sndr_gui.models.window.palette import ACTION, PAGE, Entry, with_recent
from sndr_gui.views.faults.page import made, tell_shown
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.labels import Dot, ElidedLabel, set_text
from sndr_gui.views.widgets.layout import column, row
from sndr_gui.views.widgets.page import Page, place_of
from sndr_gui.views.window.focus import FocusKeeper, keep_last, tab_from
from sndr_gui.views.window.pages import GROUPS, PAGES, page_entry, visited_title
from sndr_gui.views.window.palette import Palette
from sndr_gui.views.window.placing import place as place_window
from sndr_gui.views.window.sidebar import Sidebar
from sndr_gui.views.window.toasts import Toasts

if TYPE_CHECKING:
    from sndr_gui.models.window.actions import Actions
    from sndr_gui.models.window.close_confirmation import CloseConfirmation
    from sndr_gui.views.engine.choice import EngineChoice
    from sndr_gui.views.window.context import PageContext
    from sndr_gui.views.window.link_opener import LinkOpener

_TONES = {
    "starting": "accent",
    "connected": "good",
    "reconnecting": "warn",
    "failed": "bad",
    "mismatch": "bad",
}
_PRESSES = (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick)


class Window(QMainWindow):
    """The program's one window.

    Signals:
        closing: the person wants to leave
        painted: the window was painted for the first time
    """

    closing = Signal()
    painted = Signal()

    def __init__(self, file: SettingsFile, notices: Notices) -> None:
        super().__init__()
        self.setWindowTitle("SNDR Control Center")
        choose(file.current.keys)
        level.choose(file.current.level)
        self._file = file
        self._notices = notices
        self._close_confirmation: CloseConfirmation | None = None
        self._context: PageContext | None = None
        self.engine_choice: EngineChoice | None = None
        # The pages of each host on its own: nothing of one is left on those of another.
        self._contexts: dict[str, PageContext] = {}
        self._built: dict[tuple[str, str], Page] = {}
        self._front: Page | None = None
        self._current = "home"
        self._history = History()
        self._links: list[str] = []
        self._opener: LinkOpener | None = None
        self._was_painted = False
        self._tab_start: QWidget | None = None
        self._stack = PageStack()
        FocusKeeper(self._stack)
        self.sidebar = Sidebar(GROUPS, file.current.sidebar_folded)
        self.sidebar.chosen.connect(self.go)
        self.sidebar.fold_wanted.connect(self._on_fold)
        middle = QHBoxLayout()
        middle.setContentsMargins(0, 0, 0, 0)
        middle.setSpacing(0)
        middle.addWidget(self.sidebar)
        self.toasts = Toasts(notices)
        middle.addLayout(column(self._stack, self.toasts, spacing=0), 1)
        center = QWidget()
        outer = QVBoxLayout(center)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addLayout(middle, 1)
        outer.addWidget(self._make_status())
        self._center = center
        self.setCentralWidget(center)
        # Nothing is marked at first; Tab goes to the first page.
        center.setFocus()
        self.palette_box = Palette(self, self._entries, lambda: file.current.recent_commands)
        self.palette_box.ran.connect(self._on_ran)
        for entry in PAGES:
            self._shortcut(entry.shortcut, self.sidebar.buttons[entry.name].click)
        self._shortcut(keys("fold"), self._on_fold)
        self._shortcut(keys("palette"), self._on_commands)
        for pressed in each("sheet"):
            self._shortcut(pressed, self._on_sheet)
        self._shortcut(keys("back"), self.go_back)
        self._shortcut(keys("forward"), self.go_forward)
        self._shortcut(keys("filter"), self._on_find)
        self._shortcut(keys("close"), self.close)
        page = file.current.page if file.current.page in self.sidebar.buttons else "home"
        self._show_placeholder(page)
        place_window(self, file.current.geometry)

    def _make_status(self) -> QWidget:
        bar = QWidget()
        bar.setObjectName("statusbar")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        bar.setFixedHeight(30)
        self._dot = Dot("accent")
        self._status = ElidedLabel(tr("Starting the engine host…"))
        self._commands = button(
            tr("Commands  {keys}", keys=keys("palette")),
            self._on_commands,
            kind="flat",
            hint=tr("All commands  ({keys})", keys=keys("palette")),
        )
        self._commands.setAccessibleName(tr("Commands"))
        line = self._strip = row(self._dot, self._status, self._commands, spacing=8)
        line.setStretch(1, 1)
        line.setContentsMargins(12, 0, 8, 0)
        bar.setLayout(line)
        return bar

    def _shortcut(self, pressed: str, run: object) -> None:
        QShortcut(QKeySequence(pressed), self).activated.connect(run)

    # Pages.

    def _show_placeholder(self, name: str) -> None:
        placeholder = place_of(page_entry(name).title)
        set_text(placeholder.subtitle, tr("Starting the engine host…"))
        self._stack.addWidget(placeholder)
        self._current = name
        self.sidebar.mark(name)

    def attach(self, context: PageContext) -> None:
        """Show real pages from now on."""
        from sndr_gui.models.hosts.questions import QuestionsModel
        from sndr_gui.models.window.close_confirmation import (
            CloseConfirmation,  # Knows the host's client, which the first picture does without.
        )
        from sndr_gui.views.window.host_choice import HostChoice
        from sndr_gui.views.window.link_opener import LinkOpener

        self._context = context
        self._close_confirmation = CloseConfirmation(context.session, self._file)
        context.hosts.asked.connect(self._on_asked)
        placeholder = self._stack.currentWidget()
        self._join(context)
        self._add_engine_choice(context)
        fleet = context.fleet
        fleet.chosen_changed.connect(self._on_host)
        fleet.forgotten.connect(self._on_forgotten)
        self._questions = QuestionsModel(context.session)
        self._questions.changed.connect(self._on_question)
        self.host_choice = HostChoice(fleet)
        self.sidebar.add_host_choice(self.host_choice)
        self._shortcut(keys("host"), self.host_choice.open)
        self.go(self._current)
        if placeholder is not None:
            self._stack.removeWidget(placeholder)
            placeholder.deleteLater()
        self._on_link()
        self._opener = LinkOpener(context)
        self.open_links(())

    def take_over(self, asked: Handover) -> None:
        """Come to the front for a later start of the program, and follow its links."""
        if asked.activation:
            # Qt's part for Wayland reads it there, and takes it away, when a window comes to the front.
            os.environ["XDG_ACTIVATION_TOKEN"] = asked.activation
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()
        self.open_links(asked.arguments)

    def open_links(self, links: Sequence[str]) -> None:
        """Follow links, as soon as the pages are there."""
        self._links += links
        if self._opener is not None:
            links, self._links = self._links, []
            for link in links:
                self._opener.open(link)

    def _join(self, context: PageContext) -> None:
        """Listen to what a host's models want of the window; once for each host."""
        self._contexts[context.session.host] = context
        context.session.connection.changed.connect(self._on_link)
        for changed in (
            context.session.state.host_changed,
            context.session.state.settings_changed,
            context.session.state.engines_changed,
        ):
            changed.connect(self._on_link)
        context.settings.look_changed.connect(theme.wear)
        # A partial with the context would keep both: no collector sees what Qt holds of a connection.
        context.actions.asked.connect(self._on_asked)
        for listed in (
            context.launch.presets.rows_changed,
            context.patches.rows_changed,
            context.routes.changed,
            context.session.state.models_changed,
            context.session.state.engines_changed,
        ):
            listed.connect(self.palette_box.refresh)

    def _on_host(self) -> None:
        """Show the pages of the host that was chosen; those of the one before stay as they are."""
        before = self._context
        if before is None:
            return
        fleet = before.fleet
        self.palette_box.hide()
        name = fleet.chosen
        if name not in self._contexts:
            make = type(before)  # Its module is loaded after the first picture.
            self._join(make(fleet.session, self._file, self.go, self._contexts[""]))
        self._context = self._contexts[name]
        self._add_engine_choice(self._context)
        self.go(self._current)
        self._on_link()

    def _on_question(self) -> None:
        """Ask what ssh asks, whichever page is in front."""
        from sndr_gui.views.hosts.question import QuestionDialog

        if (question := self._questions.question) is not None:
            QuestionDialog(self, self._questions, question).open()

    def _on_forgotten(self, name: str) -> None:
        """Take away the pages of a host that was removed."""
        for key in [key for key in self._built if key[0] == name]:
            self._drop(key)
        self._contexts.pop(name, None)
        self._history.forget(name)

    def _drop(self, key: tuple[str, str]) -> None:
        page = self._built.pop(key)
        tell_shown(page, False, self._report)
        self._stack.removeWidget(page)
        page.deleteLater()

    def _make_anew(self, key: tuple[str, str]) -> None:
        self._drop(key)
        self.go(key[1])

    def _add_engine_choice(self, context: PageContext) -> None:
        from sndr_gui.views.engine.choice import EngineChoice

        if self.engine_choice is not None:
            self._strip.removeWidget(self.engine_choice)
            self.engine_choice.hide()
            self.engine_choice.deleteLater()
        self.engine_choice = EngineChoice(
            context.session.state, label="", name=tr("Engine of all pages"), brief=True
        )
        self._strip.insertWidget(self._strip.indexOf(self._commands), self.engine_choice)

    def _on_asked(self, actions: Actions) -> None:
        """Ask what a start waits for, wherever it was begun."""
        from sndr_gui.views.window.start_question import ask

        ask(self, actions)

    @property
    def current(self) -> str:
        """The name of the page in front."""
        return self._current

    @property
    def page(self) -> Page:
        """The page in front."""
        assert self._front is not None
        return self._front

    def go(self, name: str) -> None:
        """Bring a page to the front; built when it is first shown."""
        if self._context is None:
            self._current = name
            self.sidebar.mark(name)
            return
        before, entry = self._front, page_entry(name)
        context = self._contexts[""] if entry.here else self._context
        key = (context.session.host, name)
        if key not in self._built:
            self.sidebar.mark(name)
            self._stack.cover(place_of(entry.title))
            page = made(entry.title, lambda: entry.build(context), lambda: self._make_anew(key), self._report)
            mark_host(page, context.session.host)
            self._built[key] = page
            self._stack.addWidget(page)
        self._current = name
        page = self._front = self._built[key]
        if before is not None and before is not page:
            focused, nav = self.focusWidget(), self.sidebar.buttons
            other = focused in nav.values() and focused is not nav[name]
            if focused is not None and (other or before.isAncestorOf(focused)):
                # Otherwise Qt would mark whatever control comes next; Tab goes into the page that came.
                self._center.setFocus()
            self._tab_start = page
            tell_shown(before, False, self._report)
        self._stack.setCurrentWidget(page)
        self._stack.uncover()
        self.sidebar.mark(name)
        self._history.visit(Place(self._context.session.host, name))
        tell_shown(page, True, self._report)

    def go_back(self) -> None:
        """Leave what is open on the page, or show the page before."""
        if self._front is not None and not self._front.step_back():
            self._page_before()

    def _page_before(self) -> None:
        self._travel(self._history.back())

    def go_forward(self) -> None:
        """Show the page that Back came from."""
        self._travel(self._history.forward())

    def _travel(self, place: Place | None) -> None:
        if place is None or self._context is None:
            return
        self.palette_box.hide()
        if place.host == self._context.session.host:
            self.go(place.page)
            return
        # Choosing the host shows its page of this name.
        self._current = place.page
        self._context.fleet.choose(place.host)

    def _on_fold(self) -> None:
        self.sidebar.set_folded(not self.sidebar.folded)
        self._keep(sidebar_folded=self.sidebar.folded)

    def _keep(self, **values: object) -> None:
        """Keep settings of the window."""
        from sndr_gui.models.settings.page import save_window_settings

        save_window_settings(self._file, self._notices.warning, **values)

    def _on_sheet(self) -> None:
        from sndr_gui.views.window.shortcut_sheet import ShortcutSheet

        ShortcutSheet(self, self._current, self._file, self._notices).open()

    def _on_find(self) -> None:
        if self._context is not None:
            self.page.focus_filter()

    # The palette.

    def _on_commands(self) -> None:
        self.palette_box.open()
        if self._context is not None:
            self._context.read_lists()

    def _on_ran(self, entry: Entry) -> None:
        recent = with_recent(self._file.current.recent_commands, entry)
        self._keep(recent_commands=recent)

    def _entries(self) -> list[Entry]:
        pages = self.sidebar.buttons
        entries = [
            Entry(page.title, page.shortcut, pages[page.name].click, "page go", PAGE, f"page {page.name}")
            for page in PAGES
        ]
        if self._context is not None:
            from sndr_gui.views.window.commands import commands

            entries += commands(self._context)
        fold = self.sidebar.fold.accessibleName()
        entries.append(Entry(fold, keys("fold"), self._on_fold, "icons collapse expand", ACTION, "fold"))
        host = self._context.session.host if self._context is not None else ""
        # Back first leaves what is open on a page; who asks for the page means the page.
        for way, place, run in (
            ("back", self._history.before, self._page_before),
            ("forward", self._history.after, self.go_forward),
        ):
            if place is not None:
                title = visited_title(way, place.page, place.host if place.host != host else None)
                entries.append(Entry(title, keys(way), run, "page visited", ACTION, way))
        entries.append(
            Entry(tr("Keyboard shortcuts"), keys("sheet"), self._on_sheet, "keys help sheet", ACTION)
        )
        return entries

    # The status bar.

    def _on_link(self) -> None:
        if self._context is None:
            return
        session = self._context.session
        connection, host = session.connection, session.state.host
        parts = [connection.sentence]
        if connection.connected and host is not None:
            url = host.endpoint.url
            if session.host:
                parts.append(
                    tr("endpoint {url} on {host}", url=url, host=session.host)
                    if url
                    else tr("endpoint not served on {host}", host=session.host)
                )
            else:
                parts.append(tr("endpoint {url}", url=url) if url else tr("endpoint not served"))
                parts.append(lifetime(session))
        self._dot.set_token(_TONES.get(connection.phase.value, "muted"))
        set_text(self._status, "  ·  ".join(parts))
        self._status.setToolTip(plain_tooltip(self._status.text()))

    # Lifetime.

    def _report(self, error: Exception) -> None:
        if self._context is not None:
            self._context.session.tasks.report(error)

    def focusNextPrevChild(self, forward: bool) -> bool:
        keep_last(self, self._commands)
        nothing = self.focusWidget() in {None, self._center}
        if forward and nothing and tab_from(self._tab_start, self._stack):
            return True
        return super().focusNextPrevChild(forward)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            # What grew takes its place before it is painted: until then it is squeezed into the old one.
            QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        done = super().event(event)
        if event.type() == QEvent.Type.Paint and not self._was_painted:
            self._was_painted = True
            self.painted.emit()
        return done

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if (shown := self.windowHandle()) is not None:
            # Before any control, for text and tables keep the buttons at a mouse's side to themselves.
            shown.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _PRESSES and isinstance(event, QMouseEvent):
            self._tab_start = self.childAt(event.position().toPoint())
            if event.button() == Qt.MouseButton.BackButton:
                self.go_back()
                return True
            if event.button() == Qt.MouseButton.ForwardButton:
                self.go_forward()
                return True
        return False

    def closeEvent(self, event: QCloseEvent) -> None:
        event.ignore()
        if self._close_confirmation is None:
            self._close_now()
            return
        from sndr_gui.views.leaving.question import leave

        leave(self, self._close_confirmation, self._notices, self._close_now)

    def _close_now(self) -> None:
        # The program ends in order: the engine host first, then the loop, then this window.
        self.hide()
        self.closing.emit()

    def deactivate(self) -> None:
        """Tell the page in front that nobody looks any more."""
        if self._front is not None:
            self._front.set_shown(False)
        self.hide()

    @property
    def geometry_text(self) -> str:
        """Size and place, to be kept until the next start."""
        return base64.b64encode(self.saveGeometry().data()).decode("ascii")
