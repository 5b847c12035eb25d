//! What a ClientHello offers and a server issues: versions, sessions to resume, early data, tickets.

use super::build::*;
use crate::stream::Side::{Client, Server};
use crate::tls::{Handshake, Kind, Tls};

/// The handshake of which only this hello was seen.
fn alone(hello: &Hello) -> Handshake {
    let mut talk = Talk::new();
    talk.client(&hello.record());
    talk.end()
}

fn versions(hello: Hello, codes: &[u16]) -> Hello {
    let list: Vec<u8> = codes.iter().flat_map(|code| code.to_be_bytes()).collect();
    hello.extension(43, [&[list.len() as u8], &list[..]].concat())
}

#[test]
fn the_highest_version_is_that_of_the_list_without_grease() {
    let highest = |hello: &Hello| alone(hello).version_offered.map(String::from);
    assert_eq!(highest(&Hello { version: 0x0301, ..Hello::tls12() }).as_deref(), Some("TLSv1.0"));
    assert_eq!(highest(&Hello::tls13()).as_deref(), Some("TLSv1.3"));
    assert_eq!(highest(&versions(Hello::tls12(), &[0xfafa, 0x0302, 0x0301])).as_deref(), Some("TLSv1.1"));
    assert_eq!(highest(&versions(Hello::tls12(), &[0x0303, 0x7f1c])).as_deref(), Some("TLSv1.3"), "a draft");
    assert_eq!(highest(&versions(Hello::tls12(), &[0x8a8a])).as_deref(), Some("TLSv1.2"), "nothing but grease");
}

#[test]
fn a_hello_that_was_cut_offers_what_could_be_read() {
    let cut = |hello: &Hello, missing: usize| {
        let mut talk = Talk::new();
        let bytes = hello.record();
        talk.send_cut(Client, &bytes, bytes.len() - missing);
        talk.end()
    };
    let shake = cut(&Hello::tls12(), 3);
    assert_eq!((shake.version_offered, shake.early_data_offered, shake.ticket_offered), (None, None, None));
    let early = Hello::tls13().extension(42, vec![]).extension(45, vec![1, 1]).extension(21, vec![0; 9]);
    let shake = cut(&early, 5);
    assert_eq!(shake.version_offered.as_deref(), Some("TLSv1.3"));
    assert_eq!((shake.early_data_offered, shake.ticket_offered), (Some(true), Some(true)));
}

#[test]
fn sessions_are_offered_by_key_ticket_or_id() {
    let id = || Hello { session_id: vec![5; 32], ..Hello::tls12() };
    let offered = |hello: Hello| alone(&hello).resumption_offered;
    assert_eq!(offered(Hello::tls12()), None);
    assert_eq!(offered(Hello::tls12().extension(35, vec![])), None, "an empty ticket asks for one");
    assert_eq!(offered(id().extension(35, vec![])), Some(Kind::SessionId));
    assert_eq!(offered(id().extension(35, vec![1; 160])), Some(Kind::Ticket));
    assert_eq!(offered(Hello::tls13()), None, "the session id is there for middleboxes");
    assert_eq!(offered(Hello::tls13().extension(35, vec![1; 160])), Some(Kind::Ticket), "for an older server");
    assert_eq!(offered(Hello::tls13().extension(41, vec![0; 40])), Some(Kind::Psk));
}

#[test]
fn a_session_id_that_an_older_server_takes_was_an_offer() {
    let answered = |session_id: &[u8]| {
        let mut talk = Talk::new();
        talk.client(&Hello::tls13().record());
        talk.server(&record(22, &server_hello(0x0303, 0xc02f, session_id, &[])));
        talk.end()
    };
    let taken = answered(&[7; 32]);
    assert_eq!((taken.resumption_offered, taken.session_id_issued), (Some(Kind::SessionId), Some(false)));
    let new = answered(&[8; 32]);
    assert_eq!((new.resumption_offered, new.session_id_issued), (None, Some(true)));
    assert_eq!(answered(&[]).session_id_issued, Some(false));
}

#[test]
fn who_takes_tickets_says_so_as_the_version_in_use_has_it() {
    let takes = |hello: &Hello| alone(hello).ticket_offered;
    assert_eq!(takes(&Hello::tls12()), Some(false));
    assert_eq!(takes(&Hello::tls12().extension(35, vec![])), Some(true));
    assert_eq!(takes(&Hello::tls13().extension(35, vec![])), Some(false));
    let both = Hello::tls13().extension(45, vec![1, 1]);
    assert_eq!(takes(&both), Some(true));
    let mut talk = Talk::new();
    talk.client(&both.record());
    talk.server(&server_flight12());
    assert_eq!(talk.end().ticket_offered, Some(false), "the server chose TLS 1.2");
}

