use proptest::prelude::*;

use super::talk::{Packet, Talk, moment};
use crate::exchange::{Carrier, Conversation, Exchange};
use crate::stream::{Chunk, Gap, Moment, Side};

/// Feeds packets, each cut at the given places; `seen_of` gives every byte its moment.
fn feed(packets: &[Packet], cuts: impl Fn(usize) -> usize, seen_of: impl Fn(Moment, usize) -> Moment) -> Vec<Exchange> {
    let mut conversation = Conversation::new(Carrier::Stream, false, None);
    let mut total = 0;
    for packet in packets {
        let mut rest = &packet.bytes[..];
        let mut offset = packet.offset;
        while !rest.is_empty() {
            let (bytes, after) = rest.split_at(cuts(total).clamp(1, rest.len()));
            let seen = seen_of(packet.seen, total);
            conversation.data(packet.from, Chunk { bytes, cut: 0, offset, acked: packet.acked, seen });
            (offset, total, rest) = (offset + bytes.len() as u64, total + bytes.len(), after);
        }
    }
    conversation.finish();
    std::iter::from_fn(|| conversation.next_exchange()).collect()
}

const METHODS: &[&str] = &["GET", "POST", "M-SEARCH", "FROB"];

fn request(methods: &'static [&'static str]) -> impl Strategy<Value = String> {
    let body = prop_oneof![
        Just(String::new()),
        (0..40usize).prop_map(|n| format!("Content-Length: {n}\r\n\r\n{}", "b".repeat(n))),
        prop::collection::vec(1..20usize, 0..4)
            .prop_map(|sizes| format!("Transfer-Encoding: chunked\r\n\r\n{}", chunked(&sizes))),
        (0..9usize).prop_map(|n| format!("Expect: 100-continue\r\nContent-Length: {n}\r\n\r\n{}", "e".repeat(n))),
    ];
    ("(\r\n)?", prop::sample::select(methods), "/[a-z ]{0,9}", 0..2, body).prop_map(
        |(stray, method, target, minor, body)| {
            let end = if body.is_empty() { "\r\n" } else { "" };
            format!("{stray}{method} {target} HTTP/1.{minor}\r\nHost: h\r\n{body}{end}")
        },
    )
}

fn response() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".to_owned()),
        Just("HTTP/1.1 100 Continue\r\n\r\n".to_owned()),
        Just("HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\n\r\n".to_owned()),
        Just("HTTP/1.0 200 OK\r\n\r\nuntil close".to_owned()),
        (0..60usize).prop_map(|n| format!("HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n{}", "B".repeat(n))),
        prop::collection::vec(1..20usize, 0..4)
            .prop_map(|sizes| format!("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n{}", chunked(&sizes))),
    ]
}

fn chunked(sizes: &[usize]) -> String {
    let chunks = sizes.iter().map(|&n| format!("{n:x};x=y\r\n{}\r\n", "c".repeat(n)));
    chunks.chain(["0\r\nT: v\r\n\r\n".to_owned()]).collect()
}

