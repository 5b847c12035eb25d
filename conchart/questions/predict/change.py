"""What is changed. In: what somebody asks for. Out: :class:`Change`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from conchart.labels.changes import CHANGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changed set-up; several changes work together."""

    keepalive: bool = False
    """Connections stay open, and are used again."""
    resume: bool = False
    """TLS sessions are resumed."""
    tls13: bool = False
    """TLS 1.3 is spoken where it was 1.2 or older."""
    zero_rtt: bool = False
    """The first request of a resumed connection of TLS 1.3 goes with the ClientHello."""
    nodelay: bool = False
    """Small segments are not held back for an acknowledgement (``TCP_NODELAY``)."""
    tls_off: bool = False
    """No TLS."""
    rtt_ns: int | None = None
    """The round trip between users and the servers that they call."""
    server: str | None = None
    """The one server that all but the round trip is changed for: a name, an address, or an address and a port."""

    @classmethod
    def of(cls, words: Iterable[str]) -> "Change":
        """Give the change that ``words`` name."""
        wanted: dict[str, Any] = {{"0rtt": "zero_rtt", "tls-off": "tls_off"}.get(word, word): True for word in words}
        return cls(**wanted)

    @property
    def words(self) -> tuple[str, ...]:
        """The names of what is changed for servers, as options of the command line have them."""
        wanted = (self.keepalive, self.resume, self.tls13, self.zero_rtt, self.nodelay, self.tls_off)
        return tuple(name for name, chosen in zip(CHANGES, wanted, strict=True) if chosen)

    def chooses(self, server: tuple[str, int], name: str) -> bool:
        """Tell whether a server, at an address and port and of a name, is changed."""
        if self.server is None:
            return True
        ip, port = server
        return self.server in (name, ip, f"{ip}:{port}", f"[{ip}]:{port}")
