//! What TLS 1.3 sends after the handshake that looks like application data and is not.
//!
//! Wire format: RFC 8446 sections 4.6.1 (NewSessionTicket) and 6 (alerts), all inside type-23 records.
//! In: application records after the client's Finished, in causal order. Out: the same without tickets
//! and without closing alerts, each with the confidence that it is what it seems. At most [`MAX_HELD`]
//! records wait for a verdict.

use std::collections::VecDeque;

use crate::stream::{BySide, Side};

use super::flight::Sizes;
use super::{AppRecord, MAX_HELD, begins_settings, is_preface};

/// Bodies of the tickets that servers send: from a bare identifier to one that embeds a client certificate.
const TICKET_SIZES: std::ops::RangeInclusive<u64> = 60..=2200;
/// No server sends more tickets than this at once.
const MAX_TICKETS: usize = 4;
/// Tickets leave the server together; a record of their size that comes this much later is a response.
const BURST_NS: i64 = 3_000_000;

/// What the handshake said about the server's first records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub client: Side,
    pub resumed: bool,
    /// The client offered ALPN, so it speaks first (every registered protocol that browsers, proxies and
    /// command-line clients negotiate is of that kind).
    pub client_first: bool,
    /// Size of a ticket that came before the client's Finished.
    pub ticket: Option<u64>,
    /// The client offered HTTP/2: what each side's records then take beyond their content.
    pub http2: Option<BySide<u8>>,
    /// The server took early data: what it sent before it had seen the stream up to here answers that.
    pub early_until: Option<u64>,
}

/// Records that wait until it is known what they are.
#[derive(Debug)]
pub(super) struct Undecided {
    records: Vec<AppRecord>,
    sizes: Sizes,
    /// Present while the server's first turn may contain tickets.
    watch: Option<Watch>,
    /// The server began as one does that speaks HTTP/2.
    http2: Option<BySide<u8>>,
}

impl Undecided {
    pub fn new(sizes: Sizes, watch: Option<Watch>) -> Self {
        Self { records: Vec::new(), sizes, watch, http2: None }
    }

    /// True when nothing waits: the value can be dropped.
    pub fn is_idle(&self) -> bool {
        self.watch.is_none() && self.records.is_empty()
    }

    pub fn push(&mut self, seen: AppRecord, out: &mut VecDeque<AppRecord>) {
        self.records.push(seen);
        if let Some(watch) = self.watch.filter(|&watch| begins_http2(&seen, watch)) {
            // Whoever reads HTTP/2 knows where it begins, and that tickets come before.
            (self.watch, self.http2) = (None, watch.http2);
        }
        if self.watch.is_some_and(|watch| answers_early_data(&seen, watch)) {
            out.extend(self.records.drain(..));
            return;
        }
        let full = self.records.len() >= MAX_HELD;
        if let Some(watch) = self.watch
            && (full || Turn::read(&self.records, watch).is_clear(&self.records, watch))
        {
            self.judge(watch);
        }
        self.release(out);
        if full {
            // An alert would have been followed by a FIN by now.
            out.extend(self.records.drain(..).map(|seen| AppRecord { confidence: 0.5, ..seen }));
        }
    }

