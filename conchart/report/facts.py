"""Facts of connections, handshakes, requests, stalls and links: declared once, written by the page and the terminal.

In: nothing. Out: :class:`Fact` for each; ``FACTS``, all that the page embeds; SQL for columns that tables do not have.
"""

from conchart.labels.filling import Fact
from conchart.labels.phases import UNDER_WAY
from conchart.store.sql import GOES_ON

HANDSHAKE = Fact(
    "TLS",
    (
        "{version}",
        "{cipher}",
        "{named_group}",
        "{result} handshake",
        "SNI {sni}",
        "ALPN {alpn}",
        "{round_trips:round trip}",
        "HelloRetryRequest{hello_retry:flag}",
        "client certificate{client_auth:flag}",
        "early data{early_data:flag}",
        "False Start{false_start:flag}",
        "{certificates:certificate} of {certificate_bytes:size}",
        "alert: {alert}",
    ),
)
KIND = "coalesce(kind, CASE WHEN number > 0 THEN 'renegotiation' ELSE 'unknown' END)"
"""SQL, of ``handshakes``: in an established connection, encryption may hide what a complete one was."""
RESULT = f"""CASE WHEN outcome = 'complete' THEN {KIND}
    ELSE concat_ws(' ', outcome, if(number > 0, 'renegotiation', NULL)) END AS result"""

REQUEST = Fact(
    "Request",
    (
        "{method}",
        "{origin}{target}",
        "{turn_of} turn {number:number}",
        "(from the log){from_log:flag}",
        "→ {answer}",
    ),
    " ",
)
EXCHANGE = Fact(
    "Request",
    (
        "request {request_bytes:size}",
        "response {response_bytes:size}",
        "{service_ns} of the wait is the server's own",
        f"{UNDER_WAY}{{unfinished:flag}}",
        "read from the direction of bytes{inferred:flag}, confidence {confidence:ratio}",
    ),
)
MESSAGES = Fact(
    "Messages",
    (
        "{messages_client:message} of the client ({message_bytes_client:size})",
        "{messages_server:message} of the server ({message_bytes_server:size})",
        "{controls:control frame}",
        "longest pause between two of the server's {gap_ns} (frames {gap_start_frame:number} → {gap_end_frame:number})",
    ),
)

STALL = Fact(
    "Stall",
    (
        "{meaning}",
        "{ack_delay_ns} of it is the peer's delay",
        "the {side}'s byte did not come: {doing} doing, confidence {confidence:ratio}",
        f"{UNDER_WAY}{{unfinished:flag}}",
    ),
    "; ",
)
STALL_FRAMES = Fact("Frames", ("{start_frame:number}", "{released_frame:number}", "{end_frame:number}"), " → ")
STALL_COLUMNS = f"""nullif(ack_delay_ns, 0) AS ack_delay_ns, coalesce(unfinished, false)
    AND stream IN (SELECT stream FROM connections WHERE {GOES_ON}) AS unfinished"""
"""SQL, of ``stalls``: columns of STALL as they are told."""

AMOUNT = Fact("", ("{word} {duration:ns}",))
"""So much time of a kind of stall, or of a step of a wait."""
LINKED = (("caused", "caused by"), ("handed on as", "handed on from"))
"""Words from a front to its back, and from the back to its front: of a request, of a connection that is handed on."""
LINK = Fact("", ("by {method}", "confidence {confidence:ratio}"))

CLIENT = Fact("Client", ("{client}", "{client_who}"))
SERVER = Fact("Server", ("{server}", "{server_who}"))
FRAMES = Fact("Frames", ("{first_frame:number} to {last_frame:number}",))
BRIEF = Fact(
    "",
    (
        "{app}",
        "{state}",
        "open for {duration:ns}",
        "{bytes_client:size} up, {bytes_server:size} down",
        "{retransmits:retransmission}",
    ),
)
_OPENED = Fact("Opened", ("{opened:exact} after the start",))
_PACKETS = Fact("Packets", ("{packets_client} up, {packets_server} down",))
_TCP = (
    Fact("Retransmitted", ("{retransmits_client} up, {retransmits_server} down", "{syn_retransmits} SYN")),
    Fact("Out of order", ("{out_of_order_client} up, {out_of_order_server} down",)),
    Fact("Zero windows", ("{zero_windows_client} up, {zero_windows_server} down",)),
    Fact("Missing bytes", ("{missing_client} up, {missing_server} down",)),
    Fact("Round trip", ("{rtt_client_ns} to the client", "{rtt_server_ns} to the server")),
    Fact("Stalled", ("{stalled}",)),
    Fact("Ended by", ("FIN of the {fin_by}", "RST of the {rst_by}")),
)
CONNECTION = (FRAMES, _OPENED, _PACKETS, *_TCP)
"""What the line that names a connection, which has BRIEF, does not say."""

FACTS = {
    "handshake": HANDSHAKE,
    "request": REQUEST,
    "exchange": EXCHANGE,
    "messages": MESSAGES,
    "stall": STALL,
    "stall_frames": STALL_FRAMES,
    "amount": AMOUNT,
    "link": LINK,
    "client": CLIENT,
    "server": SERVER,
    "frames": FRAMES,
    "brief": BRIEF,
    "phase": Fact("", ("{start:exact} to {end:exact} after the start",)),
    "packet": Fact("", ("{at:exact} after the start", "flags {flags}", "{bytes:byte} of payload")),
}
"""By name, what scripts of the page write of a row."""
PANEL = (
    CLIENT,
    SERVER,
    Fact("Name", ("{name}",)),
    Fact("Protocol", ("{app}", "over UDP{is_udp:flag}"), " "),
    Fact("State", ("{state}",)),
    FRAMES,
    _OPENED,
    Fact("Open for", ("{duration:exact}",)),
    _PACKETS,
    Fact("Bytes", ("{bytes_client} up, {bytes_server} down",)),
    *_TCP,
)
"""The list of a connection's facts, to the nanosecond and to the byte."""


def request_columns(*, names: bool) -> str:
    """SQL, of ``exchanges``: what REQUEST needs besides the table's columns; hosts only if ``names`` are wanted."""
    host = "coalesce(host, '')" if names else "''"
    return f"""CASE WHEN target LIKE '/%' THEN {host} ELSE '' END AS origin,
        CASE WHEN method IS NULL THEN coalesce(protocol, 'unknown') END AS turn_of"""
