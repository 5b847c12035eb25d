//! Why the next byte did not come: stretches in which a side had, or could have had, something to send and did not, or
//! had sent it and it did not arrive.
//!
//! In: the segments of a connection, and its phases. Out: [`Stall`]s, which do not overlap. A phase says who owed the next
//! byte, a stall why it did not come: it explains phases and is not added to them. What tells each kind, and from whom it
//! is learnt, stands in docs/stalls.md.
//!
//! [`sender`] knows one side's data and what its peer says of it; [`opening`] the SYNs; [`found`] keeps stalls until the
//! phases in which they lie are known.

mod clock;
mod found;
mod opening;
mod path;
mod sender;
mod size;
#[cfg(test)]
mod tests;
mod wait;

use crate::exchange::Delay;
use crate::packet::Segment;
use crate::phases::Phase;
use crate::quic::{Held, Spurious, Why};
use crate::stream::{BySide, Moment, Side};
use crate::tcp::{Connection, Mark, Taken};
use found::{Found, Within};
use opening::Opening;
use sender::Sender;
use size::Size;

/// What kept the next byte from coming; where two stretches overlap, the later of this list has the time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// The program gave nothing in the middle of a message, though data was allowed.
    Sender,
    /// The congestion window was full, for a round trip (RFC 5681 section 3.1).
    SlowStart,
    /// One or two segments were all that was allowed, and the peer delayed acknowledging them.
    DelayedAck,
    /// A header block refers to fields that had not come yet (RFC 9204 section 2.1.2).
    Qpack,
    /// The peer's window was full, which it keeps open as far as it ever does.
    WindowLimited,
    /// The peer's window was full, because its program does not read.
    Receiver,
    /// The peer's window was 0 (RFC 9293 section 3.8.6.1).
    ZeroWindow,
    /// The peer's window for a stream of HTTP/2, or for all of them, was closed (RFC 9113 section 5.2).
    FlowControl,
    /// A small segment was held until what had been sent before was acknowledged (RFC 9293 section 3.7.4).
    Nagle,
    /// A lost segment was sent again at once, as later ones were acknowledged (RFC 5681 section 3.2, RFC 8985).
    FastRetransmit,
    /// A lost segment was sent again when a timer ran out (RFC 6298, RFC 8985 section 7).
    Rto,
    /// A lost packet of QUIC was sent again, as later ones were acknowledged (RFC 9002 section 6.1).
    Loss,
    /// A lost packet of QUIC was sent again when a timer ran out (RFC 9002 section 6.2).
    Pto,
    /// The client went on from another endpoint, and the server did not know or did not believe it (RFC 9000 section 9).
    Migration,
    /// Segments were too large for the path (RFC 8899).
    Pmtu,
    /// A SYN or its answer was lost, and sent again.
    SynRto,
}

impl Kind {
    /// The name in the `stalls` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::SlowStart => "slow-start",
            Self::DelayedAck => "delayed-ack",
            Self::WindowLimited => "window-limited",
            Self::Receiver => "receiver",
            Self::ZeroWindow => "zero-window",
            Self::FlowControl => "flow-control",
            Self::Nagle => "nagle",
            Self::FastRetransmit => "fast-retransmit",
            Self::Rto => "rto",
            Self::Loss => "loss",
            Self::Pto => "pto",
            Self::Qpack => "qpack",
            Self::Migration => "migration",
            Self::Pmtu => "pmtu",
            Self::SynRto => "syn-rto",
        }
    }

    /// Is something sent again, because it was lost or seemed to be?
    fn is_loss(self) -> bool {
        matches!(self, Self::FastRetransmit | Self::Rto | Self::Loss | Self::Pto)
    }
}

