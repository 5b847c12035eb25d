"""Which addresses somebody says are one proxy.

In: what a person asked for. Out: the addresses of each proxy, written as the tables have them.
"""

from collections.abc import Collection, Iterable
from ipaddress import ip_address

from conchart.errors import UsageError


def given_proxies(proxies: Iterable[str | Collection[str]]) -> list[tuple[str, ...]]:
    """Read the addresses of each proxy: a collection of them, or text with commas in between.

    Raises:
        UsageError: One is no address, or belongs to two proxies.
    """
    given: list[tuple[str, ...]] = []
    known: set[str] = set()
    for proxy in proxies:
        addresses = dict.fromkeys(map(_address, proxy.split(",") if isinstance(proxy, str) else proxy))
        if twice := known & addresses.keys():
            raise UsageError(f"{min(twice)} cannot be two proxies: name all addresses of a proxy together")
        known |= addresses.keys()
        given.append(tuple(addresses))
    return given


def _address(text: str) -> str:
    try:
        return str(ip_address(text.strip().strip("[]")))
    except ValueError:
        raise UsageError(
            f"cannot read the proxy's address {text!r}: give addresses without ports, with commas in between "
            "(10.0.1.5,10.0.2.5)"
        ) from None
