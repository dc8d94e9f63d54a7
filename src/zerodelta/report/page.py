"""Write the report: one self-contained HTML file, without scripts or network requests.

Nothing in it comes from data except the releases. It is accessible to screen readers: landmarks,
headings in order, tables with heads, drawings with titles.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from zerodelta.errors import ZeroDeltaError, require
from zerodelta.exact.rational import number_text
from zerodelta.privacy.certificate import Certificate, to_ask
from zerodelta.privacy.interval_shapes import covered
from zerodelta.privacy.readable import equals, large, write_new
from zerodelta.privacy.release import Release, Signature, check_signed
from zerodelta.privacy.release_file import content_of
from zerodelta.privacy.steps import digest_of
from zerodelta.privacy.theorems import explain_step
from zerodelta.privacy.verify import verify
from zerodelta.report.contents import (
    Column,
    Learned,
    ReportTable,
    after_lower,
    after_upper,
    answers,
    drawing_of,
    epsilon_of,
    error_words,
    factor_text,
    grids_of,
    learned,
    neighbors_words,
    number_shown,
    odds_drawing,
    percent_text,
    plain_text,
    protected_words,
    spent_words,
    totals,
    uncounted,
)
from zerodelta.value import value

# -- The style of the page: light or dark, as the reader prefers, and light on paper --------------

COLORS: Mapping[str, Mapping[str, str]] = {
    "light": {
        "ground": "#ffffff",
        "card": "#f3f5f7",
        "text": "#1b1f24",
        "quiet": "#4f5863",
        "accent": "#0b5394",
        "bar": "#6b93b8",
        "line": "#c5ccd3",
        "warn": "#fff3cd",
        "warned": "#553f00",
    },
    "dark": {
        "ground": "#12161b",
        "card": "#1d242c",
        "text": "#e6e9ed",
        "quiet": "#b3bdc8",
        "accent": "#8cc2f7",
        "bar": "#4c789f",
        "line": "#45505c",
        "warn": "#3a2f10",
        "warned": "#ffe08a",
    },
}
"""Texts (text, quiet, accent) have a contrast of 4.5 or more on ground and card; warned on warn."""

_RULES = """
*{box-sizing:border-box}
html{scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--ground);color:var(--text);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
header,main,footer,nav{max-width:62rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.5rem}
h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0 .4rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.2rem 0 .5rem;
border-bottom:1px solid var(--line);padding-bottom:.25rem}
h3{font-size:1.05rem;margin:1.4rem 0 .4rem;overflow-wrap:anywhere}
p,li,dd,dt,figcaption{overflow-wrap:anywhere}
td,th{overflow-wrap:break-word}
td:not(.n){overflow-wrap:anywhere}
.heard{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
a{color:var(--accent)}
a:focus-visible,.scroll:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.skip{position:absolute;left:-999rem}
.skip:focus{left:1rem;top:.5rem;background:var(--ground);padding:.4rem}
.quiet,figcaption,caption{color:var(--quiet)}
.big{font-size:1.15rem}
nav ul{padding:0;list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.8rem 0}
dl.glance{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));
gap:.7rem;margin:1rem 0}
dl.glance div{background:var(--card);border-radius:.5rem;padding:.6rem .8rem}
dl.glance dt{font-weight:600}
dl.glance dd{margin:0}
table{border-collapse:collapse;min-width:min(24rem,100%);margin:.6rem 0;max-width:100%}
caption{text-align:left;padding-bottom:.3rem}
th,td{text-align:left;padding:.25rem .8rem .25rem 0;
border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}
.scroll{overflow-x:auto}
.warn{background:var(--warn);color:var(--warned);border-left:.35rem solid currentColor;
padding:.6rem .9rem;border-radius:.3rem;margin:.8rem 0}
code,pre{font:0.9em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--card);padding:.7rem .9rem;border-radius:.4rem;
white-space:pre-wrap;overflow-wrap:anywhere}
figure{margin:.8rem 0}
svg{width:100%;max-width:36rem;height:auto;display:block}
svg text{fill:var(--text);font-size:13px}
svg .g{stroke:var(--line);stroke-width:1}
svg .b{stroke:var(--bar);stroke-width:7;stroke-linecap:butt}
svg .d{fill:var(--accent)}
footer{color:var(--quiet);padding-bottom:2rem;margin-top:2.5rem}
@media print{nav,.skip{display:none}body{font-size:11pt}header,main,footer{max-width:none;padding:0}
h2,h3{break-after:avoid}figure,table,.warn,dl.glance div{break-inside:avoid}
pre,dl.glance div,.warn{border:1px solid var(--line)}a{color:inherit;text-decoration:none}}
"""


def css() -> str:
    """Return the style sheet of the page."""
    light, dark = (_variables(COLORS[name]) for name in ("light", "dark"))
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        + _RULES.replace("\n", "")
    )


def _variables(colors: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{color};" for name, color in colors.items())


# -- The sections of a report, in the order of NIST SP 800-226's questions about a guarantee ------
# All texts from records and values are escaped: anyone may have chosen the names and keys.

_MAXIMUM_OPTIONS = 60
_MAXIMUM_DRAWINGS = 3

NOT_COVERED = (
    "What others publish about the same people, and releases of these data that are not on this "
    "page: every further release adds its ε.",
    "Conclusions from a statistic about a group for its members: if a release shows that most "
    "members of a group earn much, somebody may guess that of each of them, whether or not their "
    "rows were in the data.",
    "People who hold the data, run the program or see the memory of its machine; how long a run "
    "takes.",
    "Whether the numbers are right: rows may be wrong, missing or clipped to their bounds.",
    "That the steps were run as stated: a certificate proves what they promise. A signature is "
    "the signer’s statement that they were; a ledger shows what was paid for.",
)


def esc(value: Any) -> str:
    """Return a text escaped for HTML, on one line."""
    return html.escape(plain_text(value))


def asked_words(release: Release) -> str:
    """Return the question of a release in words, such as "mean of income by city"."""
    record = release.record
    if record is None:
        return "a release without a record"
    parameters, of = record.parameters, record.parameters.get("of")
    rows_only = record.task == "count" and not parameters.get("columns")
    names = parameters.get("columns") or (list(of) if isinstance(of, dict) else [])
    names = [names] if isinstance(names, str) else list(names)
    if not names and record.data and not rows_only:
        names = [name for data in record.data for name in data.get("columns", {})]
    by = parameters.get("by")
    groups = [by] if isinstance(by, str) else list(by or [])
    shown = ", ".join(map(str, names[:4])) + (", …" if len(names) > 4 else "")
    text = record.task + (f" of {shown}" if shown else " of rows" if rows_only else "")
    text += f" by {', '.join(map(str, groups))}" if groups else ""
    where = [str(condition) for data in record.data for condition in data.get("where", [])]
    return plain_text(text + (f" where {' and '.join(where)}" if where else ""))


def at_a_glance(releases: Sequence[Release], accounts: Sequence[Any] = ()) -> str:
    """Return the officer's questions with short answers, each with a link to more."""
    cells = "".join(
        f'<div><dt>{esc(question)}</dt><dd>{esc(answer)} <a href="#{section}">more'
        f'<span class="heard"> on “{esc(question)}”</span></a></dd></div>'
        for question, answer, section in answers(releases, accounts)
    )
    return f'<dl class="glance">{cells}</dl>'


