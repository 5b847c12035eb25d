//! Who put a frame on its link, in which tunnel, and which end of a connection the capturing machine is.
//!
//! In: where a link header has the addresses; what the first packets of both sides said. Out: plain values.

use std::net::IpAddr;

use super::tunnel::Tunnel;
use crate::stream::{BySide, Side};

/// A link-layer address (EUI-48).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mac(pub [u8; 6]);

/// Which way a frame passed the machine that captured it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Passing {
    /// It was sent to that machine.
    In,
    /// That machine sent it.
    Out,
    /// It did not leave that machine.
    Loopback,
}

/// What the link layer says of a frame's sender.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Station {
    pub mac: Option<Mac>,
    pub passing: Option<Passing>,
    /// What the packet was wrapped in; the innermost of several.
    pub tunnel: Option<Tunnel>,
}

impl Station {
    /// The sender whose address stands at `offset`. All zeros is none: loopback interfaces have it.
    #[inline]
    pub(super) fn at(frame: &[u8], offset: usize) -> Self {
        let mac = frame.get(offset..).and_then(|rest| rest.first_chunk::<6>());
        Self { mac: mac.filter(|mac| **mac != [0; 6]).map(|mac| Mac(*mac)), ..Self::default() }
    }
}

/// Which ends of a connection are the capturing machine itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Local {
    Only(Side),
    Both,
}

impl Local {
    /// As the first packet of each side says. A machine that hands on the packets of others sees both sides' come in.
    #[must_use]
    pub fn of(ips: BySide<IpAddr>, stations: BySide<Option<Station>>) -> Option<Self> {
        let passing = |side: Side| stations[side].and_then(|station| station.passing);
        let ways = BySide { client: passing(Side::Client), server: passing(Side::Server) };
        let is_loopback = [ways.client, ways.server].contains(&Some(Passing::Loopback));
        if is_loopback || ips.client.is_loopback() || ips.client == ips.server {
            return Some(Self::Both);
        }
        let end = |side: Side| ways[side].map(|way| if way == Passing::Out { side } else { side.peer() });
        match (end(Side::Client), end(Side::Server)) {
            (Some(one), Some(other)) if one != other => None,
            (one, other) => one.or(other).map(Self::Only),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(client: Option<Passing>, server: Option<Passing>) -> Option<Local> {
        let station = |passing| Some(Station { passing, ..Station::default() });
        let ips = BySide { client: [10, 0, 0, 1].into(), server: [10, 0, 0, 2].into() };
        Local::of(ips, BySide { client: station(client), server: station(server) })
    }

    #[test]
    fn the_capturing_machine_is_the_end_that_sends_what_goes_out() {
        use Passing::{In, Loopback, Out};
        assert_eq!(local(Some(Out), Some(In)), Some(Local::Only(Side::Client)));
        assert_eq!(local(Some(In), Some(Out)), Some(Local::Only(Side::Server)));
        assert_eq!(local(Some(Out), None), Some(Local::Only(Side::Client)));
        assert_eq!(local(None, Some(In)), Some(Local::Only(Side::Client)));
        assert_eq!(local(Some(Loopback), Some(Loopback)), Some(Local::Both));
        assert_eq!(local(None, None), None);
    }

    #[test]
    fn a_machine_that_only_hands_packets_on_is_neither_end() {
        assert_eq!(local(Some(Passing::In), Some(Passing::In)), None);
        assert_eq!(local(Some(Passing::Out), Some(Passing::Out)), None);
    }

    #[test]
    fn a_machine_that_talks_to_itself_is_both_ends() {
        for ips in [[[127, 0, 0, 1], [127, 0, 0, 2]], [[10, 0, 0, 1], [10, 0, 0, 1]]] {
            let ips = BySide { client: ips[0].into(), server: ips[1].into() };
            assert_eq!(Local::of(ips, BySide::default()), Some(Local::Both));
        }
    }
}
