//! The record walk: parts, gaps, nonsense.

use super::build::*;
use crate::stream::Side::{Client, Server};
use crate::tls::{Kind, Outcome, Sniff, Tls, Version, sniff, sniff_midstream};

#[test]
fn record_over_several_packets_has_its_first_and_last() {
    let mut talk = Talk::new().full12();
    let bytes = data(3_000);
    let first = talk.server(&bytes[..2]);
    talk.server(&bytes[2..1_400]);
    let last = talk.server(&bytes[1_400..]);
    let records = talk.records();
    assert_eq!((records[0].first, records[0].last, records[0].bytes), (first, last, 3_000));
    assert!((records[0].confidence - 1.0).abs() < f64::EPSILON);
}

#[test]
fn record_whose_end_overtook_its_middle_ends_when_it_is_whole() {
    let mut talk = Talk::new().full12();
    let bytes = data(3_000);
    let before = talk.frame;
    // Frame by frame as sent; the last third was captured first, a retransmission filled the gap.
    for (frame, part) in
        [(before + 2, &bytes[..1_000]), (before + 3, &bytes[1_000..2_000]), (before + 1, &bytes[2_000..])]
    {
        talk.frame = frame - 1;
        talk.server(part);
    }
    let record = talk.records()[0];
    assert_eq!((record.first, record.last), (at(before + 2), at(before + 3)));
}

#[test]
fn gap_inside_a_record_is_skipped() {
    let mut talk = Talk::new().full12();
    let bytes = data(3_000);
    talk.server(&bytes[..1_000]);
    talk.gap(Server, 1_500);
    talk.server(&[&bytes[2_500..], &data(44)].concat());
    assert_eq!(talk.sizes(), [(Server, 3_000), (Server, 44)]);
}

#[test]
fn gap_to_the_end_of_a_record_ends_it() {
    let mut talk = Talk::new().full12();
    talk.server(&data(3_000)[..1_000]);
    talk.gap(Server, 2_005);
    assert_eq!(talk.sizes(), [(Server, 3_000)]);
}

#[test]
fn gap_beyond_a_record_waits_for_a_plausible_header() {
    let mut talk = Talk::new().full12();
    talk.server(&data(3_000)[..1_000]);
    talk.gap(Server, 5_000);
    talk.server(&[0x55; 700]);
    talk.server(&[record(23, &[1; 20]), vec![9; 30]].concat());
    talk.server(&[data(60), data(70)].concat());
    talk.client(&data(10));
    assert_eq!(talk.sizes(), [(Server, 3_000), (Server, 60), (Server, 70), (Client, 10)]);
}

#[test]
fn bytes_the_snap_length_cut_are_skipped() {
    let mut talk = Talk::new().full12();
    talk.send_cut(Server, &data(1_000), 40);
    talk.send_cut(Server, &[data(20), data(900)].concat(), 60);
    talk.send_cut(Server, &[data(1_000), data(30)].concat(), 60); // the second header is missing
    talk.server(&data(80));
    assert_eq!(talk.sizes().len(), 5);
}

#[test]
fn cut_hello_still_tells_its_beginning() {
    let hello = Hello::tls12().extension(21, vec![0; 400]).record();
    let mut talk = Talk::new();
    talk.send_cut(Client, &hello, 90);
    talk.send_cut(Server, &server_flight12(), 96);
    let shake = talk.end();
    assert_eq!(shake.sni.as_deref(), Some("example.org"));
    assert_eq!((shake.ja3, shake.ja4), (None, None), "not of half a hello");
    assert_eq!(shake.version.map(Version::name).as_deref(), Some("TLSv1.2"));
}

/// tcpdump -s 128 leaves 62 bytes: the ServerHello of TLS 1.3 says TLS 1.2 as far as that.
#[test]
fn cut_hellos_of_tls13_are_told_by_what_follows() {
    let mut talk = Talk::new();
    talk.send_cut(Client, &Hello::tls13().extension(21, vec![0; 200]).record(), 62);
    talk.send_cut(Server, &[server_hello13(0x1301, false), change_cipher_spec(), data(1_200)].concat(), 62);
    talk.client(&finished13());
    talk.client(&data(90));
    talk.server(&data(4_000));
    assert_eq!(talk.sizes(), [(Client, 90), (Server, 4_000)]);
    let shake = talk.handshake();
    assert_eq!((shake.version.map(Version::name).as_deref(), shake.outcome), (Some("TLSv1.3"), Outcome::Complete));
    assert_eq!((shake.kind, shake.cipher, shake.inferred), (None, None, true), "whether it resumes was cut off");
}

