//! TO GO AT THE MERGE of the rebuilt `tls`: gives today's [`tls::Tls`] the face of the coming one.
//!
//! Delete this file and its `mod`, and let `exchange/tls.rs` import `Agreement` and `Tls` from `crate::tls`.

use std::collections::VecDeque;

use crate::keys::Keys;
use crate::stream::{Chunk, Gap, Moment, Side};
use crate::tls::{self, AppRecord, Clear, Handshake};

/// What a handshake that just ended agreed on.
pub(super) struct Agreement {
    pub alpn: Option<Box<str>>,
    pub ready: Option<Moment>,
    /// The server may ask for a certificate later (RFC 8446 section 4.6.2).
    pub asks_later: bool,
}

pub(super) struct Tls {
    tls: tls::Tls,
    /// Handshakes that ended, until it is known whether their keys open what follows.
    ended: VecDeque<Box<Handshake>>,
}

impl Tls {
    pub fn new(keys: Option<Keys>) -> Self {
        Self { tls: keys.map_or_else(tls::Tls::new, tls::Tls::with_keys), ended: VecDeque::new() }
    }

    pub fn midstream() -> Self {
        Self { tls: tls::Tls::midstream(), ended: VecDeque::new() }
    }

    pub fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        self.tls.data(from, chunk);
    }

    pub fn gap(&mut self, from: Side, gap: Gap) -> Gap {
        self.tls.gap(from, gap)
    }

    pub fn fin(&mut self, from: Side, seen: Moment) {
        self.tls.fin(from, seen);
    }

    pub fn finish(&mut self) {
        self.tls.finish();
    }

    pub fn next_record(&mut self) -> Option<AppRecord> {
        self.tls.next_record()
    }

    pub fn next_clear(&mut self) -> Option<Clear> {
        self.tls.next_clear()
    }

    pub fn next_agreement(&mut self) -> Option<Agreement> {
        let handshake = self.tls.next_handshake()?;
        let asks_later = handshake.may_ask_later && handshake.version.as_deref() == Some("TLSv1.3");
        let agreement = Agreement { alpn: handshake.alpn.clone(), ready: handshake.ready, asks_later };
        self.ended.push_back(handshake);
        Some(agreement)
    }

    pub fn next_handshake(&mut self) -> Option<Box<Handshake>> {
        let handshake = self.ended.front_mut()?;
        if !self.tls.settle_keys(handshake) {
            return None;
        }
        self.ended.pop_front()
    }

    pub fn earliest_open(&self) -> Option<Moment> {
        self.ended.front().and_then(|handshake| handshake.hello)
    }

    pub fn requester(&self) -> Option<Side> {
        self.tls.requester()
    }

    pub fn alpn(&self) -> Option<&str> {
        self.tls.alpn()
    }

    pub fn missed_data(&self, from: Side) -> bool {
        self.tls.lost_data(from)
    }
}
