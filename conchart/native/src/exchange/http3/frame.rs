//! Frames of HTTP/3 (RFC 9114 section 7): where each begins and ends in its stream.
//!
//! In: the bytes of one side of one stream, in order. Out: headers of frames, stretches of their payloads. Bounded: of
//! a header 16 bytes are kept. Non-goals: what a payload says.

use crate::bytes::Fields;

pub(super) const DATA: u64 = 0x0;
pub(super) const HEADERS: u64 = 0x1;
pub(super) const SETTINGS: u64 = 0x4;
pub(super) const GOAWAY: u64 = 0x7;
/// Begins a stream of WebTransport that goes both ways: what stands in the place of the length is its session
/// (draft-ietf-webtrans-http3 section 4.3).
pub(super) const WEBTRANSPORT: u64 = 0x41;

/// A capsule with an HTTP datagram (RFC 9297 section 3.5).
const DATAGRAM_CAPSULE: u64 = 0x0;

/// SETTINGS_QPACK_MAX_TABLE_CAPACITY (RFC 9204 section 5).
const MAX_TABLE_CAPACITY: u64 = 0x1;

/// Type and length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub kind: u64,
    pub length: u64,
    /// Its own length.
    pub size: u64,
}

/// Integers at the front of something, as they come.
#[derive(Default)]
pub(super) struct Begun {
    bytes: [u8; 16],
    have: usize,
}

impl Begun {
    /// Takes bytes up to the end of a frame's header; how many, and the header where it is whole.
    pub fn header(&mut self, bytes: &[u8]) -> (usize, Option<Header>) {
        self.collect(bytes, |fields, size| {
            let (kind, length) = (fields.varint()?, fields.varint()?);
            Some(Header { kind, length, size: size() })
        })
    }

    /// The same of one integer.
    pub fn number(&mut self, bytes: &[u8]) -> (usize, Option<u64>) {
        self.collect(bytes, |fields, _| fields.varint())
    }

    fn collect<T>(
        &mut self,
        bytes: &[u8],
        read: impl Fn(&mut Fields<'_>, &dyn Fn() -> u64) -> Option<T>,
    ) -> (usize, Option<T>) {
        for (taken, &byte) in (1..).zip(bytes) {
            if let Some(slot) = self.bytes.get_mut(self.have) {
                *slot = byte;
                self.have += 1;
            }
            let have = self.have;
            let buffered = self.bytes.get(..have).unwrap_or_default();
            if let Some(found) = read(&mut Fields(buffered), &|| have as u64) {
                *self = Self::default();
                return (taken, Some(found));
            }
        }
        (bytes.len(), None)
    }
}

/// The capsules in the content of a tunnel (RFC 9297 section 3.2).
#[derive(Default)]
pub(super) struct Capsules {
    begun: Begun,
    /// Of the one under way.
    left: u64,
}

impl Capsules {
    /// Goes over content; how many HTTP datagrams begin in it.
    pub fn datagrams(&mut self, mut bytes: &[u8]) -> u64 {
        let mut found = 0;
        while !bytes.is_empty() {
            let skipped = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= skipped as u64;
            let (taken, header) = self.begun.header(bytes.get(skipped..).unwrap_or_default());
            if let Some(header) = header {
                self.left = header.length;
                found += u64::from(header.kind == DATAGRAM_CAPSULE);
            }
            bytes = bytes.get(skipped.saturating_add(taken)..).unwrap_or_default();
        }
        found
    }
}

/// The table capacity that a SETTINGS frame allows the peer's encoder; 0 where it says nothing.
pub(super) fn table_capacity(payload: &[u8]) -> u64 {
    let mut fields = Fields(payload);
    let settings = std::iter::from_fn(|| Some((fields.varint()?, fields.varint()?)));
    settings.filter(|&(id, _)| id == MAX_TABLE_CAPACITY).map(|(_, value)| value).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_however_it_is_cut() {
        let bytes = [0x40, 0x07, 0x80, 0, 1, 2, 9, 9];
        let expected = Header { kind: 7, length: 258, size: 6 };
        for cut in 0..6 {
            let mut begun = Begun::default();
            assert_eq!(begun.header(bytes.get(..cut).unwrap_or_default()), (cut, None));
            assert_eq!(begun.header(bytes.get(cut..).unwrap_or_default()), (6 - cut, Some(expected)));
            assert_eq!(begun.have, 0);
        }
    }

    #[test]
    fn datagrams_in_capsules_are_counted_however_they_are_cut() {
        // Two datagrams, one of them empty, and another capsule.
        let bytes = [0, 3, 0, b'a', b'b', 0x68, 0x43, 1, 9, 0, 0];
        for cut in 0..bytes.len() {
            let mut capsules = Capsules::default();
            let (begin, end) = bytes.split_at(cut);
            assert_eq!(capsules.datagrams(begin) + capsules.datagrams(end), 2);
        }
    }

    #[test]
    fn settings_tell_the_capacity() {
        assert_eq!(table_capacity(&[6, 1, 1, 0x40, 0x64, 7, 3]), 100);
        assert_eq!(table_capacity(&[]), 0);
    }
}
