//! Conversations sealed with known secrets, and what must be found inside.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::cast_possible_truncation)]

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce};

use super::suite::{Hash, Mac1, Suite, expand_label, key_block};
use crate::keys::Keys;
use crate::stream::Side::{self, Client, Server};
use crate::tls::tests::build::{
    Hello, MS, Talk, alert, certificate, change_cipher_spec, data, finished12, key_exchange, message, record,
    server_flight12, server_hello, server_hello13, vec16,
};
use crate::tls::{Clear, KeyCoverage, Kind, Outcome, Tls};

fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// RFC 8448 section 3: the handshake traffic keys of both sides.
#[test]
fn traffic_keys_are_those_of_rfc_8448() {
    let server = unhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
    let client = unhex("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21");
    let key = |secret: &[u8]| expand_label(Hash::Sha256, secret, "key", 16).unwrap();
    let iv = |secret: &[u8]| expand_label(Hash::Sha256, secret, "iv", 12).unwrap();
    assert_eq!(key(&server), unhex("3fce516009c21727d0f2e4e86ee403bc"));
    assert_eq!(iv(&server), unhex("5d313eb2671276ee13000b30"));
    assert_eq!(key(&client), unhex("dbfaa693d1762c5b666af5d950258d01"));
    assert_eq!(iv(&client), unhex("5bd3c71b836e0b76bb73265f"));
}

#[test]
fn suites_that_cannot_be_opened_are_known_as_such() {
    for code in [0x0005, 0x000a, 0x0041, 0xc092] {
        assert_eq!(Suite::of(code, 0x0303), None, "{code:04x}");
    }
    assert_eq!(Suite::of(0x002f, 0x0300), None, "SSL 3.0");
    assert_eq!(Suite::of(0xc030, 0x0303).unwrap().hash, Hash::Sha384);
    assert_eq!(Suite::of(0x002f, 0x0301).unwrap().hash, Hash::Md5Sha1);
}

/// Seals records of one direction and epoch with AES-128-GCM, as TLS 1.3 does.
pub(crate) struct Sealer {
    secret: Vec<u8>,
    sequence: u64,
}

pub(crate) const CLIENT_HANDSHAKE: u8 = 0xc1;
pub(crate) const SERVER_HANDSHAKE: u8 = 0x51;
pub(crate) const CLIENT_TRAFFIC: u8 = 0xc2;
pub(crate) const SERVER_TRAFFIC: u8 = 0x52;
const CLIENT_EARLY: u8 = 0xce;

pub(crate) fn sealer(secret: u8) -> Sealer {
    Sealer { secret: vec![secret; 32], sequence: 0 }
}

impl Sealer {
    pub(crate) fn seal(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        self.seal_padded(kind, content, 0)
    }

    fn seal_padded(&mut self, kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let mut inner = [content, &[kind], &vec![0; padding]].concat();
        let header = [&[23, 3, 3][..], &(inner.len() as u16 + 16).to_be_bytes()].concat();
        let mut nonce: Vec<u8> = expand_label(Hash::Sha256, &self.secret, "iv", 12).unwrap();
        nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()).for_each(|(slot, byte)| *slot ^= byte);
        self.sequence += 1;
        let key = expand_label(Hash::Sha256, &self.secret, "key", 16).unwrap();
        let tag = seal_gcm(&key, &nonce, &header, &mut inner);
        [header, inner, tag].concat()
    }

    fn update(&mut self) {
        *self = Self { secret: expand_label(Hash::Sha256, &self.secret, "traffic upd", 32).unwrap(), sequence: 0 };
    }
}

fn seal_gcm(key: &[u8], nonce: &[u8], additional: &[u8], bytes: &mut [u8]) -> Vec<u8> {
    let cipher = Aes128Gcm::new_from_slice(key).unwrap();
    let nonce = Nonce::<Aes128Gcm>::try_from(nonce).unwrap();
    cipher.encrypt_inout_detached(&nonce, additional, bytes.into()).unwrap().to_vec()
}

