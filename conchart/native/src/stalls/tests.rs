//! What passed in, stalls out. Times are in milliseconds; both ends' sequence numbers count from their first bytes.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::packet::{Endpoint, Flags, Seq, Station};
use crate::phases;
use crate::stream::{Chunk, Gap};
use crate::tcp::{Connection, Receiver};

mod endings;
mod late_acks;
mod slow_start;

const SYN: u8 = Flags::SYN;
const ACK: u8 = Flags::ACK;
const FIN: u8 = Flags::FIN;
const RST: u8 = Flags::RST;
const PSH: u8 = Flags::PSH;
const MSS: u32 = 1_460;
const C: Side = Side::Client;
const S: Side = Side::Server;

struct Deaf;

impl Receiver for Deaf {
    fn data(&mut self, _: Side, _: Chunk<'_>) {}
    fn gap(&mut self, _: Side, _: Gap) {}
    fn fin(&mut self, _: Side, _: Moment) {}
}

/// A connection as it passes the capture point.
struct Wire {
    tcp: Connection,
    stalls: Stalls,
    frame: u64,
    last: Moment,
    window: BySide<u16>,
    /// Of the next packet: timestamps; bytes reported as received twice, as missing.
    timestamps: Option<(u32, u32)>,
    twice: Option<(u32, u32)>,
    has_gap: bool,
}

impl Wire {
    /// Nothing passed yet.
    fn silent() -> Self {
        let start = Moment::new(0, 1, Side::Client);
        Self {
            tcp: Connection::new(start),
            stalls: Stalls::of_connection(),
            frame: 0,
            last: start,
            window: BySide { client: 500, server: 500 },
            timestamps: None,
            twice: None,
            has_gap: false,
        }
    }

    /// Opened by a TCP handshake: so many milliseconds to the client and back, and to the server.
    fn open(to_client: f64, to_server: f64) -> Self {
        Self::open_with(500, to_client, to_server)
    }

    /// The client's window is so many times 128 bytes.
    fn open_with(window: u16, to_client: f64, to_server: f64) -> Self {
        let mut wire = Self::silent();
        wire.window.client = window;
        wire.packet(-100.0, C, SYN, 0, 0, 0);
        wire.packet(-100.0 + to_server, S, SYN | ACK, 0, 0, 0);
        wire.packet(-100.0 + to_server + to_client, C, ACK, 0, 0, 0);
        wire
    }

    fn packet(&mut self, at: f64, from: Side, flags: u8, seq: u32, ack: u32, len: u32) {
        let begins = |side: Side| if side == C { 1_000_u32 } else { 9_000 };
        let end = |last, port| Endpoint { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port };
        let (client, server) = (end(1, 50_000), end(2, 80));
        let (source, destination) = if from == C { (client, server) } else { (server, client) };
        let is_syn = flags & SYN != 0;
        let peer = |seq: u32| Seq(begins(from.peer()) + 1 + seq);
        self.frame += 1;
        let segment = Segment {
            source,
            destination,
            seq: Seq(begins(from) + u32::from(!is_syn) + seq),
            ack: peer(ack),
            flags: Flags(flags),
            window: self.window[from],
            mss: is_syn.then_some(MSS as u16),
            window_scale: is_syn.then_some(7),
            timestamps: self.timestamps,
            payload: &[],
            payload_len: len,
            ip_id: Some(self.frame as u16),
            ttl: 64,
            duplicate_sack: self.twice.take().map(|(left, right)| (peer(left), peer(right))),
            sacks_beyond_gap: std::mem::take(&mut self.has_gap),
            capture_point: 0,
            station: Station::default(),
            beyond_frame: 0,
            captured: &[],
        };
        let seen = Moment::new((at * 1e6) as i64, self.frame, Side::Client);
        let taken = self.tcp.segment(from, &segment, seen, &mut Deaf);
        self.stalls.segment(from, &Passed { segment: &segment, taken: &taken, seen, tcp: &self.tcp });
        self.last = seen;
    }

    /// A small segment ends what its program had written; behind a full one is more.
    fn data(&mut self, at: f64, from: Side, seq: u32, ack: u32, len: u32) {
        let flags = if len.is_multiple_of(MSS) { ACK } else { ACK | PSH };
        self.packet(at, from, flags, seq, ack, len);
    }

