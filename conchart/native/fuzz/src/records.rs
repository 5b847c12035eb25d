//! What TLS finds in two streams, taken out as it becomes certain, and what is true of it whatever was sent.

use conchart_native::{Agreement, AppRecord, Chunk, Clear, Gap, Handshake, Keys, Moment, Receiver, Side, Tls};

use crate::Talk;
use crate::exchanges::in_order;
use crate::memory::bounded;

/// Bytes that the TLS of one connection may take: a message of 128 KiB and a record per side, and early data.
const MOST_MEMORY: usize = 1 << 20;

/// Everything that was found.
#[derive(Debug, Default, PartialEq)]
pub struct Records {
    pub handshakes: Vec<Box<Handshake>>,
    pub agreements: Vec<Agreement>,
    pub records: Vec<AppRecord>,
    pub clear: Vec<Clear>,
}

struct Reading {
    tls: Tls,
    found: Records,
    in_order: bool,
}

impl Records {
    /// What is found in `talk` when it comes in pieces of `size` bytes.
    ///
    /// # Panics
    /// Where a law does not hold.
    #[must_use]
    pub fn of(talk: &Talk<'_>, size: usize, midstream: bool, keys: Option<Keys>) -> Self {
        let tls = match keys {
            _ if midstream => Tls::midstream(),
            keys => Tls::new(keys),
        };
        let mut reading = Reading { tls, found: Self::default(), in_order: !talk.is_mixed };
        bounded(MOST_MEMORY, || talk.tell(size, &mut reading));
        reading.tls.finish();
        reading.collect();
        let found = reading.found;
        assert_eq!(found.agreements.len(), found.handshakes.len(), "each handshake is announced");
        let records: u64 = found.records.iter().map(|record| record.bytes).sum();
        let clear: u64 = found.clear.iter().map(|clear| clear.content.len() as u64 + clear.missing).sum();
        assert!(records + clear <= talk.sent.client + talk.sent.server, "{records} and {clear} bytes of records");
        found
    }
}

impl Reading {
    fn collect(&mut self) {
        self.found.agreements.extend(std::iter::from_fn(|| self.tls.next_agreement()));
        while let Some(handshake) = self.tls.next_handshake() {
            assert_eq!(handshake.number as usize, self.found.handshakes.len(), "number of a handshake");
            if self.in_order {
                in_order(&handshake);
            }
            self.found.handshakes.push(handshake);
        }
        while let Some(record) = self.tls.next_record() {
            self.span(record.first, record.last);
            assert!((0.0..=1.0).contains(&record.confidence));
            self.found.records.push(record);
        }
        while let Some(clear) = self.tls.next_clear() {
            self.span(clear.first, clear.last);
            assert!(clear.missing == 0 || clear.content.is_empty());
            let pieces: usize = clear.pieces().map(|(bytes, _)| bytes.len()).sum();
            assert_eq!(pieces, clear.content.len());
            self.found.clear.push(clear);
        }
    }

    fn span(&self, first: Moment, last: Moment) {
        assert!(!self.in_order || (first.at, first.frame()) <= (last.at, last.frame()), "{first:?} to {last:?}");
    }
}

impl Receiver for Reading {
    fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        self.tls.data(from, chunk);
        self.collect();
    }
    fn gap(&mut self, from: Side, gap: Gap) {
        self.tls.gap(from, gap);
        self.collect();
    }
    fn fin(&mut self, from: Side, seen: Moment) {
        self.tls.fin(from, seen);
        self.collect();
    }
}
