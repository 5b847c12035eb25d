"""``conchart live`` on real packets, in a network namespace of its own; pipes and growing files on a terminal.

What needs root, iproute2, tcpdump or curl and does not have it is skipped, aloud.
"""

import fcntl
import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from conchart.cli.command import run
from tests.children import PATIENCE_S, handles, running, wait_until
from tests.conftest import ROOT

COMMAND = Path(sys.executable).with_name("conchart")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
ENVIRONMENT.pop("SUDO_UID", None)
CAPTURE = ROOT / "captures" / "reverse-proxy" / "https-no-keepalive" / "input.pcap"
PORT = 8000
WHOLE_S = 1800
"""The server runs while all tests do."""
STYLES = re.compile(r"\x1b\[[0-9;]*m")
"""Bold and colours (ECMA-48)."""
MILLISECOND = 1_000_000
NOBODY = pwd.getpwnam("nobody").pw_uid

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("signals_reach_children")]
needs_network = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "curl", "tcpdump"))),
    reason="a network namespace needs root and iproute2; its packets need curl, the comparison tcpdump",
)


@pytest.fixture(scope="module")
def network() -> Iterator[list[str | Path]]:
    """The words that run a program in a network of its own, where a server listens at ``PORT``."""
    name = f"conchart-live-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    words: list[str | Path] = ["ip", "netns", "exec", name]
    try:
        subprocess.run([*words, "ip", "link", "set", "lo", "up"], check=True)
        with ExitStack() as ending, tempfile.TemporaryDirectory() as folder:
            Path(folder, "page").write_text("conchart " * 2000)
            server = [*words, sys.executable, "-m", "http.server", str(PORT), "--bind", "127.0.0.1"]
            ending.enter_context(
                running(
                    [*server, "--directory", folder], deadline_s=WHOLE_S, env=ENVIRONMENT, stderr=subprocess.DEVNULL
                )
            )
            wait_until(lambda: subprocess.run(curl(words, "page"), check=False).returncode == 0)
            yield words
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody may write into."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def curl(network: list[str | Path], path: str, *options: str) -> list[str | Path]:
    return [*network, "curl", "--silent", "--output", "/dev/null", *options, f"http://127.0.0.1:{PORT}/{path}"]


def ask(network: list[str | Path]) -> None:
    for path, options in (("page", ()), ("nothing", ()), ("page", ("--head",)), ("page", ("--data", "a=b"))):
        subprocess.run(curl(network, path, *options), check=False)


@contextmanager
def capturing(network: list[str | Path], *options: str | Path, **others: Any) -> Iterator["subprocess.Popen[str]"]:  # noqa: ANN401
    """Run ``conchart live``; goes on once it captures."""
    words = [*network, COMMAND, "live", "-i", "lo", *options]
    with running(words, text=True, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **others) as live:
        assert live.stderr
        assert "capturing on lo; running as user nobody" in live.stderr.readline()
        yield live