def published(releases: Sequence[Release], *, lines: int) -> str:
    """Return the section of published values with their intervals, as drawings and tables."""
    parts = [head("published", "What was published")]
    for number, release in enumerate(releases, 1):
        epsilon = epsilon_of(release.certificate)
        cost = "" if epsilon is None else f" (ε {equals(epsilon)})"
        parts.append(f"<h3>{number}. {esc(asked_words(release))}{esc(cost)}</h3>")
        for i, grid in enumerate(grids_of(release)):
            parts.append(_drawn_table(grid, lines, f"{number}-{i}"))
        parts.append(f"<p>Expected error: {esc(error_words(release))}.</p>")
        parts.append(f'<p class="quiet">{esc(covered(release))}</p>')
        if release.diagnostics is not None:
            rows = release.diagnostics
            parts.append(
                f"<p>Of the rows about {rows.used:.1%} were used unchanged, {rows.clipped:.1%} "
                f"were clipped to the bounds and {rows.unreadable:.1%} could not be read (noisy "
                "numbers, for a share of ε).</p>"
            )
    return "".join(parts)


def _drawn_table(grid: ReportTable, lines: int, number: str) -> str:
    """Return a published table with its title, notes and drawings; counts are drawn last."""
    columns = sorted(grid.columns, key=lambda column: column.name == "count")
    drawings = "".join(
        drawing_of(grid, column, lines=min(lines, 30), number=f"{number}-{i}")
        for i, column in enumerate([] if grid.rows else columns[:_MAXIMUM_DRAWINGS])
    )
    title = f"<p><strong>{esc(grid.title)}</strong></p>" if grid.title else ""
    synthetic = "Synthetic rows: made up from noisy statistics; none of them is a person"
    notes = [note for note in (grid.note, synthetic if grid.rows else "") if note]
    remarks = "".join(f'<p class="warn" role="note">{esc(note)}.</p>' for note in notes)
    remarks += f"<p>{esc(grid.hint)}.</p>" if grid.hint else ""
    return title + drawings + remarks + _table(grid, lines)


