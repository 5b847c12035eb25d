//! A pcapng file whose framing is right and whose contents are hostile, read into the tables.
//!
//! Input: byte order, then blocks. Packets are the fuzzer's bytes, or segments of up to four connections whose numbers
//! go on where the latest ones ended.
#![no_main]

use conchart_fuzz::packets::{Blocks, Wire};
use conchart_fuzz::{Input, check_capture};
use libfuzzer_sys::fuzz_target;

const SYN: u8 = 2;
/// 2023, in microseconds: no clock that is read here leaves the range of ±2^62 ns.
const START: u64 = 1_700_000_000_000_000;

/// The next segment of a connection, most often one that a TCP would send.
fn segment(input: &mut Input<'_>, next: &mut [[u32; 2]; 4], id: u16) -> Option<(Vec<u8>, u32)> {
    let (who, how) = (input.u8()?, input.u8()?);
    let (from, to) = (usize::from(who & 1), usize::from(!who & 1));
    let flow = &mut next[usize::from(who >> 1 & 3)];
    let flags = match who >> 4 & 7 {
        0..=2 => 0x10,
        3 => SYN,
        4 => SYN | 0x10,
        5 => 0x11,
        6 => 0x14,
        _ => input.u8()?,
    };
    let shift = |input: &mut Input<'_>, bit: u8| {
        if how & bit == 0 { 0 } else { i32::from(input.u16().unwrap_or(0).cast_signed()).cast_unsigned() }
    };
    let seq = flow[from].wrapping_add(shift(input, 1));
    let ack = flow[to].wrapping_add(shift(input, 2));
    let options = if how & 4 == 0 { &[][..] } else { input.bytes()? };
    let payload = if how & 8 == 0 { &[][..] } else { input.bytes()? };
    let missing = u32::from(if how & 16 == 0 { 0 } else { input.u16()? });
    let window = if how & 32 == 0 { 1_000 } else { 0 };
    let end = seq.wrapping_add(payload.len() as u32 + missing).wrapping_add(u32::from(flags & 3 != 0));
    if end.wrapping_sub(flow[from]).cast_signed() > 0 {
        flow[from] = end;
    }
    let mut frame = Wire { who, seq, ack, flags, window, id, options, payload }.frame();
    let wire = frame.len() as u32 + missing;
    let total = (wire.wrapping_sub(14) as u16).to_be_bytes();
    frame[16..18].copy_from_slice(&total);
    Some((frame, wire))
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut file = Blocks::default();
    file.section(input.u8().unwrap_or(0) & 1 != 0);
    file.interface(1, 0, &[]);
    let mut next = [[1_000, u32::MAX - 500]; 4];
    let mut at = START;
    for id in 0.. {
        let Some(what) = input.u8() else { break };
        at = match what >> 4 & 3 {
            0 => at,
            1 => at + u64::from(input.u8().unwrap_or(0)),
            2 => at + (u64::from(input.u16().unwrap_or(0)) << 8),
            // The clock goes back.
            _ => at.saturating_sub(u64::from(input.u16().unwrap_or(0)) << 4),
        };
        let interface = if what & 0x40 == 0 { 0 } else { input.u8().unwrap_or(0).into() };
        let options = if what & 0x80 == 0 { &[][..] } else { input.bytes().unwrap_or_default() };
        match what & 15 {
            0..=6 => {
                let Some((frame, wire)) = segment(&mut input, &mut next, id) else { break };
                file.packet(interface, at, &frame, wire, options);
            }
            7 | 8 => {
                let frame = input.bytes().unwrap_or_default();
                let longer = input.u16().unwrap_or(0);
                file.packet(interface, at, frame, (frame.len() as u32).saturating_add(longer.into()), options);
            }
            9 => {
                let link =
                    [1, 101, 113, 276, 0, 105, 127, 228, 229, 9, 12, 50][usize::from(input.u8().unwrap_or(0)) % 12];
                // The clock's resolution, to nanoseconds: coarser ones leave the range.
                let resolution = [6, 7, 8, 9, 0x80 | 20, 0x80 | 30][usize::from(input.u8().unwrap_or(0)) % 6];
                let options = [&file.option(9, &[resolution])[..], options].concat();
                file.interface(link, input.u16().unwrap_or(0).into(), &options);
            }
            10 => {
                let is_big = input.u8().unwrap_or(0) & 1 != 0;
                file.section(is_big);
                if what & 0x80 == 0 {
                    file.interface(1, 0, &[]);
                }
            }
            // A key log, or other secrets.
            11 => {
                let log = input.bytes().unwrap_or_default();
                let body = [&file.u32(0x544c_534b)[..], &file.u32(log.len() as u32), log].concat();
                file.block(0x0a, &body);
            }
            // A block of any type with any contents.
            12 => {
                let kind = [2, 3, 4, 5, 6, 9, 0x0bad, 0x4000_0bad][usize::from(input.u8().unwrap_or(0)) % 8];
                // Times within an enhanced or obsolete packet block are the fuzzer's: they are kept small.
                let mut body = input.bytes().unwrap_or_default().to_vec();
                if let Some(high) = body.get_mut(4..8).filter(|_| kind == 2 || kind == 6) {
                    high.copy_from_slice(&[0; 4]);
                }
                file.block(kind, &body);
            }
            13 => file.block(input.u32().unwrap_or(0) | 0x8000_0000, input.bytes().unwrap_or_default()),
            // Not even framing.
            14 => file.bytes.extend_from_slice(input.bytes().unwrap_or_default()),
            // Something short is at the end.
            _ => {
                let len = file.bytes.len().saturating_sub(usize::from(input.u8().unwrap_or(0)));
                file.bytes.truncate(len.max(28));
            }
        }
    }
    check_capture(&file.bytes, None);
});
