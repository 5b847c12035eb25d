//! Ticket or response? Alert or data?

use super::build::*;
use crate::stream::BySide;
use crate::stream::Side::{self, Client, Server};

/// Bytes of ALPN in EncryptedExtensions, where HTTP/2 was agreed on.
const H2: usize = 9;

/// A full handshake of TLS 1.3 whose client has just sent its Finished.
fn established(psk: bool) -> Talk {
    let mut talk = Talk::new().hellos13(&Hello::tls13().alpn("http/1.1"), psk);
    talk.client(&finished13());
    talk
}

fn confidences(talk: &mut Talk) -> Vec<(Side, u64, f64)> {
    talk.records().iter().map(|record| (record.from, record.bytes, record.confidence)).collect()
}

#[test]
fn two_records_of_one_size_before_the_response_are_tickets() {
    let mut talk = established(false);
    talk.client(&data(120));
    talk.server(&[data(255), data(255)].concat());
    assert_eq!(talk.sizes(), [], "undecided");
    talk.server(&data(3_000));
    assert_eq!(confidences(&mut talk), [(Client, 120, 1.0), (Server, 3_000, 0.9)]);
}

#[test]
fn tickets_before_the_request_are_no_response() {
    let mut talk = established(true);
    talk.server(&data(255));
    talk.client(&data(120));
    talk.server(&data(400));
    talk.server(&data(16_000));
    assert_eq!(talk.sizes(), [(Client, 120), (Server, 400), (Server, 16_000)]);
}

#[test]
fn records_sent_before_the_request_was_seen_are_no_response() {
    let mut talk = established(false);
    let finished = talk.sent.client;
    talk.client(&data(120));
    talk.send_having_seen(Server, &[data(255), data(255)].concat(), finished);
    talk.server(&data(300));
    talk.server(&data(300));
    talk.server(&data(900));
    assert_eq!(
        confidences(&mut talk),
        [(Client, 120, 1.0), (Server, 300, 0.95), (Server, 300, 1.0), (Server, 900, 1.0)]
    );
}

#[test]
fn single_ticket_of_a_resumption() {
    let mut talk = established(true);
    talk.client(&data(120));
    talk.server(&data(255));
    talk.server(&data(900));
    assert_eq!(confidences(&mut talk), [(Client, 120, 1.0), (Server, 900, 0.7)]);
}

#[test]
fn turn_without_anything_else_has_its_response() {
    let mut talk = established(true);
    talk.client(&data(120));
    talk.server(&data(255));
    talk.client(&data(120));
    assert_eq!(confidences(&mut talk), [(Client, 120, 1.0), (Server, 255, 0.5), (Client, 120, 1.0)]);
}

#[test]
fn connection_that_ends_has_its_response() {
    let mut talk = established(false);
    talk.client(&data(120));
    talk.server(&[data(255), data(255)].concat());
    talk.fin(Server);
    assert_eq!(confidences(&mut talk), [(Client, 120, 1.0), (Server, 255, 0.5), (Server, 255, 0.5)]);
}

#[test]
fn tickets_during_an_upload_do_not_end_the_turn() {
    let mut talk = established(false);
    talk.client(&data(16_000));
    talk.server(&[data(255), data(255)].concat());
    talk.client(&data(16_000));
    talk.server(&data(300));
    assert_eq!(talk.sizes(), [(Client, 16_000), (Client, 16_000), (Server, 300)]);
}

#[test]
fn a_response_of_a_tickets_size_comes_after_a_pause() {
    let mut talk = established(false);
    talk.client(&data(120));
    talk.server(&[data(255), data(255)].concat());
    talk.wait(10);
    talk.server(&data(255));
    talk.client(&data(120));
    assert_eq!(confidences(&mut talk), [(Client, 120, 1.0), (Server, 255, 0.8), (Client, 120, 1.0)]);
}

#[test]
fn many_records_of_one_size_are_a_response() {
    let mut talk = established(false);
    talk.client(&data(120));
    for _ in 0..6 {
        talk.server(&data(1_369));
    }
    assert_eq!(talk.records().len(), 7);
}

#[test]
fn large_first_record_is_certainly_the_response() {
    let mut talk = established(false);
    talk.client(&data(120));
    talk.server(&data(5_000));
    assert_eq!(confidences(&mut talk), [(Client, 120, 1.0), (Server, 5_000, 1.0)]);
}

#[test]
fn server_that_speaks_first_greets_after_its_tickets() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    talk.client(&finished13());
    talk.server(&[data(255), data(255)].concat());
    talk.server(&data(90));
    talk.client(&data(40));
    talk.server(&data(3_000));
    assert_eq!(talk.sizes(), [(Server, 90), (Client, 40), (Server, 3_000)]);
}

#[test]
fn tickets_of_one_size_may_come_far_apart() {
    // nginx and wrk on a busy machine: 8.7 ms between two tickets of 74 bytes. The client did not offer ALPN.
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    talk.client(&finished13());
    talk.server(&data(74));
    talk.wait(9);
    talk.server(&data(74));
    talk.client(&data(75));
    talk.server(&data(1_404));
    assert_eq!(talk.sizes(), [(Client, 75), (Server, 1_404)]);
}

#[test]
fn a_servers_settings_tell_that_http2_is_spoken_and_nothing_is_held_back() {
    let settings = data(9 + 3 * 6 + 17);
    for (alpn, http2) in [("h2", true), ("http/1.1", false)] {
        // In one record with the certificate, EncryptedExtensions tells nothing.
        let mut talk = Talk::new().hellos13_agreeing(&Hello::tls13().alpn(alpn), false, 900);
        talk.client(&finished13());
        talk.server(&[data(255), data(255), settings.clone()].concat());
        assert_eq!(talk.tls.http2(), http2.then_some(BySide { client: 17, server: 17 }));
        talk.client(&data(400));
        talk.server(&data(3_000));
        let unasked = [(Server, 255), (Server, 255), (Server, 44)];
        let requested = [(Client, 400), (Server, 3_000)];
        assert_eq!(talk.sizes(), if http2 { [&unasked[..], &requested].concat() } else { requested.to_vec() });
    }
}

