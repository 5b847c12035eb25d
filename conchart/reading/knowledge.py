"""What somebody knows besides the packets: where they were captured, proxies, clocks, keys, spans, access logs.

In: arguments of ``conchart.read``, which explains them. Out: the same, as one value.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

Vantage = Literal["client", "server", "middle"]
VANTAGES: tuple[Vantage, ...] = get_args(Vantage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What somebody knows; names of files are not read yet."""

    vantage: Vantage | None = None
    proxies: tuple[str | Collection[str], ...] = ()
    trusted_clocks: tuple[str, ...] = ()
    keylog: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    access_logs: tuple[str, ...] = ()
    log_formats: tuple[str, ...] = ()
