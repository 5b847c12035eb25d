//! The frames of a packet (RFC 9000 section 19, RFC 9221).
//!
//! In: the payload of a packet that was opened. Out: [`Frame`]s that borrow from it. Non-goals: which packets may carry
//! them, what they do.

use crate::bytes::Fields;

/// A frame, as far as it matters here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Frame<'a> {
    /// A run of them.
    Padding(usize),
    Ping,
    Ack(Ack<'a>),
    Crypto {
        offset: u64,
        bytes: &'a [u8],
    },
    Stream {
        id: u64,
        offset: u64,
        bytes: &'a [u8],
        fin: bool,
    },
    ResetStream {
        id: u64,
        code: u64,
        /// How far the stream went.
        size: u64,
    },
    StopSending {
        id: u64,
        code: u64,
    },
    /// The length of the token.
    NewToken(usize),
    /// DATA_BLOCKED, STREAM_DATA_BLOCKED: there is more to send than the peer allows.
    /// On this stream, or on all.
    Blocked {
        stream: Option<u64>,
        limit: u64,
    },
    /// MAX_DATA, MAX_STREAM_DATA: more is allowed, on this stream or on all.
    Allows {
        stream: Option<u64>,
        limit: u64,
    },
    /// MAX_STREAMS: so many streams in all, that go both ways or one.
    AllowsStreams {
        both_ways: bool,
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    BlockedStreams {
        both_ways: bool,
        limit: u64,
    },
    NewConnectionId {
        sequence: u64,
        /// IDs before that number are to be retired.
        retires: u64,
        cid: &'a [u8],
        /// That of a stateless reset.
        token: [u8; 16],
    },
    RetireConnectionId(u64),
    PathChallenge,
    PathResponse,
    /// DATAGRAM: its data.
    Datagram(&'a [u8]),
    /// CONNECTION_CLOSE: its error code, whether the application gave it, and its words.
    Close {
        code: u64,
        is_of_application: bool,
        reason: &'a [u8],
    },
    HandshakeDone,
    /// TIME_STAMP (draft-huitema-quic-ts).
    TimeStamp,
    /// ACK_FREQUENCY and IMMEDIATE_ACK (draft-ietf-quic-ack-frequency).
    AckFrequency,
    ImmediateAck,
}

impl Frame<'_> {
    /// Does the peer acknowledge a packet because of this frame (RFC 9002 section 2)?
    pub fn elicits_ack(&self) -> bool {
        !matches!(self, Self::Padding(_) | Self::Ack(_) | Self::Close { .. } | Self::TimeStamp)
    }
}

/// An ACK frame (RFC 9000 section 19.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ack<'a> {
    pub largest: u64,
    /// As it was sent: its unit is the sender's choice.
    pub delay: u64,
    first: u64,
    count: u64,
    ranges: &'a [u8],
}

impl<'a> Ack<'a> {
    fn read(fields: &mut Fields<'a>, with_ecn: bool) -> Option<Self> {
        let (largest, delay) = (fields.varint()?, fields.varint()?);
        let (count, first) = (fields.varint()?, fields.varint()?);
        let ranges = fields.0;
        for _ in 0..count {
            let (_gap, _length) = (fields.varint()?, fields.varint()?);
        }
        if with_ecn {
            let (_ect0, _ect1, _ce) = (fields.varint()?, fields.varint()?, fields.varint()?);
        }
        Some(Self { largest, delay, first, count, ranges })
    }

    /// Lowest and highest packet number of each range, the highest range first.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let mut fields = Fields(self.ranges);
        let mut next = self.largest.checked_sub(self.first).map(|lowest| (lowest, self.largest));
        let mut left = self.count;
        std::iter::from_fn(move || {
            let range = next.take()?;
            if left > 0 {
                left -= 1;
                let (gap, length) = (fields.varint()?, fields.varint()?);
                let highest = range.0.checked_sub(gap.checked_add(2)?);
                next = highest.and_then(|highest| Some((highest.checked_sub(length)?, highest)));
            }
            Some(range)
        })
    }
}

/// The frames of a payload, in order; stops where one is unknown or ends early.
pub(super) fn frames(payload: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut fields = Fields(payload);
    std::iter::from_fn(move || next_frame(&mut fields))
}

