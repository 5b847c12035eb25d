//! TLS 1.3: what encryption hides.

use super::build::*;
use crate::stream::Side::{Client, Server};
use crate::tls::{Kind, Outcome, Version};

#[test]
fn full_handshake_is_ready_when_the_clients_finished_is_sent() {
    let mut talk = Talk::new().hellos13(&Hello::tls13().alpn("h2"), false);
    let server_bytes = talk.sent.server;
    let sent = talk.client(&finished13());
    let shake = talk.handshake();
    assert_eq!((shake.hello, shake.server_hello, shake.server_done), (Some(at(1)), Some(at(2)), Some(at(2))));
    assert_eq!((shake.client_finished, shake.ready, shake.complete), (Some(sent), Some(sent), Some(sent)));
    assert_eq!((shake.kind, shake.outcome, shake.round_trips), (Some(Kind::Full), Outcome::Complete, Some(1)));
    assert_eq!(
        (shake.version.map(Version::name).as_deref(), shake.cipher.as_deref()),
        (Some("TLSv1.3"), Some("TLS_AES_128_GCM_SHA256"))
    );
    assert_eq!((shake.named_group.as_deref(), shake.alpn), (Some("x25519"), None));
    assert_eq!((shake.client_auth, shake.early_data, shake.false_start), (Some(false), Some(false), Some(false)));
    assert_eq!((shake.bytes_client, shake.bytes_server), (talk.sent.client, server_bytes));
    assert!(shake.inferred);
    assert_eq!(talk.sizes(), []);
}

#[test]
fn request_that_rides_with_the_finished_starts_after_it() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    talk.client(&[finished13(), data(120)].concat());
    talk.server(&data(9_000));
    assert_eq!(talk.sizes(), [(Client, 120), (Server, 9_000)]);
}

#[test]
fn hello_with_encrypted_client_hello_is_marked() {
    let outer = Hello::tls13().sni("public.example").extension(0xfe0d, vec![0; 40]);
    let inner = Hello::tls13().extension(0xfe0d, vec![1]);
    for (hello, ech) in [(outer, Some(true)), (inner, Some(false)), (Hello::tls13(), Some(false))] {
        let mut talk = Talk::new().hellos13(&hello, false);
        talk.client(&finished13());
        assert_eq!(talk.end().ech, ech);
    }
    let mut half = Talk::new();
    half.client(&Hello::tls13().extension(0xfe0d, vec![0; 40]).record()[..60]);
    assert_eq!(half.end().ech, None, "nobody knows what the rest of the hello held");
}

/// RFC 8446 gave the ServerHello the look of TLS 1.2 only in draft 22; Chrome tried `0x7e01` before.
#[test]
fn server_hellos_of_drafts_are_read() {
    let draft14 = [&[3, 4][..], &[0x22; 32], &[0xc0, 0x2b, 0, 8, 0, 40, 0, 4, 0, 23, 0, 0]].concat();
    let canary = server_hello(0x7e01, 0x1301, &[7; 32], &[(51, vec![0, 29, 0, 0])]);
    for (message, cipher, group) in [
        (message(2, &draft14), "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "secp256r1"),
        (canary, "TLS_AES_128_GCM_SHA256", "x25519"),
    ] {
        let mut talk = Talk::new();
        talk.client(&Hello::tls13().record());
        talk.server(&[record(22, &message), server_flight13(false)].concat());
        talk.client(&finished13());
        let shake = talk.end();
        assert_eq!(
            (shake.version.map(Version::name).as_deref(), shake.cipher.as_deref()),
            (Some("TLSv1.3"), Some(cipher))
        );
        assert_eq!((shake.named_group.as_deref(), shake.outcome), (Some(group), Outcome::Complete));
    }
}

#[test]
fn echoed_session_id_is_no_resumption_and_psk_is() {
    for (psk, kind) in [(false, Kind::Full), (true, Kind::Psk)] {
        let mut talk = Talk::new().hellos13(&Hello::tls13().extension(41, vec![0; 40]), psk);
        talk.client(&finished13());
        assert_eq!(talk.end().kind, Some(kind));
    }
}

#[test]
fn sha384_suites_have_a_longer_finished() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls13().record());
    talk.server(&[server_hello13(0x1302, false), data(23), data(836), data(281), data(69)].concat());
    talk.client(&[change_cipher_spec(), data(69), data(53)].concat());
    talk.server(&data(5_000));
    assert_eq!(talk.sizes(), [(Client, 53), (Server, 5_000)]);
}

