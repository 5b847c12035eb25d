//! The bytes of a file: whatever they are, the tables agree with each other.
#![no_main]

use conchart_fuzz::check_capture;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_capture(bytes, None));
