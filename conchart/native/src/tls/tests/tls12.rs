//! TLS 1.2 and older: the clear handshake.

use super::build::*;
use crate::stream::Side::{Client, Server};
use crate::tls::{Kind, Outcome, Tls, Version};

#[test]
fn full_handshake_is_ready_when_the_servers_finished_arrives() {
    let mut talk = Talk::new().full12();
    let shake = talk.handshake();
    assert_eq!(shake.hello, Some(at(1)));
    assert_eq!(shake.server_hello, Some(at(2)));
    assert_eq!(shake.server_done, Some(at(2)));
    assert_eq!(shake.client_finished, Some(at(3)));
    assert_eq!((shake.ready, shake.complete), (Some(at(4)), Some(at(4))));
    assert_eq!((shake.kind, shake.outcome, shake.round_trips), (Some(Kind::Full), Outcome::Complete, Some(2)));
    assert_eq!(shake.version.map(Version::name).as_deref(), Some("TLSv1.2"));
    assert_eq!(shake.cipher.as_deref(), Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"));
    assert_eq!(shake.named_group.as_deref(), Some("x25519"));
    assert_eq!(shake.sni.as_deref(), Some("example.org"));
    assert_eq!(shake.client_random, Some([0x11; 32]));
    assert_eq!(shake.alpn.as_deref(), Some("http/1.1"));
    assert_eq!((shake.certificates, shake.certificate_bytes), (Some(2), Some(3 + 3 + 900 + 3 + 1100)));
    assert_eq!((shake.client_auth, shake.false_start, shake.early_data), (Some(false), Some(false), Some(false)));
    assert_eq!((shake.bytes_client, shake.bytes_server), (talk.sent.client, talk.sent.server));
    assert!(!shake.inferred && !shake.hello_retry && shake.alert.is_none());
    assert_eq!(talk.tls.requester(), Some(Client));
}

#[test]
fn ready_is_the_last_byte_of_the_finished_record() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&finished12());
    let finished = finished12();
    talk.server(&finished[..12]);
    assert!(talk.tls.next_handshake().is_none());
    let last = talk.server(&finished[12..]);
    assert_eq!(talk.handshake().ready, Some(last));
}

#[test]
fn request_in_the_segment_of_the_finished_is_a_false_start() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    let sent = talk.client(&[finished12(), data(200)].concat());
    assert_eq!(talk.sizes(), [(Client, 200)]);
    talk.server(&finished12());
    talk.server(&data(900));
    assert_eq!(talk.sizes(), [(Server, 900)]);
    let shake = talk.end();
    assert_eq!((shake.ready, shake.complete), (Some(sent), Some(at(4))));
    assert_eq!((shake.false_start, shake.round_trips, shake.kind), (Some(true), Some(1), Some(Kind::Full)));
}

fn resume(hello: &Hello, session_id: &[u8]) -> crate::tls::Handshake {
    let mut talk = Talk::new();
    talk.client(&hello.record());
    let ticket = record(22, &message(4, &[0; 180]));
    talk.server(&[record(22, &server_hello(0x0303, 0xc02f, session_id, &[])), ticket, finished12()].concat());
    talk.client(&[finished12(), data(100)].concat());
    assert_eq!(talk.sizes(), [(Client, 100)]);
    talk.end()
}

#[test]
fn ticket_resumption_is_ready_when_the_servers_finished_arrives() {
    let shake = resume(&Hello::tls12().extension(35, vec![1; 160]), &[]);
    assert_eq!((shake.kind, shake.round_trips, shake.false_start), (Some(Kind::Ticket), Some(1), Some(false)));
    assert_eq!((shake.ready, shake.server_done, shake.complete), (Some(at(2)), Some(at(2)), Some(at(3))));
    assert_eq!((shake.certificates, shake.client_auth), (None, Some(false)));
}

#[test]
fn echoed_session_id_is_a_resumption() {
    let hello = Hello { session_id: vec![5; 32], ..Hello::tls12() }.extension(35, vec![]);
    assert_eq!(resume(&hello, &[5; 32]).kind, Some(Kind::SessionId));
}

#[test]
fn session_id_beside_a_ticket_counts_as_ticket() {
    let hello = Hello { session_id: vec![5; 32], ..Hello::tls12() }.extension(35, vec![1; 9]);
    assert_eq!(resume(&hello, &[5; 32]).kind, Some(Kind::Ticket));
}

#[test]
fn offers_prove_nothing() {
    let mut talk = Talk::new();
    let hello = Hello { session_id: vec![5; 32], ..Hello::tls12() }.extension(35, vec![1; 160]);
    talk.client(&hello.record());
    let ours = record(22, &server_hello(0x0303, 0xc02f, &[5; 32], &[]));
    talk.server(&[ours, record(22, &certificate(&[500])), record(22, &message(14, &[]))].concat());
    talk.client(&finished12());
    talk.server(&finished12());
    assert_eq!(talk.end().kind, Some(Kind::Full));
}

