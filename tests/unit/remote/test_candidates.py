"""Hosts of an ssh configuration, as people write them."""

from pathlib import Path

import pytest

from engine_host.core.outside.ssh_config import config_file
from engine_host.remote.candidates import ConfiguredHost, configured_hosts, suggested_name


def hosts(tmp_path: Path, text: str) -> list[ConfiguredHost]:
    """The hosts that a configuration names."""
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    return configured_hosts(path)


def test_names_with_what_stands_below_them(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("Host included\n  User other\n")
    found = hosts(
        tmp_path,
        "Include more.conf\nHost gpu a6000\n  HostName 10.0.0.4\n  User=me\n  HostName second\n"
        "Host *.example\n  User x\nHost !no yes\n# Host commented\nMatch host q\n  User y\n"
        'Host "quoted" -oProxyCommand=x $(id)\n',
    )
    assert found == [
        ConfiguredHost("included", None, "other"),
        ConfiguredHost("gpu", "10.0.0.4", "me"),
        ConfiguredHost("a6000", "10.0.0.4", "me"),
        ConfiguredHost("yes", None, None),
        ConfiguredHost("quoted", None, None),
    ]


@pytest.mark.parametrize(
    "text", ["", "Host", "Host '", "\0\xff", "Include config", "Include /dev/zero\nHost a"]
)
def test_odd_files_end(tmp_path: Path, text: str) -> None:
    assert len(hosts(tmp_path, text)) <= 1
    assert configured_hosts(tmp_path / "none") == []


def test_another_configuration_is_named_by_the_variable() -> None:
    assert config_file({"SNDR_SSH_CONFIG": "/x/config"}) == Path("/x/config")
    assert config_file({}).name == "config"


@pytest.mark.parametrize(
    ("destination", "name"),
    [
        ("me@gpu.example", "gpu-example"),
        ("ssh://me@10.0.0.4:22", "10-0-0-4-22"),
        ("local", "host-local"),
        ("::1", "1"),
    ],
)
def test_a_name_is_suggested(destination: str, name: str) -> None:
    assert suggested_name(destination) == name