/// What exactly: what was waited for, where something was lost, or what was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// The acknowledgement was delayed by its sender (RFC 9293 section 3.8.6.3).
    DelayedAck,
    /// The acknowledgement was sent in time, by its timestamp, and came late (RFC 7323 section 4).
    LateAck,
    /// It took no longer than a packet there and back.
    RoundTrip,
    /// A segment of a TLS handshake.
    Handshake,
    /// The last segment that had been sent.
    Tail,
    /// One with others behind it.
    Middle,
    /// The data had arrived, its acknowledgement had not.
    Ack,
    /// Nothing: data or acknowledgement were late.
    Spurious,
    Syn,
    SynAck,
    /// A router said that they were too large (RFC 1191, RFC 8201).
    Icmp,
    /// Nobody said so (RFC 2923).
    BlackHole,
    /// The congestion window had room for fewer segments than a new connection may send (RFC 6928).
    SmallWindow,
    /// The data of a SYN, which the server left (RFC 7413 section 4.2).
    Refused,
    /// A SYN that met an older connection of the same ends (RFC 9293 section 3.10.7.4).
    Challenged,
    /// What came before the server had room for the connection in its accept queue.
    Unaccepted,
    /// What the server sent to the endpoint that the client had left.
    Unreachable,
    /// What the client sent from its new endpoint.
    Unanswered,
    /// More than an address may get that is not validated (RFC 9000 section 9.3).
    Validation,
    /// The window of a stream.
    Stream,
    /// That of the connection, which its streams share.
    Connection,
}

impl Detail {
    /// The name in the `stalls` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DelayedAck => "delayed-ack",
            Self::LateAck => "late-ack",
            Self::RoundTrip => "round-trip",
            Self::Handshake => "handshake",
            Self::Tail => "tail",
            Self::Middle => "middle",
            Self::Ack => "ack",
            Self::Spurious => "spurious",
            Self::Syn => "syn",
            Self::SynAck => "syn-ack",
            Self::Icmp => "icmp",
            Self::BlackHole => "black-hole",
            Self::SmallWindow => "small-window",
            Self::Refused => "refused",
            Self::Challenged => "challenged",
            Self::Unaccepted => "unaccepted",
            Self::Unreachable => "unreachable",
            Self::Unanswered => "unanswered",
            Self::Validation => "validation",
            Self::Stream => "stream",
            Self::Connection => "connection",
        }
    }
}

/// A stretch of a connection in which the next byte did not come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    pub kind: Kind,
    pub detail: Option<Detail>,
    /// Whose byte did not come.
    pub side: Side,
    pub start: Moment,
    pub end: Moment,
    /// The packet of the peer that ended the wait, where one did.
    pub released: Option<Moment>,
    /// Nanoseconds by which the peer delayed the acknowledgement that was waited for.
    pub ack_delay_ns: Option<i64>,
    /// 0 to 1.
    pub confidence: f64,
    /// Nothing ended it: the connection, or the capture, was over before.
    pub unfinished: bool,
}

/// How the window field of a side's segments is to be read (RFC 7323 section 2.2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Scale {
    /// Its SYN was not captured.
    #[default]
    Unknown,
    /// Its SYN has no such option.
    Absent,
    By(u8),
}

/// A segment as it passed the capture point.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    pub segment: &'a Segment<'a>,
    pub taken: &'a Taken,
    pub seen: Moment,
    /// Its connection, which has taken it.
    pub tcp: &'a Connection,
}

/// The stalls of one flow.
#[derive(Debug, Default)]
pub struct Stalls {
    /// What both sides do, until they have ended their streams; nothing is asked of UDP.
    open: Option<Box<Open>>,
    found: Found,
}

impl Stalls {
    /// Those of a TCP connection.
    pub fn of_connection() -> Self {
        Self { open: Some(Box::default()), found: Found::default() }
    }

    /// Takes a segment that is no copy.
    #[inline]
    pub fn segment(&mut self, from: Side, passed: &Passed<'_>) {
        if let Some(bytes) = passed.taken.received_twice {
            // RFC 2883. The last byte may be reported so, too, when both sides have ended.
            self.found.had_arrived(from.peer(), bytes);
        }
        if let Some(open) = &mut self.open {
            open.segment(from, passed, &mut self.found);
        }
    }

