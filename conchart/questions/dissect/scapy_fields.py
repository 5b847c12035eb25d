"""Asks scapy what is in TLS handshake messages. Run as a script, in a process of its own; nothing imports it.

Scapy is GPL-2.0-only, and may not be one program with what is under Apache-2.0 alone, as conchart's core is in part.
So this file imports scapy and nothing of conchart, and the rest of conchart knows scapy as a process only
(docs/decisions/scapy-in-its-own-process.md).

In: JSON on standard input, ``[{"kind": 1, "version": "TLSv1.3", "body": "0303…"}, …]``, messages in the order in which
they were sent. Out: a line of JSON for each on standard output, ``[[name, value, depth], …]``, as soon as it is known.
Nothing is decrypted and no signature is verified.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

# Scapy warns of what it makes of the network here, and of messages that it dislikes.
logging.getLogger("scapy").setLevel(logging.CRITICAL)

from scapy.fields import ConditionalField, Field, FieldLenField, MayEnd  # noqa: E402
from scapy.layers.tls import handshake as tls  # noqa: E402
from scapy.layers.tls.cert import Cert  # noqa: E402
from scapy.layers.tls.crypto.suites import _tls_cipher_suites_cls as CIPHER_SUITES  # noqa: E402
from scapy.layers.tls.extensions import ProtocolName, ServerName, TLS_Ext_Unknown, _tls_ext  # noqa: E402
from scapy.layers.tls.keyexchange_tls13 import Ticket  # noqa: E402
from scapy.layers.tls.session import readConnState, tlsSession  # noqa: E402
from scapy.packet import NoPayload, Packet, Padding  # noqa: E402

if TYPE_CHECKING:
    NamedValue = tuple[str, str, int]

MOST_FIELDS = 400
"""Of one message: a Certificate of ten has 60, a hostile ClientHello could have tens of thousands."""
MOST_ITEMS = 64
"""Of one list: OpenSSL offers 31 cipher suites."""
MOST_CHARACTERS = 200
MOST_BYTES = 32
"""Shown of a byte string: a random or a session ID as a whole, of a ticket enough to know it again."""

VERSIONS = {"SSLv3": 0x0300, "TLSv1.0": 0x0301, "TLSv1.1": 0x0302, "TLSv1.2": 0x0303, "TLSv1.3": 0x0304}

CLIENT_HELLO, SERVER_HELLO, FINISHED = 1, 2, 20
OF_DIGESTS = {32: 0x1301, 48: 0x1302}
"""A cipher suite with digests of that length, for a Finished of TLS 1.3 whose ServerHello is not there."""
SUPPORTED_VERSIONS = 43
LEFT_OUT = {"gmt_unix_time", "msgtype", "msglen", "nametype", "type", "len"}

EXTENSIONS = _tls_ext | {
    0x10: "application_layer_protocol_negotiation",
    0x1B: "compress_certificate",
    0x22: "delegated_credential",
    0x2A: "early_data",
    0x4469: "application_settings",
    0x44CD: "application_settings",
    0xFE0D: "encrypted_client_hello",
}
"""As IANA has them; some are newer than scapy."""

CODES = {
    "TLS 1.0": "TLSv1.0",
    "TLS 1.1": "TLSv1.1",
    "TLS 1.2": "TLSv1.2",
    "TLS 1.3": "TLSv1.3",
    "sha1+rsa": "rsa_pkcs1_sha1",
    "sha256+rsa": "rsa_pkcs1_sha256",
    "sha384+rsa": "rsa_pkcs1_sha384",
    "sha512+rsa": "rsa_pkcs1_sha512",
    "sha1+ecdsa": "ecdsa_sha1",
    "sha256+ecdsa": "ecdsa_secp256r1_sha256",
    "sha384+ecdsa": "ecdsa_secp384r1_sha384",
    "sha512+ecdsa": "ecdsa_secp521r1_sha512",
    "sha256+rsaepss": "rsa_pss_rsae_sha256",
    "sha384+rsaepss": "rsa_pss_rsae_sha384",
    "sha512+rsaepss": "rsa_pss_rsae_sha512",
    "sha256+rsapss": "rsa_pss_pss_sha256",
    "sha384+rsapss": "rsa_pss_pss_sha384",
    "sha512+rsapss": "rsa_pss_pss_sha512",
    "0x0904": "mldsa44",
    "0x0905": "mldsa65",
    "0x0906": "mldsa87",
}
"""Scapy's names of codes as conchart and IANA have them."""

