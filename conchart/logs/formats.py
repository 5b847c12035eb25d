"""Format strings of servers, as in their configuration, and what each field says.

In: ``log_format`` of nginx, ``LogFormat`` of Apache, ``log-format`` of HAProxy, a format string of Envoy. Out: layouts,
by which the core reads lines. Fields that tell nothing about a request on the wire are stepped over.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from conchart.errors import UsageError

PRODUCTS = ("nginx", "haproxy", "apache", "envoy", "json")
"""What the text before the file's name may be."""

_LOCAL = "%d/%b/%Y:%H:%M:%S%f %z"
_ISO = "%Y-%m-%dT%H:%M:%S%f%z"
_IDS = ("traceparent", "x-request-id", "x-correlation-id", "x-amzn-trace-id", "x-b3-traceid", "uber-trace-id", "cf-ray")
"""Header fields that ``exchanges.ids`` has, too."""
_LONGEST = 10_000
"""Characters of a format string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a variable of a server says."""

    role: str
    """As the core takes it; ``time:s`` and the like without the place among the durations."""
    rank: int = 1
    """Of several fields of one role, the one with the highest rank counts."""
    name: str = ""
    """Of a duration: as the server calls it."""
    wire: str = ""
    """Of a duration: the column of ``expected_log_lines`` that says the same from the packets."""
    total: bool = False
    """Of a duration: the whole request, as the server counts it."""
    instant: Literal["start", "end"] = "end"
    """Of an instant: which end of the request it is."""


