//! Flows: which packets belong together, whatever carries them.
//!
//! In: the transport and the two endpoints of each packet. Out: the flow that it belongs to, and which side sent it.
//! Nothing in a packet is read here; what a flow holds is its owner's.

mod routes;
mod table;

pub use routes::Routes;
pub use table::{Flow, Slot, Table, Transport};
