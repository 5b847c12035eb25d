"""Filters mean what they mean to tcpdump: the same packets are selected, on every link layer."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import conchart
from conchart.errors import UsageError
from conchart.reading.bpf import compile_filter, compiler
from tests.conftest import ROOT

ETHERNET, NULL, RAW, SLL, SLL2, LOOP = 1, 0, 101, 113, 276, 108

EXPRESSIONS = (
    "tcp",
    "not tcp",
    "tcp port 443",
    "port 80",
    "src port 443",
    "dst port 443",
    "portrange 1000-50000",
    "tcp portrange 440-450 or port 80",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "host 10.77.0.1 and tcp",
    "net 10.0.0.0/8",
    "src net 10.0.0.0/24 or dst net 192.168.0.0/16",
    "not net 10.0.0.0/8",
    "host 2001:db8::1",
    "net 2001:db8::/32",
    "ip",
    "ip6",
    "ip6 and tcp",
    "ip or ip6",
    "tcp[tcpflags] & tcp-syn != 0",
    "tcp[tcpflags] & (tcp-syn|tcp-ack) == (tcp-syn|tcp-ack)",
    "tcp[13] & 1 != 0",
    "tcp[tcpflags] & tcp-rst != 0 or tcp[tcpflags] & tcp-fin != 0",
    "tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
    "greater 100",
    "less 80",
    "len > 60 and len < 1000",
    "ip[8] < 64",
    "ip[2:2] > 576",
    "tcp and not (port 443 or port 80)",
    "udp or icmp",
    "ip proto 6",
    "ip6 proto 6",
    "vlan",
    "vlan 7",
    "vlan and tcp port 443",
    "ether proto 0x0800",
    "arp",
    "inbound",
    "",
)


@pytest.mark.parametrize(
    ("expression", "link_type", "words", "pointed"),
    [
        ("tcp port 443 adn host 10.0.0.1", ETHERNET, "syntax error", "adn"),
        ("tcp port 443 and hst 10.0.0.1", ETHERNET, "unknown port 'hst'", "hst"),
        ("prot 443", ETHERNET, "syntax error", "prot"),
        ("port 99999", ETHERNET, "illegal port number", "port"),
        ("tcp and vlan 3", RAW, "no VLAN support for Raw IP", "vlan"),
        ("ip and tcp[100000000000] = 1", ETHERNET, "syntax error", "tcp[100000000000]"),
        ("tcp port", ETHERNET, "syntax error", "port"),
    ],
)
def test_refusal_has_the_words_of_libpcap_and_points_at_the_fault(
    expression: str, link_type: int, words: str, pointed: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        compile_filter(expression, link_type)
    _, shown, caret = str(caught.value).split("\n")
    assert shown[caret.index("^") :].startswith(pointed)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("ip.addr == 10.0.0.1", "-f 'host 10.0.0.1'"),
        ("ip.addr==10.0.0.0/8 && !(tcp.port eq 443)", "-f 'net 10.0.0.0/8 && !(tcp port 443)'"),
        ("ip.src != 10.0.0.1 or ipv6.dst == 2001:db8::1", "-f 'not src host 10.0.0.1 or dst host 2001:db8::1'"),
        ("eth.src == 02:00:00:00:00:01 and vlan.id == 7", "-f 'ether src 02:00:00:00:00:01 and vlan 7'"),
        ("http and tcp.dstport == 8080", "-f 'tcp port 80 and tcp dst port 8080'"),
        ("tcp.stream eq 12", "transport = 'tcp' AND transport_stream = 12"),
        ("udp.stream==3 and ip", "transport = 'udp' AND transport_stream = 3"),
        ('http.host contains "shop"', "conchart query --help"),
        ("tcp.analysis.retransmission", "conchart query --help"),
    ],
)
def test_a_display_filter_is_known_for_one(expression: str, instead: str) -> None:
    with pytest.raises(UsageError, match="display filter of Wireshark's") as caught:
        compile_filter(expression, ETHERNET)
    assert instead in str(caught.value)
    if write := re.search(r"Write: -f '(.*)'", str(caught.value)):
        assert compile_filter(write[1], ETHERNET)


@pytest.mark.parametrize("expression", ["prot 80", "https", "port tcp.port.example"])
def test_what_is_wrong_otherwise_is_no_display_filter(expression: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_filter(expression, ETHERNET)
    assert "Wireshark" not in str(caught.value)


@pytest.mark.parametrize(
    "expression", ["inbound", "wlan host 02:00:00:00:00:01", "action pass", "vpi 3", "vlan 3", "tcp"]
)
def test_what_some_link_type_has_is_not_refused_before_the_capture_is_known(expression: str) -> None:
    assert callable(compiler(expression))


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "without a header"])
def test_a_wrong_filter_is_reported_before_a_capture_is_opened(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "input.pcap").write_bytes(content)
    with pytest.raises(UsageError, match="syntax error"):
        conchart.read(tmp_path / "input.pcap", filter="tcp prot 443")


def test_a_filter_that_is_wrong_for_the_link_type_is_reported_on_the_first_packet() -> None:
    """Also where no packet lies in the window: the rest is not read for it."""
    path = ROOT / "captures/crafted/gap/input.pcap"
    seen: list[int] = []
    with pytest.raises(UsageError, match="not supported"):
        conchart.read(path, filter="inbound", start="1h", progress=lambda _, frames: seen.append(frames))
    assert not seen


@pytest.mark.parametrize("link_type", [ETHERNET, NULL, RAW, SLL, SLL2, LOOP])
def test_every_link_type_that_the_core_reads_has_a_compiler(link_type: int) -> None:
    instructions = compile_filter("tcp port 443", link_type)
    assert instructions[-1] == (6, 0, 0, 0), "the last word is a refusal"
    assert len(instructions) > 5


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 8_000 + "tcp",
        "(" * 4_000 + "tcp" + ")" * 4_000,
        "!" * 16_000 + "tcp",
        "not " * 4_000 + "tcp",
        "||".join(["ip"] * 4_000),
        "&&".join(["ip"] * 4_000),
        "ip[0] = " + "+".join(["1"] * 8_000),
        "ip[0] = " + "-" * 16_000 + "1",
        "ip[0] = " + "ip[" * 4_000 + "1" + "]" * 4_000,
        "a" * 16_384,
    ],
    ids=lambda expression: expression[:12],
)
@pytest.mark.thorough
def test_deep_nesting_and_long_chains_compile_or_are_refused(expression: str) -> None:
    """On a stack as small as the one of the core's thread, in a process of its own: an overflow ends it."""
    code = (
        "import sys, threading\n"
        "from conchart.reading.bpf import compile_filter; from conchart.errors import UsageError\n"
        "def run():\n"
        "    try: compile_filter(sys.argv[1], 1)\n"
        "    except UsageError: pass\n"
        "threading.stack_size(2 << 20); thread = threading.Thread(target=run); thread.start(); thread.join()"
    )
    done = subprocess.run([sys.executable, "-c", code, expression], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_expression_that_libpcap_would_not_survive_is_refused() -> None:
    with pytest.raises(UsageError, match="16,385 bytes are too long, the limit is 16,384"):
        compile_filter("a" * 16_385, ETHERNET)
    with pytest.raises(UsageError, match="NUL"):
        compile_filter("tcp\0 or udp", ETHERNET)


@pytest.mark.parametrize("expression", ["\udcff", "tcp and \udcff", "host \udcff"])
def test_what_is_no_text_is_no_filter(expression: str) -> None:
    with pytest.raises(UsageError, match="^filter: "):
        compile_filter(expression, ETHERNET)


def test_an_unknown_link_type_is_refused() -> None:
    with pytest.raises(UsageError, match="data link type"):
        compile_filter("tcp", 250 << 8)


def test_no_filter_accepts_whole_frames() -> None:
    assert compile_filter("", ETHERNET) == [(6, 0, 0, 262_144)]


def test_the_shipped_library_is_the_only_one_loaded() -> None:
    """Two libpcaps in one process resolve each other's symbols, so the system's must stay out."""
    compiled = "from conchart.reading.bpf import compile_filter; compile_filter('tcp', 1)"
    code = f"{compiled}; print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    loaded = {line.split()[-1] for line in maps.splitlines() if "libpcap.so" in line}
    assert len(loaded) == 1
    assert "site-packages" in loaded.pop()


@pytest.mark.parametrize("hosts", [5, 600])
@pytest.mark.thorough
def test_a_list_of_hosts_selects_the_same_however_long(hosts: int) -> None:
    capture = ROOT / "captures/round-trips/tls12-client/input.pcap"
    with conchart.read(capture) as trace:
        ((address,),) = trace.sql("SELECT any_value(client_ip) FROM connections").fetchall()
    packets = counted_by_conchart(capture, f"host {address}")
    strangers = [f"host 203.0.{number // 250}.{number % 250}" for number in range(hosts)]
    expression = " or ".join([*strangers, f"host {address}"])
    assert (len(compile_filter(expression, ETHERNET)) > 10_000) == (hosts == 600)
    assert counted_by_conchart(capture, expression) == packets != 0
    assert counted_by_conchart(capture, " or ".join(strangers)) == 0


def captures() -> list[Path]:
    """Some of ours, from every folder, and where there is a corpus of it: 40 at most, so that the test stays short."""
    ours = [
        path
        for folder in sorted((ROOT / "captures").iterdir())
        for paths in [sorted(folder.glob("*/input.pcap"))]
        for path in paths[:: max(1, len(paths) // 2)]
    ]
    corpus = os.environ.get("CONCHART_CORPUS")
    theirs = (
        sorted(path for path in Path(corpus).glob("*.pcap*") if path.suffix in (".pcap", ".pcapng")) if corpus else []
    )
    small = [path for path in theirs if path.stat().st_size < 1_000_000]
    return ours + small[:: max(1, len(small) // 10)]


def counted_by_tcpdump(capture: Path, expression: str) -> int | str:
    """The number of packets, or the complaint."""
    done = subprocess.run(
        ["tcpdump", "--count", "-n", "-r", capture, expression], capture_output=True, text=True, check=False
    )
    count = re.search(r"^(\d+) packets?$", done.stdout, re.MULTILINE)
    return int(count[1]) if count and not done.returncode else done.stderr.splitlines()[-1]


def counted_by_conchart(capture: Path, expression: str) -> int | str:
    """The same for us."""
    try:
        with conchart.read(capture, filter=expression) as trace:
            return int(trace.sql("SELECT sum(selected) FROM captures").fetchall()[0][0])
    except UsageError as error:
        return str(error)


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("capture", captures(), ids=lambda path: "-".join(path.parts[-2:]))
@pytest.mark.thorough
def test_as_many_packets_as_tcpdump_selects(capture: Path) -> None:
    if isinstance(counted_by_tcpdump(capture, ""), str):
        pytest.skip("tcpdump cannot read it")
    try:
        conchart.read(capture).close()
    except conchart.CaptureError as error:
        pytest.skip(f"conchart cannot read it: {error}")
    differ = {}
    for expression in EXPRESSIONS:
        theirs, ours = counted_by_tcpdump(capture, expression), counted_by_conchart(capture, expression)
        if theirs != ours and not (isinstance(theirs, str) and isinstance(ours, str)):
            differ[expression] = (theirs, ours)
    assert not differ, "tcpdump's and our numbers"
