"""What could not be judged, in words: what of it, and why. In: a row of the table ``unjudged``. Out: text."""

from conchart.labels.units import count_of, format_ns

_SENTENCES = {
    ("waits", "one-sided"): ("connection", "{connections} with one direction only"),
    ("waits", "missing"): ("connection", "{connections} with bytes missing from the capture"),
    ("waits", "unread"): ("UDP conversation", "{connections} of an unknown protocol"),
    ("opening", "midstream"): ("connection", "how {connections} opened (before the capture began)"),
    ("content", "sealed"): ("connection", "what {connections} said (encrypted, no keys)"),
    ("content", "unread"): ("connection", "what {connections} said (conchart does not read the protocol)"),
}
_PACKETS = {
    "truncated": "what came after the file breaks off",
    "dropped": "packets that the capturing machine lost",
    "undecodable": "frames with unreadable headers",
    "snapped": "what the snap length cut off",
    "unseen": "time in which the capture shows nothing",
    "resolution": "times shorter than the timestamps tell",
    "same-traffic": "connections that the captures hold twice",
}


def unjudged_words(what: str, why: str, connections: int | None, waited_ns: int | None) -> str:
    """``what 3 connections said (encrypted, no keys), 60.3 ms of waits``.

    Args:
        what: Of the capture; with ``why`` a row of the table.
        why: It could not be judged.
        connections: How many; None where that does not count connections.
        waited_ns: What users waited on these; None where that is not known.
    """
    if what == "packets" or connections is None:
        return _PACKETS.get(why, "what notes on the capture name")
    noun, sentence = _SENTENCES[what, why]
    waits = f", {format_ns(waited_ns)} of waits" if waited_ns else ""
    return sentence.format(connections=count_of(connections, noun)) + waits
