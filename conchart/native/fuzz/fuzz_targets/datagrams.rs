//! Datagrams of one UDP conversation, DNS and QUIC to begin with: what is found has its order, whatever they say.
//!
//! Input: a [`Talk`], each packet of which is a datagram.
#![no_main]

use conchart_fuzz::{Found, Input, Talk};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let talk = Talk::read(&mut Input::new(bytes));
    let _ = Found::of_datagrams(&talk);
});
