"""What is said of single packets."""

import pytest

import conchart.report.comments as module
from conchart.report.comments import comments
from conchart.store.tables import Tables
from tests.by_hand import Row, connection, tables_of

MS = 1_000_000
PHASES: list[Row] = [
    {"stream": 0, "exchange": exchange, "handshake": handshake, "kind": kind, "start_at": start * MS,
     "end_at": end * MS, "start_frame": first, "end_frame": last, "inferred": kind == "wait"}
    for kind, exchange, handshake, start, end, first, last in (
        ("tls", None, 0, 0, 20, 1, 3), ("request", 0, None, 20, 21, 3, 4), ("wait", 0, None, 21, 60, 4, 9),
    )
]  # fmt: skip


def status(number: int) -> Row:
    return {"status": number, "status_text": str(number)}


def connected(**more: list[Row]) -> Tables:
    rows: dict[str, list[Row]] = {
        "connections": [connection(0)],
        "phases": PHASES,
        "handshakes": [
            {"stream": 0, "number": 0, "version": "TLSv1.3", "kind": "full", "outcome": "complete", "hello_at": 5 * MS,
             "ready_at": 25 * MS, "hello_frame": 1, "server_hello_frame": 2, "ready_frame": 3, "sni": "shop.example",
             "cipher": "AES", "named_group": "x25519", "inferred": False},
            {"stream": 0, "number": 1, "version": "TLSv1.1", "inferred": False},
            {"stream": 1, "number": 0, "version": "TLSv1.0", "inferred": False},
        ],
        "exchanges": [
            {"stream": 0, "number": 0, "protocol": "http/1.1", "method": "GET", "target": "/secret", **status(404)},
            {"stream": 0, "number": 1, "protocol": "http/1.1", "method": "PUT", "target": "/other", **status(200)},
            {"stream": 1, "number": 0, "protocol": "http/1.1", "method": "PUT", "target": "/other", **status(200)},
        ],
        **more,
    }  # fmt: skip
    return tables_of(**rows)


def comments_by_frame(tables: Tables, *, names: bool = True) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for some in comments(tables, names=names):
        for frame, text in some:
            found.setdefault(frame, []).append(text)
    return found


def test_phases_and_handshakes_are_told_where_they_begin_and_end() -> None:
    """Phases that meet at a frame are one comment, everything else is one of its own."""
    assert comments_by_frame(connected()) == {
        1: ["conchart: connection 0: TLS handshake begins here", "conchart: connection 0: ClientHello (shop.example)"],
        2: ["conchart: connection 0: ServerHello (TLSv1.3, AES, x25519)"],
        3: [
            "conchart: connection 0: TLS handshake ends here: 20.0 ms (TLSv1.3, full); Request begins here "
            "(GET /secret)",
            "conchart: connection 0: from here on the client may send its first request: 20.0 ms (TLSv1.3, full)",
        ],
        4: [
            "conchart: connection 0: Request ends here: 1.00 ms; "
            "Wait for the server begins here (GET /secret, inferred)"
        ],
        9: ["conchart: connection 0: Wait for the server ends here: 39.0 ms (404, inferred)"],
    }


def test_names_are_told_only_where_they_are_wanted() -> None:
    texts = " ".join(text for some in comments_by_frame(connected(), names=False).values() for text in some)
    assert "secret" not in texts
    assert "shop.example" not in texts
    assert "GET" in texts


def test_stalls_and_findings_are_told_too() -> None:
    stalls: list[Row] = [
        {"stream": 0, "kind": "nagle", "detail": "delayed-ack", "side": "client", "start_at": 0, "end_at": 40 * MS,
         "start_frame": 4, "end_frame": 9}
    ]  # fmt: skip
    findings: list[Row] = [
        {"number": 0, "finding": "slow-server", "title": "Slow server", "severity": "serious", "frames": [9, 1]}
    ]
    found = comments_by_frame(connected(phases=[], handshakes=[], stalls=stalls, findings=findings))
    assert found == {
        1: ["conchart: finding slow-server (serious): Slow server"],
        4: [
            "conchart: connection 0: stall begins here: "
            "a small segment waits for a delayed acknowledgement (Nagle) (client's data)"
        ],
        9: [
            "conchart: connection 0: stall ends here: held for 40.0 ms (client's data)",
            "conchart: finding slow-server (serious): Slow server",
        ],
    }


def test_a_failed_handshake_says_who_sent_which_alert() -> None:
    failed: list[Row] = [
        {"stream": 0, "number": 0, "outcome": "failed", "failed_frame": 5, "alert": "unknown_ca", "alert_by": "client"}
    ]
    found = comments_by_frame(connected(phases=[], handshakes=failed))
    assert found == {5: ["conchart: connection 0: the TLS handshake fails here (unknown_ca by the client)"]}


@pytest.mark.parametrize("at_a_time", [1, 2, 3, 5])
def test_no_frame_is_told_in_two_pieces(at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = comments_by_frame(connected())
    monkeypatch.setattr(module, "_AT_A_TIME", at_a_time)
    assert comments_by_frame(connected()) == whole
    frames = [frame for some in comments(connected(), names=True) for frame, _ in some]
    assert frames == sorted(frames)
