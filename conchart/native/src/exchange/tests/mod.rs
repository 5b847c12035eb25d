//! Stories: a scripted conversation, and what must be found in it. Laws: what holds for all.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod http1;
mod lost;
mod laws;
mod switching;
mod talk;
mod turns;