def _table(grid: ReportTable, lines: int) -> str:
    """Return a table as HTML, with intervals, and the number of lines that are hidden."""
    heads = [f'<th scope="col">{esc(name)}</th>' for name in grid.keys]
    for column in grid.columns:
        heads.append(f'<th scope="col"{_align(column)}>{esc(column.name)}</th>')
        if column.lower is not None:
            heads.append(f'<th scope="col" class="n">{esc(column.name)}, 95 % interval</th>')
    rows = []
    for i in range(min(len(grid), lines)):
        cells = [
            f'<th scope="row">{esc(number_shown(names[i]))}</th>' for names in grid.keys.values()
        ]
        for column in grid.columns:
            cells.append(f"<td{_align(column)}>{esc(number_shown(column.values[i]))}</td>")
            if column.lower is not None and column.upper is not None:
                ends = (number_shown(column.lower[i]), number_shown(column.upper[i]))
                cells.append(f'<td class="n">{esc(" to ".join(ends))}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    hidden = len(grid) - len(rows)
    more = f'<p class="quiet">… and {hidden:,} more lines in the saved release.</p>'
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{more if hidden else ''}"
    )


def _align(column: Column) -> str:
    return "" if any(isinstance(cell, str) for cell in column.values) else ' class="n"'


def who(releases: Sequence[Release]) -> str:
    """Return the section on the protected row or unit, the neighbors and the attackers."""
    parts = [head("who", "Who is protected, and against whom")]
    for (unit, neighbors), numbers in _by_content(
        releases, lambda c: (protected_words(c), neighbors_words(c))
    ):
        of = _of(numbers, releases)
        parts.append(f"<p><strong>Protected{of}: {esc(unit)}.</strong> {esc(neighbors)}</p>")
    parts.append(
        "<p>Against anyone who sees what was published, whatever else they know, even all other "
        "rows, and whatever they compute from it, now or later. Not against those who hold the "
        "data.</p>"
    )
    return "".join(parts)


def odds(releases: Sequence[Release], accounts: Sequence[Any] = ()) -> str:
    """Return the section that explains ε by odds, also the totals that ledgers counted."""
    parts = [head("odds", "How much can be learned about one of them")]
    if any(epsilon_of(release.certificate) is None for release in releases):
        claims = "; ".join(esc(release.certificate.summary) for release in releases)
        return "".join(parts) + f"<p>{claims}. These odds hold only for pure claims.</p>"
    leaks = learned(releases)
    parts += [_odds_of(leak, releases, number) for number, leak in enumerate(leaks, 1)]
    parts += [
        f"<p>{esc(name)}: {esc(total)}.</p>" for name, total in totals(releases).items() if total
    ]
    if len(totals(releases)) > 1:
        parts.append("<p>For people in several of these data sets the ε add up.</p>")
    parts += [f"<p>{esc(spent_words(account))}</p>" for account in accounts]
    unpaid = uncounted(releases)
    if unpaid:
        of = "" if len(unpaid) == len(releases) else f" of {', '.join(map(str, unpaid))}"
        parts.append(
            f'<div class="warn" role="note"><p>No ledger counted the ε{of}: other releases about '
            "the same people have to be added by somebody else.</p></div>"
        )
    return "".join(parts)


