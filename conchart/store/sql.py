"""SQL text that several modules need.

In: values for the few statements of DuckDB's that take no parameters. Out: literals, conditions.
"""

import re
from collections.abc import Mapping

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
NEVER_ANSWERED = {
    "ldap": ("unbind", "abandon"),
    "memcached": ("quit",),
    "mongodb": ("OP_INSERT", "OP_UPDATE", "OP_DELETE", "OP_KILL_CURSORS"),
    "mysql": ("SSLRequest", "Close stmt", "Long Data", "Quit"),
    "postgresql": ("CancelRequest",),
}
"""Of each protocol, what its servers do not answer (LDAP: RFC 4511 sections 4.3 and 4.11)."""
_NEEDLESS = " OR ".join(
    f"protocol = '{name}' AND method IN ({', '.join(map(repr, methods))})" for name, methods in NEVER_ANSWERED.items()
)
ASKING = f"protocol NOT IN ('proxy', 'socks') AND NOT coalesce({_NEEDLESS}, false)"
"""Condition on ``exchanges``: a request that needs a response."""
SURE = 0.7
"""Below this confidence, what is said of a row is said to be inferred."""
STORES = {
    "memcached": "memcached",
    "mongodb": "MongoDB",
    "mysql": "MySQL",
    "postgresql": "PostgreSQL",
    "redis": "Redis",
}
"""Protocols of databases and caches, and the product that each is named after."""
OF_STORE = f"protocol IN {tuple(STORES)}"
"""Condition on ``exchanges``: a database or a cache is asked."""
STARTING = f"""{OF_STORE} AND coalesce(method IN ('SSLRequest', 'GSSENCRequest', 'Startup', 'Greeting', 'Connect',
    'Authenticate', 'AUTH', 'HELLO', 'CLIENT SETINFO', 'CLIENT SETNAME', 'SELECT',
    'hello', 'isMaster', 'ismaster', 'saslStart', 'saslContinue', 'authenticate', 'getnonce'), false)"""
"""Condition on ``exchanges``: it opens a connection to a store (encryption, authentication, which database), as long as
nothing else came before it."""
STATED = "coalesce(shape, target)"
"""Of ``exchanges``: the same for what differs in the values of a statement alone, also where these are kept."""
SHAPE = f"""coalesce(nullif(CASE WHEN protocol IN ('redis', 'memcached')
        THEN concat_ws(' ', method, regexp_replace(target, '[0-9A-Za-z]*[0-9][0-9A-Za-z-]*', '?', 'g'))
    WHEN protocol = 'mongodb' THEN concat_ws(' ', method, target)
    ELSE concat_ws(': ', if(target IS NOT NULL AND method IN ('Query', 'Execute'), NULL, method), {STATED}) END,
    ''), 'unknown')"""
