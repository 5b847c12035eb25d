use super::super::generic::turns::{Run, Turns, Units};
use super::super::ledger::Ledger;
use super::super::reader::Start;
use super::talk::{Talk, moment, short};
use crate::stream::{Moment, Side};
use crate::tls::build::{Hello, data, finished12, server_flight12};

#[test]
fn an_unknown_protocol_takes_turns() {
    let mut talk = Talk::new().client("\x01ask").client("more").server("ans").server("wer").client("\x01again");
    let [e] = &talk.settled()[..] else { panic!() };
    assert_eq!(short(e.request), (Some(1), Some(2), 8, true));
    assert_eq!(short(e.response), (Some(3), Some(4), 6, true));
    assert_eq!((e.protocol, e.inferred, e.confidence), ("unknown", true, 0.8));
    assert_eq!((e.method.as_deref(), e.status, e.client_keepalive), (None, None, None));
    assert_eq!(talk.conversation.app(), Some("unknown"));
    let found = talk.exchanges();
    assert_eq!((found[0].number, found[0].response.first, found[0].response.done), (1, None, false));
}

#[test]
fn a_banner_is_a_response_without_a_request() {
    let talk = Talk::new().server("220 mail.example ESMTP\r\n").client("EHLO me\r\n").server("250 hello\r\n");
    let found = talk.exchanges();
    assert_eq!((found[0].requester, found[0].request.first), (Side::Client, None));
    assert_eq!(short(found[0].response), (Some(1), Some(1), 24, true));
    assert_eq!((short(found[1].request).0, short(found[1].response).0), (Some(2), Some(3)));
    // The capture just ended: whether the last response was complete, nobody knows.
    assert!(!found[1].response.done);
}

#[test]
fn closing_the_connection_ends_the_last_response() {
    for side in [Side::Client, Side::Server] {
        let found = Talk::new().client("\x01ask").server("answer").fin(side).exchanges();
        assert!(found[0].request.done && found[0].response.done, "{side:?}");
    }
}

#[test]
fn a_short_first_word_is_judged_when_the_connection_ends() {
    let mut talk = Talk::new().client("GE");
    assert_eq!(talk.conversation.app(), Some("unknown"));
    assert!(talk.conversation.earliest_open().is_some());
    let found = talk.finish();
    assert_eq!((found[0].protocol, short(found[0].request)), ("unknown", (Some(1), Some(1), 2, true)));
}

#[test]
fn a_connection_without_a_byte_has_no_exchange_and_no_protocol() {
    let mut talk = Talk::new().fin(Side::Client).fin(Side::Server);
    assert!(talk.finish().is_empty());
    assert_eq!(talk.conversation.app(), None);
}

#[test]
fn missing_bytes_belong_to_the_turn_of_who_sent_them_and_lower_the_confidence() {
    let talk = Talk::new().client("\x01ask").gap(Side::Server, 100).server("answer").client("\x01next");
    let found = talk.exchanges();
    assert_eq!((short(found[0].response), found[0].confidence), ((Some(3), Some(3), 106, true), 0.5));
    assert_eq!(found[1].confidence, 0.8);
}

/// Headers of records that the snap length cut off: only the first packet of a response shows one.
#[test]
fn a_response_of_tls_goes_on_where_the_snap_length_cut_the_headers_of_its_records() {
    let talk = Talk::new()
        .client(Hello::tls12().record())
        .server([server_flight12(), finished12()].concat())
        .client(finished12())
        .client(data(100))
        .say(Side::Server, &data(1_000)[..60], 1_388)
        .say(Side::Server, &[0x55; 60], 1_388)
        .say(Side::Server, &[0x55; 60], 40)
        .client(data(120))
        .server(data(30));
    let found = talk.fin(Side::Server).exchanges();
    assert_eq!(short(found[0].request), (Some(4), Some(4), 100, true));
    assert_eq!(short(found[0].response), (Some(5), Some(7), 1_000 + 443 + 1_448 + 100, true));
    assert_eq!((found[0].confidence, short(found[1].response).0), (0.5, Some(9)));
}

#[test]
fn an_upload_over_tls_goes_on_where_the_snap_length_cut_the_headers_of_its_records() {
    let talk = Talk::new()
        .client(Hello::tls12().record())
        .server([server_flight12(), finished12()].concat())
        .client(finished12())
        .say(Side::Client, &data(1_000)[..60], 1_388)
        .say(Side::Client, &[0x55; 60], 1_388)
        .server(data(200));
    let found = talk.fin(Side::Server).exchanges();
    assert_eq!(found.len(), 1);
    assert_eq!(short(found[0].request), (Some(4), Some(5), 1_000 + 443 + 1_448, true));
    assert_eq!(short(found[0].response).0, Some(6));
}

