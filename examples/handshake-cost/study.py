"""The study of 1997: its figures, as its author published them. Nothing is worked out here.

SSLeay's ``ssltest``, Pentium Pro 200, Linux: one process talks both sides through memory; user CPU seconds of 1,000
connections, which is milliseconds for each. ``full``: every connection has a full handshake; ``reuse``: the first has,
the others resume its session by session id. 512-bit RSA unless a row says otherwise.
"""

from __future__ import annotations

BYTES = (1, 1_024, 10_240, 102_400)

Pair = tuple[float, float]
"""Milliseconds of a connection: full, reuse."""

CONNECTIONS: dict[str, tuple[Pair | None, ...]] = {
    "SSLv2 RC4-MD5": ((12.83, 0.70), (13.72, 1.27), (18.97, 6.52), (70.22, 57.74)),
    "SSLv3 NULL-MD5": ((14.35, 1.47), (14.79, 1.92), (17.79, 5.11), (43.73, 31.03)),
    "SSLv3 RC4-MD5": ((14.46, 1.56), None, (20.25, 7.90), (71.32, 58.83)),
    "SSLv3 RC4-MD5, RSA-1024": ((51.93, 1.62), (52.58, 2.29), (58.26, 8.08), (109.66, 59.20)),
    "SSLv3 RC4-SHA": ((14.61, 1.83), (15.39, 2.67), (22.96, 11.44), (95.88, 82.21)),
    "SSLv3 DES-CBC-SHA": ((14.70, 1.89), (16.45, 3.55), (30.65, 18.41), (173.22, 160.55)),
    "SSLv3 DES-CBC3-SHA": ((15.16, 2.16), (18.21, 5.38), (47.04, 34.53), (336.61, 323.82)),
}
"""By protocol and cipher, a pair for each of :data:`BYTES`; None: not published."""

SIGN_VERIFY_MS = {"RSA-512": (10.0, 1.1), "RSA-1024": (45.1, 1.2), "RSA-2048": (260.5, 8.6), "RSA-4096": (1688.0, 30.2)}
