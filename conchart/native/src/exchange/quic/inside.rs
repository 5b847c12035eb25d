//! The interface between QUIC and what is said on its streams.
//!
//! In: nothing. Out: the trait [`Inside`]. Nothing is kept.

use crate::exchange::ledger::Ledger;
use crate::stream::{Gap, Moment, Side};

/// The next bytes of one side of a stream: in order, each once.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange) struct Part<'a> {
    pub id: u64,
    pub offset: u64,
    pub bytes: &'a [u8],
    /// That side sends no more on it; then there are no bytes.
    pub fin: bool,
    pub seen: Moment,
}

impl Part<'_> {
    /// Where its bytes end in the stream.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }
}

/// Reads the streams of one connection. What it finds goes into the [`Ledger`].
pub(in crate::exchange) trait Inside {
    fn part(&mut self, ledger: &mut Ledger, from: Side, part: Part<'_>);

    /// Bytes of a stream that the capture does not hold.
    fn missing(&mut self, ledger: &mut Ledger, from: Side, id: u64, gap: Gap);

    /// That side sends no more on this stream, and not all that it had begun (RESET_STREAM).
    fn reset(&mut self, ledger: &mut Ledger, from: Side, id: u64, code: u64, seen: Moment);

    /// That side wants no more of what its peer sends on this stream (STOP_SENDING).
    fn stop(&mut self, ledger: &mut Ledger, from: Side, id: u64, code: u64, seen: Moment);

    /// Data of a DATAGRAM frame (RFC 9221).
    fn datagram(&mut self, _ledger: &mut Ledger, _from: Side, _bytes: &[u8], _seen: Moment) {}

    /// The connection is over.
    fn finish(&mut self, ledger: &mut Ledger);

    /// First byte that is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        None
    }

    /// The name of what is spoken.
    fn app(&self) -> Option<&'static str> {
        None
    }
}
