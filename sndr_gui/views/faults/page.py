"""A fault in one page stays there: the others work, and what failed is told with a way to try it again."""

from __future__ import annotations

from collections.abc import Callable

from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.page import Page


class FaultPage(Page):
    """Stands in the place of a page that could not be made."""

    def __init__(self, title: str, error: Exception, again: Callable[[], object]) -> None:
        from sndr_gui.views.widgets.cards import EmptyState  # The first picture does without it.

        super().__init__(title)
        self.again = button("Try again", again, kind="primary", hint="Make this page anew")
        what = str(error)[:200] or "no more is known"
        said = (
            f"It failed with {type(error).__name__}: {what}. The other pages work as before. "
            "If it fails again, save diagnostics on Logs and report it."
        )
        self.body.addWidget(EmptyState("circle-alert", f"{title} cannot be shown", said, row(self.again)))


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
