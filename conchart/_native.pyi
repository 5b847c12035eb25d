"""The native core: a few functions wide."""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import TypedDict, final, type_check_only

from typing_extensions import Self

__all__ = [
    "Attribution",
    "CaptureError",
    "Crossings",
    "annotate_captures",
    "build_facts",
    "declared",
    "divide_turns",
    "fit_clock",
    "judge_connections",
    "link_exchanges",
    "pack_columns",
    "pair_alike",
    "pair_lines",
    "protocols",
    "read_capture",
    "read_log",
    "spill_flows",
]

class CaptureError(Exception):
    """Nothing could be read from a capture; the text is complete."""

def read_capture(
    paths: list[str],
    sink: Callable[[str, object], None],
    *,
    compile_filter: Callable[[int], list[tuple[int, int, int, int]]] | None,
    start: int | None,
    end: int | None,
    start_relative: bool,
    end_relative: bool,
    count: int | None,
    detailed: int | None,
    explained: int | None,
    statements: str,
    keylogs: list[str],
    progress: Callable[[int, int], None] | None,
    watch: Callable[[list[tuple[str, object]]], int] | None,
    place_packets: bool = False,
    steps: Sequence[tuple[int, int]] = ...,
) -> tuple[int, list[tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address, int, int, bool]]]:
    """Read whole captures into tables.

    ``steps`` tells where the clock was set: from which frame on it shows how much more. That is taken away.

    Returns:
        The number of the last frame. Of fragmented packets that never became whole, 4,096 at most: source, destination,
        the frame of the first piece, the number of frames, whether it is UDP.
    """

def annotate_captures(
    captures: list[tuple[str, int]],
    output: str,
    comments: Callable[[], list[tuple[int, str]]],
    *,
    compile_filter: Callable[[int], list[tuple[int, int, int, int]]] | None,
    start: int | None,
    end: int | None,
    start_relative: bool,
    end_relative: bool,
    count: int | None,
) -> list[tuple[int, int]]:
    """Copy captures that were read before into one pcapng file, with comments on their frames.

    Args:
        captures: Paths, each with how many frames to look at.
        output: The file, which is replaced.
        comments: Gives the next comments with the numbers of their frames, in order; none at the end.
        compile_filter: As for ``read_capture``: what is not chosen is not copied.
        start: As for ``read_capture``.
        end: As for ``read_capture``.
        start_relative: As for ``read_capture``.
        end_relative: As for ``read_capture``.
        count: As for ``read_capture``.

    Returns:
        Of each capture how many frames were looked at, and how long they were together on the wire.
    """

@type_check_only
class Protocol(TypedDict):
    """What is true of every exchange of a protocol."""

    name: str
    kind: str
    """What is asked: a value of ``exchanges.kind``."""
    store: str | None
    """Of stores: what they keep, a value of ``exchanges.store``."""
    product: str | None
    """What serves it, where the protocol is that of one product."""
    multiplexed: bool
    """Several requests may be under way at once, and be answered in any order."""
    never_answered: list[str]
    """Methods that no server answers."""
    opens_session: list[str]
    """Methods that begin a session, as long as nothing else came before."""

def protocols() -> list[Protocol]:
    """Give the facts about each protocol, once: a row per value of ``exchanges.protocol``."""

def declared() -> dict[str, list[tuple[str, str]]]:
    """Give the tables that the core fills: name and SQL type of each column; of words, the name of the vocabulary."""

def build_facts() -> dict[str, str]:
    """Tell how the core was built: ``version``, ``rustc``, ``target``, ``profile``, ``opt_level``."""

def fit_clock(points: object) -> list[tuple[int, int, int, int, int | None, int, int]]:
    """Tell how far two clocks are apart, from packets that both saw.

    Args:
        points: Rows that speak Arrow, in the order of time: ``here_at`` (when the reference saw the packet),
            ``ahead_ns`` (when the other place saw it, by its own clock, less ``here_at``), ``outward`` (it went to the
            other place), ``here_frame``, ``there_frame``, ``segment`` (the same between two known steps of a clock).

    Returns:
        Of each stretch of time between two steps of the clock: its first instant, the first of the next one (or its
        last), how far the other clock is ahead at the first instant, what it gains in parts of 10⁹, how much that can
        be wrong (None if packets went in one direction alone), the number of packets, the segment.
    """

