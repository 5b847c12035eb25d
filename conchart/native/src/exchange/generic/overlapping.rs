//! Requests and responses that overlap, in units that stay sealed: records of TLS, packets of QUIC.
//!
//! In: what asks and what answers, with how long it is, and what its sender had received by then. Out: exchanges in the
//! [`Ledger`], all of them `inferred`. Bounded: [`MAX_REQUESTS`] requests wait for their response. Non-goals: which units
//! only control the connection; whoever feeds this leaves them out.
//!
//! Three rules. A unit of the client asks, unless it goes on with an upload. A unit of the server answers one request
//! that it had received, unless it goes on with a response: as that is not over, or as nobody is left to wait. Responses
//! that come mixed come in [`Rounds`]; a silence between two of these is not the server's.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::exchange::Span;
use crate::exchange::ledger::Ledger;
use crate::stream::{Gap, Moment, Side};
use crate::tls::AppRecord;

/// Requests that may wait at once; servers allow about 100 streams.
const MAX_REQUESTS: usize = 256;
/// A shorter one does only if it follows this soon, as part of the time that the upload has taken.
const WITHIN_UPLOAD: i64 = 8;
/// Records within this fraction (1/64) of the wait before the response were sent together.
const TOGETHER: i64 = 64;
/// An unsolicited record that is shorter than this may be GOAWAY with a reason.
const PARTING: u64 = 80;
/// Requests that share a record count as answered once the server has sent this many surplus records for each of them.
/// With 3 such requests waiting, that is after 24 surplus records.
const MANY: usize = 8;
/// A silence that lasts this part of the wait before: the server has nothing more to send.
const SILENCE: i64 = 2;

/// A congestion window begins with so many packets (RFC 9002 section 7.2, RFC 6928): less is no full round.
const WINDOW: usize = 10;
/// Pacing spreads them over a round trip: this part of it lies between two of them at most.
const PACED: i64 = 10;

/// One response ends a stream, which lets the server allow another: MAX_STREAMS (RFC 9000 section 19.11) has 3 bytes.
const CREDIT: u64 = 3;
/// Nobody waits through a longer silence after the server's data: what it had received by then, it has answered.
const REST_NS: i64 = 5_000_000_000;
/// So many requests later, a request that others were answered along with is no longer held open.
const HELD: u32 = 64;

/// One request at a time: boundaries are exact but for what lengths hide.
const ALONE: f64 = 0.8;
/// Several at a time: that a response was waited for is known, which one is not.
const SEVERAL: f64 = 0.4;
/// Bytes are missing.
const MISSING: f64 = 0.3;

/// How messages are cut.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange) struct Sizes {
    /// A unit of at least this that is longer than the request before it goes on with it.
    pub body: u64,
    /// A request of more than this has content in its first unit; if that is not full, it has all of it.
    pub head: u64,
    /// A unit of at least this, as long as the one before it, was cut off a longer message; so was any of `full`.
    pub piece: u64,
    pub full: u64,
}

/// A request whose response has not begun, as far as that can be told.
struct Request {
    number: u32,
    record: AppRecord,
    /// It goes on with a body.
    uploads: bool,
    /// What the server has sent last since it had received it: perhaps the response.
    met: Option<(Moment, Moment)>,
    /// What may hold the response, together with another's.
    shared: Option<(Moment, Moment)>,
}

/// The response that the server is sending, or sent last.
struct Answer {
    number: u32,
    /// Its last record.
    last: AppRecord,
    /// More of it must follow.
    cut: bool,
    /// A record said that it is over.
    over: bool,
    /// How long after the latest request that the server had received it began.
    wait_ns: i64,
    /// If it is long, it began in the round before, which ended then.
    began: Option<Moment>,
}

impl Answer {
    fn is_within(&self, moment: Moment, part: i64) -> bool {
        moment.at - self.last.last.at <= self.wait_ns / part
    }

    /// Is `next` part of the same response? Not after a silence with a request in it: it was `requested` then.
    fn goes_on(&self, next: &AppRecord, requested: Option<Moment>) -> bool {
        let requested_since = requested.is_some_and(|requested| requested.at > self.last.last.at);
        let cut = self.cut && (!requested_since || self.is_within(next.first, SILENCE));
        cut || !self.over && self.is_within(next.first, TOGETHER)
    }

    fn add(&mut self, record: &AppRecord, sizes: &Sizes) {
        self.cut = record.bytes >= sizes.full || record.bytes >= sizes.piece && record.bytes == self.last.bytes;
        self.over = false;
        self.last = *record;
    }
}

