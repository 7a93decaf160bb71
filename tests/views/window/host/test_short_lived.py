"""A host that is gone in the middle of what pages read: the connection says so, and no notice besides."""

from tests.views.conftest import Stage


async def test_what_pages_read_is_no_notice_where_the_host_is_gone(stage: Stage) -> None:
    stage.window.go("bench")
    await stage.host.stop()
    pages = stage.pages
    # Asked for before the window knows that the host has ended, as when it was a command's own.
    for load in (pages.installations.load, pages.patches.load, pages.presets.load, pages.fit.load):
        load()
    await stage.until(lambda: not stage.connection.connected)
    await stage.until(lambda: not [name for name in stage.tasks.names if name.startswith("read")])
    assert [notice.text for notice in stage.window.toasts.shown] == []
