"""Text from a capture, made safe to print: SNI, Host, paths and file names come from the senders of the packets.

In: any text. Out: text of visible characters and ordinary spaces, which moves no cursor, changes no colour and
reverses no line.
"""

import unicodedata

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (bidi marks, zero width), surrogate, private, unassigned; line and paragraph separators."""


def printable(text: str, limit: int = 200) -> str:
    """Replace every character that is no plain glyph by ``\ufffd``, and cut at ``limit`` characters with ``…``."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    # What Python calls printable has none of these characters, and not every character that is safe.
    if text.isprintable():
        return text
    return "".join("\ufffd" if unicodedata.category(character) in _UNSAFE else character for character in text)


def printable_lines(text: str, limit: int = 200) -> str:
    """Make text of several lines ``printable``, each line for itself: they stay lines."""
    return "\n".join(printable(line, limit) for line in text.split("\n"))


def endpoint(ip: str, port: int) -> str:
    """Write an address and a port: ``10.0.0.5:443``, ``[2001:db8::1]:443`` (RFC 3986 section 3.2.2)."""
    ip = printable(ip)
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def named_endpoint(name: str, port: int) -> str:
    """Write a name and a port. A name that was sent with a port, as Host often is, keeps its own."""
    before, _, its_port = name.rpartition(":")
    return name if before and its_port.isdecimal() else f"{name}:{port}"