#[test]
fn settings_may_come_after_tickets_with_time_between_them() {
    let mut talk = Talk::new().hellos13_agreeing(&Hello::tls13().alpn("h2"), false, H2);
    talk.client(&finished13());
    talk.client(&[data(24 + 9 + 3 * 6 + 13 + 17), data(475)].concat());
    talk.server(&data(266));
    talk.wait(17);
    talk.server(&data(266));
    talk.server(&data(9 + 2 * 6 + 9 + 17));
    assert_eq!(talk.tls.http2(), Some(BySide { client: 17, server: 17 }));
}

#[test]
fn a_request_as_long_as_a_preface_is_one_where_the_server_answers_in_http1() {
    let mut talk = Talk::new().hellos13_agreeing(&Hello::tls13().alpn("h2"), false, H2);
    talk.client(&finished13());
    talk.client(&data(24 + 9 + 3 * 6 + 13 + 17));
    talk.server(&[data(255), data(255), data(700)].concat());
    assert_eq!((talk.tls.http2(), talk.sizes()), (None, vec![(Client, 81), (Server, 700)]));
}

#[test]
fn a_client_that_pads_its_finished_pads_all_its_records() {
    let mut talk = Talk::new().hellos13_agreeing(&Hello::tls13().alpn("h2"), false, H2);
    talk.client(&data(FINISHED13 + 16));
    talk.client(&data(156 + 17));
    talk.server(&data(9 + 6 + 17));
    assert_eq!(talk.tls.http2(), Some(BySide { client: 33, server: 17 }));
}

#[test]
fn a_ticket_that_names_a_session_is_no_beginning_of_http2() {
    // nginx with ssl_session_tickets off, and curl: 57 bytes each, which could be SETTINGS. JDK: 50, rustls: 81.
    for ticket in [57 + 17, 50 + 17, 81 + 17] {
        let mut talk = Talk::new().hellos13_agreeing(&Hello::tls13().alpn("h2"), false, 900);
        talk.client(&finished13());
        talk.client(&data(652));
        talk.server(&[data(ticket), data(ticket)].concat());
        talk.server(&data(4_310));
        assert_eq!((talk.tls.http2(), talk.sizes()), (None, vec![(Client, 652), (Server, 4_310)]));
    }
}

#[test]
fn where_another_protocol_was_agreed_on_nothing_begins_http2() {
    let offer = Hello::tls13().alpn("h2");
    for (extensions, http2) in [(0, false), (4, false), (H2, true), (H2 + 4, true)] {
        let mut talk = Talk::new().hellos13_agreeing(&offer, false, extensions);
        talk.client(&finished13());
        talk.server(&data(9 + 3 * 6 + 17));
        assert_eq!(talk.tls.http2().is_some(), http2, "{extensions}");
    }
}

#[test]
fn what_a_record_takes_beyond_its_content_depends_on_the_suite() {
    let overhead = |cipher| {
        let mut talk = Talk::new();
        talk.client(&Hello::tls12().alpn("h2").record());
        talk.server(&record(22, &server_hello(0x0303, cipher, &[], &[(16, vec16(b"\x02h2"))])));
        talk.tls.http2().map(|overhead| overhead.server)
    };
    // AES-GCM, ChaCha20-Poly1305, AES-CCM-8; of CBC it varies.
    assert_eq!([0xc02f, 0xcca8, 0xc0ae, 0xc027].map(overhead), [Some(24), Some(16), Some(16), None]);
}

#[test]
fn connection_without_a_request_has_only_tickets() {
    let mut talk = established(false);
    talk.server(&[data(255), data(255)].concat());
    talk.tls.finish();
    assert_eq!(talk.sizes(), []);
}

#[test]
fn last_record_of_an_alerts_size_is_the_closing_alert() {
    for closed in [true, false] {
        let mut talk = established(false);
        talk.client(&data(120));
        talk.server(&data(5_000));
        talk.server(&data(19));
        talk.client(&data(19));
        if closed {
            talk.fin(Server);
            talk.fin(Client);
        } else {
            talk.tls.finish();
        }
        assert_eq!(talk.sizes(), [(Client, 120), (Server, 5_000)]);
    }
}

#[test]
fn record_of_an_alerts_size_with_a_successor_is_data() {
    let mut talk = established(false);
    talk.client(&data(120));
    talk.server(&data(5_000));
    talk.records();
    talk.server(&data(19));
    talk.client(&data(30));
    assert_eq!(talk.sizes(), [], "held back, and what follows with it");
    talk.server(&data(19));
    assert_eq!(talk.sizes(), [(Server, 19), (Client, 30)]);
    talk.server(&data(100));
    assert_eq!(talk.sizes(), [(Server, 19), (Server, 100)]);
}

#[test]
fn half_closed_connection_holds_back_a_bounded_number() {
    let mut talk = established(false);
    talk.client(&data(120));
    talk.server(&data(5_000));
    talk.client(&data(19));
    talk.records();
    for _ in 0..crate::tls::MAX_HELD {
        talk.server(&data(16_000));
    }
    assert!(talk.records().len() >= crate::tls::MAX_HELD);
}

#[test]
fn key_update_is_doubtful_data() {
    let mut talk = established(false);
    talk.client(&data(120));
    talk.server(&data(5_000));
    talk.client(&data(22));
    assert_eq!(confidences(&mut talk)[2], (Client, 22, 0.5));
}