def finish(program: "subprocess.Popen[str]", number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
    program.send_signal(number)
    out, err = program.communicate(timeout=PATIENCE_S)
    return program.returncode, out, err


def tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    return found


def assert_alike(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """The kernel stamps a packet anew for each who listens on the loopback: some hundred nanoseconds apart."""
    for column, value in ours.items():
        if column.endswith(("_at", "_ns")) and value is not None:
            assert abs(value - theirs[column]) < MILLISECOND, column
        else:
            assert value == theirs[column], column


def unowned(connections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    owner = re.compile("(client|server)_(pid|process|container|container_id|pod)")
    return [{name: value for name, value in row.items() if not owner.fullmatch(name)} for row in connections]


@needs_network
def test_live_tells_what_a_tcpdump_beside_it_captured(network: list[str | Path], public: Path) -> None:
    expression = f"tcp port {PORT}"
    beside = public / "beside.pcap"
    dump: list[str | Path] = [
        "tcpdump",
        "-i",
        "lo",
        "-Z",
        "root",
        "-U",
        "--time-stamp-precision=nano",
        "-w",
        beside,
        expression,
    ]
    outputs: list[str | Path] = ["-w", public / "live.json", "-w", public / "live.html", "--keep", public / "kept.pcap"]
    with running([*network, *dump], text=True, env=ENVIRONMENT, stderr=subprocess.PIPE) as tcpdump:
        assert tcpdump.stderr
        assert "listening" in tcpdump.stderr.readline()
        with capturing(network, "-f", expression, *outputs) as live:
            ask(network)
            code, out, err = finish(live)
        tcpdump.send_signal(signal.SIGINT)
        tcpdump.wait(PATIENCE_S)
    assert (code, err) == (0, "")
    assert re.fullmatch(r"(Wrote \S+: 4 connections, .*\n){2}", out)
    assert "<html" in (public / "live.html").read_text()
    for name in ("beside", "kept"):
        assert run([str(public / f"{name}.pcap"), "-w", str(public / f"{name}.json")]) == 0
    seen, stored, compared = (tables(public / f"{name}.json") for name in ("live", "kept", "beside"))
    requests = [(row["method"], row["target"], row["status"]) for row in seen["exchanges"]]
    assert requests == [("GET", "/page", 200), ("GET", "/nothing", 404), ("HEAD", "/page", 200), ("POST", "/page", 501)]
    # Only whoever captures can ask the kernel whose the sockets are.
    seen["connections"], stored["connections"] = map(unowned, (seen["connections"], stored["connections"]))
    for table in ("connections", "handshakes", "exchanges", "phases", "stalls", "times", "servers", "findings"):
        assert seen[table] == stored[table], table
    for table in ("connections", "exchanges", "phases"):
        assert len(seen[table]) == len(compared[table])
        for ours, theirs in zip(seen[table], compared[table], strict=True):
            assert_alike(ours, theirs)
    (capture,) = seen["captures"]
    assert (capture["dropped"], capture["path"]) == (0, str(public / "kept.pcap"))
    assert capture["resolution_ns"] == 1
    assert compared["captures"][0]["dropped"] is None


@needs_network
def test_root_is_given_up_in_every_thread_and_files_are_nobodys(network: list[str | Path], public: Path) -> None:
    with capturing(network, "-w", public / "out.json", "--keep", public / "out.pcap") as live:
        wait_until((public / "out.pcap").exists)
        subprocess.run(curl(network, "page"), check=True)
        tasks = list(Path(f"/proc/{live.pid}/task").iterdir())
        assert len(tasks) > 2
        for task in tasks:
            status = (task / "status").read_text()
            assert re.search(rf"^Uid:(\s{NOBODY}){{4}}$", status, re.MULTILINE), status
            assert re.search(r"^CapEff:\s0+$", status, re.MULTILINE), status
            assert re.search(r"^CapPrm:\s0+$", status, re.MULTILINE), status
        assert finish(live)[0] == 0
    assert {path.stat().st_uid for path in public.iterdir()} == {NOBODY}
    assert tables(public / "out.json")["exchanges"]


@needs_network
def test_who_called_sudo_is_who_writes_and_root_stays_root_only_when_told(
    network: list[str | Path], public: Path
) -> None:
    daemon = pwd.getpwnam("daemon")
    words = [*network, COMMAND, "live", "-i", "lo", "-d", "0.2", "-w", public / "out.json"]
    for others, options, name in (
        ({"SUDO_UID": str(daemon.pw_uid)}, [], "daemon"),
        ({}, ["-Z", "daemon"], "daemon"),
        ({}, ["-Z", "root"], "root"),
    ):
        done = subprocess.run(
            [*words, *options], env=ENVIRONMENT | others, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        assert (f"running as user {name} from now on" in done.stderr) == (name != "root")
        assert (public / "out.json").owner() == name
        (public / "out.json").unlink()


@needs_network
def test_a_folder_that_nobody_may_write_into_is_refused_before_anything_is_captured(
    network: list[str | Path], tmp_path: Path
) -> None:
    words = [*network, COMMAND, "live", "-i", "lo", "-w", tmp_path / "out.html"]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 4
    assert f"conchart runs as nobody now, who may not write in {tmp_path}" in done.stderr
    assert "-Z USER" in done.stderr


@needs_network
def test_a_duration_ends_it_and_the_summary_is_printed(network: list[str | Path]) -> None:
    began = time.monotonic()
    with capturing(network, "-d", "1500ms") as live:
        ask(network)
        out, err = live.communicate(timeout=PATIENCE_S)
    assert (live.returncode, err) == (0, "")
    assert time.monotonic() - began > 1.5
    assert "\ncapture  lo (live): " in out
    assert "4 connections (complete); " in out
    assert "\n         capture complete; from " in out


@needs_network
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whatever_tells_it_to_end_gets_what_was_captured(
    network: list[str | Path], public: Path, number: signal.Signals
) -> None:
    with capturing(network, "-w", public / "out.json") as live:
        subprocess.run(curl(network, "page"), check=True)
        assert finish(live, number)[0] == 0
    assert len(tables(public / "out.json")["exchanges"]) == 1


@needs_network
def test_a_filter_keeps_packets_in_the_kernel(network: list[str | Path], public: Path) -> None:
    with capturing(network, "-f", f"tcp dst port {PORT}", "-w", public / "out.json") as live:
        subprocess.run(curl(network, "page"), check=True)
        finish(live)
    (capture,) = tables(public / "out.json")["captures"]
    assert capture["packets"] == capture["selected"] > 3
    (connection,) = tables(public / "out.json")["connections"]
    assert connection["packets_server"] == 0


@needs_network
def test_any_is_every_interface(network: list[str | Path], public: Path) -> None:
    words = [*network, COMMAND, "live", "-i", "any", "-d", "1s", "-w", public / "out.json"]
    with running(words, text=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as live:
        assert live.stderr
        live.stderr.readline()
        subprocess.run(curl(network, "page"), check=True)
        live.communicate(timeout=PATIENCE_S)
    document = tables(public / "out.json")
    assert document["captures"][0]["link_types"] == "LINUX_SLL2"
    assert [row["status"] for row in document["exchanges"]] == [200]


@needs_network
def test_an_interface_that_goes_away_ends_it_with_what_was_captured(network: list[str | Path], public: Path) -> None:
    subprocess.run([*network, "ip", "link", "add", "left", "type", "veth", "peer", "name", "right"], check=True)
    for end in ("left", "right"):
        subprocess.run([*network, "ip", "link", "set", end, "up"], check=True)
    words = [*network, COMMAND, "live", "-i", "left", "-w", public / "out.json"]
    with running(words, text=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as live:
        assert live.stderr
        live.stderr.readline()
        time.sleep(1)
        subprocess.run([*network, "ip", "link", "delete", "left"], check=True)
        _, err = live.communicate(timeout=PATIENCE_S)
    assert live.returncode == 0
    assert re.match(r"conchart: warning: left \(live\): .*(disappeared|down)", err), err
    assert "ended before it was told to" in tables(public / "out.json")["captures"][0]["notes"][-1]


FLOOD = """
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20000):
    out.sendto(bytes(1400), ("127.0.0.1", 9))
"""


@needs_network
def test_packets_that_the_machine_lost_are_reported(network: list[str | Path], public: Path) -> None:
    """It is stopped, as a machine that has no time for it; the smallest of buffers overflows for real."""
    with capturing(network, "-B", "256", "-w", public / "out.json", "-v") as live:
        time.sleep(0.5)
        live.send_signal(signal.SIGSTOP)
        subprocess.run([*network, sys.executable, "-c", FLOOD], check=False)
        live.send_signal(signal.SIGCONT)
        code, out, _ = finish(live)
    assert code == 0
    document = tables(public / "out.json")
    (capture,) = document["captures"]
    assert capture["packets"] > 0
    assert capture["dropped"] > 10_000
    (remark,) = (row for row in document["remarks"] if row["kind"] == "dropped")
    assert (remark["count"], remark["warning"]) == (capture["dropped"], True)
    assert "lost by the capturing machine" in out


@needs_network
def test_an_interface_that_there_is_not(network: list[str | Path]) -> None:
    done = subprocess.run(
        [*network, COMMAND, "live", "-i", "nowhere0"], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3
    assert done.stderr.startswith("conchart: cannot capture on nowhere0: ")
    assert re.search(r"Interfaces here: .*\blo\b", done.stderr)


@needs_network
@pytest.mark.skipif(not shutil.which("setpriv"), reason="util-linux' setpriv takes the capability away")
def test_who_may_not_capture_is_told_what_to_try(network: list[str | Path]) -> None:
    words = [*network, "setpriv", "--bounding-set=-net_raw,-net_admin", "--inh-caps=-net_raw,-net_admin"]
    done = subprocess.run(
        [*words, COMMAND, "live", "-i", "lo"], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("conchart: cannot capture on lo: capturing needs root")
    assert "sudo conchart live -i lo" in done.stderr


def test_wrong_usage_is_told_before_anything_is_opened(capfd: pytest.CaptureFixture[str]) -> None:
    def complaint(*args: str) -> str:
        assert run(["live", "-i", "nowhere0", *args]) == 2
        return capfd.readouterr().err

    assert run([str(CAPTURE), "-f", "tcp prot 80"]) == 2
    as_of_a_file = capfd.readouterr().err
    assert complaint("-f", "tcp prot 80") == as_of_a_file
    assert "cannot read the duration 'soon'" in complaint("-d", "soon")
    assert "keep them in a file (--keep slow.pcap)" in complaint("-w", "out.pcapng")
    assert "conchart writes" in complaint("-w", "out.doc")
    if os.geteuid() == 0:
        assert run(["live", "-i", "lo", "-Z", "no-such-user"]) == 2
        assert "there is no user 'no-such-user'" in capfd.readouterr().err


class Terminal:
    """A command on a terminal of its own; its standard output goes elsewhere."""

    def __init__(self, words: Sequence[str | Path], **options: Any) -> None:  # noqa: ANN401
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(
            words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=theirs, text=True, **options
        )
        os.close(theirs)
        self.shown = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def wait_for(self, text: str) -> None:
        """Go on once it is shown."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in STYLES.sub("", self.shown):
            assert time.monotonic() < deadline, self.shown
            self.read(0.1)

    def read(self, seconds: float) -> bool:
        """Take what is shown; false at its end."""
        if select.select([self._ours], [], [], seconds)[0]:
            try:
                block = os.read(self._ours, 1 << 16)
            except OSError:  # the other end is closed
                return False
            self.shown += block.decode(errors="replace")
        return True

    def end(self, number: signal.Signals | None = signal.SIGINT) -> int:
        """Interrupt it, or wait for its end."""
        if number is not None:
            self.process.send_signal(number)
        deadline = time.monotonic() + PATIENCE_S
        while self.read(0.1) and time.monotonic() < deadline:
            pass
        return self.process.wait(PATIENCE_S)


@needs_network
def test_a_terminal_shows_the_summary_while_it_runs(network: list[str | Path], public: Path) -> None:
    words = [*network, COMMAND, "live", "-i", "lo", "-f", f"tcp port {PORT}", "-w", public / "out.json"]
    with Terminal(words) as screen:
        screen.wait_for("lo (live), 0 ns, 0 packets, Ctrl-C ends it")
        ask(network)
        screen.wait_for("4 connections, ")
        subprocess.run(curl(network, "page"), check=True)
        screen.wait_for("5 connections, ")
        screen.wait_for("Users waited")
        assert screen.end() == 0
    assert screen.shown.rstrip().endswith("\x1b[?25h"), "the cursor is shown again"
    assert len(tables(public / "out.json")["connections"]) == 5


def half() -> int:
    """Where the 130th record ends."""
    data, at = CAPTURE.read_bytes(), 24
    for _ in range(130):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return at


def test_a_terminal_shows_the_summary_of_a_pipe_and_of_a_file_that_grow(tmp_path: Path) -> None:
    data = CAPTURE.read_bytes()
    growing = tmp_path / "growing.pcap"
    growing.write_bytes(data[: half()])
    for words in (["-"], ["--follow", growing]):
        out = tmp_path / "out.json"
        reading, writing = os.pipe()
        with Terminal([COMMAND, *words, "-w", out], stdin=reading) as screen:
            os.close(reading)
            if words == ["-"]:
                os.write(writing, data[: half()])
            screen.wait_for("130 packets")
            screen.wait_for("Users waited")
            if words == ["-"]:
                os.write(writing, data[half() :])
            else:
                with growing.open("ab") as file:
                    file.write(data[half() :])
            screen.wait_for("265 packets")
            if words == ["-"]:
                os.close(writing)  # its end
                assert screen.end(None) == 0
            else:
                assert screen.end() == 0
                os.close(writing)
        assert tables(out)["captures"][0]["packets"] == 265
        assert tables(out)["captures"][0]["truncated"] is False
        out.unlink()


@contextmanager
def piped(*args: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    pipe = subprocess.PIPE
    with running([COMMAND, "-", *args], env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        wait_until(lambda: handles(process.pid, signal.SIGHUP), process)
        yield process


def interrupt_halfway(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.write(CAPTURE.read_bytes()[: half()])
    process.stdin.flush()
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)


def test_an_interrupt_ends_a_pipe_with_everything_written(tmp_path: Path) -> None:
    with piped("-w", tmp_path / "out.json") as process:
        interrupt_halfway(process)
        assert process.wait(PATIENCE_S) == 0
    assert tables(tmp_path / "out.json")["captures"][0]["packets"] == 130
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_second_interrupt_means_it(tmp_path: Path) -> None:
    with piped("-w", tmp_path / "out.json") as process:
        interrupt_halfway(process)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    assert list(tmp_path.iterdir()) == []