/// Well-formed messages in any order, each side's packets cut anywhere. (No HEAD: where responses
/// pair at random, its response could have a body, which is noise to a reader, and a reader finds
/// its way out of noise at the beginnings of packets.)
fn conversations() -> impl Strategy<Value = Vec<Packet>> {
    let message = prop_oneof![
        request(METHODS).prop_map(|text| (Side::Client, text)),
        response().prop_map(|text| (Side::Server, text)),
    ];
    let pieces = (message, 1..80usize);
    prop::collection::vec(pieces, 1..12).prop_map(|pieces| {
        let mut talk = Talk::new();
        for ((from, text), size) in pieces {
            for piece in text.as_bytes().chunks(size) {
                talk = talk.say(from, piece, 0);
            }
        }
        talk.packets()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The same packets in any pieces, down to single bytes, hold the same exchanges.
    #[test]
    fn how_packets_are_handed_over_changes_nothing(
        packets in conversations(),
        sizes in prop::collection::vec(1..30usize, 1..20),
    ) {
        let whole = feed(&packets, |_| usize::MAX, |seen, _| seen);
        prop_assert_eq!(&feed(&packets, |_| 1, |seen, _| seen), &whole);
        prop_assert_eq!(&feed(&packets, |nth| sizes[nth % sizes.len()], |seen, _| seen), &whole);
    }

    /// Byte by byte, each with a moment of its own, the boundaries lie in the packets in which they
    /// lie when packets come whole: a clean HTTP conversation does not depend on packet borders.
    #[test]
    fn how_tcp_cuts_a_clean_stream_changes_no_fact(packets in clean_conversations()) {
        let whole = feed(&packets, |_| usize::MAX, |seen, _| seen);
        let single = feed(&packets, |_| 1, |_, nth| moment(nth as u64 + 1));
        let owner: Vec<Moment> = packets.iter().flat_map(|p| vec![p.seen; p.bytes.len()]).collect();
        let packet_of = |m: &mut Option<Moment>| *m = m.map(|m| owner[m.frame() as usize - 1]);
        let single: Vec<Exchange> = single.into_iter().map(|mut e| {
            for span in [&mut e.request, &mut e.response] {
                packet_of(&mut span.first);
                packet_of(&mut span.last);
                packet_of(&mut span.content);
            }
            packet_of(&mut e.continued);
            e
        }).collect();
        prop_assert_eq!(single, whole);
    }

    /// Anything at all, with gaps, cuts and FINs anywhere: no panic, numbers in order and without
    /// holes, spans in order, nothing left behind.
    #[test]
    fn arbitrary_events_never_panic_and_numbers_have_no_holes(
        midstream: bool,
        events in prop::collection::vec((any::<bool>(), anything(), 0..4u32, 0..9u8), 0..60),
    ) {
        let mut conversation = Conversation::new(Carrier::Stream, midstream, None);
        let mut sent = crate::stream::BySide::<u64>::default();
        let mut found = Vec::new();
        for (frame, (client, bytes, cut, what)) in (1..).zip(&events) {
            let from = if *client { Side::Client } else { Side::Server };
            let seen = moment(frame);
            let offset = sent[from];
            match what {
                0 => {
                    conversation.gap(from, Gap::new(offset, bytes.len() as u64 + 1, seen));
                    sent[from] += bytes.len() as u64 + 1;
                }
                1 => conversation.fin(from, seen),
                _ => {
                    let cut = if *cut == 3 { 7 } else { 0 };
                    conversation.data(from, Chunk { bytes, cut, offset, acked: sent[from.peer()], seen });
                    sent[from] += bytes.len() as u64 + u64::from(cut);
                }
            }
            if frame % 3 == 0 {
                found.extend(conversation.next_exchange());
            }
            let _ = (conversation.earliest_open(), conversation.app());
        }
        conversation.finish();
        found.extend(std::iter::from_fn(|| conversation.next_exchange()));
        while conversation.next_handshake().is_some() {}
        for (number, exchange) in (0..).zip(&found) {
            prop_assert_eq!(exchange.number, number);
            prop_assert!((0.0..=1.0).contains(&exchange.confidence));
            for span in [exchange.request, exchange.response] {
                prop_assert_eq!(span.first.is_some(), span.last.is_some());
                prop_assert!(span.first.is_none_or(|first| first.frame() <= span.last.unwrap().frame()));
            }
        }
        let counted: u64 = found.iter().map(|e| e.request.bytes + e.response.bytes).sum();
        prop_assert!(counted <= sent.client + sent.server);
        prop_assert!(conversation.earliest_open().is_none());
    }
}

/// What a peer could send to confuse a reader: valid beginnings, valid ends, noise.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..50),
        request(METHODS).prop_map(String::into_bytes),
        response().prop_map(String::into_bytes),
        (request(METHODS), 0..60usize).prop_map(|(text, n)| text.into_bytes().into_iter().take(n).collect()),
        (response(), 0..60usize).prop_map(|(text, n)| text.into_bytes().into_iter().skip(n).collect()),
        Just(b"CONNECT h:1 HTTP/1.1\r\n\r\n".to_vec()),
        Just(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00".to_vec()),
        Just(b"\x17\x03\x03\x00\x02ab".to_vec()),
        Just(b"\x05\x01\0\x05\x01\0\x01abcd\0\x50".to_vec()),
        Just(b"\x05\0\x05\0\0\x01abcd\0\x50".to_vec()),
        Just(b"PROXY UNKNOWN\r\n".to_vec()),
        Just(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        Just(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64".to_vec()),
        (0..10u8, 0..64u8, 0..7u8, prop::collection::vec(any::<u8>(), 0..12)).prop_map(
            |(kind, flags, stream, payload)| {
                [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], &payload[..]].concat()
            }
        ),
    ]
}

/// Requests, each answered by one response that has an end.
fn clean_conversations() -> impl Strategy<Value = Vec<Packet>> {
    let sound = response().prop_filter("has an end", |r| !r.contains("until close") && !r.contains(" 10"));
    prop::collection::vec((request(&["GET", "HEAD", "POST"]), sound, 1..60usize, 1..60usize), 1..8).prop_map(|pairs| {
        let mut talk = Talk::new();
        for (request, response, a, b) in pairs {
            for piece in request.as_bytes().chunks(a) {
                talk = talk.client(piece);
            }
            let head_only = request.trim_start().starts_with("HEAD") && !response.contains(" 304 ");
            let head = response.find("\r\n\r\n").map(|n| n + 4).or(response.find("\n\n").map(|n| n + 2)).unwrap();
            let response = if head_only { &response[..head] } else { &response[..] };
            for piece in response.as_bytes().chunks(b) {
                talk = talk.server(piece);
            }
        }
        talk.packets()
    })
}

#[test]
fn endless_streams_are_not_kept() {
    // A million bytes of each kind: what is held stays within the stated limits.
    for (first, more) in [
        (&b"GET / HTTP/1.1\r\nA: "[..], &[b'a'; 1000][..]),
        (b"CONNECT h:1 HTTP/1.1\r\n\r\n", &[b'\x16'; 1000]),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", &[b'x'; 1000]),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: ", &[b'x'; 1000]),
        (b"\x00", &[0; 1000]),
    ] {
        let mut talk = Talk::new().client(first);
        for _ in 0..1000 {
            talk = talk.client(more);
        }
        assert!(talk.conversation.held() <= 80 * 1024, "{}", first.escape_ascii());
    }
}