_SKIP = Field(role="skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """How the lines of a log are built."""

    product: str
    text: str
    """The format string."""
    is_json: bool
    fields: tuple[tuple[str, str], ...]
    """Of each field the text before it (of JSON: its name) and its role."""
    tail: str
    times: tuple[str, ...]
    """Durations by the server's names, in the order of ``log_lines.durations``."""
    instant: Literal["start", "end"]

    @property
    def layout(self) -> tuple[bool, tuple[tuple[str, str], ...], str]:
        """As the core takes it."""
        return self.is_json, self.fields, self.tail


def _seconds(name: str, wire: str, *, total: bool = False) -> Field:
    return Field(role="time:s", name=name, wire=wire, total=total)


_NGINX = {
    "remote_addr": Field(role="client_ip"),
    "realip_remote_addr": Field(role="client_ip", rank=2),
    "remote_port": Field(role="client_port"),
    "realip_remote_port": Field(role="client_port", rank=2),
    "time_local": Field(role=f"at:{_LOCAL}"),
    "time_iso8601": Field(role=f"at:{_ISO}"),
    "msec": Field(role="at:%s", rank=2),
    "request": Field(role="request"),
    "request_method": Field(role="method"),
    "request_uri": Field(role="target", rank=2),
    "uri": Field(role="target"),
    "host": Field(role="host"),
    "http_host": Field(role="host", rank=2),
    "status": Field(role="status"),
    "bytes_sent": Field(role="bytes", rank=2),
    "body_bytes_sent": Field(role="bytes"),
    "request_length": Field(role="request_bytes"),
    "request_id": Field(role="id:x-request-id"),
    "request_time": _seconds("$request_time", "nginx_request_ns", total=True),
    "upstream_connect_time": _seconds("$upstream_connect_time", "nginx_upstream_connect_ns"),
    "upstream_header_time": _seconds("$upstream_header_time", "nginx_upstream_header_ns"),
    "upstream_response_time": _seconds("$upstream_response_time", "nginx_upstream_response_ns"),
}


def _ms(name: str, wire: str, *, total: bool = False) -> Field:
    return Field(role="time:ms", name=name, wire=wire, total=total)


_HAPROXY = {
    "ci": Field(role="client_ip"),
    "cp": Field(role="client_port"),
    "t": Field(role="at:%d/%b/%Y:%H:%M:%S%f", instant="start"),
    "tr": Field(role="at:%d/%b/%Y:%H:%M:%S%f", instant="start", rank=3),
    "T": Field(role=f"at:{_LOCAL}"),
    "Ts": Field(role="at:%s"),
    "trg": Field(role=f"at:{_LOCAL}", instant="start", rank=2),
    "trl": Field(role=f"at:{_LOCAL}", instant="start", rank=2),
    "r": Field(role="request"),
    "HM": Field(role="method"),
    "HU": Field(role="target", rank=3),
    "HPO": Field(role="target"),
    "HP": Field(role="target"),
    "HQ": Field(role="query"),
    "ST": Field(role="status"),
    "B": Field(role="bytes"),
    "U": Field(role="request_bytes"),
    "ID": Field(role="id:x-request-id"),
    "Th": _ms("%Th", "haproxy_th_ns"),
    "Ti": _ms("%Ti", "haproxy_ti_ns"),
    "TR": _ms("%TR", "haproxy_head_ns"),
    "Tw": _ms("%Tw", "haproxy_tw_ns"),
    "Tc": _ms("%Tc", "haproxy_tc_ns"),
    "Tr": _ms("%Tr", "haproxy_answer_ns"),
    "Ta": _ms("%Ta", "haproxy_ta_ns", total=True),
    "Tq": _ms("%Tq", ""),
    "Tt": _ms("%Tt", ""),
}

_APACHE = {
    "h": Field(role="client_ip"),
    "a": Field(role="client_ip", rank=2),
    "{c}a": Field(role="client_ip", rank=3),
    "{remote}p": Field(role="client_port"),
    "r": Field(role="request"),
    "m": Field(role="method"),
    "U": Field(role="target"),
    "q": Field(role="query"),
    "s": Field(role="status"),
    "b": Field(role="bytes"),
    "B": Field(role="bytes"),
    "O": Field(role="bytes", rank=2),
    "I": Field(role="request_bytes"),
    "v": Field(role="host"),
    "V": Field(role="host"),
    "{Host}i": Field(role="host", rank=2),
    "D": Field(role="time:us", name="%D", wire="apache_ns", total=True, rank=3),
    "{us}T": Field(role="time:us", name="%{us}T", wire="apache_ns", total=True, rank=3),
    "{ms}T": Field(role="time:ms", name="%{ms}T", wire="apache_ns", total=True, rank=2),
    "T": Field(role="time:s", name="%T", wire="", total=True),
    "{s}T": Field(role="time:s", name="%{s}T", wire="", total=True),
}
_APACHE_UNITS = {
    "sec": ("at:%s", 1),
    "msec": ("at:%L", 3),
    "usec": ("at:%U", 4),
    "msec_frac": ("fraction:ms", 1),
    "usec_frac": ("fraction:us", 1),
}

_ENVOY = {
    "REQ(:METHOD)": Field(role="method"),
    "REQ(:PATH)": Field(role="target"),
    "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)": Field(role="target", rank=2),
    "REQ(:AUTHORITY)": Field(role="host"),
    "RESPONSE_CODE": Field(role="status"),
    "BYTES_SENT": Field(role="bytes"),
    "BYTES_RECEIVED": Field(role="request_bytes"),
    "DOWNSTREAM_REMOTE_ADDRESS": Field(role="client"),
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS": Field(role="client", rank=2),
    "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": Field(role="client_ip"),
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT": Field(role="client_ip", rank=2),
    "DOWNSTREAM_REMOTE_PORT": Field(role="client_port"),
    "DURATION": _ms("%DURATION%", "envoy_ns", total=True),
    "REQUEST_DURATION": _ms("%REQUEST_DURATION%", "envoy_request_ns"),
    "RESPONSE_DURATION": _ms("%RESPONSE_DURATION%", "envoy_response_ns"),
    "RESPONSE_TX_DURATION": _ms("%RESPONSE_TX_DURATION%", "envoy_response_tx_ns"),
    "RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)": _ms("%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%", ""),
}

_JSON = {
    **{name: Field(role=f"at:{_ISO}") for name in ("time", "timestamp", "@timestamp", "date", "datetime")},
    **{name: Field(role="client_ip") for name in ("client_ip", "clientip", "remote_ip", "ip")},
    **{name: Field(role="method") for name in ("method", "verb", "http_method")},
    **{name: Field(role="target") for name in ("path", "url", "target")},
    **{name: Field(role="status") for name in ("status_code", "code", "response_code", "response")},
    **{name: Field(role="bytes") for name in ("bytes", "size", "response_bytes", "response_size")},
    **{name: Field(role="id:x-request-id") for name in ("x_request_id", "requestid", "req_id", "x-request-id")},
    "client_port": Field(role="client_port"),
    "traceparent": Field(role="id:traceparent"),
    "uri_query": Field(role="query"),
    "start_time": Field(role=f"at:{_ISO}", instant="start", rank=2),
    "authority": Field(role="host"),
    "bytes_received": Field(role="request_bytes"),
    "duration_ms": _ms("duration_ms", "nginx_request_ns", total=True),
    "duration": _ms("duration", "envoy_ns", total=True),
    "response_duration": _ms("response_duration", "envoy_response_ns"),
}
_JSON |= {name: field for name, field in _NGINX.items() if name not in _JSON}

_COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
_UPSTREAM = "$upstream_connect_time $upstream_header_time $upstream_response_time"
_HTTPLOG = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r"
WIRES = {
    field.name: (field.wire, field.total)
    for fields in (_NGINX, _HAPROXY, _APACHE, _ENVOY, _JSON)
    for field in fields.values()
    if field.name
}
"""Of each duration: the column of ``expected_log_lines`` that says the same; whether it is of the whole request."""
TOTALS = tuple(name for name, (_, total) in WIRES.items() if total)
_ENVOY_REQUEST = (
    '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% '
)
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "nginx": (
        _COMBINED,
        f"{_COMBINED} $request_time",
        f"{_COMBINED} $request_time $upstream_response_time",
        f"{_COMBINED} $request_time {_UPSTREAM}",
        f"{_COMBINED} $msec $request_time {_UPSTREAM}",
        f'{_COMBINED} "$http_x_forwarded_for"',
        f'{_COMBINED} "$http_x_forwarded_for" $request_time',
        f'{_COMBINED} "$http_x_forwarded_for" $request_time $upstream_response_time',
        f'{_COMBINED} rt=$request_time uct="$upstream_connect_time" uht="$upstream_header_time" '
        'urt="$upstream_response_time"',
        f"{_COMBINED} rt=$request_time uct=$upstream_connect_time uht=$upstream_header_time "
        "urt=$upstream_response_time",
        f"{_COMBINED} $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] "
        "$upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id",
    ),
    "haproxy": (
        _HTTPLOG,
        f"{_HTTPLOG} %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/"
        "%sslc",
        "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq",
    ),
    "apache": (
        '%h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"',
        '%h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i" %D',
        '%h %l %u %t "%r" %>s %b',
        '%h %l %u %t "%r" %>s %b %D',
        '%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"',
    ),
    "envoy": (
        f"{_ENVOY_REQUEST}"
        "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "
        '"%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"',
        f"{_ENVOY_REQUEST}"
        '%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" '
        "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "
        '"%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" '
        "%UPSTREAM_CLUSTER% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% "
        "%REQUESTED_SERVER_NAME% %ROUTE_NAME%",
    ),
    "json": (),
}
"""What the products write where nobody says otherwise, and forms with times that their manuals show. The second one of
Envoy is Istio's."""