def _odds_of(leak: Learned, releases: Sequence[Release], number: int) -> str:
    """Return a table of suspicions about a row or a unit, before and after the releases."""
    total, half = leak.epsilon, Fraction(1, 2)
    several = len(leak.numbers) > 1
    which = "All on this page" if len(leak.numbers) == len(releases) else "Release"
    if which == "Release":
        which += f"{'s' * several} {', '.join(map(str, leak.numbers))}"
    which += " together" * several
    it = "it" if leak.what == "one row" else "they"
    claimed, why = total, ""
    if leak.presence_epsilon is not None:
        claimed = leak.presence_epsilon
        why = (
            f" This holds for the values of {leak.what}, for which add-remove counts twice: "
            f"ε {equals(total)}. For the question whether {it} {'is' if it == 'it' else 'are'} in "
            f"the data at all, the factor is at most {factor_text(claimed)}."
        )
    relation, beware = " (add-remove)" if why else "", large(total)
    rows = "".join(
        f'<tr><th scope="row">{percent_text(float(before), up=True)}</th>'
        f'<td class="n">at most {percent_text(after_upper(before, total), up=True)}</td>'
        f'<td class="n">at least {percent_text(after_lower(before, total), up=False)}</td></tr>'
        for before in (Fraction(1, 100), Fraction(1, 10), half, Fraction(9, 10))
    )
    return (
        f'<p class="big">{which}: pure differential privacy with ε {equals(claimed)}{relation}, '
        f"δ = 0.</p><p>Whatever somebody wants to know about {esc(leak.what)}, the odds change at "
        f"most by the factor e<sup>ε</sup>, which is at most {factor_text(total)}, up or down, "
        f"compared with a world in which {it} had been replaced.{esc(why)} There is no small "
        "probability with which more than that may leak.</p>"
        f"{odds_drawing(after_lower(half, total), after_upper(half, total), number)}"
        f"<table><caption>A suspicion about {esc(leak.what)} before, and after "
        f"{which[0].lower() + which[1:]}</caption><thead>"
        '<tr><th scope="col">suspicion before</th><th scope="col" class="n">rises to</th>'
        f'<th scope="col" class="n">falls to</th></tr></thead><tbody>{rows}</tbody></table>'
        + (f'<div class="warn" role="note"><p>{esc(beware)}.</p></div>' if beware else "")
    )


def public(releases: Sequence[Release]) -> str:
    """Return the section of public inputs: bounds, categories, conditions, numbers."""
    parts = [head("public", "What was public")]
    parts.append(
        "<p>None of this is protected. It was written down before the release read a row; a listed "
        "number of rows or units was counted. This program cannot know whether bounds, categories "
        "and the question were chosen without looking at the rows: ask.</p>"
    )
    blocks = (
        _declared(data)
        for release in releases
        if release.record is not None
        for data in release.record.data
    )
    parts += dict.fromkeys(blocks)
    for public_inputs, numbers in _by_content(releases, lambda c: c.public):
        items = _items(public_inputs) or "<li>nothing else</li>"
        parts.append(f"<h3>Taken as public{_of(numbers, releases)}</h3><ul>{items}</ul>")
    for number, release in enumerate(releases, 1):
        if release.record is not None and release.record.parameters:
            of = f" of {number}" if len(releases) > 1 else ""
            rows = "".join(
                f'<tr><th scope="row">{esc(name)}</th><td>{esc(_parameter(value))}</td></tr>'
                for name, value in release.record.parameters.items()
            )
            parts.append(f"<table><caption>Parameters{of}</caption><tbody>{rows}</tbody></table>")
    return "".join(parts)


def _declared(data: Mapping[str, Any]) -> str:
    """Return a data set's declared columns, filters and unit as HTML."""
    name = data.get("name")
    rows = "".join(
        f'<tr><th scope="row">{esc(column)}</th><td>{esc(_kind(kind))}</td></tr>'
        for column, kind in data.get("columns", {}).items()
    )
    facts = [f"only rows where {condition}" for condition in data.get("where", [])]
    unit = data.get("unit")
    if isinstance(unit, list) and len(unit) == 2:
        facts.append(f"at most {unit[1]} rows of one {unit[0]} count")
    if data.get("expected_rows") is not None:
        facts.append(f"planned for {data['expected_rows']} rows")
    items = _items(facts)
    title = "Data without a name" if name is None else f"Data set “{esc(name)}”"
    return (
        f"<h3>{title}</h3><table><caption>Declared columns</caption><thead><tr>"
        '<th scope="col">column</th><th scope="col">bounds or categories</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>" + (f"<ul>{items}</ul>" if items else "")
    )


