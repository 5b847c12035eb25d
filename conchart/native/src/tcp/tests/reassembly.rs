//! What comes before the first byte seen, after it was given up, or where no packet should be.

use super::*;
use crate::flow::{Slot, Table, Transport};

/// A connection that was joined midway, its beginning reordered: the SACK says that the second piece came first.
#[test]
fn joined_midway_bytes_before_the_first_ones_seen_are_read() {
    let (connection, heard, marks) = play(
        &Script::new()
            .server(0, 1_396, 40, "late")
            .client(1, 40, 0, "")
            .server(2, 0, 40, "early ")
            .server(3, 6, 40, "and then ")
            .client(4, 40, 1_400, "")
            .server(400, 1_400, 40, "r")
            .0,
    );
    assert!(heard.text.server.starts_with("early and then ?"));
    assert!(heard.text.server.ends_with("?later"));
    let server = &connection.halves.server;
    assert_eq!((server.bytes(), server.missing(), server.late()), (20, 1_381, 0));
    assert_eq!(marks[2], Some(Mark::OutOfOrder));
}

#[test]
fn joined_midway_what_was_in_flight_before_the_capture_is_not_missing() {
    let mut script = Script::new().server(0, 5_000, 40, "a").client(1, 40, 2_000, "");
    script = script.server(2, 5_001, 40, "b").client(3, 40, 4_000, "").client(4, 40, 5_002, "");
    let (connection, heard) = script.run();
    assert_eq!(heard.text.server, "ab");
    assert_eq!(connection.halves.server.missing(), 0);
}

/// All in the wrong order: the end of a stream, its data, its beginning.
#[test]
fn the_end_may_come_first() {
    let (connection, heard) = Script::new()
        .packet(9 * MS, Side::Client, ACK, 4, 5, "")
        .packet(8 * MS, Side::Server, FIN | ACK, 4, 4, "")
        .packet(0, Side::Server, SYN | ACK, 0, 0, "")
        .server(6, 2, 3, "ng")
        .client(1, 0, 0, "ask")
        .packet(7 * MS, Side::Client, FIN | ACK, 3, 4, "")
        .server(5, 0, 3, "po")
        .run();
    assert_eq!((heard.text.client.as_str(), heard.text.server.as_str()), ("ask", "pong"));
    assert_eq!(heard.fins.len(), 2);
    assert_eq!(connection.halves.server.missing(), 0);
}

#[test]
fn joined_midway_copies_of_what_is_over_are_counted_and_not_heard() {
    let (connection, heard) = Script::new()
        .server(100, 700, 40, "tail")
        .client(101, 40, 704, "next")
        .server(102, 650, 44, "old")
        .server(103, 650, 44, "old")
        .run();
    assert_eq!(heard.text.server, "tail");
    let server = &connection.halves.server;
    assert_eq!((server.bytes(), server.late(), server.missing(), server.retransmits()), (7, 3, 0, 1));
}

#[test]
fn the_first_copy_of_bytes_that_were_passed_over_is_counted() {
    let mut script = Script::new().handshake().server(30, 0, 0, "ab").server(31, 5, 0, "fg").client(32, 0, 7, "ok");
    script = script.server(300, 7, 2, "h").client(301, 2, 8, "");
    let missing = script.clone().run().0.halves.server.missing();
    let (connection, heard, marks) = play(&script.server(400, 2, 2, "cd").server(500, 1, 2, "bcde").0);
    assert_eq!(heard.text.server, "ab???fgh");
    let server = &connection.halves.server;
    assert_eq!((missing, server.missing(), server.bytes(), server.late()), (3, 0, 8, 3));
    assert_eq!(marks[8..], [Some(Mark::Retransmit); 2]);
}

/// One packet of the client is damaged: it acknowledges what the server has not even said.
#[test]
fn a_damaged_acknowledgement_discards_nothing() {
    for damage in [5, 487, 1 << 20, 1 << 29, 3 << 29] {
        let (connection, heard) = Script::new()
            .handshake()
            .client(30, 0, damage, "ask")
            .server(180, 0, 3, "")
            .server(200, 0, 3, "hello")
            .client(201, 3, 5, "more")
            .server(220, 5, 7, "done")
            .client(221, 7, 9, "")
            .run();
        assert_eq!((heard.text.client.as_str(), heard.text.server.as_str()), ("askmore", "hellodone"), "{damage}");
        assert_eq!(connection.halves.server.missing(), 0);
    }
}

