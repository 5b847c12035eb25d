//! The datagrams between two endpoints (RFC 768), which Wireshark calls a UDP conversation.
//!
//! In: datagrams with their moments. Out: each of them once, as a [`Chunk`]; counts. UDP has neither connections nor
//! order nor acknowledgements: who sent the first datagram is the client, and nothing is known to be missing.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::copies::{ELSEWHERE_NS, HERE_NS, Place, Recent, UNNUMBERED_NS};
use crate::packet::{Datagram, Endpoint, Station};
use crate::stream::{BySide, Chunk, Moment, Side};

/// Bytes of a datagram that tell it from others.
const COMPARED: usize = 64;

/// An acknowledgement of QUIC with some ranges, and the longest connection ID, is hardly longer.
pub const LONGEST_ACK: u32 = 64;

/// What one side sent.
#[derive(Debug, Default)]
pub struct Sent {
    pub packets: i64,
    pub bytes: u64,
    /// Hop limit of the first datagram, as it arrived.
    pub ttl: Option<u8>,
    /// Who sent it on the last link.
    pub station: Option<Station>,
    recent: Recent<u64>,
    /// Of the first datagram.
    first: Option<u64>,
}

/// The datagrams between two endpoints.
#[derive(Debug)]
pub struct Datagrams {
    pub sent: BySide<Sent>,
    /// Earliest and latest datagram.
    pub opened: Moment,
    pub last: Moment,
    /// Lowest and highest frame number.
    pub first_frame: u64,
    pub last_frame: u64,
    /// Nanoseconds between the capture point and each end and back, where what is said tells.
    pub rtt: BySide<Option<i64>>,
    /// QUIC: the first stateless reset.
    pub reset: Option<Moment>,
    /// QUIC: one side has closed the connection, and says so.
    pub closed: Option<Moment>,
    /// Once nothing more will come: the latest frame of the capture.
    pub silent_until: Option<i64>,
    /// The first of the server's datagrams that is longer than an acknowledgement, since the client said anything.
    pub unanswered: Option<Moment>,
    /// QUIC: DATAGRAM frames of each side, where packets are opened.
    pub carried: Option<BySide<u64>>,
    /// Datagrams that were captured more than once: their second and later captures.
    pub duplicates: i64,
}

/// A client that went on from another endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Move {
    /// Its first datagram from there.
    pub seen: Moment,
    pub before: Endpoint,
    pub after: Endpoint,
    /// The first of the server's datagrams to the old endpoint that the client did not answer from there.
    pub unanswered: Option<Moment>,
    /// The server's first datagram to the new endpoint.
    pub answered: Option<Moment>,
    /// The server's first PATH_CHALLENGE after it, and the client's PATH_RESPONSE.
    pub challenge: Option<Moment>,
    pub response: Option<Moment>,
}

impl Datagrams {
    /// Those that begin with a datagram at `opened`.
    #[must_use]
    pub fn new(opened: Moment) -> Self {
        Self {
            sent: BySide::default(),
            opened,
            last: opened,
            first_frame: opened.frame(),
            last_frame: opened.frame(),
            rtt: BySide::default(),
            reset: None,
            closed: None,
            silent_until: None,
            unanswered: None,
            carried: None,
            duplicates: 0,
        }
    }

    /// Counts a datagram; its bytes as the next of that side, or `None` for another capture of one that was seen.
    pub fn datagram<'a>(&mut self, from: Side, datagram: &Datagram<'a>, seen: Moment) -> Option<Chunk<'a>> {
        let sent = &mut self.sent[from];
        if sent.is_copy(datagram, seen.at) {
            self.duplicates += 1;
            return None;
        }
        let offset = sent.bytes;
        sent.packets += 1;
        sent.bytes += u64::from(datagram.payload_len);
        sent.ttl.get_or_insert(datagram.ttl);
        sent.station.get_or_insert(datagram.station);
        if (seen.at, seen.frame()) < (self.opened.at, self.opened.frame()) {
            self.opened = seen;
        }
        self.last = self.last.max(seen);
        match from {
            Side::Client => self.unanswered = None,
            Side::Server if datagram.payload_len > LONGEST_ACK => self.unanswered = self.unanswered.or(Some(seen)),
            Side::Server => {}
        }
        self.last_frame = self.last_frame.max(seen.frame());
        let captured = u32::try_from(datagram.payload.len()).unwrap_or(datagram.payload_len);
        let cut = datagram.payload_len.saturating_sub(captured);
        Some(Chunk { bytes: datagram.payload, cut, offset, acked: 0, seen })
    }
}

