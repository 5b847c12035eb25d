"""Writes what the core's tests of QPACK read: sections that ls-qpack made, with the fields that it had been given.

``python -m tests.http3.qpack_vectors`` writes ``vectors.txt`` beside the decoder. Each conversation begins with the
capacity that the settings allow; ``instructions`` are of the encoder stream, ``section`` is a field section, the lines
below it are its fields. Instructions may come after the section that needs them.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pylsqpack

WRITTEN = Path(__file__).parents[2] / "conchart/native/src/exchange/http3/vectors.txt"
CAPACITIES = (0, 220, 1024, 4096, 70_000)
SECTIONS = 40


def _fields(chance: random.Random) -> list[tuple[bytes, bytes]]:
    """A request whose fields partly come again: a small table has to evict, and counts wrap."""
    fields = [
        (b":method", chance.choice([b"GET", b"POST", b"PURGE"])),
        (b":scheme", b"https"),
        (b":authority", b"shop%d.example" % chance.randrange(3)),
        (b":path", b"/item/%d" % chance.randrange(20)),
        (b"user-agent", b"check/1.%d" % chance.randrange(2)),
    ]
    if chance.random() < 0.5:
        fields.append((b"x-request-id", b"%032x" % chance.getrandbits(128)))
    if chance.random() < 0.2:
        fields.append((b"cookie", bytes(chance.randrange(0x21, 0x7F) for _ in range(150))))
    return fields


def _conversation(capacity: int) -> Iterator[str]:
    chance = random.Random(capacity)  # noqa: S311
    encoder, decoder = pylsqpack.Encoder(), pylsqpack.Decoder(capacity, 16)
    yield f"allowed {capacity}"
    begin = encoder.apply_settings(max_table_capacity=capacity, blocked_streams=16)
    late = begin
    for number in range(SECTIONS):
        stream = 4 * number
        fields = _fields(chance)
        instructions, section = encoder.encode(stream, fields)
        late += instructions
        is_late = chance.random() < 0.3
        if late and not is_late:
            yield f"instructions {late.hex()}"
        yield f"section {section.hex()}"
        yield from (f"{name.decode()} {value.decode()}" for name, value in fields)
        if late and is_late:
            yield f"instructions {late.hex()}"
        decoder.feed_encoder(late)
        late = b""
        acknowledged, decoded = decoder.feed_header(stream, section)
        assert decoded == fields
        encoder.feed_decoder(acknowledged)


def vectors() -> str:
    """Gives the text of the file: the same each time."""
    return "".join(f"{line}\n" for capacity in CAPACITIES for line in _conversation(capacity))


def main() -> None:
    """Writes the file."""
    WRITTEN.write_text(vectors())


if __name__ == "__main__":
    main()
