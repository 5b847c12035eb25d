"""What a reader should know of a capture, from the tables."""

import shlex
import struct
from pathlib import Path

import pytest

import conchart
from conchart.analysis.quality import appraise
from conchart.report.remarks import Remark, remarks
from tests.conftest import ROOT

KEEPALIVE = ROOT / "captures/reverse-proxy/https-keepalive/input.pcap"
NOT = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"


def remarks_on(*captures: Path) -> dict[str, Remark]:
    with conchart.read(*captures) as trace:
        return {remark.kind: remark for remark in remarks(trace)}


def parts_of(capture: Path, folder: Path, parts: int) -> list[Path]:
    """Cut a pcap into files of as many packets each, as ``tcpdump -C`` does."""
    whole = capture.read_bytes()
    ends = [24]
    while ends[-1] < len(whole):
        ends.append(ends[-1] + 16 + struct.unpack_from("<I", whole, ends[-1] + 8)[0])
    cuts = [ends[(len(ends) - 1) * part // parts] for part in range(parts + 1)]
    paths = [folder / f"part {part}.pcap" for part in range(parts)]
    for path, start, end in zip(paths, cuts, cuts[1:], strict=False):
        path.write_bytes(whole[:24] + whole[start:end])
    return paths


@pytest.mark.parametrize("captures", [(NOT, KEEPALIVE), (KEEPALIVE, NOT)])
def test_two_takes_can_be_compared_the_earlier_one_before(captures: tuple[Path, Path]) -> None:
    apart = remarks_on(*captures)["apart"]
    command = shlex.join(["conchart", "diff", str(NOT), str(KEEPALIVE)])
    assert apart.title == f"The captures do not overlap in time: {command} compares them"
    assert not apart.warning


def test_names_are_quoted_for_the_shell(tmp_path: Path) -> None:
    spaced = tmp_path / "after the change.pcap"
    spaced.write_bytes(KEEPALIVE.read_bytes())
    assert f" {shlex.quote(str(spaced))} compares them" in remarks_on(NOT, spaced)["apart"].title


def test_parts_of_one_capture_are_no_takes(tmp_path: Path) -> None:
    parts = parts_of(KEEPALIVE, tmp_path, 2)
    for part in parts:
        assert "apart" not in remarks_on(part)
    assert "apart" not in remarks_on(*parts), "a connection goes on from one in the other"


def test_what_was_captured_at_the_same_time_or_has_no_connection_is_no_take(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(NOT.read_bytes()[:24])
    assert "apart" not in remarks_on(nothing, KEEPALIVE)
    with conchart.read(NOT, KEEPALIVE) as trace:
        trace.execute(
            """
            DELETE FROM remarks;
            UPDATE captures SET last_at = (SELECT first_at FROM captures WHERE capture = 1) WHERE capture = 0
            """
        )
        appraise(trace)
        assert "apart" not in {remark.kind for remark in remarks(trace)}
