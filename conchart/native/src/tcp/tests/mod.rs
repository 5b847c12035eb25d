//! Scripts of packets in, what was heard out.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

mod copies;
mod handshake;
mod reassembly;

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::state::State;
use super::*;
use crate::packet::{Endpoint, Flags, Segment, Seq, Station};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

const SYN: u8 = Flags::SYN;
const ACK: u8 = Flags::ACK;
const FIN: u8 = Flags::FIN;
const RST: u8 = Flags::RST;
const MS: i64 = 1_000_000;

/// What came out: bytes, gaps (as `?`), and the order of events.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    text: BySide<String>,
    order: Vec<(Side, u64, i64)>,
    /// How many chunks were heard before each gap, and its length.
    gaps: Vec<(usize, u64)>,
    fins: Vec<Side>,
}

impl Receiver for Heard {
    fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        assert_eq!(self.text[from].len() as u64, chunk.offset);
        self.text[from].push_str(std::str::from_utf8(chunk.bytes).unwrap());
        self.text[from].push_str(&"~".repeat(chunk.cut as usize));
        self.order.push((from, chunk.offset, chunk.seen.at));
    }
    fn gap(&mut self, from: Side, gap: Gap) {
        assert_eq!(self.text[from].len() as u64, gap.offset);
        self.text[from].push_str(&"?".repeat(gap.len as usize));
        self.gaps.push((self.order.len(), gap.len));
    }
    fn fin(&mut self, from: Side, _: Moment) {
        self.fins.push(from);
    }
}

#[derive(Clone, Debug)]
struct Packet {
    from: Side,
    seq: u32,
    ack: u32,
    flags: u8,
    text: &'static str,
    cut: u32,
    at: i64,
    ip_id: u16,
    window: u16,
}

const CLIENT_ISN: u32 = u32::MAX - 3;
const SERVER_ISN: u32 = 5_000;

/// Packets of a conversation; sequence numbers are relative to the first byte of each stream.
#[derive(Clone)]
struct Script(Vec<Packet>);

impl Script {
    fn new() -> Self {
        Self(Vec::new())
    }
    fn packet(mut self, at: i64, from: Side, flags: u8, seq: u32, ack: u32, text: &'static str) -> Self {
        let (own, other) = match from {
            Side::Client => (CLIENT_ISN, SERVER_ISN),
            Side::Server => (SERVER_ISN, CLIENT_ISN),
        };
        let seq = own.wrapping_add(u32::from(flags & SYN == 0)).wrapping_add(seq);
        let ack = other.wrapping_add(1).wrapping_add(ack);
        let ip_id = self.0.len() as u16;
        self.0.push(Packet { from, seq, ack, flags, text, cut: 0, at, ip_id, window: 1_000 });
        self
    }
    fn handshake(self) -> Self {
        self.packet(0, Side::Client, SYN, 0, 0, "").packet(20 * MS, Side::Server, SYN | ACK, 0, 0, "").packet(
            21 * MS,
            Side::Client,
            ACK,
            0,
            0,
            "",
        )
    }
    fn client(self, at: i64, seq: u32, ack: u32, text: &'static str) -> Self {
        self.packet(at * MS, Side::Client, ACK, seq, ack, text)
    }
    fn server(self, at: i64, seq: u32, ack: u32, text: &'static str) -> Self {
        self.packet(at * MS, Side::Server, ACK, seq, ack, text)
    }
    fn run(&self) -> (Connection, Heard) {
        let (connection, heard, _) = play(&self.0);
        (connection, heard)
    }
}

fn segment(sent: &Packet) -> Segment<'_> {
    let end = |last, port| Endpoint { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port };
    let (client, server) = (end(1, 50_000), end(2, 80));
    let (source, destination) = match sent.from {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    Segment {
        source,
        destination,
        seq: Seq(sent.seq),
        ack: Seq(sent.ack),
        flags: Flags(sent.flags),
        window: sent.window,
        mss: None,
        window_scale: None,
        timestamps: None,
        payload: sent.text.as_bytes(),
        payload_len: sent.text.len() as u32 + sent.cut,
        ip_id: Some(sent.ip_id),
        ttl: 64,
        duplicate_sack: None,
        sacks_beyond_gap: false,
        capture_point: 0,
        captured: &[],
        station: Station::default(),
        beyond_frame: 0,
    }
}

fn play(packets: &[Packet]) -> (Connection, Heard, Vec<Option<Mark>>) {
    let mut connection = Connection::new(Moment::new(packets[0].at, 1, Side::Client));
    let mut heard = Heard::default();
    let mut marks = Vec::new();
    for (index, sent) in packets.iter().enumerate() {
        let seen = Moment::new(sent.at, index as u64 + 1, Side::Client);
        marks.push(connection.segment(sent.from, &segment(sent), seen, &mut heard).mark);
    }
    connection.finish(&mut heard);
    (connection, heard, marks)
}

