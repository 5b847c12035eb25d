//! The conversation inside TLS, where its records could be opened.
//!
//! In: application data in clear, record by record. Out: what the [`Layer`] inside finds in it, fed with chunks and
//! gaps of streams whose offsets count content only. What a sender had received of its peer's content is known from what it had acknowledged
//! of its peer's records: a record that was acknowledged in part cannot have been read.

use std::collections::VecDeque;

use crate::exchange::backlog::Event;
use crate::exchange::layer::Layer;
use crate::exchange::ledger::Ledger;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use crate::tls::{AppRecord, Clear};

/// Records of one side on their way at once; when there are more, the oldest count as received.
const MAX_UNACKNOWLEDGED: usize = 1024;

pub(super) struct Inside {
    layer: Layer,
    streams: BySide<Stream>,
}

/// One side's content.
#[derive(Default)]
struct Stream {
    /// End of the content so far.
    sent: u64,
    /// End of the content that was surely received.
    received: u64,
    /// Ends of later records: in the TCP stream, and of their content.
    ends: VecDeque<(u64, u64)>,
}

impl Stream {
    /// How much of the content a peer had received that had acknowledged so much of the TCP stream.
    fn received(&mut self, acked: u64) -> u64 {
        while let Some(&(end, content)) = self.ends.front()
            && (end <= acked || self.ends.len() > MAX_UNACKNOWLEDGED)
        {
            self.received = content;
            self.ends.pop_front();
        }
        self.received
    }
}

impl Inside {
    pub fn new(layer: Layer) -> Self {
        Self { layer, streams: BySide::default() }
    }

    /// A record that stayed sealed although others were opened.
    pub fn missing(&mut self, ledger: &mut Ledger, record: &AppRecord) {
        let stream = &mut self.streams[record.from];
        let gap = Gap::new(stream.sent, record.bytes, record.last);
        stream.sent = stream.sent.saturating_add(record.bytes);
        self.layer.event(ledger, Event::Gap(record.from, gap));
    }

    /// Takes in the next record.
    pub fn record(&mut self, ledger: &mut Ledger, clear: &Clear) {
        let from = clear.from;
        let acked = self.streams[from.peer()].received(clear.acked);
        let stream = &mut self.streams[from];
        if clear.missing > 0 {
            let gap = Gap::new(stream.sent, clear.missing, clear.last);
            stream.sent = stream.sent.saturating_add(clear.missing);
            stream.ends.push_back((clear.end, stream.sent));
            return self.layer.event(ledger, Event::Gap(from, gap));
        }
        let mut offset = stream.sent;
        stream.sent = stream.sent.saturating_add(clear.content.len() as u64);
        stream.ends.push_back((clear.end, stream.sent));
        for (bytes, seen) in clear.pieces() {
            self.layer.event(ledger, Event::Data(from, Chunk { bytes, cut: 0, offset, acked, seen }));
            offset = offset.saturating_add(bytes.len() as u64);
        }
    }

    pub fn fin(&mut self, ledger: &mut Ledger, from: Side, seen: Moment) {
        self.layer.event(ledger, Event::Fin(from, seen));
    }

    pub fn finish(&mut self, ledger: &mut Ledger) {
        self.layer.finish(ledger);
    }

    /// First byte that is not yet in the ledger.
    pub fn pending(&self) -> Option<Moment> {
        self.layer.pending()
    }

    pub fn app(&self) -> Option<&'static str> {
        self.layer.app()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_was_received_when_all_of_it_was_acknowledged() {
        let mut stream = Stream { ends: VecDeque::from([(122, 100), (244, 200)]), ..Stream::default() };
        let received: Vec<u64> = [0, 121, 122, 130, 244, 999].map(|acked| stream.received(acked)).to_vec();
        assert_eq!(received, [0, 0, 100, 100, 200, 200]);
    }

    #[test]
    fn records_that_nobody_acknowledges_are_not_kept_for_ever() {
        let mut stream = Stream { ends: (1..5000).map(|n| (n * 122, n * 100)).collect(), ..Stream::default() };
        stream.received(0);
        assert_eq!(stream.ends.len(), MAX_UNACKNOWLEDGED);
    }
}