/// Of the handshake, only the SYN or only the SYN-ACK was captured: where the other stream starts is known from an
/// acknowledgement, and that one is damaged.
#[test]
fn a_damaged_acknowledgement_moves_no_start() {
    for damage in [1, 5, 487, 1 << 20, 1 << 29, 3 << 29] {
        let run =
            |script: Script| script.client(31, 0, 0, "ask").server(137, 0, 3, "response").client(138, 3, 8, "").run();
        let syn = Script::new().packet(0, Side::Client, SYN, 0, 0, "").client(30, 0, damage, "");
        let syn_ack = Script::new().packet(20 * MS, Side::Server, SYN | ACK, 0, damage, "").client(30, 0, 0, "");
        for (connection, heard) in [run(syn), run(syn_ack)] {
            assert_eq!((heard.text.client.as_str(), heard.text.server.as_str()), ("ask", "response"), "{damage}");
            assert_eq!(connection.halves.server.missing() + connection.halves.client.missing(), 0);
        }
    }
}

#[test]
fn what_two_packets_acknowledge_was_sent() {
    let (_, heard) = Script::new()
        .handshake()
        .client(30, 0, 0, "ask")
        .client(80, 3, 5, "")
        .client(90, 3, 5, "more")
        .client(400, 7, 5, "")
        .server(500, 5, 7, "done")
        .run();
    assert_eq!((heard.text.client.as_str(), heard.text.server.as_str()), ("askmore", "?????done"));
    assert_eq!(heard.gaps, [(1, 5)]);
}

/// A few packets of a long transfer: no window reaches so far, but the receiver acknowledges what was left out.
#[test]
fn a_gap_of_more_than_a_window_is_one_that_both_sides_speak_of() {
    const FAR: u32 = 2_000_000_000;
    let heard = |far| {
        let script = Script::new().handshake().server(30, 0, 0, "ab").client(31, 0, 2, "");
        let script = if far { script.client(9_000, 0, FAR, "") } else { script };
        let (_, heard) = play_counting(&script.server(9_001, FAR, 0, "yz").client(9_002, 0, FAR + 2, "").0);
        (heard.gaps, heard.bytes.server)
    };
    assert_eq!(heard(true), (u64::from(FAR) - 2, 4));
    // Nobody acknowledged anything near it.
    assert_eq!(heard(false), (0, 2));
}

/// As [`play`], but what is heard is only counted.
#[derive(Default)]
struct Counter {
    next: BySide<u64>,
    gaps: u64,
    bytes: BySide<u64>,
}

impl Receiver for Counter {
    fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        assert!(!chunk.is_empty());
        assert_eq!(chunk.offset, self.next[from]);
        self.next[from] += chunk.len();
        self.bytes[from] += chunk.len();
    }
    fn gap(&mut self, from: Side, gap: Gap) {
        assert!(gap.len > 0);
        assert_eq!(gap.offset, self.next[from]);
        self.next[from] += gap.len;
        self.gaps += gap.len;
    }
    fn fin(&mut self, _: Side, _: Moment) {}
}

fn play_counting(packets: &[Packet]) -> (Connection, Counter) {
    let mut connection = Connection::new(Moment::new(packets[0].at, 1, Side::Client));
    let mut counter = Counter::default();
    for (index, sent) in packets.iter().enumerate() {
        let seen = Moment::new(sent.at, index as u64 + 1, Side::Client);
        connection.segment(sent.from, &segment(sent), seen, &mut counter);
    }
    connection.finish(&mut counter);
    (connection, counter)
}

/// A man in the middle acknowledged more than the server had sent, twice, and the server ends inside of that.
#[test]
fn a_fin_inside_what_was_passed_over_ends_the_stream() {
    let (connection, heard) = Script::new()
        .handshake()
        .client(30, 0, 0, "ask")
        .server(40, 0, 3, "hi")
        .client(50, 3, 20, "")
        .client(51, 3, 20, "more")
        .client(400, 7, 20, "")
        .packet(500 * MS, Side::Server, FIN | ACK, 9, 7, "")
        .run();
    assert_eq!(heard.text.server, format!("hi{}", "?".repeat(18)));
    assert_eq!((connection.fin_by, heard.fins), (Some(Side::Server), vec![Side::Server]));
}