_Piece = tuple[str, Field]
"""The text before a field, and the field."""


def formats_of(product: str, text: str | None = None) -> list[LogFormat]:
    """Give the ways in which the lines of a log may be built.

    Args:
        product: One of ``PRODUCTS``.
        text: The format string, if somebody knows it.

    Raises:
        UsageError: The format string has no field, or nothing that says when.
    """
    if text is None:
        usual = [built for default in _DEFAULTS[product] for built in _built(product, default)]
        return [*usual, _usual_json(product)]
    if len(text) > _LONGEST:
        raise UsageError(f"--log-format: a format has at most {_LONGEST:,} characters, not {len(text):,}")
    if product == "json":
        product = _guessed(text)
    found = _built(product, _unquoted(text))
    if not any(role.startswith("at:") for _, role in found[0].fields):
        example = {"nginx": "$msec", "haproxy": "%tr", "apache": "%t", "envoy": "%START_TIME%"}[product]
        raise UsageError(f"--log-format {text}: it has no time that conchart can read, for example {example}")
    return found


def _guessed(text: str) -> str:
    if re.search(r"%[A-Z_]+(\([^)]*\))?%", text):
        return "envoy"
    return "nginx" if "$" in text else "apache" if re.search(r"%>?s|%[tD]", text) else "haproxy"