/// The key log of a connection whose secrets are one byte, repeated. Hellos of these tests have random 0x11….
fn key_log(secrets: &[(&str, u8)]) -> Keys {
    let keys = Keys::default();
    for (label, byte) in secrets {
        let len = if *label == "CLIENT_RANDOM" { 48 } else { 32 };
        let line = format!("{label} {} {}", "11".repeat(32), format!("{byte:02x}").repeat(len));
        assert_eq!(keys.add(line.as_bytes()).valid, 1);
    }
    keys
}

const HANDSHAKE_SECRETS: [(&str, u8); 2] =
    [("CLIENT_HANDSHAKE_TRAFFIC_SECRET", CLIENT_HANDSHAKE), ("SERVER_HANDSHAKE_TRAFFIC_SECRET", SERVER_HANDSHAKE)];
const TRAFFIC_SECRETS: [(&str, u8); 2] =
    [("CLIENT_TRAFFIC_SECRET_0", CLIENT_TRAFFIC), ("SERVER_TRAFFIC_SECRET_0", SERVER_TRAFFIC)];

pub(crate) fn all_secrets() -> Keys {
    key_log(&[HANDSHAKE_SECRETS, TRAFFIC_SECRETS].concat())
}

fn encrypted_extensions(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let list: Vec<u8> =
        extensions.iter().flat_map(|(kind, body)| [kind.to_be_bytes().to_vec(), vec16(body)].concat()).collect();
    message(8, &vec16(&list))
}

fn alpn(name: &str) -> (u16, Vec<u8>) {
    (16, vec16(&[&[name.len() as u8], name.as_bytes()].concat()))
}

/// A Certificate message of TLS 1.3 with two certificates.
fn certificate13() -> Vec<u8> {
    let entry = |size: usize| [&(size as u32).to_be_bytes()[1..], &vec![0x30; size], &[0, 0]].concat();
    let list = [entry(500), entry(700)].concat();
    message(11, &[&[0][..], &(list.len() as u32).to_be_bytes()[1..], &list].concat())
}

/// EncryptedExtensions to Finished in one record, so that no size gives anything away.
pub(crate) fn server_flight(server: &mut Sealer, asks: bool) -> Vec<u8> {
    let request = if asks { message(13, &[0, 0, 0]) } else { Vec::new() };
    let finished = message(20, &[0xf1; 32]);
    let flight = [encrypted_extensions(&[alpn("http/1.1")]), request, certificate13(), message(15, &[0; 70]), finished];
    server.seal_padded(22, &flight.concat(), 99)
}

/// TLS 1.3 up to and including the client's Finished.
fn shaken(keys: Keys) -> Talk {
    let mut talk = Talk::over(Tls::new(Some(keys)));
    talk.client(&Hello::tls13().record());
    let flight = server_flight(&mut sealer(SERVER_HANDSHAKE), false);
    talk.server(&[server_hello13(0x1301, false), change_cipher_spec(), flight].concat());
    let finished = sealer(CLIENT_HANDSHAKE).seal(22, &message(20, &[0xf2; 32]));
    talk.client(&[change_cipher_spec(), finished].concat());
    talk
}

fn clear(talk: &mut Talk) -> Vec<Clear> {
    std::iter::from_fn(|| talk.tls.next_clear()).collect()
}

/// Who said what; `None` for bytes that are missing.
fn texts(talk: &mut Talk) -> Vec<(Side, Result<String, u64>)> {
    let text = |clear: &Clear| String::from_utf8(clear.content.clone()).unwrap();
    clear(talk).iter().map(|c| (c.from, if c.missing > 0 { Err(c.missing) } else { Ok(text(c)) })).collect()
}