    fn ack(&mut self, at: f64, from: Side, ack: u32) {
        // It has sent nothing, or what it sent was acknowledged: its own number does not matter.
        let seq = if from == C { 300 } else { 0 };
        self.packet(at, from, ACK, seq, ack, 0);
    }

    /// What was found, if all of it lies in one phase: kind, detail, side, from and to in milliseconds.
    fn found(mut self, phase: phases::Kind) -> Vec<(Kind, Option<Detail>, Side, i64, i64)> {
        let mut found = Vec::new();
        let start = Moment::new(i64::MIN / 4, 1, Side::Client);
        let phase = Phase::without_exchange(phase, start, self.last);
        self.stalls.settle(&phase, &mut |stall| {
            let ms = |moment: Moment| moment.at / 1_000_000;
            found.push((stall.kind, stall.detail, stall.side, ms(stall.start), ms(stall.end)));
        });
        found
    }
}

/// A client 20 ms away has sent a request of 300 bytes at -10 ms.
fn with_request() -> Wire {
    let mut wire = Wire::open(20.0, 0.1);
    wire.data(-10.0, C, 0, 0, 300);
    wire
}

#[test]
fn a_small_segment_that_waits_for_a_delayed_acknowledgement_was_held() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.ack(60.0, C, 200);
    wire.data(60.2, S, 200, 300, 500);
    assert_eq!(wire.found(phases::Kind::Wait), [(Kind::Nagle, Some(Detail::DelayedAck), S, 0, 60)]);
}

#[test]
fn so_was_one_that_waits_for_no_more_than_the_round_trip() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.ack(20.0, C, 200);
    wire.data(20.1, S, 200, 300, 500);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Nagle, Some(Detail::RoundTrip), S, 0, 20)]);
}

#[test]
fn a_program_that_takes_as_long_as_a_round_trip_is_not_held() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.ack(20.0, C, 200);
    wire.data(20.5, S, 200, 300, 500);
    assert_eq!(wire.found(phases::Kind::Wait), []);
}

#[test]
fn the_way_from_the_capture_point_to_the_sender_counts() {
    let mut wire = Wire::open(20.0, 0.1);
    wire.data(0.0, C, 0, 0, 6);
    wire.ack(45.0, S, 6);
    // The tickets pass after the acknowledgement, and reach the client when this has left.
    wire.data(45.3, S, 0, 6, 250);
    wire.data(65.2, C, 6, 0, 74);
    assert_eq!(wire.found(phases::Kind::Tls), [(Kind::Nagle, Some(Detail::DelayedAck), C, 0, 65)]);
}

#[test]
fn what_answers_the_peer_was_not_held() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.data(60.0, C, 300, 200, 100);
    wire.data(60.2, S, 200, 400, 500);
    assert_eq!(wire.found(phases::Kind::Wait), []);
}

#[test]
fn who_sends_small_segments_without_waiting_holds_nothing() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.data(0.1, S, 200, 300, 200);
    wire.ack(60.0, C, 400);
    wire.data(60.2, S, 400, 300, 500);
    assert_eq!(wire.found(phases::Kind::Wait), []);
}

#[test]
fn who_has_more_to_send_and_does_not_is_not_silent() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, MSS);
    wire.ack(20.0, C, MSS);
    wire.data(290.0, S, MSS, 300, 500);
    assert_eq!(wire.found(phases::Kind::Transfer), []);
}

#[test]
fn a_full_segment_is_not_held() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.ack(60.0, C, 200);
    wire.data(60.2, S, 200, 300, MSS);
    let found = wire.found(phases::Kind::Wait);
    assert!(found.iter().all(|found| found.0 != Kind::Nagle), "{found:?}");
}

#[test]
fn a_program_that_goes_on_when_it_likes_is_silent_not_held() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.ack(20.0, C, 200);
    wire.data(90.0, S, 200, 300, 500);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Sender, None, S, 0, 90)]);
}

#[test]
fn silence_before_a_response_is_the_wait_itself() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.ack(20.0, C, 200);
    wire.data(90.0, S, 200, 300, 500);
    assert_eq!(wire.found(phases::Kind::Wait), []);
}

