//! Segments of a few connections, in any order: each stream is handed on from its beginning to its end, every byte
//! once, and what is held back meanwhile is bounded.
//!
//! Input: segments. Every byte of a payload is its own sequence number, modulo 256.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use conchart_fuzz::Input;
use conchart_native::{
    BySide, Chunk, Connection, Endpoint, Flags, Flow, Gap, Moment, Receiver, Segment, Seq, Side, Slot, Station, Table,
    Transport,
};
use libfuzzer_sys::fuzz_target;

/// One connection holds back so much, and one segment more.
const MOST_WAITING: usize = (4 << 20) + 65_536;
const CLIENT: u32 = u32::MAX - 40;
const SERVER: u32 = 7;

/// Two cycles of all bytes and the longest payload: at any sequence number begins one.
static BYTES: [u8; 66_048] = {
    let mut bytes = [0; 66_048];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at % 256) as u8;
        at += 1;
    }
    bytes
};

#[derive(Debug, Default)]
struct Heard {
    next: BySide<u64>,
    /// Sequence number of the first byte, modulo 256.
    base: BySide<Option<u8>>,
    bytes: BySide<u64>,
    fin: BySide<bool>,
    last: BySide<Option<Moment>>,
}

impl Receiver for Heard {
    fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        assert!(!chunk.is_empty());
        assert_eq!(chunk.offset, self.next[from], "bytes twice, or left out");
        let base = chunk.bytes.first().map(|first| first.wrapping_sub(chunk.offset.to_le_bytes()[0]));
        if let Some(base) = base {
            assert_eq!(*self.base[from].get_or_insert(base), base, "bytes of another place");
        }
        let begin = chunk.bytes.first().map_or(0, |&first| usize::from(first));
        assert_eq!(chunk.bytes, &BYTES[begin..begin + chunk.bytes.len()], "bytes of several places");
        self.next[from] += chunk.len();
        self.bytes[from] += chunk.len();
        self.last[from] = Some(chunk.seen);
    }
    fn gap(&mut self, from: Side, gap: Gap) {
        assert!(gap.len > 0);
        assert_eq!(gap.offset, self.next[from]);
        self.next[from] += gap.len;
    }
    fn fin(&mut self, from: Side, _: Moment) {
        assert!(!self.fin[from], "two ends");
        self.fin[from] = true;
    }
}

/// Numbers: near the stream's beginning, near its present end, or anything.
fn number(input: &mut Input<'_>, how: u8, start: u32, high: u32) -> Option<u32> {
    Some(match how & 3 {
        0 => high,
        1 => high.wrapping_add(input.u16()?.into()).wrapping_sub(64),
        2 => start.wrapping_add(input.u8()?.into()).wrapping_sub(8),
        _ => input.u32()?,
    })
}

fn check(tcp: &Connection, heard: &Heard) {
    assert!(tcp.waiting_bytes() <= MOST_WAITING, "{} bytes held back", tcp.waiting_bytes());
    assert!((tcp.opened.at, tcp.first_frame) <= (tcp.last.at, tcp.last_frame));
    for side in [Side::Client, Side::Server] {
        let half = &tcp.halves[side];
        assert!(heard.bytes[side] + half.late() <= half.bytes());
        assert!(tcp.rtt(side).is_none_or(|rtt| rtt >= 0));
    }
    let _ = (tcp.state().name(), tcp.closing());
}

/// A connection, and what was heard of it.
type Open = (Connection, Heard);

