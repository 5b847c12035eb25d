//! Stateless resets: a side that has forgotten the connection says so in what looks like a 1-RTT packet.
//!
//! RFC 9000 section 10.3. In: the tokens that each side has given, where keys show them; packets with a short header that
//! were not opened. Out: the first reset. Without tokens, three facts tell it: where packets to that side have a
//! connection ID, it has another one; it is shorter than what it answers; and nothing else follows from its sender.
//! Bounded: [`MAX_TOKENS`] of each side.

use crate::stream::{BySide, Moment, Side};

pub(super) type Token = [u8; 16];

/// Tokens of one side that are remembered.
const MAX_TOKENS: usize = 32;
/// The shortest (RFC 9000 section 10.3).
const SHORTEST: usize = 21;
/// A side sends no more of them than this, or it goes on with another connection ID.
const MOST: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Resets {
    tokens: BySide<Vec<Token>>,
    exact: Option<Moment>,
    /// The first of those that only may be resets, and how many there are.
    likely: BySide<Option<Moment>>,
    count: BySide<u8>,
    /// The bytes in the place of its connection ID.
    strange: BySide<Vec<u8>>,
    /// Length of the latest datagram.
    latest: BySide<usize>,
}

impl Resets {
    pub fn token(&mut self, of: Side, token: Token) {
        let tokens = &mut self.tokens[of];
        if tokens.len() < MAX_TOKENS && !tokens.contains(&token) {
            tokens.push(token);
        }
    }

    /// A packet that was understood, or has the connection ID of its receiver: its sender knows the connection.
    pub fn recognised(&mut self, from: Side, len: usize) {
        self.latest[from] = len;
        if self.likely[from].take().is_some() {
            self.count[from] = MOST;
        }
    }

    /// A packet with a short header that was not opened; `cid` is the connection ID of its receiver.
    pub fn unknown(&mut self, from: Side, packet: &[u8], cid: &[u8], seen: Moment) {
        let has_token = packet.last_chunk().is_some_and(|token| self.tokens[from].contains(token));
        if packet.len() >= SHORTEST && has_token {
            self.exact.get_or_insert(seen);
            return;
        }
        let instead = packet.get(1..).and_then(|rest| rest.get(..cid.len())).unwrap_or_default();
        if cid.is_empty() || instead == cid {
            return self.recognised(from, packet.len());
        }
        let is_shorter = (SHORTEST..self.latest[from.peer()]).contains(&packet.len());
        let count = &mut self.count[from];
        *count = count.saturating_add(1);
        if !is_shorter || *count > MOST || self.strange[from] == instead {
            return self.likely[from] = None;
        }
        self.strange[from] = instead.to_vec();
        self.likely[from].get_or_insert(seen);
    }

    /// The first one so far. `reads`: tokens are known, and no other sign counts.
    pub fn first(&self, reads: bool) -> Option<Moment> {
        let likely = Moment::earliest([self.likely.client, self.likely.server]);
        self.exact.or(likely.filter(|_| !reads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Side::{Client, Server};

    const CID: &[u8] = &[7; 8];

    fn moment(at: i64) -> Moment {
        Moment::new(at, at.unsigned_abs(), Server)
    }

    /// A server that goes on with these packets after the client's, which have 60 bytes.
    fn detected_at(packets: &[&[u8]], token: Option<Token>) -> Option<i64> {
        let mut resets = Resets::default();
        if let Some(token) = token {
            resets.token(Server, token);
        }
        for (at, packet) in (0..).zip(packets) {
            resets.recognised(Client, 60);
            resets.unknown(Server, packet, CID, moment(at));
        }
        resets.first(token.is_some()).map(|first| first.at)
    }

    fn packet(cid: u8, len: usize) -> Vec<u8> {
        [&[0x40][..], &[cid; 8], &vec![1; len - 9]].concat()
    }

    #[test]
    fn a_token_is_proof() {
        let reset = [&packet(3, 30)[..], &[9; 16]].concat();
        assert_eq!(detected_at(&[&packet(7, 40), &reset], Some([9; 16])), Some(1));
        assert_eq!(detected_at(&[&packet(7, 40), &reset], Some([8; 16])), None);
        assert_eq!(detected_at(&[&packet(7, 40), &[9; 20]], Some([9; 16])), None, "too short");
    }

    #[test]
    fn without_tokens_another_connection_id_at_the_end_tells_it() {
        assert_eq!(detected_at(&[&packet(7, 40), &packet(3, 40)], None), Some(1));
        assert_eq!(detected_at(&[&packet(7, 40), &packet(3, 40), &packet(4, 40)], None), Some(1));
        assert_eq!(detected_at(&[&packet(7, 40), &packet(3, 60)], None), None, "as long as what it answers");
        assert_eq!(detected_at(&[&packet(3, 40), &packet(7, 40)], None), None, "the server goes on");
        assert_eq!(detected_at(&[&packet(3, 40), &packet(3, 40)], None), None, "its next connection ID");
    }
}
