//! Where a front's wait went: into the proxy, to the back and its connection, and out of the proxy.
//!
//! The wait runs from the last byte of the request to the first byte of the response. Every nanosecond of it is charged once. Where
//! backs of one front run side by side, the one that answers last is what the front waited for: it is charged whole, and an
//! earlier one with what lies before it. A back that answers after the front, or never, is charged with what is left.

use super::model::{Exchange, SKEW_NS};

/// The parts of a wait that one link explains, ns.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Split {
    /// Until the proxy did something at the back, and between what it did there.
    pub proxy_in: i64,
    /// TCP handshake with the backend.
    pub connect: i64,
    /// TLS handshake with the backend.
    pub tls: i64,
    /// Sending the request.
    pub request: i64,
    /// Waiting for the backend.
    pub wait: i64,
    /// Until the proxy answered, or went on to its next back.
    pub proxy_out: i64,
}

/// Splits the wait of `front` over the backs that it caused; None where its wait is unknown.
#[must_use]
pub fn split(front: &Exchange, backs: &[&Exchange]) -> Option<Vec<Split>> {
    let (from, to) = (front.request_done_at, front.response_at?);
    if to < from {
        return None;
    }
    let mut order: Vec<usize> = (0..backs.len()).collect();
    let answered_at = |index: &usize| backs.get(*index).and_then(|back| back.response_at).filter(|&at| at <= to);
    // Who answered last comes first; who did not answer in time comes last.
    order.sort_by_key(|index| std::cmp::Reverse(answered_at(index)));
    let mut splits = vec![Split::default(); backs.len()];
    let mut until = to;
    let mut earliest = None;
    for index in order {
        let (Some(back), Some(split)) = (backs.get(index), splits.get_mut(index)) else { continue };
        until = charge(front, back, from, until, split);
        earliest = Some(index);
    }
    if let Some(split) = earliest.and_then(|index| splits.get_mut(index)) {
        split.proxy_in += until - from;
    }
    Some(splits)
}

/// Charges one back with the time before `until`; gives the instant before which it did nothing.
fn charge(front: &Exchange, back: &Exchange, from: i64, until: i64, split: &mut Split) -> i64 {
    // Of several backs on a connection that was opened for the front, the first one waited for it to open.
    let setup = back.setup.filter(|setup| back.first && setup.opened_at + SKEW_NS >= front.request_at);
    let answered_at = back.response_at.unwrap_or(back.closed_at);
    let mut steps = Vec::with_capacity(6);
    if let Some(setup) = setup {
        steps.push((setup.opened_at, Part::Connect));
        steps.extend(setup.connected_at.map(|at| (at, Part::Proxy)));
        steps.extend(setup.hello_at.map(|at| (at, Part::Tls)));
        steps.extend(setup.ready_at.map(|at| (at, Part::Proxy)));
    }
    // An opening asks nothing: until it is answered, its connection is being set up.
    if back.number.is_some() {
        steps.push((back.request_at, Part::Request));
        steps.push((back.request_done_at, Part::Wait));
    }
    // Early data and false start go out before the step ahead of them is over: what begins later cuts it short.
    let mut at = answered_at.clamp(from, until);
    split.proxy_out += until - at;
    for (began_at, part) in steps.into_iter().rev() {
        let began_at = began_at.clamp(from, at);
        *part.of(split) += at - began_at;
        at = began_at;
    }
    at
}

#[derive(Clone, Copy)]
enum Part {
    Proxy,
    Connect,
    Tls,
    Request,
    Wait,
}

impl Part {
    fn of(self, split: &mut Split) -> &mut i64 {
        match self {
            Self::Proxy => &mut split.proxy_in,
            Self::Connect => &mut split.connect,
            Self::Tls => &mut split.tls,
            Self::Request => &mut split.request,
            Self::Wait => &mut split.wait,
        }
    }
}