def pair_alike(
    exchanges: object, grains: tuple[int, int]
) -> tuple[list[tuple[tuple[int, int], tuple[int, int]]], bool, tuple[int, int, int, int, int | None, int, int]] | None:
    """Pair the exchanges of two places that share no packets, by what they look like.

    Args:
        exchanges: Rows that speak Arrow: ``in_front`` (the place in front of the proxy saw it), ``stream``, ``number``,
            ``key`` (method, target and status; NULL where they are encrypted), ``request_at``, ``response_at``,
            ``done_at``, ``request_bytes``, ``response_bytes``, ``frame``.
        grains: How much the clocks of both places cut off.

    Returns:
        Stream and number of both exchanges of each pair, whether their requests were read, and how far the clock behind
        the proxy is ahead, as ``fit_clock`` tells it, with the number of pairs. None if no such thing is certain.
    """

def read_log(
    path: str, layouts: Sequence[tuple[bool, Sequence[tuple[str, str]], str]], sink: Callable[[object], None]
) -> tuple[int, int, int | None, int, int | None, bool, str | None]:
    """Read an access log, plain or gzip, in one streaming pass.

    Args:
        path: The file.
        layouts: Of each way in which its lines may be built: whether they are JSON; the fields, each with the text
            before it (of JSON: its name) and its role; the text after the last one. The one that fits most of the first
            lines is used.
        sink: Takes batches with the columns of ``log_lines`` that a line fills by itself.

    Returns:
        The number of lines, of those that do not fit, the number of the first such line, the place of the layout,
        the unit of the finest instant, whether instants have a zone, what broke before the end.

    Raises:
        OSError: The file cannot be opened.
        ValueError: There is no such role.
    """

def pair_lines(logged: object, seen: object, clock: tuple[int, int, int]) -> object:
    """Pair the lines of an access log with exchanges.

    Args:
        logged: Rows that speak Arrow: ``grp`` (a line and an exchange can be the same only in one group), ``id``,
            ``start_at``, ``end_at`` (on the capture's clock), ``took_ns``, ``bytes``; by group, then as in the file.
        seen: The same of exchanges: ``grp``, ``stream``, ``number``, ``start_at``, ``low_at`` and ``high_at`` (between
            which the response was written), ``bytes``; by group.
        clock: What the log's clock cuts off, how wrong its offset may be, how far apart a line and its exchange are at
            most.

    Returns:
        A batch: ``id``, ``stream``, ``exchange``, ``confidence``, ``rivals``.
    """

@final
class Attribution:
    """What users waited, whose the time is, and what findings cost."""

    def __new__(cls, connections: object, stretches: object, handed: object) -> Self:
        """Take rows that speak Arrow, with the columns that ``analysis/waits.py`` selects.

        Args:
            connections: What is known of every connection.
            stretches: What users waited, and what stalls explain of it.
            handed: What proxies took of the waits of their clients' requests.
        """

    def owners(self) -> object:
        """Give a batch with the rows of ``wait_owners``."""

    def price(
        self, delays: object, waited: object, exchanges: object
    ) -> list[tuple[int, int, int, int, int | None, int | None, int | None, float | None, int, int]]:
        """Tell what findings cost, and keep what users paid for each.

        Args:
            delays: Rows that speak Arrow: ``id`` of a finding, ``stream``, ``exchange``, ``start_at``, ``end_at``.
            waited: The same: ``user_stream`` waits for a stretch of ``stream`` and ``exchange``.
            exchanges: The same: ``stream``, ``number``, ``confidence``, ``response_done_at``.

        Returns:
            Of each finding: its ``id``; how many delays it has; their sum in nanoseconds; how many last until the last
            packet; their median, if it is more than nothing, with the bounds of its interval; the mean confidence of
            the requests that were delayed; what users waited for it; what they waited in vain.
        """

    def shared(self, order: list[int]) -> list[tuple[int, int]]:
        """Tell how much of what each finding explains of users' waits is counted with another one.

        Args:
            order: The findings, as they count: where several lie over each other, the first one has the time.

        Returns:
            A finding and nanoseconds, of those that explain anything.
        """

    def explained(self, ids: list[int]) -> object:
        """Give a batch with the rows of ``explained_waits``, of these findings."""

    def paid(self, ids: list[int]) -> object:
        """Give a batch: the stretches of users' connections that these findings explain; they may overlap."""