#[test]
fn a_connection_whose_fin_nobody_acknowledged_is_waited_for() {
    const SECOND: i64 = 1_000 * MS;
    let both = Script::new().handshake().packet(30 * MS, Side::Client, FIN | ACK, 0, 0, "").packet(
        31 * MS,
        Side::Server,
        FIN | ACK,
        0,
        1,
        "",
    );
    let (connection, _) = both.clone().run();
    assert!(connection.is_closed() && connection.lingers_until() > 120 * SECOND);
    let (connection, _) = both.clone().packet(32 * MS, Side::Client, ACK, 1, 1, "").run();
    assert!(connection.is_closed() && connection.lingers_until() < 31 * SECOND);
    let (connection, _, marks) = play(
        &both.packet(60 * SECOND, Side::Server, FIN | ACK, 0, 1, "").packet(61 * SECOND, Side::Server, RST, 1, 0, "").0,
    );
    assert_eq!((marks[5], connection.rst_by), (Some(Mark::Retransmit), Some(Side::Server)));
    assert!(connection.lingers_until() < 92 * SECOND);
}

#[test]
fn a_side_that_had_closed_and_resets_has_left_unless_more_than_a_farewell_was_sent() {
    let closed = Script::new().handshake().packet(30 * MS, Side::Server, FIN | ACK, 0, 0, "").packet(
        31 * MS,
        Side::Client,
        ACK,
        0,
        1,
        "bye",
    );
    let (connection, _) = closed.clone().packet(32 * MS, Side::Server, RST, 1, 0, "").run();
    assert!(connection.is_abandoned() && !connection.is_spent());
    // Eight round trips between the capture point and the client, and a little.
    let round_trip = connection.rtt(Side::Client).unwrap();
    assert_eq!(connection.settles_at(), Some(42 * MS + 8 * round_trip));
    // Its FIN did not arrive, as far as the capture shows; or the client will send much of it again.
    let unheard = Script::new().handshake().packet(30 * MS, Side::Server, FIN | ACK, 0, 0, "");
    let much = closed.clone().packet(31 * MS, Side::Client, ACK, 3, 1, "x".repeat(300).leak());
    for script in [unheard, much] {
        let (connection, _) = script.packet(32 * MS, Side::Server, RST, 1, 0, "").run();
        assert_eq!((connection.is_closed(), connection.is_abandoned()), (true, false));
    }
    let (connection, _) = closed.run();
    assert_eq!((connection.is_abandoned(), connection.settles_at()), (false, None));
}

#[test]
fn a_table_keeps_a_connection_until_its_fin_is_acknowledged() {
    let mut script = Script::new().handshake().packet(30 * MS, Side::Client, FIN | ACK, 0, 0, "").packet(
        31 * MS,
        Side::Server,
        FIN | ACK,
        0,
        1,
        "",
    );
    for retry in [25_000, 75_000, 175_000] {
        script = script.packet(retry * MS, Side::Server, FIN | ACK, 0, 1, "");
    }
    let script =
        script.packet(176_000 * MS, Side::Client, RST, 1, 0, "").packet(207_000 * MS, Side::Client, RST, 1, 0, "");
    let mut table: Table<Connection> = Table::new(10);
    let mut of: Vec<&str> = Vec::new();
    let lingers_until = |tcp: &Connection| tcp.is_closed().then(|| tcp.lingers_until());
    for (index, sent) in script.0.iter().enumerate() {
        let (segment, seen) = (segment(sent), Moment::new(sent.at, index as u64 + 1, Side::Client));
        while let Some(flow) = table.expired(seen.at, lingers_until) {
            assert_eq!((flow.content.rst_by, flow.content.halves.server.retransmits()), (Some(Side::Client), 3));
        }
        let slot = match table.locate(Transport::Tcp, segment.source, segment.destination, seen.at) {
            Slot::Open(slot, _) => slot,
            Slot::New => {
                let ends = BySide { client: segment.source, server: segment.destination };
                table.open(Transport::Tcp, ends, seen.at, Connection::new(seen))
            }
            Slot::Stray => {
                of.push("stray");
                continue;
            }
        };
        let flow = table.flow(slot).unwrap();
        flow.content.segment(sent.from, &segment, seen, &mut Heard::default());
        of.push("open");
        if flow.content.is_closed() {
            table.linger(slot, seen.at, None);
        }
    }
    assert_eq!((&of[..9], &of[9..]), (&["open"; 9][..], &["stray"][..]));
}

