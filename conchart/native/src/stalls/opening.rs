//! SYNs that were lost (RFC 9293 section 3.5, RFC 6298 section 5).
//!
//! In: the segments of a connection that is being opened. Out: one stall where a SYN or its answer was sent again.

use super::found::{Found, Within};
use super::{Detail, Kind, Passed, Stall};
use crate::stream::{BySide, Moment, Side};

/// First and latest transmission.
type Transmissions = Option<(Moment, Moment)>;

#[derive(Debug, Default)]
pub struct Opening {
    syns: BySide<Transmissions>,
    /// The SYN-ACK was seen before the latest SYN: so it was the answer that was lost.
    answered_before: bool,
    /// The server answered for an older connection, which the client then reset.
    was_challenged: bool,
    is_over: bool,
}

impl Opening {
    #[inline]
    pub fn segment(&mut self, from: Side, passed: &Passed<'_>, found: &mut Found) {
        if !self.is_over {
            self.opens(from, passed, found);
        }
    }

    fn opens(&mut self, from: Side, passed: &Passed<'_>, found: &mut Found) {
        let Passed { segment, seen, .. } = *passed;
        if segment.flags.rst() && from == Side::Client && passed.tcp.is_challenged {
            self.was_challenged = true;
        } else if segment.flags.rst() {
            // A refusal is an answer: a SYN after it is another attempt.
            self.syns = BySide::default();
        } else if segment.flags.syn() {
            self.answered_before |= from == Side::Client && self.syns.client.is_some() && self.syns.server.is_some();
            let first = self.syns[from].map_or(seen, |(first, _)| first);
            self.syns[from] = Some((first, seen));
        } else if from == Side::Client && segment.flags.ack() || segment.payload_len > 0 {
            self.is_over = true;
            self.conclude(found);
        }
    }

    fn conclude(&self, found: &mut Found) {
        let repeated = |side: Side| self.syns[side].filter(|(first, last)| first != last).map(|sent| (side, sent));
        let Some((side, (start, end))) = repeated(Side::Client).or_else(|| repeated(Side::Server)) else { return };
        let is_answer = side == Side::Server || self.answered_before;
        let detail = Some(match (self.was_challenged, is_answer) {
            (true, _) => Detail::Challenged,
            (false, true) => Detail::SynAck,
            (false, false) => Detail::Syn,
        });
        let side = if is_answer { Side::Server } else { side };
        let (kind, confidence) = (Kind::SynRto, 0.95);
        let stall =
            Stall { kind, detail, side, start, end, released: None, ack_delay_ns: None, confidence, unfinished: false };
        found.push(stall, Within::Any);
    }
}
