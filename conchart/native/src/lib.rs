//! conchart's native core: capture file → packets → TCP connections → TLS handshakes → exchanges
//! → phases → stalls → a portion of each → rows → tables, in one streaming pass.
//!
//! The list below is the data flow; a stage imports only stages above it.
//!
//! Modules are private, so that the compiler sees dead code. The list at the end is what benches, `tests/` and fuzz
//! targets use.

// Without the seam to Python nothing calls what runs per capture.
#![cfg_attr(not(feature = "extension-module"), allow(dead_code, unused_imports))]

mod stream;

mod bytes;

mod notes;

mod keys;

mod capture;

mod owners;

mod packet;

mod copies;

mod flow;

mod tcp;

mod udp;

mod tls;

mod quic;

mod exchange;

mod naming;

mod phases;

mod stalls;

mod dictionary;

mod tables;

mod tally;

mod rows;

mod portion;

mod pipeline;

mod annotating;

mod spilling;

mod logs;

mod correlate;

#[cfg(feature = "extension-module")]
mod py;

pub use capture::filter::Program;
pub use capture::{LinkType, Source};
pub use exchange::{
    Carrier, ContentMessage, Conversation, Delay, Exchange, PROTOCOLS, Protocol, Statements, StatusText,
};
pub use flow::{Flow, Slot, Table, Transport};
pub use keys::Keys;
pub use packet::{Datagram, Decoded, Endpoint, Flags, Fragments, Placed, Segment, Seq, Station, decode};
pub use pipeline::{Failure, Selection, read};
pub use portion::{Output, Portion, Stopped};
pub use stream::{Arrival, BySide, Chunk, Gap, Moment, Side};
pub use tables::{DECLARED, Declared, Filled, Tables};
pub use tcp::{Connection, Receiver};
pub use tls::{Agreement, AppRecord, Clear, Handshake, Outcome, Tls};
