"""What a server was called: the name that the client asked for. Nothing is ever looked up.

In: handshakes and exchanges. Out: ``connections.server_name``, raw, as it was sent.
"""

from conchart.tables import Tables

# An address is no name, however a client writes it in Host (RFC 9110 section 7.2, RFC 3986 section 3.2.2).
_NAME = """
    WITH secured AS (SELECT stream, arg_min(sni, number) AS name FROM handshakes WHERE sni <> '' GROUP BY stream)
    UPDATE connections SET server_name = name FROM (
        FROM secured
        UNION ALL
        SELECT stream, arg_min(host, number)
        FROM exchanges ANTI JOIN secured USING (stream) JOIN connections USING (stream)
        WHERE host NOT IN ('', server_ip, concat(server_ip, ':', server_port),
            concat('[', server_ip, ']'), concat('[', server_ip, ']:', server_port))
        GROUP BY stream) AS asked
    WHERE connections.stream = asked.stream
"""


def name_connections(tables: Tables) -> None:
    """Name each connection's server: by SNI, else by the first Host that is not just the address."""
    tables.execute(_NAME)
