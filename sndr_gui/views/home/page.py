"""Home: the engine, its numbers, the endpoint, and the servers that can run it."""

import shlex
import time
from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.look.level import chosen, is_simple
from sndr_gui.kit.shortcuts import keys
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.trends import TREND_SECONDS
from sndr_gui.models.home.page import HomeModel
from sndr_gui.views.graphs.trend import Trend
from sndr_gui.views.home.alerts import AlertsCard
from sndr_gui.views.home.endpoint import EndpointCard
from sndr_gui.views.home.engines import EnginesCard
from sndr_gui.views.home.on_demand import OnDemandCard
from sndr_gui.views.home.servers import ServersCard
from sndr_gui.views.home.start import EMPTY_STATES, Hero, StartCard
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card, ValueCard
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text
from sndr_gui.views.widgets.layout import GAP
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.stop_button import StopButton


class HomeView(Page):
    """The page of the engine that runs."""

    def __init__(
        self,
        model: HomeModel,
        open_logs: Callable[[str], None],
        open_launch: Callable[[], None],
        open_chat: Callable[[str], None],
        open_engine: Callable[[str], None],
    ) -> None:
        super().__init__(tr("Home"), scrolls=True)
        self.model = model
        self._open_logs = open_logs
        self.stop = StopButton(model.stop)
        self.relaunch = button(
            tr("Relaunch"),
            model.relaunch,
            kind="primary",
            shortcut=keys("relaunch"),
            hint=tr("Start the same again"),
        )
        self.tools.addWidget(self.stop)
        self.tools.addWidget(self.relaunch)
        self._cards = [
            ValueCard(name)
            for name in (tr("Decode, one request"), tr("Memory"), tr("KV cache"), tr("Requests"))
        ]
        cards = QHBoxLayout()
        cards.setSpacing(GAP)
        for card in self._cards:
            cards.addWidget(card, 1)
        self._cards_row = QWidget()
        cards.setContentsMargins(0, 0, 0, 0)
        self._cards_row.setLayout(cards)
        self.alerts = AlertsCard(model.alerts, open_logs)
        self.hero = Hero(model, open_launch)
        self.engines = EnginesCard(model, open_chat, open_engine)
        self.starting = StartCard(model)
        self.failure = ProblemBox(apply_fix=model.actions.apply_fix)
        self.failure.log_wanted.connect(self._on_log_wanted)
        self.record = CopyField("", tr("the command that shows what it held and what would have saved it"))
        self.endpoint = EndpointCard(model)
        self.servers = ServersCard(model)
        self.on_demand = OnDemandCard(model)
        parts = (
            self.alerts,
            self.engines,
            self.hero,
            self.starting,
            self.failure,
            self.record,
            self._cards_row,
            self.on_demand,
        )
        for part in parts:
            self.body.addWidget(part)
        self._lower = QHBoxLayout()
        self._lower.setSpacing(GAP)
        self._lower.addWidget(self.endpoint, 1)
        self._lower.addWidget(self.servers, 1)
        self.body.addLayout(self._lower)
        self._trend_card = Card(tr("Decode, all streams, tokens per second"))
        self._trend = Trend(tr("Decode rate of the last five minutes"), TREND_SECONDS)
        self._trend_card.body.addWidget(self._trend, 1)
        self._trend_card.setMinimumHeight(170)
        self._trend_card.setMaximumHeight(640)
        # What is left when the graph is as high as it gets stays empty: cards are no higher for it.
        self.body.addWidget(self._trend_card, 100)
        self.body.addStretch(1)
        model.changed.connect(self.refresh)
        chosen.changed.connect(self.refresh)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        self.model.alerts.set_shown(shown)
        if shown:
            self.refresh()

    def _on_log_wanted(self) -> None:
        engine = self.model.engine
        self._open_logs(engine.id if engine else "host")

    def refresh(self) -> None:
        """Show the state of now."""
        model, mode = self.model, self.model.mode
        set_text(self.subtitle, model.subtitle)
        self.subtitle.setToolTip(plain_tooltip(model.about_gpus))
        self.subtitle.setAccessibleDescription(model.about_gpus)
        self.hero.setVisible(mode in EMPTY_STATES)
        self.starting.setVisible(mode == "starting")
        for told in (self.failure, self.record):
            told.setVisible(mode == "failed")
        self._cards_row.setVisible(mode in ("running", "stopping", "starting", "failed"))
        self.endpoint.setVisible(mode not in ("connecting", "lost"))
        self.servers.setVisible(mode not in ("connecting", "lost") and not is_simple())
        trend = mode in ("running", "stopping")
        self._trend_card.setVisible(trend)
        if trend:
            self._trend.show_points(list(model.metrics.trend), time.time())
        self.alerts.refresh()
        self.engines.refresh()
        self.on_demand.refresh()
        self._refresh_buttons(mode)
        if mode in EMPTY_STATES:
            self.hero.refresh(mode)
        if mode == "starting":
            self.starting.refresh()
        if mode == "failed":
            self._refresh_failure()
        for card, value in zip(self._cards, model.values(), strict=True):
            card.show_value(value.caption, value.value, value.note)
        self.endpoint.refresh()
        self.servers.refresh()

    def _refresh_buttons(self, mode: str) -> None:
        model = self.model
        connected = model.session.connection.connected
        stopping = mode == "stopping" or model.actions.stopping(model.engine)
        rows = self.engines.lines
        name = model.engine.name if rows and model.engine is not None else ""
        self.stop.show_state(model.stopping.question(model.engine), stopping, connected, name)
        if model.engine is not None:
            self.stop.show_equivalent_command(shlex.join(["sndr", "stop", model.engine.name]))
        self.stop.setVisible(mode in ("running", "stopping"))
        relaunching = model.actions.relaunching(model.engine)
        question = model.stopping.relaunch_question(model.engine)
        self.relaunch.setText(tr("Relaunching…") if relaunching else question or tr("Relaunch"))
        self.relaunch.setVisible(mode in ("running", "stopping", "failed"))
        self.relaunch.setEnabled(connected and not relaunching)
        if (engine := model.engine) is not None:
            self.relaunch.setToolTip(tip(tr("Start the same again"), keys("relaunch"), engine.plan.command))

    def _refresh_failure(self) -> None:
        if (engine := self.model.engine) is not None:
            self.record.set_content(f"sndr autopsy {engine.id}")
            self.record.setVisible(not engine.was_refused)
            self.failure.show_end(engine)