#[test]
fn a_segment_that_a_timer_sends_again_was_lost_since_it_was_sent() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.data(230.0, S, 0, 300, 200);
    wire.ack(250.0, C, 200);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Rto, Some(Detail::Tail), S, 0, 230)]);
}

#[test]
fn in_a_handshake_that_is_a_loss_of_the_handshake() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.data(230.0, S, 0, 300, 200);
    wire.ack(250.0, C, 200);
    assert_eq!(wire.found(phases::Kind::Tls), [(Kind::Rto, Some(Detail::Handshake), S, 0, 230)]);
}

#[test]
fn lost_twice_is_lost_until_the_copy_that_arrives() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.data(230.0, S, 0, 300, 200);
    wire.data(690.0, S, 0, 300, 200);
    wire.ack(710.0, C, 200);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Rto, Some(Detail::Tail), S, 0, 690)]);
}

#[test]
fn what_a_fin_overtook_was_due_when_that_passed() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.ack(20.0, C, 200);
    wire.packet(900.0, S, ACK | FIN, 224, 300, 0);
    wire.data(1_130.0, S, 200, 300, 24);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Rto, Some(Detail::Tail), S, 900, 1_130)]);
}

/// Five full segments of which the second gets lost behind the capture point; three acknowledgements say so.
fn with_a_hole() -> Wire {
    let mut wire = with_request();
    for number in 0..5 {
        wire.data(f64::from(number) * 0.01, S, number * MSS, 300, MSS);
    }
    wire.ack(20.0, C, MSS);
    for number in 0..3 {
        wire.has_gap = true;
        wire.ack(20.1 + f64::from(number) * 0.1, C, MSS);
    }
    wire
}

#[test]
fn so_is_the_loss_of_what_ends_it() {
    let mut wire = with_request();
    wire.data(0.0, C, 300, 0, 80);
    wire.data(230.0, C, 300, 0, 80);
    let at = |ms: i64, frame| Moment::new(ms * 1_000_000, frame, Side::Client);
    let phase = |kind, start, end| Phase::without_exchange(kind, start, end);
    let mut found = Vec::new();
    wire.stalls.settle(&phase(phases::Kind::Tls, at(-20, 4), at(0, 5)), &mut |_| unreachable!());
    wire.stalls.settle(&phase(phases::Kind::Idle, at(0, 5), at(230, 6)), &mut |stall| found.push(stall.detail));
    assert_eq!(found, [Some(Detail::Handshake)]);
}

#[test]
fn a_segment_that_is_sent_again_as_later_ones_arrive_is_a_fast_retransmit() {
    let mut wire = with_a_hole();
    wire.data(20.4, S, MSS, 300, MSS);
    wire.ack(40.4, C, 5 * MSS);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::FastRetransmit, Some(Detail::Middle), S, 0, 20)]);
}

#[test]
fn when_nobody_repeats_it_at_once_a_timer_does() {
    let mut wire = with_a_hole();
    wire.data(300.0, S, MSS, 300, MSS);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Rto, Some(Detail::Middle), S, 0, 300)]);
}

#[test]
fn data_that_its_receiver_reports_as_received_twice_had_arrived() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    wire.data(230.0, S, 0, 300, 200);
    wire.twice = Some((0, 200));
    wire.ack(250.0, C, 200);
    wire.data(260.0, S, 200, 300, 200);
    assert_eq!(wire.found(phases::Kind::Transfer).first(), Some(&(Kind::Rto, Some(Detail::Ack), S, 0, 230)));
}

#[test]
fn an_acknowledgement_that_echoes_the_first_transmission_shows_that_nothing_was_lost() {
    for (echo, detail) in [(7, Detail::Spurious), (8, Detail::Tail)] {
        let mut wire = with_request();
        wire.timestamps = Some((7, 1));
        wire.data(0.0, S, 0, 300, 200);
        wire.timestamps = Some((8, 1));
        wire.data(230.0, S, 0, 300, 200);
        wire.timestamps = Some((2, echo));
        wire.ack(251.0, C, 200);
        assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Rto, Some(detail), S, 0, 230)]);
    }
}

