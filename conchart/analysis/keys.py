"""The share of TLS connections that the given keys decrypt.

In: handshakes. Out: the table ``coverage``; no row where no keys were given.
"""

from conchart.store.tables import Tables

# A connection is opened as far as its first handshake is: a renegotiation has the keys of the one before.
_COVER = """
    INSERT INTO coverage BY NAME
    SELECT min(stream) AS first_stream, server_ip, server_port, keys, missing_keys, count(*) AS connections
    FROM (SELECT stream, arg_min(keys, number) AS keys, arg_min(missing_keys, number) AS missing_keys
        FROM handshakes WHERE keys IS NOT NULL GROUP BY stream)
    JOIN connections USING (stream) GROUP BY server_ip, server_port, keys, missing_keys
"""


def cover(tables: Tables) -> None:
    """Count the connections of each server whose keys were all there, partly, or not."""
    tables.execute(_COVER)