#[test]
fn what_no_record_is_known_of_begins_no_exchange() {
    let flight = [server_flight12(), finished12(), data(50)].concat();
    let talk = Talk::new()
        .client(Hello::tls12().record())
        .client(finished12())
        .say(Side::Server, &flight[..flight.len() - 52], 52)
        .client(data(100))
        .server(data(200));
    let found = talk.fin(Side::Server).exchanges();
    assert_eq!(
        (found.len(), short(found[0].request), found[0].response.bytes),
        (1, (Some(4), Some(4), 100, true), 200)
    );
}

#[test]
fn whoever_asks_before_the_answer_arrived_does_not_take_turns() {
    let mut talk = Talk::new().client("\x01ask").server("answer");
    talk = talk.unacked(Side::Server, 6).client("\x02more").server("answer");
    let found = talk.exchanges();
    assert!(found.iter().all(|e| e.confidence == 0.3));
}

#[test]
fn protocols_whose_requests_only_look_like_http_are_not_read_as_http() {
    let sip = "OPTIONS sip:bob@example.com SIP/2.0\r\nVia: x\r\nContent-Length: 0\r\n\r\n";
    let talk = Talk::new().client(sip).server("SIP/2.0 200 OK\r\n\r\n").client(sip).server("SIP/2.0 200 OK\r\n\r\n");
    assert_eq!(talk.conversation.app(), Some("unknown"));
    let found = talk.exchanges();
    let spans: Vec<_> = found.iter().map(|e| (short(e.request).0, short(e.response).0)).collect();
    assert_eq!(spans, [(Some(1), Some(2)), (Some(3), Some(4))]);
    assert!(found.iter().all(|e| e.inferred && e.method.is_none() && e.protocol == "unknown"));
}

/// Records of TLS: who, how long, and whether it has the size of a 100 (Continue).
fn turns_of_records(records: &[(Side, u64, bool)]) -> Vec<super::super::Exchange> {
    let mut ledger = Ledger::default();
    let mut turns = Turns::new(Start::Beginning, "tls", Units::Records);
    for (nth, &(from, bytes, may_be_interim)) in records.iter().enumerate() {
        let first = moment(nth as u64 + 1);
        turns.add(&mut ledger, &Run { may_be_interim, ..Run::new(from, (first, first), bytes) });
    }
    turns.finish(&mut ledger);
    std::iter::from_fn(|| ledger.next_exchange()).collect()
}

#[test]
fn what_has_the_size_of_100_continue_is_no_response_when_the_client_goes_on() {
    let (client, server) = (Side::Client, Side::Server);
    let found =
        turns_of_records(&[(client, 300, false), (server, 42, true), (client, 900, false), (server, 500, false)]);
    let [e] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!((short(e.request).0, short(e.request).1, e.request.bytes), (Some(1), Some(3), 1_200));
    assert_eq!((short(e.response).0, e.response.bytes, e.confidence), (Some(4), 500, 0.8));
}

#[test]
fn a_certificate_asked_for_in_the_middle_is_part_of_the_wait() {
    let turns_where = |expects: bool| {
        let mut ledger = Ledger::default();
        let mut turns = Turns::new(Start::Beginning, "tls", Units::Records);
        if expects {
            turns.expect_certificate_request();
        }
        let records = [(Side::Client, 130), (Side::Server, 137), (Side::Client, 1_696), (Side::Client, 281)];
        for (nth, (from, bytes)) in records.into_iter().chain([(Side::Client, 69), (Side::Server, 700)]).enumerate() {
            let first = moment(nth as u64 + 1);
            let run = Run::new(from, (first, first), bytes);
            turns.add(&mut ledger, &Run { may_be_finished: bytes == 69, ..run });
        }
        turns.finish(&mut ledger);
        std::iter::from_fn(|| ledger.next_exchange()).collect::<Vec<_>>()
    };
    let [e] = &turns_where(true)[..] else { panic!() };
    assert_eq!((short(e.request).1, short(e.response).0, e.confidence), (Some(1), Some(6), 0.8));
    assert_eq!(turns_where(false).len(), 2, "a client that never offered it");
}

#[test]
fn what_has_the_size_of_100_continue_is_a_response_when_the_server_goes_on_or_nobody_does() {
    let (client, server) = (Side::Client, Side::Server);
    let found = turns_of_records(&[(client, 300, false), (server, 42, true), (server, 500, false)]);
    assert_eq!((short(found[0].response).0, found[0].response.bytes), (Some(2), 542));
    let found = turns_of_records(&[(client, 300, false), (server, 42, true)]);
    assert_eq!((short(found[0].response).0, found[0].response.bytes), (Some(2), 42));
    // A request without room for a head is not one that waits.
    let found = turns_of_records(&[(client, 30, false), (server, 42, true), (client, 30, false)]);
    assert_eq!(found.len(), 2);
}

