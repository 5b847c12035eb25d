//! The frames of QUIC and of HTTP/3 that went by, one by one, for whoever explains a connection.
//!
//! In: packets of QUIC as they are read, headers of HTTP/3's frames with the bytes behind them. Out: [`QuicFrame`]s and
//! [`Http3Frame`]s. Kept until they are fetched: a datagram's worth.

use std::fmt::Write as _;

use crate::bytes::Fields;
use crate::quic::{FrameSeen, PacketSeen};
use crate::stream::{Moment, Side};

/// Settings of one SETTINGS frame that are told; RFC 9114 and its extensions have about ten.
const MOST_SETTINGS: usize = 32;
/// Bytes of a priority that are told.
const MOST_PRIORITY: usize = 64;

/// A frame of QUIC in its packet; of a packet that was not opened, one without a name.
#[derive(Clone, Debug)]
pub struct QuicFrame {
    pub from: Side,
    pub seen: Moment,
    /// Place of its packet in the datagram, from 0, and its own place in the packet.
    pub packet: usize,
    pub number: usize,
    pub packet_kind: &'static str,
    pub packet_number: Option<u64>,
    pub packet_bytes: usize,
    pub frame: Option<FrameSeen>,
}

/// A frame of HTTP/3, or the type of a stream that goes one way (RFC 9114 section 6.2).
#[derive(Clone, Debug)]
pub struct Http3Frame {
    pub from: Side,
    pub stream: u64,
    /// Where it begins in its stream.
    pub offset: u64,
    pub kind: u64,
    pub is_stream_type: bool,
    /// Of its payload.
    pub bytes: u64,
    /// The packet with its first byte.
    pub seen: Moment,
    /// Settings (`0x1=4096 0x7=16`), a number (GOAWAY, MAX_PUSH_ID …), number and priority, the type of what has no name.
    pub text: Option<Box<str>>,
}

const UNKNOWN_STREAM: &str = "stream of an unknown type";
const UNKNOWN_FRAME: &str = "frame of an unknown type";

/// What was not fetched yet.
#[derive(Debug, Default)]
pub struct Passing {
    /// The datagram that the packets are of, and how many of them went by.
    datagram: Option<u64>,
    packets: usize,
    pub quic: Vec<QuicFrame>,
    pub http3: Vec<Http3Frame>,
}

impl Passing {
    pub fn is_empty(&self) -> bool {
        self.quic.is_empty() && self.http3.is_empty()
    }

    /// The next packet, of the same datagram or of another.
    pub fn packet(&mut self, from: Side, packet: &PacketSeen<'_>, seen: Moment) {
        if self.datagram != Some(seen.frame()) {
            (self.datagram, self.packets) = (Some(seen.frame()), 0);
        }
        let here = QuicFrame {
            from,
            seen,
            packet: self.packets,
            number: 0,
            packet_kind: packet.kind,
            packet_number: packet.opened.map(|(number, _)| number),
            packet_bytes: packet.bytes,
            frame: None,
        };
        self.packets += 1;
        let before = self.quic.len();
        let frames = packet.frames().enumerate();
        self.quic.extend(frames.map(|(number, frame)| QuicFrame { number, frame: Some(frame), ..here.clone() }));
        if self.quic.len() == before {
            self.quic.push(here);
        }
    }
}

impl Http3Frame {
    #[must_use]
    pub fn new(from: Side, stream: u64, kind: u64, seen: Moment) -> Self {
        Self { from, stream, offset: 0, kind, is_stream_type: false, bytes: 0, seen, text: None }
    }

    /// A type, which begins its stream.
    #[must_use]
    pub fn of_stream(self) -> Self {
        let typed = Self { is_stream_type: true, ..self };
        let text = (typed.name() == UNKNOWN_STREAM).then(|| format!("{:#x}", typed.kind).into());
        Self { text, ..typed }
    }

    /// A frame with a payload of that length; `rest` is what of it and behind it came with its header.
    #[must_use]
    pub fn with_payload(self, offset: u64, bytes: u64, rest: &[u8]) -> Self {
        let whole = usize::try_from(bytes).ok().and_then(|length| rest.get(..length));
        let text = describe(self.kind, rest, whole).map(String::into_boxed_str);
        let sized = Self { offset, bytes, ..self };
        let unnamed = (sized.name() == UNKNOWN_FRAME).then(|| format!("{:#x}", sized.kind).into());
        Self { text: text.or(unnamed), ..sized }
    }

