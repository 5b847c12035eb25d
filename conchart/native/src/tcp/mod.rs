//! TCP connections: who opened them, what each side's byte stream was, what went wrong on the way.
//!
//! In: segments with their moments. Out: [`Chunk`](crate::stream::Chunk)s in order and exactly once,
//! through [`Receiver`]; facts about the connection. Nothing is decoded above TCP.
//!
//! A [`Connection`] asks, for each side, an assembler what a segment adds to the stream, and a classifier what kind of
//! segment it is.

mod assembler;
mod classifier;
mod connection;
mod copies;
mod delivery;
mod gaps;
mod half;
mod handshake;
mod stamps;
mod state;
mod unseen;

pub use classifier::Mark;
pub use connection::{Connection, Receiver, Taken};
pub use half::Half;

#[cfg(test)]
mod tests;
