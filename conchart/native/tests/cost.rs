//! What the core may cost, counted: allocations per record and frame, bytes per open connection. Not timed.
//! With Python comes an allocator of its own.
#![cfg(not(feature = "extension-module"))]
#![allow(unsafe_code, clippy::unwrap_used, clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use conchart_native::{Output, Portion, Selection, Source, Stopped, read};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Counts what this thread allocates: tests run side by side.
struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.set(LIVE.get() + layout.size().cast_signed());
        PEAK.set(PEAK.get().max(LIVE.get()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size().cast_signed());
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Nowhere;

impl Output for Nowhere {
    fn take(&mut self, _: Portion) -> Result<Portion, Stopped> {
        Ok(Portion::default())
    }
}

/// A capture of raw IP packets, a microsecond after each other.
struct Script {
    bytes: Vec<u8>,
    packets: u32,
}

impl Script {
    fn new() -> Self {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101] {
            bytes.extend(word.to_le_bytes());
        }
        Self { bytes, packets: 0 }
    }

    /// `ends`: source and destination port; the lower one is at 10.0.0.2.
    fn packet(&mut self, ends: [u16; 2], (seq, ack): (u32, u32), flags: u8, payload: &[u8]) {
        let host = |port: u16| [10, 0, 0, if port == ends[0].min(ends[1]) { 2 } else { 1 }];
        let length = 40 + payload.len();
        let mut packet = vec![0x45, 0];
        packet.extend((length as u16).to_be_bytes());
        packet.extend((self.packets as u16).to_be_bytes());
        packet.extend([0, 0, 64, 6, 0, 0]);
        ends.iter().for_each(|&port| packet.extend(host(port)));
        ends.iter().for_each(|port| packet.extend(port.to_be_bytes()));
        packet.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(payload);
        self.packets += 1;
        for word in [1 + self.packets / 1_000_000, self.packets % 1_000_000, length as u32, length as u32] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(packet);
    }

    /// Allocations, and the most bytes at once, that reading it takes; without its packets in the tables.
    fn read(&self, name: &str) -> (u64, usize) {
        let path = std::env::temp_dir().join(format!("conchart-cost-{}-{name}.pcap", std::process::id()));
        std::fs::write(&path, &self.bytes).unwrap();
        let sources = [Source::Path(path.clone())];
        let (allocations, live) = (ALLOCATIONS.get(), LIVE.get());
        PEAK.set(live);
        let result = read(&sources, Selection::default(), Nowhere);
        let cost = (ALLOCATIONS.get() - allocations, (PEAK.get() - live).unsigned_abs());
        std::fs::remove_file(&path).unwrap();
        assert!(result.is_ok(), "{:?}", result.err());
        cost
    }
}

/// What each of `count` more pieces costs in allocations.
fn each(name: &str, count: u32, script: impl Fn(u32) -> Script) -> f64 {
    let [few, many] = [count, 2 * count].map(|count| script(count).read(&format!("{name}-{count}")).0);
    many.saturating_sub(few) as f64 / f64::from(count)
}

#[test]
fn a_syn_of_a_scan_takes_little_room() {
    const SYNS: u16 = 20_000;
    let mut scan = Script::new();
    let (_, without) = scan.read("none");
    for port in 0..SYNS {
        scan.packet([40_000 + port, 30_000], (7, 0), SYN, b"");
    }
    let (_, with) = scan.read("scan");
    let bytes = (with - without) / usize::from(SYNS);
    assert!(bytes <= 750, "{bytes} bytes per SYN");
    // Sent again, each has become a connection of which nothing else is known.
    for port in 0..SYNS {
        scan.packet([40_000 + port, 30_000], (7, 0), SYN, b"");
    }
    let (_, again) = scan.read("again");
    let bytes = (again - without) / usize::from(SYNS);
    assert!(bytes <= 1_700, "{bytes} bytes per SYN that was sent again");
}

#[test]
fn a_syn_that_is_refused_takes_few_allocations() {
    let refused = |count: u32| {
        let mut scan = Script::new();
        for port in 0..count as u16 {
            scan.packet([40_000 + port, 30_000], (7, 0), SYN, b"");
            scan.packet([30_000, 40_000 + port], (0, 8), RST | ACK, b"");
        }
        scan
    };
    let allocations = each("refused", 4_000, refused);
    assert!(allocations <= 10.0, "{allocations}");
}

