"""What each step of a connection is for: a sentence for students, with what this connection's packets say.

Sources: RFC 9293 (TCP), RFC 5246 (TLS 1.2), RFC 8446 (TLS 1.3; tickets: section 4.6.1). In: cargo, with the
handshake or exchange that it belongs to. Out: a sentence.
"""

from collections.abc import Callable

from conchart.labels.units import count_of, format_bytes
from conchart.questions.explain.payload_labels import HELLO_RETRY, PayloadLabel
from conchart.report.rows import Row

_OLD = ("SSLv2", "SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2")


def meaning(cargo: PayloadLabel, sender: str) -> str:
    """Say what it is for, in one or two sentences; nothing where there is nothing to say."""
    if cargo.name in _PARTS:
        return _PARTS[cargo.name](cargo)
    tell = _MEANINGS.get(cargo.name)
    return tell(cargo.row or {}, sender) if tell else ""


def _is_old(handshake: Row) -> bool:
    return handshake.get("version") in _OLD


def _client_hello(h: Row, _: str) -> str:
    name = f", names the server it wants ({h['sni']})" if h.get("sni") else ""
    offers = f"The client offers versions, cipher suites and groups{name}"
    if h.get("resumption_offered"):
        offers += ", offers to resume an earlier session"
    if h.get("key_shares"):
        return (
            f"{offers}. It guesses groups and sends key shares ({h['key_shares']}): one that fits saves a round trip."
        )
    return f"{offers}. Now it waits for the server's choice: a round trip."


def _server_hello(h: Row, _: str) -> str:
    chosen = ", ".join(str(h[name]) for name in ("version", "cipher", "named_group") if h.get(name))
    resumed = h.get("kind") not in (None, "full")
    how = " It takes up the offered session: no certificate is needed." if resumed else ""
    rest = "" if _is_old(h) else " From here on everything is encrypted."
    return f"The server chooses {chosen or 'what it likes of it'}.{how}{rest}"


def _retry(_: Row, __: str) -> str:
    return (
        "The server takes none of the key shares and names the group it wants: the client must begin again, a round "
        "trip later (RFC 8446 section 4.1.4)."
    )


def _certificate(h: Row, sender: str) -> str:
    if sender == "client":
        return "Who the client is: the server asked for it."
    size = h.get("certificate_bytes")
    chain = (
        f": {count_of(h['certificates'], 'certificate')} of {format_bytes(size)}"
        if h.get("certificates") and size
        else ""
    )
    return f"Who the server is{chain}. The client checks the chain, which takes its CPU."


def _verify(_: Row, sender: str) -> str:
    return f"A signature over the handshake: the {sender} has the key of its certificate. It takes its CPU."


def _change_cipher(h: Row, sender: str) -> str:
    if _is_old(h):
        return f"What the {sender} sends after this is encrypted."
    return "It means nothing any more: TLS 1.3 sends it for the sake of old middleboxes (RFC 8446 appendix D.4)."


def _finished(h: Row, sender: str) -> str:
    first = "A checksum of the whole handshake: both ends have seen the same."
    if sender == "client" and not _is_old(h):
        return f"{first} The client may send its request at once, without an answer to this."
    if _is_old(h) and (sender == "server") == (h.get("kind") == "full"):
        return f"{first} Now both may send application data."
    return first


def _alert(h: Row, sender: str) -> str:
    if h.get("outcome") == "failed" and h.get("alert") and h.get("alert_by") == sender:
        return f"The {sender} ends the handshake: {h['alert']}."
    return "TLS ends here, or one side gives up: an alert says which."


def _request(cargo: PayloadLabel) -> str:
    if cargo.part == "goes on":
        return ""
    if cargo.row is not None and cargo.row["needless"]:
        return "Nothing answers it."
    return "With its last byte, the wait begins." if cargo.part in ("", "ends") else "The client asks."


def _response(cargo: PayloadLabel) -> str:
    return "With its first byte, the wait is over." if cargo.part in ("", "begins") else ""


_MEANINGS: dict[str, Callable[[Row, str], str]] = {
    "ClientHello": _client_hello,
    "SSLv2 hello": lambda *_: "A hello in the form of SSLv2, which very old clients sent.",
    "ServerHello": _server_hello,
    HELLO_RETRY: _retry,
    "EncryptedExtensions": lambda *_: "The rest of the server's answers to the ClientHello.",
    "Certificate": _certificate,
    "CompressedCertificate": _certificate,
    "CertificateStatus": lambda *_: "The proof that the certificate is not revoked (OCSP stapling).",
    "CertificateRequest": lambda *_: "The server wants a certificate of the client, too.",
    "CertificateVerify": _verify,
    "ServerKeyExchange": lambda *_: "The server's half of the key exchange, signed: the signature takes its CPU.",
    "ServerHelloDone": lambda *_: "The server has said all: the client must answer first, a round trip.",
    "ClientKeyExchange": lambda *_: "The client's half of the key exchange: now both can work out the keys.",
    "ChangeCipherSpec": _change_cipher,
    "Finished": _finished,
    "EndOfEarlyData": lambda *_: "The early data ends here.",
    "NewSessionTicket": lambda *_: "A ticket: with it the client can resume later, without certificates.",
    "KeyUpdate": lambda *_: "New keys for what this side sends from here on.",
    "early data": lambda *_: "A request in the first flight (0-RTT), before the server has said a word.",
    "Alert": _alert,
}
_PARTS = {"request": _request, "response": _response}