#[test]
fn keys_make_a_handshake_of_tls13_exact() {
    let mut talk = Talk::over(Tls::new(Some(all_secrets())));
    talk.client(&Hello::tls13().record());
    let mut server = sealer(SERVER_HANDSHAKE);
    talk.server(&[server_hello13(0x1301, false), change_cipher_spec()].concat());
    let flight = talk.server(&server_flight(&mut server, true));
    let mut client = sealer(CLIENT_HANDSHAKE);
    talk.client(&client.seal(22, &[message(11, &[0, 0, 0, 0]), message(15, &[0; 70])].concat()));
    let finished = talk.client(&client.seal(22, &message(20, &[0xf2; 32])));
    let agreement = talk.tls.next_agreement().unwrap();
    assert_eq!((agreement.alpn.as_deref(), agreement.ready), (Some("http/1.1"), Some(finished)));
    assert_eq!(talk.tls.next_agreement(), None);
    assert_eq!(talk.tls.next_handshake(), None, "no application data has shown that the keys are the right ones");
    let handshake = talk.end();
    assert!(!handshake.inferred);
    assert_eq!(
        (handshake.outcome, handshake.kind, handshake.keys),
        (Outcome::Complete, Some(Kind::Full), Some(KeyCoverage::All))
    );
    assert_eq!(handshake.alpn.as_deref(), Some("http/1.1"));
    assert_eq!((handshake.client_auth, handshake.client_certificate_bytes), (Some(true), Some(4)));
    assert_eq!(handshake.server_flight_bytes, Some(talk.sent.server));
    assert_eq!((handshake.certificates, handshake.certificate_bytes), (Some(2), Some(1214)));
    assert_eq!(handshake.server_done, Some(flight));
    assert_eq!((handshake.client_finished, handshake.ready), (Some(finished), Some(finished)));
    assert_eq!((handshake.bytes_client, handshake.bytes_server), (talk.sent.client, talk.sent.server));
}

#[test]
fn tickets_updates_and_alerts_are_no_data() {
    let mut talk = shaken(all_secrets());
    let (mut client, mut server) = (sealer(CLIENT_TRAFFIC), sealer(SERVER_TRAFFIC));
    talk.server(&server.seal(22, &message(4, &[7; 200])));
    talk.client(&client.seal(23, b"ask"));
    talk.client(&client.seal(22, &message(24, &[1])));
    client.update();
    talk.server(&server.seal(22, &message(24, &[0])));
    server.update();
    talk.server(&server.seal_padded(23, b"answer", 500));
    talk.client(&client.seal(23, b"more"));
    client.update();
    talk.client(&client.seal(23, b"once more"));
    talk.client(&client.seal(21, &[1, 0]));
    let text = |text: &str| Ok(text.to_owned());
    let expected =
        [(Client, text("ask")), (Server, text("answer")), (Client, text("more")), (Client, text("once more"))];
    assert_eq!(texts(&mut talk), expected);
    talk.fin(Client);
    talk.tls.finish();
    assert!(talk.records().is_empty() && clear(&mut talk).is_empty());
}

#[test]
fn a_ticket_of_tls13_comes_before_the_servers_data_or_not_at_all() {
    let issued = |records: &[(u8, &[u8])]| {
        let mut talk = shaken(all_secrets());
        let (mut client, mut server) = (sealer(CLIENT_TRAFFIC), sealer(SERVER_TRAFFIC));
        talk.client(&client.seal(23, b"ask"));
        for (kind, content) in records {
            talk.server(&server.seal(*kind, content));
        }
        talk.handshake().ticket_issued
    };
    let ticket = message(4, &[7; 200]);
    assert_eq!(issued(&[(22, &ticket), (23, b"answer")]), Some(true));
    assert_eq!(issued(&[(23, b"answer"), (22, &ticket)]), Some(false));
    assert_eq!(issued(&[(22, &message(24, &[0]))]), None, "a KeyUpdate");
    assert_eq!(shaken(all_secrets()).end().ticket_issued, None);
}

