"""Ed25519 signatures of saved releases, with `cryptography` (``pip install 'zerodelta[sign]'``).

Signed is the digest of the file, so all of it. A signature says who vouches for it; that the steps
of a certificate were run is what the signer has to know.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from zerodelta.errors import ParameterError, RecordError, require_extra
from zerodelta.privacy.new_file import write_new
from zerodelta.value import value

_CONTEXT = b"zerodelta release\n"
_HEX = re.compile(r"[0-9a-f]{64}")


@value
class Signature:
    """Who signed, by the public key, and the signature; both hexadecimal."""

    key: str
    signature: str

    def to_json(self) -> dict[str, str]:
        """Return the fields."""
        return {"key": self.key, "signature": self.signature}

    @staticmethod
    def from_json(data: Any) -> Signature:
        """Read a signature, which is not checked here."""
        well = type(data) is dict and data.keys() == {"key", "signature"}
        if not well or not all(type(each) is str and len(each) <= 128 for each in data.values()):
            raise RecordError("a signature is malformed: take the file from where it was saved.")
        return Signature(**data)


def sign(digest: str, key: str | os.PathLike[str]) -> Signature:
    """Return the signature of a digest with the private key in a file."""
    private = _private(key)
    public = private.public_key().public_bytes_raw()
    return Signature(key=public.hex(), signature=private.sign(_CONTEXT + digest.encode()).hex())


def check_private(key: str | os.PathLike[str]) -> None:
    """Refuse a file that holds no private key, before anything is paid that is to be signed."""
    _private(key)


def check_signed(digest: str, signatures: tuple[Signature, ...], public: str) -> None:
    """Refuse what no valid signature of this public key is about."""
    require_extra("cryptography", "sign")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    of_key = [each for each in signatures if each.key == public]
    if not of_key:
        raise RecordError(
            f"it is not signed by {public[:16]}…: ask for a file that is, or leave out who signed."
        )
    for each in of_key:
        try:
            known = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
            known.verify(bytes.fromhex(each.signature), _CONTEXT + digest.encode())
        except (InvalidSignature, ValueError):
            raise RecordError(
                f"the signature of {public[:16]}… is wrong: the file was changed, or signed by "
                "somebody else; do not rely on it."
            ) from None


def make_keys(private: Path, public: Path) -> str:
    """Write a new pair of keys to two files, and return the public one as text."""
    require_extra("cryptography", "sign")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for path in (private, public):
        if os.path.lexists(path):
            raise ParameterError(
                "keys",
                str(path),
                expected="a new file: a key that is lost cannot sign any more",
                remedy="choose another name",
            )
    made = Ed25519PrivateKey.generate()
    secret = made.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    known = made.public_key()
    shown = known.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    write_new(private, secret, name="keys", mode=0o600)
    write_new(public, shown, name="keys")
    return str(known.public_bytes_raw().hex())


def as_public(given: str | os.PathLike[str]) -> str:
    """Return a public key as hexadecimal: what is given is that, or the path of its file."""
    if type(given) is str and _HEX.fullmatch(given):
        return given
    content = _content(given)
    known: Any = None
    if content is not None and b"-----BEGIN" in content:
        require_extra("cryptography", "sign")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        with suppress(ValueError):
            known = load_pem_public_key(content)
        if isinstance(known, Ed25519PublicKey):
            return str(known.public_bytes_raw().hex())
    raise ParameterError(
        "signed_by",
        given,
        expected="an Ed25519 public key: 64 hexadecimal digits, or the path of a PEM file",
        remedy="pass the .pub file that `zerodelta keys` wrote",
    )


def _private(key: str | os.PathLike[str]) -> Any:
    require_extra("cryptography", "sign")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found: Any = None
    with suppress(ValueError, TypeError):  # TypeError: it has a password
        found = load_pem_private_key(_content(key) or b"", password=None)
    if not isinstance(found, Ed25519PrivateKey):
        raise ParameterError(
            "key",
            expected="the path of an Ed25519 private key without a password, as PEM",
            remedy="make one with `zerodelta keys`",
        )
    return found


def _content(path: Any) -> bytes | None:
    """Return what a file holds, None if there is none."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError, TypeError):
        return None
