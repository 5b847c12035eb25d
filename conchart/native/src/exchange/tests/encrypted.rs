use super::talk::{Talk, short};
use crate::exchange::{Carrier, Conversation};
use crate::stream::Side;
use crate::tls::build::{Hello, change_cipher_spec, message, server_hello13};
use crate::tls::encrypted::{
    CLIENT_HANDSHAKE, CLIENT_TRAFFIC, SERVER_HANDSHAKE, SERVER_TRAFFIC, all_secrets, sealer, server_flight,
};

/// TLS 1.3 whose keys are known, up to and including the client's Finished.
fn shaken() -> Talk {
    let talk = Talk::on(Conversation::new(Carrier::Stream, false, Some(all_secrets()))).client(Hello::tls13().record());
    let flight = server_flight(&mut sealer(SERVER_HANDSHAKE), false);
    let talk = talk.server([server_hello13(0x1301, false), change_cipher_spec(), flight].concat());
    talk.client(sealer(CLIENT_HANDSHAKE).seal(22, &message(20, &[0xf2; 32])))
}

#[test]
fn a_request_that_is_missing_is_told_of_though_nothing_is_said_after_it() {
    let mut client = sealer(CLIENT_TRAFFIC);
    let (missing, empty) = (client.seal(23, b"ask"), client.seal(23, b""));
    let (head, rest) = missing.split_at(9);
    let mut talk = shaken().client(head).gap(Side::Client, rest.len() as u64).client(empty);
    let found = talk.finish();
    let [exchange] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!(
        (short(exchange.request).0, short(exchange.request).1, exchange.response.first),
        (Some(4), Some(5), None)
    );
    assert_eq!(talk.conversation.next_handshake().unwrap().keys, Some(crate::tls::KeyCoverage::All));
    assert_eq!(talk.conversation.earliest_open(), None);
}

#[test]
fn missing_bytes_count_once_where_nothing_was_opened_before_them() {
    let mut server = sealer(SERVER_TRAFFIC);
    let talk = shaken().server(server.seal(22, &message(4, &[7; 200]))).gap(Side::Server, 100);
    server.seal(23, &[b'x'; 78]);
    let found = talk.server(server.seal(23, b"hello")).exchanges();
    assert_eq!(found.iter().map(|e| e.response.bytes).collect::<Vec<_>>(), [100, 5]);
}
