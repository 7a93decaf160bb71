"""Stages are read off a log by a table of patterns."""

import re

from engine_host.engines.stage_reader import StageChange, StageReader


class Reader(StageReader):
    stages = (
        ("load", re.compile(r"load (?P<detail>\w+)")),
        ("warm", re.compile("warm")),
        ("serve", re.compile("serve")),
    )

    def measure(self, line: str) -> bool:
        if line.startswith("size "):
            self.buffers["kv"] = int(line[5:])
        return line.startswith("size ")

    def detail(self) -> str:
        return "so far"


def test_each_stage_begins_once_and_none_after_the_last() -> None:
    lines = ["load a", "load b", "nothing", "serve", "warm"]
    reader = Reader()
    assert [reader.feed(line) for line in lines] == [
        StageChange("load", "a"), None, None, StageChange("serve"), None
    ]  # fmt: skip


def test_new_sizes_tell_the_stage_again() -> None:
    reader = Reader()
    assert reader.feed("size 1") is None, "no stage has begun"
    assert reader.feed("load a") == StageChange("load", "a", {"kv": 1})
    assert reader.feed("size 2") == StageChange("load", "so far", {"kv": 2})
