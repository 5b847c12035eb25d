//! A frame: what is decoded lies inside it.
//!
//! Input: link type, how much longer the frame was on the wire, then frames.
#![no_main]

use conchart_fuzz::{Input, bounded};
use conchart_native::{Arrival, Datagram, Decoded, Fragments, LinkType, Placed, Segment, decode};
use libfuzzer_sys::fuzz_target;

/// A payload of `len` bytes, of which these were captured; before it come so many of the headers of IP and transport.
fn check_payload(payload: &[u8], len: u32, headers: usize, frame: Option<&[u8]>) {
    assert!(payload.len() <= len as usize);
    if let Some(frame) = frame.filter(|_| !payload.is_empty()) {
        let (outer, inner) = (frame.as_ptr_range(), payload.as_ptr_range());
        assert!(outer.start <= inner.start && inner.end <= outer.end, "the payload is of another frame");
        assert!(payload.len() + headers <= frame.len());
    }
}

fn check_datagram(datagram: &Datagram<'_>, frame: Option<&[u8]>) {
    check_payload(datagram.payload, datagram.payload_len, 28, frame);
}

fn check(segment: &Segment<'_>, frame: Option<&[u8]>) {
    check_payload(segment.payload, segment.payload_len, 40, frame);
    if let Some((from, to)) = segment.duplicate_sack {
        let _ = to.since(from);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let (Some(link), Some(longer)) = (input.u16(), input.u16()) else { return };
    let link = LinkType(link);
    let mut fragments = Fragments::default();
    let mut incomplete = Vec::new();
    bounded(16 << 20, || {
        let mut number = 0_u32;
        while let Some(frame) = input.bytes() {
            number += 1;
            let wire = u32::try_from(frame.len()).unwrap_or(u32::MAX).saturating_add(longer.into());
            let seen = Arrival { at: i64::from(number) << (longer & 31), frame: number.into() };
            match decode(link, frame, wire) {
                Ok(Decoded::Tcp(segment)) => check(&segment, Some(frame)),
                Ok(Decoded::Udp(datagram)) => check_datagram(&datagram, Some(frame)),
                Ok(Decoded::Fragment(fragment)) => {
                    incomplete.extend(fragments.expired(seen.at));
                    if let Placed::Whole(whole) = fragments.add(&fragment, seen) {
                        if let Ok(Decoded::Tcp(segment)) = whole.decode() {
                            check(&segment, None);
                        }
                        assert!(whole.frames >= 1 && whole.frames <= i64::from(number));
                    }
                }
                Ok(Decoded::Aggregate(parts)) => {
                    for part in parts {
                        if let Ok(Decoded::Tcp(segment)) = part {
                            check(&segment, Some(frame));
                        }
                    }
                }
                Ok(Decoded::Other) => {}
                Err(error) => drop(error.to_string()),
            }
        }
        incomplete.extend(fragments.drain());
    });
    assert!(incomplete.iter().all(|lost| lost.frames >= 1));
});