def _kind(kind: Any) -> str:
    """Return a column's declaration in words: its bounds or its first categories."""
    if not isinstance(kind, Mapping):
        return str(kind)
    words = []
    for name, entry in kind.items():
        if isinstance(entry, list):
            texts = [str(option) for option in entry[:_MAXIMUM_OPTIONS]]
            more = f", … ({len(entry)} in all)" if len(entry) > _MAXIMUM_OPTIONS else ""
            joined = " to ".join(texts) if name in ("number", "date") else ", ".join(texts)
            words.append(f"{name}: {joined}{more}")
        else:
            words.append(name if entry is True else f"{name}: {entry}")
    return "; ".join(words)


def _parameter(value: Any) -> str:
    """Return a parameter of a request in words, lists and mappings written out."""
    if isinstance(value, list):
        return ", ".join(map(_parameter, value))
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_parameter(part)}" for name, part in value.items())
    return str(value)


def assumed(releases: Sequence[Release]) -> str:
    """Return the section of the proof's assumptions and of the questions to ask."""
    parts = [head("assumed", "What is assumed")]
    for assumptions, numbers in _by_content(releases, lambda c: c.assumed):
        of = _of(numbers, releases)
        if assumptions:
            parts.append(
                f'<div class="warn" role="note"><p><strong>The guarantee{of} holds if:</strong>'
                f"</p><ul>{_items(assumptions)}</ul></div>"
            )
        else:
            parts.append(f"<p>The certificate{of} lists no assumption of its own.</p>")
    questions = dict.fromkeys(
        question for r in releases for question in to_ask(unit=r.certificate.unit, counted=True)
    )
    parts.append(
        "<p><strong>No program can know the following, even if the claim is proven; ask those who "
        f"made the release:</strong></p><ul>{_items(questions)}</ul>"
        "<p>It is always assumed that the operating system’s random numbers are random.</p>"
    )
    return "".join(parts)


def method(releases: Sequence[Release]) -> str:
    """Return the section of the steps of each release."""
    parts = [head("steps", "How it was computed, and why that is private")]
    for number, release in enumerate(releases, 1):
        certificate = release.certificate
        parts.append(f"<h3>{number}. {esc(asked_words(release))}</h3>")
        for part_number, part in enumerate(certificate.parts, 1):
            if len(certificate.parts) > 1:
                cost = "" if part.epsilon is None else f", ε {equals(part.epsilon)}"
                parts.append(f"<p>Part {part_number} of {len(certificate.parts)}{esc(cost)}:</p>")
            steps = "".join(
                f"<li>{esc(explain_step(step))} <em>({esc(step.status.value)})</em></li>"
                for step in part.steps
            )
            parts.append(f"<ol>{steps or '<li>Nothing was computed from rows.</li>'}</ol>")
        parts.append(f"<p><strong>{esc(certificate.summary)}.</strong></p>")
    return "".join(parts)


def not_covered() -> str:
    """Return the section of the limits of the guarantee."""
    return head("limits", "What is not covered") + f"<ul>{_items(NOT_COVERED)}</ul>"


def head(section: str, title: str) -> str:
    """Return the heading of a section."""
    return f'<h2 id="{section}">{esc(title)}</h2>'


def _items(texts: Iterable[str]) -> str:
    return "".join(f"<li>{esc(text)}</li>" for text in texts)


def _of(numbers: Sequence[int], releases: Sequence[Release]) -> str:
    """Return " by release 1, 2", or "" if the numbers are those of all releases."""
    if len(releases) == 1 or len(numbers) == len(releases):
        return ""
    return " by release " + ", ".join(map(str, numbers))


def _by_content(
    releases: Sequence[Release], content: Callable[[Certificate], Any]
) -> list[tuple[Any, list[int]]]:
    """Return each different content of the certificates, with the numbers of its releases."""
    numbers: dict[Any, list[int]] = {}
    for number, release in enumerate(releases, 1):
        numbers.setdefault(content(release.certificate), []).append(number)
    return list(numbers.items())


# -- Checking: commands, digests, signatures and entries of ledgers -------------------------------


