//! TCP connections: who opened them, what each side's byte stream was, what went wrong on the way.
//!
//! In: segments with their moments. Out: [`Chunk`](crate::stream::Chunk)s in order and exactly once,
//! through [`Receiver`]; facts about the connection. Nothing is decoded above TCP.

mod connection;
mod copies;
mod delivery;
mod half;

pub use connection::{Connection, Mark, Receiver, State};
pub use half::Half;

#[cfg(test)]
mod tests;