def _unquoted(text: str) -> str:
    """Take a format out of the quotes that it has in a configuration."""
    text = text.strip().removesuffix("\\n")
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
        # nginx joins several texts.
        text = re.sub(r"'\s+'", "", text)
    return text.replace('\\"', '"').replace("\\ ", " ").replace("\\t", "\t")


def _built(product: str, text: str) -> list[LogFormat]:
    """Give the formats that a string stands for: HAProxy leaves out captured headers where there are none."""
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except ValueError:
            document = None
        if isinstance(document, dict):
            return [_json_format(product, text, document)]
    texts = [text]
    if product == "haproxy":
        texts += [text.replace(" %hs", ""), text.replace(" %hr", "").replace(" %hs", "")] if " %hr" in text else []
    return [_text_format(product, each) for each in dict.fromkeys(texts)]


def _json_format(product: str, text: str, document: dict[str, object]) -> LogFormat:
    pieces = []
    for name, value in document.items():
        inner, _ = _pieces(product, value) if isinstance(value, str) else ([], "")
        if len(inner) == 1:
            pieces.append((str(name), inner[0][1]))
    return _assembled(product, text, pieces, tail="", is_json=True)


def _usual_json(product: str) -> LogFormat:
    return _assembled(product, "JSON", list(_JSON.items()), tail="", is_json=True, choose=False)


def _text_format(product: str, text: str) -> LogFormat:
    pieces, tail = _pieces(product, text)
    if not pieces:
        raise UsageError(f"--log-format {text}: it has no field of {product}")
    return _assembled(product, text, pieces, tail=tail, is_json=False)


def _assembled(
    product: str, text: str, pieces: list[_Piece], *, tail: str, is_json: bool, choose: bool = True
) -> LogFormat:
    """Choose among fields that say the same, and number the durations."""
    best: dict[str, int] = {}
    for _, field in pieces:
        kind = _kind(field)
        best[kind] = max(best.get(kind, 0), field.rank)
    fields: list[tuple[str, str]] = []
    times: list[Field] = []
    taken: set[str] = set()
    has_request = any(field.role == "request" for _, field in pieces)
    instant: Literal["start", "end"] = "end"
    for before, field in pieces:
        kind = _kind(field)
        spare = choose and kind != "skip" and (field.rank < best[kind] or kind in taken)
        spare |= choose and has_request and kind in ("method", "target", "query")
        if spare:
            field = _SKIP  # noqa: PLW2901  (another field says it better)
        else:
            taken.add(kind)
        if field.role.startswith("at:"):
            instant = field.instant
        if field.role.startswith("time:"):
            fields.append((before, f"time:{len(times)}:{field.role.removeprefix('time:')}"))
            times.append(field)
        else:
            fields.append((before, field.role))
    if not choose:  # names of several products: a line has those of one
        instant = "start" if product == "envoy" else "end"
    return LogFormat(
        product=product,
        text=text,
        is_json=is_json,
        fields=tuple(_with_ends(fields)),
        tail=tail,
        times=tuple(field.name for field in times),
        instant=instant,
    )