def verifying(
    releases: Sequence[Release], files: Sequence[str], digests: Sequence[str | None]
) -> str:
    """Return the section on checking: command, digests, signatures, entries of ledgers."""
    parts = [head("verify", "How to check it")]
    units: dict[str | None, list[str]] = {}
    for release, file in zip(releases, files, strict=True):
        units.setdefault(release.certificate.unit, []).append(file)
    for unit, unit_files in units.items():
        command = "zerodelta verify " + " ".join(map(_quoted, dict.fromkeys(unit_files)))
        command += "" if unit is None else f" --unit {_quoted(unit)}"
        parts.append(f"<pre><code>{html.escape(command)}</code></pre>")
    parts.append(
        "<p>This command reads no data. It derives each claim again from its steps, with the "
        "functions of zerodelta that planned it but without its samplers. It checks that the "
        "digest matches, that record and certificate state the same claim, and that the value does "
        "not contradict its noisy sums and bounds, if it has any; and it prints the digests below. "
        "Without a signature, somebody who changes the file can compute all of these again. To "
        "check the claim with other code, <code>zerodelta prove</code> writes it for Coq, and "
        "lists the steps for which Coq has no theorem (docs/proofs.md); docs/records.md "
        "has a second verifier, of a few lines, for mixed Gaussian mechanisms.</p>"
    )
    for number, (release, digest) in enumerate(zip(releases, digests, strict=True), 1):
        record, facts = release.record, []
        if record is not None:
            facts += [
                ("question", asked_words(release)),
                ("time (before the release read a row)", record.time),
            ]
            facts.append(("version", f"zerodelta {record.version}"))
            facts += [] if record.entries else [("paid for", "by no ledger")]
            facts += [
                ("paid for", f"entry {receipt['entry']} of ledger {receipt['ledger']}")
                for receipt in record.entries
            ]
        facts += [] if digest is None else [("digest of the file", digest)]
        facts.append(("digest of the certificate", release.certificate.digest))
        facts.append(("randomness", release.certificate.randomness))
        facts += [(_signed(digest, signature), signature.key) for signature in release.signatures]
        if not release.signatures:
            facts.append(("signature", "none: nobody vouches that the steps were run"))
        rows = "".join(
            f'<tr><th scope="row">{esc(name)}</th><td>{esc(fact)}</td></tr>' for name, fact in facts
        )
        parts.append(f"<table><caption>Release {number}</caption><tbody>{rows}</tbody></table>")
    return "".join(parts)


def _signed(digest: str | None, signature: Signature) -> str:
    """Return whether a signature was checked, in words; raise `RecordError` if it is wrong."""
    if digest is None or find_spec("cryptography") is None:
        return "signature, not checked here, of the key"
    check_signed(digest, (signature,), signature.key)
    return "signed by the key"


