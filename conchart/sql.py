"""SQL text that several modules need.

In: values for the few statements of DuckDB's that take no parameters. Out: literals, conditions.
"""

ONE_SIDED = "(packets_client = 0 OR packets_server = 0) AND state <> 'unanswered'"
"""Of ``connections``: somebody answered, but one side's packets are not in the capture."""
MISSING = "(coalesce(missing_client, 0) + coalesce(missing_server, 0))"
"""Of ``connections``: bytes acknowledged but not captured."""
HOLED = f"{MISSING} > 0 AND NOT ({ONE_SIDED})"
"""Of ``connections``: both sides are in the capture, but bytes are missing."""

UNREAD = "(transport = 'udp' AND coalesce(app, 'unknown') = 'unknown')"
"""Of ``connections``: datagrams that nobody reads here. Of them no time is known to be waited for: they come last."""
COSTLIEST = f"{UNREAD}, waited_ns DESC, closed_at - opened_at DESC, stream"
"""Of ``connections``, to order by: the longest wait first, in every list of connections."""
SERVED = "state NOT IN ('refused', 'unanswered')"
"""Of ``connections``: the server took part. What the others cost is told apart."""
_RCODES = (
    "NOERROR",
    "FORMERR",
    "SERVFAIL",
    "NXDOMAIN",
    "NOTIMP",
    "REFUSED",
    "YXDOMAIN",
    "YXRRSET",
    "NXRRSET",
    "NOTAUTH",
)
ANSWER = f"""CASE WHEN protocol <> 'dns' THEN status::VARCHAR
    ELSE coalesce({list(_RCODES)}[status + 1], 'RCODE ' || status) END"""
"""Of ``exchanges``: the status as people write it; of DNS the name of the RCODE (RFC 1035, RFC 2136)."""


def literal(text: str) -> str:
    """Write text as an SQL literal: ``COPY`` and ``ATTACH`` take no parameters."""
    return "'" + text.replace("'", "''") + "'"
