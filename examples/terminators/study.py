"""The study of 2011: its figures, as its author published them. Nothing is worked out here.

stunnel 4.41, nginx 1.0.5, stud 0.1 (now hitch), on 8 cores, in front of HAProxy and a web server with 1,024-byte
answers. Most transactions a second while less than 0.1 % fail and the mean response takes less than 100 ms; unless said
otherwise 6 cores, AES128-SHA, a key of 1,024 bits, four requests in a session. None: not published.
"""

from __future__ import annotations

MOST: dict[str, dict[str, int | None]] = {
    "1 core, 32-bit": {"nginx": 512, "hitch": 766, "stunnel": 503},
    "2 cores, 32-bit": {"nginx": 599, "hitch": None, "stunnel": None},
    "6 cores, 32-bit": {"nginx": 804, "hitch": 4_251, "stunnel": 501},
    "6 cores, 64-bit": {"nginx": 1_799, "hitch": 9_000, "stunnel": None},
}
KEY_2048 = 1_643
"""hitch with a key of 2,048 bits."""
NO_REUSE = 5_844
"""hitch without sessions."""
CONTROL = 9_000
