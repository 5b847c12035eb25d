"""Frames of HTTP/2 (RFC 9113) in clear, for talks that are written down.

In: what frames say. Out: their bytes. Header fields are literals without indexing (RFC 7541 section 6.2.2): no table
has a state.
"""

from __future__ import annotations

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
END_STREAM, END_HEADERS, ACK = 1, 4, 1
WINDOW = 65_535
"""What a connection and a stream may send at first."""
FRAME = 16_384


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def settings(**values: int) -> bytes:
    """Return SETTINGS; ``initial_window_size`` is the only one that talks need."""
    names = {"initial_window_size": 4}
    return frame(4, 0, 0, b"".join(names[name].to_bytes(2) + value.to_bytes(4) for name, value in values.items()))


def settings_ack() -> bytes:
    """Acknowledge the peer's SETTINGS."""
    return frame(4, ACK, 0)


def headers(stream: int, fields: dict[str, str], *, ends: bool = False) -> bytes:
    """Return HEADERS with a whole header section."""
    block = b"".join(
        b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
        for name, value in fields.items()
    )
    return frame(1, END_HEADERS | (END_STREAM if ends else 0), stream, block)


def request(stream: int, path: str, *, method: str = "GET", ends: bool = True, **fields: str) -> bytes:
    """Return the HEADERS of a request."""
    pseudo_headers = {":method": method, ":scheme": "http", ":path": path, ":authority": "shop.example"}
    return headers(
        stream, pseudo_headers | {name.replace("_", "-"): value for name, value in fields.items()}, ends=ends
    )


def data(stream: int, size: int, *, ends: bool = False) -> list[bytes]:
    """Return content in frames of 16 KiB at most."""
    sizes = [FRAME] * (size // FRAME) + [size % FRAME] * (size % FRAME > 0)
    return [
        frame(0, END_STREAM if ends and number == len(sizes) - 1 else 0, stream, b"x" * length)
        for number, length in enumerate(sizes)
    ]


def window_update(stream: int, increment: int) -> bytes:
    """Allow the peer to send more."""
    return frame(8, 0, stream, increment.to_bytes(4))


def reset(stream: int, code: int) -> bytes:
    """End a stream."""
    return frame(3, 0, stream, code.to_bytes(4))


def ping() -> bytes:
    """Ask whether the peer is there."""
    return frame(6, 0, 0, b"conchart")


def goaway(last: int, code: int, text: bytes = b"") -> bytes:
    """End the connection."""
    return frame(7, 0, 0, last.to_bytes(4) + code.to_bytes(4) + text)
