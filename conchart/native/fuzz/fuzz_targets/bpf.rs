//! A filter program and a frame: what the checker takes runs to its end, whatever the frame.
//!
//! Input: the number of instructions, 8 bytes for each, length on the wire, the frame.
#![no_main]

use conchart_fuzz::Input;
use conchart_native::Program;
use libfuzzer_sys::fuzz_target;

/// Codes of `pcap/bpf.h`; every other one is refused, and that is soon learnt.
const CODES: [u16; 45] = [
    0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x80, 0x01, 0x61, 0x81, 0xb1, 0x02, 0x03, 0x04, 0x0c, 0x14, 0x1c,
    0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0x84, 0x94, 0x9c, 0xa4, 0xac, 0x05, 0x15,
    0x1d, 0x25, 0x35, 0x45, 0x06, 0x16, 0x07,
];

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut program = Vec::new();
    for _ in 0..input.u8().unwrap_or(0) {
        let (Some(code), Some(yes), Some(no), Some(k)) = (input.u16(), input.u8(), input.u8(), input.u32()) else {
            break;
        };
        // A high byte that no code has: the low one picks a code that there is.
        let [low, high] = code.to_le_bytes();
        let code = if high == 0 { code } else { CODES[usize::from(low) % CODES.len()] };
        program.push((code, yes, no, k));
    }
    let wire = input.u16().unwrap_or(0).into();
    let frame = input.rest();
    let Ok(checked) = Program::new(&program) else { return };
    // No state: the same frame has the same verdict.
    assert_eq!(checked.accepts(frame, wire), checked.accepts(frame, wire));
    // Where nothing but the frame's bytes is read, nothing beyond what a longer snap length adds can reject it.
    if let [(0x06, _, _, verdict), ..] = program[..] {
        assert_eq!(checked.accepts(frame, wire), verdict != 0);
    }
});
