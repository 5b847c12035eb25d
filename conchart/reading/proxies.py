"""Addresses that the user declares to be one proxy.

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
    taken: set[str] = set()
    for proxy in proxies:
        addresses = dict.fromkeys(map(_address, proxy.split(",") if isinstance(proxy, str) else proxy))
        if twice := taken & addresses.keys():
            raise UsageError(f"{min(twice)} cannot be two proxies: name all addresses of a proxy together")
        taken |= addresses.keys()
        given.append(tuple(addresses))
    return given


def require_seen(proxies: Iterable[Collection[str]], seen: Collection[str]) -> None:
    """Refuse a proxy that is not in the capture: linking would go on as if nobody had named it.

    Args:
        proxies: As ``given_proxies`` gives them.
        seen: The addresses of all connections.

    Raises:
        UsageError: An address is none of them.
    """
    if missing := [address for proxy in proxies for address in proxy if address not in seen]:
        raise UsageError(f"no connection that was read has the proxy's address {missing[0]}")


def _address(text: str) -> str:
    try:
        return str(ip_address(text.strip().strip("[]")))
    except ValueError:
        raise UsageError(
            f"cannot read the proxy's address {text!r}: give addresses without ports, separated by commas "
            "(10.0.1.5,10.0.2.5)"
        ) from None
