//! Messages that say at their beginning how long they are, in one direction of a stream: cut anywhere, with bytes missing.
//!
//! In: bytes and gaps. Out: each [`Message`] that is over, with its [`Span`] and its place in the stream. A message of
//! which bytes are missing is known by its beginning, where that is there. Where the next message begins is unknown after
//! a gap over its end: then the direction is *out of step* until a packet begins like a message.
//!
//! **To read a protocol with it**: a type for what a message says, [`Message::read`] for it, and a function that tells
//! whether a packet begins like a message. [`LengthField`] reads the lengths of binary protocols. In protocols of text,
//! `read` asks for more bytes until the line is there that gives the length. HTTP/2 does without: it counts bytes of a frame
//! as they come.
//!
//! Bounded by what `read` asks for. A beginning that comes in one piece is read where it is and never copied.

#[cfg(test)]
mod tests;

use super::Span;
use super::ledger::Ledger;
use super::reader::Start;
use super::trail::Trail;
use crate::stream::{Gap, Moment};

/// What a protocol's messages say.
pub(super) trait Message: Sized {
    /// What `read` has to know besides: who sends, what was agreed before. `()` where each message tells all.
    type Context: Copy;
    /// Bytes in which every message says how long it is, or how many are needed for that.
    const FIRST: usize;

    /// Reads the beginning of a message. `all`: no more of it is there, because bytes are missing.
    fn read(beginning: &[u8], all: bool, context: Self::Context) -> Read<Self>;

    /// Reads a message that begins `bytes`, which go on behind it or end inside it: what [`read`](Self::read) finds, at
    /// once. `None`: that has to look. For protocols of many short messages.
    fn read_ahead(_bytes: &[u8], _context: Self::Context) -> Option<(Self, usize)> {
        None
    }
}

/// What the beginning of a message tells.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Read<M> {
    /// So many bytes of the message are needed. Its length, where that is known by now.
    More { wanted: usize, len: Option<usize> },
    /// All that matters, and the length of the message.
    Parsed(M, usize),
    /// It is no message.
    Wrong,
}

/// The number in a binary message that gives its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct LengthField {
    /// Where it stands, and how many bytes it has: at most 8.
    pub at: usize,
    pub width: usize,
    pub little_endian: bool,
    /// Bytes of the message that it does not count: 0 where it counts all of them, itself included.
    pub uncounted: usize,
}

impl LengthField {
    /// The length of the message; `None` where the number is not there yet, or less than what has been read.
    pub fn read(self, beginning: &[u8]) -> Option<usize> {
        let end = self.at + self.width;
        let field = beginning.get(self.at..end)?;
        let add = |number: usize, &byte: &u8| number.checked_mul(256).map(|number| number | usize::from(byte));
        let counted =
            if self.little_endian { field.iter().rev().try_fold(0, add) } else { field.iter().try_fold(0, add) };
        counted?.checked_add(self.uncounted).filter(|&len| len >= end)
    }
}

/// A message that is over.
pub(super) struct Whole<M> {
    pub message: M,
    /// `done` unless its end is unknown.
    pub span: Span,
    /// Where it begins in the stream.
    pub offset: u64,
}

/// These bytes are no message.
#[derive(Debug)]
pub(super) struct Wrong;

/// What missing bytes did.
pub(super) enum Missed<M> {
    /// They are part of a message, which may be over.
    Inside(Option<Whole<M>>),
    /// Nobody knows where the next message begins. What was under way is cut short.
    OutOfStep(Option<Whole<M>>),
}

/// One direction.
pub(super) struct Framed<M> {
    /// The beginning of the message under way, where it came in pieces.
    buffer: Vec<u8>,
    /// So many bytes of it are to be kept, as far as is known.
    wanted: usize,
    /// What it says, once that is known, and its length.
    message: Option<M>,
    len: Option<usize>,
    /// Bytes of it that have come or are known to be missing.
    passed: usize,
    span: Span,
    offset: u64,
    out_of_step: bool,
    trail: Trail,
    latest: Option<Moment>,
}

impl<M: Message> Framed<M> {
    pub fn new(start: Start) -> Self {
        Self { out_of_step: start.is_midstream(), ..Self::between(Trail::default(), None) }
    }

    /// Before a message.
    fn between(trail: Trail, latest: Option<Moment>) -> Self {
        Self {
            buffer: Vec::new(),
            wanted: M::FIRST,
            message: None,
            len: None,
            passed: 0,
            span: Span::default(),
            offset: 0,
            out_of_step: false,
            trail,
            latest,
        }
    }

    pub fn is_out_of_step(&self) -> bool {
        self.out_of_step
    }

    /// Does a message begin with the next byte?
    pub fn is_between(&self) -> bool {
        self.passed == 0
    }

    /// First byte of the message under way.
    pub fn pending(&self) -> Option<Moment> {
        self.span.first
    }

    /// Bytes come. Out of step, those of a packet that `begins` like a message end that; true where a packet does not.
    pub fn looks_foreign(&mut self, ledger: &mut Ledger, seen: Moment, begins: impl FnOnce() -> bool) -> bool {
        let packet_begins = self.trail.begins_packet(seen);
        self.latest = Some(seen);
        if !self.out_of_step || !packet_begins {
            return false;
        }
        if begins() {
            self.out_of_step = false;
            self.trail.end(ledger);
        }
        self.out_of_step
    }