#[test]
fn the_first_packet_of_a_side_gives_its_ttl() {
    let (connection, _) = Script::new().handshake().client(30, 0, 0, "ping").run();
    assert_eq!((connection.halves.client.ttl, connection.halves.server.ttl), (Some(64), Some(64)));
}

#[test]
fn data_that_a_bare_fin_overtook_is_sent_again_or_out_of_order() {
    for (later, mark) in [(300 * MS, Mark::Retransmit), (MS / 10, Mark::OutOfOrder)] {
        let script = Script::new().handshake().server(30, 0, 0, "said");
        let script = script.packet(60 * MS, Side::Server, ACK | FIN, 7, 0, "");
        let (_, heard, marks) = play(&script.packet(60 * MS + later, Side::Server, ACK, 4, 0, "bye").0);
        assert_eq!((marks.last().copied().flatten(), heard.gaps.len()), (Some(mark), 0));
    }
}

#[test]
fn a_fin_that_only_its_acknowledgement_tells_of_is_no_byte() {
    let script = Script::new().packet(0, Side::Client, SYN, 0, 0, "").packet(MS, Side::Client, ACK, 0, 0, "");
    let script = script.packet(2 * MS, Side::Client, ACK, 0, 0, "ask").packet(3 * MS, Side::Client, ACK, 3, 10, "");
    let script = script.packet(4 * MS, Side::Client, ACK, 3, 10, "more").packet(5 * MS, Side::Client, ACK, 7, 30, "");
    let (connection, heard) = script
        .packet(5_000 * MS, Side::Client, ACK, 7, 31, "")
        .packet(5_001 * MS, Side::Client, ACK | FIN, 7, 31, "")
        .run();
    assert_eq!(heard.gaps, [(1, 10), (2, 20)]);
    assert_eq!(connection.halves.server.assembler.fin.unwrap().1.at, 5_000 * MS);
    assert_eq!(connection.state(), State::Complete);
}

#[test]
fn swapped_segments_are_put_in_order_and_counted() {
    let (connection, heard) =
        Script::new().handshake().server(30, 5, 0, "world").server(31, 0, 0, "hello").client(32, 0, 10, "thanks").run();
    assert_eq!(heard.text.server, "helloworld");
    assert_eq!(connection.halves.server.out_of_order(), 1);
    assert_eq!(connection.halves.server.retransmits(), 0);
    assert_eq!(connection.halves.server.missing(), 0);
}

#[test]
fn a_segment_before_which_something_is_missing_says_so() {
    let script = Script::new().handshake().server(30, 5, 0, "world").server(31, 0, 0, "hello").server(32, 10, 0, "!");
    let (_, _, marks) = play(&script.0);
    assert_eq!(marks[3..], [Some(Mark::Gap), Some(Mark::OutOfOrder), None]);
    let script = Script::new().handshake().client(30, 3, 0, "late").client(31, 7, 0, "more");
    let (_, _, marks) = play(&script.0);
    assert_eq!(marks[3..], [Some(Mark::Gap), None]);
}

#[test]
fn what_a_capture_begins_with_leaves_no_gap() {
    let script =
        Script::new().packet(0, Side::Client, ACK, 100, 7, "in the").packet(MS, Side::Client, ACK, 106, 7, "middle");
    assert_eq!(play(&script.0).2, [None, None]);
}

#[test]
fn a_repeated_and_regrouped_segment_is_heard_once() {
    let (connection, heard) = Script::new()
        .handshake()
        .server(30, 0, 0, "abcd")
        .server(300, 0, 0, "abcdef")
        .server(301, 2, 0, "cdefgh")
        .run();
    assert_eq!(heard.text.server, "abcdefgh");
    assert_eq!(connection.halves.server.bytes(), 8);
    assert_eq!(connection.halves.server.retransmits(), 2);
}

#[test]
fn bytes_acknowledged_but_not_captured_are_a_gap() {
    let mut script = Script::new().handshake().server(30, 0, 0, "ab").server(31, 5, 0, "fg").client(32, 0, 7, "");
    for at in 0..70 {
        script = script.client(40 + at, 0, 7, "");
    }
    let (connection, heard) = script.run();
    assert_eq!(heard.text.server, "ab???fg");
    assert_eq!(connection.halves.server.missing(), 3);
    assert_eq!(connection.halves.server.bytes(), 4);
}

