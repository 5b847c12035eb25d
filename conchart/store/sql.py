"""SQL text that several modules need.

In: values for the few statements of DuckDB's that take no parameters. Out: literals, conditions.
"""

import re
from collections.abc import Mapping, Sequence

from conchart._native import protocols

ONE_SIDED = "(packets_client = 0 OR packets_server = 0) AND state NOT IN ('abandoned', 'unanswered')"
"""Of ``connections``: somebody answered, but one side's packets are not in the capture."""
MISSING = "(coalesce(missing_client, 0) + coalesce(missing_server, 0))"
"""Of ``connections``: bytes acknowledged but not captured."""
HOLED = f"{MISSING} > 0 AND NOT ({ONE_SIDED})"
"""Of ``connections``: both sides are in the capture, but bytes are missing."""

GOES_ON = f"(fin_by IS NULL AND rst_by IS NULL AND state <> 'abandoned' AND {MISSING} = 0)"
"""Of ``connections``: nobody had ended it by its last packet, of which the capture shows all."""
UNFINISHED = f"""(outcome = 'unknown' AND response_done_at IS NULL AND awaits IS NULL
    AND stream IN (SELECT stream FROM connections WHERE {GOES_ON}))"""
"""Of ``exchanges``: under way at the last packet."""

CAUSES_UNTIL = (
    "if(outcome = 'unknown', least(closed_at, coalesce(request_done_at, request_at) + 1_000_000_000), closed_at)"
)
"""Of ``exchanges`` and ``connections`` without a response: until when a machine asked others because of it.

Who hangs until the capture ends does not work on it all the time: what is asked meanwhile is no part of it.
"""

PATH = r"regexp_replace({}.target, '^[A-Za-z][A-Za-z0-9+.-]*://[^/]*', '')"
"""A request's target without scheme and host, which only the absolute form has (RFC 9112 section 3.2.2)."""
UNREAD = "(transport = 'udp' AND coalesce(app, 'unknown') = 'unknown')"
"""Of ``connections``: datagrams that nobody reads here. Of them no time is known to be waited for: they come last."""
FORWARDED = "(protocol = 'socks' OR protocol LIKE 'http/1%' AND (method = 'CONNECT' OR starts_with(target, 'http://')))"
"""Of ``exchanges``: a client asks a forward proxy for what another server has. Over HTTP/2 and HTTP/3, that proxy has a
name of its own, and CONNECT has other meanings."""
TO_GROUP = "regexp_matches(server_ip, '^(22[4-9]|23[0-9])[.]|^255[.]255[.]255[.]255$|^ff[0-9a-f]{2}:')"
"""Of ``connections``: datagrams to whoever listens (multicast, broadcast). Nobody has to answer, and who does so does
it from an address of its own (RFC 6762 section 6, RFC 4795 section 2.5): no answer is no failure."""
COSTLIEST = f"{UNREAD}, waited_ns DESC, closed_at - opened_at DESC, stream"
"""Of ``connections``, to order by: the longest wait first, in every list of connections."""
ANSWERED = "state NOT IN ('refused', 'unanswered')"
"""Of ``connections``: the server took part. What the others cost is told apart."""
FIRST_SIGHT = "same_as IS NULL"
"""Of ``connections``: not captured before already, on the other side of an address translation."""
_LOST = "stream IN (SELECT loser_stream FROM races WHERE packets IS NOT NULL)"
SERVED = f"({ANSWERED} AND {FIRST_SIGHT} AND NOT {_LOST})"
"""Of ``connections``: somebody may have waited for it. Not for an attempt that lost and carried no request, nor
for a second sight."""
RESUMED = "outcome = 'complete' AND kind <> 'full'"
"""Of ``handshakes``: it came to its end, and was no full one."""
TURNS = "((protocol IN ('unknown', 'vnc') OR protocol = 'ssh' AND number > 0) AND request_at IS NOT NULL)"
"""Condition on ``exchanges``: bytes in turns, of a protocol that is not read (MTProto), or in which either side sends
when it likes (SSH). Nobody is known to wait: it may be an event, or the echo of a key. A greeting is waited for, also
where an SSH client sends its own first."""
IS_TURN = f"(stream, exchange) IN (SELECT (stream, number) FROM exchanges WHERE {TURNS})"
"""Of what has a connection and an exchange: nobody is known to wait for it."""
OPENING = -1
"""In ``on_behalf``, in the place of an exchange's number: the opening of a connection, and what is of no exchange."""
OF_USERS = f"(stream, coalesce(exchange, {OPENING})) NOT IN (SELECT (stream, exchange) FROM on_behalf)"
"""Of what has a connection and an exchange: whoever sent the request waits, because it was made for no other one."""
OUTERMOST = "role <> 'backend'"
"""Of ``servers``: it does not stand behind a front."""
USERS_WAITED = "SELECT coalesce(sum(users_ns), 0)::BIGINT FROM servers"
"""What users waited, in all: the sum over the servers that they wait for."""
PROTOCOLS = protocols()
"""The facts about each protocol, as the core has them."""


def _any_of(methods: Mapping[str, Sequence[str]]) -> str:
    """Give the condition on ``exchanges`` that a method is one of those that are listed for its protocol."""
    listed = ((name, ", ".join(map(repr, each))) for name, each in methods.items() if each)
    conditions = (f"protocol = '{name}' AND method IN ({each})" for name, each in listed)
    return f"coalesce({' OR '.join(conditions)}, false)"


NEEDLESS = _any_of({row["name"]: row["never_answered"] for row in PROTOCOLS})
"""Condition on ``exchanges``: no server answers such a request."""
ASKING = f"kind <> 'proxy' AND NOT {NEEDLESS}"
"""Condition on ``exchanges``: a request that needs a response."""
MULTIPLEXED = f"protocol IN {tuple(row['name'] for row in PROTOCOLS if row['multiplexed'])}"
"""Condition on ``exchanges``: several requests may be under way at once."""
SURE = 0.7
"""Below this confidence, what is said of a row is said to be inferred."""
PRODUCTS = {row["name"]: row["product"] for row in PROTOCOLS if row["product"]}
"""Protocols of one product: which."""
STARTING = _any_of({row["name"]: row["opens_session"] for row in PROTOCOLS})
"""Condition on ``exchanges``: it opens a session with a store (encryption, authentication, which database), as long as
nothing else came before it."""
STATED = "if(store = 'sql', shape, target)"
"""Of ``exchanges``: what is asked, without the values of a statement."""
GRPC_STATUS = "(protocol = 'grpc' AND status < 100)"
"""Condition on ``exchanges``: the status is gRPC's, and that of HTTP was 200."""
GRPC_FAILED = "(protocol = 'grpc' AND status IN (2, 4, 12, 13, 14, 15))"
"""Condition on ``exchanges``: a status of gRPC that is the server's fault, by OpenTelemetry's conventions for spans of
servers: UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS."""


def literal(text: str) -> str:
    """Write text as an SQL literal: ``COPY`` and ``ATTACH`` take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def with_values(statement: str, values: Mapping[str, float]) -> str:
    """Write numbers where a statement names them, as ``$name``.

    DuckDB takes them as parameters, too; but for each, it looks for pandas, of which it might be a number.
    """
    written = {name: _number(value) for name, value in values.items()}
    return re.sub(r"\$(\w+)", lambda named: written.get(named[1], named[0]), statement)


def _number(value: float) -> str:
    """Write a number as SQL. Without an exponent, DuckDB makes a DECIMAL of a fraction."""
    text = repr(value)
    return text if isinstance(value, int) or "e" in text else f"{text}e0"
