//! Where TLS 1.3 hides its handshake: tells encrypted handshake records from application data by size.
//!
//! Wire format: RFC 8446 sections 4.4.4 (Finished), 4.5 (EndOfEarlyData), 5.2 (what encryption adds).
//! In: the type-23 records of both sides since the ClientHello, in causal order. Out: a [`Reading`].
//! Nothing is decrypted; record padding (RFC 8446 section 5.4), which hides sizes, falls to the rule for
//! flights in one record.

use crate::stream::{Moment, Side};

use super::{AppRecord, MAX_HELD, record::RecordPart};

impl AppRecord {
    /// `part` is the one that ends the record.
    pub(super) fn new(from: Side, part: &RecordPart<'_>) -> Self {
        let bytes = u64::from(part.record.length);
        Self {
            from,
            first: part.record.first,
            last: part.seen,
            bytes,
            offset: part.record.offset,
            end: part.record.end(),
            acked: part.record.acked,
            confidence: 1.0,
            may_be_finished: Sizes::of(None).is_finished(bytes),
            may_be_interim: Sizes::CONTINUE.contains(&bytes),
        }
    }
}

/// Sizes of the encrypted records that have one: message, content type byte and tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    tag: u64,
    /// `None`: the suite is unknown, so any common hash will do.
    hash: Option<u64>,
}

impl Sizes {
    /// A record that holds the 25 bytes of `HTTP/1.1 100 Continue`: with the tag of TLS 1.3 (RFC 8446 section
    /// 5.2), of ChaCha20-Poly1305 (RFC 7905) and of AES-GCM in TLS 1.2 (RFC 5288).
    const CONTINUE: [u64; 3] = [25 + 1 + 16, 25 + 16, 25 + 8 + 16];

    pub fn of(cipher: Option<u16>) -> Self {
        let (tag, hash) = match cipher {
            Some(0x1301 | 0x1303 | 0x1304 | 0x1307 | 0x00c6 | 0x00c7) => (16, Some(32)),
            Some(0x1302) => (16, Some(48)),
            Some(0x1305) => (8, Some(32)),
            _ => (16, None),
        };
        Self { tag, hash }
    }

    /// What a record of this size has inside, without padding.
    pub fn content(self, size: u64) -> Option<u64> {
        size.checked_sub(self.sealed(0))
    }

    fn sealed(self, message: u64) -> u64 {
        message + 1 + self.tag
    }

    pub fn is_finished(self, size: u64) -> bool {
        [32, 48]
            .into_iter()
            .any(|hash| self.hash.is_none_or(|expected| expected == hash) && size == self.sealed(4 + hash))
    }

    /// What the sender of a Finished of this size adds to its records (RFC 8446 section 5.4): Java does.
    pub fn padding(self, finished: u64) -> u8 {
        const PADDING: u8 = 16;
        if finished.checked_sub(u64::from(PADDING)).is_some_and(|size| self.is_finished(size)) { PADDING } else { 0 }
    }

    pub fn is_alert(self, size: u64) -> bool {
        size == self.sealed(2)
    }

    pub fn is_key_update(self, size: u64) -> bool {
        size == self.sealed(5)
    }

    fn is_end_of_early_data(self, size: u64) -> bool {
        size == self.sealed(4)
    }

    /// Certificate without a certificate: the answer of a client that was asked and has none.
    fn is_empty_certificate(self, size: u64) -> bool {
        size == self.sealed(8)
    }
}

/// What the hellos said about the flights that follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub client: Side,
    pub sizes: Sizes,
    pub early_data: bool,
    /// The client sends EncryptedExtensions of its own when the server agreed (ALPS).
    pub application_settings: bool,
    pub psk: bool,
    /// Stream position of the ServerHello record: who acknowledged more has begun to read it.
    pub server_hello: u64,
}

/// How the records so far are to be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reading {
    /// More records are needed.
    Open,
    /// The client's Finished is (in) this record.
    Finished { index: usize, exact: bool },
    /// The client sent an alert instead.
    Alert { seen: Moment },
}

/// The records since the ClientHello, at most [`MAX_HELD`].
#[derive(Debug, Default)]
pub(super) struct Flight(pub(super) Vec<AppRecord>);

