"""Recognise loopback addresses."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return True for an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
