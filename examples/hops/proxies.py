"""nginx, HAProxy, Apache, Caddy, Varnish and Squid as a case wants them, on a host of the town."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.network import Host, Network
from lab.programs import find_apache

CONFIGURATIONS = Path(__file__).with_name("conf")


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """One proxy of a case."""

    program: str
    """``nginx``, ``haproxy``, ``apache``, ``caddy``, ``varnish`` or ``squid``."""
    pooled: bool = True
    """Whether a proxy keeps connections to the servers open for other requests; HAProxy says so in ``reuse``."""
    reuse: str = "always"
    """Which requests HAProxy sends on pooled connections: ``always`` all, ``safe`` not a client's first, ``never``."""
    front_tls: bool = False
    back_tls: bool = False
    http2: bool = False
    """HTTP/2 in front."""
    takes_announced: bool = False
    """Expects a PROXY protocol header in front."""
    announces: int = 0
    """The version of the PROXY protocol header it sends, 1 or 2; 0: none."""
    directives: tuple[str, ...] = ()
    """Further lines for its configuration, where the servers are."""


def start_proxy(
    network: Network, host: Host, proxy: Proxy, *, front: tuple[str, int], servers: list[str], pem: Path
) -> tuple[Path, subprocess.Popen[bytes]]:
    """Start it at ``front``; returns the folder in which it runs, and the program."""
    run = network.folder / f"{host.role}-{proxy.program}"
    run.mkdir()
    run.chmod(0o777)  # Squid gives up root before it opens its log
    name, words, values = _STARTS[proxy.program](proxy, run, f"{front[0]}:{front[1]}", servers, pem)
    text = (CONFIGURATIONS / name).read_text()
    for key, value in {"RUN": str(run), "PEM": str(pem), **values}.items():
        text = text.replace(f"@{key}@", value)
    (run / name).write_text(text)
    return run, network.start_server(host, front[1], [*words, run / name], {"HOME": str(run)})


Start = tuple[str, list[str | Path], dict[str, str]]


def _nginx(proxy: Proxy, run: Path, listen: str, servers: list[str], _pem: Path) -> Start:
    lines = ["proxy_http_version 1.1", 'proxy_set_header Connection ""'] if proxy.pooled else []
    lines += ["proxy_set_header Host $host", *proxy.directives]
    words = [" ssl"] * proxy.front_tls + [" http2"] * proxy.http2 + [" proxy_protocol"] * proxy.takes_announced
    return "nginx.conf", ["nginx", "-p", run, "-e", run / "error.log", "-c"], {
        "LISTEN": listen + "".join(words),
        "SERVERS": "\n        ".join(f"server {server} max_fails=0;" for server in servers),
        "POOL": "keepalive 32;" * proxy.pooled,
        "SCHEME": "https" if proxy.back_tls else "http",
        "DIRECTIVES": "\n            ".join(f"{line};" for line in lines),
    }  # fmt: skip


def _haproxy(proxy: Proxy, _run: Path, listen: str, servers: list[str], pem: Path) -> Start:
    listen += f" ssl crt {pem} alpn {'h2,' * proxy.http2}http/1.1" * proxy.front_tls
    listen += " accept-proxy" * proxy.takes_announced
    options = " ssl verify none" * proxy.back_tls
    options += {0: "", 1: " send-proxy", 2: " send-proxy-v2"}[proxy.announces]
    options += " check inter 200ms" * any("httpchk" in line for line in proxy.directives)
    lines = [f"http-reuse {proxy.reuse}", *proxy.directives]
    return "haproxy.cfg", ["haproxy", "-db", "-f"], {
        "LISTEN": listen,
        "SERVERS": "\n    ".join(f"server s{number} {server}{options}" for number, server in enumerate(servers)),
        "DIRECTIVES": "\n    ".join(lines),
    }  # fmt: skip


def _apache(proxy: Proxy, _run: Path, listen: str, servers: list[str], pem: Path) -> Start:
    apache = find_apache()
    front = [f"SSLEngine On\nSSLCertificateFile {pem}"] * proxy.front_tls
    front += [f"LoadModule http2_module {apache.modules}/mod_http2.so\nProtocols h2 http/1.1"] * proxy.http2
    url = f"http{'s' * proxy.back_tls}://{servers[0]}/"
    reuse = "" if proxy.pooled else " disablereuse=on"
    return "httpd.conf", [apache.program, "-D", "FOREGROUND", "-f"], {
        "MODULES": apache.modules, "USER": apache.user, "GROUP": apache.group, "LISTEN": listen,
        "FRONT": "\n".join(front),
        "DIRECTIVES": "\n".join([f'ProxyPass "/" "{url}"{reuse}', *proxy.directives]),
    }  # fmt: skip


def _caddy(proxy: Proxy, _run: Path, listen: str, servers: list[str], pem: Path) -> Start:
    address, _, port = listen.rpartition(":")
    lines = [f"to {' '.join(servers)}", *proxy.directives]
    options = ["tls_insecure_skip_verify"] * proxy.back_tls + ["keepalive off"] * (not proxy.pooled)
    lines += [f"transport http {{\n{chr(10).join(options)}\n}}"] * bool(options)
    return "Caddyfile", ["caddy", "run", "--adapter", "caddyfile", "--config"], {
        "SITE": f"http{'s' * proxy.front_tls}://:{port}", "ADDRESS": address,
        "PROTOCOLS": "h1 h2" if proxy.http2 else "h1",
        "TLS": f"tls {pem} {pem}" * proxy.front_tls,
        "DIRECTIVES": "\n".join(lines),
    }  # fmt: skip


def _varnish(proxy: Proxy, run: Path, listen: str, servers: list[str], _pem: Path) -> Start:
    address, _, port = servers[0].rpartition(":")
    words: list[str | Path] = ["varnishd", "-j", "none", "-F", "-n", run / "varnish", "-a", listen, "-s", "malloc,16m"]
    # From the start as many threads as will be asked for: new ones come ten a second.
    words += ["-p", "thread_pools=1", "-p", "thread_pool_min=200", "-p", "vsl_space=1M", "-f"]
    return "varnish.vcl", words, {
        "ADDRESS": address, "PORT": port,
        "DIRECTIVES": "\n".join(["set bereq.http.connection = \"close\";"] * (not proxy.pooled) + [*proxy.directives]),
    }  # fmt: skip


def _squid(proxy: Proxy, _run: Path, listen: str, servers: list[str], _pem: Path) -> Start:
    address, _, port = servers[0].rpartition(":")
    return "squid.conf", ["squid", "-N", "-f"], {
        "LISTEN": listen, "ADDRESS": address, "PORT": port, "POOL": "on" if proxy.pooled else "off",
        "DIRECTIVES": "\n".join(proxy.directives),
    }  # fmt: skip


_STARTS = {
    "nginx": _nginx, "haproxy": _haproxy, "apache": _apache, "caddy": _caddy, "varnish": _varnish, "squid": _squid,
}  # fmt: skip