impl Datagrams {
    /// What they say whatever their addresses are: the first of each side. A second capture of them, behind an address
    /// translation, has the same.
    #[must_use]
    pub fn identity(&self) -> u64 {
        FixedState::default().hash_one((self.sent.client.first, self.sent.server.first))
    }
}

impl Sent {
    fn is_copy(&mut self, datagram: &Datagram<'_>, at: i64) -> bool {
        let beginning = datagram.payload.get(..COMPARED).unwrap_or(datagram.payload);
        // The lowest bit is set, so that it is not 0.
        let print = FixedState::default().hash_one((beginning, datagram.payload_len, datagram.ip_id)) | 1;
        self.first.get_or_insert(print);
        // Linux numbers with 0 where fragmentation is forbidden.
        let ip_id = datagram.ip_id.unwrap_or_default();
        let here = if ip_id == 0 { UNNUMBERED_NS } else { HERE_NS };
        matches!(self.recent.find(print, at, datagram.capture_point, ip_id, (here, ELSEWHERE_NS)), Place::Copy(_))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
    use super::*;
    use crate::packet::Endpoint;

    fn datagram(payload: &[u8], ip_id: u16, place: u64) -> Datagram<'_> {
        let end = Endpoint { ip: [10, 0, 0, 1].into(), port: 53 };
        let payload_len = payload.len() as u32 + 3;
        Datagram {
            source: end,
            destination: end,
            payload,
            payload_len,
            ip_id: Some(ip_id),
            ttl: 64,
            capture_point: place,
            station: Station::default(),
            captured: &[],
        }
    }

    fn moment(at: i64) -> Moment {
        Moment::new(at, at.unsigned_abs(), Side::Client)
    }

    #[test]
    fn datagrams_are_counted_and_handed_on_one_by_one() {
        let mut datagrams = Datagrams::new(moment(5));
        let first = datagrams.datagram(Side::Client, &datagram(b"one", 7, 0), moment(5)).unwrap();
        assert_eq!((first.bytes, first.cut, first.offset), (&b"one"[..], 3, 0));
        let next = datagrams.datagram(Side::Client, &datagram(b"two", 8, 0), moment(9)).unwrap();
        assert_eq!((next.bytes, next.offset), (&b"two"[..], 6));
        assert_eq!((datagrams.sent.client.packets, datagrams.sent.client.bytes, datagrams.last.at), (2, 12, 9));
    }

    #[test]
    fn a_second_capture_is_no_second_datagram_and_a_repetition_is() {
        let mut datagrams = Datagrams::new(moment(0));
        let is_new = |datagrams: &mut Datagrams, id, place, at| {
            datagrams.datagram(Side::Client, &datagram(b"query", id, place), moment(at)).is_some()
        };
        assert!(is_new(&mut datagrams, 7, 0, 0));
        assert!(!is_new(&mut datagrams, 7, 0, 900_000));
        assert!(!is_new(&mut datagrams, 7, 1, 50_000_000));
        assert!(!is_new(&mut datagrams, 7, 0, 50_000_000));
        assert!(is_new(&mut datagrams, 8, 0, 5_000_000_000));
        // Numbered 0, as Linux does where fragmentation is forbidden: only what follows at once is a copy.
        assert!(is_new(&mut datagrams, 0, 0, 6_000_000_000));
        assert!(!is_new(&mut datagrams, 0, 0, 6_000_100_000));
        assert!(is_new(&mut datagrams, 0, 0, 6_000_900_000));
        assert_eq!((datagrams.sent.client.packets, datagrams.duplicates), (4, 4));
    }
}
