//! conchart's native core: capture file → packets → TCP connections → TLS handshakes → exchanges
//! → phases → facts → rows, in one streaming pass.
//!
//! The list below is the data flow; a stage imports only stages above it.

pub mod stream;

pub mod error;

pub mod notes;

pub mod keys;

pub mod capture;

pub mod packet;

pub mod flow;

pub mod tcp;

pub mod udp;

pub mod tls;

pub mod quic;

pub mod exchange;

pub mod phases;

pub mod tables;

mod tally;

mod rows;

pub mod facts;

pub mod pipeline;

#[cfg(feature = "extension-module")]
mod py;