#[test]
fn hello_retry_request_costs_a_round_trip() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls13().record());
    talk.server(&[hello_retry_request(), change_cipher_spec()].concat());
    talk.client(&[change_cipher_spec(), Hello::tls13().sni("second").record()].concat());
    talk.server(&[server_hello13(0x1301, false), server_flight13(false)].concat());
    talk.client(&data(FINISHED13));
    let shake = talk.end();
    assert!(shake.hello_retry);
    assert_eq!((shake.hello, shake.server_hello), (Some(at(1)), Some(at(4))));
    assert_eq!((shake.round_trips, shake.kind, shake.outcome), (Some(2), Some(Kind::Full), Outcome::Complete));
    assert_eq!(shake.sni.as_deref(), Some("example.org"));
}

#[test]
fn client_certificate_precedes_the_finished() {
    for flight in [vec![900, 281], vec![25]] {
        let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
        let records: Vec<u8> = flight.iter().flat_map(|&size| data(size)).collect();
        let sent = talk.client(&[change_cipher_spec(), records, data(FINISHED13), data(77)].concat());
        talk.server(&data(3_000));
        assert_eq!(talk.sizes(), [(Client, 77), (Server, 3_000)]);
        let shake = talk.end();
        assert_eq!((shake.client_auth, shake.ready), (Some(true), Some(sent)), "{flight:?}");
    }
}

#[test]
fn clients_own_extensions_are_no_certificate() {
    let hello = Hello::tls13().extension(17513, vec![0, 3, 2, b'h', b'2']);
    let mut talk = Talk::new().hellos13(&hello, false);
    talk.client(&[data(36), data(FINISHED13)].concat());
    let shake = talk.end();
    assert_eq!((shake.client_auth, shake.outcome), (Some(false), Outcome::Complete));
}

#[test]
fn flight_in_one_record_ends_when_the_server_goes_on() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    let sent = talk.client(&[data(1_400), data(88)].concat());
    assert!(talk.tls.next_handshake().is_none());
    talk.server(&data(4_000));
    let shake = talk.handshake();
    assert_eq!((shake.ready, shake.client_auth, shake.outcome), (Some(sent), Some(true), Outcome::Complete));
    assert_eq!(talk.sizes(), [(Client, 88), (Server, 4_000)]);
}

#[test]
fn servers_late_first_flight_does_not_end_the_clients() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls13().record());
    talk.server(&[server_hello13(0x1301, false), data(23)].concat());
    talk.server(&[data(836), data(281), data(53)].concat());
    let before = talk.sent.client;
    talk.client(&data(900));
    talk.send_having_seen(Server, &data(255), before);
    assert!(talk.tls.next_handshake().is_none());
    talk.client(&[data(281), data(FINISHED13)].concat());
    assert_eq!(talk.handshake().client_auth, Some(true));
}

#[test]
fn alert_instead_of_finished_rejects_the_certificate() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    talk.client(&[change_cipher_spec(), data(19)].concat());
    talk.fin(Client);
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.alert.as_deref(), shake.ready), (Outcome::Failed, Some("encrypted"), None));
    assert_eq!(talk.sizes(), []);
}

#[test]
fn clear_alert_after_the_server_hello_is_named() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    talk.client(&alert(2, 48));
    assert_eq!(talk.end().alert.as_deref(), Some("fatal unknown_ca (48)"));
}

#[test]
fn capture_that_ends_before_the_finished_is_incomplete() {
    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.kind), (Outcome::Incomplete, Some(Kind::Full)));
    assert_eq!(talk.sizes(), []);
}