NAMES = {
    "certauth": "certificate authorities",
    "certs": "certificates",
    "cert_req_ctxt": "certificate request context",
    "ciphers": "cipher suites",
    "cipher": "cipher suite",
    "client_shares": "key shares",
    "comp": "compression methods",
    "ctypes": "certificate types",
    "dh_g": "generator",
    "dh_p": "prime",
    "dh_Yc": "public key",
    "dh_Ys": "public key",
    "ecdh_Yc": "public key",
    "ecpl": "formats",
    "exchkeys": "key exchange",
    "ext": "extensions",
    "key_exchange": "public key",
    "kxmodes": "modes",
    "msg": "message",
    "ng": "group",
    "params": "parameters",
    "point": "public key",
    "random_bytes": "random",
    "req": "request",
    "reneg_conn_info": "renegotiated connection",
    "server_share": "key share",
    "servernames": "server names",
    "sid": "session ID",
    "sig": "signature",
    "sig_alg": "algorithm",
    "sig_algs": "signature algorithms",
    "sig_val": "signature",
    "stype": "status type",
    "val": "data",
    "vdata": "verify data",
}
"""Scapy's names of fields in the words of the RFCs, where underscores as spaces are not enough."""


class UnknownTypeError(Exception):
    """Scapy has no class for a ``HandshakeType``, for that of a compressed certificate for example."""


def main() -> None:
    """Answer message by message; what scapy cannot read is said in its place."""
    cipher_suite = None
    for message in json.load(sys.stdin):
        body = bytes.fromhex(message["body"])
        try:
            packet = dissected(message["kind"], VERSIONS.get(message["version"]), body, cipher_suite)
            if message["kind"] == SERVER_HELLO:
                cipher_suite = packet.cipher
            fields = list(islice(fields_of(packet, 0), MOST_FIELDS + 1))
        except Exception as error:  # Whatever hostile bytes lead scapy to: the other messages are still to come.
            why = str(error) if isinstance(error, UnknownTypeError) else type(error).__name__
            fields = [("undissected", f"{len(body):,} bytes: {why}", 0)]
        if len(fields) > MOST_FIELDS:
            fields[MOST_FIELDS:] = [("…", "and more", 0)]
        print(json.dumps(fields), flush=True)  # noqa: T201


def dissected(kind: int, version: int | None, body: bytes, cipher_suite: int | None) -> Packet:
    """Let scapy read one message, told what the messages before it settled: the version, and how keys are exchanged."""
    session = tlsSession()
    session.frozen = True
    if kind != CLIENT_HELLO:  # It offers versions; whatever came of it, its own form is always the same.
        session.tls_version = version
    if kind == FINISHED and cipher_suite is None:
        cipher_suite = OF_DIGESTS.get(len(body))
    if version and cipher_suite in CIPHER_SUITES:
        session.prcs = session.rcs = readConnState(ciphersuite=CIPHER_SUITES[cipher_suite], tls_version=version)
    newest = kind == CLIENT_HELLO or (version or 0) >= VERSIONS["TLSv1.3"]
    classes: dict[int, type[Packet]] = tls._tls_handshake_cls | (tls._tls13_handshake_cls if newest else {})
    if kind not in classes:
        raise UnknownTypeError("scapy does not support this type of message")
    return classes[kind](bytes([kind]) + len(body).to_bytes(3, "big") + body, tls_session=session)


def fields_of(packet: Packet, depth: int) -> Iterator[NamedValue]:
    """Give the fields of a message, an extension or a key; lengths and types are told by what stands there."""
    for described in packet.fields_desc:
        field = described.fld if isinstance(described, (ConditionalField, MayEnd)) else described
        value = packet.getfieldval(field.name)
        if isinstance(field, FieldLenField) or field.name in LEFT_OUT or value is None:
            continue
        if field.name == "random_bytes" and hasattr(packet, "gmt_unix_time"):
            value = packet.gmt_unix_time.to_bytes(4, "big") + value  # RFC 5246 has a time there, and nobody since.
        name = NAMES.get(field.name, field.name.replace("_", " "))
        if name == "version" and SUPPORTED_VERSIONS in [
            getattr(each, "type", None) for each in getattr(packet, "ext", None) or []
        ]:
            name = "legacy version"  # RFC 8446 section 4.1.2: what older servers read, and TLS 1.3 does not.
        yield from values_of(name, field, value, depth)
    if not isinstance(packet.payload, (NoPayload, Padding)):
        yield from fields_of(packet.payload, depth)


