//! Times stages of the core by themselves: decoding frames, TCP, TLS records, heads of HTTP/1.
//!
//!     cargo bench --bench stages
//!
//! `read` beside it counts instructions of everything together, which the gate holds to a record; these numbers are for
//! whoever works on one stage, and are compared on one machine.
#![allow(clippy::unwrap_used)]

use conchart_native::{
    Carrier, Chunk, Connection, Conversation, Decoded, Flags, Gap, LinkType, Moment, Receiver, Segment, Side, Tls,
    decode,
};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use etherparse::PacketBuilder;

const ETHERNET: LinkType = LinkType(1);
/// Segments, records or requests of one measurement.
const COUNT: u32 = 1_000;
const PAYLOAD: usize = 1_448;

fn main() {
    divan::main();
}

fn moment(frame: u32, sender: Side) -> Moment {
    Moment::new(i64::from(frame) * 1_000, frame.into(), sender)
}

/// One side's segments of `PAYLOAD` bytes, as Ethernet frames.
fn frames() -> Vec<Vec<u8>> {
    let payload = [0x55; PAYLOAD];
    let frame = |index: u32| {
        let seq = 1_000 + index * u32::try_from(PAYLOAD).unwrap();
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(40_000, 80, seq, 0x7fff);
        let mut bytes = Vec::new();
        builder.ack(1).write(&mut bytes, &payload).unwrap();
        // Every packet has a number of its own, or it would be a copy of another.
        let [high, low] = u16::try_from(index).unwrap().to_be_bytes();
        bytes.splice(18..20, [high, low]);
        bytes
    };
    (0..COUNT).map(frame).collect()
}

fn segment(frame: &[u8]) -> Segment<'_> {
    match decode(ETHERNET, frame, u32::try_from(frame.len()).unwrap()) {
        Ok(Decoded::Tcp(segment)) => segment,
        _ => unreachable!("a segment was made"),
    }
}

/// Counts what it hears.
#[derive(Default)]
struct Heard(u64);

impl Receiver for Heard {
    fn data(&mut self, _from: Side, chunk: Chunk<'_>) {
        self.0 += chunk.len();
    }
    fn gap(&mut self, _from: Side, _gap: Gap) {}
    fn fin(&mut self, _from: Side, _seen: Moment) {}
}

#[divan::bench]
fn decode_frames(bencher: Bencher) {
    let frames = frames();
    let bytes = frames.iter().map(Vec::len).sum::<usize>();
    bencher.counter(ItemsCount::new(COUNT)).counter(BytesCount::new(bytes)).bench_local(|| {
        for frame in &frames {
            black_box(segment(black_box(frame)));
        }
    });
}

#[divan::bench]
fn tcp_segments(bencher: Bencher) {
    let frames = frames();
    let segments: Vec<Segment<'_>> = frames.iter().map(|frame| segment(frame)).collect();
    assert!(segments.iter().all(|segment| segment.flags == Flags(Flags::ACK)));
    let play = || {
        let mut connection = Connection::new(moment(1, Side::Client));
        let mut heard = Heard::default();
        for (frame, segment) in (1..).zip(&segments) {
            connection.segment(Side::Client, segment, moment(frame, Side::Client), &mut heard);
        }
        connection.finish(&mut heard);
        heard.0
    };
    assert_eq!(play(), frames.len() as u64 * PAYLOAD as u64, "every byte is heard");
    bencher.counter(ItemsCount::new(COUNT)).bench_local(play);
}

/// Tells one side's stream, a packet at a time.
fn chunks(stream: &[u8], from: Side) -> impl Iterator<Item = Chunk<'_>> {
    stream.chunks(PAYLOAD).zip(1..).map(move |(bytes, frame)| {
        let offset = u64::from(frame - 1) * PAYLOAD as u64;
        Chunk { bytes, cut: 0, offset, acked: 0, seen: moment(frame, from) }
    })
}

/// Encrypted records of application data of a connection that the capture joined later.
#[divan::bench]
fn tls_records(bencher: Bencher) {
    let record = [&[23, 3, 3, 0x04, 0x00][..], &[0x55; 1_024]].concat();
    let stream = record.repeat(COUNT as usize);
    let play = || {
        let mut tls = Tls::midstream();
        let mut records = 0;
        for chunk in chunks(&stream, Side::Server) {
            tls.data(Side::Server, chunk);
            records += std::iter::from_fn(|| tls.next_record()).count();
        }
        tls.finish();
        records + std::iter::from_fn(|| tls.next_record()).count()
    };
    assert!(play() > 0, "records are read");
    bencher.counter(ItemsCount::new(COUNT)).counter(BytesCount::new(stream.len())).bench_local(play);
}

const REQUEST: &[u8] = b"GET /articles/2026/11/index.html?page=3 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: bench/1.0\r\n\
    Accept: text/html,application/xhtml+xml\r\nAccept-Encoding: gzip, br\r\nAccept-Language: en\r\nConnection: keep-alive\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef\r\nX-Request-Id: 8d7f\r\n\r\n";
const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Mon, 23 Nov 2026 22:00:00 GMT\r\nContent-Type: text/html\r\n\
    Content-Length: 5\r\nCache-Control: max-age=60\r\nConnection: keep-alive\r\nVary: Accept-Encoding\r\n\r\nhello";

/// Requests and their responses, one after the other.
#[divan::bench]
fn http1_heads(bencher: Bencher) {
    let play = || {
        let mut conversation = Conversation::new(Carrier::Stream, false, None);
        let mut exchanges = 0;
        let (mut request_bytes, mut response_bytes) = (0, 0);
        for number in 0..COUNT {
            let seen = moment(2 * number + 1, Side::Client);
            let chunk = Chunk { bytes: REQUEST, cut: 0, offset: request_bytes, acked: response_bytes, seen };
            request_bytes += chunk.len();
            conversation.data(Side::Client, chunk);
            let seen = moment(2 * number + 2, Side::Server);
            let chunk = Chunk { bytes: RESPONSE, cut: 0, offset: response_bytes, acked: request_bytes, seen };
            response_bytes += chunk.len();
            conversation.data(Side::Server, chunk);
            exchanges += std::iter::from_fn(|| conversation.next_exchange()).count();
        }
        conversation.finish();
        exchanges + std::iter::from_fn(|| conversation.next_exchange()).count()
    };
    assert_eq!(play(), COUNT as usize, "every request is an exchange");
    bencher.counter(ItemsCount::new(COUNT)).bench_local(play);
}
