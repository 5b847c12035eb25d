//! The UDP header (RFC 768).
//!
//! In: captured bytes and what IP said. Out: a [`Datagram`]. Checksums are not looked at: captures on the sending
//! machine show them before the network card filled them in.

use super::error::PacketError;
use super::ip::IpPacket;
use super::tcp::capture_point;
use super::{Datagram, Decoded, Endpoint, Station};

const LAYER: &str = "UDP";
const HEADER: usize = 8;

/// Reads the UDP header that `ip` points to.
///
/// # Errors
/// `Cut` when the frame or the IP packet ends inside the header, `Bad` when the length is less than the header's.
pub(super) fn datagram<'a>(frame: &'a [u8], ip: &IpPacket, station: Station) -> Result<Decoded<'a>, PacketError> {
    let offset = ip.offset;
    let captured = frame.get(offset..).unwrap_or_default();
    let captured = captured.get(..ip.len).unwrap_or(captured);
    let Some(&[s0, s1, d0, d1, l0, l1, _, _]) = captured.first_chunk::<HEADER>() else {
        return Err(PacketError::Cut { layer: LAYER, offset, need: HEADER, have: captured.len() });
    };
    let announced = usize::from(u16::from_be_bytes([l0, l1]));
    // 0 is a jumbogram's (RFC 2675 section 4), or to be filled in by the network card: IP says how long it is.
    let len = if announced == 0 { ip.len } else { announced.min(ip.len) };
    if len < HEADER {
        let found = u32::from(u16::from_be_bytes([l0, l1]));
        return Err(PacketError::Bad { layer: LAYER, offset, field: "length", found, allowed: "at least 8" });
    }
    let payload = captured.get(HEADER..).unwrap_or_default();
    Ok(Decoded::Udp(Datagram {
        source: Endpoint { ip: ip.source, port: u16::from_be_bytes([s0, s1]) },
        destination: Endpoint { ip: ip.destination, port: u16::from_be_bytes([d0, d1]) },
        payload: payload.get(..len - HEADER).unwrap_or(payload),
        payload_len: u32::try_from(len - HEADER).unwrap_or(u32::MAX),
        ip_id: ip.id,
        ttl: ip.ttl,
        capture_point: capture_point(frame, ip.ttl),
        station,
        captured: frame.get(ip.start..).unwrap_or_default(),
    }))
}
