//! TLS 1.3 whose keys are known: what is found inside is what was sealed, however TCP cut the streams.
//!
//! Input: which keys are missing, how the streams are cut, then what each side says; or, where the first bit is set,
//! a key log and two streams of raw bytes.
#![no_main]

use conchart_fuzz::encrypted::{Epoch, HANDSHAKE, client_hello, keys, message, sealers, server_hello};
use conchart_fuzz::{Found, Input, Records, Talk, kind, sender};
use conchart_native::{BySide, Keys, Outcome, Side};
use libfuzzer_sys::fuzz_target;

const DATA: u8 = 23;

fn raw(mut input: Input<'_>, how: u8) {
    let keys = Keys::default();
    let complaints = keys.add(input.bytes().unwrap_or_default());
    assert!(complaints.valid + complaints.malformed + complaints.excess <= complaints.lines);
    let talk = Talk::read(&mut input);
    let size = talk.piece(how);
    let whole = Records::of(&talk, usize::MAX, false, Some(keys.clone()));
    if !talk.is_torn {
        assert_eq!(whole, Records::of(&talk, size, false, Some(keys.clone())));
    }
    // And what is said inside is read.
    let _ = Found::of(&talk, size, false, Some(keys));
}

/// What is known to be inside.
#[derive(Default)]
struct Expected {
    data: BySide<Vec<u8>>,
    /// Nothing but what a peer may send: it has to be found again.
    is_honest: bool,
}

fn sealed(mut input: Input<'_>, without: u8, how: u8) {
    let mut talk = Talk::default();
    let mut expected = Expected { is_honest: without == 0, ..Expected::default() };
    let mut handshake = sealers(Epoch::Handshake);
    let mut traffic = sealers(Epoch::Traffic);
    talk.say(0x10, client_hello());
    talk.say(0x11, server_hello());
    // The server's flight: its messages are the fuzzer's, but for Finished.
    let flight = [message(8, &[0, 0]), message(20, &[0xf1; 32])].concat();
    talk.say(0x11, handshake.server.seal(HANDSHAKE, &flight, 0));
    talk.say(0x10, handshake.client.seal(HANDSHAKE, &message(20, &[0xf2; 32]), 0));
    while let Some(manner) = input.u8() {
        let from = sender(manner);
        match kind(manner) {
            0 | 1 => {
                let content = input.bytes().unwrap_or_default();
                let content = &content[..content.len().min(1 << 14)];
                let padding = usize::from(input.u8().unwrap_or(0));
                expected.data[from].extend_from_slice(content);
                talk.say(manner, traffic[from].seal(DATA, content, padding));
            }
            // Tickets and the like; whatever they are, they are no data.
            2 => {
                let (kind, body) = (input.u8().unwrap_or(0), input.bytes().unwrap_or_default());
                // A KeyUpdate that is announced has to be made.
                let body = if kind == 24 { &body[..body.len().min(1)] } else { body };
                talk.say(manner, traffic[from].seal(HANDSHAKE, &message(kind, body), 0));
                expected.is_honest &= kind == 4;
            }
            3 => {
                talk.say(manner, traffic[from].seal(HANDSHAKE, &message(24, &[0]), 0));
                traffic[from].update();
            }
            // A record of any type, with keys of before.
            4 => {
                expected.is_honest = false;
                let kind = input.u8().unwrap_or(0);
                talk.say(manner, handshake[from].seal(kind, input.bytes().unwrap_or_default(), 0));
            }
            5 => {
                expected.is_honest = false;
                talk.gap(manner, input.u16().unwrap_or(0).into());
            }
            6 => {
                talk.fin(manner);
                expected.is_honest = false;
            }
            // Anything at all; the record before may be what it goes on with.
            _ => {
                expected.is_honest = false;
                talk.say(manner, input.bytes().unwrap_or_default());
            }
        }
    }
    let size = talk.piece(how);
    let found = Records::of(&talk, usize::MAX, false, Some(keys(without)));
    if !talk.is_torn {
        assert_eq!(found, Records::of(&talk, size, false, Some(keys(without))));
    }
    if expected.is_honest {
        for side in [Side::Client, Side::Server] {
            let contents = found.clear.iter().filter(|clear| clear.from == side).map(|clear| &clear.content[..]);
            assert_eq!(contents.collect::<Vec<_>>().concat(), expected.data[side]);
        }
        assert!(found.records.is_empty(), "{:?} were not opened", found.records);
        let [handshake] = &found.handshakes[..] else { panic!("{:?}", found.handshakes) };
        assert_eq!((handshake.outcome, handshake.inferred), (Outcome::Complete, false));
    }
    let _ = Found::of(&talk, size, false, Some(keys(without)));
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let (Some(how), Some(size)) = (input.u8(), input.u8()) else { return };
    if how & 1 == 0 { sealed(input, how >> 4, size) } else { raw(input, size) }
});
