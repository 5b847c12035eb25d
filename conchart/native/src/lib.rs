//! conchart's native core: capture file → packets → TCP connections → TLS handshakes → exchanges
//! → phases → stalls → a portion of each → rows → tables, in one streaming pass.
//!
//! The list below is the data flow; a stage imports only stages above it.

pub mod stream;

mod error;

mod notes;

pub mod keys;

pub mod capture;

pub mod packet;

mod copies;

pub mod flow;

pub mod tcp;

mod udp;

pub mod tls;

mod quic;

pub mod exchange;

mod naming;

mod phases;

mod stalls;

mod words;

pub mod tables;

mod tally;

mod rows;

pub mod portion;

pub mod pipeline;

pub mod annotating;

pub mod across;

#[cfg(feature = "extension-module")]
mod py;