/// A response that comes in pieces: the server goes on without being asked.
struct Pieces {
    number: u32,
    last: Moment,
    /// The longest silence before a piece.
    pause_ns: i64,
}

/// What a server sends that has more to send than its congestion window allows: as much as that is, and one round trip
/// later the next.
#[derive(Default)]
struct Rounds {
    /// A wait that was as short as none before: a round trip takes no longer.
    shortest: Option<i64>,
    /// First and last unit of the latest round, and how many they are.
    first: i64,
    last: i64,
    units: usize,
}

impl Rounds {
    fn waited(&mut self, wait_ns: i64) {
        if wait_ns > 0 {
            self.shortest = Some(self.shortest.map_or(wait_ns, |shortest| shortest.min(wait_ns)));
        }
    }

    /// From one end to the other and back, as the transport tells, or else as answers do.
    fn round_trip(&self, ledger: &Ledger) -> i64 {
        let reported = ledger.rtt.server.map(|server| server.saturating_add(ledger.rtt.client.unwrap_or_default()));
        reported.filter(|&reported| reported > 0).or(self.shortest).unwrap_or_default()
    }

    /// Pacing spreads a window over a round trip (RFC 9002 section 7.7).
    fn is_paced(&self, at: i64, round_trip: i64) -> bool {
        at.saturating_sub(self.last) <= round_trip / PACED
    }

    /// Is a unit at this time what the window did not allow before?
    fn go_on(&self, at: i64, round_trip: i64) -> bool {
        let since = at.saturating_sub(self.first);
        let is_next = since >= round_trip / 4 * 3 && at.saturating_sub(self.last) <= round_trip / 4 * 5;
        self.units >= WINDOW && (self.is_paced(at, round_trip) || is_next)
    }

    fn add(&mut self, record: &AppRecord, round_trip: i64) {
        if !self.is_paced(record.first.at, round_trip) {
            (self.first, self.units) = (record.first.at, 0);
        }
        self.last = record.last.at;
        self.units = self.units.saturating_add(1);
    }
}

pub(in crate::exchange) struct Overlapping {
    protocol: &'static str,
    sizes: Sizes,
    /// Oldest first.
    requests: VecDeque<Request>,
    answer: Option<Answer>,
    pieces: Option<Pieces>,
    rounds: Rounds,
    /// A request that counts as answered along with others, unless its response comes later.
    held: Option<Request>,
    /// Records that went on with a response, or held one of their own, since somebody waits.
    spare: usize,
    closed: bool,
}

impl Overlapping {
    pub fn new(protocol: &'static str, sizes: Sizes) -> Self {
        Self {
            protocol,
            sizes,
            requests: VecDeque::new(),
            answer: None,
            pieces: None,
            rounds: Rounds::default(),
            held: None,
            spare: 0,
            closed: false,
        }
    }

    /// Does nobody wait?
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Has the latest request, if it waits, nothing to be continued?
    pub fn is_whole(&self) -> bool {
        self.requests.back().is_none_or(|latest| latest.met.is_some())
    }

    /// What looked like the latest request was none.
    pub fn take_back(&mut self, ledger: &mut Ledger) {
        if self.requests.back().is_some_and(|latest| latest.met.is_none())
            && let Some(latest) = self.requests.pop_back()
        {
            ledger.withdraw(latest.number);
        }
    }

