"""The difference in a sentence: what users waited before and after, and what made most of it.

In: hops. Out: :class:`Headline`. Where the work differs, everything is told per request.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from conchart.labels.units import count_of, format_count, format_ns, format_share
from conchart.questions.compare.model import Headline, Hop
from conchart.questions.compare.noise import Verdict
from conchart.report.servers import HEADLINES, Server

_LEAST_SHARE = Fraction(1, 5)
"""Of all that changed, what a cause has to have for the headline to name it."""
_LEAST_RATE = Fraction(1, 10)
"""From here on a number of connections or handshakes per request differs: browsers do not always open the same."""

_MEASURES = {
    "backend": "backend",
    "connecting": "connect",
    "TLS with the backend": "secure",
    "the proxy itself": "proxy",
}
"""Of the parts of a split."""

_TOO_FEW = "Too few requests to tell their times from noise: only what was counted is sure."
_NOISE = "What single requests waited differs by no more than noise."


def headlines(hops: Sequence[Hop]) -> list[Headline]:
    """Say it of the servers whose users waited the most; of backends only where no front is in both captures."""
    served = [hop for hop in hops if hop.before.requests and hop.after.requests]
    fronts = [hop for hop in served if hop.in_front] or served
    fronts.sort(key=lambda hop: -max(hop.before.waited_ns, hop.after.waited_ns))
    return [_headline(hop) for hop in fronts[:HEADLINES]]


def _headline(hop: Hop) -> Headline:
    name = hop.after.title or hop.before.title or hop.after.endpoint
    before, after = (_share_of(hop, side, side.waited_ns) for side in (hop.before, hop.after))
    per = "" if hop.same_work else " per request"
    waited = f"users waited {format_ns(round(before))}{per} before, {format_ns(round(after))} after"
    causes, counted, verdict = list(_causes(hop)), ", ".join(_counted(hop).values()), hop.verdict("waited")
    remark = ""
    if causes or verdict and verdict.differs:
        sentence = f"{waited} ({_change(before, after)}){': ' if causes else ''}{', '.join(causes)}"
        remark = _TOO_FEW if verdict is Verdict.TOO_FEW else _NOISE if verdict is Verdict.NOISE else ""
    elif {one.verdict for one in hop.differences} <= {Verdict.SAME}:
        sentence = f"no difference: users waited {format_ns(round(before))}{per} before and after"
    else:
        quiet = "too few requests to tell a difference from noise"
        quiet = quiet if verdict is Verdict.TOO_FEW else "no difference beyond noise"
        sentence = f"{quiet}: {waited}{', with ' if counted else ''}{counted}"
    return Headline(sentence=f"{name}: {sentence}, {_work(hop)}", remark=remark)


def _share_of(hop: Hop, side: Server, amount: int) -> Fraction:
    """Give an amount as it can be compared: per request where the work differs."""
    return Fraction(amount, 1 if hop.same_work else side.requests)


def _work(hop: Hop) -> str:
    before, after = hop.before.requests, hop.after.requests
    if before != after:
        return f"for {count_of(before, 'request')} before and {format_count(after)} after"
    return f"for {count_of(after, 'request')} each{'' if hop.same_work else ', not the same ones'}"


def _change(before: Fraction, after: Fraction) -> str:
    if before == after:
        return "the same"
    if after >= 2 * before:
        return f"{float(after / before):.1f} times as long" if before else "more"
    percent = format_share(round(abs(after - before)), round(before))
    return f"{percent} {'less' if after < before else 'more'}"


def _causes(hop: Hop) -> Iterator[str]:
    """Name what changed the wait most, the most first: what was counted, and times that differ by more than noise."""
    counted = _counted(hop)
    before, after = (dict(_pieces(hop, side)) for side in (hop.before, hop.after))
    deltas = {
        piece: _share_of(hop, hop.after, after.get(piece, 0)) - _share_of(hop, hop.before, before.get(piece, 0))
        for piece in sorted({*before, *after})
    }
    least = _LEAST_SHARE * sum(map(abs, deltas.values()))
    for (measure, words), delta in sorted(deltas.items(), key=lambda one: -abs(one[1])):
        verdict = hop.verdict(measure)
        if not delta or abs(delta) < least:
            return
        if measure in counted:
            yield counted[measure]
        elif verdict and verdict.differs:
            per = "" if hop.same_work else " per request"
            yield f"{words} {format_ns(round(abs(delta)))}{per} {'less' if delta < 0 else 'more'}"


def _pieces(hop: Hop, side: Server) -> Iterator[tuple[tuple[str, str], int]]:
    """Cut what users waited into what it was: the measure that tells whether it differs, words, nanoseconds.

    Waits that links explain on both sides are cut into what they consist of, unless they overlap.
    """
    split = side.split if _is_cut(hop.before) and _is_cut(hop.after) else None
    for part in side.waited:
        if part.phase.name == "wait" and split:
            for words, ns, _ in split.parts():
                yield (_MEASURES.get(words, "wait"), words), ns
        else:
            yield ("waited" if part.word else part.phase.name, part.words), part.total_ns


def _is_cut(side: Server) -> bool:
    """Tell whether the wait of a server is known by its parts, which add up to it."""
    wait_ns = sum(part.total_ns for part in side.waited if part.phase.name == "wait")
    return side.split is not None and abs(side.split.wait_ns - wait_ns) * 100 <= wait_ns


def _counted(hop: Hop) -> dict[str, str]:
    """Say what there was more or less of for a request, by the measure of what it costs."""
    counts = {"tls": _handshakes(hop), "syn": _connections(hop)}
    return {measure: text for measure, text in counts.items() if text}


def _handshakes(hop: Hop) -> str:
    """Say how many TLS handshakes there were, if that differs."""
    before, after = ((side.handshakes_full, side.handshakes_resumed) for side in (hop.before, hop.after))
    if not any(_differs(hop, one, other) for one, other in zip(before, after, strict=True)):
        return ""
    if not before[1] and not after[1]:
        return f"{count_of(after[0], 'TLS handshake')} instead of {_number(before[0])}"
    counts = (f"{format_count(full)} full and {format_count(resumed)} resumed" for full, resumed in (after, before))
    return "{} TLS handshakes instead of {}".format(*counts)


def _connections(hop: Hop) -> str:
    if not _differs(hop, hop.before.connections, hop.after.connections):
        return ""
    return f"{count_of(hop.after.connections, 'connection')} instead of {_number(hop.before.connections)}"


def _differs(hop: Hop, before: int, after: int) -> bool:
    """Tell whether two numbers differ, for the requests there were."""
    rates = Fraction(before, hop.before.requests), Fraction(after, hop.after.requests)
    return abs(rates[1] - rates[0]) > _LEAST_RATE * max(rates)


def _number(count: int) -> str:
    return format_count(count) if count else "none"
