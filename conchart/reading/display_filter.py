"""Wireshark's display filters, where tcpdump's language is wanted: what they are, and what to write instead.

In: an expression that libpcap refuses. Out: advice, or nothing where it does not look like one. This is no translator:
only what has a plain counterpart is given one, the rest is told where to go.
"""

import re
from collections.abc import Callable

_COUNTERPARTS = {
    "ip.addr": "host",
    "ip.src": "src host",
    "ip.dst": "dst host",
    "ipv6.addr": "host",
    "ipv6.src": "src host",
    "ipv6.dst": "dst host",
    "eth.addr": "ether host",
    "eth.src": "ether src",
    "eth.dst": "ether dst",
    "vlan.id": "vlan",
    "tcp.port": "tcp port",
    "tcp.srcport": "tcp src port",
    "tcp.dstport": "tcp dst port",
    "udp.port": "udp port",
    "udp.srcport": "udp src port",
    "udp.dstport": "udp dst port",
}
"""What stands before a value in tcpdump's language, by Wireshark's name of the field."""

_USUAL_PORTS = {
    "dns": "port 53",
    "http": "tcp port 80",
    "http2": "tcp port 443",
    "http3": "udp port 443",
    "quic": "udp port 443",
    "ssl": "tcp port 443",
    "tls": "tcp port 443",
}
"""What Wireshark knows by content, by where it usually is: packets are chosen before their content is read."""

_FIELDS_OF = "arp|data|dns|eth|frame|http|http2|http3|icmp|icmpv6|ip|ipv6|quic|sctp|ssl|tcp|tls|udp|vlan|_ws"

_TERM = re.compile(
    rf"(?<![\w.])(?:(?P<field>(?:{_FIELDS_OF})(?:\.\w+)+)(?:\s*(?P<operator>==|!=|eq\b|ne\b)\s*(?P<value>[\w.:/-]+))?"
    rf"|(?P<protocol>{'|'.join(_USUAL_PORTS)})(?![\w.]))"
)
_STREAM = re.compile(r"\b(tcp|udp)\.stream\s*(?:==|eq)\s*(\d+)")


def advice(expression: str, compiles: Callable[[str], bool]) -> str:
    """Say what to write in the place of a display filter.

    Args:
        expression: What libpcap does not understand.
        compiles: Tells whether libpcap takes an expression.

    Returns:
        Lines, each indented; none where the expression is no display filter.
    """
    if not _TERM.search(expression):
        return ""
    lines = ["This is a display filter of Wireshark's; -f takes tcpdump's language (BPF: man pcap-filter)."]
    if stream := _STREAM.search(expression):
        transport, number = stream.groups()
        lines.append("Streams are numbered while reading, and chosen afterwards: on the page, or with")
        where = f"transport = '{transport}' AND transport_stream = {number}"
        lines.append(f'conchart query CAPTURE "FROM connections WHERE {where}"')
    elif (counterpart := _TERM.sub(_counterpart, expression)) != expression and compiles(counterpart):
        lines.append(f"Write: -f '{counterpart}'")
    else:
        lines.append("What packets say is read after they are chosen: ask the tables (conchart query --help).")
    return "".join(f"\n  {line}" for line in lines)


def _counterpart(term: re.Match[str]) -> str:
    """Give a term as tcpdump has it; one without a counterpart stays, and so will not compile."""
    field, operator, value, protocol = term.group("field", "operator", "value", "protocol")
    if protocol:
        return _USUAL_PORTS[protocol]
    if value is None or field not in _COUNTERPARTS:
        return term[0]
    words = _COUNTERPARTS[field]
    if "/" in value:
        words = words.replace("host", "net")
    return f"{'not ' if operator in ('!=', 'ne') else ''}{words} {value}"
