"""How a page says that it can be checked: commands, digests, signatures, and what ledgers have."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.util import find_spec

from zerodelta.privacy.release import Release
from zerodelta.privacy.signatures import Signature, check_signed
from zerodelta.report.published import plain_text
from zerodelta.report.sections import asked_words, esc, head


def verifying(
    releases: Sequence[Release], files: Sequence[str], digests: Sequence[str | None]
) -> str:
    """Say how anyone can check it: command, digests, signatures, entries of ledgers."""
    parts = [head("verify", "How to check it")]
    units: dict[str | None, list[str]] = {}
    for place, release in enumerate(releases):
        units.setdefault(release.certificate.unit, []).append(files[place])
    for unit, named in units.items():
        command = "zerodelta verify " + " ".join(map(_quoted, dict.fromkeys(named)))
        command += "" if unit is None else f" --unit {_quoted(unit)}"
        parts.append(f"<pre><code>{html.escape(command)}</code></pre>")
    parts.append(
        "<p>reads no data. It derives each claim from its steps again, by the functions of "
        "zerodelta with which it was planned and without its samplers, checks that the digest "
        "matches, that record and certificate state the same claim and that the value is what its "
        "noisy sums give, and prints the digests below. Without a signature whoever changes the "
        "file can compute all of these anew. Other code, for those who do not want to believe "
        "ours: <code>zerodelta prove</code> writes the claim for Coq, and says what Coq has no "
        "theorem for (docs/proofs.md); a second verifier in a few lines, of mixed Gaussian "
        "mechanisms, stands in docs/certificate-format.md.</p>"
    )
    for number, (release, digest) in enumerate(zip(releases, digests, strict=True), 1):
        record, facts = release.record, []
        if record is not None:
            facts += [
                ("asked for", asked_words(release)),
                ("when (the ticket, before the release read a row)", record.time),
            ]
            facts.append(("version", f"zerodelta {record.version}"))
            facts += [] if record.entries else [("paid for", "by no ledger: nobody counted it")]
            facts += [
                ("paid for", f"entry {each['entry']} of ledger {each['ledger']}")
                for each in record.entries
            ]
        facts += [] if digest is None else [("digest of the file", digest)]
        facts.append(("digest of the certificate", release.certificate.digest))
        facts.append(("randomness", release.certificate.randomness))
        facts += [(_signed(digest, each), each.key) for each in release.signatures]
        if not release.signatures:
            facts.append(("signature", "none: nobody vouches that the steps were run"))
        rows = "".join(
            f'<tr><th scope="row">{esc(name)}</th><td>{esc(each)}</td></tr>' for name, each in facts
        )
        parts.append(f"<table><caption>Release {number}</caption><tbody>{rows}</tbody></table>")
    return "".join(parts)


def _signed(digest: str | None, signature: Signature) -> str:
    """Say of a signature whether it was checked; a wrong one raises `RecordError`."""
    if digest is None or find_spec("cryptography") is None:
        return "signature, not checked here, of the key"
    check_signed(digest, (signature,), signature.key)
    return "signed by the key"


def budget(accounts: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Return what the ledgers say of the data sets so far."""
    parts = [head("budget", "The budget of the data set so far")]
    for lines in accounts:
        rows = "".join(
            f'<tr><th scope="row">{esc(name)}</th><td>{esc(text)}</td></tr>' for name, text in lines
        )
        parts.append(
            "<table><caption>From its ledger, when this page was written</caption>"
            f"<tbody>{rows}</tbody></table>"
        )
    return "".join(parts)


def _quoted(name: str) -> str:
    plain = plain_text(name)
    safe = all(c.isalnum() or c in "-_./" for c in plain) and not plain.startswith("-")
    return plain if safe else "'" + plain.replace("'", "'\\''") + "'"