#[test]
fn unfinished_handshake_has_no_kind() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().extension(35, vec![1; 160]).record());
    talk.server(&record(22, &server_hello(0x0303, 0xc02f, &[], &[])));
    let shake = talk.end();
    assert_eq!((shake.kind, shake.outcome, shake.ready), (None, Outcome::Incomplete, None));
}

#[test]
fn connection_closed_before_ready_failed() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.fin(Server);
    assert_eq!(talk.end().outcome, Outcome::Failed);
}

#[test]
fn clear_alert_ends_the_handshake() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&alert(2, 40));
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.alert.as_deref()), (Outcome::Failed, Some("fatal handshake_failure (40)")));
    assert!(shake.ready.is_none() && shake.round_trips.is_none());
}

#[test]
fn warning_lets_the_handshake_go_on() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&[alert(1, 112), server_flight12()].concat());
    talk.client(&finished12());
    talk.server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.alert), (Outcome::Complete, None));
}

#[test]
fn close_notify_during_the_handshake_is_a_failure() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&alert(1, 0));
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.alert.as_deref()), (Outcome::Failed, Some("warning close_notify (0)")));
}

#[test]
fn encrypted_alert_in_place_of_finished_is_a_failure() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&finished12());
    talk.server(&[change_cipher_spec(), record(21, &[9; 26])].concat());
    talk.server(&data(100));
    assert_eq!(talk.sizes(), []);
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.alert.as_deref()), (Outcome::Failed, Some("encrypted")));
}

/// `ndpi__malware`, stream 2: who needs nothing any more closes in the flight of its Finished.
#[test]
fn a_client_may_close_before_the_servers_finished_comes() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&[finished12(), record(21, &[9; 26])].concat());
    talk.fin(Client);
    assert!(talk.tls.next_handshake().is_none());
    let last = talk.server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.kind, shake.alert), (Outcome::Complete, Some(Kind::Full), None));
    assert_eq!((shake.ready, shake.complete), (Some(last), Some(last)));
}

#[test]
fn a_client_that_closes_and_gets_no_finished_has_failed() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&[finished12(), record(21, &[9; 26])].concat());
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.alert.as_deref()), (Outcome::Failed, Some("encrypted")));
    assert_eq!((shake.ready, shake.complete), (None, None));
}

#[test]
fn close_notify_after_the_handshake_is_not_data() {
    let mut talk = Talk::new().full12();
    talk.client(&data(100));
    talk.client(&record(21, &[9; 26]));
    assert_eq!(talk.sizes(), [(Client, 100)]);
    let shake = talk.end();
    assert_eq!((shake.outcome, shake.alert), (Outcome::Complete, None));
}

#[test]
fn certificate_request_is_client_authentication() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    let hello = record(22, &server_hello(0x0303, 0xc02f, &[], &[]));
    let asks = record(22, &[certificate(&[700]), message(13, &[1, 1, 0, 0, 0, 0]), message(14, &[])].concat());
    talk.server(&[hello, asks].concat());
    talk.client(&[record(22, &certificate(&[600])), finished12()].concat());
    talk.server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.client_auth, shake.certificates), (Some(true), Some(1)));
    assert_eq!(shake.certificate_bytes, Some(706), "the server's chain, not the client's");
}

#[test]
fn messages_may_share_a_record_or_span_several() {
    let stream =
        [server_hello(0x0303, 0xc030, &[], &[]), certificate(&[40_000, 20]), key_exchange(23), message(14, &[])]
            .concat();
    for size in [1_000, 16_384] {
        let mut talk = Talk::new();
        talk.client(&Hello::tls12().record());
        let records: Vec<u8> = stream.chunks(size).flat_map(|part| record(22, part)).collect();
        talk.server(&records);
        talk.client(&finished12());
        talk.server(&finished12());
        let shake = talk.end();
        assert_eq!((shake.certificates, shake.certificate_bytes), (Some(2), Some(40_029)));
        assert_eq!(shake.named_group.as_deref(), Some("secp256r1"));
        assert_eq!(shake.kind, Some(Kind::Full));
    }
}

#[test]
fn older_versions_have_their_names() {
    for (code, name) in [(0x0300, "SSLv3"), (0x0301, "TLSv1.0"), (0x0302, "TLSv1.1"), (0x0303, "TLSv1.2")] {
        let mut talk = Talk::new();
        talk.client(&Hello { version: code, extensions: vec![], ..Hello::tls12() }.record());
        talk.server(&record(22, &server_hello(code, 0x0005, &[], &[])));
        let shake = talk.end();
        assert_eq!(shake.version.map(Version::name).as_deref(), Some(name));
        assert_eq!(shake.cipher.as_deref(), Some("TLS_RSA_WITH_RC4_128_SHA"));
    }
}