impl Flight {
    /// Adds a record; when there are too many, one side's consecutive records become one.
    pub fn push(&mut self, seen: AppRecord) {
        if self.0.len() >= MAX_HELD {
            if let Some(last) = self.0.iter_mut().rfind(|last| last.from == seen.from) {
                last.bytes += seen.bytes;
                last.last = seen.last;
                last.end = seen.end;
            }
            return;
        }
        self.0.push(seen);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Are there records, and did `side` send all of them?
    pub fn is_only_of(&self, side: Side) -> bool {
        !self.0.is_empty() && self.0.iter().all(|seen| seen.from == side)
    }

    /// Last byte of the last record.
    pub fn last(&self) -> Option<Moment> {
        self.0.last().map(|seen| seen.last)
    }

    pub fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Finds the client's Finished; `over` when no record will follow.
    pub fn read(&self, context: Context, over: bool) -> Reading {
        let sizes = context.sizes;
        let reached = |seen: &AppRecord| !context.early_data || seen.acked > context.server_hello;
        let of_client = |(_, seen): &(usize, &AppRecord)| seen.from == context.client && reached(seen);
        let early_end = self.early_end(context);
        let skipped = early_end.map_or(0, |end| end + 1);
        let mut first = None;
        for (index, seen) in self.0.iter().enumerate().skip(skipped).filter(of_client) {
            if sizes.is_finished(seen.bytes) {
                return Reading::Finished { index, exact: true };
            }
            if sizes.is_alert(seen.bytes) {
                return Reading::Alert { seen: seen.first };
            }
            first = first.or(Some((index, seen.offset)));
        }
        let Some((index, offset)) = first else {
            return Reading::Open;
        };
        // No Finished by its size, and the server has gone on: the flight was packed into one record.
        let answered = |seen: &AppRecord| seen.from != context.client && seen.acked > offset;
        let sure = !context.early_data || early_end.is_some();
        if over || sure && self.0.iter().skip(index).any(answered) {
            return Reading::Finished { index, exact: false };
        }
        Reading::Open
    }

    /// Index of the EndOfEarlyData, if the client sent one: the server took the early data.
    fn early_end(&self, context: Context) -> Option<usize> {
        let is_end = |seen: &AppRecord| {
            seen.from == context.client
                && seen.acked > context.server_hello
                && context.sizes.is_end_of_early_data(seen.bytes)
        };
        if context.early_data { self.0.iter().position(is_end) } else { None }
    }

    /// Splits the records at the client's Finished, found at `finished_index`.
    pub fn split(self, context: Context, finished_index: usize, exact: bool) -> Option<Split> {
        let finished = *self.0.get(finished_index)?;
        let early_end = self.early_end(context).filter(|&end| end < finished_index);
        let server_done = self.server_done(context, finished);
        let mut split = Split {
            finished,
            server_done: server_done.map(|(_, seen)| seen),
            client_auth: self.client_auth(context, finished_index, exact),
            early_data: early_end.is_some(),
            ticket: None,
            extensions: None,
            data: Vec::new(),
            client_bytes: 0,
            server_bytes: 0,
        };
        for (index, &seen) in self.0.iter().enumerate() {
            let of_client = seen.from == context.client;
            let is_data = if of_client {
                index > finished_index || early_end.is_some_and(|end| index < end)
            } else {
                // Half-RTT data answers early data; without early data it is a ticket or a greeting of HTTP/2.
                index > finished_index || early_end.is_some() && server_done.is_some_and(|(done, _)| index > done)
            };
            if is_data {
                split.data.push(seen);
            } else if of_client {
                split.client_bytes += seen.end - seen.offset;
            } else {
                split.server_bytes += seen.end - seen.offset;
                split.extensions.get_or_insert(seen.bytes);
                if server_done.is_some_and(|(done, _)| index > done) {
                    split.ticket.get_or_insert(seen.bytes);
                }
            }
        }
        Some(split)
    }

    /// The server's Finished with its index, or what comes closest to it.
    ///
    /// The last record of that size which the client had acknowledged; without one, the first record of
    /// a resumption (which needs only one) or else the last that the client had acknowledged.
    pub fn server_done(&self, context: Context, finished: AppRecord) -> Option<(usize, AppRecord)> {
        let before = |(_, seen): &(usize, &AppRecord)| seen.from != context.client && seen.offset < finished.acked;
        let flight = || self.0.iter().enumerate().filter(before);
        let exact = flight().rfind(|(_, seen)| context.sizes.is_finished(seen.bytes));
        let any = || {
            if context.psk { flight().next() } else { flight().next_back() }
        };
        exact.or_else(any).map(|(index, seen)| (index, *seen))
    }

    /// Did the client send a Certificate message before its Finished? `None`: cannot be told.
    fn client_auth(&self, context: Context, finished_index: usize, exact: bool) -> Option<bool> {
        if context.psk {
            return Some(false);
        }
        if !exact {
            // One record for the whole flight: that long only with a certificate. A short one is settings
            // and Finished, or else hides its sizes by padding.
            const CERTIFICATE_AT_LEAST: u64 = 400;
            let size = self.0.get(finished_index)?.bytes;
            let certificate = size >= CERTIFICATE_AT_LEAST;
            return (certificate || context.application_settings).then_some(certificate);
        }
        let mut before = self.0.iter().take(finished_index).filter(|seen| seen.from == context.client);
        Some(match (before.next(), before.next()) {
            (None, _) => false,
            (Some(only), None) => !context.application_settings || context.sizes.is_empty_certificate(only.bytes),
            _ => true,
        })
    }
}

/// The records around the client's Finished, told apart.
#[derive(Debug)]
pub(super) struct Split {
    pub finished: AppRecord,
    /// The last record of its flight.
    pub server_done: Option<AppRecord>,
    pub client_auth: Option<bool>,
    /// The server accepted early data.
    pub early_data: bool,
    /// Size of the first record that the server sent between its Finished and the client's.
    pub ticket: Option<u64>,
    /// Size of the first record after the ServerHello: EncryptedExtensions, perhaps with what follows.
    pub extensions: Option<u64>,
    /// Application data, in causal order.
    pub data: Vec<AppRecord>,
    /// Stream bytes of the others, headers included.
    pub client_bytes: u64,
    pub server_bytes: u64,
}