#[test]
fn a_copy_of_what_was_acknowledged_long_ago_tells_of_a_lost_acknowledgement() {
    let mut wire = Wire::open(0.1, 20.0);
    wire.data(0.0, S, 0, 0, 200);
    wire.ack(0.1, C, 200);
    wire.data(230.0, S, 0, 0, 200);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Rto, Some(Detail::Ack), S, 0, 230)]);
}

#[test]
fn the_tail_of_a_response_is_held_as_long_as_a_small_segment_before_it_is_on_its_way() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 40);
    wire.data(0.1, S, 40, 300, MSS);
    wire.data(0.2, S, 40 + MSS, 300, MSS);
    wire.ack(20.1, C, 40 + MSS);
    wire.data(20.2, S, 40 + 2 * MSS, 300, 104);
    let found = wire.found(phases::Kind::Transfer);
    assert!(found.contains(&(Kind::Nagle, Some(Detail::RoundTrip), S, 0, 20)), "{found:?}");
}

#[test]
fn a_client_that_asks_only_when_tickets_bring_the_acknowledgement_was_held() {
    let mut wire = Wire::open(0.1, 40.0);
    wire.data(0.0, C, 0, 0, 80);
    wire.data(40.2, S, 0, 80, 255);
    wire.data(40.25, C, 80, 255, 61);
    assert_eq!(wire.found(phases::Kind::Idle), [(Kind::Nagle, Some(Detail::RoundTrip), C, 0, 40)]);
}

#[test]
fn a_repetition_that_fills_a_hole_within_a_round_trip_was_asked_for() {
    let mut wire = Wire::open(0.1, 40.0);
    wire.data(-10.0, C, 0, 0, 300);
    wire.data(30.0, S, 0, 300, MSS);
    wire.ack(30.1, C, MSS);
    for number in 2..5 {
        wire.data(30.1 + f64::from(number) * 0.1, S, number * MSS, 300, MSS);
        wire.has_gap = true;
        wire.ack(30.15 + f64::from(number) * 0.1, C, MSS);
    }
    wire.data(70.4, S, MSS, 300, MSS);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::FastRetransmit, Some(Detail::Middle), S, 30, 70)]);
}

#[test]
fn segments_behind_the_loss_of_all_large_ones_show_that_the_path_carries_less() {
    let mut wire = Wire::open(0.1, 20.0);
    wire.data(-10.0, C, 0, 0, 300);
    wire.data(10.0, S, 6 * MSS, 300, 353);
    wire.has_gap = true;
    wire.ack(10.1, C, 0);
    wire.data(1_700.0, S, 0, 300, 1_024);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Pmtu, Some(Detail::BlackHole), S, 10, 1_700)]);
}

#[test]
fn a_syn_that_is_sent_again_was_lost() {
    let mut wire = Wire::silent();
    for at in [0.0, 1_000.0, 3_000.0] {
        wire.packet(at, C, SYN, 0, 0, 0);
    }
    wire.packet(3_020.0, S, SYN | ACK, 0, 0, 0);
    wire.packet(3_020.1, C, ACK, 0, 0, 0);
    assert_eq!(wire.found(phases::Kind::Syn), [(Kind::SynRto, Some(Detail::Syn), C, 0, 3_000)]);
}

#[test]
fn or_its_answer_was() {
    let mut wire = Wire::silent();
    wire.packet(0.0, C, SYN, 0, 0, 0);
    wire.packet(0.1, S, SYN | ACK, 0, 0, 0);
    wire.packet(1_000.0, C, SYN, 0, 0, 0);
    wire.packet(1_000.1, S, SYN | ACK, 0, 0, 0);
    wire.packet(1_020.0, C, ACK, 0, 0, 0);
    assert_eq!(wire.found(phases::Kind::Syn), [(Kind::SynRto, Some(Detail::SynAck), S, 0, 1_000)]);
}

#[test]
fn a_refusal_is_an_answer() {
    let mut wire = Wire::silent();
    for at in [0.0, 500.0] {
        wire.packet(at, C, SYN, 0, 0, 0);
        wire.packet(at + 0.1, S, RST | ACK, 0, 0, 0);
    }
    wire.packet(1_000.0, C, SYN, 0, 0, 0);
    wire.packet(1_000.1, S, SYN | ACK, 0, 0, 0);
    wire.packet(1_000.2, C, ACK, 0, 0, 0);
    assert_eq!(wire.found(phases::Kind::Syn), []);
}

