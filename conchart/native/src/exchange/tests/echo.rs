//! The smallest protocol there can be, over datagrams: `?…` asks, `!…` answers. One file, and one row of the table.

use crate::exchange::ledger::Ledger;
use crate::exchange::reader::{Reader, Switch, Verdict};
use crate::stream::{Chunk, Gap, Side};

pub fn sniff(datagram: &[u8]) -> Verdict {
    if datagram.starts_with(b"?echo") { Verdict::Yes } else { Verdict::No }
}

#[derive(Default)]
pub struct Echo {
    current: Option<u32>,
}

impl Reader for Echo {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let asks = ledger.asks(from);
        if asks {
            self.current = Some(ledger.open("echo", chunk.offset));
        }
        if let Some(entry) = self.current.and_then(|number| ledger.get(number)) {
            let message = entry.exchange.message(from);
            message.extend(chunk.seen, chunk.len());
            message.done = true;
        }
        ledger.release();
        None
    }

    fn gap(&mut self, _ledger: &mut Ledger, _from: Side, _gap: Gap) {}

    fn finish(&mut self, ledger: &mut Ledger) {
        ledger.release_all();
    }
}