#[test]
fn times_of_content_are_those_of_its_packets() {
    let mut talk = shaken(all_secrets());
    let sealed = sealer(SERVER_TRAFFIC).seal(23, &[b'x'; 100]);
    let header = talk.server(&sealed[..3]);
    let middle = talk.server(&sealed[3..55]);
    let tag = talk.server(&sealed[55..]);
    let clear = clear(&mut talk);
    let pieces: Vec<_> = clear[0].pieces().map(|(bytes, seen)| (bytes.len(), seen)).collect();
    assert_eq!(pieces, [(1, header), (49, middle), (50, tag)]);

    // The tag alone in the last packet: the last byte counts as coming with it.
    let mut talk = shaken(all_secrets());
    talk.server(&sealed[..110]);
    let tag = talk.server(&sealed[110..]);
    let clear = self::clear(&mut talk);
    let last = clear[0].pieces().last().map(|(bytes, seen)| (bytes.len(), seen));
    assert_eq!(last, Some((1, tag)));
}

#[test]
fn records_after_missing_ones_are_opened_and_the_missing_bytes_counted() {
    let mut talk = shaken(all_secrets());
    let mut server = sealer(SERVER_TRAFFIC);
    let records: Vec<Vec<u8>> =
        ["one", "three", "seven", "nine"].iter().map(|w| server.seal(23, w.as_bytes())).collect();
    talk.server(&records[0]);
    talk.gap(Server, (records[1].len() + records[2].len()) as u64);
    talk.server(&records[3]);
    let text = |text: &str| (Server, Ok(text.to_owned()));
    assert_eq!(texts(&mut talk), [text("one"), (Server, Err(10)), text("nine")]);
}

#[test]
fn a_record_that_was_cut_is_missing_and_the_next_one_opens() {
    let mut talk = shaken(all_secrets());
    let mut server = sealer(SERVER_TRAFFIC);
    talk.server(&server.seal(23, b"one"));
    talk.send_cut(Server, &server.seal(23, &[b'x'; 300]), 96);
    talk.server(&server.seal(23, b"three"));
    let text = |text: &str| (Server, Ok(text.to_owned()));
    assert_eq!(texts(&mut talk), [text("one"), (Server, Err(300)), text("three")]);
}

#[test]
fn too_far_ahead_a_direction_is_given_up_and_the_other_goes_on() {
    let mut talk = shaken(all_secrets());
    let (mut client, mut server) = (sealer(CLIENT_TRAFFIC), sealer(SERVER_TRAFFIC));
    talk.server(&server.seal(23, b"one"));
    talk.gap(Server, 5 * 22);
    server.sequence += 1 + super::direction::WINDOW;
    talk.server(&server.seal(23, b"lost"));
    talk.client(&client.seal(23, b"ask"));
    talk.server(&server.seal(23, b"lost too"));
    let lost: Vec<_> = texts(&mut talk).into_iter().map(|(from, text)| (from, text.is_err())).collect();
    assert_eq!(lost, [(Server, false), (Server, true), (Server, true), (Client, false), (Server, true)]);
}

