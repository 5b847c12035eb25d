"""Tables that a test fills by hand, in memory: rows of the core's, and of what a step reads."""

from collections.abc import Iterable
from typing import Any

import duckdb

from conchart.store.schema import TABLE_BY_NAME
from conchart.store.tables import Tables

Row = dict[str, Any]


def tables_of(**rows: Iterable[Row]) -> Tables:
    """Give tables with these rows, and no others; columns that a row leaves out are NULL."""
    tables = Tables(duckdb.connect(":memory:", config={"threads": 1}))  # as for any small capture
    tables.create()
    for table, of_table in rows.items():
        names = TABLE_BY_NAME[table].types
        records = [dict(row) for row in of_table]
        unknown = {name for row in records for name in row} - names.keys()
        assert not unknown, f"{table} has no column {sorted(unknown)}"
        tables.add(table, (tuple(row.get(name) for name in names) for row in records))
    return tables


def connection(stream: int, client: str = "10.0.0.1:40000", server: str = "10.0.0.9:80", **facts: Any) -> Row:  # noqa: ANN401
    """Give a row of ``connections`` over TCP that is complete, with this client and server, and these columns."""
    (client_ip, client_port), (server_ip, server_port) = (end.rsplit(":", 1) for end in (client, server))
    ends = {"client_ip": client_ip, "client_port": int(client_port), "server_ip": server_ip}
    return {
        **{"stream": stream, "capture": 0, "transport": "tcp", "transport_stream": stream, "state": "complete"},
        **ends,
        **{"server_port": int(server_port), "opened_at": 0, "closed_at": 0, "opened_by": "client"},
        **{"closed_by": "server", "packets_client": 5, "packets_server": 5, "bytes_client": 0, "bytes_server": 0},
        **facts,
    }
