"""Requests and responses of HTTP/1.1 as the steps of both ends of a connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NAME = "shop.example"
Step = list[Any]


@dataclass
class Conversation:
    """What client and server do, in step."""

    client: list[Step] = field(default_factory=list)
    server: list[Step] = field(default_factory=list)
    requests: int = 0

    @property
    def read(self) -> int:
        """Bytes that both ends read in all."""
        return sum(step[1] for step in self.client + self.server if step[0] == "read")

    def ask(
        self,
        body: int = 0,
        *,
        apart: bool = False,
        think_ms: float = 0,
        pieces: int = 1,
        pause_ms: float = 0,
        slow: Step | None = None,
    ) -> Conversation:
        """Let the client ask, after ``think_ms``.

        ``apart``: head and body leave in two writes. ``pieces``: the body in so many writes, ``pause_ms`` between them.
        ``slow``: the server reads in steps of so many bytes, with so many milliseconds between them.
        """
        self.requests += 1
        verb = "POST" if body else "GET"
        length = f"Content-Length: {body}\r\n" if body else ""
        head = f"{verb} /{self.requests} HTTP/1.1\r\nHost: {NAME}\r\n{length}\r\n"
        self.client += [["think", think_ms]] if think_ms else []
        self.client += writes(head, body, apart, pieces, pause_ms)
        self.server += [["read", len(head) + body, *(slow or [])]]
        return self

    def answer(
        self,
        body: int,
        *,
        apart: bool = False,
        think_ms: float = 0,
        pieces: int = 1,
        pause_ms: float = 0,
        slow: Step | None = None,
        first: int = 0,
        nap_ms: float = 0,
    ) -> Conversation:
        """Let the server answer, after ``think_ms``; as :meth:`ask`, the other way round.

        ``first``, ``nap_ms``: the client reads so many bytes, then none for so many milliseconds.
        """
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n"
        self.server += [["think", think_ms]] if think_ms else []
        self.server += writes(head, body, apart, pieces, pause_ms)
        self.client += [["read", first]] if first else []
        self.client += [["think", nap_ms]] if nap_ms else []
        self.client += [["read", len(head) + body - first, *(slow or [])]]
        return self

    def rest(self, ms: float) -> Conversation:
        """Let the client keep the connection open for a while."""
        self.client += [["think", ms]]
        return self


def writes(head: str, body: int, apart: bool, pieces: int, pause_ms: float) -> list[Step]:
    """Cut a message into writes."""
    if apart:
        return [["write", head, 0], ["write", "", body]]
    size = body // pieces
    steps: list[Step] = [["write", head, body - size * (pieces - 1)]]
    for _ in range(pieces - 1):
        steps += [["pause", pause_ms], ["write", "", size]]
    return steps
