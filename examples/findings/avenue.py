"""A client, a proxy or server, and a backend, some way off; what they run, and the capture of it with its README.

client 10.98.1.10 ── 10.98.1.20 middle 10.98.2.20 ── 10.98.2.30 backend
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.listening import Listener, settle
from lab.network import Network, stop
from lab.programs import require, versions

PROGRAMS = Path(__file__).resolve().parent / "programs"
LAB = Path(__file__).resolve().parents[1] / "lab"
CLIENT, FRONT, BACK, BACKEND = "10.98.1.10", "10.98.1.20", "10.98.2.20", "10.98.2.30"
SITE = "shop.example"
CONGESTION = "net.ipv4.tcp_congestion_control=reno"
"""Whatever the machine has: others pace what they send."""
PATIENCE_SECONDS = 60
NGINX = """\
daemon off; master_process off; pid @RUN@/nginx.pid; error_log @RUN@/error.log;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path @RUN@/body; proxy_temp_path @RUN@/proxy; fastcgi_temp_path @RUN@/fastcgi;
    uwsgi_temp_path @RUN@/uwsgi; scgi_temp_path @RUN@/scgi;
@SAID@
}
"""
HAPROXY = """\
global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
"""
VERSIONS = {
    "nginx": ("nginx", "-v"),
    "haproxy": ("haproxy", "-v"),
    "curl": ("curl", "--version"),
    "python3": ("python3", "--version"),
}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What each host runs, and what is to be seen."""

    title: str
    see: str
    clients: Sequence[str]
    """Command lines, one after the other; those that a ``&`` ends go on beside the next."""
    nginx: str = ""
    """In the middle, on port 80: what stands in its ``http`` block."""
    haproxy: str = ""
    """In the middle, on port 80: what stands behind its ``defaults``."""
    middle: str = ""
    """Another program in the middle, on port 80."""
    backends: Sequence[str] = ()
    """Programs on the backend's host, on port 8080 and those after it."""
    front_ms: float = 0.2
    back_ms: float = 0.2
    """Delay of each cable, one way."""
    kernel: Mapping[str, str] = field(default_factory=dict)
    """A setting of a host's kernel, besides the congestion control."""


class Avenue(Network):
    """The hosts and their two cables."""

    def __init__(self, scene: Scene) -> None:
        """Name the hosts."""
        super().__init__("client", "middle", "backend")
        self.client, self.middle, self.backend = self.hosts
        self.scene = scene

    def build(self) -> None:
        """Lay both cables."""
        self.long_cable(self.client, CLIENT, self.middle, FRONT, self.scene.front_ms)
        self.long_cable(self.middle, BACK, self.backend, BACKEND, self.scene.back_ms)
        self.name_the_site(self.client, FRONT, SITE)
        for host in self.hosts:
            settings = [CONGESTION, *filter(None, [self.scene.kernel.get(host.role)])]
            subprocess.run(host.command(["sysctl", "--quiet", "--write", *settings]), check=True)


def record(scene: Scene, folder: Path) -> None:
    """Build the avenue, let the clients ask with tcpdump listening in the middle, keep what it heard."""
    require(("ip", "tcpdump", "nginx", "haproxy", "curl"))
    with Avenue(scene) as avenue:
        for number, line in enumerate(scene.backends):
            avenue.start_server(avenue.backend, 8080 + number, words(line), folder=PROGRAMS)
        middle = avenue.start_server(avenue.middle, 80, start_words(avenue, scene), folder=PROGRAMS)
        listener = Listener(avenue, avenue.middle, "any", "tcp", avenue.folder / "input.pcap")
        beside = []
        for line in scene.clients:
            client = avenue.start(
                avenue.client,
                words(line.rstrip("& ")),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=PROGRAMS,
            )
            beside.append((line, client))
            if not line.endswith("&"):
                client.wait(PATIENCE_SECONDS)
        for line, client in beside:
            if code := client.wait(PATIENCE_SECONDS):
                raise RuntimeError(f"{line}: exit code {code}")
        settle()
        listener.stop()
        stop(middle)
        shutil.copyfile(listener.capture, folder / "input.pcap")
    (folder / "README.md").write_text(readme(scene))


def words(line: str) -> list[str]:
    """Split a command line; ``python3`` is the one that runs this."""
    return [sys.executable if word == "python3" else word.replace("LAB", str(LAB)) for word in shlex.split(line)]


def start_words(avenue: Avenue, scene: Scene) -> list[str | Path]:
    """Return the command of the program in the middle, after its configuration is written."""
    if scene.middle:
        return [*words(scene.middle)]
    run = avenue.folder / "run"
    run.mkdir()
    if scene.haproxy:
        (run / "conf").write_text(HAPROXY + scene.haproxy)
        return ["haproxy", "-db", "-f", run / "conf"]
    (run / "conf").write_text(NGINX.replace("@SAID@", scene.nginx).replace("@RUN@", str(run)))
    return ["nginx", "-p", run, "-e", run / "error.log", "-c", run / "conf"]


def readme(scene: Scene) -> str:
    """Say how the capture was made and what to see in it."""
    lines = (scene.nginx or scene.haproxy or f"    {scene.middle}").strip("\n")
    program = "nginx" if scene.nginx else "haproxy" if scene.haproxy else "a program"
    programs = {"nginx": bool(scene.nginx), "haproxy": bool(scene.haproxy)}
    programs |= {"curl": any("curl" in line for line in scene.clients)}
    programs |= {"python3": "python3" in " ".join([*scene.clients, *scene.backends, scene.middle])}
    said = [VERSIONS[name] for name, used in programs.items() if used]
    backend = f" {BACK} ──{scene.back_ms:g} ms── {BACKEND}:8080 backend" if scene.backends else ""
    told = "".join(f"- Kernel of the {host}: `{setting}`.\n" for host, setting in scene.kernel.items())
    told += "".join(f"- Backend, port {8080 + number}: `{line}`\n" for number, line in enumerate(scene.backends))
    told += "".join(f"- Client: `{line}`\n" for line in scene.clients)
    return f"""\
# {scene.title}

Made by `examples/findings/make-captures`.

## Topology

    client {CLIENT} ──{scene.front_ms:g} ms── {FRONT}:80 middle{backend}

Network namespaces on one machine; `examples/lab/delay_line.py` makes the distance.

## How it was made

In the middle, {program}:

{lines}

{told}- Programs: `examples/findings/programs`, `examples/lab`.
- Captured in the middle, `tcpdump -i any`.

{versions([*said, ("tcpdump", "--version")])}

## What to see

{scene.see}
"""
