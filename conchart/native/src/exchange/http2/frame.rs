//! HTTP/2 frame headers (RFC 9113 section 4.1): what they say, and whether bytes look like some.
//!
//! In: bytes of one side. Out: [`Header`]s and verdicts. Nothing is kept.

use crate::exchange::reader::Verdict;

pub(super) const HEADER: usize = 9;
/// What a client says first (RFC 9113 section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
/// RFC 7838 section 4.
pub(super) const ALTSVC: u8 = 10;

/// The payload of a RST_STREAM whose stream was not looked at (RFC 9113 section 7).
pub(super) const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

/// Of SETTINGS and PING.
const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Longest frame that is believed where frames are searched; the default limit is 16 KiB.
const MAX_LENGTH: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub length: u32,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

/// The first bytes of a header whose others are still to come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begun {
    bytes: [u8; HEADER],
    /// How many there are.
    have: usize,
}

impl Begun {
    pub fn is_empty(self) -> bool {
        self.have == 0
    }
}

impl Header {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let &[l2, l1, l0, kind, flags, s3, s2, s1, s0] = bytes.first_chunk::<HEADER>()?;
        Some(Self {
            length: u32::from_be_bytes([0, l2, l1, l0]),
            kind,
            flags,
            stream: u32::from_be_bytes([s3 & 0x7f, s2, s1, s0]),
        })
    }

    /// Takes bytes of a header off the front of `bytes`, behind those that came before; returns how many, and the header
    /// once it is whole. Nearly always all of it comes at once.
    pub fn collect(begun: &mut Begun, bytes: &[u8]) -> (usize, Option<Self>) {
        if begun.have == 0
            && let Some(header) = Self::read(bytes)
        {
            return (HEADER, Some(header));
        }
        let room = begun.bytes.get_mut(begun.have..).unwrap_or_default();
        let taken = room.len().min(bytes.len());
        room.iter_mut().zip(bytes).for_each(|(slot, &byte)| *slot = byte);
        begun.have += taken;
        (taken, if begun.have == HEADER { Self::read(&begun.bytes) } else { None })
    }

    pub fn ends_stream(self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    pub fn ends_headers(self) -> bool {
        self.flags & END_HEADERS != 0
    }

    /// Does its payload belong to a header block?
    pub fn has_block(self) -> bool {
        matches!(self.kind, HEADERS | PUSH_PROMISE | CONTINUATION)
    }

    /// Does its payload begin with the length of the padding that ends it (RFC 9113 section 6.1)?
    pub fn is_padded(self) -> bool {
        matches!(self.kind, DATA | HEADERS | PUSH_PROMISE) && self.flags & PADDED != 0
    }

    /// What is content in these bytes of a DATA frame, of whose payload so many come after them. `padding`: the first
    /// byte of a padded one.
    pub fn content(self, bytes: &[u8], left: u32, padding: Option<u8>) -> &[u8] {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let is_first = length.saturating_sub(left) == bytes.len();
        let begin = usize::from(self.is_padded() && is_first);
        let behind = usize::from(padding.unwrap_or(0)).saturating_sub(left);
        bytes.get(begin..bytes.len().saturating_sub(behind)).unwrap_or_default()
    }

    /// Is its payload needed?
    pub fn is_buffered(self) -> bool {
        self.has_block() || matches!(self.kind, RST_STREAM | SETTINGS | GOAWAY | WINDOW_UPDATE | ALTSVC)
    }

    /// Does it only acknowledge a frame of the peer's?
    pub fn acknowledges(self) -> bool {
        matches!(self.kind, SETTINGS | PING) && self.flags & ACK != 0
    }

    /// May a frame be like this (RFC 9113 section 6)? Of unknown types nothing is known.
    pub fn is_legal(self) -> bool {
        let on_stream = self.stream != 0;
        match self.kind {
            DATA | HEADERS | PUSH_PROMISE | CONTINUATION => on_stream,
            // PRIORITY
            2 => on_stream && self.length == 5,
            RST_STREAM => on_stream && self.length == 4,
            SETTINGS => !on_stream && self.length.is_multiple_of(6),
            PING => !on_stream && self.length == 8,
            GOAWAY => !on_stream && self.length >= 8,
            WINDOW_UPDATE => self.length == 4,
            _ => true,
        }
    }

    /// Is it so usual that a frame may be believed to begin here?
    fn is_usual(self) -> bool {
        let flags = match self.kind {
            DATA => END_STREAM | PADDED,
            HEADERS => END_STREAM | END_HEADERS | PADDED | PRIORITY,
            SETTINGS | PING => ACK,
            PUSH_PROMISE => END_HEADERS | PADDED,
            CONTINUATION => END_HEADERS,
            _ => 0,
        };
        // ALTSVC, ORIGIN and PRIORITY_UPDATE are in use besides.
        let recognised = matches!(self.kind, 0..=10 | 12 | 16);
        recognised && self.is_legal() && self.flags & !flags == 0 && self.length <= MAX_LENGTH
    }

    /// The fragment of a header block in a payload: without padding, priority and the promised stream, which is
    /// returned too. `None` when the payload is too short for what its flags say.
    pub fn fragment(self, payload: &[u8]) -> Option<(Option<u32>, &[u8])> {
        let (mut rest, mut promised) = (payload, None);
        if self.kind == CONTINUATION {
            return Some((None, rest));
        }
        if self.flags & PADDED != 0 {
            let (&padding, after) = rest.split_first()?;
            rest = after.get(..after.len().checked_sub(usize::from(padding))?)?;
        }
        if self.kind == HEADERS && self.flags & PRIORITY != 0 {
            rest = rest.get(5..)?;
        }
        if self.kind == PUSH_PROMISE {
            let (stream, after) = rest.split_first_chunk::<4>()?;
            (promised, rest) = (Some(u32::from_be_bytes(*stream) & 0x7fff_ffff), after);
        }
        Some((promised, rest))
    }
}

