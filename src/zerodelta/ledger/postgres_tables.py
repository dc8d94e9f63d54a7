"""The tables of a ledger in PostgreSQL, and what the policies of their rows let others do.

Whoever owns the tables writes any entry. Everybody else, given SELECT and INSERT, writes debits of
ε > 0 and no other entries: the next one in the chain, in an account of one's own name that the
owner has opened. So an analyst raises no budget, opens no account, and takes no debit back.
"""

from __future__ import annotations

_POSITIVE = "~ '^0*[1-9][0-9]*(/0*[1-9][0-9]*)?$'"

_TABLES = (
    "CREATE TABLE {0}.zerodelta_entry (number bigint PRIMARY KEY, question text, "
    "body text NOT NULL, hash text NOT NULL)",
    "CREATE INDEX zerodelta_asked ON {0}.zerodelta_entry (question) WHERE question IS NOT NULL",
    "CREATE INDEX zerodelta_account ON {0}.zerodelta_entry "
    "((body::jsonb ->> 'data'), (body::jsonb ->> 'analyst')) WHERE body::jsonb ->> 'kind' = "
    "'account'",
    "CREATE TABLE {0}.zerodelta_saved (number bigint NOT NULL, place text NOT NULL, "
    "digest text NOT NULL, place_number bigint GENERATED ALWAYS AS IDENTITY)",
    "CREATE INDEX zerodelta_places ON {0}.zerodelta_saved (number)",
    "CREATE TABLE {0}.zerodelta_file (data text NOT NULL, mac text NOT NULL)",
)

_DEBIT = f"""
    body::jsonb ->> 'kind' = 'debit'
    AND body::jsonb ->> 'analyst' = current_user
    AND body::jsonb ->> 'number' = number::text
    AND body::jsonb ->> 'epsilon' {_POSITIVE}
    AND body::jsonb ->> 'booked' {_POSITIVE}
    AND question IS NOT DISTINCT FROM body::jsonb ->> 'question'
    AND EXISTS (
        SELECT FROM {{0}}.zerodelta_entry opened
        WHERE opened.body::jsonb ->> 'kind' = 'account'
        AND opened.body::jsonb ->> 'data' = zerodelta_entry.body::jsonb ->> 'data'
        AND opened.body::jsonb ->> 'analyst' = current_user)
    AND hash = (
        SELECT encode(sha256(convert_to(
            earlier.hash || chr(10) || zerodelta_entry.body, 'UTF8')), 'hex')
        FROM {{0}}.zerodelta_entry earlier WHERE earlier.number = zerodelta_entry.number - 1)
"""
"""What is known of a row without adding anything up; the rest is found by whoever reads it."""

_OWN = """
    EXISTS (SELECT FROM {0}.zerodelta_entry paid WHERE paid.number = zerodelta_saved.number
    AND paid.body::jsonb ->> 'analyst' = current_user)
"""

_POLICIES = (
    *(
        f"ALTER TABLE {{0}}.zerodelta_{name} ENABLE ROW LEVEL SECURITY"
        for name in ("entry", "saved", "file")
    ),
    *(
        f"CREATE POLICY zerodelta_read ON {{0}}.zerodelta_{name} FOR SELECT USING (true)"
        for name in ("entry", "saved")
    ),
    f"CREATE POLICY zerodelta_debit ON {{0}}.zerodelta_entry FOR INSERT WITH CHECK ({_DEBIT})",
    f"CREATE POLICY zerodelta_own ON {{0}}.zerodelta_saved FOR INSERT WITH CHECK ({_OWN})",
)


def tables_in(schema: str) -> list[str]:
    """Return the statements that make the tables in a schema, which is a quoted name."""
    return [each.format(schema) for each in (*_TABLES, *_POLICIES)]
