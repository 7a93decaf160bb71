"""A fault in one page stays there: the others work, and what failed is told with a way to try it again."""

from __future__ import annotations

from collections.abc import Callable

from engine_host.protocol.language import tr
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.page import Page


class FaultPage(Page):
    """Stands in the place of a page that could not be made."""

    def __init__(self, title: str, error: Exception, again: Callable[[], object]) -> None:
        from sndr_gui.views.widgets.cards import EmptyState  # The first picture does without it.

        super().__init__(title)
        self.again = button(tr("Try again"), again, kind="primary", hint=tr("Reload this page"))
        what = str(error)[:200] or tr("no more is known")
        said = tr(
            "It failed with {error}: {what}. The other pages work as before. "
            "If it fails again, save diagnostics on Logs and report it.",
            error=type(error).__name__,
            what=what,
        )
        self.body.addWidget(
            EmptyState("circle-alert", tr("{title} cannot be shown", title=title), said, row(self.again))
        )


def made(
    title: str, make: Callable[[], Page], again: Callable[[], object], report: Callable[[Exception], object]
) -> Page:
    """Return the page, or what tells that it could not be made."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this page's alone
        report(error)
        return FaultPage(title, error, again)


def tell_shown(page: Page, shown: bool, report: Callable[[Exception], object]) -> None:
    """Tell a page that it came to the front, or left it; one that fails at that keeps nobody on it."""
    try:
        page.set_shown(shown)
    except Exception as error:  # noqa: BLE001 - the same
        report(error)