#[test]
fn key_shares_and_early_data_are_those_of_the_first_hello() {
    let share = |group: u16, len: usize| [&group.to_be_bytes()[..], &vec16(&vec![9; len])].concat();
    let shares = vec16(&[share(0x2a2a, 1), share(4588, 1216), share(29, 32)].concat());
    let hello = Hello::tls13().extension(51, shares).extension(42, vec![]);
    let mut talk = Talk::new();
    talk.client(&hello.record());
    talk.server(&hello_retry_request());
    talk.client(&Hello::tls13().extension(51, vec16(&share(24, 97))).record());
    let shake = talk.end();
    assert_eq!(shake.key_shares.as_deref(), Some("X25519MLKEM768,x25519"));
    assert_eq!((shake.early_data_offered, shake.hello_retry), (Some(true), true));
    assert_eq!(shake.client_hello_bytes, Some(hello.message().len() as u32));
    let plain = alone(&Hello::tls13());
    assert_eq!((plain.key_shares, plain.early_data_offered), (None, Some(false)));
}

/// A full handshake of TLS 1.2 in which this comes before the server's Finished.
fn issued12(before: &[u8]) -> Handshake {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().extension(35, vec![]).record());
    talk.server(&server_flight12());
    talk.client(&[record(22, &message(16, &[4; 66])), finished12()].concat());
    talk.server(&[before, &finished12()].concat());
    talk.end()
}

#[test]
fn a_ticket_of_tls12_comes_before_the_servers_finished() {
    let ticket = |len: usize| record(22, &message(4, &[&[0; 4][..], &vec16(&vec![7; len])].concat()));
    assert_eq!(issued12(&ticket(176)).ticket_issued, Some(true));
    assert_eq!(issued12(&ticket(0)).ticket_issued, Some(false), "the server changed its mind");
    assert_eq!(issued12(&[]).ticket_issued, Some(false));
    assert_eq!(Talk::new().full12().end().session_id_issued, Some(false));
}

#[test]
fn a_ticket_that_is_not_captured_may_have_been_there() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().extension(35, vec![]).record());
    talk.server(&server_flight12());
    talk.client(&[record(22, &message(16, &[4; 66])), finished12()].concat());
    talk.gap(Server, 300);
    talk.server(&finished12());
    assert_eq!(talk.end().ticket_issued, None);
}

#[test]
fn the_servers_flight_goes_from_its_hello_to_its_last_message() {
    let flight = server_flight12();
    assert_eq!(issued12(&[]).server_flight_bytes, Some(flight.len() as u64));
    // A ChangeCipherSpec and the Finished end the flight of a server that resumes.
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().extension(35, vec![1; 160]).record());
    let resumed = [record(22, &server_hello(0x0303, 0xc02f, &[], &[])), finished12()].concat();
    talk.server(&resumed);
    talk.client(&finished12());
    assert_eq!(talk.end().server_flight_bytes, Some(resumed.len() as u64));
    // By sizes alone, and from the second ServerHello where the first asks to try again.
    let mut talk = Talk::new();
    talk.client(&Hello::tls13().record());
    talk.server(&hello_retry_request());
    let before = talk.sent.server;
    let mut talk = talk.hellos13(&Hello::tls13(), false);
    let flight = talk.sent.server - before;
    talk.server(&data(250));
    talk.client(&finished13());
    assert_eq!(talk.end().server_flight_bytes, Some(flight), "a ticket is not of it");
}

#[test]
fn a_clients_certificate_is_measured_where_it_can_be_read() {
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&[record(22, &certificate(&[700])), finished12()].concat());
    talk.server(&finished12());
    let shake = talk.end();
    assert_eq!((shake.certificate_bytes, shake.client_certificate_bytes), (Some(2009), Some(706)));
}

#[test]
fn who_sent_the_alert_and_when_is_known() {
    let failed = |talk: &mut Talk| {
        let shake = talk.end();
        (shake.alert_by, shake.failed)
    };
    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    let seen = talk.server(&alert(2, 40));
    talk.fin(Server);
    assert_eq!(failed(&mut talk), (Some(Server), Some(seen)));

    let mut talk = Talk::new().hellos13(&Hello::tls13(), false);
    let seen = talk.client(&[change_cipher_spec(), data(19)].concat());
    assert_eq!(failed(&mut talk), (Some(Client), Some(seen)), "by its size");

    let mut talk = Talk::new();
    talk.client(&Hello::tls12().record());
    talk.fin(Server);
    let first = talk.now();
    talk.fin(Client);
    assert_eq!(failed(&mut talk), (None, Some(first)), "closed without an alert");

    let mut talk = Talk::over(Tls::new(None)).full12();
    talk.fin(Client);
    assert_eq!(failed(&mut talk), (None, None));
}