    /// Bytes came that cannot be followed.
    pub fn go_on(&mut self, seen: Moment) {
        self.trail.go_on(seen);
    }

    /// Takes in bytes of the message under way, of which there is one at least and which stand at `offset`. Gives how
    /// many it took, and the message that is over with them.
    pub fn take(
        &mut self,
        bytes: &[u8],
        seen: Moment,
        offset: u64,
        context: M::Context,
    ) -> Result<(usize, Option<Whole<M>>), Wrong> {
        let mut ahead = None;
        if self.passed == 0 {
            ahead = M::read_ahead(bytes, context);
            if let Some((message, len)) = ahead.take_if(|(_, len)| *len <= bytes.len()) {
                let mut span = Span { done: true, ..Span::default() };
                span.extend(seen, len as u64);
                return Ok((len, Some(Whole { message, span, offset })));
            }
            self.offset = offset;
        }
        if let Some((message, len)) = ahead {
            (self.message, self.len) = (Some(message), Some(len));
        }
        let taken = if self.message.is_none() { self.begin(bytes, context)? } else { self.left().min(bytes.len()) };
        let taken = taken.max(1);
        self.passed = self.passed.saturating_add(taken);
        self.span.extend(seen, taken as u64);
        Ok((taken, self.end()))
    }

    /// Reads the beginning of the message, which goes on with `bytes`; gives how many of them are part of it.
    fn begin(&mut self, bytes: &[u8], context: M::Context) -> Result<usize, Wrong> {
        let had = self.buffer.len();
        if had == 0 {
            while let Some(beginning) = bytes.get(..self.wanted) {
                if self.understand(M::read(beginning, false, context), beginning.len())? {
                    return Ok(self.left().min(bytes.len()));
                }
            }
        }
        let room = self.wanted.saturating_sub(had).min(bytes.len());
        self.buffer.extend(bytes.iter().take(room));
        if had > 0 && self.buffer.len() >= self.wanted {
            let read = M::read(&self.buffer, false, context);
            self.understand(read, self.buffer.len())?;
        }
        Ok(room)
    }

    /// Is all known that matters?
    fn understand(&mut self, read: Read<M>, had: usize) -> Result<bool, Wrong> {
        match read {
            Read::Parsed(message, len) if len >= had => {
                (self.message, self.len) = (Some(message), Some(len));
                Ok(true)
            }
            Read::More { wanted, len } if wanted > had && len.is_none_or(|len| wanted <= len) => {
                (self.wanted, self.len) = (wanted, len);
                Ok(false)
            }
            _ => Err(Wrong),
        }
    }

    /// No more of the beginning comes than is kept: does that tell what the message says?
    fn settle(&mut self, context: M::Context) -> bool {
        if self.message.is_none()
            && let Read::Parsed(message, len) = M::read(&self.buffer, true, context)
        {
            (self.message, self.len) = (Some(message), Some(len));
        }
        self.message.is_some()
    }

    /// Passes over bytes that the capture does not hold. `sent`: when they were, where a snap length cut them off.
    pub fn miss(&mut self, gap: Gap, sent: Option<Moment>, context: M::Context) -> Missed<M> {
        let inside = self.len.is_some() && gap.len <= self.left() as u64 && !self.out_of_step;
        // What comes after missing bytes has no known position in what is kept.
        if inside && self.settle(context) {
            match sent {
                Some(sent) => self.span.extend(sent, gap.len),
                None => self.span.extend_over(gap),
            }
            self.passed = self.passed.saturating_add(usize::try_from(gap.len).unwrap_or(usize::MAX));
            return Missed::Inside(self.end());
        }
        let cut_short = self.cut_short(context);
        match sent {
            Some(sent) => self.trail.go_on(sent),
            None => self.trail.miss(self.latest.unwrap_or(gap.seen), gap.seen),
        }
        *self = Self { out_of_step: true, ..Self::between(self.trail, self.latest) };
        Missed::OutOfStep(cut_short)
    }

    /// No more comes: the message under way is as long as it is.
    pub fn finish(&mut self, ledger: &mut Ledger, context: M::Context) -> Option<Whole<M>> {
        let cut_short = self.cut_short(context);
        self.trail.end(ledger);
        *self = Self::between(Trail::default(), None);
        cut_short
    }

    /// Bytes that are missing to the end of the message.
    fn left(&self) -> usize {
        self.len.unwrap_or(usize::MAX).saturating_sub(self.passed)
    }

    /// The message under way, if it is complete.
    fn end(&mut self) -> Option<Whole<M>> {
        if self.message.is_none() || self.left() > 0 {
            return None;
        }
        self.over(true)
    }

    /// The message under way, which does not go on.
    fn cut_short(&mut self, context: M::Context) -> Option<Whole<M>> {
        if self.settle(context) { self.over(false) } else { None }
    }

    fn over(&mut self, done: bool) -> Option<Whole<M>> {
        if self.buffer.capacity() > 0 {
            self.buffer = Vec::new();
        }
        (self.wanted, self.len, self.passed) = (M::FIRST, None, 0);
        let span = Span { done, ..std::mem::take(&mut self.span) };
        Some(Whole { message: self.message.take()?, span, offset: self.offset })
    }

    /// Bytes that are kept of the beginning of the message under way.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.buffer.capacity()
    }
}