    /// Where HTTP/2 is spoken, as the first records tell: what each side's records take beyond their content.
    pub fn http2(&self) -> Option<BySide<u8>> {
        self.http2
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// `from` sends no more: its last record was an alert if it has the size of one.
    pub fn fin(&mut self, from: Side, out: &mut VecDeque<AppRecord>) {
        if let Some(watch) = self.watch.filter(|watch| watch.client != from) {
            self.judge(watch);
        }
        if let Some(last) = self.records.iter().rposition(|seen| seen.from == from)
            && self.records.get(last).is_some_and(|seen| self.sizes.is_alert(seen.bytes))
        {
            self.records.remove(last);
        }
        self.release(out);
    }

    /// Records are missing: what they would have told about those that wait will not come.
    pub fn interrupted(&mut self, out: &mut VecDeque<AppRecord>) {
        if let Some(watch) = self.watch {
            self.judge(watch);
        }
        out.extend(self.records.drain(..));
    }

    pub fn finish(&mut self, out: &mut VecDeque<AppRecord>) {
        self.fin(Side::Client, out);
        self.fin(Side::Server, out);
    }

    fn judge(&mut self, watch: Watch) {
        self.watch = None;
        drop_tickets(&mut self.records, watch);
    }

    /// Releases everything before the first record that may still turn out to be an alert.
    fn release(&mut self, out: &mut VecDeque<AppRecord>) {
        if self.watch.is_some() {
            return;
        }
        let mut last = BySide { client: true, server: true };
        let mut retained_from = self.records.len();
        for (index, seen) in self.records.iter().enumerate().rev() {
            if std::mem::take(&mut last[seen.from]) && self.sizes.is_alert(seen.bytes) {
                retained_from = index;
            }
        }
        out.extend(self.records.drain(..retained_from));
    }
}

/// The server's first turn, as far as the records that wait show it.
struct Turn {
    /// The client's first record, and its index.
    request: Option<AppRecord>,
    requested: usize,
    /// Size of a ticket that the server sent before it saw the request.
    earlier_ticket: Option<u64>,
    /// The server's records after it whose sender had seen it: how many, and the index of the first.
    answers: usize,
    first_answer: Option<usize>,
    /// How many of these, from the first on, could be tickets: all of one size.
    run: usize,
    run_size: Option<u64>,
    /// How many of these, from the first on, are of one size, whenever they came.
    alike: usize,
    /// Size of the answer after them.
    following_size: Option<u64>,
}

impl Turn {
    fn read(records: &[AppRecord], watch: Watch) -> Self {
        let first = records.iter().position(|seen| seen.from == watch.client);
        let request = first.and_then(|index| records.get(index)).copied();
        let requested = first.unwrap_or(records.len());
        let after = records.iter().enumerate().skip(requested);
        let answers = || after.clone().filter(|(_, seen)| is_answer(seen, watch, request));
        let run = leading_run(answers().map(|(_, seen)| seen));
        let size = |(_, seen): (usize, &AppRecord)| seen.bytes;
        let (run_size, following_size) = (answers().next().map(size), answers().nth(run).map(size));
        let alike = answers().map(size).take_while(|&bytes| Some(bytes) == run_size).count();
        let mut unasked = records.iter().filter(|seen| is_unasked(seen, watch, request));
        let earlier = unasked.find(|seen| is_ticket_sized(seen)).map(|seen| seen.bytes);
        Self {
            request,
            earlier_ticket: earlier.or(watch.ticket),
            requested,
            answers: answers().count(),
            first_answer: answers().next().map(|(index, _)| index),
            run,
            run_size,
            alike,
            following_size,
        }
    }

    /// Can tickets be told from the response already?
    fn is_clear(&self, records: &[AppRecord], watch: Watch) -> bool {
        let Some(first) = self.first_answer else {
            return false;
        };
        if self.run == 0 || self.tickets_came_earlier() {
            return true;
        }
        let may_be_preface = self.request.is_some_and(|request| may_be_preface(&request, watch));
        if may_be_preface && self.answers == self.alike && self.alike <= MAX_TICKETS {
            // The SETTINGS may still come. TCP may have held back a ticket until the one before it was acknowledged.
            return false;
        }
        if self.run > MAX_TICKETS || self.answers > self.run {
            return true;
        }
        // The client goes on. After one record that is its next request; after several of one size it may
        // be the rest of an upload, so the server's next record has to decide.
        let goes_on = records.iter().skip(first).any(|seen| seen.from == watch.client);
        self.run == 1 && goes_on
    }

    /// The server sent its tickets before it saw the request: it has more only if they are of that size.
    fn tickets_came_earlier(&self) -> bool {
        self.earlier_ticket.is_some() && self.earlier_ticket != self.run_size
    }