    /// As RFC 9114 and RFC 9204 call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match (self.is_stream_type, self.kind) {
            (true, 0x0) => "control stream",
            (true, 0x1) => "push stream",
            (true, 0x2) => "QPACK encoder stream",
            (true, 0x3) => "QPACK decoder stream",
            (true, 0x54) => "WebTransport stream",
            (true, _) => UNKNOWN_STREAM,
            (false, 0x0) => "DATA",
            (false, 0x1) => "HEADERS",
            (false, 0x3) => "CANCEL_PUSH",
            (false, 0x4) => "SETTINGS",
            (false, 0x5) => "PUSH_PROMISE",
            (false, 0x7) => "GOAWAY",
            (false, 0xd) => "MAX_PUSH_ID",
            (false, 0x41) => "WEBTRANSPORT_STREAM",
            (false, 0xf_0700 | 0xf_0701) => "PRIORITY_UPDATE",
            (false, _) => UNKNOWN_FRAME,
        }
    }
}

/// What a frame says that is no content; `rest` begins with its payload, `whole` is that, where all of it is there.
fn describe(kind: u64, rest: &[u8], whole: Option<&[u8]>) -> Option<String> {
    match kind {
        // SETTINGS (RFC 9114 section 7.2.4).
        0x4 => {
            let (mut fields, mut text) = (Fields(whole?), String::new());
            for _ in 0..MOST_SETTINGS {
                let Some((name, value)) = fields.varint().zip(fields.varint()) else { break };
                let space = if text.is_empty() { "" } else { " " };
                // Memory takes any text.
                let _ = write!(text, "{space}{name:#x}={value}");
            }
            Some(text)
        }
        // CANCEL_PUSH, PUSH_PROMISE, GOAWAY, MAX_PUSH_ID.
        0x3 | 0x5 | 0x7 | 0xd => Fields(rest).varint().map(|number| number.to_string()),
        // PRIORITY_UPDATE (RFC 9218 section 7.2).
        0xf_0700 | 0xf_0701 => {
            let mut fields = Fields(whole?);
            let number = fields.varint()?;
            let of = if kind & 1 == 1 { "push " } else { "" };
            Some(format!("{of}{number} {}", String::from_utf8_lossy(fields.take_up_to(MOST_PRIORITY))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: u64, bytes: u64, rest: &[u8]) -> Option<String> {
        let seen = Moment::new(0, 1, Side::Client);
        let frame = Http3Frame::new(Side::Client, 2, kind, seen).with_payload(0, bytes, rest);
        frame.text.map(String::from)
    }

    #[test]
    fn frames_without_content_say_what_they_have() {
        // Settings, and the frame behind them.
        assert_eq!(text(0x4, 6, &[1, 0x50, 0, 7, 16, 0x33, 7, 1]).as_deref(), Some("0x1=4096 0x7=16"));
        assert_eq!(text(0x4, 0, &[]).as_deref(), Some(""));
        assert_eq!(text(0x4, 9, &[1, 0x50, 0]), None);
        assert_eq!(text(0x7, 1, &[8]).as_deref(), Some("8"));
        assert_eq!(text(0xd, 1, &[]), None);
        assert_eq!(text(0xf_0700, 6, b"\x04u=1,i").as_deref(), Some("4 u=1,i"));
        assert_eq!(text(0xf_0701, 4, b"\x03u=1").as_deref(), Some("push 3 u=1"));
        assert_eq!(text(0x21, 2, &[0, 0]).as_deref(), Some("0x21"));
        assert_eq!(text(0x0, 2, &[0, 0]), None);
        let long = [&[0][..], &[0xff; 1000]].concat();
        assert!(text(0xf_0700, 1001, &long).is_some_and(|it| it.chars().count() <= 2 + MOST_PRIORITY));
        let many = [1; 1000];
        assert_eq!(text(0x4, 1000, &many).map(|it| it.split(' ').count()), Some(MOST_SETTINGS));
    }

    #[test]
    fn a_stream_of_an_unknown_type_says_which() {
        let seen = Moment::new(0, 1, Side::Client);
        let typed = |kind| Http3Frame::new(Side::Client, 2, kind, seen).of_stream();
        assert_eq!(typed(0x5f).text.as_deref(), Some("0x5f"));
        assert_eq!((typed(0x2).name(), typed(0x2).text), ("QPACK encoder stream", None));
    }
}