#[test]
fn what_lies_before_the_end_and_was_acknowledged_is_missing_though_nothing_follows() {
    let begun = Script::new().handshake().client(30, 0, 0, "ping");
    let ended = begun.packet(40 * MS, Side::Server, ACK | FIN, 6, 4, "");
    let (connection, heard) = ended.clone().client(41, 4, 7, "").run();
    assert_eq!((heard.text.server.as_str(), heard.fins), ("??????", vec![Side::Server]));
    assert_eq!(connection.halves.server.missing(), 6);
    // Nobody says that it arrived: it may have been lost on the way.
    let (connection, heard) = ended.run();
    assert_eq!((heard.text.server.as_str(), connection.halves.server.missing()), ("", 0));
}

#[test]
fn only_the_acknowledged_part_of_a_hole_is_given_up() {
    let mut script = Script::new().handshake().server(30, 0, 0, "ab").server(31, 5, 0, "fg").client(32, 0, 3, "");
    for at in 0..70 {
        script = script.client(40 + at, 0, 3, "");
    }
    let (connection, heard) = script.server(200, 3, 0, "de").client(201, 0, 7, "").run();
    assert_eq!(heard.text.server, "ab?defg");
    assert_eq!(connection.halves.server.missing(), 1);
}

/// Where only the client was captured, what it acknowledged tells when it was answered.
#[test]
fn unseen_answers_stay_between_the_requests() {
    let script = Script::new().packet(0, Side::Client, SYN, 0, 0, "").packet(MS, Side::Client, ACK, 0, 0, "");
    let script = script.client(30, 0, 0, "one").client(60, 3, 5, "two").client(70, 6, 5, "more");
    let (connection, heard) = script.client(90, 10, 12, "three").client(900, 15, 14, "").run();
    assert_eq!(heard.text.client, "onetwomorethree");
    assert_eq!(heard.gaps, [(1, 5), (3, 7), (4, 2)]);
    assert_eq!(connection.halves.server.missing(), 14);
}

#[test]
fn a_reply_captured_before_what_it_acknowledges_is_heard_after_it() {
    let (connection, heard) =
        Script::new().handshake().server(30, 0, 4, "pong").client(30, 0, 0, "ping").client(31, 4, 4, "bye").run();
    let sides: Vec<Side> = heard.order.iter().map(|event| event.0).collect();
    assert_eq!(sides, [Side::Client, Side::Server, Side::Client]);
    assert_eq!(connection.halves.client.missing(), 0);
}

#[test]
fn keepalive_probes_are_neither_data_nor_retransmissions() {
    let (connection, heard) = Script::new()
        .handshake()
        .client(30, 0, 0, "ping")
        .server(31, 0, 4, "pong")
        .client(10_000, 3, 4, "")
        .client(20_000, 3, 4, "g")
        .run();
    assert_eq!(heard.text.client, "ping");
    assert_eq!(connection.halves.client.retransmits(), 0);
}

#[test]
fn the_byte_of_a_zero_window_probe_is_no_retransmission_when_the_window_opens() {
    let mut script = Script::new().handshake().client(30, 0, 0, "ping").server(31, 0, 4, "");
    script.0.last_mut().unwrap().window = 0;
    let (connection, heard) =
        script.client(500, 4, 0, "p").server(501, 0, 4, "").client(502, 4, 0, "pong").server(503, 0, 8, "").run();
    assert_eq!(heard.text.client, "pingpong");
    assert_eq!((connection.halves.client.retransmits(), connection.halves.client.out_of_order()), (0, 0));
    assert_eq!(connection.halves.client.bytes(), 8);
}

#[test]
fn payload_that_the_snap_length_cut_keeps_its_place() {
    let mut script = Script::new().handshake().server(30, 0, 0, "abc").server(31, 10, 0, "klm");
    script.0[3].cut = 7;
    let (_, heard) = script.run();
    assert_eq!(heard.text.server, "abc~~~~~~~klm");
}

#[test]
fn joined_midway_the_first_bytes_seen_are_offset_zero() {
    let (connection, heard) = Script::new().server(0, 700, 40, "tail").client(1, 40, 704, "next").run();
    assert!(connection.is_midstream());
    assert_eq!(heard.text.server, "tail");
    assert_eq!(heard.text.client, "next");
    assert_eq!(connection.halves.client.missing() + connection.halves.server.missing(), 0);
}

