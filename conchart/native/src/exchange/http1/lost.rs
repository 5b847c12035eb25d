//! What an HTTP/1 reader does when it cannot follow: bytes are missing, or make no sense.
//!
//! In: gaps, cut heads, noise. Out: the same exchanges, marked `inferred`, and the stretch of time
//! in which nobody can say what went on. See [`super`] for what *blind* means.

use super::{EmptyLine, GUESSED, Http1, Reader, State, describe};
use crate::exchange::Span;
use crate::exchange::head::{self, Guess, Request};
use crate::exchange::held::Event;
use crate::exchange::ledger::Ledger;
use crate::stream::{Chunk, Gap, Side};

impl Http1 {
    /// The end of the current message is unknown; `head` is what there is of its head.
    pub(super) fn go_blind(&mut self, ledger: &mut Ledger, from: Side, head: &[u8]) {
        let asks = from == self.requester;
        if !head.is_empty() {
            if asks {
                let entry = self.readers[from].number.and_then(|n| ledger.get(n));
                if let (Some(entry), Some(request)) = (entry, Request::read(head)) {
                    describe(&mut entry.exchange, request);
                }
            } else if self.response(ledger, from, head, false) {
                if self.onward.is_none() {
                    self.doubt(ledger, from);
                }
                return;
            }
        }
        if !asks && self.readers[from].number.is_none() {
            self.readers[from].number = self.pair(ledger, from, None);
        }
        self.readers[from].state = State::Blind;
        self.note(ledger, from);
        self.doubt(ledger, from);
    }

    pub(super) fn doubt(&self, ledger: &mut Ledger, from: Side) {
        if let Some(entry) = self.readers[from].number.and_then(|n| ledger.get(n)) {
            entry.exchange.doubt(GUESSED);
        }
    }

    /// A packet begins while the reader is blind: perhaps a message does.
    pub(super) fn resynchronise(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) {
        if from != self.requester {
            if head::sniff_response(chunk.bytes) == Guess::Yes {
                self.next_response(ledger, from);
            }
            return;
        }
        if head::sniff_request(chunk.bytes) != Guess::Yes {
            return;
        }
        let number = self.readers[from].number;
        let entry = number.and_then(|n| ledger.get(n));
        let senseless = entry.filter(|e| e.exchange.method.is_none() && e.exchange.response.first.is_none());
        if let Some(entry) = senseless {
            // Bytes that never made sense, and that nobody answered, were no request.
            entry.offset = chunk.offset;
            self.found(ledger, from);
            let reader = &mut self.readers[from];
            reader.state = State::Head { kept: Vec::new(), end: EmptyLine::default() };
            reader.span = Span::default();
        } else {
            self.end(ledger, from);
        }
    }

    /// A response begins after blindness. Where nothing was seen of the one before it and no other
    /// request waits, what is missing was not a response (but, say, a 100).
    fn next_response(&mut self, ledger: &mut Ledger, from: Side) {
        let Reader { number, span, .. } = self.readers[from];
        let others_wait = ledger.unanswered(|e| Some(e.exchange.number) != number).is_some();
        if span.first.is_some() || others_wait {
            return self.end(ledger, from);
        }
        self.readers[from].span = Span::default();
        self.note(ledger, from);
        self.found(ledger, from);
        let reader = &mut self.readers[from];
        (reader.state, reader.number) = (State::Start, None);
    }

    /// The reader is no longer lost.
    pub(super) fn found(&mut self, ledger: &mut Ledger, from: Side) {
        if let Some((since, until)) = self.readers[from].lost.take() {
            ledger.lost(since, until);
        }
    }

    /// Passes over bytes that the capture does not hold; `cut`: a snap length cut them off, so when and why they
    /// were sent is known.
    pub(super) fn missing(&mut self, ledger: &mut Ledger, from: Side, gap: Gap, cut: bool) {
        let mut left = gap.len;
        let reader = &mut self.readers[from];
        match &mut reader.state {
            State::Eager(held) => {
                return held.push(Event::Gap(from, gap));
            }
            State::Body(body) => {
                let (skipped, over) = body.skip(gap.len);
                reader.miss(skipped, gap, cut);
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
        let since = self.readers[from].span.last.unwrap_or(gap.seen);
        if !cut {
            // Which response answers which request is no longer sure either.
            ledger.doubt(GUESSED);
        }
        let reader = &mut self.readers[from];
        match &mut reader.state {
            State::Head { kept, .. } => {
                let kept = std::mem::take(kept);
                self.go_blind(ledger, from, &kept);
            }
            State::Blind => {}
            _ => {
                let offset = gap.offset + (gap.len - left);
                let nothing = Chunk { bytes: &[], cut: 0, offset, acked: 0, seen: gap.seen };
                if matches!(reader.state, State::Start) {
                    self.begin(ledger, from, &nothing);
                }
                self.go_blind(ledger, from, &[]);
            }
        }
        let reader = &mut self.readers[from];
        reader.miss(left, gap, cut);
        if !cut {
            reader.lost = Some((reader.lost.map_or(since, |(since, _)| since), gap.seen));
        }
        self.note(ledger, from);
    }
}

impl Reader {
    fn miss(&mut self, bytes: u64, gap: Gap, cut: bool) {
        if cut && bytes > 0 {
            self.span.extend(gap.seen, bytes);
        } else {
            self.span.extend_over(Gap { len: bytes, ..gap });
        }
    }
}