/// Does a stream that begins like this carry what an HTTP/2 client sends?
pub(in crate::exchange) fn sniff_client(prefix: &[u8]) -> Verdict {
    /// So much of the preface tells.
    const ENOUGH: usize = 16;
    match prefix.len() {
        ..ENOUGH if PREFACE.starts_with(prefix) => Verdict::More,
        ENOUGH.. if prefix.iter().zip(PREFACE).all(|(a, b)| a == b) => Verdict::Yes,
        _ => Verdict::No,
    }
}

/// Does a stream begin with the SETTINGS that a server may send before it has heard its client?
pub(in crate::exchange) fn sniff_server(prefix: &[u8]) -> Verdict {
    let fits: [fn(u8) -> bool; HEADER + 2] = [
        |b| b == 0,
        |b| b == 0,
        |length| length % 6 == 0 && (6..=120).contains(&length),
        |kind| kind == SETTINGS,
        |b| b == 0,
        |b| b == 0,
        |b| b == 0,
        |b| b == 0,
        |b| b == 0,
        // The first setting; so many are registered.
        |b| b == 0,
        |setting| matches!(setting, 1..=16),
    ];
    if prefix.iter().zip(fits).any(|(&byte, fits)| !fits(byte)) {
        Verdict::No
    } else if prefix.len() < fits.len() {
        Verdict::More
    } else {
        Verdict::Yes
    }
}

/// Do frames begin where this packet does? Two headers in a row say so, or one frame that fills the packet.
pub(in crate::exchange) fn sniff_frames(packet: &[u8]) -> Verdict {
    if frames_begin(packet) { Verdict::Yes } else { Verdict::No }
}

/// The same of frames whose first header block is that of a request.
pub(in crate::exchange) fn sniff_request_frames(packet: &[u8]) -> Verdict {
    if begins_with_request(packet) == Some(true) { Verdict::Yes } else { Verdict::No }
}

/// The same of frames whose first header block is that of a response.
pub(in crate::exchange) fn sniff_response_frames(packet: &[u8]) -> Verdict {
    if begins_with_request(packet) == Some(false) { Verdict::Yes } else { Verdict::No }
}

/// Does the first header block in this packet begin as requests do, or as responses do? Pseudo-header fields come first (RFC 9113
/// section 8.3), and the static table has all of them (RFC 7541 appendix A).
fn begins_with_request(packet: &[u8]) -> Option<bool> {
    let mut rest = Some(packet).filter(|packet| frames_begin(packet))?;
    loop {
        let header = Header::read(rest).filter(|header| header.is_usual())?;
        let (_, after) = rest.split_at_checked(HEADER)?;
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        if header.kind != HEADERS {
            rest = after.get(length..)?;
            continue;
        }
        let (_, block) = header.fragment(after.get(..length).unwrap_or(after))?;
        let index = match block.first()? {
            indexed @ 0x80.. => indexed & 0x7f,
            added @ 0x40..0x80 => added & 0x3f,
            // A change of the table's size, or a field that is not indexed.
            0x20..0x40 => return None,
            other => other & 0x0f,
        };
        return match index {
            1..=7 => Some(true),
            8..=14 => Some(false),
            _ => None,
        };
    }
}

fn frames_begin(packet: &[u8]) -> bool {
    let mut rest = packet;
    for seen in 0..2 {
        let Some(header) = Header::read(rest).filter(|header| header.is_usual()) else {
            return false;
        };
        let end = usize::try_from(header.length).unwrap_or(usize::MAX).saturating_add(HEADER);
        match rest.get(end..) {
            Some([]) => return true,
            Some(after) => rest = after,
            None => return seen > 0,
        }
    }
    true
}
