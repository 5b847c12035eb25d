"""What a server was called: the name that the client asked for. Nothing is ever looked up.

In: handshakes and exchanges. Out: ``connections.server_name``, raw, as it was sent.
"""

from conchart.tables import Tables

# RFC 9110 section 7.2, RFC 3986 section 3.2.2; some write IPv6 without its brackets.
_ADDRESS = r"([0-9.]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*"
# An address in Host is no name, whosever it is: behind a proxy it is often that of the front.
_NAME = f"""
    WITH secured AS (SELECT stream, arg_min(sni, number) AS name FROM handshakes WHERE sni <> '' GROUP BY stream)
    UPDATE connections SET server_name = name FROM (
        FROM secured
        UNION ALL
        SELECT stream, arg_min(host, number)
        FROM exchanges ANTI JOIN secured USING (stream) JOIN connections USING (stream)
        WHERE host <> '' AND NOT regexp_full_match(host, '{_ADDRESS}')
        GROUP BY stream) AS asked
    WHERE connections.stream = asked.stream
"""


def name_connections(tables: Tables) -> None:
    """Name each connection's server: by SNI, else by the first Host that is no address."""
    tables.execute(_NAME)
