"""The study of about 2014: its figures, as its author published them. Nothing is worked out here.

nginx 1.4 and 1.6, Debian 7; 1 GB of zeros on the same machine. ``transfer``: MB/s seen; ``cpu``: MB for each second of
the client's user CPU.
"""

from __future__ import annotations

from typing import NamedTuple


class Speed(NamedTuple):
    """Of one transfer."""

    transfer: float
    cpu: float


WAYS = (("wget", "down"), ("curl", "down"), ("curl", "up"))
"""The columns, in the study and today."""

XEON = "Xeon E3-1246v3"
"""Has AES instructions."""
ATHLON = "Athlon II X2 240"
"""Has none."""

SPEEDS: dict[str, dict[str, tuple[Speed | None, Speed, Speed]]] = {
    XEON: {
        "no TLS": (Speed(4854, 32000), Speed(5970, 32000), Speed(1363, 51200)),
        "AES256-GCM": (Speed(88.6, 88.6), Speed(997, 1313), Speed(699, 1422)),
        "AES128-GCM": (None, Speed(1102, 1497), Speed(723, 1641)),
        "AES128-SHA": (Speed(128, 128), Speed(556, 643), Speed(449, 665)),
        "RC4-MD5": (Speed(182, 186), Speed(514, 587), Speed(420, 587)),
    },
    ATHLON: {
        "no TLS": (Speed(1782, 10240), Speed(1975, 12800), Speed(404, 13474)),
        "AES256-GCM": (Speed(40.7, 41.1), Speed(46.9, 49.6), Speed(43.1, 49.4)),
        "AES128-SHA": (Speed(59.1, 60.0), Speed(118, 127), Speed(98, 130)),
        "RC4-MD5": (Speed(86.6, 88.4), Speed(263, 347), Speed(189, 340)),
    },
}
"""By processor and cipher, a speed for each of :data:`WAYS`; None: not published."""
