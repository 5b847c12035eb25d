//! What went by in QUIC, one by one: packets, and the frames in those that were opened. For whoever explains a connection.
//!
//! In: packets as their headers show them, and payloads that keys have opened. Out: [`PacketSeen`], and a [`FrameSeen`]
//! for each frame (RFC 9000 section 19) or run of padding. Nothing is kept. Non-goals: what a frame does.

use std::fmt::Write as _;

use super::frame::{Frame, frames};
use super::packet::{Kind, Long};
use super::protection::Opened;

/// Ranges of one ACK frame that are told.
const MOST_RANGES: usize = 32;

/// A packet, as far as it can be read.
#[derive(Clone, Copy, Debug)]
pub struct PacketSeen<'a> {
    pub kind: &'static str,
    /// With its header and its tag.
    pub bytes: usize,
    /// Its number and its frames.
    pub opened: Option<(u64, &'a [u8])>,
}

impl<'a> PacketSeen<'a> {
    pub(super) fn of(packet: &Long<'_>, opened: Option<&'a Opened>) -> Self {
        let kind = match packet.kind {
            Kind::Initial => "Initial",
            Kind::ZeroRtt => "0-RTT",
            Kind::Handshake => "Handshake",
            Kind::Retry => "Retry",
            Kind::VersionNegotiation => "Version Negotiation",
            Kind::Unknown => "unknown",
        };
        Self { kind, bytes: packet.len, opened: opened.map(Opened::contents) }
    }

    /// Its frames, in order; none where it was not opened.
    pub fn frames(&self) -> impl Iterator<Item = FrameSeen> + 'a {
        frames(self.opened.map(|(_, payload)| payload).unwrap_or_default()).map(FrameSeen::of)
    }
}

impl Opened {
    pub(super) fn contents(&self) -> (u64, &[u8]) {
        (self.number, &self.payload)
    }
}

/// A frame; what it does not have is `None`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FrameSeen {
    /// As RFC 9000 and RFC 9221 call it.
    pub kind: &'static str,
    pub stream: Option<u64>,
    pub offset: Option<u64>,
    /// Length of what it carries; of RESET_STREAM, of the whole stream.
    pub bytes: Option<u64>,
    pub fin: Option<bool>,
    /// Its limit, error code, sequence number, or, of an ACK frame, its delay as it was sent.
    pub value: Option<u64>,
    /// The ranges of an ACK frame (`5-9 2`), a connection ID and the number before which others are
    /// retired, unless it is 0 (`c0ffee 3`), the reason of CONNECTION_CLOSE.
    pub text: Option<Box<str>>,
}