#[test]
fn bytes_that_end_a_record_are_not_missing_beyond_it() {
    let record = [&[23, 3, 3, 0, 100][..], &[0xda; 40]].concat();
    let found = Talk::midstream().client(record).gap(Side::Client, 60 + 50).exchanges();
    assert_eq!(found.iter().map(|e| e.request.bytes).collect::<Vec<_>>(), [100 + 50]);
}

/// Records that take several packets: who, from which frame to which, how long.
fn turns_of_long_records(records: &[(Side, u64, u64, u64)]) -> Vec<super::super::Exchange> {
    let mut ledger = Ledger::default();
    let mut turns = Turns::new(Start::Beginning, "tls", Units::Records);
    for &(from, first, last, bytes) in records {
        turns.add(&mut ledger, &Run::new(from, (moment(first), moment(last)), bytes));
    }
    turns.finish(&mut ledger);
    std::iter::from_fn(|| ledger.next_exchange()).collect()
}

#[test]
fn a_request_that_is_refused_in_the_middle_of_a_record_is_one_request() {
    let (client, server) = (Side::Client, Side::Server);
    let found = turns_of_long_records(&[(client, 1, 5, 16_000), (server, 9, 9, 300), (client, 6, 14, 16_000)]);
    let [e] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!((short(e.request).1, short(e.response).0, e.request.bytes), (Some(14), Some(9), 32_000));
    // Its later records belong to it, too; the next request is one of its own.
    let mut records =
        vec![(client, 1, 5, 16_000), (server, 9, 9, 300), (client, 6, 14, 16_000), (client, 15, 20, 4_000)];
    assert_eq!(turns_of_long_records(&records)[0].request.bytes, 36_000);
    records.extend([(server, 30, 30, 200), (client, 31, 31, 80)]);
    let found = turns_of_long_records(&records);
    assert_eq!(found.iter().map(|e| e.request.bytes).collect::<Vec<_>>(), [36_000, 80]);
    // What came in the middle was not the response when the server goes on.
    assert_eq!((short(found[0].response).0, found[0].response.bytes, found[0].confidence), (Some(30), 200, 0.8));
}

#[test]
fn a_record_that_begins_after_the_response_is_another_request() {
    let (client, server) = (Side::Client, Side::Server);
    let found = turns_of_long_records(&[(client, 1, 5, 16_000), (server, 9, 9, 300), (client, 10, 14, 16_000)]);
    assert_eq!(found.len(), 2);
}

/// A record of each side, so many milliseconds after the one before.
fn turns_in_time(records: &[(Side, i64)]) -> Vec<super::super::Exchange> {
    let mut ledger = Ledger::default();
    let mut turns = Turns::new(Start::Beginning, "tls", Units::Records);
    let mut at = 0;
    for (frame, (from, after_ms)) in (1..).zip(records) {
        at += after_ms * 1_000_000;
        let seen = Moment::new(at, frame, Side::Client);
        turns.add(&mut ledger, &Run::new(*from, (seen, seen), 100));
    }
    turns.finish(&mut ledger);
    std::iter::from_fn(|| ledger.next_exchange()).collect()
}

#[test]
fn whoever_goes_on_after_a_long_silence_says_something_new() {
    let (client, server) = (Side::Client, Side::Server);
    let found = turns_in_time(&[(client, 0), (client, 30), (client, 13_870), (server, 20)]);
    let [unanswered, answered] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!((short(unanswered.request).0, short(unanswered.request).1), (Some(1), Some(2)));
    assert_eq!((unanswered.response.first, unanswered.ended.map(|at| at.frame())), (None, Some(2)));
    assert_eq!((short(answered.request).0, short(answered.response).0), (Some(3), Some(4)));
}

#[test]
fn a_pause_within_an_upload_is_part_of_it() {
    let (client, server) = (Side::Client, Side::Server);
    // curl waits a second for 100 (Continue), then sends the body.
    let found = turns_in_time(&[(client, 0), (client, 1_001), (client, 30), (server, 5_000)]);
    let [upload] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!((short(upload.request).1, short(upload.response).0), (Some(3), Some(4)));
}

#[test]
fn the_latest_request_waits_when_the_capture_ends() {
    let found = turns_in_time(&[(Side::Client, 0)]);
    assert!(found[0].request.done && !found[0].response.done);
}
