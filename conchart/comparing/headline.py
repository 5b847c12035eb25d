"""The difference in a sentence: what users waited before and after, and what made most of it.

In: hops. Out: :class:`Headline`. Where the work differs, everything is told per request.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from conchart.comparing.model import Headline, Hop
from conchart.comparing.noise import Verdict
from conchart.telling.servers import HEADLINES, Part, Server
from conchart.units import count_of, format_count, format_ns, format_share

_LEAST_SHARE = Fraction(1, 5)
"""Of all that changed, what a cause has to have for the headline to name it."""
_LEAST_RATE = Fraction(1, 10)
"""From here on a number of connections or handshakes per request differs: browsers do not always open the same."""

_TOO_FEW = "Too few requests to tell their times from noise: only what was counted is sure."
_NOISE = "What single requests waited differs by no more than noise."


def headlines(hops: Sequence[Hop]) -> list[Headline]:
    """Say it of the servers whose users waited the most."""
    fronts = [hop for hop in hops if hop.in_front and hop.before.requests and hop.after.requests]
    fronts.sort(key=lambda hop: -max(hop.before.waited_ns, hop.after.waited_ns))
    return [_headline(hop) for hop in fronts[:HEADLINES]]


def _headline(hop: Hop) -> Headline:
    name = hop.after.title or hop.before.title or hop.after.endpoint
    before, after = (_share_of(hop, side, side.waited_ns) for side in (hop.before, hop.after))
    per = "" if hop.same_work else " per request"
    waited = f"users waited {format_ns(round(before))}{per} before, {format_ns(round(after))} after"
    causes, verdict = list(_causes(hop)), hop.verdict("waited")
    if causes or verdict and verdict.differs:
        told = f"{waited} ({_change(before, after)}){': ' if causes else ''}{', '.join(causes)}"
        remark = _TOO_FEW if verdict is Verdict.TOO_FEW else _NOISE if verdict is Verdict.NOISE else ""
    else:
        found = {one.verdict for one in hop.differences}
        if found <= {Verdict.SAME}:
            told = f"no difference: users waited {format_ns(round(before))}{per} before and after"
        elif Verdict.NOISE in found:
            told = f"no difference beyond noise: {waited}"
        else:
            told = f"too few requests to tell a difference from noise: {waited}"
        remark = ""
    return Headline(sentence=f"{name}: {told}, {_work(hop)}", remark=remark)


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
    """Name what changed most first; where nothing that counts changed in time, what was counted."""
    deltas: dict[tuple[str, str | None], Fraction] = {}
    parts: dict[tuple[str, str | None], Part] = {}
    for side, sign in ((hop.before, -1), (hop.after, 1)):
        for part in side.waited:
            key = part.phase.name, part.word
            parts[key] = part
            deltas[key] = deltas.get(key, Fraction()) + sign * _share_of(hop, side, part.total_ns)
    counted = {phase: text for phase, text in (("tls", _handshakes(hop)), ("syn", _connections(hop))) if text}
    whole = sum(map(abs, deltas.values()))
    verdict = hop.verdict("waited")
    named = False
    for key, delta in sorted(deltas.items(), key=lambda one: (-abs(one[1]), one[0][0], one[0][1] or "")):
        if not delta or abs(delta) < _LEAST_SHARE * whole:
            break
        phase, word = key
        if word is None and phase in counted:
            yield counted[phase]
        elif measured := verdict if word else hop.verdict(phase):
            if not measured.differs:
                continue
            per = "" if hop.same_work else " per request"
            yield f"{parts[key].words} {format_ns(round(abs(delta)))}{per} {'less' if delta < 0 else 'more'}"
        else:
            continue
        named = True
    if not named:
        yield from counted.values()


def _handshakes(hop: Hop) -> str:
    """Say how many TLS handshakes there were, if that differs."""
    before, after = ((side.handshakes_full, side.handshakes_resumed) for side in (hop.before, hop.after))
    if not any(_differs(hop, one, other) for one, other in zip(before, after, strict=True)):
        return ""
    if not before[1] and not after[1]:
        return f"{count_of(after[0], 'TLS handshake')} instead of {format_count(before[0])}"
    told = (f"{format_count(full)} full and {format_count(resumed)} resumed" for full, resumed in (after, before))
    return "{} TLS handshakes instead of {}".format(*told)


def _connections(hop: Hop) -> str:
    if not _differs(hop, hop.before.connections, hop.after.connections):
        return ""
    return f"{count_of(hop.after.connections, 'connection')} instead of {format_count(hop.before.connections)}"


def _differs(hop: Hop, before: int, after: int) -> bool:
    """Tell whether two numbers differ, for the requests there were."""
    rates = Fraction(before, hop.before.requests), Fraction(after, hop.after.requests)
    return abs(rates[1] - rates[0]) > _LEAST_RATE * max(rates)
