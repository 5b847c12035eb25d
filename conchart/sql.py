"""SQL text that several modules need.

In: values for the few statements of DuckDB's that take no parameters. Out: literals, conditions.
"""

ONE_SIDED = "(packets_client = 0 OR packets_server = 0) AND state <> 'unanswered'"
"""Of ``connections``: somebody answered, but one side's packets are not in the capture."""
MISSING = "(coalesce(missing_client, 0) + coalesce(missing_server, 0))"
"""Of ``connections``: bytes acknowledged but not captured."""
HOLED = f"{MISSING} > 0 AND NOT ({ONE_SIDED})"
"""Of ``connections``: both sides are in the capture, but bytes are missing."""


def literal(text: str) -> str:
    """Write text as an SQL literal: ``COPY`` and ``ATTACH`` take no parameters."""
    return "'" + text.replace("'", "''") + "'"
