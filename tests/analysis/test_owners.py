"""Processes of this machine, beside the connections that are theirs."""

from typing import Any

from conchart.analysis.owners import name_owners
from tests.by_hand import Row, connection, tables_of

CLIENT, SERVER = ("10.0.0.1", 40_000), ("10.0.0.9", 80)
Socket = tuple[str, str, int, str, int, int, str, str | None]


def socket(own: tuple[str, int], peer: tuple[str, int], pid: int, process: str, transport: str = "tcp") -> Socket:
    return (transport, *own, *peer, pid, process, f"container-{pid}")


def owned(*sockets: Socket, **facts: Any) -> tuple[Any, ...]:  # noqa: ANN401
    row: Row = connection(0, "10.0.0.1:40000", "10.0.0.9:80", **facts)
    tables = tables_of(connections=[row])
    name_owners(tables, sockets)
    (found,) = tables.fetch(
        "SELECT client_pid, client_process, client_container_id, server_pid, server_process, server_container_id "
        "FROM connections"
    )
    return found


def test_each_end_has_the_process_of_its_socket() -> None:
    assert owned(socket(CLIENT, SERVER, 7, "curl"), socket(SERVER, CLIENT, 9, "nginx")) == (
        *(7, "curl", "container-7"),
        *(9, "nginx", "container-9"),
    )


def test_another_port_another_peer_and_another_transport_are_other_sockets() -> None:
    others = (
        socket(("10.0.0.1", 40_001), SERVER, 7, "curl"),
        socket(CLIENT, ("10.0.0.9", 443), 7, "curl"),
        socket(CLIENT, ("10.0.0.8", 80), 7, "curl"),
        socket(CLIENT, SERVER, 7, "curl", "udp"),
    )
    assert owned(*others) == (None,) * 6


def test_what_the_capture_says_stays() -> None:
    found = owned(socket(CLIENT, SERVER, 7, "curl"), client_process="firefox")
    assert found[:3] == (None, "firefox", None)


LISTENING = socket(("10.0.0.9", 80), ("", 0), 9, "nginx")
ANYWHERE = socket(("", 80), ("", 0), 9, "nginx")


def test_a_short_connection_is_of_who_accepts_them_there() -> None:
    assert owned(LISTENING)[3:] == (9, "nginx", "container-9")
    assert owned(socket(("10.0.0.9", 81), ("", 0), 9, "nginx"))[3:] == (None,) * 3


def test_who_accepts_on_every_address_has_those_of_this_machine_alone() -> None:
    assert owned(ANYWHERE)[3:] == (None,) * 3, "the server may be another machine"
    here = socket(("10.0.0.9", 5_000), ("10.0.0.7", 1), 3, "cron")
    assert owned(ANYWHERE, here)[3:] == (9, "nginx", "container-9")
    assert owned(ANYWHERE, local_end="server")[3:] == (9, "nginx", "container-9")
    assert owned(ANYWHERE, local_end="client")[3:] == (None,) * 3
    assert owned(ANYWHERE, client_ip="127.0.0.1", server_ip="127.0.0.1")[3:] == (9, "nginx", "container-9")


def test_of_several_that_accept_there_the_first_process_is_named() -> None:
    workers = (socket(("10.0.0.9", 80), ("", 0), pid, f"worker-{pid}") for pid in (12, 11, 13))
    assert owned(*workers)[3:5] == (11, "worker-11")
