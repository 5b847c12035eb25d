//! What kind of segment it is: sent again, out of order, a probe; and how long the peer takes to acknowledge.
//!
//! In: where a segment lies in its stream, and what the [`assembler`](super::assembler) knows of that stretch. Out: a
//! [`Mark`] per segment, counts, a round-trip time. The bytes themselves are not looked at.

use super::copies::Copies;

/// What is out of the ordinary about a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    Retransmit,
    OutOfOrder,
    /// What lies before it in its stream is not in the capture, or not yet.
    Gap,
    Duplicate,
    Keepalive,
    ZeroWindow,
}

impl Mark {
    /// Does it tell of trouble on the way, or at an end, that whoever looks at a lane wants to see?
    #[must_use]
    pub fn is_trouble(self) -> bool {
        matches!(self, Self::Retransmit | Self::OutOfOrder | Self::Gap | Self::ZeroWindow)
    }

    /// The name in the `packets` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Retransmit => "retransmit",
            Self::OutOfOrder => "out_of_order",
            Self::Gap => "gap",
            Self::Duplicate => "duplicate",
            Self::Keepalive => "keepalive",
            Self::ZeroWindow => "zero_window",
        }
    }
}

/// Where a segment's data lies, in positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub position: u64,
    pub end: u64,
    /// The end of what was captured or passed over before it; 0: nothing was.
    pub reached: u64,
}

impl Extent {
    /// Was anything before it captured, but not what lies right before it?
    fn leaves_out(self) -> bool {
        self.reached > 0 && self.position > self.reached
    }

    fn len(self) -> u64 {
        self.end - self.position
    }

    /// Does it repeat the last byte, or stand where that was? So a sender asks whether its peer is still there (RFC 9293
    /// section 3.8.4).
    pub fn is_probe(self) -> bool {
        self.len() <= 1 && self.position + 1 == self.reached
    }

    /// Does it lie, or begin, where something was seen already?
    pub fn goes_back(self) -> bool {
        self.position < self.reached
    }
}

/// The segments of one side.
#[derive(Debug, Default)]
pub(super) struct Classifier {
    pub copies: Copies,
    /// When a segment last went further than all before it.
    reached_at: i64,
    /// A segment whose acknowledgement is being timed: its end and when it was sent.
    timed: Option<(u64, i64)>,
    /// Least time from this side's data, seen here, to its acknowledgement.
    pub round_trip_ns: Option<i64>,
    /// Position of the byte of a zero-window probe: it is sent again with its successors (RFC 9293 section 3.8.6.1). 0:
    /// there was none.
    probe: u64,
    /// This side's latest window was 0.
    pub window_closed: bool,
    pub retransmits: i32,
    pub out_of_order: i32,
    pub zero_windows: i32,
}

impl Classifier {
    /// A segment announces this window.
    pub fn window(&mut self, window: u16) -> Option<Mark> {
        self.window_closed = window == 0;
        self.zero_windows += i32::from(self.window_closed);
        self.window_closed.then_some(Mark::ZeroWindow)
    }

    /// A segment without SYN, FIN and RST, which [probes](Extent::is_probe).
    pub fn keepalive(&mut self) -> Mark {
        self.copies.saw_repetition();
        Mark::Keepalive
    }

    /// A segment with data. `is_new`: some of its bytes below `reached` were not captured before. `reordering_ns`: a gap that
    /// is filled within this time was reordering, not loss. `peer_window_closed`: only a probe may be sent.
    pub fn data(
        &mut self,
        extent: Extent,
        at: i64,
        is_new: bool,
        reordering_ns: i64,
        peer_window_closed: bool,
    ) -> Option<Mark> {
        let Extent { position, end, reached } = extent;
        let mut mark = None;
        let probe = std::mem::take(&mut self.probe);
        if probe == position && reached == position + 1 && end > reached {
            self.timed = None;
        } else if extent.goes_back() {
            // Karn's rule: whose acknowledgement comes now is not known (RFC 6298 section 3).
            self.timed = None;
            mark = Some(if is_new && at - self.reached_at < reordering_ns {
                self.out_of_order()
            } else {
                self.repeated()
            });
        } else {
            mark = extent.leaves_out().then_some(Mark::Gap);
            self.timed = self.timed.or(Some((end, at)));
        }
        if end > reached {
            self.reached_at = at;
            if peer_window_closed && extent.len() == 1 {
                self.probe = position;
            }
        }
        mark
    }

    /// A FIN without data, which says where the stream ends.
    pub fn fin(&mut self, extent: Extent, at: i64) {
        if extent.end > extent.reached {
            self.reached_at = at;
        }
    }

    fn out_of_order(&mut self) -> Mark {
        self.out_of_order += 1;
        Mark::OutOfOrder
    }

    /// A segment was sent again.
    pub fn repeated(&mut self) -> Mark {
        self.retransmits += 1;
        self.copies.saw_repetition();
        Mark::Retransmit
    }

    /// The peer acknowledges everything before `position`.
    pub fn acknowledged(&mut self, position: u64, at: i64) {
        if let Some((end, sent_at)) = self.timed
            && position >= end
        {
            let took = (at - sent_at).max(0);
            self.round_trip_ns = Some(self.round_trip_ns.map_or(took, |least| least.min(took)));
            self.timed = None;
        }
    }
}
