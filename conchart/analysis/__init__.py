"""What no packet says by itself, worked out once, when everything is read: page, terminal, exports and SQL select it.

In: the tables that the native core filled. Out: the columns and tables that ``schema`` says are worked out. One module
per step; a step may read what the steps before it wrote, as ``analyse`` orders them.
"""

from collections.abc import Collection, Iterable, Mapping

from conchart.analysis.findings import find
from conchart.analysis.hops import link_hops
from conchart.analysis.keys import cover
from conchart.analysis.names import name_connections
from conchart.analysis.quality import appraise
from conchart.analysis.seen_from import SeenFrom, see_from
from conchart.analysis.servers import describe_servers
from conchart.analysis.splits import split_waits
from conchart.analysis.vantage import Vantage, locate
from conchart.analysis.waits import charge_servers, explain_phases
from conchart.rules import Rule
from conchart.tables import Tables


def analyse(
    tables: Tables,
    *,
    vantage: Vantage | None = None,
    seen_from: SeenFrom = "capture",
    proxies: Iterable[Collection[str]] = (),
    rules: Iterable[Rule],
    thresholds: Mapping[str, float],
) -> None:
    """Work out everything that is not in a packet.

    Args:
        tables: As the core filled them; the others are empty.
        vantage: Where on the path the capture was taken, if somebody knows better than the packets tell.
        seen_from: Whose times the tables tell.
        proxies: The addresses of each proxy that somebody knows.
        rules: What to look for.
        thresholds: From where on something is a finding, by name.
    """
    see_from(tables, seen_from)
    locate(tables, vantage)
    name_connections(tables)
    explain_phases(tables)
    charge_servers(tables)
    link_hops(tables, proxies)
    split_waits(tables)
    describe_servers(tables)
    cover(tables)
    appraise(tables)
    find(tables, rules, thresholds)
    _forget(tables)


def _forget(tables: Tables) -> None:
    """Drop what steps handed to each other: as much again as the tables."""
    own = "SELECT view_name, 'VIEW' FROM duckdb_views() WHERE temporary AND NOT internal UNION ALL "
    for name, kind in tables.sql(own + "SELECT table_name, 'TABLE' FROM duckdb_tables() WHERE temporary").fetchall():
        tables.execute(f"DROP {kind} {name}")
