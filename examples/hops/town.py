"""A client, proxies, and the servers behind them, on one network or on two.

client .10 ─┐                          proxy .20 has an address on either; with ONE network, all are on the first
            ├ front 10.91.1.0/24 ─ proxy .20 ─ back 10.91.2.0/24 ┬ inner .21: a second proxy
                                                                 ├ shop1 .31, shop2 .32, shop3 .33
                                                                 └ store .40: behind the shops
"""

from __future__ import annotations

from lab.network import Host, Network, ip

FRONT, BACK = "front", "back"
NETWORKS = {FRONT: "10.91.1", BACK: "10.91.2"}
NUMBERS = {"client": 10, "proxy": 20, "inner": 21, "shop1": 31, "shop2": 32, "shop3": 33, "store": 40}
LOOPBACK = "127.0.0.1"
ANY, CABLES, SWITCH, LO, BRIDGE = "any", "cables", "switch", "lo", "bridge"
"""Where tcpdump listens: on all of the proxy's interfaces at once, on each of its cables, on the switches, on the
proxy's loopback interface, on all interfaces of the host to whose bridge the others are plugged in."""
APART, LOCAL, SAME = "apart", "local", "same"
"""Who runs where: each on a host of its own, or all on the proxy's, with an address each or with one for all."""


class Town(Network):
    """The hosts, and one switch or two, which stand in a namespace of their own."""

    def __init__(self, networks: int, homes: str = APART) -> None:
        """Name the hosts; ``networks`` is 1 or 2, ``homes`` says who runs where."""
        super().__init__(*NUMBERS, "switch")
        self.networks = networks
        self.homes = homes
        self.at = dict(zip([*NUMBERS, "switch"], self.hosts, strict=True))
        if homes != APART:
            self.at |= dict.fromkeys(NUMBERS, self.at["proxy"])

    def build(self) -> None:
        """Set the switches up and plug everybody in."""
        if self.homes != APART:
            return
        for network in list(NETWORKS)[: self.networks]:
            ip("-n", self.at["switch"].namespace, "link", "add", network, "type", "bridge")
            ip("-n", self.at["switch"].namespace, "link", "set", network, "up")
            for role in NUMBERS:
                if network in self.networks_of(role):
                    self._plug_in(role, network)

    def networks_of(self, role: str) -> list[str]:
        """Say to which networks a host belongs."""
        if self.networks == 1:
            return [FRONT]
        return {"client": [FRONT], "proxy": [FRONT, BACK]}.get(role, [BACK])

    def address(self, role: str, network: str = BACK) -> str:
        """Return a host's address on ``network``, or on the only one it is on."""
        if self.homes != APART:
            return LOOPBACK if self.homes == SAME else f"127.0.{NUMBERS[role]}.1"
        there = self.networks_of(role)
        return f"{NETWORKS[network if network in there else there[0]]}.{NUMBERS[role]}"

    def port(self, role: str, port: int) -> int:
        """Return the port of one of several that listen to the same one, each at an address of its own if it can."""
        return port + (NUMBERS[role] % 10 - 1) * 100 if self.homes == SAME and role.startswith("shop") else port

    def places(self, capture: str) -> list[tuple[Host, str]]:
        """Host and interface of each tcpdump that a kind of capture takes."""
        there = list(NETWORKS)[: self.networks]
        return {
            ANY: [(self.at["proxy"], "any")],
            CABLES: [(self.at["proxy"], network) for network in there],
            SWITCH: [(self.at["switch"], network) for network in there],
            LO: [(self.at["proxy"], "lo")],
            BRIDGE: [(self.at["switch"], "any")],
        }[capture]

    def _plug_in(self, role: str, network: str) -> None:
        host, switch = self.at[role], self.at["switch"]
        ip("link", "add", network, "netns", host.namespace, "type", "veth",
           "peer", "name", f"{network}-{role}", "netns", switch.namespace)  # fmt: skip
        ip("-n", switch.namespace, "link", "set", f"{network}-{role}", "master", network, "up")
        ip("-n", host.namespace, "address", "add", f"{self.address(role, network)}/24", "dev", network)
        ip("-n", host.namespace, "link", "set", network, "gso_max_segs", "1", "up")
