"""The programs of a case: load balancer, application, and a resolver at both."""

from __future__ import annotations

import sys
from pathlib import Path

from lab.network import Host, wait_until
from lab.nginx import start_nginx
from row import LOOPBACK, NAME, ONE_HOST, Row

HERE = Path(__file__).resolve().parent
BACKEND = HERE.parent / "lab/backend.py"
NGINX, HAPROXY, PASSED, ANNOUNCED, RESOLVERS = "nginx", "haproxy", "passed", "announced", "resolvers"
CADDY = "caddy"
"""Who is at the load balancer: nginx ends TLS; HAProxy does, and sends one request at a time; HAProxy passes TLS on,
without a PROXY header or with one; dnsmasq asks another one; Caddy ends QUIC and TLS."""
NGINX_OPTIONS = ("client_max_body_size 8m", "proxy_request_buffering off", "proxy_buffering off")


def start_servers(row: Row, kind: str, keys: Path) -> None:
    """Start them; they end with the network."""
    if kind == RESOLVERS:
        _start_resolver(row, row.app, row.behind, [f"--address=/{NAME}/{row.behind}"])
        _start_resolver(row, row.lb, row.front, [f"--server={row.behind}"])
        return
    backend_at = LOOPBACK if kind in (PASSED, ANNOUNCED) else row.behind
    row.start_server(row.app, 8080, [sys.executable, BACKEND, backend_at, "8080"])
    if kind == NGINX:
        start_nginx(row, row.lb, front=row.front, backend=row.behind, keys=keys, directives=NGINX_OPTIONS)
    elif kind == CADDY:
        words = ["caddy", "run", "--config", HERE.parent / "udp/Caddyfile", "--adapter", "caddyfile"]
        environment = {"LAB_FRONT": row.front, "LAB_KEYS": str(keys), "LAB_BACKEND": f"{row.behind}:8080"}
        row.start_server(row.lb, 443, words, {"HOME": str(row.folder), **environment})
        wait_until(lambda: row.lb.has_bound(443), "Caddy listens to UDP")
    elif kind in (PASSED, ANNOUNCED):
        is_announced = kind == ANNOUNCED
        start_nginx(
            row, row.app, front=row.behind, backend=LOOPBACK, keys=keys, directives=NGINX_OPTIONS,
            proxy_protocol=is_announced,
        )  # fmt: skip
        _start_haproxy(row, row.lb, "tcp", f"{row.front}:443", f"{row.behind}:443{' send-proxy' * is_announced}")
    else:
        pem = keys / "server.pem"
        pem.write_text((keys / "server.crt").read_text() + (keys / "server.key").read_text())
        _start_haproxy(row, row.lb, "http", f"{row.front}:443 ssl crt {pem}", f"{row.behind}:8080 maxconn 1")
    if row.layout == ONE_HOST:
        _start_haproxy(row, row.client, "tcp", f"{LOOPBACK}:443", f"{row.front}:443")


def _start_haproxy(row: Row, host: Host, mode: str, listen: str, server: str) -> None:
    run = row.folder / f"haproxy-{host.role}"
    run.mkdir()
    text = (HERE / "conf/haproxy.cfg").read_text()
    for name, value in {"MODE": mode, "LISTEN": listen, "SERVER": server}.items():
        text = text.replace(f"@{name}@", value)
    (run / "haproxy.cfg").write_text(text)
    row.start_server(host, 443, ["haproxy", "-db", "-f", run / "haproxy.cfg"])


def _start_resolver(row: Row, host: Host, address: str, options: list[str]) -> None:
    words = [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
        "--user=root", "--bind-interfaces", f"--listen-address={address}", "--cache-size=0", *options,
    ]  # fmt: skip
    row.start_server(host, 53, words)
    wait_until(lambda: host.listens(53), "dnsmasq listens")