def values_of(name: str, field: Field[Any, Any], value: object, depth: int) -> Iterator[NamedValue]:
    """Give one value: by name where its code has one, or what is inside, one level deeper."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, tuple) for item in value):
        value = [item for _length, item in value]  # Certificates and their authorities come with their lengths.
    if isinstance(value, tuple):
        value = value[1]
    if isinstance(value, list):
        one = name.removesuffix("s").replace("authoritie", "authority")
        if len(value) == 1 and not isinstance(value[0], (TLS_Ext_Unknown, Cert)):
            yield from values_of(one, field, value[0], depth)
            return
        yield name, f"{len(value):,}", depth
        for item in value[:MOST_ITEMS]:
            yield from values_of(one, field, item, depth + 1)
        if len(value) > MOST_ITEMS:
            yield "…", f"{len(value) - MOST_ITEMS:,} more", depth + 1
    elif isinstance(value, TLS_Ext_Unknown):
        inside = fields_of(value, depth + 1) if value.original[4:] else iter(())
        yield from merged(named(value.type, EXTENSIONS, 2), inside, depth)
    elif isinstance(value, Cert):
        yield from certificate(value, depth)
    elif isinstance(value, (ServerName, ProtocolName)):
        yield name, text(value.servername if isinstance(value, ServerName) else value.protocol), depth
    elif isinstance(value, Ticket):  # What RFC 5077 recommends; servers do as they like.
        yield name, octets(value.original), depth
    elif isinstance(value, Packet):
        yield from merged(name, fields_of(value, depth + 1), depth)
    elif isinstance(value, bytes):
        yield name, text(value) if name.startswith("psk identity") else octets(value), depth
    else:
        inner = getattr(field, "field", field)
        yield name, named(value, getattr(inner, "i2s", {}), getattr(inner, "itemsize", inner.sz)), depth


def merged(name: str, inside: Iterator[NamedValue], depth: int) -> Iterator[NamedValue]:
    """Give what is inside under a name; the first of it beside the name, where it is all that there is to say."""
    fields = list(islice(inside, MOST_FIELDS + 1))
    beside = [field for field in fields if field[2] == depth + 1]
    if len(beside) != 1:
        yield name, "", depth
        yield from fields
    else:
        yield name, beside[0][1], depth
        yield from ((inner, value, deeper - 1) for inner, value, deeper in fields[1:])


def certificate(cert: Cert, depth: int) -> Iterator[NamedValue]:
    """Give what people look for in a certificate."""
    yield "certificate", text(cert.subject_str), depth
    yield "issuer", text(cert.issuer_str), depth + 1
    yield "valid from", cert.notBefore_str, depth + 1
    yield "valid until", cert.notAfter_str, depth + 1
    key = cert.pubkey.pubkey
    curve, kind = getattr(key, "curve", None), type(key).__name__.removesuffix("PublicKey")
    yield "key", curve.name if curve else f"{kind} {getattr(key, 'key_size', '')}".strip(), depth + 1
    yield "signature algorithm", text(cert.sigAlg), depth + 1
    yield "length", f"{len(cert.der):,} bytes", depth + 1


def named(code: object, names: dict[int, str], size: int) -> str:
    """Name a code, or write it down; codes without a meaning that keep implementations honest are said to be such."""
    if not isinstance(code, int) or not names:
        return text(str(code))
    written = f"0x{code:0{size * 2}x}"
    if size == 2 and code & 0x0F0F == 0x0A0A and code >> 8 == code & 0xFF:
        return f"GREASE ({written})"  # RFC 8701
    name = names.get(code, written)
    return CODES.get(name, name)


def octets(value: bytes) -> str:
    """Write bytes down, long ones by how they begin."""
    if not value:
        return "empty"
    if len(value) <= MOST_BYTES:
        return value.hex()
    return f"{len(value):,} bytes, {value[: MOST_BYTES // 2].hex()}…"


def text(value: str | bytes) -> str:
    """Make text of what hostile bytes say, short and without control characters."""
    decoded = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return "".join(character if character.isprintable() else "\ufffd" for character in decoded[:MOST_CHARACTERS])


if __name__ == "__main__":
    main()
