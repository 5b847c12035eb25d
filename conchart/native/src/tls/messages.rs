//! Handshake messages out of the bodies of one direction's records.
//!
//! Wire format: RFC 8446 section 4 (type, 24-bit length, body); messages may share a record or span
//! several. In: record bodies in order. Out: [`Message`]s. Nothing inside a message is read.

use crate::stream::Moment;

/// Types of handshake messages (RFC 8446 appendix B.3, RFC 5246 section 7.4, RFC 8879).
pub(super) mod message {
    pub const CLIENT_HELLO: u8 = 1;
    pub const SERVER_HELLO: u8 = 2;
    pub const END_OF_EARLY_DATA: u8 = 5;
    /// A message of its own up to draft 22 of TLS 1.3.
    pub const HELLO_RETRY_REQUEST: u8 = 6;
    pub const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub const CERTIFICATE: u8 = 11;
    pub const SERVER_KEY_EXCHANGE: u8 = 12;
    pub const CERTIFICATE_REQUEST: u8 = 13;
    pub const SERVER_HELLO_DONE: u8 = 14;
    pub const FINISHED: u8 = 20;
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

/// A message of one direction that is still arriving.
///
/// Invariant: `body` holds the message's first bytes; `left` counts the bytes still to come.
#[derive(Debug, Default)]
pub(super) struct Messages {
    head: [u8; 4],
    have: u8,
    body: Vec<u8>,
    left: u32,
    /// A hole in the body: nothing after it is kept.
    holed: bool,
    /// A message header went missing: the rest of this direction cannot be cut into messages.
    lost: bool,
    first: Option<Moment>,
}

impl Messages {
    /// True when messages of this direction went by unread.
    pub fn lost(&self) -> bool {
        self.lost
    }

    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.body.len()
    }

    /// Marks the direction as unreadable from here on.
    ///
    /// What is known of the message in progress is delivered: a ClientHello's first extensions count.
    pub fn lose(&mut self, last: Moment, deliver: &mut dyn FnMut(Message<'_>)) {
        if usize::from(self.have) == self.head.len() {
            self.left = 0;
            self.deliver_when_whole(last, deliver);
        }
        *self = Self { lost: true, ..Self::default() };
    }

    /// Feeds a stretch of record body, followed by `missing` unknown bytes.
    ///
    /// `first` is when the first byte was sent (the record header's, when the body starts here), `last`
    /// when the last one was.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        missing: u16,
        (first, last): (Moment, Moment),
        deliver: &mut dyn FnMut(Message<'_>),
    ) {
        let mut began = first;
        while !self.lost && !bytes.is_empty() {
            if usize::from(self.have) < self.head.len() {
                self.first.get_or_insert(began);
                let wanted = self.head.len() - usize::from(self.have);
                let (part, rest) = bytes.split_at(bytes.len().min(wanted));
                for (slot, byte) in self.head.iter_mut().skip(usize::from(self.have)).zip(part) {
                    *slot = *byte;
                    self.have += 1;
                }
                bytes = rest;
                if usize::from(self.have) < self.head.len() {
                    break;
                }
                let [_, l2, l1, l0] = self.head;
                self.left = u32::from_be_bytes([0, l2, l1, l0]);
            }
            let (part, rest) = bytes.split_at(bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
            bytes = rest;
            self.left -= u32::try_from(part.len()).unwrap_or(u32::MAX);
            if self.left == 0 && self.body.is_empty() && !self.holed {
                // The usual case: a whole message in one piece is read where it lies.
                self.deliver(part, last, deliver);
            } else {
                self.keep(part);
                self.deliver_when_whole(last, deliver);
            }
            began = last;
        }
        if missing > 0 {
            self.miss(missing, last, deliver);
        }
    }

    fn keep(&mut self, part: &[u8]) {
        let room = if self.holed { 0 } else { MAX_MESSAGE - self.body.len() };
        self.body.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
        self.holed |= part.len() > room;
    }

    fn miss(&mut self, missing: u16, last: Moment, deliver: &mut dyn FnMut(Message<'_>)) {
        let in_body = usize::from(self.have) == self.head.len() && u32::from(missing) <= self.left;
        if !in_body {
            return self.lose(last, deliver);
        }
        self.holed = true;
        self.left -= u32::from(missing);
        self.deliver_when_whole(last, deliver);
    }

    fn deliver_when_whole(&mut self, last: Moment, deliver: &mut dyn FnMut(Message<'_>)) {
        if self.left == 0 {
            let body = std::mem::take(&mut self.body);
            self.deliver(&body, last, deliver);
        }
    }

    fn deliver(&mut self, body: &[u8], last: Moment, deliver: &mut dyn FnMut(Message<'_>)) {
        let [kind, l2, l1, l0] = self.head;
        let length = u32::from_be_bytes([0, l2, l1, l0]);
        deliver(Message { kind, length, body, first: self.first.unwrap_or(last), last });
        *self = Self::default();
    }
}