def _with_ends(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Make one field of an address and a port with a colon between: an IPv6 address has colons, too."""
    joined: list[tuple[str, str]] = []
    for before, role in fields:
        if role == "client_port" and before == ":" and joined and joined[-1][1] == "client_ip":
            joined[-1] = (joined[-1][0], "client")
        else:
            joined.append((before, role))
    return joined


def _kind(field: Field) -> str:
    """Fields of one kind say the same."""
    kind = field.role.partition(":")[0]
    if kind == "time":
        return "total" if field.total else field.name
    return "client_ip" if kind == "client" else field.role if kind == "id" else kind


def _pieces(product: str, text: str) -> tuple[list[_Piece], str]:
    """Give the fields of a format string, each with the text before it, and the text after the last one."""
    pieces: list[_Piece] = []
    before, place = "", 0
    for start, end, around, field in _READERS[product](text):
        before += text[place:start].replace("%%", "%") + around[0]
        pieces.append((before, field))
        before, place = around[1], end
    return pieces, before + text[place:].replace("%%", "%")


_Token = tuple[int, int, tuple[str, str], Field]
"""Where a field stands in a format string, what the server writes around it, what it says."""


def _nginx(text: str) -> Iterator[_Token]:
    for found in re.finditer(r"\$(?:\{(\w+)\}|(\w+))", text):
        name = found[1] or found[2]
        yield (*found.span(), ("", ""), _NGINX.get(name) or _header(name.removeprefix("http_"), name))


def _header(header: str, name: str) -> Field:
    canonical = header.lower().replace("_", "-")
    return Field(role=f"id:{canonical}") if canonical in _IDS and header != name else _SKIP


def _haproxy(text: str) -> Iterator[_Token]:
    for found in re.finditer(r"%(?:\{([^}]*)\})?(?:\[([^\]]*)\]|([A-Za-z]+))", text):
        quote = '"' if "+Q" in (found[1] or "") else ""
        if found[2] is not None:
            header = re.search(r"hdr\(([\w-]+)", found[2])
            field = _header(header[1], "") if header else _HAPROXY_FETCHES.get(found[2].strip(), _SKIP)
        else:
            field = _HAPROXY.get(found[3], _SKIP)
        yield (*found.span(), (quote, quote), field)


_HAPROXY_FETCHES = {
    "src": Field(role="client_ip"),
    "src_port": Field(role="client_port"),
    "method": Field(role="method"),
    "path": Field(role="target"),
    "pathq": Field(role="target", rank=2),
    "url": Field(role="target", rank=2),
    "status": Field(role="status"),
    "unique-id": Field(role="id:x-request-id"),
}


def _apache(text: str) -> Iterator[_Token]:
    for found in re.finditer(r"%[!\d,]*[<>]?(\{[^}]*\})?(\^[a-zA-Z]{2}|[a-zA-Z])", text):
        inner, letter = found[1] or "", found[2]
        if letter == "t":
            yield (*found.span(), *_apache_time(inner[1:-1]))
            continue
        field = _APACHE.get(inner + letter) or _APACHE.get(inner.capitalize() + letter)
        if field is None and letter in "io" and inner:
            field = Field(role="host", rank=2) if inner.lower() == "{host}" else _header(inner[1:-1], "")
        yield (*found.span(), ("", ""), field or _SKIP)


def _apache_time(pattern: str) -> tuple[tuple[str, str], Field]:
    """Give what ``%t`` stands for: the start of the request, unless ``end:`` is asked for."""
    instant: Literal["start", "end"] = "end" if pattern.startswith("end:") else "start"
    pattern = pattern.removeprefix("begin:").removeprefix("end:")
    if not pattern:
        return ("[", "]"), Field(role=f"at:{_LOCAL}", instant=instant)
    if pattern in _APACHE_UNITS:
        role, rank = _APACHE_UNITS[pattern]
        return ("", ""), Field(role=role, rank=rank, instant=instant)
    return ("", ""), Field(role=f"at:{_strftime(pattern)}", rank=2, instant=instant)


def _strftime(pattern: str) -> str:
    """Write out what stands for several conversions. A fraction takes its point along."""
    for short, long in {"%T": "%H:%M:%S", "%F": "%Y-%m-%d", "%D": "%m/%d/%y", "%R": "%H:%M"}.items():
        pattern = pattern.replace(short, long)
    return re.sub(r"\.?%[1-9]?f", "%f", pattern)


def _envoy(text: str) -> Iterator[_Token]:
    for found in re.finditer(r"%([A-Z0-9_]+)(?:\(([^)]*)\))?(?::\d+)?%", text):
        name, inner = found[1], found[2]
        if name == "START_TIME":
            pattern = _strftime(inner) if inner else _ISO
            yield (*found.span(), ("", ""), Field(role=f"at:{pattern}", instant="start"))
            continue
        operator = f"{name}({inner.upper()})" if inner else name
        field = _ENVOY.get(operator)
        if field is None and name == "REQ":
            field = _header(inner or "", "")
        yield (*found.span(), ("", ""), field or _SKIP)


_READERS: dict[str, Callable[[str], Iterator[_Token]]] = {
    "nginx": _nginx,
    "haproxy": _haproxy,
    "apache": _apache,
    "envoy": _envoy,
    "json": _nginx,
}
