//! Round trips and computing time, from flights.

use super::build::*;
use crate::stream::Side::{self, Client, Server};
use crate::tls::{Handshake, Kind};

/// `rtt` in milliseconds to either end.
fn compute(shake: &Handshake, rtt: i64) -> [Option<i64>; 2] {
    [Client, Server].map(|side| shake.flights.compute_ns(side, Some(rtt * MS)).map(|ns| ns / MS))
}

impl Talk {
    /// The next packet comes `ms` after the one before.
    fn after(&mut self, ms: u64) -> &mut Self {
        self.frame += ms - 1;
        self
    }
}

#[test]
fn full12_is_two_round_trips_and_each_end_is_charged_its_own_thinking() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.after(30).server(&server_flight12());
    talk.after(200).client(&finished12());
    talk.after(15).server(&finished12());
    let shake = talk.end();
    assert_eq!(shake.round_trips, Some(2));
    assert_eq!(compute(&shake, 10), [Some(190), Some(20 + 5)]);
    assert_eq!(compute(&shake, 20), [Some(180), Some(10)], "each flight is clamped at 0");
    assert_eq!(shake.flights.compute_ns(Client, None), None);
}

#[test]
fn false_start_counts_the_servers_last_flight_as_computing_but_not_as_a_wait() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.after(30).server(&server_flight12());
    talk.after(40).client(&[finished12(), data(200)].concat());
    talk.after(50).server(&finished12());
    talk.after(500).server(&data(900));
    let shake = talk.end();
    assert_eq!((shake.round_trips, compute(&shake, 10)), (Some(1), [Some(30), Some(20 + 40)]));
}

#[test]
fn pause_inside_a_flight_is_computing() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    let flight = server_flight12();
    talk.after(20).server(&flight[..100]);
    talk.after(9).server(&flight[100..200]);
    talk.after(70).server(&flight[200..]);
    talk.after(25).client(&finished12());
    talk.after(10).server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.round_trips, compute(&shake, 10)), (Some(2), [Some(15), Some(10 + 70)]));
}

#[test]
fn wait_for_the_window_is_a_round_trip_and_no_computing() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    let hello = record(22, &server_hello(0x0303, 0xc02f, &[], &[]));
    let long = [hello, record(22, &certificate(&[16_000])), record(22, &message(14, &[]))].concat();
    talk.after(20);
    for segment in long[..14_600].chunks(1460) {
        talk.server(segment);
    }
    talk.after(60).server(&long[14_600..]);
    talk.after(25).client(&finished12());
    talk.after(10).server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.round_trips, compute(&shake, 10)), (Some(3), [Some(15), Some(10)]));
}

#[test]
fn resumption_and_tls13_wait_once() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    talk.after(40).client(&finished13());
    talk.after(40).server(&data(8_000));
    let shake = talk.end();
    assert_eq!((shake.round_trips, compute(&shake, 1)), (Some(1), [Some(39), Some(0)]));
}

#[test]
fn dummy_change_cipher_spec_between_two_packets_of_the_server_is_no_flight() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls13().record());
    talk.server(&server_hello13(0x1301, false));
    talk.after(1).server(&change_cipher_spec());
    talk.after(1).client(&change_cipher_spec());
    talk.after(12).server(&server_flight13(false));
    talk.after(30).client(&finished13());
    let shake = talk.end();
    assert_eq!((shake.round_trips, compute(&shake, 1)), (Some(1), [Some(29), Some(14)]));
}

#[test]
fn tickets_that_the_client_had_not_seen_do_not_shorten_its_answer() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    let seen = talk.sent.server;
    talk.after(30).server(&data(250));
    talk.after(10).send_having_seen(Client, &finished13(), seen);
    let shake = talk.end();
    assert_eq!(compute(&shake, 1)[0], Some(39));
}

#[test]
fn accepted_early_data_waits_for_nothing() {
    let mut talk = Talk::new();
    let hello = Hello::tls13().extension(41, vec![0; 40]).extension(42, vec![]);
    talk.client(&hello.record());
    talk.after(7).client(&data(300));
    talk.after(13).server(&[server_hello13(0x1301, true), server_flight13(true)].concat());
    talk.after(30).client(&[data(4 + 17), data(FINISHED13)].concat());
    let shake = talk.end();
    assert_eq!((shake.kind, shake.round_trips), (Some(Kind::Psk0Rtt), Some(0)));
    assert_eq!(compute(&shake, 5), [Some(25), Some(15)], "the server answers the hello, not the early data");
}

#[test]
fn missing_bytes_leave_computing_unknown() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    let flight = server_flight12();
    talk.server(&flight[..200]);
    talk.gap(Side::Server, 100);
    talk.server(&flight[300..]);
    talk.client(&finished12());
    talk.server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.round_trips, compute(&shake, 0)), (Some(2), [None, None]));
}