@final
class Crossings:
    """The packets of several places, and which are the same."""

    def __new__(cls, place_packets: Sequence[Sequence[object]]) -> Self:
        """Take the batches of ``place_packets`` that were read at each place."""

    def of_streams(self, streams: Sequence[tuple[int, int]]) -> object:
        """Give a batch: what tells the packets of these streams (place, number there) from others.

        It has ``part``, ``stream``, ``by_client``, ``flags``, ``bytes``, ``ip_id``, ``seq``, ``ack``, ``print``.
        """

    def meet(self, streams: object) -> None:
        """Find the packets that are the same.

        Args:
            streams: Rows that speak Arrow, with ``part`` and ``local``, the stream there; ``path``, the connection;
                ``turned``; how many ``places`` saw it; ``isn_client`` and ``isn_server`` where sequence numbers were
                changed on the way.
        """

    def first_seen(self, part: int, frame: int) -> int | None:
        """Give the first time that a place shows from a frame on."""

    def gap(self, part: int, frames: tuple[int, int], most: bool) -> tuple[int, int] | None:
        """Give the frame before which most time passed, of these from first to last, and how many nanoseconds.

        Where ``most`` is false: before which the least time passed.
        """

    def grain(self, part: int) -> int:
        """Tell how many nanoseconds two times of a place differ at least, if they do."""

    def apart(self) -> object:
        """Give a batch: of each connection and two places (``one``, ``other``) how times and hop limits differ."""

    def shares(self) -> object:
        """Give a batch: what each place (``part``) has of each connection (``path``) that several saw.

        It says how many packets of the others it is ``lacking``, how many were ``overtaken`` on the way from another
        place, and how many segments are ``late``: they begin before the end of an earlier one. Of client and server
        each: how many ``packets`` it has, ``frame`` and ``tos`` of the first one. Where hop limit or ``tos`` of others
        differ, it ``varies``.
        """

    def route(self, routes: object) -> None:
        """Take rows that speak Arrow: ``path``, ``part``, and ``position``, counted from the client."""

    def clues(self, places: int) -> list[tuple[int, int, int, int]]:
        """Find clocks that were set, by the gaps between the frames of each place. It needs routes.

        Returns:
            Of each step: the place, the last frame before it and the first one after it, by how much more the clock
            shows since.
        """

    def steps(
        self, here: int, there: int, given: list[list[tuple[int, int]]]
    ) -> list[tuple[int | None, list[int], list[int], int]]:
        """Find where one of two clocks was set. It needs routes.

        Args:
            here: The one place.
            there: The other one.
            given: Steps of each of the two that are known: from which frame on it shows how much more.

        Returns:
            Of each step: whether the clock of ``here`` (0) or ``there`` (1) was set, or None if both are possible; at
            each of the two, the last frame before it and the first one after it; how much farther ``there`` is ahead
            after it.
        """

    def fit(
        self, here: int, there: int, sets: list[list[int]]
    ) -> list[tuple[int, int, int, int, int | None, int, int]]:
        """Tell how far the clocks of two places are apart, as ``fit_clock`` does. It needs routes.

        Args:
            here: The reference.
            there: The other place.
            sets: From which frames on each of the two was set.
        """

    def place_packets(
        self, streams: object, befores: Sequence[int], clocks: Sequence[Sequence[tuple[int, int, int]]]
    ) -> object:
        """Give the rows of the table ``place_packets``, which can be read once; ``place`` is its number from 1.

        Args:
            streams: Rows that speak Arrow, with ``path``, ``stream``, the number of its row, and whether client and
                server are ``turned`` there.
            befores: Of each place, how many frames stand before its own.
            clocks: Of each place, stretches of time: what its clock shows at their beginning, what the reference shows
                then, how much faster it runs, in parts per 10⁹. None where it shows what the reference does.
        """

