"""A capture's README: topology, how it was made, what to see."""

from __future__ import annotations

from cases import Case
from lab.programs import find_apache, versions
from proxies import Proxy
from town import ANY, APART, BRIDGE, CABLES, LO, LOOPBACK, SWITCH, Town

VERSIONS = {
    "nginx": ("nginx", "-v"), "haproxy": ("haproxy", "-v"), "caddy": ("caddy", "version"),
    "varnish": ("varnishd", "-V"), "squid": ("squid", "-v"),
}  # fmt: skip
HEARD = {
    ANY: "on the proxy, `tcpdump -i any`",
    CABLES: "on the proxy, at its one cable or at both, merged by `mergecap`",
    SWITCH: "on the switches, merged by `mergecap` where there are two",
    LO: "on the loopback interface",
    BRIDGE: "on the host that has the bridge, `tcpdump -i any`",
}


def readme(case: Case, town: Town, concurrency: int, requests: int, links: int) -> str:
    """Say how the capture was made and what to see in it."""
    programs = {proxy.program for proxy in (case.proxy, case.inner) if proxy}
    commands = [VERSIONS[name] for name in sorted(programs - {"apache"})]
    commands += [(find_apache().program, "-v")] * ("apache" in programs)
    keys = "- `keys.log` has the TLS secrets of the first leg, as the client wrote them.\n" * case.keys
    joined = "switch" if case.homes != APART else "a switch" if case.networks == 1 else "two switches"
    return f"""\
# {case.title}; {concurrency} at a time

Made by `examples/hops/make-captures`; what the set is for is in `examples/hops/README.md`.

## Topology

{topology(case, town)}

{"Network namespaces on one machine, joined by" if case.homes == APART else "One network namespace: no"} {joined}.

## How it was made

- Client: `examples/hops/traffic.go`, {requests} requests, {concurrency} at a time{options(case, concurrency)}.
{proxies(case)}\
- Captured {HEARD[case.capture]}.
- `truth.csv`: {links:,} links, from what the ends wrote down.
{keys}
{versions([*commands, ("tcpdump", "--version")])}

## What to see

- Which request on one leg is which on the other, no table says{where_it_does(case)}.
"""


def relayed_readme(requests: int) -> str:
    """Say the same of the chain through a SOCKS proxy and a relay."""
    return f"""\
# A chain at one address: SOCKS, a relay, a server

Made by `examples/hops/make-captures relayed-1`.

## Topology

    client, SOCKS proxy (port 1080), relay (port 1234), web server (port 8000): all at 127.0.0.1

## How it was made

- `examples/hops/relayed.py`: {requests} requests, one at a time, four to a connection.
- Captured on the loopback interface.

{versions([("tcpdump", "--version")])}

## What to see

- One chain: what is asked of port 1080 causes what is asked of port 1234, and that causes what is asked of port 8000.
  The relay connects to the server as soon as it is connected to, before it is asked for anything.
"""


def topology(case: Case, town: Town) -> str:
    """List who has which addresses."""
    roles = ["client", "proxy", *["inner"] * bool(case.inner and not case.inner_beside)]
    roles += [] if case.shop_beside else [f"shop{number + 1}" for number in range(case.shops)]
    roles += {"": [], "some": ["store"], "all": ["store", "shop2", "shop3"]}[case.calls]
    lines = [
        f"    {role:<8} {', '.join(town.address(role, network) for network in town.networks_of(role))}"
        for role in roles
    ]
    lines += [f"    the inner proxy is on the proxy's host, {LOOPBACK}:8081"] * case.inner_beside
    lines += [f"    the shop is on the proxy's host, {LOOPBACK}:8080"] * case.shop_beside
    return "\n".join(lines)


def options(case: Case, concurrency: int) -> str:
    """Name what the client was told."""
    return f" (`{' '.join([*case.customer, *case.times(concurrency)])}`)"


def proxies(case: Case) -> str:
    """Say which proxies there were."""
    return "".join(
        f"- {role}: {describe(proxy)}\n" for role, proxy in (("Proxy", case.proxy), ("Inner", case.inner)) if proxy
    )


def describe(proxy: Proxy) -> str:
    """Say what a proxy does."""
    speaks = "HTTP/2, " * proxy.http2 + f"{'TLS' if proxy.front_tls else 'plain'} in front"
    keeps = f"`http-reuse {proxy.reuse}`" if proxy.program == "haproxy" else "pooled" if proxy.pooled else "not pooled"
    added = "".join(f"; `{directive}`" for directive in proxy.directives)
    return f"{proxy.program}, {speaks}, {'TLS' if proxy.back_tls else 'plain'} behind, {keeps}{added}."


def where_it_does(case: Case) -> str:
    """Name what tells requests apart."""
    if "-mark" in case.customer or any("$request_id" in line for line in case.proxy.directives):
        return " but the ids in their heads"
    return " but their targets" if "-distinct" in case.customer else ""