def budget(accounts: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Return the section of the data sets' accounts in their ledgers."""
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


LARGEST_PAGE = 200_000
"""Maximum bytes of a page; its tables are shortened until it fits."""

_LINES = (60, 25, 10, 4, 1)
"""Numbers of lines per table to try, until the page fits."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page_of_releases(
    releases: Sequence[Release],
    *,
    ledger: Any = None,
    files: Sequence[str] = (),
    digests: Sequence[str | None] = (),
) -> str:
    """Return the report on releases, after their certificates have been verified.

    Parameters
    ----------
    releases : list of Release
        Releases of one data set or several; duplicates are shown once.
    ledger : Ledger or list of Ledger, optional
        The accounts of their data, whose budgets are shown; by default the accounts that paid for
        releases of this process.
    files : list of str, optional
        The names of the saved files, for the command that verifies them.
    digests : list of str, optional
        The digests of these files; signatures are checked, and a wrong one is refused.

    Returns
    -------
    str
        The page in HTML.

    """
    require(releases, "releases", expected="one release or more", remedy="load some with zd.load")
    shown = _distinct(releases, files, digests)
    distinct = [entry.release for entry in shown]
    for release in distinct:
        claim = release.certificate
        verify(claim, neighbors=claim.claim.neighbors, unit=claim.unit)
    text = ""
    for lines in _LINES:
        text = _page(shown, ledger, lines=lines)
        if len(text.encode()) < LARGEST_PAGE:
            break
    require(
        len(text.encode()) < LARGEST_PAGE,
        "releases",
        len(distinct),
        expected=f"as many as fit on a page of {LARGEST_PAGE} bytes",
        remedy="write several reports",
    )
    return text


def write_report(
    releases: Sequence[Release],
    path: str | os.PathLike[str],
    *,
    ledger: Any = None,
    files: Sequence[str] = (),
    digests: Sequence[str | None] = (),
) -> None:
    """Write the report to a new file, which is never half written."""
    text = page_of_releases(releases, ledger=ledger, files=files, digests=digests)
    write_new(path, text, name="out")


@value
class _Shown:
    """A release, the name of its file, and the file's digest if it is known."""

    release: Release
    file: str
    digest: str | None


def _distinct(
    releases: Sequence[Release], files: Sequence[str], digests: Sequence[str | None]
) -> list[_Shown]:
    """Return the releases without duplicates, with their files and digests."""
    shown: dict[Any, _Shown] = {}
    for i, release in enumerate(releases):
        key = i if release.record is None else digest_of(content_of(release))
        file = files[i] if i < len(files) else "release.json"
        digest = digests[i] if i < len(digests) else None
        shown.setdefault(key, _Shown(release=release, file=file, digest=digest))
    return list(shown.values())


def _page(shown: Sequence[_Shown], ledger: Any, *, lines: int) -> str:
    """Return the whole report as one HTML page."""
    releases = [entry.release for entry in shown]
    files, digests = [entry.file for entry in shown], [entry.digest for entry in shown]
    several = len(releases) > 1
    question = asked_words(releases[0])
    accounts = _accounts(releases, ledger)
    title = f"{len(releases)} private releases" if several else question[:1].upper() + question[1:]
    parts = [
        ("published", "Published", published(releases, lines=lines)),
        ("who", "Who is protected", who(releases)),
        ("odds", "Odds", odds(releases, accounts)),
        ("public", "Public", public(releases)),
        ("assumed", "Assumed", assumed(releases)),
        ("steps", "Steps", method(releases)),
        ("verify", "Check it", verifying(releases, files, digests)),
    ]
    if accounts:
        parts.append(("budget", "Budget", budget([_budget(account) for account in accounts])))
    parts.append(("limits", "Not covered", not_covered()))
    links = "".join(f'<li><a href="#{name}">{esc(link)}</a></li>' for name, link, _ in parts)
    body = "".join(
        f'<section aria-labelledby="{name}">{content}</section>' for name, _, content in parts
    )
    summary = releases[0].certificate.summary
    if several:
        summary = "; ".join(f"{name}: {total}" for name, total in totals(releases).items())
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{esc(title)}: privacy report</title><style>{css()}</style></head><body>"
        '<a class="skip" href="#content">Skip to the content</a>'
        f'<header><p class="quiet">Privacy report, zerodelta</p><h1>{esc(title)}</h1>'
        f"<p>{esc(summary)}</p></header>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
        '<main id="content"><section aria-labelledby="glance"><h2 id="glance">At a glance</h2>'
        f"{at_a_glance(releases, accounts)}</section>{body}</main>"
        "<footer><p>Written by zerodelta from releases and ledgers only. The certificates were "
        "verified when this page was written; the page itself is no proof: check the "
        "files.</p></footer></body></html>\n"
    )


def _accounts(releases: Sequence[Release], ledger: Any) -> Sequence[Any]:
    """Return the accounts to show: those of `ledger`, or by default those that paid."""
    if ledger is not None:
        return ledger if isinstance(ledger, Sequence) else (ledger,)
    paid = dict.fromkeys(payer for release in releases for payer, _ in release.paid_by)
    return [payer for payer in paid if _is_readable(payer)]


def _is_readable(payer: Any) -> bool:
    try:
        return isinstance(payer.spent, Fraction)
    except (ZeroDeltaError, AttributeError):  # removed meanwhile, or not a zerodelta ledger
        return False


def _budget(ledger: Any) -> list[tuple[str, str]]:
    limit = ledger.budget
    return [
        ("data set", ledger.data),
        ("budget", "no limit of its own" if limit is None else f"ε = {number_text(limit)}"),
        ("spent", f"ε = {number_text(ledger.spent)}"),
        ("left", f"ε = {number_text(ledger.remaining)}"),
        ("neighbors", ledger.neighbors.value),
        ("unit", "one row" if ledger.unit is None else ledger.unit),
        ("entries", str(ledger.entries)),
    ]