#[test]
fn sslv2_compatible_hello_opens_a_handshake() {
    let mut talk = Talk::new();
    let body = [&[1, 3, 1, 0, 6, 0, 0, 0, 16, 0, 0, 5, 1, 0, 0x80][..], &[0xcc; 16]].concat();
    talk.client(&[&[0x80, body.len() as u8][..], &body].concat());
    talk.server(&server_flight12());
    talk.client(&finished12());
    talk.server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.hello, shake.kind, shake.outcome), (Some(at(1)), Some(Kind::Full), Outcome::Complete));
    assert_eq!((shake.bytes_client, shake.bytes_server), (talk.sent.client, talk.sent.server));
    assert!(shake.ja3.is_none());
}

#[test]
fn sslv2_itself_is_named_and_not_followed() {
    let mut talk = Talk::new();
    talk.client(&[&[0x80, 28, 1, 0, 2, 0, 3, 0, 0, 0, 16, 1, 0, 0x80][..], &[0xcc; 16]].concat());
    talk.server(&[&[0x80, 11, 4, 0, 1, 0, 2, 0, 0, 0, 0, 0, 16][..], &[1; 30]].concat());
    talk.client(&[0x17; 40]);
    talk.fin(Server);
    assert_eq!(talk.sizes(), []);
    let shake = talk.end();
    assert_eq!((shake.version.map(Version::name).as_deref(), shake.outcome), (Some("SSLv2"), Outcome::Incomplete));
}

#[test]
fn renegotiation_is_a_handshake_of_its_own() {
    let mut talk = Talk::new().full12();
    talk.server(&record(22, &[0xee; 28])); // HelloRequest, encrypted
    talk.client(&data(50));
    let first = talk.client(&record(22, &[0xee; 200]));
    talk.server(&record(22, &[0xee; 900]));
    talk.client(&[record(22, &[0xee; 90]), finished12()].concat());
    talk.server(&data(70));
    let last = talk.server(&finished12());
    talk.client(&data(60));
    assert_eq!(talk.sizes(), [(Client, 50), (Server, 70), (Client, 60)]);
    assert_eq!(talk.handshake().number, 0);
    let second = talk.end();
    assert_eq!((second.number, second.hello, second.hello_by), (1, Some(first), Some(Client)));
    assert_eq!((second.outcome, second.complete, second.version), (Outcome::Complete, Some(last), None));
}

#[test]
fn hello_request_alone_starts_nothing() {
    let mut talk = Talk::new().full12();
    talk.server(&record(22, &[0xee; 28]));
    talk.client(&data(50));
    assert_eq!(talk.sizes(), [(Client, 50)]);
    assert_eq!(talk.end().number, 0);
}

#[test]
fn hello_from_the_tcp_server_is_a_reverse_tunnel() {
    let mut talk = Talk::new();
    talk.server(&Hello::tls12().record());
    talk.client(&server_flight12());
    talk.server(&finished12());
    let ready = talk.client(&finished12());
    talk.server(&data(10));
    assert_eq!(talk.sizes(), [(Server, 10)]);
    assert_eq!(talk.tls.requester(), Some(Server));
    let shake = talk.end();
    assert_eq!((shake.hello_by, shake.ready, shake.kind), (Some(Server), Some(ready), Some(Kind::Full)));
    assert_eq!((shake.bytes_client, shake.bytes_server), (talk.sent.client, talk.sent.server - 15));
}

#[test]
fn what_was_agreed_is_said_once_and_the_handshake_is_open_until_it_is_fetched() {
    let mut talk = Talk::new().full12();
    assert_eq!(talk.tls.earliest_open(), Some(at(1)));
    let agreement = talk.tls.next_agreement().unwrap();
    assert_eq!((agreement.alpn.as_deref(), agreement.ready), (Some("http/1.1"), Some(at(4))));
    assert!(!agreement.asks_later);
    assert_eq!(talk.tls.next_agreement(), None);
    assert_eq!((talk.tls.earliest_open(), talk.tls.handshakes()), (Some(at(1)), 1));
    talk.handshake();
    assert_eq!((talk.tls.earliest_open(), talk.tls.next_agreement()), (None, None));
}

#[test]
fn protocols_that_the_client_offered_are_listed() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().alpn_list(&["h2", "http/1.1", "\u{fc}"]).record());
    assert_eq!(talk.end().alpn_offered.as_deref(), Some("h2,http/1.1,\u{fc}"));
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    assert_eq!(talk.end().alpn_offered, None);
}

#[test]
fn established_connection_is_small() {
    assert!(size_of::<Tls>() < 208, "{}", size_of::<Tls>());
    let mut talk = Talk::new().full12();
    talk.client(&data(10));
    talk.handshake();
    talk.records();
    assert!(talk.tls.holds_nothing());
}

#[test]
fn a_hello_after_its_answer_is_not_the_one_that_was_answered() {
    let mut talk = Talk::new();
    let answer = talk.server(&server_flight12());
    talk.client(&Hello::tls12().record());
    let handshake = talk.end();
    assert_eq!((handshake.hello, handshake.server_hello, handshake.hello_by), (None, Some(answer), Some(Client)));
}