#[test]
fn cut_hellos_of_tls12_stay_tls12() {
    let hello = record(22, &server_hello(0x0303, 0xc02f, &[7; 32], &[]));
    let mut talk = Talk::new();
    talk.send_cut(Client, &Hello::tls12().extension(21, vec![0; 200]).record(), 62);
    talk.send_cut(Server, &hello, 62);
    talk.server(&finished12());
    talk.client(&finished12());
    talk.client(&data(90));
    assert_eq!(talk.sizes(), [(Client, 90)]);
    assert_eq!(talk.handshake().version.map(Version::name).as_deref(), Some("TLSv1.2"));
}

#[test]
fn a_client_key_exchange_in_clear_is_none_of_tls13_though_the_finished_behind_it_was_cut() {
    let flight = [server_flight12(), record(22, &message(14, &[]))].concat();
    let mut talk = Talk::new();
    talk.send_cut(Client, &Hello::tls12().extension(21, vec![0; 200]).record(), 62);
    talk.send_cut(Server, &flight, 62);
    talk.send_cut(Client, &[record(22, &message(16, &[4; 66])), finished12()].concat(), 62);
    talk.send_cut(Server, &[record(22, &message(4, &[9; 180])), finished12()].concat(), 62);
    talk.client(&data(90));
    talk.server(&data(4_000));
    assert_eq!(talk.sizes(), [(Client, 90), (Server, 4_000)]);
    assert_eq!(talk.handshake().version.map(Version::name).as_deref(), Some("TLSv1.2"));
}

#[test]
fn cut_certificate_keeps_its_length() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    let hello = record(22, &[server_hello(0x0303, 0xc02f, &[], &[]), message(22, &[0])].concat());
    talk.server(&hello);
    talk.send_cut(Server, &record(22, &certificate(&[3_000])), 60);
    talk.server(&[record(22, &key_exchange(24)), record(22, &message(14, &[]))].concat());
    talk.client(&finished12());
    talk.server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.certificates, shake.certificate_bytes), (None, Some(3_006)));
    assert_eq!((shake.kind, shake.named_group.as_deref()), (Some(Kind::Full), Some("secp384r1")));
}

#[test]
fn lost_server_flight_leaves_facts_unknown_and_data_readable() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().extension(35, vec![1; 30]).record());
    talk.gap(Server, 2_500);
    talk.client(&[record(22, &message(16, &[4; 66])), finished12()].concat());
    talk.server(&finished12());
    talk.client(&data(40));
    talk.server(&data(4_000));
    assert_eq!(talk.sizes(), [(Client, 40), (Server, 4_000)]);
    let shake = talk.end();
    assert_eq!((shake.version, shake.kind), (None, None));
    assert_eq!(shake.outcome, Outcome::Complete);
}

/// `ipfixprobe__functional-inputs-tls`, stream 22: the certificates are missing, and what follows them is there.
#[test]
fn messages_are_read_again_at_the_next_record_that_begins_with_one() {
    let certificates = record(22, &certificate(&[900, 1_100]));
    let rest = [record(22, &key_exchange(23)), record(22, &message(14, &[]))].concat();
    for (missing, chop) in [(certificates.len(), 1), (certificates.len(), usize::MAX), (1_000, usize::MAX)] {
        let mut talk = Talk::new();
        talk.client(&Hello::tls12().record());
        talk.server(&record(22, &server_hello(0x0303, 0xc02f, &[], &[])));
        talk.gap(Server, missing as u64);
        talk.server(&certificates[missing..]);
        // Out of step, a chunk has to begin with a whole header.
        talk.server(&rest[..5]);
        talk.chop = chop;
        let done = talk.server(&rest[5..]);
        talk.client(&[record(22, &message(16, &[4; 66])), finished12()].concat());
        talk.server(&finished12());
        let shake = talk.end();
        assert_eq!((shake.outcome, shake.kind), (Outcome::Complete, Some(Kind::Full)));
        assert_eq!((shake.named_group.as_deref(), shake.server_done), (Some("secp256r1"), Some(done)));
        assert_eq!((shake.client_auth, shake.certificates), (None, None), "nobody saw whether it was asked for");
    }
}

#[test]
fn a_record_after_missing_bytes_that_does_not_begin_with_a_message_is_none() {
    // A type that nobody knows, one byte more than the record has, and the middle of a certificate.
    for body in [message(99, &[0; 20]), vec![14, 0, 0, 1], vec![0x30; 600]] {
        let mut talk = Talk::new();
        talk.client(&Hello::tls12().record());
        talk.server(&record(22, &server_hello(0x0303, 0xc02f, &[], &[])));
        talk.gap(Server, 500);
        talk.server(&[record(22, &body), record(22, &[0])].concat());
        talk.client(&finished12());
        talk.server(&finished12());
        let shake = talk.end();
        assert_eq!((shake.outcome, shake.kind), (Outcome::Complete, None));
    }
}

