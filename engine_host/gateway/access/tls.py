"""TLS for the endpoint: a certificate and its key from two files, checked with sentences of our own."""

import os
import ssl
import stat
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_LARGEST = 1 << 20
_CERTIFICATE, _KEY = "-----BEGIN CERTIFICATE-----", "PRIVATE KEY-----"
_ENCRYPTED = ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED")


def tls_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """Return how the endpoint speaks TLS; None where not both files are named.

    Raises HostError(setting_invalid) for files that cannot be read, are none of a certificate and its key, do
    not belong together, or that everybody can read.
    """
    if certificate is not None:
        check_certificate(certificate)
    if key is not None:
        check_key(key)
    if certificate is None or key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.expanded(certificate), files.expanded(key), password=lambda: "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise _refused(
                "endpoint.tls_key",
                key,
                tr("does not belong to the certificate {certificate}", certificate=certificate),
            ) from error
        why = (error.reason or "unknown").replace("_", " ").lower()
        message = tr("does not work with its key: {why}", why=why)
        raise _refused("endpoint.tls_certificate", certificate, message) from error
    except OSError as error:
        why = tr("cannot be read: {error}", error=error.strerror or error)
        raise _refused("endpoint.tls_certificate", certificate, why) from error
    return context


def check_certificate(path: str) -> None:
    """Refuse a file that holds no certificate. Raises HostError(setting_invalid)."""
    if _CERTIFICATE not in _text("endpoint.tls_certificate", path):
        raise _refused("endpoint.tls_certificate", path, tr("holds no certificate in PEM form"))


def check_key(path: str) -> None:
    """Refuse a file that holds no key, or one that everybody can read. Raises HostError(setting_invalid)."""
    text = _text("endpoint.tls_key", path)
    if _KEY not in text:
        raise _refused("endpoint.tls_key", path, tr("holds no private key in PEM form"))
    if any(mark in text for mark in _ENCRYPTED):
        fix = Fix(
            text="Nobody is there to type its password when the host starts: use a key without one.",
            command=f"openssl pkey -in {path} -out {Path(path).with_suffix('.plain.pem')}",
        )
        raise _refused("endpoint.tls_key", path, tr("has a password"), fix)
    mode = stat.S_IMODE(files.expanded(path).stat().st_mode)
    # A group is how systems hand keys to their servers.
    if os.name == "posix" and mode & 0o007:
        fix = Fix(text="Let nobody else read it.", command=f"chmod o= {path}")
        raise _refused(
            "endpoint.tls_key", path, tr("can be read by everybody (mode {mode:04o})", mode=mode), fix
        )


def _text(name: str, path: str) -> str:
    if not files.expanded(path).is_absolute():
        raise _refused(name, path, tr("is not where every program finds it: name the whole path, from / on"))
    try:
        return files.read_text(files.expanded(path), _LARGEST)
    except UnicodeDecodeError as error:
        raise _refused(name, path, tr("is no text; a file in PEM form is needed")) from error
    except OSError as error:
        raise _refused(name, path, tr("cannot be read: {error}", error=error.strerror or error)) from error


def _refused(name: str, path: str, why: str, fix: Fix | None = None) -> HostError:
    return HostError(
        Reason.SETTING_INVALID,
        tr("{path} {why}.", path=path, why=why),
        cause=tr("It is named in {name}.", name=name),
        fix=fix or Fix(text="Name another file, or do without TLS.", command=f"sndr settings unset {name}"),
        evidence={"key": name, "file": path},
    )
