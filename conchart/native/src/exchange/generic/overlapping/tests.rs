//! Exchanges from lengths, order and times alone, unit by unit.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::exchange::Exchange;

/// As of packets of QUIC.
const SIZES: Sizes = Sizes { body: 1_100, head: 1_100, piece: 1_000, full: 1_100 };
const MS: i64 = 1_000_000;

/// Units of both sides, told in the order in which they pass.
struct Talk {
    overlapping: Overlapping,
    ledger: Ledger,
    /// So many bytes were sent by client and server.
    sent: [u64; 2],
}

impl Talk {
    fn new() -> Self {
        Self { overlapping: Overlapping::new("h3", SIZES), ledger: Ledger::default(), sent: [0, 0] }
    }

    fn unit(&mut self, from: Side, at_ms: i64, bytes: u64) -> AppRecord {
        let seen = Moment::new(at_ms * MS, at_ms.unsigned_abs(), from);
        let (own, peer) = if from == Side::Client { (0, 1) } else { (1, 0) };
        let offset = self.sent[own];
        self.sent[own] += bytes;
        AppRecord {
            from,
            first: seen,
            last: seen,
            bytes,
            offset,
            end: self.sent[own],
            acked: self.sent[peer],
            confidence: 1.0,
            may_be_interim: false,
            may_be_finished: false,
        }
    }

    fn asks(mut self, at_ms: i64, bytes: u64) -> Self {
        let unit = self.unit(Side::Client, at_ms, bytes);
        self.overlapping.ask(&mut self.ledger, &unit, 1);
        self
    }

    fn answers(mut self, at_ms: i64, bytes: u64) -> Self {
        let unit = self.unit(Side::Server, at_ms, bytes);
        self.overlapping.respond(&mut self.ledger, &unit);
        self
    }

    /// The same, when the server had received so many bytes only.
    fn answers_without(mut self, at_ms: i64, bytes: u64, acked: u64) -> Self {
        let unit = AppRecord { acked, ..self.unit(Side::Server, at_ms, bytes) };
        self.overlapping.respond(&mut self.ledger, &unit);
        self
    }

    fn exchanges(mut self) -> Vec<Exchange> {
        self.overlapping.fin();
        self.overlapping.finish(&mut self.ledger);
        std::iter::from_fn(|| self.ledger.next_exchange()).collect()
    }

    /// Of each exchange: when it was asked, and when its answer began and ended, in milliseconds.
    fn times(self) -> Vec<(i64, Option<i64>, Option<i64>)> {
        let ms = |moment: Option<Moment>| moment.map(|moment| moment.at / MS);
        let row = |it: &Exchange| (ms(it.request.first).unwrap(), ms(it.response.first), ms(it.response.last));
        self.exchanges().iter().map(row).collect()
    }
}

#[test]
fn one_request_at_a_time_is_told_with_confidence() {
    let exchanges = Talk::new().asks(0, 60).answers(20, 400).exchanges();
    let [exchange] = &exchanges[..] else { unreachable!() };
    assert!(exchange.inferred && exchange.response.done);
    assert_eq!((exchange.confidence, exchange.request.bytes, exchange.response.bytes), (ALONE, 60, 400));
}

#[test]
fn answers_come_in_the_order_of_requests_where_nothing_else_is_known() {
    let talk = || Talk::new().asks(0, 60).asks(5, 60).answers(40, 400).answers(70, 400);
    assert_eq!(talk().times(), [(0, Some(40), Some(40)), (5, Some(70), Some(70))]);
    assert!(talk().exchanges().iter().all(|exchange| exchange.confidence <= SEVERAL));
}

#[test]
fn a_request_that_the_server_has_not_received_is_not_answered() {
    let talk = Talk::new().asks(0, 60).asks(5, 60).answers_without(40, 400, 60).answers_without(80, 400, 60);
    let answered: Vec<bool> = talk.exchanges().iter().map(|exchange| exchange.response.first.is_some()).collect();
    assert_eq!(answered, [true, false]);
}

#[test]
fn full_units_are_one_answer_to_its_short_end() {
    let talk = Talk::new().asks(0, 60).answers(20, 1_200).answers(21, 1_200).answers(22, 300);
    assert_eq!(talk.times(), [(0, Some(20), Some(22))]);
}

#[test]
fn a_request_of_full_units_is_an_upload() {
    let exchanges = Talk::new().asks(0, 200).asks(1, 1_200).asks(2, 1_200).answers(30, 100).exchanges();
    let [exchange] = &exchanges[..] else { unreachable!() };
    assert_eq!((exchange.request.bytes, exchange.request.last.unwrap().at), (2_600, 2 * MS));
}

#[test]
fn what_proves_to_be_no_request_is_taken_back() {
    let mut talk = Talk::new().asks(0, 60);
    talk.overlapping.take_back(&mut talk.ledger);
    assert!(talk.overlapping.is_idle());
    assert_eq!(talk.exchanges(), []);
}

#[test]
fn what_the_server_has_begun_to_answer_is_not_taken_back() {
    let mut talk = Talk::new().asks(0, 60).asks(1, 60).answers(20, 400);
    talk.overlapping.take_back(&mut talk.ledger);
    assert_eq!(talk.exchanges().len(), 2);
}

#[test]
fn a_long_poll_alone_waits_for_its_answer() {
    let talk = Talk::new().asks(0, 60).answers(20, 400).asks(100, 60).answers(3_100, 300);
    assert_eq!(talk.times(), [(0, Some(20), Some(20)), (100, Some(3_100), Some(3_100))]);
}

#[test]
fn so_many_requests_wait_and_no_more() {
    let mut talk = Talk::new();
    for at in 0..2 * i64::try_from(MAX_REQUESTS).unwrap() {
        talk = talk.asks(at, 60);
    }
    assert_eq!(talk.overlapping.requests.len(), MAX_REQUESTS);
}