    /// Must more follow of the response that is being sent?
    pub fn is_cut(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.cut)
    }

    /// Is this more of the response that is being sent? `perhaps`: when something was said that may have asked.
    pub fn goes_on(&self, record: &AppRecord, perhaps: Option<Moment>) -> bool {
        let requested = self.requests.back().map(|request| request.record.first).or(perhaps);
        self.answer.as_ref().is_some_and(|answer| answer.goes_on(record, requested))
    }

    /// Has the server said nothing since it had received some request?
    pub fn owes(&self, acked: u64) -> bool {
        self.requests.iter().any(|request| request.met.is_none() && request.record.end <= acked)
    }

    /// `many` requests begin, or one goes on.
    pub fn ask(&mut self, ledger: &mut Ledger, record: &AppRecord, many: u64) {
        if let Some(upload) = self.upload(record) {
            return upload.go_on(ledger, record);
        }
        self.rest(ledger, record.first);
        if self.answer.as_ref().is_some_and(|answer| !answer.is_within(record.first, SILENCE)) {
            self.settle(ledger);
        }
        for nth in 0..many {
            self.open(ledger, &AppRecord { bytes: if nth == 0 { record.bytes } else { 0 }, ..*record });
        }
    }

    /// The request that goes on with this record.
    fn upload(&mut self, record: &AppRecord) -> Option<&mut Request> {
        let latest = self.requests.back()?;
        let body = self.sizes.body;
        let is_open = latest.met.is_none() && !latest.is_whole(&self.sizes);
        let begins = is_open && record.bytes >= body.max(latest.record.bytes);
        let index =
            if begins { self.requests.len() - 1 } else { self.requests.iter().rposition(|request| request.uploads)? };
        let upload = self.requests.get_mut(index)?;
        let (lasts_ns, pause_ns) =
            (upload.record.last.at - upload.record.first.at, record.first.at - upload.record.last.at);
        upload.uploads = true;
        Some(upload).filter(|_| record.bytes >= body || pause_ns <= lasts_ns / WITHIN_UPLOAD)
    }

    fn open(&mut self, ledger: &mut Ledger, record: &AppRecord) {
        let number = ledger.open(self.protocol, record.offset);
        if self.held.as_ref().is_some_and(|held| number.saturating_sub(held.number) >= HELD) {
            self.let_go(ledger);
        }
        if self.requests.len() >= MAX_REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back(Request { number, record: *record, uploads: false, met: None, shared: None });
        if let Some(entry) = ledger.get(number) {
            extend(&mut entry.exchange.request, record);
            entry.exchange.request.done = true;
            entry.exchange.doubt(record.confidence);
        }
        let confidence = if self.requests.len() > 1 { SEVERAL } else { ALONE };
        // Those before were among several when the last but one came.
        for request in self.requests.iter().rev().take(2) {
            if let Some(entry) = ledger.get(request.number) {
                entry.exchange.doubt(confidence);
            }
        }
    }

    /// The server takes in content: what looked like the latest request goes on with the one before it.
    pub fn take_in(&mut self, ledger: &mut Ledger, credit: &AppRecord) {
        if self.requests.back().is_some_and(|latest| latest.record.end > credit.acked) {
            return;
        }
        let mut unmet = self.requests.iter().rev().take_while(|request| request.met.is_none());
        let uploads = unmet.next().is_some_and(|latest| latest.uploads);
        if !uploads
            && unmet.next().is_some_and(|head| !head.is_whole(&self.sizes))
            && let Some(body) = self.requests.pop_back()
            && ledger.withdraw(body.number).is_some()
            && let Some(head) = self.requests.back_mut()
        {
            head.go_on(ledger, &body.record);
        }
        if let Some(latest) = self.requests.back_mut() {
            latest.uploads = latest.met.is_none() && !latest.is_whole(&self.sizes);
        }
    }

    /// The server was silent: what it could have answered together with another, it has; of one, that may prove wrong.
    fn settle(&mut self, ledger: &mut Ledger) {
        for request in std::mem::take(&mut self.requests) {
            if request.shared.is_none() || self.spare == 0 {
                self.requests.push_back(request);
                continue;
            }
            self.spare -= 1;
            if self.held.is_none() {
                self.held = Some(request);
            } else {
                answered_along(ledger, &request);
            }
        }
    }

    /// Nothing was sent since the server's last data, up to `next`.
    fn rest(&mut self, ledger: &mut Ledger, next: Moment) {
        let met = self.requests.back().and_then(|latest| latest.met);
        if met.is_some_and(|(_, last)| next.at.saturating_sub(last.at) > REST_NS) {
            self.accept_last(ledger);
        }
    }

    /// Whatever the server has sent last was the response to all that it had received.
    fn accept_last(&mut self, ledger: &mut Ledger) {
        for request in std::mem::take(&mut self.requests) {
            if request.met.is_some() {
                answered_along(ledger, &request);
            } else {
                self.requests.push_back(request);
            }
        }
    }

    /// Its response did not come later.
    fn let_go(&mut self, ledger: &mut Ledger) {
        if let Some(request) = self.held.take() {
            answered_along(ledger, &request);
        }
    }

    /// A response begins or goes on.
    pub fn respond(&mut self, ledger: &mut Ledger, record: &AppRecord) {
        self.rest(ledger, record.first);
        let received = |request: &Request| request.record.end <= record.acked;
        let round_trip = self.rounds.round_trip(ledger);
        let is_next = self.is_next_round(record, round_trip);
        let goes_on = self.goes_on(record, None) || is_next && record.bytes >= self.sizes.piece;
        if !goes_on && self.is_credit(record, round_trip) {
            return;
        }
        self.rounds.add(record, round_trip);
        let shared = self.requests.iter().filter(|request| request.shared.is_some()).count();
        if !goes_on && self.spare >= MANY * shared {
            self.settle(ledger);
        }
        // An upload may not be over yet.
        let whole = self.requests.iter().position(|request| received(request) && !request.uploads);
        let next = if goes_on { None } else { whole.or_else(|| self.requests.iter().position(received)) };
        let latest = self.requests.iter().rfind(|request| received(request)).map(|request| request.record.last);
        let next = next.and_then(|index| self.requests.remove(index));
        let is_held = next.is_none() && !goes_on && self.is_unsolicited(record);
        let next = if is_held { self.held.take() } else { next };
        match next {
            Some(request) => {
                let wait_ns = record.first.at - latest.unwrap_or(request.record.last).at;
                self.rounds.waited(wait_ns);
                self.begin_answer(ledger, &request, record, wait_ns);
                if let Some(answer) = self.answer.as_mut().filter(|_| is_next) {
                    answer.began = request.shared.map(|(_, last)| last);
                }
            }
            None => self.go_on(ledger, record, goes_on),
        }
        self.requests.iter_mut().filter(|request| received(request)).for_each(|request| {
            request.met = Some((record.first, record.last));
        });
        if self.requests.is_empty() {
            self.spare = 0;
        }
    }

    /// Is this the next round of responses that nobody has asked for since the round before?
    fn is_next_round(&self, record: &AppRecord, round_trip: i64) -> bool {
        let Rounds { first, .. } = self.rounds;
        let is_new = |request: &Request| request.record.end <= record.acked && request.record.last.at > first;
        self.answer.is_some()
            && self.rounds.go_on(record.first.at, round_trip)
            && self.requests.iter().any(|request| request.shared.is_some())
            && !self.requests.iter().any(is_new)
    }

    /// Does it come by itself, and not as the next piece of a response?
    fn is_unsolicited(&self, record: &AppRecord) -> bool {
        record.bytes >= PARTING && self.pieces.is_none()
    }

    /// Short, soon after responses in which all can have been answered: the server allows more requests.
    fn is_credit(&self, record: &AppRecord, round_trip: i64) -> bool {
        let is_answered = |request: &Request| request.shared.is_some() || request.record.end > record.acked;
        record.bytes <= CREDIT * self.requests.len() as u64
            && (1..=self.spare).contains(&self.requests.len())
            && self.requests.iter().all(is_answered)
            && record.first.at.saturating_sub(self.rounds.last) <= round_trip.saturating_mul(2)
    }

    fn begin_answer(&mut self, ledger: &mut Ledger, request: &Request, record: &AppRecord, wait_ns: i64) {
        if let Some(answer) = self.answer.take()
            && self.pieces.as_ref().is_none_or(|pieces| pieces.number != answer.number)
        {
            finish(ledger, answer.number);
        }
        if let Some(entry) = ledger.get(request.number) {
            extend(&mut entry.exchange.response, record);
            entry.exchange.doubt(record.confidence);
        }
        let cut = record.bytes >= self.sizes.full;
        self.answer = Some(Answer { number: request.number, last: *record, cut, over: false, wait_ns, began: None });
    }

    /// The server goes on with a response; `together`: it had not stopped.
    fn go_on(&mut self, ledger: &mut Ledger, record: &AppRecord, together: bool) {
        let is_owed = self.requests.iter().any(|request| request.record.end <= record.acked);
        let Some(answer) = &mut self.answer else {
            return;
        };
        if !together && record.bytes < PARTING && !is_owed {
            // If it was a piece of a response, others will follow.
            return;
        }
        let (mut number, pause_ns, cut) = (answer.number, record.first.at - answer.last.last.at, answer.cut);
        let began = answer.began.take_if(|_| together && record.bytes >= self.sizes.piece);
        answer.add(record, &self.sizes);
        if !together {
            number = self.next_piece(ledger, number, record, pause_ns);
        } else if !cut || self.rounds.units >= WINDOW {
            self.spare += 1;
            // What was asked long before is not answered along with another.
            let since = record.first.at.saturating_sub(answer.wait_ns.saturating_mul(2));
            let alike = |request: &&mut Request| request.record.end <= record.acked && request.record.last.at >= since;
            for request in self.requests.iter_mut().filter(alike) {
                request.shared = Some((record.first, record.last));
            }
        }
        if let Some(entry) = ledger.get(number) {
            let response = &mut entry.exchange.response;
            response.first = Moment::earliest([response.first, began]);
            extend(response, record);
        }
    }

    /// Nobody asked for this: it goes on with the response that came in pieces before, or else with the latest.
    fn next_piece(&mut self, ledger: &mut Ledger, latest: u32, record: &AppRecord, pause_ns: i64) -> u32 {
        match &mut self.pieces {
            Some(pieces) if (record.first.at - pieces.last.at) / 2 <= pieces.pause_ns => {
                pieces.pause_ns = pieces.pause_ns.max(record.first.at - pieces.last.at);
                pieces.last = record.last;
                pieces.number
            }
            pieces => {
                let before = pieces.replace(Pieces { number: latest, last: record.last, pause_ns });
                if let Some(before) = before.filter(|before| before.number != latest) {
                    finish(ledger, before.number);
                }
                latest
            }
        }
    }

    /// A record without content says that a response is over.
    pub fn end_answer(&mut self, ledger: &mut Ledger, record: &AppRecord) {
        if let Some(answer) = &mut self.answer
            && let Some(entry) = ledger.get(answer.number)
        {
            (answer.last, answer.over, answer.cut) = (*record, true, false);
            extend(&mut entry.exchange.response, record);
        }
    }

    /// Bytes that were sent, but not captured.
    pub fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        let (first, last) = gap.acked.unwrap_or((gap.seen, gap.seen));
        let missing = AppRecord {
            from,
            first,
            last,
            bytes: gap.len,
            offset: gap.offset,
            end: gap.offset.saturating_add(gap.len),
            acked: u64::MAX,
            confidence: MISSING,
            may_be_interim: false,
            may_be_finished: false,
        };
        if ledger.asks(from) {
            self.ask(ledger, &missing, 1)
        } else {
            self.respond(ledger, &missing)
        }
        ledger.doubt(MISSING);
    }

    /// Bytes of which no record is known: more of the response that is being sent, or of the latest request, unless the
    /// server has said something since.
    pub fn unread(&mut self, ledger: &mut Ledger, from: Side, seen: Moment, bytes: u64) {
        let asks = ledger.asks(from);
        let number = if asks {
            self.requests.back_mut().filter(|request| request.uploads || request.met.is_none()).map(|request| {
                request.record.last = seen;
                request.uploads = true;
                request.number
            })
        } else {
            self.answer.as_mut().map(|answer| {
                answer.last.last = seen;
                answer.number
            })
        };
        if let Some(entry) = number.and_then(|number| ledger.get(number)) {
            entry.exchange.doubt(MISSING);
            entry.exchange.message(from).extend(seen, bytes);
        }
    }

    /// One side sends no more.
    pub fn fin(&mut self) {
        self.closed = true;
    }

    /// The connection is over. A request since which the server has sent nothing was waited for until then; a response
    /// that was cut off by the end of the capture is not done.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        self.settle(ledger);
        self.let_go(ledger);
        self.accept_last(ledger);
        let answering = self.answer.as_ref().map(|answer| answer.number);
        let numbers = [answering, self.pieces.as_ref().map(|pieces| pieces.number)];
        if self.closed {
            numbers.into_iter().flatten().for_each(|number| finish(ledger, number));
        }
        self.requests.clear();
        (self.answer, self.pieces) = (None, None);
        ledger.release_all();
    }
}

impl Request {
    /// Nothing follows its first record.
    fn is_whole(&self, sizes: &Sizes) -> bool {
        (sizes.head..sizes.full).contains(&self.record.bytes)
    }

    /// Its request goes on.
    fn go_on(&mut self, ledger: &mut Ledger, record: &AppRecord) {
        (self.record.end, self.record.last) = (record.end, record.last);
        if let Some(entry) = ledger.get(self.number) {
            extend(&mut entry.exchange.request, record);
        }
    }
}

fn extend(message: &mut Span, record: &AppRecord) {
    message.extend(record.first, 0);
    message.extend(record.last, record.bytes);
}

fn answered_along(ledger: &mut Ledger, request: &Request) {
    if let Some(((first, last), entry)) = request.shared.or(request.met).zip(ledger.get(request.number)) {
        entry.exchange.doubt(SEVERAL);
        let response = &mut entry.exchange.response;
        response.extend(first, 0);
        response.extend(last, 0);
        response.done = true;
    }
}

fn finish(ledger: &mut Ledger, number: u32) {
    if let Some(entry) = ledger.get(number) {
        entry.exchange.response.done = true;
    }
}
