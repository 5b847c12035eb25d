"""Which packets got lost between two places that captured.

In: ``captures``, ``place_packets``, ``paths``. Out: the table ``losses``.

A packet is lost between two places if the one that it passes first saw it and the next one did not, while that one was
capturing. It was there all the same, and only its capture is incomplete, if a place behind saw it, or its bytes were
acknowledged though nobody sent them again: ``captured_elsewhere``. Offloading cuts and joins segments: bytes that the
next place has in other segments are not missing; of a segment of which some pieces arrived, the others are.
"""

from conchart.store.tables import Tables

_LOST = """
    INSERT INTO losses BY NAME
    WITH capturing AS (SELECT place, min(first_at) AS first_at, max(last_at) AS last_at FROM captures GROUP BY place),
    shared AS (SELECT stream FROM paths WHERE position = 1),
    next_places AS (
        SELECT stream, place, 'client' AS sender, lead(place) OVER (PARTITION BY stream ORDER BY position) AS next
        FROM paths WHERE stream IN (FROM shared)
        UNION ALL
        SELECT stream, place, 'server', lead(place) OVER (PARTITION BY stream ORDER BY position DESC)
        FROM paths WHERE stream IN (FROM shared)),
    -- All that one side sent, at one place only: others between the same ends say where it was on its way to.
    lone AS (
        SELECT paths.stream, paths.place, if(connections.packets_server = 0, 'client', 'server') AS sender,
            transport, paths.client_ip, paths.server_ip, paths.server_port
        FROM paths JOIN connections USING (stream)
        WHERE stream NOT IN (FROM shared) AND (connections.packets_client = 0) <> (connections.packets_server = 0)),
    usual AS (
        SELECT place, sender, transport, paths.client_ip, paths.server_ip, paths.server_port, any_value(next) AS next
        FROM next_places JOIN paths USING (stream, place) JOIN connections USING (stream)
        GROUP BY ALL HAVING count(DISTINCT next) = 1 AND count(next) = count(*)),
    following AS (
        FROM next_places WHERE stream IN (SELECT stream FROM paths WHERE lacking > 0)
        UNION ALL
        SELECT stream, place, lone.sender, next
        FROM lone JOIN usual USING (place, transport, client_ip, server_ip, server_port)
        WHERE usual.sender = lone.sender
            -- It may be there, and not be recognised.
            AND NOT EXISTS (
                FROM lone others WHERE others.place = next AND others.transport = lone.transport
                    AND others.server_port = lone.server_port)),
    travelled AS (
        SELECT stream, sender, packet, frame, seen_at, flags, seq, ack, bytes, place,
            if(sender = 'client', position, -position) AS leg,
            lead(place) OVER of_stream AS to_place, lead(bytes) OVER of_stream AS to_bytes
        FROM place_packets JOIN (
            SELECT stream, place, position FROM paths WHERE stream IN (SELECT stream FROM following)
        ) USING (stream, place)
        WINDOW of_stream AS (
            PARTITION BY stream, sender, coalesce(packet, -frame) ORDER BY if(sender = 'client', position, -position))),
    -- Of a segment that offloading cut behind the place, the next one may have the first piece alone.
    missed AS (
        SELECT travelled.*, next, coalesce(travelled.to_place <> next, false) AS seen_behind
        FROM travelled JOIN following ON following.stream = travelled.stream AND following.place = travelled.place
            AND following.sender = travelled.sender::VARCHAR
        JOIN capturing ON capturing.place = next
        WHERE next IS NOT NULL AND (travelled.to_place IS DISTINCT FROM next OR travelled.to_bytes < travelled.bytes)
            AND travelled.seen_at BETWEEN capturing.first_at AND capturing.last_at),
    -- Bytes that the next place has in segments of other lengths.
    other_segments AS (
        SELECT stream, sender, place, seq, bytes, packet FROM place_packets
        WHERE bytes > 0 AND seq IS NOT NULL AND (stream, sender, place) IN (
            SELECT (stream, sender, next) FROM missed WHERE bytes > 0)
            AND packet NOT IN (
                SELECT packet FROM place_packets WHERE packet IS NOT NULL AND stream IN (SELECT stream FROM missed)
                GROUP BY packet, bytes HAVING count(*) > 1)),
    -- By blocks: each is compared with few others.
    laid AS (
        SELECT stream, sender, next, frame, seq, bytes,
            unnest(range(seq // 65536, (seq + bytes - 1) // 65536 + 1)) AS block
        FROM missed WHERE bytes > 0 AND seq IS NOT NULL),
    covering AS (
        SELECT missed.stream, frame, missed.seq, greatest(missed.seq, other.seq) AS from_seq,
            least(missed.seq + missed.bytes, other.seq + other.bytes) AS to_seq
        FROM laid missed JOIN (
            SELECT *, unnest(range(seq // 65536, (seq + bytes - 1) // 65536 + 1)) AS block FROM other_segments
        ) other ON other.stream = missed.stream AND other.sender = missed.sender
            AND other.place = missed.next AND other.block = missed.block
            AND other.seq < missed.seq + missed.bytes AND missed.seq < other.seq + other.bytes
            AND greatest(missed.seq, other.seq) // 65536 = missed.block),
    -- How much arrived, and which byte is the first that did not.
    covered AS (
        SELECT stream, frame, sum(to_seq - from_seq) AS bytes,
            coalesce(min(up_to) FILTER (up_to < from_seq), max(to_seq)) AS lost_seq
        FROM (
            SELECT *, coalesce(max(to_seq) OVER (PARTITION BY stream, frame ORDER BY from_seq
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), seq) AS up_to
            FROM covering)
        GROUP BY ALL),
    gone AS (
        SELECT missed.* REPLACE (
            coalesce(lost_seq, missed.seq) AS seq, missed.bytes - coalesce(covered.bytes, 0) AS bytes),
            missed.seq + missed.bytes AS end_seq
        FROM missed LEFT JOIN covered ON covered.stream = missed.stream AND covered.frame = missed.frame
        WHERE missed.bytes = 0 OR coalesce(covered.bytes, 0) < missed.bytes),
    sent_again AS (
        SELECT DISTINCT gone.stream, gone.frame
        FROM gone JOIN place_packets other ON other.stream = gone.stream AND other.sender = gone.sender
            AND other.place = gone.place AND other.seq = gone.seq AND other.frame <> gone.frame
        WHERE other.bytes > 0),
    acknowledged AS (
        SELECT stream, sender, max(ack) AS ack FROM place_packets
        WHERE contains(flags, 'A') AND stream IN (SELECT stream FROM missed) GROUP BY ALL)
    SELECT gone.stream, gone.sender, gone.place AS from_place, next AS to_place, gone.frame, seen_at, flags, gone.seq,
        gone.bytes,
        seen_behind OR coalesce(gone.bytes > 0 AND sent_again.frame IS NULL AND acknowledged.ack >= end_seq, false)
            AS captured_elsewhere
    FROM gone
    LEFT JOIN sent_again ON sent_again.stream = gone.stream AND sent_again.frame = gone.frame
    LEFT JOIN acknowledged ON acknowledged.stream = gone.stream AND acknowledged.sender <> gone.sender
    WHERE
        -- A direction of which the place saw nothing, and all arrived, goes another way.
        (NOT seen_behind OR EXISTS (
            FROM paths WHERE paths.stream = gone.stream AND paths.place = next
                AND if(gone.sender = 'client', packets_client, packets_server) > 0))
        -- A middlebox opened the connection by itself: handshake and acknowledgements are its own.
        AND NOT (gone.bytes = 0 AND NOT contains(flags, 'F') AND gone.stream IN (
            SELECT stream FROM paths GROUP BY stream
            HAVING count(DISTINCT isn_server) > 1 AND count(DISTINCT isn_client) = 1))
"""


def find_losses(tables: Tables) -> None:
    """Fill ``losses``."""
    if tables.have_places:
        tables.execute(_LOST)