fn next_frame<'a>(fields: &mut Fields<'a>) -> Option<Frame<'a>> {
    let sized = |fields: &mut Fields<'a>| {
        let len = usize::try_from(fields.varint()?).ok()?;
        fields.take(len)
    };
    Some(match fields.varint()? {
        0x00 => {
            // A run of them is one.
            let padding = fields.0.iter().take_while(|&&byte| byte == 0).count();
            fields.take(padding)?;
            Frame::Padding(1 + padding)
        }
        0x01 => Frame::Ping,
        kind @ (0x02 | 0x03) => Frame::Ack(Ack::read(fields, kind == 0x03)?),
        0x04 => {
            let (id, code, size) = (fields.varint()?, fields.varint()?, fields.varint()?);
            Frame::ResetStream { id, code, size }
        }
        0x05 => Frame::StopSending { id: fields.varint()?, code: fields.varint()? },
        0x06 => Frame::Crypto { offset: fields.varint()?, bytes: sized(fields)? },
        0x07 => Frame::NewToken(sized(fields)?.len()),
        kind @ 0x08..=0x0f => {
            let id = fields.varint()?;
            let offset = if kind & 0x04 == 0 { 0 } else { fields.varint()? };
            let bytes = if kind & 0x02 == 0 { std::mem::take(&mut fields.0) } else { sized(fields)? };
            // RFC 9000 section 4.5: no stream is longer.
            offset.checked_add(bytes.len() as u64).filter(|&end| end < 1 << 62)?;
            Frame::Stream { id, offset, bytes, fin: kind & 0x01 != 0 }
        }
        kind @ (0x10 | 0x11 | 0x14 | 0x15) => {
            let stream = if kind & 1 == 1 { Some(fields.varint()?) } else { None };
            let limit = fields.varint()?;
            if kind < 0x14 { Frame::Allows { stream, limit } } else { Frame::Blocked { stream, limit } }
        }
        kind @ (0x12 | 0x13) => Frame::AllowsStreams { both_ways: kind == 0x12, limit: fields.varint()? },
        kind @ (0x16 | 0x17) => Frame::BlockedStreams { both_ways: kind == 0x16, limit: fields.varint()? },
        0x18 => {
            let (sequence, retires) = (fields.varint()?, fields.varint()?);
            let cid = fields.vec8()?;
            let token = *fields.take(16)?.first_chunk()?;
            Frame::NewConnectionId { sequence, retires, cid, token }
        }
        0x19 => Frame::RetireConnectionId(fields.varint()?),
        kind @ (0x1a | 0x1b) => {
            let _data = fields.take(8)?;
            if kind == 0x1a { Frame::PathChallenge } else { Frame::PathResponse }
        }
        kind @ (0x1c | 0x1d) => {
            let code = fields.varint()?;
            if kind == 0x1c {
                let _frame_type = fields.varint()?;
            }
            let reason = sized(fields)?;
            Frame::Close { code, is_of_application: kind == 0x1d, reason }
        }
        0x1e => Frame::HandshakeDone,
        0x30 => Frame::Datagram(std::mem::take(&mut fields.0)),
        0x31 => Frame::Datagram(sized(fields)?),
        0x02f5 => {
            let _time = fields.varint()?;
            Frame::TimeStamp
        }
        0xaf => {
            let (_sequence, _threshold) = (fields.varint()?, fields.varint()?);
            let (_max_delay, _reordering) = (fields.varint()?, fields.varint()?);
            Frame::AckFrequency
        }
        // The second one in earlier drafts.
        0x1f | 0xac => Frame::ImmediateAck,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_hide_nothing_that_follows_them() {
        // TIME_STAMP, ACK_FREQUENCY, IMMEDIATE_ACK, PING.
        let payload = [0x42, 0xf5, 0x80, 0, 0, 9, 0x40, 0xaf, 0, 2, 0x44, 1, 3, 0x1f, 0x40, 0xac, 0x01];
        let read: Vec<Frame<'_>> = frames(&payload).collect();
        let expected = [Frame::TimeStamp, Frame::AckFrequency, Frame::ImmediateAck, Frame::ImmediateAck, Frame::Ping];
        assert_eq!(read, expected);
        assert!(!Frame::TimeStamp.elicits_ack() && Frame::AckFrequency.elicits_ack());
    }

    #[test]
    fn frames_are_distinguished() {
        let payload = [0, 0, 1, 2, 5, 0, 1, 0, 0, 0, 6, 0x40, 3, 2, 8, 9, 0x1c, 0x41, 0x28, 6, 2, b'n', b'o', 0];
        let found: Vec<_> = frames(&payload).collect();
        assert_eq!(found.len(), 6);
        assert!(found.contains(&Frame::Crypto { offset: 3, bytes: &[8, 9] }));
        assert!(found.contains(&Frame::Close { code: 0x128, is_of_application: false, reason: b"no" }));
        // A length beyond the end.
        assert_eq!(frames(&[6, 0, 9, 1]).count(), 0);
        let streams = [0x0e, 4, 9, 1, 7, 0x09, 8, 1, 2];
        let expected = [
            Frame::Stream { id: 4, offset: 9, bytes: &[7], fin: false },
            Frame::Stream { id: 8, offset: 0, bytes: &[1, 2], fin: true },
        ];
        assert_eq!(frames(&streams).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_ranges_of_an_ack_go_down() {
        let Some(Frame::Ack(ack)) = frames(&[2, 20, 0, 2, 3, 1, 0, 2, 4]).next() else { unreachable!() };
        assert_eq!(ack.ranges().collect::<Vec<_>>(), [(17, 20), (14, 14), (6, 10)]);
        // Below zero there is nothing.
        let Some(Frame::Ack(ack)) = frames(&[2, 3, 0, 1, 1, 5, 0]).next() else { unreachable!() };
        assert_eq!(ack.ranges().collect::<Vec<_>>(), [(2, 3)]);
    }
}
