//! Scripted conversations: what was sent, and what must be found in it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::cast_possible_truncation)]

pub(crate) mod build;
mod compute;
mod laws;
mod names_and_prints;
mod offers;
mod records;
mod tickets;
mod tls12;
mod tls13;