#[test]
fn server_done_is_what_the_client_had_acknowledged() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls13().record());
    // One record for the whole flight (BoringSSL), then tickets that the client has not seen yet.
    let done = talk.server(&[server_hello13(0x1301, false), data(2_900)].concat());
    let acked = talk.sent.server;
    talk.server(&[data(255), data(255)].concat());
    talk.send_having_seen(Client, &[finished13(), data(80)].concat(), acked);
    talk.server(&data(700));
    assert_eq!(talk.handshake().server_done, Some(done));
    assert_eq!(talk.sizes(), [(Client, 80), (Server, 700)], "tickets of another size came already");
}

fn early_hello() -> Hello {
    Hello::tls13().extension(42, vec![]).extension(41, vec![0; 40])
}

#[test]
fn accepted_early_data_is_the_request() {
    let mut talk = Talk::new();
    let hello = talk.client(&[early_hello().record(), change_cipher_spec(), data(35)].concat());
    assert_eq!(talk.sizes(), [], "not before it is known whether the server takes it");
    talk.server(&[server_hello13(0x1301, true), data(40), data(53)].concat());
    talk.server(&data(8_000));
    talk.client(&[data(21), data(FINISHED13)].concat());
    let records = talk.records();
    assert_eq!(records.iter().map(|r| (r.from, r.bytes)).collect::<Vec<_>>(), [(Client, 35), (Server, 8_000)]);
    assert_eq!(records[0].first, hello);
    let shake = talk.end();
    assert_eq!((shake.kind, shake.early_data, shake.round_trips), (Some(Kind::Psk0Rtt), Some(true), Some(0)));
    assert_eq!((shake.ready, shake.complete, shake.server_done), (Some(hello), Some(at(4)), Some(at(2))));
}

#[test]
fn rejected_early_data_is_waste() {
    let mut talk = Talk::new();
    talk.client(&[early_hello().record(), data(35)].concat());
    talk.server(&[server_hello13(0x1301, true), data(40), data(53)].concat());
    let sent = talk.client(&[finished13(), data(37)].concat());
    talk.server(&data(8_000));
    assert_eq!(talk.sizes(), [(Client, 37), (Server, 8_000)]);
    let shake = talk.end();
    assert_eq!((shake.kind, shake.early_data, shake.ready), (Some(Kind::Psk), Some(false), Some(sent)));
}

#[test]
fn early_data_of_the_finisheds_size_is_not_the_finished() {
    let mut talk = Talk::new();
    talk.client(&[early_hello().record(), data(FINISHED13)].concat());
    talk.server(&[server_hello13(0x1301, true), data(40), data(53)].concat());
    talk.client(&[data(21), data(FINISHED13)].concat());
    talk.server(&data(2_500));
    assert_eq!(talk.sizes(), [(Client, 53), (Server, 2_500)]);
    assert_eq!(talk.end().kind, Some(Kind::Psk0Rtt));
}

#[test]
fn retry_rejects_early_data() {
    let mut talk = Talk::new();
    talk.client(&[early_hello().record(), data(35)].concat());
    talk.server(&hello_retry_request());
    talk.client(&[data(35), Hello::tls13().record()].concat());
    talk.server(&[server_hello13(0x1301, false), server_flight13(false)].concat());
    talk.client(&[data(FINISHED13), data(37)].concat());
    talk.server(&data(8_000));
    assert_eq!(talk.sizes(), [(Client, 37), (Server, 8_000)]);
    let shake = talk.end();
    assert_eq!((shake.kind, shake.early_data, shake.round_trips), (Some(Kind::Full), Some(false), Some(2)));
}

#[test]
fn much_early_data_is_bounded() {
    let mut talk = Talk::new();
    talk.client(&early_hello().record());
    for _ in 0..200 {
        talk.client(&data(1_000));
    }
    talk.server(&[server_hello13(0x1301, true), data(40), data(53)].concat());
    talk.client(&[data(21), data(FINISHED13)].concat());
    talk.tls.finish();
    assert!(talk.records().len() <= crate::tls::MAX_HELD);
}
