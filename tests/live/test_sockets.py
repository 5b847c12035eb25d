"""Processes of this machine beside their connections: real sockets, real programs, in a network of their own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conchart.reading.live import sockets as module
from conchart.reading.live.sockets import Sockets
from tests.children import PATIENCE_S, running, wait_until
from tests.conftest import ROOT

COMMAND = Path(sys.executable).with_name("conchart")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
ENVIRONMENT.pop("SUDO_UID", None)
SLOW = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Slow(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(self.path[1:]))
        self.send_response(204)
        self.end_headers()
ThreadingHTTPServer(("127.0.0.1", 8000), Slow).serve_forever()
"""

needs_network = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "curl"))),
    reason="a network namespace needs root and iproute2; its packets need curl",
)
linux = pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="only Linux has sock_diag")


@pytest.fixture(scope="module")
def network() -> Iterator[tuple[list[str], int]]:
    """The words that run a program in a network where a slow server listens, and the server's process."""
    name = f"conchart-sockets-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    words = ["ip", "netns", "exec", name]
    try:
        subprocess.run([*words, "ip", "link", "set", "lo", "up"], check=True)
        with ExitStack() as ending:
            server = ending.enter_context(
                running([*words, sys.executable, "-c", SLOW], deadline_s=600, stderr=subprocess.DEVNULL)
            )
            wait_until(lambda: subprocess.run(curl(words, "0"), check=False).returncode == 0)
            yield words, server.pid
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def curl(words: list[str], path: str) -> list[str]:
    return [*words, "curl", "--silent", "--output", "/dev/null", f"http://127.0.0.1:8000/{path}"]


def captured(words: list[str], *options: str) -> tuple[list[dict[str, Any]], int, str]:
    """Capture a long request and a short one; gives connections, the long one's client, and what was said."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        out, capture = Path(folder, "out.json"), Path(folder, "kept.pcap")
        chosen = ["-i", "lo", "-f", "tcp port 8000", "-v", "-w", str(out), "--keep", str(capture)]
        live = [*words, str(COMMAND), "live", *chosen, *options]
        with running(live, text=True, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as capturing:
            wait_until(lambda: capture.exists() and capture.stat().st_size > 0)  # it captures, and heeds signals
            with subprocess.Popen(curl(words, "1.5")) as client:
                pass
            subprocess.run(curl(words, "0"), check=True)
            capturing.send_signal(signal.SIGINT)
            _, messages = capturing.communicate(timeout=PATIENCE_S)
        return json.loads(out.read_text())["connections"], client.pid, messages


@needs_network
@pytest.mark.timeout(90)
def test_with_root_both_ends_are_named(network: tuple[list[str], int]) -> None:
    words, server = network
    (long, short), client, messages = captured(words, "-Z", "root")
    assert (long["client_pid"], long["server_pid"]) == (client, server)
    assert Path(long["client_process"]).name == "curl"
    assert long["server_process"] == os.path.realpath(sys.executable)
    assert short["server_pid"] == server, "whoever listens, though the connection was too short to be seen"
    assert short["client_pid"] != client
    assert "Traceback" not in messages


@needs_network
@pytest.mark.timeout(90)
def test_without_rights_only_what_was_there_before_is_named(network: tuple[list[str], int]) -> None:
    """Privileges are dropped once the capture has begun: root's later processes are nobody's business."""
    words, server = network
    connections, client, messages = captured(words)
    assert {one["server_pid"] for one in connections} == {server}
    assert client not in {one["client_pid"] for one in connections}
    assert "only root may look" in messages


@linux
def test_a_socket_of_this_process_is_found_and_gone_rights_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as client:
        port = listening.getsockname()[1]
        client.connect(("127.0.0.1", port))
        own = ("tcp", *client.getsockname(), "127.0.0.1", port)
        sockets = Sockets()
        sockets.look()
        assert sockets.owners[own].pid == os.getpid()
        assert sockets.owners["tcp", "127.0.0.1", port, "", 0].pid == os.getpid()
        blind = Sockets()
        monkeypatch.setattr(module, "_owners", lambda _: {})
        for _ in range(5):
            blind.look()
        assert own in blind.unknown
        assert not blind.owners


def test_a_system_that_does_not_say_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    assert Sockets.watched() is None
