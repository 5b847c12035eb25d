"""Makes a capture of a case, and says beside it what conchart reads from it.

In: a case, a folder. Out: ``input.pcap`` and ``README.md`` there, and a row of ``results.json``.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from cases import SNAPSHOT, Case, readme
from lab.keys import make_keys
from lab.lesson import ask_conchart
from lab.listening import Listener, settle
from lab.network import slow_down
from line import SERVER, Line
from measure import Row
from serving import FileServer

PATIENCE_SECONDS = 60

TRANSFER = """
SELECT kind AS phase, sum(end_at - start_at)::BIGINT AS ns FROM phases WHERE kind IN ('request', 'transfer')
GROUP BY kind ORDER BY ns DESC LIMIT 1
"""
LIMITS = f"""
SELECT kind, side, count(*) AS times, sum(end_at - start_at)::BIGINT AS ns
FROM phase_stalls JOIN ({TRANSFER}) AS transfer USING (phase) GROUP BY kind, side ORDER BY ns DESC
"""
FINDINGS = "SELECT finding, severity FROM findings WHERE critical_ns > 0 ORDER BY number"


def capture(name: str, case: Case, folder: Path) -> Row:
    """Let the client run once with tcpdump listening at one end, and keep what it heard."""
    with Line(case.delay_ms, receive_memory=case.receive_memory, bottleneck=case.bottleneck) as line:
        keys = make_keys(line.folder / "keys", "rsa:2048")
        with FileServer(line, line.server, SERVER, keys, case.size, socket=case.server_socket) as server:
            settle()
            host = line.client if case.place == "client" else line.server
            listener = Listener(line, host, "to-router", "tcp port 443", line.folder / "input.pcap", SNAPSHOT)
            transfer(line, case, server, keys)
            settle()
            listener.stop()
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(listener.capture, folder / "input.pcap")
        (folder / "README.md").write_text(readme(case))
    return {"case": name, "bytes": case.size, "rtt_ms": 2 * case.delay_ms, **read(folder / "input.pcap")}


def transfer(line: Line, case: Case, server: FileServer, keys: Path) -> None:
    """Run the client's command to its end; the server slowly, where the case says so."""
    desk = line.folder / "client"
    desk.mkdir()
    shutil.copy(keys / "authority.crt", desk)
    shutil.copy(server.file, desk / "zeros")
    client = line.start(line.client, case.client, cwd=desk)
    if case.server_cpu_percent is not None:
        slow_down(server.program, case.server_cpu_percent, until=lambda: client.poll() is not None)
    if code := client.wait(PATIENCE_SECONDS):
        raise RuntimeError(f"{shlex.join(case.client)}: exit code {code}")


def read(capture: Path) -> Row:
    """Ask conchart how long the transfer took, what it waited for, and what is wrong."""
    (row,) = ask_conchart(capture, TRANSFER)
    return {**row, "limits": ask_conchart(capture, LIMITS), "findings": ask_conchart(capture, FINDINGS)}
