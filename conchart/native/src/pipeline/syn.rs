//! A connection of which nothing but its SYN is known.
//!
//! In: the first segment of a connection. Out: the same, once more, when a second packet comes or the connection becomes
//! rows. A scan opens hundreds of thousands of connections with a SYN each that nobody answers: what is kept for each is
//! what its SYN said.

use crate::packet::{Flags, Segment};
use crate::stalls::{Passed, Stalls};
use crate::stream::{Moment, Side};
use crate::tcp::{Connection, Receiver};

/// The SYN, and when it came.
pub(super) struct Syn {
    segment: Segment<'static>,
    pub seen: Moment,
}

impl Syn {
    /// `None` where the segment is, or has, something else besides.
    pub fn new(segment: &Segment<'_>, seen: Moment) -> Option<Self> {
        const MEANT: u8 = Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN;
        let is_bare = segment.flags.0 & MEANT == Flags::SYN && segment.payload_len == 0;
        is_bare.then(|| Self { segment: segment.without_bytes(), seen })
    }

    /// Does a SYN of that side begin another connection between the same ends?
    pub fn is_other_incarnation(&self, from: Side, segment: &Segment<'_>) -> bool {
        from == Side::Client && segment.seq != self.segment.seq
    }

    /// The connection, and its stalls.
    pub fn connect(&self, receiver: &mut impl Receiver) -> (Box<Connection>, Stalls) {
        let (mut tcp, mut stalls) = (Box::new(Connection::new(self.seen)), Stalls::of_connection());
        let taken = tcp.segment(Side::Client, &self.segment, self.seen, receiver);
        stalls.segment(Side::Client, &Passed { segment: &self.segment, taken: &taken, seen: self.seen, tcp: &tcp });
        (tcp, stalls)
    }
}
