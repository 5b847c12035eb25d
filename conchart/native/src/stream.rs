//! The vocabulary that every stage after `packet` shares: instants, sides, pieces of a stream.
//!
//! In: nothing. Out: plain values. No IO, no clock.

use std::num::NonZeroU64;

/// When and where a packet was seen, whose connection is not known yet: capture time and frame number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Nanoseconds since the Unix epoch.
    pub at: i64,
    /// Frame number as Wireshark counts: from 1.
    pub frame: u64,
}

impl Arrival {
    /// The same, as a packet that this side sent.
    #[must_use]
    pub fn of(self, sender: Side) -> Moment {
        Moment::new(self.at, self.frame, sender)
    }
}

/// When and where something was seen: capture time and frame number of one packet, and who sent it.
///
/// Every boundary that conchart reports is a `Moment`, so that it can be opened in Wireshark. Who sent the packet says
/// when it was at the ends: the sender had it before the capture point, its peer afterwards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Moment {
    /// Nanoseconds since the Unix epoch.
    pub at: i64,
    /// The frame number, and in the lowest bit who sent it. Every open connection has dozens of moments: their size counts.
    place: NonZeroU64,
}

impl Moment {
    /// Frame numbers are as Wireshark counts: from 1.
    #[must_use]
    pub fn new(at: i64, frame: u64, sender: Side) -> Self {
        let place = frame.saturating_add(1) << 1 | u64::from(sender == Side::Server);
        Self { at, place: NonZeroU64::new(place).unwrap_or(NonZeroU64::MIN) }
    }

    /// Its frame number.
    #[must_use]
    pub fn frame(self) -> u64 {
        (self.place.get() >> 1).saturating_sub(1)
    }

    /// The side that sent the packet.
    #[must_use]
    pub fn sender(self) -> Side {
        if self.place.get() & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// The later of two moments; the frame number decides between equal times.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if (other.at, other.frame()) > (self.at, self.frame()) { other } else { self }
    }

    /// The earliest of those that are known.
    #[must_use]
    pub fn earliest(moments: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        moments.into_iter().flatten().min_by_key(|moment| (moment.at, moment.frame()))
    }
}

/// One end of a TCP connection: the client opened it, the server accepted it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Side {
    #[default]
    Client,
    Server,
}

impl Side {
    /// The name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// The side of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Client, Self::Server].into_iter().find(|side| side.name() == name)
    }

    /// The other end.
    #[must_use]
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A value for each side; `pair[side]` picks one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BySide<T> {
    pub client: T,
    pub server: T,
}

impl<T> std::ops::Index<Side> for BySide<T> {
    type Output = T;
    fn index(&self, side: Side) -> &T {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

impl<T> std::ops::IndexMut<Side> for BySide<T> {
    fn index_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// The next bytes of one side's stream, in order, exactly once.
///
/// Invariant: within one side `offset` continues where the previous chunk (or gap) ended.
/// Chunks of both sides arrive in causal order: a chunk comes after everything of the peer's
/// stream that its sender had acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Stream bytes that follow `bytes` and that the snap length cut off (usually 0).
    pub cut: u32,
    /// Position of the first byte in the sender's stream; 0 is the first byte after the SYN.
    pub offset: u64,
    /// How much of the peer's stream the sender had acknowledged in this packet.
    pub acked: u64,
    /// The packet that brought these bytes first.
    pub seen: Moment,
}

impl Chunk<'_> {
    /// Stream bytes covered, captured or not.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 + u64::from(self.cut)
    }

    /// True for a chunk that covers no stream byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.cut == 0
    }
}

/// Stream bytes that the receiver acknowledged but the capture does not hold.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub offset: u64,
    pub len: u64,
    /// Of a side of which nothing is captured: when its peer acknowledged the first of them, and the last.
    pub acked: Option<(Moment, Moment)>,
    /// The packet that revealed the gap: the first one after it.
    pub seen: Moment,
}

impl Gap {
    /// One of which nothing but the packet is known that revealed it.
    #[must_use]
    pub fn new(offset: u64, len: u64, seen: Moment) -> Self {
        Self { offset, len, acked: None, seen }
    }
}