impl FrameSeen {
    fn of(frame: Frame<'_>) -> Self {
        let named = |kind| Self { kind, ..Self::default() };
        let sized = |kind, bytes: usize| Self { bytes: Some(bytes as u64), ..named(kind) };
        let valued = |kind, value| Self { value: Some(value), ..named(kind) };
        let of_stream = |kind, stream, value| Self { stream, ..valued(kind, value) };
        match frame {
            Frame::Padding(bytes) => sized("PADDING", bytes),
            Frame::Ping => named("PING"),
            Frame::Ack(ack) => {
                let mut text = String::new();
                for (lowest, highest) in ack.ranges().take(MOST_RANGES) {
                    let space = if text.is_empty() { "" } else { " " };
                    // Memory takes any text.
                    let _ = match lowest == highest {
                        true => write!(text, "{space}{lowest}"),
                        false => write!(text, "{space}{lowest}-{highest}"),
                    };
                }
                Self { text: Some(text.into()), ..valued("ACK", ack.delay) }
            }
            Frame::Crypto { offset, bytes } => Self { offset: Some(offset), ..sized("CRYPTO", bytes.len()) },
            Frame::Stream { id, offset, bytes, fin } => {
                let (stream, offset, fin) = (Some(id), Some(offset), Some(fin));
                Self { stream, offset, fin, ..sized("STREAM", bytes.len()) }
            }
            Frame::ResetStream { id, code, size } => {
                Self { bytes: Some(size), ..of_stream("RESET_STREAM", Some(id), code) }
            }
            Frame::StopSending { id, code } => of_stream("STOP_SENDING", Some(id), code),
            Frame::NewToken(bytes) => sized("NEW_TOKEN", bytes),
            Frame::Blocked { stream: None, limit } => valued("DATA_BLOCKED", limit),
            Frame::Blocked { stream, limit } => of_stream("STREAM_DATA_BLOCKED", stream, limit),
            Frame::Allows { stream: None, limit } => valued("MAX_DATA", limit),
            Frame::Allows { stream, limit } => of_stream("MAX_STREAM_DATA", stream, limit),
            Frame::AllowsStreams { both_ways, limit } => {
                Self { text: Some(directions(both_ways).into()), ..valued("MAX_STREAMS", limit) }
            }
            Frame::BlockedStreams { both_ways, limit } => {
                Self { text: Some(directions(both_ways).into()), ..valued("STREAMS_BLOCKED", limit) }
            }
            Frame::NewConnectionId { sequence, retires, cid, .. } => {
                let mut text = String::new();
                // Memory takes any text.
                let _ = cid.iter().try_for_each(|byte| write!(text, "{byte:02x}"));
                if retires > 0 {
                    let _ = write!(text, " {retires}");
                }
                Self { text: Some(text.into()), ..valued("NEW_CONNECTION_ID", sequence) }
            }
            Frame::RetireConnectionId(sequence) => valued("RETIRE_CONNECTION_ID", sequence),
            Frame::PathChallenge => named("PATH_CHALLENGE"),
            Frame::PathResponse => named("PATH_RESPONSE"),
            Frame::Datagram(bytes) => sized("DATAGRAM", bytes.len()),
            Frame::Close { code, is_of_application, reason } => {
                let kind = if is_of_application { "APPLICATION_CLOSE" } else { "CONNECTION_CLOSE" };
                Self { text: Some(String::from_utf8_lossy(reason).into()), ..valued(kind, code) }
            }
            Frame::HandshakeDone => named("HANDSHAKE_DONE"),
            Frame::TimeStamp => named("TIME_STAMP"),
            Frame::AckFrequency => named("ACK_FREQUENCY"),
            Frame::ImmediateAck => named("IMMEDIATE_ACK"),
        }
    }
}

const fn directions(both_ways: bool) -> &'static str {
    if both_ways { "bidirectional" } else { "unidirectional" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_id_may_retire_others() {
        let frames = |retires| {
            let payload = [&[0x18, 4, retires, 3, 0xc0, 0xff, 0xee][..], &[7; 16]].concat();
            let packet = PacketSeen { kind: "1-RTT", bytes: 40, opened: Some((3, &payload)) };
            packet.frames().map(|frame| (frame.value, frame.text)).collect::<Vec<_>>()
        };
        assert_eq!(frames(0), [(Some(4), Some("c0ffee".into()))]);
        assert_eq!(frames(2), [(Some(4), Some("c0ffee 2".into()))]);
    }

    #[test]
    fn frames_say_what_they_have() {
        let payload = [2, 9, 7, 1, 1, 1, 2, 0x0f, 4, 3, 2, 8, 8, 0x12, 5, 0x1d, 0x41, 0x02, 2, b'n', b'o', 0, 0];
        let packet = PacketSeen { kind: "1-RTT", bytes: 40, opened: Some((3, &payload)) };
        let frames: Vec<_> = packet.frames().collect();
        let expected = [
            FrameSeen { kind: "ACK", value: Some(7), text: Some("8-9 3-5".into()), ..FrameSeen::default() },
            FrameSeen {
                kind: "STREAM",
                stream: Some(4),
                offset: Some(3),
                bytes: Some(2),
                fin: Some(true),
                ..FrameSeen::default()
            },
            FrameSeen {
                kind: "MAX_STREAMS",
                value: Some(5),
                text: Some("bidirectional".into()),
                ..FrameSeen::default()
            },
            FrameSeen {
                kind: "APPLICATION_CLOSE",
                value: Some(0x102),
                text: Some("no".into()),
                ..FrameSeen::default()
            },
            FrameSeen { kind: "PADDING", bytes: Some(2), ..FrameSeen::default() },
        ];
        assert_eq!(frames, expected);
        assert_eq!(PacketSeen { opened: None, ..packet }.frames().count(), 0);
    }
}
