"""The difference in a sentence, of servers that are made by hand."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from conchart.labels.phases import PHASE_BY_NAME
from conchart.questions.compare.headline import headlines
from conchart.questions.compare.model import Difference, Hop
from conchart.questions.compare.noise import Verdict, spread
from conchart.questions.compare.samples import MEASURES
from conchart.report.servers import HEADLINES, Part, Server
from tests.questions.compare.test_matching import placed

MS = 1_000_000


def server(*, ip: str = "10.0.0.9", role: str = "server", requests: int = 10, **waits: int) -> Server:
    """Give a server whose users waited so long in each phase, in ms; other names are those of its counts."""
    counts: dict[str, Any] = {"connections": 1}
    counts |= {name: waits.pop(name) for name in [*waits] if name not in PHASE_BY_NAME}
    parts = tuple(Part(phase=PHASE_BY_NAME[name], total_ns=ms * MS, stalled=Counter()) for name, ms in waits.items())
    base = placed(ip, 80, "shop.example", role=role).server
    return replace(base, requests=requests, waited=parts, waited_ns=sum(waits.values()) * MS, **counts)


def hop(before: Server, after: Server, *, same_work: bool = True, **verdicts: Verdict) -> Hop:
    """Give a server in both captures, with a verdict on each measure that is named."""
    nothing = spread([])
    differences = tuple(
        Difference(measure=measure, before=nothing, after=nothing, verdict=verdicts[measure.name], chance=None)
        for measure in MEASURES
        if measure.name in verdicts
    )
    return Hop(before=before, after=after, tier=0, by="address", same_work=same_work, differences=differences)


def sentence(*args: Any, **options: Any) -> tuple[str, str]:  # noqa: ANN401
    (headline,) = headlines([hop(*args, **options)])
    return headline.sentence, headline.remark


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [(100, 50, "50 % less"), (100, 130, "30 % more"), (100, 200, "2.0 times as long"), (100, 199, "99 % more")],
)
def test_a_difference_is_told_with_its_cause(before: int, after: int, change: str) -> None:
    text, remark = sentence(server(wait=before), server(wait=after), waited=Verdict.MORE, wait=Verdict.MORE)
    apart = f"{abs(after - before)}.0 ms" if abs(after - before) < 100 else f"{abs(after - before)} ms"
    assert text.startswith(f"shop.example: users waited {before} ms before, {after}")
    assert f"({change}): wait for the server {apart} {'less' if after < before else 'more'}" in text
    assert text.endswith(", for 10 requests each")
    assert remark == ""


def test_what_is_noise_is_no_difference() -> None:
    text, _ = sentence(server(wait=100), server(wait=90), waited=Verdict.NOISE, wait=Verdict.NOISE)
    assert "no difference beyond noise: users waited 100 ms before, 90.0 ms after" in text
    text, _ = sentence(server(wait=100), server(wait=90), waited=Verdict.TOO_FEW)
    assert "too few requests to tell a difference from noise: " in text
    text, _ = sentence(server(wait=100), server(wait=100), waited=Verdict.SAME)
    assert "no difference: users waited 100 ms before and after" in text


def test_what_was_counted_is_sure_whatever_the_noise() -> None:
    before = server(tls=100, wait=10, handshakes_full=10, connections=10)
    after = server(tls=10, wait=10, handshakes_full=1, connections=10)
    text, remark = sentence(before, after, waited=Verdict.TOO_FEW)
    assert "(82 % less): 1 TLS handshake instead of 10, for" in text
    assert remark.startswith("Too few requests")
    after = server(tls=10, wait=10, handshakes_full=1, handshakes_resumed=9, connections=10)
    assert "1 full and 9 resumed TLS handshakes instead of 10 full and 0 resumed" in sentence(before, after)[0]


def test_a_cause_has_a_fifth_of_all_that_changed() -> None:
    before, after = server(wait=100, transfer=100), server(wait=180, transfer=120)
    both = sentence(before, after, waited=Verdict.MORE, wait=Verdict.MORE, transfer=Verdict.MORE)[0]
    assert "wait for the server 80.0 ms more, transfer" in both.lower()
    one = sentence(
        before, server(wait=180, transfer=119), waited=Verdict.MORE, wait=Verdict.MORE, transfer=Verdict.MORE
    )[0]
    assert "transfer" not in one


def test_numbers_differ_from_a_tenth_on() -> None:
    """For the requests that there were: ten connections for ten requests are as many as nine for nine."""
    waits = {"waited": Verdict.MORE}
    ten, nine = server(syn=100, connections=10), server(syn=50, connections=9)
    assert "connections instead" not in sentence(ten, nine, **waits)[0]
    assert "8 connections instead of 10" in sentence(ten, server(syn=50, connections=8), **waits)[0]
    fewer = server(syn=50, connections=5, requests=5)
    assert "instead" not in sentence(ten, fewer, same_work=False, **waits)[0]


def test_other_work_is_told_per_request() -> None:
    text, _ = sentence(
        server(wait=100), server(wait=100, requests=5), same_work=False, waited=Verdict.MORE, wait=Verdict.MORE
    )
    assert "users waited 10.0 ms per request before, 20.0 ms after (2.0 times as long)" in text
    assert "wait for the server 10.0 ms per request more, for 10 requests before and 5 after" in text
    text, _ = sentence(server(wait=100), server(wait=100), same_work=False)
    assert text.endswith("for 10 requests each, not the same ones")


def test_fronts_come_first_and_backends_only_where_there_is_no_front() -> None:
    def at(ip: str, role: str, ms: int) -> Hop:
        return hop(server(ip=ip, role=role, wait=ms), server(ip=ip, role=role, wait=ms))

    hops = [at("10.0.0.1", "backend", 900), at("10.0.0.2", "front", 5), at("10.0.0.3", "server", 7)]
    assert [one.sentence.split("waited ")[1][:7] for one in headlines(hops)] == ["7.00 ms", "5.00 ms"]
    assert len(headlines(hops[:1])) == 1
    assert headlines([hop(server(requests=0), server(wait=5))]) == []
    assert len(headlines([at(f"10.0.1.{number}", "front", number + 1) for number in range(HEADLINES + 2)])) == HEADLINES