#[test]
fn unknown_content_types_are_passed_over() {
    let mut talk = Talk::new().full12();
    talk.client(&[record(24, &[1; 30]), record(99, &[2; 50]), data(10)].concat());
    assert_eq!(talk.sizes(), [(Client, 10)]);
}

#[test]
fn absurd_length_stops_that_direction() {
    let mut talk = Talk::new().full12();
    talk.server(&[23, 3, 3, 0x48, 0x01, 0, 0]);
    talk.server(&data(10));
    talk.client(&data(20));
    assert_eq!(talk.sizes(), [(Client, 20)]);
}

#[test]
fn longest_legal_record_passes() {
    let mut talk = Talk::new().full12();
    talk.server(&data(18_432));
    assert_eq!(talk.sizes(), [(Server, 18_432)]);
}

#[test]
fn capture_that_starts_late_finds_records() {
    let mut talk = Talk::over(Tls::midstream());
    talk.server(&[0x99; 500]);
    talk.client(&data(50));
    talk.server(&data(600));
    assert_eq!(talk.sizes(), [(Client, 50), (Server, 600)]);
    talk.tls.finish();
    assert!(talk.tls.next_handshake().is_none());
}

#[test]
fn capture_that_starts_at_the_server_hello_sees_the_rest() {
    let mut talk = Talk::over(Tls::midstream());
    talk.server(&server_flight12());
    talk.client(&finished12());
    talk.server(&finished12());
    talk.client(&data(10));
    assert_eq!(talk.sizes(), [(Client, 10)]);
    let shake = talk.end();
    assert_eq!((shake.hello, shake.hello_by), (None, Some(Client)));
    assert_eq!((shake.outcome, shake.kind), (Outcome::Complete, Some(Kind::Full)));
}

#[test]
fn first_bytes_tell_tls() {
    let hello = Hello::tls13().record();
    assert_eq!(sniff(&hello), Sniff::Tls);
    assert_eq!(sniff(&record(22, &server_hello(0x0303, 5, &[], &[]))), Sniff::Tls);
    for end in 0..7 {
        assert_eq!(sniff(&hello[..end]), Sniff::More);
    }
    for other in
        [&b"GET / HTTP/1.1"[..], b"SSH-2.0-x", &[22, 3, 3, 0xff, 0xff, 1, 0], &data(9), &[22, 3, 1, 0, 9, 7, 0]]
    {
        assert_eq!(sniff(other), Sniff::Other);
    }
    let v2 = [&[0x80, 28, 1, 3, 1, 0, 3, 0, 0, 0, 16, 0, 0, 5][..], &[0xcc; 16]].concat();
    assert_eq!(sniff(&v2), Sniff::Tls);
    assert_eq!(sniff(&v2[..9]), Sniff::More);
    assert_eq!(sniff(&[0x80, 29, 1, 3, 1, 0, 3, 0, 0, 0, 16, 0, 0, 5]), Sniff::Other);
    assert_eq!(sniff(&[0x80, 29, 2]), Sniff::Other);
}

#[test]
fn middle_of_a_connection_needs_a_plausible_header() {
    assert_eq!(sniff_midstream(&data(18_432)), Sniff::Tls);
    assert_eq!(sniff_midstream(&[23, 3, 3, 0]), Sniff::More);
    for other in
        [&[23, 3, 3, 0, 0][..], &[24, 3, 3, 0, 5], &[23, 2, 3, 0, 5], &[23, 3, 5, 0, 5], &[23, 3, 3, 0x48, 1], b"HT"]
    {
        assert_eq!(sniff_midstream(other), Sniff::Other);
    }
}

#[test]
fn a_server_hello_does_not_change_what_its_own_record_is() {
    let hello = record(22, &[server_hello(0x0303, 0xc02f, &[], &[]), message(22, &[0])].concat());
    for chop in [1, usize::MAX] {
        let mut talk = Talk::new();
        talk.chop = chop;
        talk.client(&Hello::tls13().record());
        talk.server(&[hello_retry_request(), change_cipher_spec(), hello.clone()].concat());
        let handshake = talk.end();
        assert_eq!((handshake.server_done, handshake.ready), (None, None), "in pieces of {chop}");
    }
}

#[test]
fn a_tls_record_is_followed_to_its_end_whatever_version_it_names() {
    let hello = record(22, &[server_hello(0x0002, 0xc02f, &[], &[]), message(22, &[0])].concat());
    for chop in [1, usize::MAX] {
        let mut talk = Talk::new();
        talk.chop = chop;
        talk.client(&Hello::tls12().record());
        talk.server(&hello);
        assert_eq!(talk.end().bytes_server, hello.len() as u64, "in pieces of {chop}");
    }
}
