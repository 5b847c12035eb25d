//! HTTP/1 where it cannot be followed: bytes are missing, or make no sense.
//!
//! In: gaps, cut heads, noise. Out: the same exchanges, marked `inferred`, and the stretch of time
//! in which nobody can say what went on. See [`super`] for what *out of step* means.

use super::head::{self, Request};
use super::{Direction, EmptyLine, Http1, State};
use crate::exchange::Span;
use crate::exchange::backlog::Event;
use crate::exchange::ledger::{GUESSED, Ledger};
use crate::exchange::reader::Verdict;
use crate::stream::{Chunk, Gap, Side};

impl Http1 {
    /// The end of the current message is unknown; `head` is what there is of its head.
    pub(super) fn go_out_of_step(&mut self, ledger: &mut Ledger, from: Side, head: &[u8]) {
        let asks = ledger.asks(from);
        if !head.is_empty() {
            if asks {
                if let Some(request) = Request::read(head) {
                    self.describe(ledger, from, request);
                }
            } else if self.response(ledger, from, head, false) {
                if self.granted.is_none() {
                    self.doubt(ledger, from);
                }
                return;
            }
        }
        if !asks && self.directions[from].number.is_none() {
            self.directions[from].number = self.pair(ledger, from, None);
        }
        self.directions[from].state = State::OutOfStep;
        self.note(ledger, from);
        self.doubt(ledger, from);
    }

    pub(super) fn doubt(&self, ledger: &mut Ledger, from: Side) {
        if let Some(entry) = self.directions[from].number.and_then(|n| ledger.get(n)) {
            entry.exchange.doubt(GUESSED);
        }
    }

    /// A packet begins while this direction is out of step: perhaps a message does.
    pub(super) fn resynchronise(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) {
        if !ledger.asks(from) {
            if head::sniff_response(chunk.bytes) == Verdict::Yes {
                self.next_response(ledger, from);
            }
            return;
        }
        if head::sniff_request(chunk.bytes) != Verdict::Yes {
            return;
        }
        let number = self.directions[from].number;
        let entry = number.and_then(|n| ledger.get(n));
        let senseless = entry.filter(|e| e.exchange.method.is_none() && e.exchange.response.first.is_none());
        if let Some(entry) = senseless {
            // Bytes that never made sense, and that nobody answered, were no request.
            entry.offset = chunk.offset;
            self.directions[from].trail.end(ledger);
            let direction = &mut self.directions[from];
            direction.state = State::Head { buffer: Vec::new(), end: EmptyLine::default() };
            direction.span = Span::default();
        } else {
            self.end(ledger, from);
        }
    }

    /// A response begins in a direction that was out of step. Where nothing was seen of the one before it and no other
    /// request waits, what is missing was not a response (but, say, a 100).
    fn next_response(&mut self, ledger: &mut Ledger, from: Side) {
        let Direction { number, span, .. } = self.directions[from];
        let others_wait = ledger.unanswered(|e| Some(e.exchange.number) != number).is_some();
        if span.first.is_some() || others_wait {
            return self.end(ledger, from);
        }
        self.directions[from].span = Span::default();
        self.note(ledger, from);
        self.directions[from].trail.end(ledger);
        let direction = &mut self.directions[from];
        (direction.state, direction.number) = (State::Start, None);
    }

    /// Passes over bytes that the capture does not hold; `cut`: a snap length cut them off, so when and why they
    /// were sent is known.
    pub(super) fn missing(&mut self, ledger: &mut Ledger, from: Side, gap: Gap, cut: bool) {
        let mut left = gap.len;
        let direction = &mut self.directions[from];
        match &mut direction.state {
            State::Waiting(early) => {
                return early.push(Event::Gap(from, gap));
            }
            State::Body(body) => {
                if let Some(mut carried) = direction.carried.take() {
                    carried.end(ledger, from);
                }
                let (skipped, over) = body.skip(gap.len);
                direction.miss(skipped, gap, cut);
                if skipped > 0 && std::mem::take(&mut direction.bodiless) {
                    let sent = gap.acked.map(|(first, _)| first);
                    direction.span.content = if cut { Some(gap.seen) } else { sent };
                }
                left -= skipped;
                if over {
                    if !cut {
                        self.doubt(ledger, from);
                    }
                    self.end(ledger, from);
                }
                if left == 0 {
                    return;
                }
            }
            _ => {}
        }
        let since = self.directions[from].span.last.unwrap_or(gap.seen);
        if !cut {
            // Which response answers which request is no longer sure either.
            ledger.doubt(GUESSED);
        }
        let direction = &mut self.directions[from];
        match &mut direction.state {
            State::Head { buffer, .. } => {
                let buffer = std::mem::take(buffer);
                self.go_out_of_step(ledger, from, &buffer);
            }
            State::OutOfStep => {}
            _ => {
                let offset = gap.offset + (gap.len - left);
                let nothing = Chunk { bytes: &[], cut: 0, offset, acked: 0, seen: gap.seen };
                if matches!(direction.state, State::Start) {
                    self.begin(ledger, from, &nothing);
                }
                self.go_out_of_step(ledger, from, &[]);
            }
        }
        let direction = &mut self.directions[from];
        direction.miss(left, gap, cut);
        if !cut {
            direction.trail.miss(since, gap.seen);
        }
        self.note(ledger, from);
    }
}

impl Direction {
    fn miss(&mut self, bytes: u64, gap: Gap, cut: bool) {
        if cut && bytes > 0 {
            self.span.extend(gap.seen, bytes);
        } else {
            self.span.extend_over(Gap { len: bytes, ..gap });
        }
    }
}