#[test]
fn a_syn_ack_with_data_that_is_sent_again_is_one_retransmission() {
    let mut script = Script::new().packet(0, Side::Client, SYN, 0, 0, "");
    for at in [20, 1_020] {
        script = script.packet(at * MS, Side::Server, SYN | ACK, 0, 0, "hi");
    }
    let (connection, heard, marks) = play(&script.client(1_021, 0, 2, "").0);
    assert_eq!(heard.text.server, "hi");
    assert_eq!((connection.halves.server.retransmits(), marks[2]), (1, Some(Mark::Retransmit)));
}

/// A connection is there for every pair of ends of a capture: its size counts.
#[test]
fn a_connection_takes_little_room() {
    assert!(size_of::<Connection>() <= 1_152, "{}", size_of::<Connection>());
}

proptest! {
    // Law: whatever the numbers are, streams are handed on from their beginning, and each byte is counted once.
    #[test]
    fn arbitrary_numbers_are_survived(
        packets in prop::collection::vec(
            (any::<bool>(), any::<u8>(), number(), number(), 0usize..30, -50i64..500),
            1..80,
        ),
    ) {
        const TEXT: &str = "abcdefghijklmnopqrstuvwxyzabcdefghi";
        let mut script = Script::new();
        let mut at = 1_000;
        for &(client, flags, seq, ack, len, after) in &packets {
            at += after;
            let from = if client { Side::Client } else { Side::Server };
            script = script.packet(at * MS, from, flags & 0x17, seq, ack, &TEXT[..len]);
        }
        let (connection, heard) = play_counting(&script.0);
        prop_assert_eq!(connection.waiting_bytes(), 0);
        for side in [Side::Client, Side::Server] {
            let half = &connection.halves[side];
            prop_assert_eq!(half.bytes() - half.late(), heard.bytes[side]);
        }
    }
}

proptest! {
    // Law: one damaged acknowledgement costs no byte, delays none, and invents none. (Not that of a side's last packet:
    // nothing comes that could speak against it, and more may have arrived that was not captured.)
    #[test]
    fn one_damaged_acknowledgement_costs_nothing(
        turns in prop::collection::vec((1usize..20, 0i64..12_000), 2..20),
        begins_with_syn_ack: bool,
        damaged in 0usize..24,
        ack in number(),
    ) {
        let cuts: Vec<_> = turns.iter().map(|(cut, _)| *cut).collect();
        let mut sound = cut_conversation(&cuts);
        let mut later = 0;
        for (packet, (_, after)) in sound.iter_mut().skip(3).zip(&turns) {
            later += after * MS;
            packet.at += later;
        }
        let sound = &sound[usize::from(begins_with_syn_ack)..];
        let mut damage = sound.to_vec();
        let goes_on = |place: &usize| sound[place + 1..].iter().any(|packet| packet.from == sound[*place].from);
        let places: Vec<_> = (0..sound.len()).filter(goes_on).collect();
        let damaged = places[damaged % places.len()];
        damage[damaged].ack = damage[damaged].ack.wrapping_add(ack);
        let ((a, heard), (b, counted)) = (play_counting(sound), play_counting(&damage));
        prop_assert_eq!((heard.bytes.client, heard.bytes.server, heard.gaps), (counted.bytes.client, counted.bytes.server, counted.gaps));
        let ((_, heard, _), (_, again, _)) = (play(sound), play(&damage));
        prop_assert_eq!((&heard.text, &heard.order), (&again.text, &again.order));
        for side in [Side::Client, Side::Server] {
            prop_assert_eq!(a.halves[side].missing(), b.halves[side].missing());
        }
    }
}

/// Near the beginning of a stream, a window away, half the circle away, anywhere.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0u32..200,
        1 => (0u32..200).prop_map(|n| n.wrapping_sub(100)),
        1 => (0u32..200, 28u32..32).prop_map(|(n, shift)| (1 << shift) + n - 100),
        1 => any::<u32>(),
    ]
}
