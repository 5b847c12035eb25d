//! The interface between a protocol's reader and the conversation that it reads.
//!
//! In: nothing. Out: the trait [`Reader`], what one is told when it is made, and how it says that something else is
//! spoken from here on. Nothing is kept.

use super::backlog::Backlog;
use super::ledger::Ledger;
use super::statements::Statements;
use crate::keys::Keys;
use crate::stream::{Chunk, Gap, Moment, Side};

/// Bytes of each side that are looked at to find out what a stream carries.
pub(super) const SNIFFED: usize = 64;

/// How a conversation's bytes travel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carrier {
    /// A stream of bytes for each side, cut anywhere: TCP, what TLS carries.
    Stream,
    /// Every [`Chunk`] is one whole datagram: UDP.
    Datagrams,
}

/// Does a protocol begin like this?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Yes,
    No,
    /// Too few bytes to tell.
    More,
}

/// Who begins like this?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sender {
    Requester,
    Responder,
    /// Either side may, or nobody has looked: who asked before goes on asking.
    Either,
}

/// When a row is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum When {
    Never,
    /// Where the connection's first bytes are missing.
    Midstream,
    /// But not where bytes are known to be missing before: what begins so comes first.
    NotAfterGap,
    Always,
}

impl When {
    pub fn applies(self, start: Start) -> bool {
        match self {
            Self::Never => false,
            Self::Midstream => start.is_midstream(),
            Self::NotAfterGap => start != Start::Gap,
            Self::Always => true,
        }
    }
}

/// One way in which a protocol begins.
pub(super) struct Row {
    /// The name in the tables; `None`: its text tells (`http/1.0`, `http/1.1`).
    pub protocol: Option<&'static str>,
    pub carrier: Carrier,
    pub sender: Sender,
    /// May a stream begin like this?
    pub first: When,
    /// May it begin in any packet of something unknown?
    pub later: When,
    /// The name by which a TLS handshake agrees on it (RFC 7301): then nobody has to look.
    pub alpn: Option<&'static str>,
    pub verdict: fn(&[u8]) -> Verdict,
    pub reader: fn(&Opening<'_>) -> Box<dyn Reader>,
}

/// Reads one protocol. What it finds goes into the [`Ledger`] of the connection, which also knows who asks.
pub(super) trait Reader {
    /// Takes in the next bytes of one side, up to the point where something else is spoken.
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>>;

    /// Bytes that were sent, but not captured.
    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap);

    /// That side sends no more. Most messages say by themselves where they end.
    fn fin(&mut self, _ledger: &mut Ledger, _from: Side, _seen: Moment) {}

    /// The connection is over: what is incomplete goes out as it stands.
    fn finish(&mut self, ledger: &mut Ledger);

    /// First byte that is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        None
    }

    /// The name of what is spoken, where the reader knows it better than the table of sniffers does.
    fn app(&self) -> Option<&'static str> {
        None
    }

    /// Bytes that are kept at the moment.
    #[cfg(test)]
    fn held(&self) -> usize {
        0
    }
}

/// What is missing before the first bytes that are looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Start {
    /// Nothing: they are the connection's first.
    Beginning,
    /// The capture began after the connection.
    Midstream,
    /// Bytes that were not captured.
    Gap,
}

impl Start {
    pub const ALL: [Self; 3] = [Self::Beginning, Self::Midstream, Self::Gap];

    /// May a message begin in any packet, and in none before?
    pub fn is_midstream(self) -> bool {
        self != Self::Beginning
    }
}

/// What a reader is told when it is made.
#[derive(Clone, Copy)]
pub(super) struct Opening<'a> {
    /// Its row's name.
    pub protocol: &'static str,
    pub requester: Side,
    pub start: Start,
    /// What is spoken may still turn out to be something better known.
    pub may_switch: bool,
    /// Where secrets may be known.
    pub keys: Option<&'a Keys>,
    /// How many layers of TLS this is inside of.
    pub depth: u8,
    /// How much is told of statements and keys.
    pub statements: Statements,
}

/// A reader has read all that it can read.
pub(super) struct Switch<'a> {
    pub onward: Onward,
    /// The name that the connection keeps, whatever follows.
    pub name: Option<&'static str>,
    /// What was sent before it could be known who should read it.
    pub early: Option<Backlog>,
    /// What is left of the chunk that switched.
    pub rest: Chunk<'a>,
}

/// What is spoken from here on.
pub(super) enum Onward {
    /// Anything: it has to be found out.
    Anything,
    /// What this row of the table begins.
    Row(&'static Row),
    /// What this reader reads.
    Reader(Box<dyn Reader>),
}
