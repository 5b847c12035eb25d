"""A client, a proxy or server, and a backend, some way off; what they run, and the capture of it with its README.

client 10.98.1.10 ── 10.98.1.20 middle 10.98.2.20 ── 10.98.2.30 backend
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.keys import make_keys
from lab.listening import Listener, settle
from lab.network import Host, Network
from lab.programs import require, versions

PROGRAMS = Path(__file__).resolve().parent / "programs"
LAB = Path(__file__).resolve().parents[1] / "lab"
CLIENT, FRONT, BACK, BACKEND = "10.98.1.10", "10.98.1.20", "10.98.2.20", "10.98.2.30"
SITE = "shop.example"
THINKER = f"python3 LAB/backend.py {BACKEND} %d"
KEEP_ALIVE = 'proxy_http_version 1.1; proxy_set_header Connection "";'
CERTIFIED = "ssl_certificate @KEYS@/server.crt; ssl_certificate_key @KEYS@/server.key;"
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
@DIRECTIVES@
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
    "squid": ("squid", "-v"),
    "openssl": ("openssl", "version"),
    "curl": ("curl", "--version"),
    "wget": ("wget", "--version"),
    "go": ("go", "version"),
    "python3": ("python3", "--version"),
    "psql": ("psql", "--version"),
    "pgbouncer": ("pgbouncer", "--version"),
    "redis-server": ("redis-server", "--version"),
    "mariadbd": ("mariadbd", "--version"),
    "php-fpm8.2": ("php-fpm8.2", "--version"),
}
"""How each program that a scene may name says its version."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What each host runs, and what is to be seen."""

    title: str
    see: str
    clients: Sequence[str]
    """Command lines, one after the other; those that a ``&`` ends go on beside the next."""
    nginx: str = ""
    """In the middle, on port 80 or 443: what stands in its ``http`` block. ``@KEYS@`` is the folder of the site's
    keys and of the authority's certificate."""
    haproxy: str = ""
    """In the middle, on port 80: what stands behind its ``defaults``."""
    middle: str = ""
    """Another program in the middle, on port 80."""
    middle_program: str = "a program"
    """What it is, for the README."""
    backends: Sequence[str] = ()
    """Programs on the backend's host, on port 8080 and those after it."""
    nginx_behind: str = ""
    """On the backend's host, on port 443: what stands in its ``http`` block."""
    front_ms: float = 0.2
    back_ms: float = 0.2
    """Delay of each cable, one way."""
    heard: str = "tcp"
    """What tcpdump is told to keep."""
    kernel: Mapping[str, str] = field(default_factory=dict)
    """A setting of a host's kernel, besides the congestion control."""

    @property
    def port(self) -> int:
        """Where the program in the middle listens."""
        return 443 if f"listen {FRONT}:443" in self.nginx else 80

    @property
    def programs(self) -> list[str]:
        """Those of ``VERSIONS`` that it takes."""
        lines = " ".join([*self.clients, *self.backends, self.middle]).split()
        served = self.nginx + self.nginx_behind
        taken = {"nginx": served, "haproxy": self.haproxy, "openssl": "@KEYS@" in served}
        taken |= dict.fromkeys(("psql", "redis-server"), "databases.py" in lines)
        taken["mariadbd"] = "mariadb_goods.py" in lines or "mariadb.py" in lines
        taken["pgbouncer"] = "pooler.py" in lines
        taken["php-fpm8.2"] = "php_shop.py" in lines or "fpm.py" in lines
        taken["nginx"] = served or "php_shop.py" in lines
        return [name for name in VERSIONS if taken.get(name, name in lines)]


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
    require(("ip", "tcpdump", *scene.programs))
    with Avenue(scene) as avenue:
        if "openssl" in scene.programs:
            make_keys(avenue.folder / "keys", "ec")
        for number, line in enumerate(scene.backends):
            avenue.start_server(avenue.backend, 8080 + number, words(line), folder=PROGRAMS)
        if scene.nginx_behind:
            start_nginx(avenue, avenue.backend, 443, scene.nginx_behind)
        start_middle(avenue, scene)
        listener = Listener(avenue, avenue.middle, "any", scene.heard, avenue.folder / "input.pcap")
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
        shutil.copyfile(listener.capture, folder / "input.pcap")
    (folder / "README.md").write_text(readme(scene))


def words(line: str) -> list[str]:
    """Split a command line; ``python3`` is the one that runs this."""
    return [sys.executable if word == "python3" else word.replace("LAB", str(LAB)) for word in shlex.split(line)]


def start_middle(avenue: Avenue, scene: Scene) -> None:
    """Start the program in the middle."""
    if scene.nginx:
        start_nginx(avenue, avenue.middle, scene.port, scene.nginx)
    elif scene.haproxy:
        configuration = avenue.folder / "haproxy.cfg"
        configuration.write_text(HAPROXY + scene.haproxy)
        avenue.start_server(avenue.middle, scene.port, ["haproxy", "-db", "-f", configuration])
    else:
        avenue.start_server(avenue.middle, scene.port, words(scene.middle), folder=PROGRAMS)


def start_nginx(network: Network, host: Host, port: int, directives: str) -> subprocess.Popen[bytes]:
    """Start nginx with what is said in its ``http`` block; returns when it listens."""
    run = network.folder / f"nginx-{host.role}-{port}"
    run.mkdir(exist_ok=True)
    text = (
        NGINX.replace("@DIRECTIVES@", directives)
        .replace("@RUN@", str(run))
        .replace("@KEYS@", str(network.folder / "keys"))
    )
    (run / "nginx.conf").write_text(text)
    return network.start_server(host, port, ["nginx", "-p", run, "-e", run / "error.log", "-c", run / "nginx.conf"])


def readme(scene: Scene) -> str:
    """Say how the capture was made and what to see in it."""
    program = "nginx" if scene.nginx else "haproxy" if scene.haproxy else scene.middle_program
    run = f"In the middle, {program}:\n\n{indented(scene.nginx or scene.haproxy or scene.middle)}"
    run += f"\n\nOn the backend, nginx:\n\n{indented(scene.nginx_behind)}" if scene.nginx_behind else ""
    behind = "8080" if scene.backends else "443" if scene.nginx_behind else ""
    backend = f" {BACK} ──{scene.back_ms:g} ms── {BACKEND}:{behind} backend" if behind else ""
    settings = "".join(f"- Kernel of the {host}: `{setting}`.\n" for host, setting in scene.kernel.items())
    settings += "".join(f"- Backend, port {8080 + number}: `{line}`\n" for number, line in enumerate(scene.backends))
    for line, times in Counter(scene.clients).items():
        settings += f"- Client{f', {times} times' if times > 1 else ''}: `{line}`\n"
    commands = [VERSIONS[name] for name in scene.programs]
    return f"""\
# {scene.title}

Made by `examples/findings/make-captures`.

## Topology

    client {CLIENT} ──{scene.front_ms:g} ms── {FRONT}:{scene.port} middle{backend}

Network namespaces on one machine; `examples/lab/delay_line.py` makes the distance.

## How it was made

{run}

{settings}- Programs: `examples/findings/programs`, `examples/lab`.
- Captured in the middle, `tcpdump -i any {scene.heard}`.

{versions([*commands, ("tcpdump", "--version")])}

## What to see

{scene.see}
"""


def indented(text: str) -> str:
    """Write a configuration or a command as a README shows it."""
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ").replace("@KEYS@", "keys")
