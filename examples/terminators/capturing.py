"""Captures of a terminator under load, and what conchart reads from them.

tcpdump listens on the terminator, to both of its sides at once. httperf writes its TLS secrets, so that requests in
front and behind have the same target, and links are certain. In: a terminator, a rate. Out: a capture, a row.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from grid import Row
from lab.clients import SECRETS
from lab.lesson import ask_conchart
from lab.listening import Listener, settle
from load import REQUESTS, offer
from rack import Rack

WRITER = Path(__file__).resolve().parents[1] / "lab" / "secrets.c"
LISTENED = "tcp port 443 or tcp port 8080"

QUESTION = """
WITH front AS (SELECT stream FROM connections WHERE server_port = 443),
     shaken AS (SELECT h.* FROM handshakes AS h JOIN front USING (stream) WHERE outcome = 'complete'),
     spent AS (SELECT kind, sum(end_at - start_at)::BIGINT AS ns FROM phases JOIN front USING (stream) GROUP BY kind)
SELECT (SELECT count(*) FROM exchanges JOIN front USING (stream) WHERE status = 200) AS answered,
       (SELECT count(*) FROM connections WHERE server_port = 443 AND syn_retransmits > 0) AS syn_again,
       (SELECT count(*) FROM shaken WHERE kind <> 'full') AS resumed,
       (SELECT count(*) FROM shaken) AS handshakes,
       (SELECT median(ready_at - hello_at)::BIGINT FROM shaken) AS handshake_ns,
       (SELECT quantile_disc(ready_at - hello_at, 0.95) FROM shaken) AS handshake_p95_ns,
       (SELECT sum(server_compute_ns)::BIGINT FROM shaken) AS server_ns,
       (SELECT coalesce(sum(ns), 0)::BIGINT FROM spent WHERE kind = 'syn') AS syn_ns,
       (SELECT coalesce(sum(ns), 0)::BIGINT FROM spent WHERE kind = 'tls') AS tls_ns,
       (SELECT sum(request_at - ready_at)::BIGINT FROM shaken JOIN exchanges USING (stream)) AS client_ns,
       (SELECT coalesce(sum(ns), 0)::BIGINT FROM spent WHERE kind = 'wait') AS wait_ns,
       proxy_ns, connect_ns, backend_ns, unlinked
FROM splits WHERE server_port = 443
"""
"""Of the clients' time, what passes until they ask: how long an answered connection stays open is nobody's wait."""


class Listened(Rack):
    """A rack whose client writes down its TLS secrets."""

    def build(self) -> None:
        """Compile what has it write them."""
        super().build()
        self.log, library = self.folder / SECRETS, self.folder / "secrets.so"
        words = ["cc", "-shared", "-fPIC", "-o", library, WRITER, "-ldl"]
        subprocess.run(list(map(str, words)), check=True)
        self.environment = {"LD_PRELOAD": str(library), "SSLKEYLOGFILE": str(self.log)}

    def capture(self, kind: str, per_second: float, seconds: float) -> Path:
        """Listen while users arrive."""
        self.log.unlink(missing_ok=True)
        listener = Listener(self, self.terminator, "any", LISTENED, self.folder / "input.pcap", buffer_kib=32_768)
        offer(self, kind, per_second, seconds, self.environment)
        settle()
        listener.stop()
        return listener.capture


def under_load(name: str, key: str, kind: str, most: float, shares: tuple[float, ...], seconds: float) -> list[Row]:
    """Let a terminator bear shares of the most that it can; say what conchart finds in the capture of each."""
    rows = []
    with Listened(name, key, 1) as rack:
        for share in shares:
            capture = rack.capture(kind, share * most, seconds)
            (row,) = ask_conchart(capture, QUESTION, "--keylog", str(rack.log))
            rows.append({"terminator": name, "share": share, "per_second": round(share * most), **row})
    return rows


def keep(name: str, key: str, kind: str, per_second: float, users: int, folder: Path) -> None:
    """Make the capture that is kept: a few users who come faster than they can be served."""
    with Listened(name, key, 1) as rack:
        capture = rack.capture(kind, per_second, REQUESTS * users / per_second)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(capture, folder / "input.pcap")
        shutil.copyfile(rack.log, folder / SECRETS)
