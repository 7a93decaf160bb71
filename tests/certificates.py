"""A certificate for this machine and its key, made for tests alone; nothing trusts it."""

import ssl
from pathlib import Path

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUatJQnZAzHNG7zJ2NRTs8nKWzX1kwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJc25kciB0ZXN0MCAXDTI2MTEyMjIzMTgxNFoYDzIxMjYxMDI5
MjMxODE0WjAUMRIwEAYDVQQDDAlzbmRyIHRlc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATJVpMzx0whDbIoQOTAO79C55kaMZVKKbLJvJS6jCmVMRdRJLgtZBLH
cUNvAkEo0zcf0pikENKPJfyKPkcUDCZVo28wbTAdBgNVHQ4EFgQUgB95ZrGf7ns7
uNS4iaUsSEyj18QwHwYDVR0jBBgwFoAUgB95ZrGf7ns7uNS4iaUsSEyj18QwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgTuFf/3y+tpH5plRGticd8s0w6MeeYs8lnYIDWwcU5SwCIQCt
N0YOEB/FkbkJjr8nuo2Hf6lufVYy565gp+SJWBbVZA==
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgqmXQkgqbxh08iwFk
4gAFNXYolYY8dYeEQYVozkQ7TEWhRANCAATJVpMzx0whDbIoQOTAO79C55kaMZVK
KbLJvJS6jCmVMRdRJLgtZBLHcUNvAkEo0zcf0pikENKPJfyKPkcUDCZV
-----END PRIVATE KEY-----
"""
OTHER_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4h5TJnQAEy2eurAv
gz7wXQBUlzBGwajZ3cbtVOUNweGhRANCAASQ2UHaB71YYfn8aqM0X66LZNgZQq54
QsDD87Jv8nHSTh4bjtt+Hn0yvjW7XUNPArCjsI/2O+POUtEXyV9ctI5E
-----END PRIVATE KEY-----
"""


def write(folder: Path, certificate: str = CERTIFICATE, key: str = KEY) -> tuple[str, str]:
    """Write both as a person would have them; their paths."""
    paths = folder / "certificate.pem", folder / "key.pem"
    for path, text in zip(paths, (certificate, key), strict=True):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
    return str(paths[0]), str(paths[1])


def trusting() -> ssl.SSLContext:
    """Return what a client needs that trusts this certificate."""
    return ssl.create_default_context(cadata=CERTIFICATE)
