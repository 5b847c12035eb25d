//! Detects the protocol of a connection, and passes its bytes to the reader of that protocol.
//!
//! In: chunks, gaps and FINs of both sides: TCP's, UDP's, or what TLS carries. Out: whatever the reader writes into
//! the [`Ledger`]. Nothing here knows a protocol: the table of [`sniffers`] does. Bounded: [`SNIFFED`] bytes of each
//! side are kept until a row fits, and what is spoken changes [`MAX_SWITCHES`] times.

use super::backlog::{Backlog, Event};
use super::ledger::Ledger;
use super::reader::{Carrier, Onward, Opening, Reader, Row, SNIFFED, Sender, Start, Switch};
use super::sniffers::{self, Judgement};
use crate::keys::Keys;
use crate::stream::{Moment, Side};

/// How often something else may be spoken: a PROXY header, a chain of proxies, TLS, an Upgrade.
const MAX_SWITCHES: u8 = 8;

/// Two streams, or two rows of datagrams, and who reads them.
pub(super) struct Layer {
    state: State,
    carrier: Carrier,
    start: Start,
    keys: Option<Keys>,
    /// How many layers of TLS this is inside of.
    depth: u8,
    switches: u8,
    app: Option<&'static str>,
    /// It keeps its name, whatever follows.
    keeps_name: bool,
}

enum State {
    Detecting(Backlog),
    Reading(Box<dyn Reader>),
}

impl Layer {
    pub fn new(carrier: Carrier, midstream: bool, keys: Option<Keys>) -> Self {
        let start = if midstream { Start::Midstream } else { Start::Beginning };
        Self { state: detecting(), carrier, start, keys, depth: 0, switches: 0, app: None, keeps_name: false }
    }

    /// The streams inside TLS. What they carry may have been agreed on in the handshake.
    pub fn inside(ledger: &mut Ledger, keys: Option<Keys>, depth: u8, agreed: Option<&'static Row>) -> Self {
        let mut layer = Self { depth, ..Self::new(Carrier::Stream, false, keys) };
        if let Some(row) = agreed {
            layer.begin(ledger, row, ledger.requester);
        }
        layer
    }

    pub fn event(&mut self, ledger: &mut Ledger, event: Event<'_>) {
        match (&mut self.state, event) {
            (_, Event::Data(_, chunk)) if chunk.is_empty() => {}
            (State::Detecting(_), _) => self.detect(ledger, event),
            (State::Reading(reader), Event::Data(from, chunk)) => {
                if let Some(switch) = reader.data(ledger, from, chunk) {
                    self.switch(ledger, from, switch);
                }
            }
            (State::Reading(reader), Event::Gap(from, gap)) => reader.gap(ledger, from, gap),
            (State::Reading(reader), Event::Fin(from, seen)) => reader.fin(ledger, from, seen),
        }
    }

    /// The connection is over.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        while let State::Detecting(backlog) = &self.state
            && backlog.earliest().is_some()
        {
            let (row, from) = self.judge_backlog();
            self.begin(ledger, row, from);
        }
        match &mut self.state {
            State::Detecting(_) => ledger.release_all(),
            State::Reading(reader) => reader.finish(ledger),
        }
    }

    /// First byte that is not yet in the ledger.
    pub fn pending(&self) -> Option<Moment> {
        match &self.state {
            State::Detecting(backlog) => backlog.earliest(),
            State::Reading(reader) => reader.pending(),
        }
    }

    /// What is spoken; `None` when no byte was sent.
    pub fn app(&self) -> Option<&'static str> {
        match &self.state {
            State::Reading(reader) if !self.keeps_name => reader.app().or(self.app).or(Some("unknown")),
            State::Detecting(backlog) if self.app.is_none() => backlog.earliest().map(|_| "unknown"),
            _ => self.app.or(Some("unknown")),
        }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        match &self.state {
            State::Detecting(backlog) => backlog.len(),
            State::Reading(reader) => reader.held(),
        }
    }

    /// Looks at the first bytes of each side until one of them tells what this is.
    fn detect(&mut self, ledger: &mut Ledger, event: Event<'_>) {
        let State::Detecting(backlog) = &mut self.state else {
            return;
        };
        let (row, from) = match event {
            Event::Data(from, chunk) => {
                let judgement = match self.carrier {
                    Carrier::Datagrams => sniffers::judge(self.carrier, chunk.bytes, self.start, true),
                    Carrier::Stream => {
                        let mut prefix = backlog.prefix(from);
                        prefix.extend(chunk.bytes);
                        let all = prefix.is_full() || chunk.cut > 0;
                        sniffers::judge(self.carrier, prefix.bytes(), self.start, all)
                    }
                };
                match judgement {
                    Judgement::Row(row) => (row, from),
                    Judgement::None => (sniffers::unknown(self.carrier), from),
                    Judgement::More => return backlog.push(event),
                }
            }
            Event::Gap(..) if backlog.earliest().is_some() => self.judge_backlog(),
            Event::Gap(..) => {
                self.start = Start::Gap;
                return backlog.push(event);
            }
            Event::Fin(..) => return backlog.push(event),
        };
        self.begin(ledger, row, from);
        self.event(ledger, event);
    }

    /// What it may be of which no more can be looked at.
    fn judge_backlog(&self) -> (&'static Row, Side) {
        let State::Detecting(backlog) = &self.state else {
            return (sniffers::unknown(self.carrier), Side::Client);
        };
        let judged = [Side::Client, Side::Server].into_iter().find_map(|side| {
            match sniffers::judge(self.carrier, backlog.prefix(side).bytes(), self.start, true) {
                Judgement::Row(row) => Some((row, side)),
                Judgement::More | Judgement::None => None,
            }
        });
        judged.unwrap_or((sniffers::unknown(self.carrier), Side::Client))
    }

    /// It is known what is spoken, and which side said so: a reader is made, and told what was kept for it.
    fn begin(&mut self, ledger: &mut Ledger, row: &'static Row, from: Side) {
        let may_switch = self.switches < MAX_SWITCHES;
        let row = if may_switch { row } else { sniffers::unknown(self.carrier) };
        match row.sender {
            Sender::Requester => ledger.requester = from,
            Sender::Responder => ledger.requester = from.peer(),
            Sender::Either => {}
        }
        let reader = (row.reader)(&Opening {
            protocol: row.protocol.unwrap_or("unknown"),
            requester: ledger.requester,
            start: self.start,
            may_switch,
            keys: self.keys.as_ref(),
            depth: self.depth,
            statements: ledger.statements,
        });
        if !self.keeps_name {
            self.app = row.protocol;
        }
        if let State::Detecting(backlog) = std::mem::replace(&mut self.state, State::Reading(reader)) {
            for event in backlog.events() {
                self.event(ledger, event);
            }
        }
    }

    /// A reader has come to its end: what follows is something else.
    fn switch(&mut self, ledger: &mut Ledger, from: Side, switch: Switch<'_>) {
        self.switches = self.switches.saturating_add(1);
        if let Some(name) = switch.name.filter(|_| !self.keeps_name) {
            (self.app, self.keeps_name) = (Some(name), true);
        }
        self.state = detecting();
        match switch.onward {
            Onward::Anything => {}
            Onward::Row(row) => self.begin(ledger, row, from),
            Onward::Reader(reader) => self.state = State::Reading(reader),
        }
        for event in switch.early.iter().flat_map(Backlog::events) {
            self.event(ledger, event);
        }
        self.event(ledger, Event::Data(from, switch.rest));
    }
}

fn detecting() -> State {
    State::Detecting(Backlog::new(2 * SNIFFED))
}
