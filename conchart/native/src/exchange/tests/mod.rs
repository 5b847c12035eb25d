//! Stories: a scripted conversation, and what must be found in it. Laws: what holds for all.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod datagrams;
pub(super) mod echo;
mod encrypted;
mod encrypted_http2;
mod grpc;
mod http1;
mod http2;
mod laws;
mod missing;
mod prelude;
mod sniffers;
mod switching;
pub(super) mod talk;
mod turns;