/// Tens of thousands of closed connections wait for strays, however they were closed.
#[test]
fn a_connection_that_both_sides_reset_keeps_nothing_of_what_was_said() {
    const CONNECTIONS: u16 = 4_000;
    let (request, response) = (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let (next, acked) = (8 + request.len() as u32, 10 + response.len() as u32);
    let mut talk = Script::new();
    let (_, without) = talk.read("idle");
    for port in (0..CONNECTIONS).map(|port| 40_000 + port) {
        talk.packet([port, 80], (7, 0), SYN, b"");
        talk.packet([80, port], (9, 8), SYN | ACK, b"");
        talk.packet([port, 80], (8, 10), PSH | ACK, request);
        talk.packet([80, port], (10, next), PSH | ACK, response);
        talk.packet([port, 80], (next, acked), RST | ACK, b"");
        talk.packet([80, port], (acked, next), RST | ACK, b"");
    }
    let (_, with) = talk.read("reset");
    let bytes = (with - without) / usize::from(CONNECTIONS);
    assert!(bytes <= 2_250, "{bytes}");
}

/// As servers close that have read all they wanted, and clients that still have a farewell to send.
#[test]
fn a_connection_that_its_server_had_closed_and_then_resets_keeps_nothing_of_what_was_said() {
    const CONNECTIONS: u16 = 8_000;
    let (request, response) = (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let (next, acked) = (8 + request.len() as u32, 10 + response.len() as u32);
    let mut talk = Script::new();
    let (_, without) = talk.read("none-left");
    for port in (0..CONNECTIONS).map(|port| 40_000 + port) {
        talk.packet([port, 80], (7, 0), SYN, b"");
        talk.packet([80, port], (9, 8), SYN | ACK, b"");
        talk.packet([port, 80], (8, 10), PSH | ACK, request);
        talk.packet([80, port], (10, next), PSH | ACK, response);
        talk.packet([80, port], (acked, next), FIN | ACK, b"");
        talk.packet([port, 80], (next, acked + 1), PSH | ACK, b"x");
        talk.packet([80, port], (acked + 1, 0), RST, b"");
    }
    let (_, with) = talk.read("left");
    let bytes = (with - without) / usize::from(CONNECTIONS);
    // A fifth of them were closed within the last 10 ms: something may still be on its way.
    assert!(bytes <= 3_000, "{bytes}");
}

#[test]
fn a_sealed_record_takes_no_allocation() {
    let records = |count: u32| {
        let mut talk = Script::new();
        let record = [&[23, 3, 3, 0, 100][..], &[0xda; 100]].concat();
        for number in 0..count {
            talk.packet([50_000, 443], (1 + number * 105, 1), PSH | ACK, &record);
        }
        talk
    };
    let allocations = each("records", 4_000, records);
    assert!(allocations < 0.1, "{allocations}");
}

#[test]
fn a_frame_of_http2_takes_no_allocation() {
    let frames = |count: u32| {
        let mut talk = Script::new();
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".as_slice();
        let headers = b"\0\0\x01\x01\x04\0\0\0\x01\x83";
        talk.packet([50_000, 80], (0, 0), SYN, b"");
        talk.packet([80, 50_000], (0, 1), SYN | ACK, b"");
        let begun = [preface, headers].concat();
        talk.packet([50_000, 80], (1, 1), PSH | ACK, &begun);
        let frame = [b"\0\0\x64\0\0\0\0\0\x01".as_slice(), &[b'x'; 100]].concat();
        for number in 0..count {
            talk.packet([50_000, 80], (1 + begun.len() as u32 + number * 109, 1), PSH | ACK, &frame);
        }
        talk
    };
    let allocations = each("frames", 4_000, frames);
    assert!(allocations < 0.1, "{allocations}");
}

#[test]
fn a_segment_of_something_unknown_takes_no_allocation() {
    let segments = |count: u32| {
        let mut talk = Script::new();
        for number in 0..count {
            talk.packet([50_000, 7], (1 + number * 10, 1), PSH | ACK, &[0xfe; 10]);
        }
        talk
    };
    let allocations = each("unknown", 4_000, segments);
    assert!(allocations < 0.1, "{allocations}");
}
