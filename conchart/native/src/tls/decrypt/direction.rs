//! The keys of one direction, in the order of their use.
//!
//! In: sealed records. Out: their content. Which keys a record needs is found by trying, as a tag or MAC that
//! verifies is proof: so neither a Finished nor a KeyUpdate has to be seen.

use crate::keys::Secret;
use crate::stream::Moment;

use super::super::messages::Messages;
use super::protection::{self, Content, Protection, Sealed};
use super::suite::{Suite, expand_label};

/// Sequence numbers that are tried after bytes went missing.
pub(super) const WINDOW: u64 = 256;
/// Records of a direction that may stay sealed before the first one opens: flights whose secret is missing.
const MAX_SEALED: u32 = 64;

/// What a key belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Epoch {
    Early,
    Handshake,
    Data,
}

/// Keys of one direction, for as long as they do not change.
#[derive(Debug)]
pub(super) struct Opener {
    pub epoch: Epoch,
    pub protection: Box<dyn Protection>,
    /// Of the next record.
    pub sequence: u64,
    /// TLS 1.3: what the keys follow from, and those after the next KeyUpdate.
    pub secret: Option<(Suite, Secret)>,
}

impl Opener {
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
    pub fn open(&mut self, record: Sealed<'_>, window: u64) -> Option<Content> {
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
    pub openers: Vec<Opener>,
    /// TLS 1.2 and older: this side has sent its ChangeCipherSpec.
    pub changed: bool,
    /// Some record was opened; one of application keys was.
    pub opened: bool,
    pub data: bool,
    pub sealed: u32,
    /// Records went missing: the sequence number is not known for sure.
    pub unsure: bool,
    /// They did before any data was opened.
    pub lost_sealed: bool,
    pub messages: Messages,
    /// End in its stream of the last sealed record.
    pub end: Option<u64>,
    /// The record that is being collected, the packets' ends in it, and whether a part is missing.
    pub body: Vec<u8>,
    pub marks: Vec<(usize, Moment)>,
    pub holed: bool,
}

impl Direction {
    /// Opens a record with the present keys, or the next ones.
    pub fn open(&mut self, record: Sealed<'_>) -> Option<(Epoch, Content)> {
        let window = if self.unsure { WINDOW } else { 0 };
        for at in 0..self.openers.len() {
            if let Some(found) = self.openers.get_mut(at).and_then(|opener| opener.open(record, window)) {
                self.openers.drain(..at);
                return self.note_opened(found);
            }
        }
        let mut updated = self.openers.last().filter(|_| self.data)?.updated()?;
        let found = updated.open(record, window)?;
        self.openers = vec![updated];
        self.note_opened(found)
    }

    fn note_opened(&mut self, content: Content) -> Option<(Epoch, Content)> {
        let epoch = self.openers.first()?.epoch;
        self.opened = true;
        self.unsure = false;
        self.data |= epoch == Epoch::Data;
        Some((epoch, content))
    }

    /// Were there records, but never one of application data that its keys opened?
    pub fn is_sealed_for_good(&self) -> bool {
        self.sealed > 0 && !self.data && self.openers.is_empty()
    }

    /// A record could not be opened.
    pub fn fail(&mut self) {
        self.sealed += 1;
        if self.opened || self.sealed >= MAX_SEALED {
            self.openers.clear();
        }
    }
}
