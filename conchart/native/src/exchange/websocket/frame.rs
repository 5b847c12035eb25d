//! Frames of WebSocket (RFC 6455 section 5.2): what their headers say.
//!
//! In: the beginning of a frame. Out: [`Frame`]s. Masks are skipped, payloads are not looked at.

use crate::exchange::content::ContentKind;
use crate::exchange::framed::{LengthField, Message, Read};

const CONTINUATION: u8 = 0;
/// Largest payload of a control frame (section 5.5).
const MAX_CONTROL: u64 = 125;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Frame {
    /// `None`: it goes on with the message before.
    pub kind: Option<ContentKind>,
    /// The last frame of its message.
    pub is_last: bool,
    /// Compressed by an extension (RFC 7692 section 6): said in the first frame of a message.
    pub compressed: bool,
    pub payload: u64,
}

impl Frame {
    pub fn is_control(self) -> bool {
        matches!(self.kind, Some(ContentKind::Close | ContentKind::Ping | ContentKind::Pong))
    }

    fn kind(opcode: u8) -> Option<Option<ContentKind>> {
        Some(match opcode {
            CONTINUATION => None,
            1 => Some(ContentKind::Text),
            2 => Some(ContentKind::Binary),
            8 => Some(ContentKind::Close),
            9 => Some(ContentKind::Ping),
            10 => Some(ContentKind::Pong),
            _ => return None,
        })
    }
}

impl Message for Frame {
    type Context = ();
    const FIRST: usize = 2;

    fn read(beginning: &[u8], _all: bool, (): ()) -> Read<Self> {
        let &[first, second, ..] = beginning else {
            return Read::More { wanted: Self::FIRST, len: None };
        };
        let (is_last, compressed, reserved) = (first & 0x80 != 0, first & 0x40 != 0, first & 0x30);
        let (masked, short) = (second & 0x80 != 0, second & 0x7f);
        let Some(kind) = Self::kind(first & 0x0f).filter(|_| reserved == 0) else {
            return Read::Wrong;
        };
        let width = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let header = Self::FIRST + width + if masked { 4 } else { 0 };
        let payload = if width == 0 {
            Some(usize::from(short))
        } else if beginning.len() < Self::FIRST + width {
            return Read::More { wanted: Self::FIRST + width, len: None };
        } else {
            // The length counts neither itself nor what is before it.
            let field = LengthField { at: Self::FIRST, width, little_endian: false, uncounted: Self::FIRST + width };
            field.read(beginning).map(|len| len - Self::FIRST - width)
        };
        // The highest bit of a length is 0.
        let Some(payload) = payload.filter(|&payload| isize::try_from(payload).is_ok()) else {
            return Read::Wrong;
        };
        let frame = Self { kind, is_last, compressed, payload: payload as u64 };
        if frame.is_control() && (!is_last || compressed || frame.payload > MAX_CONTROL) {
            return Read::Wrong;
        }
        Read::Parsed(frame, payload.saturating_add(header))
    }
}

/// Does a packet of that side begin with a frame? Only the first frame of a message may, in the shortest form of its
/// length; clients mask, servers do not (RFC 6455 section 5.1). If the next frame is there, it is like that, too.
pub(super) fn begins(packet: &[u8], asks: bool) -> bool {
    let mut rest = packet;
    while let Some(&second) = rest.get(1) {
        let Read::Parsed(frame, len) = Frame::read(rest, true, ()) else {
            return false;
        };
        let shortest = match second & 0x7f {
            126 => frame.payload > MAX_CONTROL,
            127 => frame.payload > u64::from(u16::MAX),
            _ => true,
        };
        if frame.kind.is_none() || !shortest || (second & 0x80 != 0) != asks {
            return false;
        }
        match rest.get(len..) {
            Some(after) => rest = after,
            None => return true,
        }
    }
    rest.len() < packet.len()
}