#[test]
fn wrong_keys_change_nothing_but_are_named() {
    let wrong = [("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 1), ("SERVER_HANDSHAKE_TRAFFIC_SECRET", 2)];
    let traffic = [("CLIENT_TRAFFIC_SECRET_0", 3), ("SERVER_TRAFFIC_SECRET_0", 4)];
    let mut with = shaken(key_log(&[wrong, traffic].concat()));
    let mut without = shaken(Keys::default());
    for talk in [&mut with, &mut without] {
        talk.client(&data(100));
        talk.server(&data(3000));
        talk.tls.finish();
    }
    assert_eq!(with.sizes(), without.sizes());
    let (with, without) = (with.handshake(), without.handshake());
    assert_eq!((with.keys, without.keys), (Some(KeyCoverage::Wrong), Some(KeyCoverage::None)));
    assert_eq!((with.ready, with.inferred), (without.ready, true));
}

#[test]
fn with_traffic_secrets_only_data_is_read_and_the_handshake_inferred() {
    let mut talk = shaken(key_log(&TRAFFIC_SECRETS));
    talk.client(&sealer(CLIENT_TRAFFIC).seal(23, b"ask"));
    talk.server(&sealer(SERVER_TRAFFIC).seal(23, b"answer"));
    assert_eq!(texts(&mut talk), [(Client, Ok("ask".to_owned())), (Server, Ok("answer".to_owned()))]);
    let handshake = talk.end();
    assert_eq!(
        (handshake.outcome, handshake.inferred, handshake.keys),
        (Outcome::Complete, true, Some(KeyCoverage::Partial))
    );
    let missing = "CLIENT_HANDSHAKE_TRAFFIC_SECRET,SERVER_HANDSHAKE_TRAFFIC_SECRET";
    assert_eq!(handshake.missing_keys.as_deref(), Some(missing));
}

#[test]
fn with_handshake_secrets_only_the_handshake_is_exact_and_data_keeps_its_records() {
    let mut talk = shaken(key_log(&HANDSHAKE_SECRETS));
    talk.client(&data(100));
    talk.server(&data(3000));
    talk.tls.finish();
    assert_eq!(talk.sizes(), [(Client, 100), (Server, 3000)]);
    let handshake = talk.handshake();
    assert_eq!((handshake.inferred, handshake.keys), (false, Some(KeyCoverage::Partial)));
}

#[test]
fn an_alert_instead_of_a_finished_has_a_name() {
    let mut talk = Talk::over(Tls::new(Some(all_secrets())));
    talk.client(&Hello::tls13().record());
    talk.server(&[server_hello13(0x1301, false), server_flight(&mut sealer(SERVER_HANDSHAKE), false)].concat());
    talk.client(&sealer(CLIENT_HANDSHAKE).seal(21, &[2, 48]));
    let handshake = talk.end();
    assert_eq!((handshake.outcome, handshake.alert.as_deref()), (Outcome::Failed, Some("fatal unknown_ca (48)")));
}

/// A resumption with early data; `taken` is what the server says to it.
fn early(taken: bool) -> Talk {
    let keys = all_secrets();
    let line = format!("CLIENT_EARLY_TRAFFIC_SECRET {} {}", "11".repeat(32), "ce".repeat(32));
    assert_eq!(keys.add(line.as_bytes()).valid, 1);
    let mut talk = Talk::over(Tls::new(Some(keys)));
    let mut early = sealer(CLIENT_EARLY);
    talk.client(&Hello::tls13().extension(42, vec![]).record());
    talk.client(&[change_cipher_spec(), early.seal(23, b"early")].concat());
    let extensions = if taken { vec![(42, vec![])] } else { vec![] };
    let flight = [encrypted_extensions(&extensions), message(20, &[0xf1; 32])].concat();
    talk.server(&[server_hello13(0x1301, true), sealer(SERVER_HANDSHAKE).seal(22, &flight)].concat());
    if taken {
        talk.client(&early.seal(22, &message(5, &[])));
    }
    talk.client(&sealer(CLIENT_HANDSHAKE).seal(22, &message(20, &[0xf2; 32])));
    talk.client(&sealer(CLIENT_TRAFFIC).seal(23, b"late"));
    talk
}

#[test]
fn early_data_counts_when_the_server_takes_it() {
    let mut talk = early(true);
    assert_eq!(texts(&mut talk), [(Client, Ok("early".to_owned())), (Client, Ok("late".to_owned()))]);
    let handshake = talk.end();
    assert_eq!((handshake.kind, handshake.early_data, handshake.inferred), (Some(Kind::Psk0Rtt), Some(true), false));
    assert_eq!(handshake.ready.map(|ready| ready.at), Some(MS));
}

#[test]
fn early_data_that_is_refused_was_never_said() {
    let mut talk = early(false);
    assert_eq!(texts(&mut talk), [(Client, Ok("late".to_owned()))]);
    let handshake = talk.end();
    assert_eq!((handshake.kind, handshake.early_data), (Some(Kind::Psk), Some(false)));
}

/// Seals a record of TLS 1.2 with the keys of [`key_log`]'s master secret.
fn seal12(from: Side, sequence: u64, kind: u8, content: &[u8], cbc: bool) -> Vec<u8> {
    seal12_for(0x11, from, sequence, kind, content, cbc)
}

/// The same, of a connection whose client's random is one byte, repeated.
fn seal12_for(random: u8, from: Side, sequence: u64, kind: u8, content: &[u8], cbc: bool) -> Vec<u8> {
    let block = key_block(Hash::Sha256, &[0xaa; 48], &[random; 32], &[0x22; 32], 200).unwrap();
    let additional = |len: usize| [&sequence.to_be_bytes()[..], &[kind, 3, 3], &(len as u16).to_be_bytes()].concat();
    let of = |first: usize, len: usize| {
        let start = first + if from == Server { len } else { 0 };
        &block[start..start + len]
    };
    if cbc {
        use aes::cipher::{BlockModeEncrypt, KeyIvInit};
        let (mac_key, key) = (of(0, 20), of(40, 16));
        let mac = Mac1::Sha1.of(mac_key, &[&additional(content.len()), content]).unwrap();
        let mut bytes = [content, &mac].concat();
        let padding = 15 - bytes.len() % 16;
        bytes.extend(vec![padding as u8; padding + 1]);
        let (blocks, _) = aes::cipher::Block::<aes::Aes128>::slice_as_chunks_mut(&mut bytes);
        cbc::Encryptor::<aes::Aes128>::new_from_slices(key, &[9; 16]).unwrap().encrypt_blocks(blocks);
        return record(kind, &[&[9; 16][..], &bytes].concat());
    }
    let (key, salt) = (of(0, 16), of(32, 4));
    let explicit = sequence.to_be_bytes();
    let mut bytes = content.to_vec();
    let tag = seal_gcm(key, &[salt, &explicit].concat(), &additional(content.len()), &mut bytes);
    record(kind, &[&explicit[..], &bytes, &tag].concat())
}

#[test]
fn tls12_is_opened_with_the_master_secret() {
    for cbc in [false, true] {
        let mut talk = Talk::over(Tls::new(Some(key_log(&[("CLIENT_RANDOM", 0xaa)]))));
        talk.client(&Hello::tls12().record());
        let mut flight = server_flight12();
        if cbc {
            // TLS_RSA_WITH_AES_128_CBC_SHA for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.
            let at = flight.windows(2).position(|code| code == [0xc0, 0x2f]).unwrap();
            flight[at..at + 2].copy_from_slice(&[0x00, 0x2f]);
        }
        talk.server(&flight);
        let seal = |from, sequence, kind, content: &[u8]| seal12(from, sequence, kind, content, cbc);
        let finished = |from| [change_cipher_spec(), seal(from, 0, 22, &message(20, &[1; 12]))].concat();
        talk.client(&[record(22, &message(16, &[4; 66])), finished(Client)].concat());
        let ready = talk.server(&finished(Server));
        talk.client(&seal(Client, 1, 23, b"ask"));
        talk.server(&seal(Server, 1, 23, b"answer"));
        talk.server(&seal(Server, 2, 21, &[1, 0]));
        assert_eq!(texts(&mut talk), [(Client, Ok("ask".to_owned())), (Server, Ok("answer".to_owned()))], "cbc {cbc}");
        let handshake = talk.end();
        assert_eq!((handshake.keys, handshake.ready), (Some(KeyCoverage::All), Some(ready)));
        assert!(talk.records().is_empty());
    }
}

#[test]
fn an_encrypted_alert_of_tls12_has_a_name_with_keys() {
    let mut talk = Talk::over(Tls::new(Some(key_log(&[("CLIENT_RANDOM", 0xaa)]))));
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&[change_cipher_spec(), seal12(Client, 0, 21, &[2, 42], false)].concat());
    assert_eq!(talk.end().alert.as_deref(), Some("fatal bad_certificate (42)"));
}

#[test]
fn without_the_secrets_of_this_connection_nothing_is_kept_or_changed() {
    let mut talk = Talk::over(Tls::new(Some(Keys::default())));
    talk.client(&Hello::tls12().record());
    talk.server(&server_flight12());
    talk.client(&[record(22, &message(16, &[4; 66])), finished12()].concat());
    talk.server(&finished12());
    assert!(talk.tls.decryptor.is_none());
    talk.client(&data(50));
    talk.server(&alert(1, 0));
    assert_eq!(talk.sizes(), [(Client, 50)]);
    assert_eq!(talk.handshake().keys, Some(KeyCoverage::None));
}

/// A session of TLS 1.2 is resumed; the key log names its first connection only.
fn resumed12(keys: Keys, hello: &Hello, session_id: &[u8]) -> Talk {
    let mut talk = Talk::over(Tls::new(Some(keys)));
    let mut offer = hello.record();
    offer[11..43].fill(0x33);
    talk.client(&offer);
    let seal = |from, sequence, kind, content: &[u8]| seal12_for(0x33, from, sequence, kind, content, false);
    let finished = |from| [change_cipher_spec(), seal(from, 0, 22, &message(20, &[1; 12]))].concat();
    talk.server(&[record(22, &server_hello(0x0303, 0xc02f, session_id, &[])), finished(Server)].concat());
    talk.client(&[finished(Client), seal(Client, 1, 23, b"ask")].concat());
    talk.server(&seal(Server, 1, 23, b"answer"));
    talk
}

/// The first connection of a session: the server names it, and gives a ticket.
fn first12(keys: Keys) {
    let mut talk = Talk::over(Tls::new(Some(keys)));
    talk.client(&Hello::tls12().record());
    let hello = server_hello(0x0303, 0xc02f, &[6; 32], &[]);
    talk.server(&[record(22, &[hello, certificate(&[900]), key_exchange(29), message(14, &[])].concat())].concat());
    talk.client(&[record(22, &message(16, &[4; 66])), finished12()].concat());
    let ticket = message(4, &[&[0, 0, 1, 44, 0, 100][..], &[0x77; 100]].concat());
    talk.server(&[record(22, &ticket), finished12()].concat());
    talk.tls.finish();
}

#[test]
fn a_resumed_session_of_tls12_has_the_secret_of_the_first() {
    let by_ticket = Hello { session_id: vec![5; 32], ..Hello::tls12() }.extension(35, vec![0x77; 100]);
    let by_id = Hello { session_id: vec![6; 32], ..Hello::tls12() };
    for (hello, kind) in [(by_ticket, Kind::Ticket), (by_id, Kind::SessionId)] {
        let keys = key_log(&[("CLIENT_RANDOM", 0xaa)]);
        first12(keys.clone());
        let mut talk = resumed12(keys, &hello, &hello.session_id);
        assert_eq!(texts(&mut talk), [(Client, Ok("ask".to_owned())), (Server, Ok("answer".to_owned()))], "{kind:?}");
        let handshake = talk.end();
        assert_eq!((handshake.kind, handshake.keys), (Some(kind), Some(KeyCoverage::All)));
    }
}

#[test]
fn a_ticket_that_the_server_does_not_take_has_no_keys() {
    let keys = key_log(&[("CLIENT_RANDOM", 0xaa)]);
    first12(keys.clone());
    let unknown = Hello { session_id: vec![5; 32], ..Hello::tls12() }.extension(35, vec![0x78; 100]);
    let refused = Hello { session_id: vec![5; 32], ..Hello::tls12() }.extension(35, vec![0x77; 100]);
    for (hello, session_id) in [(unknown, [5; 32]), (refused, [8; 32])] {
        assert_eq!(resumed12(keys.clone(), &hello, &session_id).end().keys, Some(KeyCoverage::None));
    }
}
