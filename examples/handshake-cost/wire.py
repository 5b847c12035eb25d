"""Makes a capture of a case, and says beside it what its ends say of their own CPU and what conchart reads.

In: compiled programs, keys, a folder. Out: ``input.pcap`` and ``README.md`` there, and a row of ``results.json``.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from cable import NAME, SERVER, Cable
from cases import CONNECTIONS, Case, readme
from lab.lesson import ask_conchart
from lab.listening import Listener, settle
from lab.network import stay_on_one_cpu
from lab.nginx import start_nginx
from measure import Row, stages

QUESTION = """
SELECT kind, count(*) AS handshakes,
    median(client_compute_ns)::BIGINT AS client, median(server_compute_ns)::BIGINT AS server,
    median(client_hello_bytes)::BIGINT AS client_hello_bytes, median(server_flight_bytes)::BIGINT AS server_flight_bytes
FROM handshakes WHERE stream > 0 AND outcome = 'complete' GROUP BY kind ORDER BY kind
"""
CURL_RUNS = 8
PATIENCE_SECONDS = 60
ENDS = ("client", "server")


def capture(name: str, case: Case, programs: Path, keys: Mapping[str, Path], folder: Path) -> Row:
    """Let both ends talk over the cable with tcpdump listening on the server; keep what was heard."""
    with Cable() as cable:
        listener = Listener(cable, cable.server, "to-client", "tcp port 443", cable.folder / "input.pcap")
        if case.program == "nginx":
            counted: Row = {"nginx_cpu_ns": let_curl_talk(cable, keys[case.key])}
        else:
            output = let_ours_talk(cable, case, programs / case.program, keys[case.key])
            counted = {"cpu": {end: stages(output[end])[end] for end in ENDS}} if case.program == "cost" else {}
        settle()
        listener.stop()
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(listener.capture, folder / "input.pcap")
        (folder / "README.md").write_text(readme(case))
    set_up = {key: value for key, value in asdict(case).items() if key not in ("title", "see")}
    return {"case": name, **set_up, **counted, "conchart": computed(folder / "input.pcap")}


def let_ours_talk(cable: Cable, case: Case, program: Path, keys: Path) -> dict[str, str]:
    """Run our program at either end; returns what each printed."""
    if case.program == "cost":
        words = [case.version, case.cell.suite, keys, case.how, 1, CONNECTIONS + 1, SERVER, 443]
    else:
        words = [case.group, keys, case.how, 1, CONNECTIONS + 1, f"{SERVER}:443"]
    log = cable.folder / "port-443.log"
    server = cable.start_server(cable.server, 443, [program, "server", *map(str, words)])
    client = cable.start(
        cable.client, [program, "client", *map(str, words)], stdout=subprocess.PIPE, preexec_fn=stay_on_one_cpu
    )
    output, _ = client.communicate(timeout=PATIENCE_SECONDS)
    if client.returncode or server.wait(PATIENCE_SECONDS):
        raise RuntimeError(f"{program.name}: exit code {client.returncode}; the server said: {log.read_text()}")
    return {"client": output.decode(), "server": log.read_text()}


def let_curl_talk(cable: Cable, keys: Path) -> int:
    """Run curl against nginx: two connections each time, the second resumes.

    Returns:
        Nanoseconds of CPU that nginx used for a connection, all told.
    """
    directives = ["return 200 .", "ssl_ecdh_curve X25519"]
    nginx = start_nginx(cable, cable.server, front=SERVER, backend="127.0.0.1", keys=keys, directives=directives)
    used = Path(f"/proc/{nginx.pid}/schedstat")
    before = int(used.read_text().split()[0])
    once = ["--silent", "--show-error", "--fail", "--cacert", keys / "authority.crt", "--output", "/dev/null"]
    words = ["curl", *once, "--header", "Connection: close", f"https://{NAME}/", "--next", *once, f"https://{NAME}/"]
    for _ in range(CURL_RUNS):
        subprocess.run(cable.client.command(words), check=True, timeout=PATIENCE_SECONDS, preexec_fn=stay_on_one_cpu)
    return (int(used.read_text().split()[0]) - before) // (2 * CURL_RUNS)


def computed(path: Path) -> dict[str, Row]:
    """Ask conchart: each end's computing time and bytes, medians by kind of handshake, the first connection aside."""
    return {str(row.pop("kind")): row for row in ask_conchart(path, QUESTION)}
