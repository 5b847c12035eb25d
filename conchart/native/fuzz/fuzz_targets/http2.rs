//! Frames of HTTP/2: header blocks are read as they were written, and how TCP cuts the frames changes nothing.
//!
//! Input: how they are cut, then frames. Header blocks are made here, by a writer that keeps a dynamic table of its own,
//! or are raw bytes.
#![no_main]

use std::collections::VecDeque;

use conchart_fuzz::{Found, Input, Talk, assert_cutting_changes_nothing, kind, sender};
use conchart_native::{BySide, Exchange, Side};
use libfuzzer_sys::fuzz_target;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, len @ ..] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    [&len[..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// An integer with a prefix of so many bits (RFC 7541 section 5.1).
fn integer(block: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let mask = (1 << prefix) - 1;
    if value < mask {
        return block.push(first | value as u8);
    }
    block.push(first | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

fn string(block: &mut Vec<u8>, text: &[u8]) {
    integer(block, 0, 7, text.len());
    block.extend_from_slice(text);
}

/// Writes header blocks, as RFC 7541 section 6 has them.
struct Writer {
    entries: VecDeque<(&'static str, Vec<u8>)>,
    max: usize,
}

/// Pseudo-headers with their place in the static table, and one that is not there.
const NAMES: [(&str, usize); 6] =
    [(":authority", 1), (":method", 2), (":path", 4), (":status", 8), ("host", 38), ("x", 0)];

impl Writer {
    fn evict(&mut self) {
        let size = |entries: &VecDeque<(&str, Vec<u8>)>| -> usize {
            entries.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
        };
        while size(&self.entries) > self.max {
            self.entries.pop_back();
        }
    }

    fn field(&mut self, block: &mut Vec<u8>, how: u8, name: &'static str, index: usize, value: &[u8]) {
        if let Some(place) = self.entries.iter().position(|(n, v)| *n == name && v == value)
            && how & 1 == 0
        {
            return integer(block, 0x80, 7, 62 + place);
        }
        let (first, prefix) = [(0x40, 6), (0, 4), (0x10, 4)][usize::from(how >> 1 & 3) % 3];
        let newest = self.entries.iter().position(|(n, _)| *n == name).filter(|_| how & 8 != 0);
        let index = newest.map_or(index, |place| 62 + place);
        let index = if how & 16 == 0 { index } else { 0 };
        integer(block, first, prefix, index);
        if index == 0 {
            string(block, name.as_bytes());
        }
        string(block, value);
        if first == 0x40 {
            self.entries.push_front((name, value.to_vec()));
            self.evict();
        }
    }
}

/// What a block says, the last of each name.
#[derive(Default)]
struct Fields<'a>([Option<&'a [u8]>; NAMES.len()]);

impl<'a> Fields<'a> {
    fn get(&self, at: usize) -> Option<&'a [u8]> {
        self.0[at]
    }
}

fn block<'a>(writer: &mut Writer, input: &mut Input<'a>, pseudo: &[(usize, &'a [u8])]) -> (Vec<u8>, Fields<'a>) {
    let mut bytes = Vec::new();
    let mut fields = Fields::default();
    let how = input.u8().unwrap_or(0);
    if how >= 0xf0 {
        writer.max = usize::from(how & 7) * 40;
        integer(&mut bytes, 0x20, 5, writer.max);
        writer.evict();
    }
    for &(at, value) in pseudo {
        let (name, index) = NAMES[at];
        writer.field(&mut bytes, input.u8().unwrap_or(0), name, index, value);
        fields.0[at] = Some(value);
    }
    for _ in 0..how & 7 {
        let Some(how) = input.u8() else { break };
        let at = 4 + usize::from(how >> 7);
        let (name, index) = NAMES[at];
        let len = usize::from(input.u8().unwrap_or(0));
        let value = input.take(len);
        writer.field(&mut bytes, how, name, index, value);
        fields.0[at] = Some(value);
    }
    (bytes, fields)
}

/// Which request and which response belong to one exchange; `None` where raw bytes may have said otherwise.
struct Expected<'a> {
    stream: u8,
    request: Fields<'a>,
    status: Option<u32>,
}

fn check(exchange: &Exchange, expected: &Expected<'_>) {
    let same = |found: Option<&str>, sent: Option<&[u8]>| {
        // What is not text, or too long, may be told otherwise.
        let plain = sent.filter(|sent| sent.len() < 200 && sent.iter().all(u8::is_ascii_graphic));
        if let Some(plain) = plain.filter(|plain| !plain.is_empty()) {
            assert_eq!(found.map(str::as_bytes), Some(plain), "stream {}: {exchange:?}", expected.stream);
        }
    };
    same(exchange.method.as_deref(), expected.request.get(1));
    same(exchange.target.as_deref(), expected.request.get(2));
    same(exchange.host.as_deref(), expected.request.get(0));
    assert_eq!(exchange.status, expected.status, "stream {}: {exchange:?}", expected.stream);
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let how = input.u8().unwrap_or(0);
    let mut talk = Talk::default();
    let writer = || Writer { entries: VecDeque::new(), max: 4096 };
    let mut writers = BySide { client: writer(), server: writer() };
    let mut expected: Vec<Expected<'_>> = Vec::new();
    let mut is_honest = how & 1 == 0;
    // After a frame that cannot be, frames are found again where a packet begins.
    let mut is_legal = true;
    if how & 0x40 == 0 {
        talk.say(0x10, [PREFACE, &frame(4, 0, 0, &[])].concat());
        talk.say(0x11, frame(4, 0, 0, &[]));
    } else {
        (is_honest, is_legal) = (false, false);
    }
    while let Some(manner) = input.u8() {
        let from = sender(manner);
        match kind(manner) {
            // A request on the next stream, or the response to one.
            0 | 1 if from == Side::Client => {
                let stream = expected.last().map_or(1, |latest| latest.stream.saturating_add(2));
                let Some(len) = input.u8().filter(|_| stream < 253) else { break };
                let path = input.take(usize::from(len & 63));
                let method = if len & 64 == 0 { "GET" } else { "POST" };
                let pseudo = [(1, method.as_bytes()), (2, path), (0, &b"h"[..])];
                let (bytes, request) = block(&mut writers.client, &mut input, &pseudo);
                talk.say(manner, frame(HEADERS, END_HEADERS | END_STREAM, stream, &bytes));
                expected.push(Expected { stream, request, status: None });
            }
            0 | 1 => {
                let which = usize::from(input.u8().unwrap_or(0));
                let status = 200 + u32::from(input.u8().unwrap_or(0) & 127) * 3;
                let text = ["200", "204", "206", "304", "404", "500"][status as usize % 6];
                let Some(of) = expected.get_mut(which).filter(|of| of.status.is_none()) else { continue };
                of.status = text.parse().ok();
                let stream = of.stream;
                let (bytes, _) = block(&mut writers.server, &mut input, &[(3, text.as_bytes())]);
                // In one frame, or in two.
                let at = usize::from(manner >> 1 & 1) * (bytes.len() / 2);
                let (opening, rest) = bytes.split_at(if at == 0 { bytes.len() } else { at });
                let flags = if rest.is_empty() { END_HEADERS | END_STREAM } else { END_STREAM };
                let mut frames = frame(HEADERS, flags, stream, opening);
                if !rest.is_empty() {
                    frames.extend(frame(9, END_HEADERS, stream, rest));
                }
                talk.say(manner, frames);
            }
            // Frames that say nothing about headers.
            2 => {
                let (kind, stream) = (input.u8().unwrap_or(0), input.u8().unwrap_or(0));
                let payload = input.bytes().unwrap_or_default();
                talk.say(
                    manner,
                    match kind % 5 {
                        0 => frame(4, 0, 0, &[0, 3, 0, 0, 0, stream]),
                        1 => frame(6, kind >> 7, 0, &[stream; 8]),
                        2 => frame(8, 0, stream, &[0, 0, 1, 0]),
                        3 => frame(2, 0, stream | 1, &[0, 0, 0, 0, 7]),
                        _ => frame(0x20 | kind, stream, stream, payload),
                    },
                );
            }
            // A frame that may be here (RFC 9113 section 6), whatever its contents.
            3 => {
                is_honest = false;
                let (kind, flags, stream) = (input.u8().unwrap_or(0), input.u8().unwrap_or(0), input.u8().unwrap_or(0));
                let mut payload = input.bytes().unwrap_or_default().to_vec();
                let (kind, flags, stream) = match kind % 5 {
                    0 => (3, flags, stream.max(1)),
                    1 => (7, flags, 0),
                    kind => ([0, 1, 5][usize::from(kind - 2)], flags | END_HEADERS, stream.max(1)),
                };
                match kind {
                    3 => payload.resize(4, 0),
                    7 => payload.resize(payload.len().max(8), 0),
                    _ => {}
                }
                talk.say(manner, frame(kind, flags, stream, &payload));
            }
            4 => {
                (is_honest, is_legal) = (false, false);
                let (kind, flags, stream) = (input.u8().unwrap_or(0), input.u8().unwrap_or(0), input.u8().unwrap_or(0));
                talk.say(manner, frame(kind, flags, stream, input.bytes().unwrap_or_default()));
            }
            5 => {
                is_honest = false;
                talk.gap(manner, input.u16().unwrap_or(0).into());
            }
            6 => talk.fin(manner),
            _ => {
                (is_honest, is_legal) = (false, false);
                talk.say(manner, input.bytes().unwrap_or_default());
            }
        }
    }
    let found = if how & 1 == 0 && is_legal && !talk.is_torn {
        assert_cutting_changes_nothing(&talk, talk.piece(how >> 1 & 31))
    } else {
        Found::of(&talk, usize::MAX, how & 1 != 0, None)
    };
    if is_honest {
        assert_eq!(found.exchanges.len(), expected.len());
        found.exchanges.iter().zip(&expected).for_each(|(exchange, expected)| check(exchange, expected));
    }
});