    /// What was said tells why bytes did not come.
    pub fn delay(&mut self, delay: Delay) {
        match delay {
            Delay::Held(held) => {
                let kind = match held.why {
                    Why::Loss => Kind::Loss,
                    Why::Pto => Kind::Pto,
                    Why::FlowControl => Kind::WindowLimited,
                    Why::StreamWindow | Why::ConnectionWindow => Kind::FlowControl,
                    Why::Qpack => Kind::Qpack,
                };
                let detail = match held.why {
                    Why::StreamWindow => Some(Detail::Stream),
                    Why::ConnectionWindow => Some(Detail::Connection),
                    _ if !kind.is_loss() => None,
                    _ => Some(if held.is_tail { Detail::Tail } else { Detail::Middle }),
                };
                let Held { side, start, end, released, lost, .. } = held;
                let stall = Stall {
                    kind,
                    detail,
                    side,
                    start,
                    end,
                    released,
                    ack_delay_ns: None,
                    confidence: 1.0,
                    unfinished: kind == Kind::FlowControl && released.is_none(),
                };
                self.found.push_lost(stall, (lost, lost.saturating_add(1)));
            }
            // One packet more or less need not keep anybody waiting.
            Delay::Lost(_) | Delay::Path(_) | Delay::UnderWay(_) => {}
            Delay::Late(Spurious { side, lost }) => self.found.was_late(side, (lost, lost.saturating_add(1))),
        }
    }

    /// A client that moved kept bytes from coming.
    pub fn moved(&mut self, stall: Stall) {
        self.found.push(stall, Within::Any);
    }

    /// This phase is certain, and follows the one before: gives the stalls that end in it.
    pub fn settle(&mut self, phase: &Phase, out: &mut impl FnMut(Stall)) {
        self.found.settle(phase, out);
    }

    /// The connection or the capture ends at `end`, and with it what still kept a side waiting: nothing that comes now does.
    pub fn conclude(&mut self, tcp: &Connection, end: Moment) {
        if let Some(senders) = self.open.take().and_then(|open| open.senders) {
            senders.client.unfinished(Side::Client, tcp, end, &mut self.found);
            senders.server.unfinished(Side::Server, tcp, end, &mut self.found);
        }
    }
}

/// Finds the stalls of one TCP connection.
#[derive(Debug, Default)]
struct Open {
    opening: Opening,
    scales: BySide<Scale>,
    /// The segment size that each side's SYN announces to its peer.
    sizes: BySide<Option<u16>>,
    /// From the first segment on that acknowledges or has data: a scan is a SYN each, and nothing else.
    senders: Option<Box<BySide<Sender>>>,
}

impl Open {
    fn segment(&mut self, from: Side, passed: &Passed<'_>, found: &mut Found) {
        let (segment, taken) = (passed.segment, passed.taken);
        let peer = from.peer();
        self.opening.segment(from, passed, found);
        if segment.flags.syn() {
            self.scales[from] = segment.window_scale.map_or(Scale::Absent, Scale::By);
            self.sizes[from] = self.sizes[from].or(Size::usable(segment.mss));
            if let Some(senders) = &mut self.senders {
                senders[peer].may_send(segment.mss);
            }
        }
        let has_data = taken.end > taken.position;
        if segment.flags.rst() || !segment.flags.ack() && !has_data && self.senders.is_none() {
            return;
        }
        let window = self.window(from, segment);
        let sizes = self.sizes;
        let senders = self.senders.get_or_insert_with(|| {
            let mut senders = Box::<BySide<Sender>>::default();
            senders.client.may_send(sizes.server);
            senders.server.may_send(sizes.client);
            senders
        });
        if segment.flags.ack() {
            senders[peer].acknowledged(peer, passed, window, found);
        }
        if taken.mark == Some(Mark::Keepalive) {
            senders[from].probed();
        } else if has_data {
            senders[from].data(from, passed, found);
        } else if segment.flags.fin() {
            senders[from].ended(passed);
        }
        senders[from].sent(taken);
    }

    /// The window that a segment announces, in bytes; `None` where its scale is not known.
    fn window(&self, from: Side, segment: &Segment<'_>) -> Option<u64> {
        let scale = match (self.scales[from], self.scales[from.peer()]) {
            (Scale::Unknown, _) | (_, Scale::Unknown) => return (segment.window == 0).then_some(0),
            (Scale::By(_), Scale::By(_)) if segment.flags.syn() => 0,
            // RFC 7323 section 2.3: more is taken for 14.
            (Scale::By(scale), Scale::By(_)) => scale.min(14),
            _ => 0,
        };
        Some(u64::from(segment.window) << scale)
    }
}
