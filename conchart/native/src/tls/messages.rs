//! Handshake messages out of one direction's stream of them: the bodies of its records, or CRYPTO frames.
//!
//! Wire format: RFC 8446 section 4 (type, 24-bit length, body); messages may share a record or span
//! several. In: stretches of content, in order. Out: [`Message`]s, and word of those that went by unread.
//! Nothing inside a message is read. Memory: at most [`MAX_MESSAGE`] bytes, and only of a message that comes in
//! several stretches.

use crate::stream::Moment;

/// Types of handshake messages (RFC 8446 appendix B.3, RFC 5246 section 7.4, RFC 8879).
pub(super) mod message {
    pub const CLIENT_HELLO: u8 = 1;
    pub const SERVER_HELLO: u8 = 2;
    pub const NEW_SESSION_TICKET: u8 = 4;
    pub const END_OF_EARLY_DATA: u8 = 5;
    /// A message of its own up to draft 22 of TLS 1.3.
    pub const HELLO_RETRY_REQUEST: u8 = 6;
    pub const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub const CERTIFICATE: u8 = 11;
    pub const SERVER_KEY_EXCHANGE: u8 = 12;
    pub const CERTIFICATE_REQUEST: u8 = 13;
    pub const SERVER_HELLO_DONE: u8 = 14;
    pub const CERTIFICATE_VERIFY: u8 = 15;
    pub const CLIENT_KEY_EXCHANGE: u8 = 16;
    pub const FINISHED: u8 = 20;
    pub const CERTIFICATE_STATUS: u8 = 22;
    pub const KEY_UPDATE: u8 = 24;
    pub const COMPRESSED_CERTIFICATE: u8 = 25;
}

/// Bytes kept of one message; longer ones are delivered cut short, like those a snap length cut.
pub(super) const MAX_MESSAGE: usize = 128 * 1024;

/// One handshake message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub kind: u8,
    /// Length of the whole body, as announced.
    pub length: u32,
    /// The body as far as it is known without a break: at most `length` bytes.
    pub body: &'a [u8],
    pub first: Moment,
    pub last: Moment,
}

/// What a stretch brought.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    Message(Message<'a>),
    /// Messages of this direction are missing.
    Missing,
}

/// A stretch of content, followed by `missing` unknown bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch<'a> {
    pub bytes: &'a [u8],
    pub missing: u16,
    /// Length of the record's content where it begins with this stretch.
    pub begins: Option<u32>,
    /// When the first byte was sent (the record header's, when the content starts here), and the last.
    pub first: Moment,
    pub last: Moment,
}

/// Is it known where messages begin?
#[derive(Clone, Copy, Debug, Default)]
enum Step {
    #[default]
    In,
    /// Bytes are missing in which a message began or ended.
    Out,
    /// Out of step, at the beginning of a record of that length: most senders begin a message there.
    Trial(u32),
}

/// A message of one direction that is still arriving.
///
/// Invariant: `body` holds the message's first bytes; `left` counts the bytes still to come.
#[derive(Debug, Default)]
pub(super) struct Messages {
    head: [u8; 4],
    have: u8,
    body: Vec<u8>,
    left: u32,
    /// Bytes of the body are missing: nothing after them is kept.
    cut: bool,
    step: Step,
    first: Option<Moment>,
}

impl Messages {
    #[cfg(test)]
    pub fn buffered(&self) -> usize {
        self.body.len()
    }

