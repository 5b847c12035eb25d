//! TLS records without keys: how TCP cut the streams changes nothing.
//!
//! Input: how they are cut and where the capture joined, then packets, each of raw bytes or of one record.
#![no_main]

use conchart_fuzz::{Input, Records, Talk, kind};
use libfuzzer_sys::fuzz_target;

/// What a record is made of: type, version, and a length that is right.
fn record(input: &mut Input<'_>) -> Vec<u8> {
    let (kind, body) = (input.u8().unwrap_or(0), input.bytes().unwrap_or_default());
    // The four content types, and whatever else there may be.
    let kind = if kind < 0x80 { 20 + kind % 4 } else { kind };
    let len = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[kind, 3, 3], &len[..], body].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let how = input.u8().unwrap_or(0);
    let mut talk = Talk::default();
    while let Some(manner) = input.u8() {
        match kind(manner) {
            0..=2 => talk.say(manner, record(&mut input)),
            3 => talk.say(manner, input.bytes().unwrap_or_default()),
            // Application data of this size.
            4 => {
                let size = input.u16().unwrap_or(0) & 0x7fff;
                talk.say(manner, [&[23, 3, 3], &size.to_be_bytes()[..], &vec![0xda; size.into()]].concat());
            }
            5 => talk.gap(manner, input.u16().unwrap_or(0).into()),
            6 => talk.fin(manner),
            _ => {
                let cut = input.u16().unwrap_or(0);
                talk.say_cut(manner, input.bytes().unwrap_or_default(), cut.into());
            }
        }
    }
    let whole = Records::of(&talk, usize::MAX, how & 1 != 0, None);
    // After missing bytes, records are found again where a packet begins.
    if how & 1 == 0 && !talk.is_torn {
        let cut = Records::of(&talk, talk.piece(how >> 1 & 31), false, None);
        assert_eq!(whole, cut);
    }
});
