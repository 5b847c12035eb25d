//! HTTP/2 in records that stay sealed: told from how long they are, in which order they come, and what their senders
//! had received by then.
//!
//! RFC 9113 sections 5 (streams) and 6 (frames). In: records of both sides, and gaps. Out: exchanges in the
//! [`Ledger`], all of them `inferred`. Which of them ask and answer is the business of [`Overlapping`].
//!
//! A record as long as [control frames](control) are asks nothing and answers nothing.

mod control;

use self::control::{Control, Meaning};
use crate::exchange::generic::overlapping::{Overlapping, Sizes};
use crate::exchange::ledger::Ledger;
use crate::stream::{BySide, Gap, Moment, Side};
use crate::tls::AppRecord;

const SIZES: Sizes = Sizes { body: 300, head: 4_096, piece: 1_000, full: 15_000 };

pub(in crate::exchange) struct EncryptedHttp2 {
    control: Control,
    overlapping: Overlapping,
}

impl EncryptedHttp2 {
    /// `overhead`: what each side's records take beyond their content.
    pub fn new(overhead: BySide<u8>) -> Self {
        Self { control: Control::new(overhead), overlapping: Overlapping::new("h2", SIZES) }
    }

    pub fn record(&mut self, ledger: &mut Ledger, record: &AppRecord) {
        let asks = ledger.asks(record.from);
        match self.control.meaning(record, asks, !self.overlapping.is_idle()) {
            Meaning::Credit if !asks => self.overlapping.take_in(ledger, record),
            Meaning::Nothing | Meaning::Credit => {}
            Meaning::End => self.overlapping.end_answer(ledger, record),
            Meaning::Messages(many) => {
                if let Some(ping) = self.control.take_ping(record) {
                    self.reconsider(ledger, &ping, asks);
                }
                if asks { self.overlapping.ask(ledger, record, many) } else { self.overlapping.respond(ledger, record) }
            }
        }
        ledger.release();
    }

    /// The peer has received what looked like a PING and sends something else.
    fn reconsider(&mut self, ledger: &mut Ledger, ping: &AppRecord, by_requester: bool) {
        if !by_requester && self.overlapping.is_idle() && !self.overlapping.is_cut() {
            self.overlapping.ask(ledger, ping, 1);
        } else if by_requester && self.overlapping.owes(ping.acked) {
            self.overlapping.respond(ledger, ping);
        }
    }

    /// Bytes that were sent, but not captured.
    pub fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.overlapping.gap(ledger, from, gap);
    }

    /// Bytes of which no record is known.
    pub fn unread(&mut self, ledger: &mut Ledger, from: Side, seen: Moment, bytes: u64) {
        self.overlapping.unread(ledger, from, seen, bytes);
    }

    /// One side sends no more.
    pub fn fin(&mut self) {
        self.overlapping.fin();
    }

    /// The connection is over.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        self.control.forget();
        self.overlapping.finish(ledger);
    }

    /// First byte that is not yet in the ledger.
    pub fn pending(&self) -> Option<Moment> {
        self.control.pending()
    }
}
