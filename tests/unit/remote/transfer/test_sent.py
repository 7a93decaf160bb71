"""What was sent to other machines is kept once a place, and nothing where no file has a hash."""

from pathlib import Path

from engine_host.core.store import Store
from engine_host.remote.transfer.sent import SentModel, SentModels


def test_what_has_files_is_kept_and_what_has_none_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    try:
        book = SentModels(store)
        book.keep(SentModel(destination="gpu", model="/m/empty", to="/srv", files={}))
        assert book.to("gpu") == []
        for model in ("/m/first", "/m/second"):
            book.keep(SentModel(destination="gpu", model=model, to="/srv", files={"/srv/x": "a" * 64}))
        assert [one.model for one in book.to("gpu")] == ["/m/second"]
    finally:
        store.close()