#[test]
fn fin_that_carries_data_closes_after_it() {
    let (connection, heard) = Script::new()
        .handshake()
        .packet(30 * MS, Side::Server, FIN | ACK, 0, 0, "bye")
        .packet(31 * MS, Side::Client, FIN | ACK, 0, 4, "")
        .packet(32 * MS, Side::Server, ACK, 4, 1, "")
        .run();
    assert_eq!(heard.text.server, "bye");
    assert_eq!(heard.fins, [Side::Server, Side::Client]);
    assert_eq!(connection.closing().unwrap().at, 30 * MS);
    assert_eq!((connection.state(), connection.fin_by), (State::Complete, Some(Side::Server)));
    let fins = [Side::Client, Side::Server].map(|side| connection.first_fin(side).unwrap());
    assert_eq!(fins, [Moment::new(31 * MS, 5, Side::Client), Moment::new(30 * MS, 4, Side::Client)]);
    assert_eq!(connection.halves.server.missing() + connection.halves.client.missing(), 0);
}

#[test]
fn one_sided_capture_does_not_wait_for_the_other_side() {
    let mut script = Script::new().packet(0, Side::Client, SYN, 0, 0, "").client(1, 0, 0, "GET /a");
    for at in 0..200 {
        script = script.client(10 + at, 6, u32::try_from(at).unwrap() * 100, "");
    }
    let (connection, heard) = script.client(300, 6, 20_000, "GET /b").run();
    assert_eq!(heard.text.client, "GET /aGET /b");
    assert_eq!(connection.halves.server.missing(), 20_000);
}

#[test]
fn each_side_acknowledging_the_others_future_still_ends() {
    let (_, heard) = Script::new().handshake().client(30, 0, 5, "ping").server(31, 0, 4, "pong!").run();
    assert_eq!(heard.text.client, "ping");
    assert_eq!(heard.text.server, "pong!");
}

#[test]
fn hostile_sequence_numbers_do_not_make_memory_grow() {
    let mut script = Script::new().handshake();
    for n in 0..20_000u32 {
        script = script.server(30, 10 + n * 3, 0, "x");
    }
    let (connection, _) = script.run();
    assert!(connection.forced_gaps > 0);
}

/// The alphabet, sent by both sides in turns, cut at the given places.
fn cut_conversation(cuts: &[usize]) -> Vec<Packet> {
    const TEXT: &str = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut script = Script::new().handshake();
    let mut done = BySide { client: 0, server: 0 };
    for (turn, &cut) in cuts.iter().enumerate() {
        let from = if turn % 3 == 0 { Side::Client } else { Side::Server };
        let start = done[from] % 30;
        let piece = &TEXT[start..start + cut];
        let (seq, ack) = (done[from] as u32, done[from.peer()] as u32);
        script = script.packet(30 * MS + turn as i64 * 10_000, from, ACK, seq, ack, piece);
        done[from] += cut;
    }
    script.0
}

proptest! {
    #[test]
    fn reordering_within_a_window_changes_nothing(
        cuts in prop::collection::vec(1usize..20, 1..40),
        swaps in prop::collection::vec((3usize..43, 1usize..6), 0..30),
        repeats in prop::collection::vec(3usize..43, 0..10),
    ) {
        let straight = cut_conversation(&cuts);
        let mut shuffled = straight.clone();
        for &(at, by) in &swaps {
            if at + by < shuffled.len() {
                shuffled.swap(at, at + by);
            }
        }
        for &index in &repeats {
            if let Some(packet) = straight.get(index) {
                shuffled.push(Packet { ip_id: 60_000 + index as u16, ..packet.clone() });
            }
        }
        let (a, heard_a, _) = play(&straight);
        let (b, heard_b, _) = play(&shuffled);
        prop_assert_eq!(&heard_a.text, &heard_b.text);
        prop_assert_eq!(a.halves.client.bytes(), b.halves.client.bytes());
        prop_assert_eq!(b.halves.client.missing() + b.halves.server.missing(), 0);
        // The same bytes came at the same instants, and never a reply before its cause.
        prop_assert_eq!(heard_a.order, heard_b.order);
    }

    #[test]
    fn arbitrary_segments_never_panic_and_every_byte_is_counted_once(
        packets in prop::collection::vec((any::<bool>(), any::<u8>(), 0u32..200, 0u32..200, 0usize..30), 1..60),
    ) {
        const TEXT: &str = "abcdefghijklmnopqrstuvwxyzabcdefghi";
        let mut script = Script::new();
        for (n, &(client, flags, seq, ack, len)) in packets.iter().enumerate() {
            let from = if client { Side::Client } else { Side::Server };
            script = script.packet(n as i64 * MS, from, flags, seq, ack, &TEXT[..len]);
        }
        let (connection, heard) = script.run();
        for side in [Side::Client, Side::Server] {
            let captured = heard.text[side].chars().filter(|&c| c != '?').count() as u64;
            prop_assert_eq!(connection.halves[side].bytes() - connection.halves[side].late(), captured);
            prop_assert_eq!(connection.halves[side].assembler.waiting_bytes, 0);
        }
    }
}
