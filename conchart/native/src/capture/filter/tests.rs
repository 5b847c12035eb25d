//! Programs as libpcap compiles them (`tcpdump -d`), and the corners that it never compiles.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::{FilterError, Program};

/// `tcpdump -dd -y EN10MB 'tcp port 443'`.
const TCP_PORT_443: &[(u16, u8, u8, u32)] = &[
    (0x28, 0, 0, 0x0c),
    (0x15, 0, 6, 0x86dd),
    (0x30, 0, 0, 0x14),
    (0x15, 0, 15, 0x06),
    (0x28, 0, 0, 0x36),
    (0x15, 12, 0, 0x1bb),
    (0x28, 0, 0, 0x38),
    (0x15, 10, 11, 0x1bb),
    (0x15, 0, 10, 0x0800),
    (0x30, 0, 0, 0x17),
    (0x15, 0, 8, 0x06),
    (0x28, 0, 0, 0x14),
    (0x45, 6, 0, 0x1fff),
    (0xb1, 0, 0, 0x0e),
    (0x48, 0, 0, 0x0e),
    (0x15, 2, 0, 0x1bb),
    (0x48, 0, 0, 0x10),
    (0x15, 0, 1, 0x1bb),
    (0x06, 0, 0, 0x40000),
    (0x06, 0, 0, 0),
];

fn ethernet_ipv4_tcp(port: u16, options: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + options + 20];
    frame[12] = 8;
    frame[14] = 0x45 + u8::try_from(options / 4).unwrap();
    frame[23] = 6;
    let tcp = 34 + options;
    frame[tcp + 2..tcp + 4].copy_from_slice(&port.to_be_bytes());
    frame
}

/// What a program returns for a frame: `None` for "reads outside, or divides by zero".
fn run(program: &[(u16, u8, u8, u32)], data: &[u8]) -> Option<u32> {
    Program::new(program).unwrap().run(data, 1000)
}

/// Runs one arithmetic instruction on A and X.
fn alu(code: u16, a: u32, x: u32) -> Option<u32> {
    run(&[(0x01, 0, 0, x), (0x00, 0, 0, a), (code, 0, 0, x), (0x16, 0, 0, 0)], &[])
}

#[test]
fn tcp_port_443_finds_the_port_behind_any_ip_header_length() {
    let program = Program::new(TCP_PORT_443).unwrap();
    for options in [0, 4, 40] {
        let (yes, no) = (ethernet_ipv4_tcp(443, options), ethernet_ipv4_tcp(80, options));
        assert!(program.accepts(&yes, 60) && !program.accepts(&no, 60), "{options}");
        assert!(!program.accepts(&yes[..34 + options], 60), "cut before the port: rejected");
    }
}

#[test]
fn lengths_are_of_the_wire_and_loads_are_of_what_was_captured() {
    assert_eq!(run(&[(0x80, 0, 0, 0), (0x16, 0, 0, 0)], b"abc"), Some(1000));
    assert_eq!(run(&[(0x81, 0, 0, 0), (0x87, 0, 0, 0), (0x16, 0, 0, 0)], b"abc"), Some(1000));
    assert_eq!(run(&[(0x28, 0, 0, 1), (0x16, 0, 0, 0)], &[1, 2, 3]), Some(0x0203));
    assert_eq!(run(&[(0x28, 0, 0, 2), (0x16, 0, 0, 0)], &[1, 2, 3]), None);
}

#[test]
fn indexed_loads_add_x_without_wrapping() {
    let loaded = |x, k| run(&[(0x01, 0, 0, x), (0x50, 0, 0, k), (0x16, 0, 0, 0)], &[7, 8, 9]);
    assert_eq!((loaded(1, 1), loaded(2, 1), loaded(u32::MAX, 1)), (Some(9), None, None));
    assert_eq!(run(&[(0x01, 0, 0, 1), (0x40, 0, 0, 0), (0x16, 0, 0, 0)], &[9, 1, 2, 3, 4]), Some(0x0102_0304));
    assert_eq!(run(&[(0x30, 0, 0, 0xffff_f000), (0x06, 0, 0, 1)], &[1]), None, "ancillary data of a live Linux socket");
}