    /// How many of the answers are tickets, and how sure the others are to be the response.
    fn verdict(&self, watch: Watch) -> (usize, f64) {
        let followed = self.answers > self.run;
        match self.run {
            0 => (0, 1.0),
            _ if self.tickets_came_earlier() => (0, 0.95),
            run if run > MAX_TICKETS => (0, 0.9),
            _ if !followed => (0, 0.5),
            1 if !watch.resumed && self.earlier_ticket.is_none() => (0, 0.7),
            1 => (1, 0.7),
            // What follows the burst looks like the tickets in it.
            run if self.following_size == self.run_size => (run, 0.8),
            run => (run, 0.9),
        }
    }
}

/// How much is inside, where it may be HTTP/2.
fn http2_content(seen: &AppRecord, watch: Watch) -> Option<u64> {
    seen.bytes.checked_sub(u64::from(watch.http2?[seen.from]))
}

/// Is this the SETTINGS with which a server begins HTTP/2? A response of HTTP/1 is longer.
fn begins_http2(seen: &AppRecord, watch: Watch) -> bool {
    seen.from != watch.client && http2_content(seen, watch).is_some_and(begins_settings)
}

/// May this be a client's preface? If it is, the server's SETTINGS will come.
fn may_be_preface(seen: &AppRecord, watch: Watch) -> bool {
    http2_content(seen, watch).is_some_and(is_preface)
}

/// Did the server send this after it saw the client's first application data?
fn is_answer(seen: &AppRecord, watch: Watch, request: Option<AppRecord>) -> bool {
    seen.from != watch.client && request.is_some_and(|request| seen.acked > request.offset)
}

/// Did the server send this before it saw any of the client's application data?
fn is_unasked(seen: &AppRecord, watch: Watch, request: Option<AppRecord>) -> bool {
    seen.from != watch.client && request.is_none_or(|request| seen.acked <= request.offset)
}

fn is_ticket_sized(seen: &AppRecord) -> bool {
    TICKET_SIZES.contains(&seen.bytes)
}

/// Did the server send this before it had seen the client's Finished, in answer to early data?
fn answers_early_data(seen: &AppRecord, watch: Watch) -> bool {
    seen.from != watch.client && watch.early_until.is_some_and(|until| seen.acked < until)
}

/// How many records, from the first on, could be tickets: all of one size, in one burst.
fn leading_run<'a>(mut records: impl Iterator<Item = &'a AppRecord>) -> usize {
    let Some(first) = records.next().filter(|first| is_ticket_sized(first)) else {
        return 0;
    };
    let mut last = first.last.at;
    let is_alike = |seen: &&AppRecord| {
        let pause = seen.first.at - std::mem::replace(&mut last, seen.last.at);
        seen.bytes == first.bytes && pause <= BURST_NS
    };
    1 + records.take_while(is_alike).count()
}

/// Removes tickets and says how sure the rest is to be application data.
fn drop_tickets(records: &mut Vec<AppRecord>, watch: Watch) {
    let turn = Turn::read(records, watch);
    let is_unasked = |seen: &AppRecord| is_unasked(seen, watch, turn.request);
    let unasked: Vec<AppRecord> = records.iter().filter(|seen| is_unasked(seen)).copied().collect();
    let (tickets, confidence) = turn.verdict(watch);
    let mut greeting = greeting(&unasked, watch, turn.request);

    let (mut indices, mut answers) = (0.., 0..);
    records.retain_mut(|seen| {
        let index = indices.next();
        if is_unasked(seen) {
            seen.confidence = 0.5;
            return greeting.next().unwrap_or(false);
        }
        if seen.from != watch.client {
            seen.confidence = confidence;
        }
        let is_answer = index.is_some_and(|index| index >= turn.requested) && is_answer(seen, watch, turn.request);
        !is_answer || answers.next().is_none_or(|nth| nth >= tickets)
    });
}

/// For each record that the server sent unasked: is it data? If not, it is a ticket or a greeting of HTTP/2.
///
/// A server that speaks first (mail, databases) greets after its tickets and before any request.
fn greeting(unasked: &[AppRecord], watch: Watch, request: Option<AppRecord>) -> impl Iterator<Item = bool> {
    let order = |seen: AppRecord| (seen.first.at, seen.first.frame());
    let waited = |seen: &AppRecord| request.is_none_or(|request| order(*seen) < order(request));
    let greets = !watch.client_first && unasked.iter().all(waited);
    // A busy server may pause between its tickets: the size of the first tells the others, whenever they come.
    let alike = unasked
        .iter()
        .take_while(|seen| is_ticket_sized(seen) && Some(seen.bytes) == unasked.first().map(|first| first.bytes));
    let run = alike.count();
    let tickets = if run > MAX_TICKETS { 0 } else { run };
    (0..).map(move |nth| greets && nth >= tickets)
}
