"""TLS of a client: whom it trusts, what it shows, and what to do when a handshake fails."""

from __future__ import annotations

import ssl
from typing import Optional

#: What OpenSSL calls the reasons for which it does not take a certificate.
_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
_EXPIRED = 10
_NOT_YET = 9
_OTHER_NAME = (62, 64)


def context(
    ca: Optional[str], client_cert: Optional[str], client_key: Optional[str]
) -> ssl.SSLContext:
    """Read the files once: a wrong one is told before anything is sent."""
    try:
        # Given a file, the authorities of the system are not trusted beside it.
        made = ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as fault:
        raise ValueError(
            f'the certificates in "{ca}" cannot be used: {_plain(fault)}; '
            "`ca` or TENURE_CA names a PEM file of certificates"
        ) from None
    if client_cert is None and client_key is None:
        return made
    if client_cert is None:
        raise ValueError("a client key is named, and its certificate is not; name both")
    try:
        made.load_cert_chain(client_cert, client_key)
    except (OSError, ValueError) as fault:
        raise ValueError(
            f'the client certificate in "{client_cert}" cannot be used with its key: '
            f"{_plain(fault)}; both are PEM files, and the key is the one it was made with"
        ) from None
    return made


def _plain(fault: BaseException) -> str:
    if isinstance(fault, ssl.SSLError):
        return (fault.reason or "it is no PEM file").lower().replace("_", " ")
    if isinstance(fault, OSError) and fault.strerror:
        return fault.strerror.lower()
    return str(fault)


def advice(fault: BaseException, host: str) -> Optional[str]:
    """Say what to do; `None` if TLS is not why."""
    found = _cause(fault)
    if found is None:
        return None
    if isinstance(found, ssl.SSLCertVerificationError):
        return _of_certificate(found, host)
    reason = found.reason or ""
    if "CERTIFICATE_REQUIRED" in reason:
        return (
            f"{host} asks callers for a certificate; name yours and its key "
            "(`client_cert` and `client_key`)"
        )
    if "UNKNOWN_CA" in reason or "BAD_CERTIFICATE" in reason:
        return (
            f"{host} does not take the certificate of this client; show one that is valid and "
            "of the authority that the server asks for"
        )
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return (
            f"{host} does not speak TLS on this port; write http:// if it is to be called in clear"
        )
    return f"TLS with {host} failed: {_plain(found)}"


def is_refused(fault: BaseException) -> bool:
    """Whether a server did not take this client: then nobody has read what was sent after."""
    found = _cause(fault)
    reason = (found.reason if found is not None else None) or ""
    return any(word in reason for word in ("CERTIFICATE_REQUIRED", "UNKNOWN_CA", "BAD_CERTIFICATE"))


def _of_certificate(found: ssl.SSLCertVerificationError, host: str) -> str:
    code = found.verify_code
    if code in _UNKNOWN_AUTHORITY:
        return (
            f"the certificate of {host} is of an authority that is not trusted here; name the "
            "authority's certificate (`ca`, or TENURE_CA)"
        )
    if code == _EXPIRED:
        return f"the certificate of {host} has expired; renew it at the server"
    if code == _NOT_YET:
        return (
            f"the certificate of {host} is not valid yet; compare the clocks of this machine and "
            "of the one that made it"
        )
    if code in _OTHER_NAME:
        return (
            f"the certificate of {host} is for another name; use the name that is in it, or give "
            "the server one with this name"
        )
    return f"the certificate of {host} cannot be used: {found.verify_message}"


def _cause(fault: Optional[BaseException]) -> Optional[ssl.SSLError]:
    for _ in range(8):
        if fault is None or isinstance(fault, ssl.SSLError):
            return fault
        fault = fault.__cause__ or fault.__context__
    return None