#[test]
fn arithmetic_is_unsigned_and_wraps() {
    assert_eq!(alu(0x04, u32::MAX, 2), Some(1));
    assert_eq!(alu(0x1c, 1, 2), Some(u32::MAX));
    assert_eq!(alu(0x2c, 0x8000_0001, 2), Some(2));
    assert_eq!((alu(0x3c, 0xffff_fffe, 2), alu(0x3c, 1, 0)), (Some(0x7fff_ffff), None));
    assert_eq!((alu(0x9c, 7, 4), alu(0x9c, 7, 0)), (Some(3), None));
    assert_eq!((alu(0x4c, 6, 3), alu(0x5c, 6, 3), alu(0xac, 6, 3)), (Some(7), Some(2), Some(5)));
    assert_eq!(
        (alu(0x6c, 1, 31), alu(0x6c, 1, 32), alu(0x7c, 8, 3), alu(0x74, 8, 40)),
        (Some(1 << 31), Some(0), Some(1), Some(0))
    );
    assert_eq!(alu(0x84, 1, 0), Some(u32::MAX));
}

#[test]
fn scratch_memory_keeps_a_and_x() {
    let program = [
        (0x00, 0, 0, 5),
        (0x02, 0, 0, 15),
        (0x01, 0, 0, 6),
        (0x03, 0, 0, 0),
        (0x60, 0, 0, 0),
        (0x61, 0, 0, 15),
        (0x1c, 0, 0, 0),
        (0x07, 0, 0, 0),
        (0x00, 0, 0, 0),
        (0x0c, 0, 0, 0),
        (0x16, 0, 0, 0),
    ];
    assert_eq!(run(&program, &[]), Some(1));
}

#[test]
fn branches_compare_unsigned() {
    let holds = |code, a, k| run(&[(0x00, 0, 0, a), (code, 0, 1, k), (0x06, 0, 0, 1), (0x06, 0, 0, 0)], &[]) == Some(1);
    assert!(holds(0x25, 0xffff_ffff, 1) && !holds(0x25, 1, 1) && holds(0x35, 1, 1));
    assert!(holds(0x15, 3, 3) && holds(0x45, 6, 2) && !holds(0x45, 4, 2));
    assert_eq!(run(&[(0x05, 0, 0, 1), (0x06, 0, 0, 1), (0x06, 0, 0, 2)], &[]), Some(2));
}

#[test]
fn unsafe_programs_are_refused() {
    let refused = |program: &[(u16, u8, u8, u32)]| Program::new(program).unwrap_err();
    assert_eq!(refused(&[]), FilterError::Length(0));
    let long = vec![(0x06, 0, 0, 0); (1 << 18) + 1];
    assert_eq!(refused(&long), FilterError::Length(long.len()));
    assert_eq!(refused(&[(0x00, 0, 0, 0)]), FilterError::NoReturn);
    assert_eq!(refused(&[(0x15, 0, 1, 0), (0x06, 0, 0, 0)]), FilterError::Jump { index: 0 });
    assert_eq!(refused(&[(0x05, 0, 0, u32::MAX), (0x06, 0, 0, 0)]), FilterError::Jump { index: 0 });
    assert_eq!(refused(&[(0x02, 0, 0, 16), (0x06, 0, 0, 0)]), FilterError::Cell { index: 0, cell: 16 });
    assert_eq!(refused(&[(0x34, 0, 0, 0), (0x06, 0, 0, 0)]), FilterError::ZeroDivision { index: 0 });
    assert_eq!(refused(&[(0x94, 0, 0, 0), (0x06, 0, 0, 0)]), FilterError::ZeroDivision { index: 0 });
    assert_eq!(refused(&[(0xff, 0, 0, 0), (0x06, 0, 0, 0)]), FilterError::Code { index: 0, code: 0xff });
}

proptest! {
    // Law: a program that is accepted ends, whatever the frame.
    #[test]
    fn accepted_programs_end(
        mut program in proptest::collection::vec((0..0xb8_u16, 0..4_u8, 0..4_u8, 0..40_u32), 1..30),
        data in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        program.push((0x06, 0, 0, 1));
        if let Ok(program) = Program::new(&program) {
            let _ = program.accepts(&data, 60);
        }
    }
}
