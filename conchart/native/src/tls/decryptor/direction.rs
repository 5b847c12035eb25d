//! The keys of one direction, in the order of their use.
//!
//! In: sealed records. Out: their content. Which keys a record needs is found by trying, as a tag or MAC that
//! verifies is proof: so neither a Finished nor a KeyUpdate has to be seen.

use std::cell::Cell;

use crate::keys::Secret;
use crate::stream::Moment;

use super::super::record::RecordPart;
use super::protection::{self, Content, Encrypted, Protection};
use super::suite::{Suite, expand_label};

/// Sequence numbers that are tried after missing bytes.
pub(super) const WINDOW: u64 = 256;
/// Records of a direction that may stay sealed before the first one opens: flights whose secret is missing.
const MAX_SEALED: u32 = 64;

thread_local! {
    /// Room for the body of the next record that comes in several parts, of whatever connection: one that is idle keeps
    /// none, and one that is busy does not make it anew at every record.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A body is not needed any more.
pub(super) fn give_back(body: Vec<u8>) {
    if body.capacity() > 0 {
        SPARE.set(body);
    }
}

/// What a key belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Epoch {
    Early,
    Handshake,
    Data,
}

/// Keys of one direction, for as long as they do not change.
#[derive(Debug)]
pub(super) struct EpochKeys {
    pub epoch: Epoch,
    pub protection: Box<dyn Protection>,
    /// Of the next record.
    pub sequence: u64,
    /// TLS 1.3: what the keys follow from, and those after the next KeyUpdate.
    pub secret: Option<(Suite, Secret)>,
}

impl EpochKeys {
    pub fn of_secret(epoch: Epoch, suite: Suite, secret: Secret) -> Option<Self> {
        let protection = protection::of_secret(suite, secret.bytes())?;
        Some(Self { epoch, protection, sequence: 0, secret: Some((suite, secret)) })
    }

    /// The keys after a KeyUpdate (RFC 8446 section 7.2).
    fn updated(&self) -> Option<Self> {
        let (suite, secret) = self.secret.filter(|_| self.epoch == Epoch::Data)?;
        let next = expand_label(suite.hash, secret.bytes(), "traffic upd", suite.hash.len())?;
        Self::of_secret(Epoch::Data, suite, Secret::new(&next)?)
    }

    /// Opens a record at the next sequence number, or one of `window` further.
    pub fn open(&mut self, record: Encrypted<'_>, window: u64) -> Option<Content> {
        for sequence in self.sequence..=self.sequence.saturating_add(window) {
            if let Some(content) = self.protection.open(sequence, record) {
                self.sequence = sequence.saturating_add(1);
                return Some(content);
            }
        }
        None
    }
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// In the order of their use.
    pub keys: Vec<EpochKeys>,
    /// Some record was opened; one of application keys was.
    pub opened: bool,
    pub data: bool,
    pub sealed: u32,
    /// Records are missing: the sequence number is not known for sure.
    pub unsure: bool,
    /// They are from before any data was opened.
    pub missed_sealed: bool,
    /// End in its stream of the last sealed record.
    pub end: Option<u64>,
    /// The record that is being collected, the packets' ends in it, and whether a part is missing.
    pub body: Vec<u8>,
    pub marks: Vec<(usize, Moment)>,
    pub cut: bool,
}

impl Direction {
    /// Are there keys of that epoch that are in use, or will be?
    pub fn has_keys_of(&self, epoch: Epoch) -> bool {
        self.keys.iter().any(|keys| keys.epoch == epoch)
    }

    /// Sequence number of the next record.
    pub fn next_sequence(&self) -> u64 {
        self.keys.first().map_or(0, |keys| keys.sequence)
    }

    /// Takes in the next part of a record; true when it ends it. A record in one part is not copied.
    pub fn collect(&mut self, part: &RecordPart<'_>) -> bool {
        if part.starts {
            self.body.clear();
            self.marks.clear();
            self.cut = false;
        }
        if !(part.starts && part.done) {
            if self.body.capacity() == 0 {
                self.body = SPARE.take();
                self.body.clear();
                self.body.reserve_exact(usize::from(part.record.length));
            }
            self.body.extend_from_slice(part.bytes);
            self.marks.push((self.body.len(), part.seen));
            self.cut |= part.missing > 0;
        }
        part.done
    }

    /// Opens a record with the present keys, or the next ones.
    pub fn open(&mut self, record: Encrypted<'_>) -> Option<(Epoch, Content)> {
        let window = if self.unsure { WINDOW } else { 0 };
        for index in 0..self.keys.len() {
            if let Some(found) = self.keys.get_mut(index).and_then(|keys| keys.open(record, window)) {
                self.keys.drain(..index);
                return self.note_opened(found);
            }
        }
        let mut updated = self.keys.last().filter(|_| self.data)?.updated()?;
        let found = updated.open(record, window)?;
        self.keys = vec![updated];
        self.note_opened(found)
    }

    fn note_opened(&mut self, content: Content) -> Option<(Epoch, Content)> {
        let epoch = self.keys.first()?.epoch;
        self.opened = true;
        self.unsure = false;
        self.data |= epoch == Epoch::Data;
        Some((epoch, content))
    }

    /// Were there records, but never one of application data that its keys opened?
    pub fn is_sealed_for_good(&self) -> bool {
        self.sealed > 0 && !self.data && self.keys.is_empty()
    }

    /// A record could not be opened.
    pub fn fail(&mut self) {
        self.sealed += 1;
        if self.opened || self.sealed >= MAX_SEALED {
            self.keys.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::super::super::record::Record;
    use super::*;
    use crate::stream::Side;

    #[test]
    fn the_room_of_a_record_in_parts_serves_the_next_one_and_no_idle_direction_keeps_it() {
        let seen = Moment::new(0, 1, Side::Client);
        let record = Record { kind: 23, version: 0x0303, length: 8, offset: 0, acked: 0, first: seen };
        let part = |bytes, starts| RecordPart { record, bytes, missing: 0, starts, done: !starts, seen };
        let rooms = [0, 1].map(|_| {
            let mut direction = Direction::default();
            assert!(!direction.collect(&part(&[1; 4], true)));
            assert!(direction.collect(&part(&[2; 4], false)));
            assert_eq!((direction.body.as_slice(), direction.body.capacity()), (&[1, 1, 1, 1, 2, 2, 2, 2][..], 8));
            let body = std::mem::take(&mut direction.body);
            let room = body.as_ptr();
            give_back(body);
            room
        });
        assert_eq!(rooms[0], rooms[1]);
    }
}