"""Of the ``exchanges`` of a store: queries of one shape differ in values alone. The core replaces the literals of SQL;
words with a digit, in keys of Redis and memcached, are replaced here. MongoDB's commands are told with names of fields.
What does not run a statement (``Parse``,
``Prepare``) has the command before it; where the statement is not known, the command stands alone."""
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
_RESULTS = {
    0: "success",
    1: "operationsError",
    2: "protocolError",
    3: "timeLimitExceeded",
    4: "sizeLimitExceeded",
    5: "compareFalse",
    6: "compareTrue",
    7: "authMethodNotSupported",
    8: "strongerAuthRequired",
    10: "referral",
    11: "adminLimitExceeded",
    12: "unavailableCriticalExtension",
    13: "confidentialityRequired",
    14: "saslBindInProgress",
    16: "noSuchAttribute",
    17: "undefinedAttributeType",
    18: "inappropriateMatching",
    19: "constraintViolation",
    20: "attributeOrValueExists",
    21: "invalidAttributeSyntax",
    32: "noSuchObject",
    33: "aliasProblem",
    34: "invalidDNSyntax",
    36: "aliasDereferencingProblem",
    48: "inappropriateAuthentication",
    49: "invalidCredentials",
    50: "insufficientAccessRights",
    51: "busy",
    52: "unavailable",
    53: "unwillingToPerform",
    54: "loopDetect",
    64: "namingViolation",
    65: "objectClassViolation",
    66: "notAllowedOnNonLeaf",
    67: "notAllowedOnRDN",
    68: "entryAlreadyExists",
    69: "objectClassModsProhibited",
    71: "affectsMultipleDSAs",
    80: "other",
    118: "canceled",
}
_REDIS_ERRORS = (
    "OK",
    "ERR",
    "WRONGTYPE",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "READONLY",
    "NOREPLICAS",
    "MASTERDOWN",
    "LOADING",
    "BUSY",
    "UNKILLABLE",
    "MISCONF",
    "OOM",
    "EXECABORT",
    "NOSCRIPT",
    "NOPROTO",
    "BUSYGROUP",
    "NOGROUP",
    "BUSYKEY",
    "UNBLOCKED",
    "DENIED",
    "INPROG",
    "NOMASTERLINK",
    "NOTBUSY",
    "IOERR",
)
"""First words of Redis's errors, in the order of ``ERRORS`` in the core's ``exchange/redis/mod.rs``."""
_MEMCACHED_ERRORS = ("OK", "ERROR", "CLIENT_ERROR", "SERVER_ERROR")
"""First words of memcached's errors, in the order of ``ERRORS`` in the core's ``exchange/memcached/mod.rs``."""
_MONGODB_ERRORS = {
    0: "OK",
    1: "InternalError",
    2: "BadValue",
    8: "UnknownError",
    9: "FailedToParse",
    11: "UserNotFound",
    13: "Unauthorized",
    14: "TypeMismatch",
    17: "ProtocolError",
    18: "AuthenticationFailed",
    20: "IllegalOperation",
    24: "LockTimeout",
    26: "NamespaceNotFound",
    27: "IndexNotFound",
    40: "ConflictingUpdateOperators",
    43: "CursorNotFound",
    46: "LockBusy",
    48: "NamespaceExists",
    50: "MaxTimeMSExpired",
    52: "DollarPrefixedFieldName",
    59: "CommandNotFound",
    61: "ShardKeyNotFound",
    63: "StaleShardVersion",
    64: "WriteConcernFailed",
    66: "ImmutableField",
    72: "InvalidOptions",
    73: "InvalidNamespace",
    76: "NoReplicationEnabled",
    85: "IndexOptionsConflict",
    86: "IndexKeySpecsConflict",
    89: "NetworkTimeout",
    91: "ShutdownInProgress",
    112: "WriteConflict",
    115: "CommandNotSupported",
    121: "DocumentValidationFailure",
    133: "FailedToSatisfyReadPreference",
    146: "ExceededMemoryLimit",
    189: "PrimarySteppedDown",
    211: "KeyNotFound",
    237: "CursorKilled",
    238: "NotImplemented",
    251: "NoSuchTransaction",
    262: "ExceededTimeLimit",
    292: "QueryExceededMemoryLimitNoDiskUseAllowed",
    10107: "NotWritablePrimary",
    11000: "DuplicateKey",
    11600: "InterruptedAtShutdown",
    11601: "Interrupted",
    11602: "InterruptedDueToReplStateChange",
    13388: "StaleConfig",
    13435: "NotPrimaryNoSecondaryOk",
    13436: "NotPrimaryOrSecondary",
    17280: "KeyTooLong",
}
"""Names of MongoDB's errors that are usual, as its manual lists them (``codeName``)."""
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SQLSTATE = " || ".join(f"'{_DIGITS}'[status // {36**place} % 36 + 1]" for place in reversed(range(5)))
"""Of ``exchanges``: a number to the base of 36, which has five digits."""
_GRPC_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""Status codes of gRPC, from 0; other statuses are those of HTTP: who responded does not speak gRPC."""
GRPC_STATUS = f"(protocol = 'grpc' AND status BETWEEN 0 AND {len(_GRPC_CODES) - 1})"
"""Condition on ``exchanges``: the status is gRPC's, and that of HTTP was 200."""
GRPC_FAILED = "(protocol = 'grpc' AND status IN (2, 4, 12, 13, 14, 15))"
"""Condition on ``exchanges``: a status of gRPC that is the server's fault, by OpenTelemetry's conventions for spans of
servers: UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS."""
_REJECTED = {1: "CANT_MPX_CONN", 2: "OVERLOADED", 3: "UNKNOWN_ROLE"}
"""Protocol statuses of FastCGI 1.0, section 5.5; other statuses are those of HTTP."""
ANSWER = f"""CASE protocol WHEN 'dns' THEN coalesce({list(_RCODES)}[status + 1], 'RCODE ' || status)
    WHEN 'ldap' THEN coalesce(MAP {_RESULTS}[status], 'result code ' || status)
    WHEN 'redis' THEN CASE WHEN status >= 0 THEN coalesce({list(_REDIS_ERRORS)}[status + 1], 'error') END
    WHEN 'memcached' THEN {list(_MEMCACHED_ERRORS)}[status + 1]
    WHEN 'mongodb' THEN coalesce(MAP {_MONGODB_ERRORS}[status], 'error ' || status)
    WHEN 'postgresql' THEN {_SQLSTATE}
    WHEN 'grpc' THEN coalesce({list(_GRPC_CODES)}[status + 1], status::VARCHAR)
    WHEN 'fastcgi' THEN coalesce(MAP {_REJECTED}[status], status::VARCHAR)
    WHEN 'mysql' THEN CASE WHEN status = 0 THEN 'OK' ELSE 'ERROR ' || status END ELSE status::VARCHAR END"""
"""Of ``exchanges``: the status as people write it; of DNS the name of the RCODE (RFC 1035, RFC 2136), of LDAP that of
the result code (RFC 4511 section 4.1.9, RFC 3909), of Redis and memcached the first word of the error, of
MongoDB its name, of gRPC the status code, of PostgreSQL the SQLSTATE, of MySQL the number of the error, as its clients
print it."""


def literal(text: str) -> str:
    """Write text as an SQL literal: ``COPY`` and ``ATTACH`` take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def with_values(statement: str, values: Mapping[str, float]) -> str:
    """Write numbers where a statement names them, as ``$name``.

    DuckDB takes them as parameters, too; but for each, it looks on the disk for pandas, of which it might be a number.
    """
    written = {name: _number(value) for name, value in values.items()}
    return re.sub(r"\$(\w+)", lambda named: written.get(named[1], named[0]), statement)


def _number(value: float) -> str:
    """Write a number as SQL. Without an exponent, DuckDB makes a DECIMAL of a fraction."""
    told = repr(value)
    return told if isinstance(value, int) or "e" in told else f"{told}e0"
