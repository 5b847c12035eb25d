"""Processes of this machine, beside the connections that are theirs, where a live capture asked the system.

In: sockets and their owners (``reading/live/sockets.py``), connections. Out: ``client_pid``, ``server_process`` … of
``connections``, as the core fills them where a capture has comments.
"""

from collections.abc import Iterable

from conchart.store.tables import Tables

_TYPES = {
    "transport": "VARCHAR",
    "ip": "VARCHAR",
    "port": "INTEGER",
    "peer_ip": "VARCHAR",
    "peer_port": "INTEGER",
    "pid": "INTEGER",
    "process": "VARCHAR",
    "container_id": "VARCHAR",
}
_OWN = """
    UPDATE connections SET {own}_pid = owner.pid, {own}_process = owner.process, {own}_container_id = owner.container_id
    FROM sockets owner
    WHERE {own}_pid IS NULL AND {own}_process IS NULL AND owner.transport = connections.transport::VARCHAR
        AND owner.ip = {own}_ip AND owner.port = {own}_port AND peer_ip = {peer}_ip AND peer_port = {peer}_port
"""
# A connection that was shorter than a look has no socket that was seen. Who accepts connections there is its server, if
# it went to this machine: some socket here has its address, or it did not leave the machine.
_ACCEPTING = """
    UPDATE connections SET server_pid = owner.pid, server_process = owner.process,
        server_container_id = owner.container_id
    FROM (
        SELECT transport AS over, ip, port,
            first({{'pid': pid, 'process': process, 'container_id': container_id}} ORDER BY pid) AS owner
        FROM sockets WHERE peer_port = 0 GROUP BY ALL) listening
    WHERE server_pid IS NULL AND server_process IS NULL AND over = connections.transport::VARCHAR
        AND listening.port = server_port AND (ip = server_ip OR ip = '' AND {here})
"""
_HERE = """(
    server_ip IN (SELECT ip FROM sockets WHERE ip <> '') OR local_end IN ('server', 'both')
    OR starts_with(server_ip, '127.') OR server_ip = '::1' OR server_ip = client_ip)"""


def name_owners(tables: Tables, sockets: Iterable[tuple[object, ...]]) -> None:
    """Name the process of each end that is a socket of this machine.

    Args:
        tables: As the core filled them.
        sockets: As ``Sockets.rows`` gives them.
    """
    with tables.lent("sockets", _TYPES, sockets):
        for own, peer in (("client", "server"), ("server", "client")):
            tables.execute(_OWN.format(own=own, peer=peer))
        tables.execute(_ACCEPTING.format(here=_HERE))