/// Everything was handed on.
fn check_end(flow: Flow<Open>) {
    let (mut tcp, mut heard) = flow.content;
    let heard = &mut heard;
    tcp.finish(heard);
    assert_eq!(tcp.waiting_bytes(), 0);
    check(&tcp, heard);
    for side in [Side::Client, Side::Server] {
        assert_eq!(
            heard.bytes[side] + tcp.halves[side].late(),
            tcp.halves[side].bytes(),
            "distinct bytes of the {side:?}"
        );
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut table: Table<Open> = Table::new(3);
    let mut high = [BySide { client: CLIENT, server: SERVER }; 4];
    let mut at = 0_i64;
    for frame in 1.. {
        let (Some(who), Some(how)) = (input.u8(), input.u8()) else { break };
        let flags = match who >> 4 & 7 {
            0 | 1 => Flags::ACK,
            2 => Flags::SYN,
            3 => Flags::SYN | Flags::ACK,
            4 => Flags::ACK | Flags::FIN,
            5 => Flags::RST | Flags::ACK,
            6 => Flags::ACK | Flags::PSH,
            _ => input.u8().unwrap_or(0),
        };
        let from = if who & 1 == 0 { Side::Client } else { Side::Server };
        let which = usize::from(who >> 1 & 3);
        let start = BySide { client: CLIENT, server: SERVER };
        let seq = number(&mut input, how, start[from], high[which][from]).unwrap_or(0);
        let ack = number(&mut input, how >> 2, start[from.peer()], high[which][from.peer()]).unwrap_or(0);
        let captured = match how >> 4 & 3 {
            0 => 0,
            1 => usize::from(input.u8().unwrap_or(0)),
            2 => 1_448,
            _ => usize::from(input.u16().unwrap_or(0)),
        };
        let more = if how & 0x40 == 0 { 0 } else { u32::from(input.u8().unwrap_or(0)) };
        at += match how >> 7 {
            0 => 1_000,
            _ => i64::from(input.u8().unwrap_or(0).cast_signed()) << 28,
        };
        let begin = usize::from(seq.to_le_bytes()[0]) + usize::from(flags & Flags::SYN != 0);
        let payload = &BYTES[begin..begin + captured];
        let payload_len = captured as u32 + more;
        let end = seq.wrapping_add(payload_len).wrapping_add(u32::from(flags & 3 != 0));
        if end.wrapping_sub(high[which][from]).cast_signed() > 0 || flags & Flags::SYN != 0 {
            high[which][from] = end;
        }
        let last = |side, port| Endpoint { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, side)), port };
        let (client, server) = (last(1, 50_000 + which as u16), last(2, 80));
        let (source, destination) = if from == Side::Client { (client, server) } else { (server, client) };
        let segment = Segment {
            source,
            destination,
            seq: Seq(seq),
            ack: Seq(ack),
            flags: Flags(flags),
            window: if who & 0x80 == 0 { 1_000 } else { u16::from(input.u8().unwrap_or(0)) },
            mss: None,
            window_scale: None,
            timestamps: None,
            payload,
            payload_len,
            // Every segment is another one: copies would be told by it.
            ip_id: Some((frame & 0xffff) as u16 ^ u16::from(who & 0x80 != 0)),
            ttl: 64,
            duplicate_sack: (how & 0x70 == 0x40).then_some((Seq(ack.wrapping_sub(more)), Seq(ack))),
            sacks_beyond_gap: false,
            capture_point: 0,
            station: Station::default(),
            beyond_frame: 0,
            captured: &[],
        };
        let seen = Moment::new(at, frame, from);
        while let Some(flow) = table.expired(at, |(tcp, _)| tcp.is_closed().then(|| tcp.lingers_until())) {
            check_end(*flow);
        }
        let begins = segment.flags.syn() && !segment.flags.ack();
        let mut slot = table.locate(Transport::Tcp, source, destination, at);
        if let Slot::Open(index, from) = slot
            && table.flow(index).expect("an open flow").content.0.is_other_incarnation(from, &segment)
        {
            check_end(*table.remove(index).expect("an open flow"));
            slot = Slot::New;
        }
        let index = match slot {
            Slot::Open(index, _) => index,
            Slot::Stray if !begins => continue,
            Slot::New | Slot::Stray => {
                let content = (Connection::new(seen), Heard::default());
                table.open(Transport::Tcp, BySide { client, server }, at, content)
            }
        };
        let (tcp, heard) = &mut table.flow(index).expect("the flow that was just found").content;
        tcp.segment(from, &segment, seen, heard);
        check(tcp, heard);
        if tcp.is_closed() {
            table.linger(index, at, None);
        }
        if table.overflows() {
            table.overflow().into_iter().for_each(|flow| check_end(*flow));
        }
    }
    let rest = table.drain();
    assert!(rest.is_sorted_by_key(|flow| flow.stream));
    rest.into_iter().for_each(|flow| check_end(*flow));
});
