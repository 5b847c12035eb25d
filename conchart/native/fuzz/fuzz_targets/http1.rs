//! Two streams of plain bytes, HTTP/1 to begin with: how they are cut changes nothing.
//!
//! Input: how they are cut and whether the capture joined midway, then a [`Talk`].
#![no_main]

use conchart_fuzz::{Found, Input, Talk, assert_cutting_changes_nothing};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let how = input.u8().unwrap_or(0);
    let talk = Talk::read(&mut input);
    if how & 1 == 0 {
        assert_cutting_changes_nothing(&talk, talk.piece(how >> 1 & 31));
    } else {
        let _ = Found::of(&talk, usize::MAX, true, None);
    }
});
