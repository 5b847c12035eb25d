//! TLS record layer: walks one direction of a stream from record header to record header.
//!
//! Wire format: RFC 8446 section 5.1 and RFC 5246 section 6.2.1 (the same five bytes); the
//! SSLv2-compatible ClientHello of RFC 5246 appendix E.2 is accepted as the first record only.
//! In: the chunks and gaps of ONE direction. Out: [`RecordPart`]s that borrow the chunk's bytes. Bodies are
//! never copied, nothing is decrypted, no message is read.

use crate::stream::{Chunk, Gap, Moment, Side};

pub(super) const CHANGE_CIPHER_SPEC: u16 = 20;
pub(super) const ALERT: u16 = 21;
pub(super) const HANDSHAKE: u16 = 22;
pub(super) const APPLICATION_DATA: u16 = 23;
/// Our own code for an SSLv2 hello, whose header has no content type: outside the range of a byte.
pub(super) const SSLV2: u16 = 0x100;
/// The one ChangeCipherSpec record of TLS 1.2 and 1.3.
const CHANGE_CIPHER: [u8; 6] = [20, 3, 3, 0, 1, 1];

/// 2^14, plus the 2048 bytes TLS 1.2 may add (RFC 5246 section 6.2.3; TLS 1.3 adds only 256).
pub(super) const MAX_BODY: u16 = (1 << 14) + 2048;
pub(super) const HEADER: usize = 5;

/// What a record's header says, and where it stood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Record {
    /// The content type, whatever it is, or [`SSLV2`].
    pub kind: u16,
    pub version: u16,
    /// Of the body. For [`SSLV2`], what follows the first five bytes.
    pub length: u16,
    /// Position of the header's first byte in its stream.
    pub offset: u64,
    /// How much of the peer's stream the sender had acknowledged when it sent the first byte.
    pub acked: u64,
    pub first: Moment,
}

impl Record {
    /// Stream position after the last byte.
    pub fn end(&self) -> u64 {
        self.offset + HEADER as u64 + u64::from(self.length)
    }
}

/// A stretch of one record's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordPart<'a> {
    pub record: Record,
    pub bytes: &'a [u8],
    /// Body bytes after `bytes` that the capture does not hold.
    pub missing: u16,
    /// True when `bytes` is the beginning of the body.
    pub starts: bool,
    /// True when the record ends with this part.
    pub done: bool,
    /// When the record had arrived up to here: bytes that overtook others count from the latest of them.
    pub seen: Moment,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Before anything was read: an SSLv2 hello is still possible.
    Start,
    Header,
    /// Body of which nothing has been handed out yet.
    Fresh,
    Body,
    /// Out of step since bytes are missing; a chunk that starts with a plausible header ends it.
    OutOfStep,
    /// These bytes are not TLS: nothing after them is followed.
    Stopped,
}

/// Position of one direction in its records.
///
/// Invariant: `have < HEADER` while a header is collected; `left` counts the body bytes to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    record: Record,
    /// Latest packet that brought a byte of this record.
    latest: Moment,
    left: u16,
    header: [u8; HEADER],
    have: u8,
    state: State,
}

impl Walk {
    pub fn new(midstream: bool) -> Self {
        let nowhere = Moment::new(0, 0, Side::Client);
        let record = Record { kind: 0, version: 0, length: 0, offset: 0, acked: 0, first: nowhere };
        let state = if midstream { State::OutOfStep } else { State::Start };
        Self { record, latest: nowhere, left: 0, header: [0; HEADER], have: 0, state }
    }

    /// True while more of a record with application data is due.
    pub fn is_inside_data(&self) -> bool {
        matches!(self.state, State::Fresh | State::Body) && self.record.kind == APPLICATION_DATA
    }

    /// True while it is unknown where the next record starts.
    pub fn is_out_of_step(&self) -> bool {
        self.state == State::OutOfStep
    }

    /// True when `chunk`, which comes next, is nothing but ChangeCipherSpec records or parts of them.
    pub fn is_at_change_cipher(&self, chunk: &Chunk<'_>) -> bool {
        let have = match self.state {
            State::Start | State::Header if self.have == 0 || self.header.starts_with(&CHANGE_CIPHER[..1]) => {
                usize::from(self.have)
            }
            State::Fresh | State::Body if self.record.kind == CHANGE_CIPHER_SPEC => HEADER,
            _ => return false,
        };
        let expected = CHANGE_CIPHER.iter().cycle().skip(have);
        chunk.cut == 0 && chunk.bytes.iter().zip(expected).all(|(byte, expected)| byte == expected)
    }

    pub fn stop(&mut self) {
        self.state = State::Stopped;
    }

