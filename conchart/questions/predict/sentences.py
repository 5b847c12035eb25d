"""The result of a prediction in words.

In: a :class:`~conchart.questions.predict.Prediction`. Out: texts, safe to show.
"""

from collections.abc import Iterator

from conchart.labels.phases import PHASES
from conchart.labels.printable import printable
from conchart.labels.units import count_of, format_count, format_difference, format_ns, format_share
from conchart.questions.predict import Change, Prediction
from conchart.questions.predict.costs import INITIAL_WINDOW, RESUMED_SHARE
from conchart.questions.predict.replay import KEEPALIVE_NS

_WORDS = {
    "keepalive": "connections were kept open and used again",
    "resume": "TLS sessions were resumed",
    "tls13": "TLS 1.3 were spoken",
    "0rtt": "first requests of resumed connections went with the ClientHello",
    "nodelay": "small segments were not held back",
    "tls-off": "there were no TLS",
}


def question(change: Change) -> str:
    """Say what is changed: ``What if connections were kept open and used again?``."""
    changes = [_WORDS[word] for word in change.words]
    if changes and change.server:
        changes[-1] += f" (at {printable(change.server)} alone)"
    if change.rtt_ns is not None:
        changes.append(f"users' round trip were {format_ns(change.rtt_ns)}")
    *others, last = changes
    return f"What if {', '.join(others)}{' and ' if others else ''}{last}?"


def headline(prediction: Prediction) -> str:
    """Say what it comes to, in one sentence."""
    before, after = prediction.measured.total_ns, prediction.predicted.total_ns
    same = abs(after - before) * 200 < before
    if same:
        how = "about as long"
    else:
        how = f"{format_share(abs(before - after), before)} {'less' if after < before else 'more'}"
    return f"{format_ns(before)} from the first packet to the last response would be {format_ns(after)}: {how}"


def comparison(prediction: Prediction) -> Iterator[tuple[str, str, str, str]]:
    """Give what is compared: its name, as measured, as predicted, and the difference."""
    before, after = prediction.measured, prediction.predicted
    yield _durations("in all", before.total_ns, after.total_ns)
    if before.requests_ns:
        number = count_of(len(before.requests_ns), "request")
        yield _durations(f"{number}, median", before.percentile(50), after.percentile(50))
        yield _durations("95 % of them within", before.percentile(95), after.percentile(95))
    yield _durations("users waited", before.waited_ns, after.waited_ns)
    for phase in PHASES:
        was, is_ = before.waits.get(phase.name, 0), after.waits.get(phase.name, 0)
        if was or is_:
            title = phase.title if phase.title[:2].isupper() else phase.title.lower()
            yield _durations(f"  {title if phase.waited else 'stalled between them'}", was, is_)
    yield _counts("connections opened", before.connections, after.connections)
    if before.handshakes_full or before.handshakes_resumed:
        yield _counts("full TLS handshakes", before.handshakes_full, after.handshakes_full)
        yield _counts("resumed TLS handshakes", before.handshakes_resumed, after.handshakes_resumed)


def _durations(name: str, before: int, after: int) -> tuple[str, str, str, str]:
    return name, format_ns(before), format_ns(after), format_difference(before, after)


def _counts(name: str, before: int, after: int) -> tuple[str, str, str, str]:
    difference = f"{'+' if after > before else '-'}{format_count(abs(after - before))}" if after != before else "="
    return name, format_count(before), format_count(after), difference


def assumptions(prediction: Prediction) -> Iterator[str]:
    """Say what was kept, what was assumed, and what could not be predicted."""
    change = prediction.change
    yield (
        "Kept: what a client asks, in which order, and how long it thinks in between; what servers take to answer; "
        "which request behind a proxy belongs to which wait in front of it; loss, and the speed of the path."
    )
    yield (
        "What users waited is counted as everywhere, at the capture point, and changed by what the replay changes. Its "
        "other times are those at the client's end of each connection: half a round trip is added on either side of a "
        "capture taken elsewhere."
    )
    yield (
        f"Transfers begin with {INITIAL_WINDOW} segments and double with each round trip, on a connection that is new "
        "or has idled; nothing else limits them that did not before."
    )
    if change.keepalive:
        yield (
            f"Connections stay open for {format_ns(KEEPALIVE_NS)} after a response, on both sides; a client takes one "
            "that is free rather than open another, to the same server and name."
        )
    if change.resume:
        before, modern = (f"{100 * share:.0f} %" for share in RESUMED_SHARE.values())
        yield (
            "Sessions live as long as the capture, and every client keeps its own. A resumed handshake computes what "
            f"others with this server did in the capture, else {before} of a full one, {modern} in TLS 1.3."
        )
        yield "Clients set TCP_NODELAY: without it, a request after a resumed handshake of TLS 1.2 is held back."
    if change.tls13:
        yield "TLS 1.3 saves a round trip of each full handshake, and computes as much."
    if change.zero_rtt:
        yield "First requests may be repeated, and servers accept them before the handshake is over."
    if change.tls_off:
        yield "Encrypting takes no time beyond the handshakes."
    if change.rtt_ns is not None:
        yield (
            "The distance changes between users and the servers that they call; proxies stay as far from their "
            "backends. What was lost is lost again, and is repeated as late."
        )
    yield from _not_predicted(prediction)


def _not_predicted(prediction: Prediction) -> Iterator[str]:
    left_as_measured = (
        (prediction.unanswered, "request", "without a whole response", "as long as measured"),
        (prediction.unknown_handshakes, "TLS handshake", "of unknown round trips", "as measured"),
        (prediction.unknown_paths, "connection", "of unknown distance", "as measured"),
        (prediction.unread, "request", "of which the beginning is not in the capture", "left out"),
    )
    for count, noun, which, how in left_as_measured:
        if count:
            yield f"Not predicted: {count_of(count, noun)} {which}, {how}."