def divide_turns(
    places: list[str], place_packets: object, stops: object, losses: object, waits: object
) -> list[object]:
    """Divide the turns of connections into the parts that hosts and paths have.

    Args:
        places: Their names. All rows that are given have the number of a place in ``place``, from 0 on.
        place_packets: Rows that speak Arrow: of ``place_packets``, with ``by_client`` in place of ``sender``, and
            ``says``: a packet carries bytes, SYN or FIN.
        stops: Of each connection and place: ``position``; ``tells``: its capture tells of the connection; ``ack_at``;
            both initial sequence numbers; ``at_server`` and ``at_client``, where the place of a proxy alone saw it.
        losses: With ``frame``.
        waits: Waits of exchanges that share a connection with others: ``stream``, ``exchange``, ``start_at`` and
            ``end_at``.

    Returns:
        Three batches: parts of turns, with the exchange in ``turn`` where it is one of ``waits``;
            stretches in which a sender waited for acknowledgements; the rows of ``crossings``.
    """

def judge_connections(
    connections: object, phases: object, handshakes: object, exchanges: object, checks: object
) -> tuple[object, object]:
    """Tell what was said on each connection, who ended it, and what there was beside it in its pool.

    Args:
        connections: Rows that speak Arrow, with the columns that ``analysis/findings/evidence.py`` selects.
        phases: The same, of how connections opened and closed.
        handshakes: The same, of the first handshake of each.
        exchanges: The same, of what was asked on them.
        checks: The same: how many requests of a connection only asked whether the server lives.

    Returns:
        Two batches: the rows of ``judged`` and of ``openings``.
    """

def link_exchanges(exchanges: object) -> list[object]:
    """Link the exchanges of proxies' two sides.

    Args:
        exchanges: Rows that speak Arrow, with the columns that ``analysis/hops.py`` selects.

    Returns:
        Batches of rows of ``links``.
    """

def pack_columns(rows: object) -> tuple[int, list[tuple[str, int, bool, int, bytes, bytes, list[str] | None]]]:
    """Write columns so that they compress well and a browser reads them without parsing.

    Args:
        rows: Rows that speak Arrow: whole numbers, truth values, texts.

    Returns:
        The number of rows, and of each column: its name; bytes of a value; whether each value is counted from the one
        before; the value that they are counted from otherwise; the values' bytes, plane after plane from the lowest; a
        1 for each value that is known and a 0 for one that is not, or nothing where all are; the texts, where values
        are numbers of texts.
    """

def spill_flows(
    paths: list[str],
    flows: list[tuple[str, IPv4Address | IPv6Address, int, IPv4Address | IPv6Address, int, int]],
    outputs: list[str],
    *,
    compile_filter: Callable[[int], list[tuple[int, int, int, int]]] | None,
    start: int | None,
    end: int | None,
) -> list[object]:
    """Copy the packets of some flows out of captures, and every piece of a fragmented packet.

    Args:
        paths: The captures, whose frames count on.
        flows: Of each flow ``tcp`` or ``udp``, both of its ends, the number of its file among ``outputs``.
        outputs: The pcapng files, which are replaced.
        compile_filter: As for ``read_capture``: what is not chosen is not copied.
        start: As for ``read_capture``, since the epoch.
        end: As for ``read_capture``, since the epoch.

    Returns:
        Of each file a batch with a row per frame: its number in the capture.
    """
