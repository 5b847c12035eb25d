"""The first change that is proposed is a product's own only where the capture tells that this end is that product."""

import re
from pathlib import Path

from conchart import Trace
from conchart.analysis.findings.rule import load_rules

PRODUCTS = sorted({fix.product for rule in load_rules() for fix in rule.fixes if fix.product})
OF_A_PRODUCT = re.compile(rf"({'|'.join(map(re.escape, PRODUCTS))})(?: [<>=][^:]*)?: ")

# What was said by who is at either end of the finding's connections: in responses of the server, in requests of the
# client, and in responses of the client where it is a proxy, which its own clients get from whatever address it has. A
# database is known by its protocol.
SOFTWARE = """
    WITH ends AS (
        SELECT DISTINCT client_ip, server_ip, server_port
        FROM (SELECT unnest(streams) AS stream FROM findings WHERE number = $number) JOIN connections USING (stream)),
    proxies AS (
        SELECT DISTINCT home.address, home.port
        FROM ends JOIN nodes ON nodes.address = client_ip JOIN nodes home ON home.node = nodes.node)
    SELECT DISTINCT server_software FROM exchanges JOIN connections USING (stream)
    WHERE (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM ends)
        OR (server_ip, server_port) IN (SELECT (address, port) FROM proxies)
    UNION
    SELECT DISTINCT user_agent FROM exchanges JOIN connections USING (stream)
    WHERE client_ip IN (SELECT client_ip FROM ends)
    UNION
    SELECT DISTINCT app FROM connections WHERE (server_ip, server_port) IN (SELECT (server_ip, server_port) FROM ends)
"""


def test_the_first_change_is_a_products_own_only_where_that_product_is(every_case: Path, every_trace: Trace) -> None:
    for number, advice in every_trace.sql("SELECT number, advice FROM findings WHERE advice IS NOT NULL").fetchall():
        if named := OF_A_PRODUCT.match(advice):
            product = named[1].lower()
            texts = [text for (text,) in every_trace.fetch(SOFTWARE, {"number": number}) if text]
            assert any(product in text.lower() for text in texts), (advice.split("\n")[0], texts)
            # And the lab did use it: what a proxy hands on from its backend does not tell what the proxy is. Behind
            # captures that are made after a report there is no lab: their servers are what they say.
            if every_case.parent.name == "wild":
                continue
            readme = (every_case / "README.md").read_text(encoding="utf-8")
            names = "mysql|mariadb" if product == "mysql" else re.escape(product.partition("-")[0])
            assert re.search(rf"(?i)\b(?:{names})\b", readme)
