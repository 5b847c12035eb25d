//! Stalls that were found, until the phases are known in which they lie.
//!
//! In: stalls in the order of their ends, and phases. Out: the stalls once more, without overlap, as far as their phase
//! bears them out. Bounded by [`MOST`].

use std::collections::VecDeque;

use super::{Detail, Kind, Stall};
use crate::phases::{self, Phase};
use crate::stream::{Moment, Side};

/// A shorter wait is told by its phase alone.
pub const LEAST_NS: i64 = 1_000_000;
/// Where a message ends was guessed: what comes after a pause may be another one.
const UNREAD: f64 = 0.5;
/// The receiver said that it had the bytes: no round trip has to be known for that.
const REPORTED: f64 = 0.9;
/// Stalls that wait for their phase; more, and the oldest are given up.
const MOST: usize = 1_024;

/// Which phases bear a stall out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Within {
    Any,
    /// One in which a message was under way.
    Message,
    /// One in which nobody owed anybody a byte, all the time.
    Idle,
}

/// A stall, and which bytes were lost where some were.
#[derive(Debug)]
struct Candidate {
    stall: Stall,
    within: Within,
    bytes: (u64, u64),
}

#[derive(Debug, Default)]
pub struct Found {
    /// In order, without overlap.
    candidates: VecDeque<Candidate>,
    /// Where the last stall ended that was given out.
    given: Option<Moment>,
    /// Where the latest TLS handshake ended: with the client's Finished, as a rule.
    handshake: Option<Moment>,
}

impl Found {
    /// Adds a stall. Where it overlaps with one before, the stronger cause has the time, between equal ones the first.
    pub fn push(&mut self, stall: Stall, within: Within) {
        self.add(Candidate { stall, within, bytes: (0, 0) });
    }

    /// As [`push`](Self::push), of a stall in which these bytes did not arrive.
    pub fn push_lost(&mut self, stall: Stall, bytes: (u64, u64)) {
        self.add(Candidate { stall, within: Within::Any, bytes });
    }

    fn add(&mut self, mut candidate: Candidate) {
        let stall = &mut candidate.stall;
        while let Some(last) = self.candidates.back().map(|last| &last.stall)
            && last.start.at >= stall.start.at
            && last.end.at <= stall.end.at
            && last.kind <= stall.kind
        {
            self.candidates.pop_back();
        }
        if let Some(before) = self.candidates.back().map(|last| last.stall.end).or(self.given)
            && before.at > stall.start.at
        {
            stall.start = before;
        }
        if stall.end.at - stall.start.at < LEAST_NS {
            return;
        }
        if self.candidates.len() >= MOST {
            self.candidates.pop_front();
        }
        self.candidates.push_back(candidate);
    }

    /// These bytes of `side`'s were not lost: they, or their acknowledgement, were late.
    pub fn was_late(&mut self, side: Side, bytes: (u64, u64)) {
        if let Some(lost) = self.lost(side, bytes) {
            lost.detail = Some(Detail::Spurious);
            lost.confidence = lost.confidence.max(REPORTED);
        }
    }

    /// The peer had these bytes of `side`'s already when they were sent again.
    pub fn had_arrived(&mut self, side: Side, bytes: (u64, u64)) {
        if let Some(lost) = self.lost(side, bytes)
            && lost.detail != Some(Detail::Spurious)
        {
            // Acknowledgements that come tell of a loss, not some that do not.
            let detail = if lost.kind == Kind::Rto { Detail::Ack } else { Detail::Spurious };
            lost.detail = Some(detail);
            lost.confidence = lost.confidence.max(REPORTED);
        }
    }

    /// The latest stall in which some of these bytes did not arrive.
    fn lost(&mut self, side: Side, (from, to): (u64, u64)) -> Option<&mut Stall> {
        let lost = self.candidates.iter_mut().rev().find(|candidate| {
            let (start, end) = candidate.bytes;
            candidate.stall.kind.is_loss() && candidate.stall.side == side && start < to && from < end
        });
        lost.map(|candidate| &mut candidate.stall)
    }

    /// Gives the stalls that end in `phase`, which is certain.
    pub fn settle(&mut self, phase: &Phase, out: &mut impl FnMut(Stall)) {
        if phase.kind == phases::Kind::Tls {
            self.handshake = Some(phase.end);
        }
        while let Some(candidate) = self.candidates.front()
            && candidate.stall.end.at <= phase.end.at
        {
            let stall = settled(candidate, phase, self.handshake);
            self.given = Some(candidate.stall.end);
            self.candidates.pop_front();
            stall.into_iter().for_each(&mut *out);
        }
    }
}

/// What `phase`, in which it ends, leaves of a stall.
fn settled(candidate: &Candidate, phase: &Phase, handshake: Option<Moment>) -> Option<Stall> {
    let mut stall = candidate.stall;
    let owing = match phase.kind {
        phases::Kind::Transfer => Some(Side::Server),
        phases::Kind::Request => Some(Side::Client),
        _ => None,
    };
    match candidate.within {
        // Nobody waits for what comes after the last byte.
        _ if phase.kind == phases::Kind::Close && stall.start.at >= phase.start.at => return None,
        // Between messages a program may take its time, and before a response that time is the wait.
        Within::Message if owing.is_some_and(|owing| !stall.unfinished || owing == stall.side) => {
            stall.start = stall.start.max(phase.start);
            if phase.inferred {
                stall.confidence = stall.confidence.min(UNREAD);
            }
        }
        Within::Idle if phase.kind == phases::Kind::Idle && stall.start.at >= phase.start.at => {}
        Within::Message | Within::Idle => return None,
        Within::Any => {
            let was_lost = matches!(stall.detail, Some(Detail::Tail | Detail::Middle));
            if was_lost && handshake.is_some_and(|end| stall.start.at <= end.at) {
                stall.detail = Some(Detail::Handshake);
            }
        }
    }
    (stall.end.at - stall.start.at >= LEAST_NS).then_some(stall)
}