    /// Bytes are missing, and it is not known how many of them belong to the message in progress.
    ///
    /// What is known of it is delivered: a ClientHello's first extensions count.
    pub fn miss(&mut self, last: Moment, deliver: &mut dyn FnMut(Event<'_>)) {
        if self.has_header() {
            self.left = 0;
            self.deliver_when_whole(last, deliver);
        }
        self.skip();
        deliver(Event::Missing);
    }

    /// Passes over content that cannot be read.
    pub fn skip(&mut self) {
        *self = Self { step: Step::Out, ..Self::default() };
    }

    /// Takes in the next stretch.
    pub fn push(&mut self, stretch: Stretch<'_>, deliver: &mut dyn FnMut(Event<'_>)) {
        let Stretch { mut bytes, missing, begins, first: mut began, last } = stretch;
        if let (Step::Out | Step::Trial(_), Some(length)) = (self.step, begins) {
            *self = Self { step: Step::Trial(length), ..Self::default() };
        }
        while !matches!(self.step, Step::Out) && !bytes.is_empty() {
            if !self.has_header() {
                self.first.get_or_insert(began);
                bytes = self.collect_header(bytes);
                if !self.has_header() {
                    break;
                }
            }
            let (part, rest) = bytes.split_at(bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
            bytes = rest;
            self.left -= u32::try_from(part.len()).unwrap_or(u32::MAX);
            if self.left == 0 && self.body.is_empty() && !self.cut {
                // The usual case: a whole message in one stretch is read where it lies.
                self.deliver(part, last, deliver);
            } else {
                self.keep(part);
                self.deliver_when_whole(last, deliver);
            }
            began = last;
        }
        if missing == 0 {
            return;
        }
        if self.has_header() && u32::from(missing) <= self.left {
            self.cut = true;
            self.left -= u32::from(missing);
            self.deliver_when_whole(last, deliver);
        } else {
            self.miss(last, deliver);
        }
    }

    fn has_header(&self) -> bool {
        usize::from(self.have) == self.head.len()
    }

    /// Takes bytes of the message's header off the front; the others are returned.
    fn collect_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let wanted = self.head.len() - usize::from(self.have);
        let (part, rest) = bytes.split_at(bytes.len().min(wanted));
        for (slot, byte) in self.head.iter_mut().skip(usize::from(self.have)).zip(part) {
            *slot = *byte;
            self.have += 1;
        }
        if self.has_header() {
            let [kind, l2, l1, l0] = self.head;
            self.left = u32::from_be_bytes([0, l2, l1, l0]);
            match self.step {
                Step::Trial(length) if !is_plausible(kind, self.left, length) => self.skip(),
                _ => self.step = Step::In,
            }
        }
        rest
    }

    fn keep(&mut self, part: &[u8]) {
        let room = if self.cut { 0 } else { MAX_MESSAGE - self.body.len() };
        self.body.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
        self.cut |= part.len() > room;
    }

    fn deliver_when_whole(&mut self, last: Moment, deliver: &mut dyn FnMut(Event<'_>)) {
        if self.left == 0 {
            let body = std::mem::take(&mut self.body);
            self.deliver(&body, last, deliver);
        }
    }

    fn deliver(&mut self, body: &[u8], last: Moment, deliver: &mut dyn FnMut(Event<'_>)) {
        let [kind, l2, l1, l0] = self.head;
        let length = u32::from_be_bytes([0, l2, l1, l0]);
        let first = self.first.unwrap_or(last);
        *self = Self::default();
        deliver(Event::Message(Message { kind, length, body, first, last }));
    }
}

/// Does a message begin here, at the start of a record of `record` bytes? Where its type is known and it ends with
/// the record or before: encrypted bytes look like that once in a hundred million.
fn is_plausible(kind: u8, length: u32, record: u32) -> bool {
    use message::{
        CERTIFICATE, CERTIFICATE_REQUEST, CERTIFICATE_STATUS, CERTIFICATE_VERIFY, CLIENT_HELLO, CLIENT_KEY_EXCHANGE,
        COMPRESSED_CERTIFICATE, ENCRYPTED_EXTENSIONS, END_OF_EARLY_DATA, FINISHED, HELLO_RETRY_REQUEST, KEY_UPDATE,
        NEW_SESSION_TICKET, SERVER_HELLO, SERVER_HELLO_DONE, SERVER_KEY_EXCHANGE,
    };
    let is_message_type = matches!(
        kind,
        CLIENT_HELLO
            | SERVER_HELLO
            | NEW_SESSION_TICKET
            | END_OF_EARLY_DATA
            | HELLO_RETRY_REQUEST
            | ENCRYPTED_EXTENSIONS
            | CERTIFICATE
            | SERVER_KEY_EXCHANGE
            | CERTIFICATE_REQUEST
            | SERVER_HELLO_DONE
            | CERTIFICATE_VERIFY
            | CLIENT_KEY_EXCHANGE
            | FINISHED
            | CERTIFICATE_STATUS
            | KEY_UPDATE
            | COMPRESSED_CERTIFICATE
    );
    is_message_type && length.saturating_add(4) <= record
}