    /// Takes the next part of a record off the front of `chunk`; `None` when it is used up.
    pub fn next<'a>(&mut self, chunk: &mut Chunk<'a>) -> Option<RecordPart<'a>> {
        loop {
            match self.state {
                State::Stopped => return None,
                State::OutOfStep if plausible_chain(chunk.bytes) => self.await_header(),
                State::OutOfStep => return None,
                State::Start | State::Header => self.collect_header(chunk)?,
                State::Fresh | State::Body => return self.take_body(chunk),
            }
        }
    }

    /// Passes over bytes the capture does not hold.
    pub fn gap(&mut self, gap: Gap) -> Option<RecordPart<'static>> {
        match self.state {
            State::Stopped => return None,
            State::Fresh | State::Body => {}
            State::Start | State::Header | State::OutOfStep => {
                self.state = State::OutOfStep;
                return None;
            }
        }
        let missing = u16::try_from(gap.len).unwrap_or(u16::MAX).min(self.left);
        let part = self.part(&[], missing, gap.seen);
        if gap.len > u64::from(missing) {
            self.state = State::OutOfStep;
        }
        Some(part)
    }

    fn await_header(&mut self) {
        self.state = State::Header;
        self.have = 0;
    }

    /// Collects the five header bytes; `None` when the chunk ends first.
    fn collect_header(&mut self, chunk: &mut Chunk<'_>) -> Option<()> {
        if chunk.bytes.is_empty() {
            if chunk.cut > 0 {
                self.state = State::OutOfStep;
            }
            return None;
        }
        if self.have == 0 {
            self.record.offset = chunk.offset;
            self.record.acked = chunk.acked;
            self.record.first = chunk.seen;
            self.latest = chunk.seen;
        }
        self.latest = self.latest.max(chunk.seen);
        let collected = usize::from(self.have);
        let (part, _) = chunk.bytes.split_at(chunk.bytes.len().min(HEADER - collected));
        if let Ok(whole) = part.try_into() {
            // Nearly always.
            self.header = whole;
            self.read_header();
        } else {
            for (slot, byte) in self.header.iter_mut().skip(collected).zip(part) {
                *slot = *byte;
                self.have += 1;
            }
            if usize::from(self.have) == HEADER {
                self.read_header();
            }
        }
        skip(chunk, part.len());
        Some(())
    }

    fn read_header(&mut self) {
        let [kind, major, minor, high, low] = self.header;
        let first = self.state == State::Start;
        let length = u16::from_be_bytes([high, low]);
        if major == 3 && length <= MAX_BODY {
            self.record =
                Record { kind: u16::from(kind), version: u16::from_be_bytes([major, minor]), length, ..self.record };
        } else if let Some(length) = first.then(|| v2_length(self.header)).flatten() {
            self.record = Record { kind: SSLV2, version: u16::from_be_bytes([high, low]), length, ..self.record };
        } else {
            self.state = State::Stopped;
            return;
        }
        self.left = self.record.length;
        self.state = State::Fresh;
    }

    /// Message type of an SSLv2 hello whose record is being walked.
    pub fn v2_type(&self) -> u8 {
        self.header[2]
    }

    fn take_body<'a>(&mut self, chunk: &mut Chunk<'a>) -> Option<RecordPart<'a>> {
        let (bytes, _) = chunk.bytes.split_at(chunk.bytes.len().min(usize::from(self.left)));
        skip(chunk, bytes.len());
        let wanted = self.left.saturating_sub(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
        let missing = if chunk.bytes.is_empty() { u16::try_from(chunk.cut).unwrap_or(u16::MAX).min(wanted) } else { 0 };
        if bytes.is_empty() && missing == 0 && self.left > 0 {
            return None;
        }
        chunk.cut -= u32::from(missing);
        chunk.offset += u64::from(missing);
        Some(self.part(bytes, missing, chunk.seen))
    }

    fn part<'a>(&mut self, bytes: &'a [u8], missing: u16, seen: Moment) -> RecordPart<'a> {
        let taken = u16::try_from(bytes.len()).unwrap_or(u16::MAX).saturating_add(missing);
        self.left = self.left.saturating_sub(taken);
        self.latest = self.latest.max(seen);
        let part = RecordPart {
            record: self.record,
            bytes,
            missing,
            starts: self.state == State::Fresh,
            done: self.left == 0,
            seen: self.latest,
        };
        if part.done {
            self.await_header();
        } else {
            self.state = State::Body;
        }
        part
    }
}

fn skip(chunk: &mut Chunk<'_>, count: usize) {
    chunk.bytes = chunk.bytes.get(count..).unwrap_or_default();
    chunk.offset += count as u64;
}

/// Bytes that follow the first five of an SSLv2 ClientHello or ServerHello; `None` when it is neither.
fn v2_length([high, low, kind, ..]: [u8; HEADER]) -> Option<u16> {
    let announced = u16::from_be_bytes([high & 0x7f, low]);
    (high & 0x80 != 0 && matches!(kind, 1 | 4)).then(|| announced.checked_sub(3)).flatten()
}

/// Do these bytes start with the header of a TLS record that may follow a handshake? `None`: too few.
pub(super) fn plausible(bytes: &[u8]) -> Option<bool> {
    let &[kind, major, minor, high, low] = bytes.first_chunk::<HEADER>()?;
    let length = u16::from_be_bytes([high, low]);
    Some(matches!(kind, 20..=23) && major == 3 && minor <= 4 && (1..=MAX_BODY).contains(&length))
}

/// Like [`plausible`], and so is the header after it where the bytes reach that far.
fn plausible_chain(bytes: &[u8]) -> bool {
    let Some(&[_, _, _, high, low]) = bytes.first_chunk::<HEADER>() else {
        return false;
    };
    let next = HEADER + usize::from(u16::from_be_bytes([high, low]));
    plausible(bytes) == Some(true) && bytes.get(next..).and_then(plausible) != Some(false)
}