#[test]
fn a_closed_window_holds_who_goes_on_when_it_opens() {
    for pause in [0.3, 200.0] {
        let mut wire = with_request();
        wire.data(0.0, S, 0, 300, 5 * MSS);
        wire.window.client = 0;
        wire.ack(20.0, C, 5 * MSS);
        wire.window.client = 500;
        wire.ack(320.0, C, 5 * MSS);
        wire.data(320.0 + pause, S, 5 * MSS, 300, MSS);
        let held = wire.found(phases::Kind::Transfer).contains(&(Kind::ZeroWindow, None, S, 20, 320));
        assert_eq!(held, pause < 1.0);
    }
}

#[test]
fn a_full_window_limits_and_a_shrunken_one_is_the_receivers() {
    for (before, kind) in [(100_u16, Kind::WindowLimited), (500, Kind::Receiver)] {
        let mut wire = Wire::open_with(before, 20.0, 0.1);
        wire.window.client = 100;
        wire.data(-10.0, C, 0, 0, 300);
        wire.data(0.0, S, 0, 300, 8 * MSS);
        wire.ack(20.0, C, 8 * MSS);
        wire.data(20.1, S, 8 * MSS, 300, 8 * MSS);
        assert_eq!(wire.found(phases::Kind::Transfer), [(kind, None, S, 0, 20)]);
    }
}

#[test]
fn a_window_that_opens_without_an_acknowledgement_was_the_receivers() {
    let mut wire = Wire::open_with(100, 20.0, 0.1);
    wire.data(-10.0, C, 0, 0, 300);
    wire.data(0.0, S, 0, 300, 8 * MSS);
    wire.window.client = 1;
    wire.ack(20.0, C, 8 * MSS);
    wire.window.client = 100;
    wire.ack(320.0, C, 8 * MSS);
    wire.data(320.1, S, 8 * MSS, 300, MSS);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Receiver, None, S, 0, 320)]);
}

#[test]
fn a_large_segment_that_passes_only_when_it_is_cut_down_was_too_large_for_the_path() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, MSS);
    wire.data(230.0, S, 0, 300, MSS);
    wire.data(690.0, S, 0, 300, 1_000);
    wire.ack(710.0, C, 1_000);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::Pmtu, Some(Detail::BlackHole), S, 0, 690)]);
}

#[test]
fn what_is_repeated_after_the_last_byte_keeps_nobody_waiting() {
    let mut wire = with_request();
    wire.packet(0.0, S, ACK | FIN, 0, 300, 200);
    wire.packet(230.0, S, ACK | FIN, 0, 300, 200);
    assert_eq!(wire.found(phases::Kind::Close), []);
}

#[test]
fn stalls_do_not_overlap_and_the_stronger_cause_has_the_time() {
    let stall = |kind, start: i64, end: i64| Stall {
        kind,
        detail: None,
        side: S,
        start: Moment::new(start * 1_000_000, 1, Side::Client),
        end: Moment::new(end * 1_000_000, 2, Side::Client),
        released: None,
        ack_delay_ns: None,
        unfinished: false,
        confidence: 1.0,
    };
    let mut found = Found::default();
    for (kind, start, end) in [
        (Kind::SlowStart, 0, 20),
        (Kind::Nagle, 10, 60),
        (Kind::Sender, 70, 80),
        (Kind::Rto, 65, 90),
        (Kind::Sender, 85, 91),
        (Kind::Sender, 85, 89),
    ] {
        found.push(stall(kind, start, end), found::Within::Any);
    }
    let mut given = Vec::new();
    let end = Moment::new(100_000_000, 3, Side::Client);
    let phase = Phase {
        inferred: true,
        ..Phase::without_exchange(phases::Kind::Transfer, Moment::new(0, 1, Side::Client), end)
    };
    found.settle(&phase, &mut |stall| given.push((stall.kind, stall.start.at / 1_000_000, stall.end.at / 1_000_000)));
    let expected = [(Kind::SlowStart, 0, 20), (Kind::Nagle, 20, 60), (Kind::Rto, 65, 90), (Kind::Sender, 90, 91)];
    assert_eq!(given, expected);
}
