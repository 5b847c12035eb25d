"""Who owns the sockets of a connection."""

from typing import Any

import pytest

from conchart.report.owners import are_there, who
from tests.by_hand import connection, tables_of


@pytest.mark.parametrize(
    ("facts", "whole", "brief"),
    [
        ({}, None, None),
        ({"pid": 7}, "process (pid 7)", "process (pid 7)"),
        ({"process": "/usr/bin/curl", "pid": 4123}, "curl (pid 4123)", "curl (pid 4123)"),
        ({"process": "curl"}, "curl", "curl"),
        ({"process": "/usr/bin/"}, "process", "process"),
        ({"container": "web"}, "container web", "container web"),
        ({"container_id": "0123456789abcdef"}, "container 0123456789ab", "container 0123456789ab"),
        ({"pod": "shop/web-1", "container": "web"}, "pod shop/web-1", "pod shop/web-1"),
        ({"process": "nginx", "pid": 9, "pod": "shop/web-1"}, "nginx (pid 9), pod shop/web-1", "nginx (pid 9)"),
    ],
)
def test_the_owner_of_a_side_is_named(facts: dict[str, Any], whole: str | None, brief: str | None) -> None:
    for side, other in (("client", "server"), ("server", "client")):
        tables = tables_of(connections=[connection(0, **{f"{side}_{name}": value for name, value in facts.items()})])
        query = f"SELECT {who(side)}, {who(side, brief=True)}, {who(other)} FROM connections"
        assert tables.fetch(query) == [(whole, brief, None)]
        assert are_there(tables) == (whole is not None)
