"""What somebody says are the addresses of a proxy."""

from pathlib import Path

import pytest

import conchart
from conchart import UsageError
from conchart.reading.proxies import given_proxies
from tests.conftest import ROOT


def test_addresses_are_written_as_the_tables_have_them() -> None:
    given = given_proxies(["10.0.1.5, 10.0.2.5", ("2001:DB8::0:1", "[2001:db8::2]"), ["192.0.2.1", "192.0.2.1"]])
    assert given == [("10.0.1.5", "10.0.2.5"), ("2001:db8::1", "2001:db8::2"), ("192.0.2.1",)]


@pytest.mark.parametrize(
    ("proxies", "complaint"),
    [
        (["10.0.1.5:80"], r"cannot read the proxy's address '10\.0\.1\.5:80': give addresses without ports"),
        (["proxy.example"], "cannot read the proxy's address 'proxy.example'"),
        ([""], "cannot read the proxy's address ''"),
        (["10.0.1.5,"], "cannot read the proxy's address ''"),
        (["10.0.1.5,10.0.2.5", "10.0.2.5"], r"10\.0\.2\.5 cannot be two proxies"),
    ],
)
def test_what_is_no_proxy_is_wrong_usage(proxies: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        given_proxies(proxies)


def test_a_proxy_that_somebody_knows_is_one_machine() -> None:
    capture = ROOT / "captures/hops/fan-out-1/input.pcap"
    with conchart.read(capture, proxies=["10.91.1.20,10.91.2.20"]) as trace:
        nodes = trace.sql("SELECT DISTINCT role, method FROM nodes WHERE address IN ('10.91.1.20', '10.91.2.20')")
        assert nodes.fetchall() == [("proxy", "given")]


@pytest.mark.parametrize("proxy", ["10.91.1.20,192.0.2.1", "192.0.2.1"])
def test_a_proxy_that_is_not_in_the_capture_is_wrong_usage(proxy: str) -> None:
    capture = ROOT / "captures/hops/fan-out-1/input.pcap"
    with pytest.raises(UsageError, match=r"^no connection that was read has the proxy's address 192\.0\.2\.1$"):
        conchart.read(capture, proxies=[proxy])


def test_wrong_usage_is_said_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        conchart.read(tmp_path / "missing.pcap", proxies=["nobody"])
