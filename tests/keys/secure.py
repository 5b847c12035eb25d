"""Real TLS without a network: two OpenSSL endpoints in memory, and what they would have put on the wire.

In: what is said inside. Out: steps for :class:`tests.laws.talk.Talk`, and the key log that the client wrote.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.laws.talk import Finish, Say, Step

if TYPE_CHECKING:
    from pathlib import Path

    from tests.laws.hello import Speaker

REQUEST = b"GET /cart?item=7 HTTP/1.1\r\nHost: shop.example\r\n\r\n"
RESPONSE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 40000\r\n\r\n" + b"x" * 40_000
"""Three records, many segments."""


class End:
    """One endpoint."""

    def __init__(self, context: ssl.SSLContext, *, server: bool) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if server else "shop.example"
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=server, server_hostname=name)
        self.done = False

    def shake(self) -> None:
        """Go on with the handshake as far as what has arrived allows."""
        try:
            self.tls.do_handshake()
            self.done = True
        except ssl.SSLWantReadError:
            pass

    def take(self) -> None:
        """Read what has arrived, so that tickets and alerts are handled."""
        try:
            while self.tls.read(65_536):
                pass
        except ssl.SSLError:
            pass


@dataclass(kw_only=True)
class Secure:
    """One TLS connection between a client and a server with a certificate of its own."""

    certificate: Path
    """Certificate and key, in PEM."""
    key_log: Path
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: str = "ALL:@SECLEVEL=0"
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        client.keylog_filename = str(self.key_log)
        server.load_cert_chain(self.certificate)
        server.set_alpn_protocols(["http/1.1"])
        client.set_alpn_protocols(["http/1.1"])
        for context in (client, server):
            context.minimum_version = context.maximum_version = self.version
            if self.version < ssl.TLSVersion.TLSv1_3:
                context.set_ciphers(self.ciphers)
        self.ends: dict[Speaker, End] = {"client": End(client, server=False), "server": End(server, server=True)}
        while not all(end.done for end in self.ends.values()):
            for who in ("client", "server"):
                self.ends[who].shake()
                self.pass_on(who)

    def pass_on(self, who: Speaker) -> None:
        """Put what an endpoint has to send on the wire."""
        data = self.ends[who].outgoing.read()
        if data:
            self.steps.append(Say(who, data))
            self.ends["server" if who == "client" else "client"].incoming.write(data)

    def say(self, who: Speaker, data: bytes) -> None:
        """Send data from one end to the other."""
        self.ends[who].tls.write(data)
        self.pass_on(who)
        other: Speaker = "server" if who == "client" else "client"
        self.ends[other].take()
        self.pass_on(other)

    def close(self) -> list[Step]:
        """The steps of the whole connection."""
        return [*self.steps, Finish("client"), Finish("server")]


def ask_and_answer(secure: Secure) -> list[Step]:
    """A request with its response, twice."""
    for _ in range(2):
        secure.say("client", REQUEST)
        secure.say("server", RESPONSE)
    return secure.close()
