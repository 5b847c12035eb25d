//! Flow control (RFC 9113 section 5.2): content that was held back because the receiver's window was closed.
//!
//! In: what a side sends in DATA frames, and what its peer allows with SETTINGS and WINDOW_UPDATE. Out: [`Held`], from the
//! last byte that was allowed to the first one after it. Where the capture does not hold all of that, the window is not
//! known: then a pause was one of flow control if content follows a WINDOW_UPDATE that ends it.
//!
//! Bounded: [`MAX_STREAMS`] have a window of their own; beyond that the oldest is given up.

use std::collections::BTreeMap;

use super::streams::MAX_STREAMS;
use crate::quic::{Held, Why};
use crate::stream::{Moment, Side};

/// The window of a connection, and of a stream without SETTINGS (section 6.9.2).
const DEFAULT: i64 = 65_535;
/// Content that was held back follows the WINDOW_UPDATE within a round trip, which takes less.
const LONGEST_TRIP_NS: i64 = 1_000_000_000;
/// Where the window is not known: shorter pauses tell nothing.
const LEAST_PAUSE_NS: i64 = 20_000_000;

/// The windows that limit what one side sends.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Windows {
    sender: Side,
    connection: Window,
    /// What a new stream may send; `None` where that is not known.
    initial: Option<i64>,
    streams: BTreeMap<u32, Window>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Bytes that may be sent; `None` where that is not known.
    left: Option<i64>,
    /// The last byte that was sent.
    sent: Option<Moment>,
    /// The peer's frame that has opened it since.
    opened: Option<Moment>,
}

impl Window {
    fn of(left: Option<i64>) -> Self {
        Self { left, ..Self::default() }
    }

    fn is_closed(&self) -> bool {
        self.left.is_some_and(|left| left <= 0)
    }

    /// The peer allows so many bytes more, or fewer.
    fn allow(&mut self, bytes: i64, seen: Moment) {
        let was_closed = self.is_closed();
        self.left = self.left.map(|left| left.saturating_add(bytes));
        if self.left.is_none() || was_closed && !self.is_closed() {
            self.opened = Some(seen);
        }
    }

    /// Takes so many bytes. More than the peer allows are not sent: then what is known of the window is wrong.
    fn take(&mut self, bytes: i64) {
        self.opened = None;
        self.left = self.left.map(|left| left.saturating_sub(bytes)).filter(|&left| left >= 0);
    }

    /// When it was opened for the content that begins at `begun`, if it was closed since `since`.
    fn held(&self, since: Moment, begun: Moment) -> Option<Moment> {
        let opened = self.opened?;
        let (pause, trip) = (opened.at - since.at, begun.at - opened.at);
        let is_sure = self.left.is_some() || pause >= LEAST_PAUSE_NS && trip <= pause;
        (is_sure && trip <= LONGEST_TRIP_NS).then_some(opened)
    }
}

impl Windows {
    /// Those of a connection that is known from its beginning.
    pub fn new(sender: Side) -> Self {
        let connection = Window::of(Some(DEFAULT));
        Self { sender, connection, initial: Some(DEFAULT), streams: BTreeMap::new() }
    }

    /// What was sent, or allowed, is not known.
    pub fn forget(&mut self) {
        (self.initial, self.connection.left) = (None, None);
        self.streams.values_mut().for_each(|stream| stream.left = None);
    }

    /// The peer's SETTINGS (section 6.5.1).
    pub fn settings(&mut self, payload: &[u8], seen: Moment) {
        let (settings, _) = payload.as_chunks::<6>();
        for &[name, name_low, rest @ ..] in settings {
            if (name, name_low) == (0, 4)
                && let Some(before) = self.initial
            {
                let initial = i64::from(u32::from_be_bytes(rest));
                self.initial = Some(initial);
                self.streams.values_mut().for_each(|stream| stream.allow(initial.saturating_sub(before), seen));
            }
        }
    }

    /// The peer's WINDOW_UPDATE (section 6.9).
    pub fn update(&mut self, id: u32, payload: &[u8], seen: Moment) {
        let Some(increment) = payload.first_chunk::<4>() else { return };
        let increment = i64::from(u32::from_be_bytes(*increment) & 0x7fff_ffff);
        if id == 0 {
            self.connection.allow(increment, seen);
        } else if let Some(stream) = self.stream(id) {
            stream.allow(increment, seen);
        }
    }

    /// Headers of a message: from here on its content may be held back. What comes behind content was held back with it.
    pub fn headers(&mut self, id: u32, begun: Moment) -> Option<Held> {
        let held = self.data(id, 0, begun);
        if let Some(stream) = self.stream(id) {
            stream.sent = Some(begun);
        }
        held
    }

    /// A DATA frame begins, with a payload of so many bytes.
    pub fn data(&mut self, id: u32, bytes: u32, begun: Moment) -> Option<Held> {
        let (sender, mut connection) = (self.sender, self.connection);
        let stream = self.stream(id)?;
        // What this stream had to send waits for the connection since its own last byte, or since others took the rest.
        let of_stream = stream.sent.and_then(|sent| Some((sent, stream.held(sent, begun)?)));
        let since = stream.sent.map(|sent| connection.sent.map_or(sent, |other| sent.max(other)));
        let of_connection = since.and_then(|since| Some((since, connection.held(since, begun)?)));
        stream.take(bytes.into());
        if bytes > 0 {
            connection.take(bytes.into());
        }
        self.connection = connection;
        let (why, (start, opened)) = match (of_stream, of_connection) {
            (Some(stream), Some(connection)) if stream.1.at >= connection.1.at => (Why::StreamWindow, stream),
            (_, Some(connection)) => (Why::ConnectionWindow, connection),
            (Some(stream), None) => (Why::StreamWindow, stream),
            (None, None) => return None,
        };
        Some(held(why, sender, start, begun, Some(opened)))
    }

    /// The last byte of a DATA frame.
    pub fn sent(&mut self, id: u32, seen: Moment) {
        self.connection.sent = Some(seen);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.sent = Some(seen);
        }
    }

    /// Nothing more is sent on a stream. `given_up`: somebody ended it early, then.
    pub fn end(&mut self, id: u32, given_up: Option<Moment>) -> Option<Held> {
        let stream = self.streams.remove(&id)?;
        let (why, start) = self.closed(&stream)?;
        let end = given_up?;
        Some(held(why, self.sender, start, end, None))
    }

    /// A message that waits for a window when the connection ends.
    pub fn under_way(&self) -> Option<Held> {
        let (why, start) = self.streams.values().find_map(|stream| self.closed(stream))?;
        Some(held(why, self.sender, start, start, None))
    }

    /// Which window is closed for a stream, and since when.
    fn closed(&self, stream: &Window) -> Option<(Why, Moment)> {
        let sent = stream.sent?;
        if stream.is_closed() {
            Some((Why::StreamWindow, sent))
        } else {
            let since = self.connection.sent.map_or(sent, |other| sent.max(other));
            self.connection.is_closed().then_some((Why::ConnectionWindow, since))
        }
    }

    fn stream(&mut self, id: u32) -> Option<&mut Window> {
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&id) {
            self.streams.pop_first();
        }
        let initial = self.initial;
        (id != 0).then(|| self.streams.entry(id).or_insert_with(|| Window::of(initial)))
    }
}

fn held(why: Why, side: Side, start: Moment, end: Moment, released: Option<Moment>) -> Held {
    Held { why, side, start, end, released, is_tail: false, lost: u64::MAX }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn moment(ms: i64) -> Moment {
        Moment::new(ms * 1_000_000, ms.unsigned_abs() + 1, Side::Server)
    }

    fn update(bytes: u32) -> [u8; 4] {
        bytes.to_be_bytes()
    }

    fn windows(frames: &[(u32, u32)]) -> Windows {
        let mut windows = Windows::new(Side::Server);
        windows.update(0, &update(1 << 30), moment(0));
        assert_eq!(windows.headers(1, moment(0)), None);
        for &(id, bytes) in frames {
            assert_eq!(windows.data(id, bytes, moment(1)), None);
            windows.sent(id, moment(1));
        }
        windows
    }

    #[test]
    fn content_waits_for_the_window_of_its_stream() {
        let mut windows = windows(&[(1, 16_384), (1, 49_151)]);
        windows.update(1, &update(1_000), moment(5_000));
        let held = windows.data(1, 1_000, moment(5_010)).unwrap();
        let Held { why, side, start, end, released, .. } = held;
        assert_eq!((why, side, start.at, end.at), (Why::StreamWindow, Side::Server, 1_000_000, 5_010_000_000));
        assert_eq!(released, Some(moment(5_000)));
        windows.sent(1, moment(5_010));
        // Trailers come behind content.
        let mut ending = windows.clone();
        ending.update(1, &update(1_000), moment(9_000));
        assert_eq!(ending.headers(1, moment(9_010)).map(|held| held.end), Some(moment(9_010)));
        assert_eq!(windows.under_way().map(|held| held.start), Some(moment(5_010)));
        assert_eq!(windows.end(1, Some(moment(6_000))).map(|held| held.end), Some(moment(6_000)));
        assert_eq!(windows.under_way(), None);
    }

    #[test]
    fn settings_change_the_windows_of_all_streams() {
        let mut windows = windows(&[(1, 65_535)]);
        windows.settings(&[0, 3, 0, 0, 0, 9, 0, 4, 0, 2, 0, 0], moment(90));
        assert_eq!(windows.data(1, 65_537, moment(95)).map(|held| held.released), Some(Some(moment(90))));
    }

    #[test]
    fn content_waits_for_the_window_of_the_connection() {
        let mut windows = Windows::new(Side::Client);
        assert_eq!(windows.headers(1, moment(0)), None);
        assert_eq!(windows.headers(3, moment(2)), None);
        assert_eq!(windows.data(1, 65_535, moment(1)), None);
        windows.sent(1, moment(1));
        windows.end(1, None);
        windows.update(0, &update(70_000), moment(50));
        let held = windows.data(3, 10, moment(51)).unwrap();
        assert_eq!((held.why, held.start, held.end), (Why::ConnectionWindow, moment(2), moment(51)));
    }

    #[test]
    fn a_program_that_pauses_is_not_held_by_a_window() {
        // Not all of the window is used, …
        let mut open = windows(&[(1, 60_000)]);
        open.update(1, &update(9_000), moment(5_000));
        assert_eq!(open.data(1, 1_000, moment(5_001)), None);
        // … content comes long after it was opened, …
        let mut late = windows(&[(1, 65_535)]);
        late.update(1, &update(9_000), moment(100));
        assert_eq!(late.data(1, 1_000, moment(5_000)), None);
        // … or the message is over.
        let mut over = windows(&[(1, 65_535)]);
        assert_eq!(over.end(1, None), None);
    }

    #[test]
    fn where_the_window_is_not_known_the_update_that_ends_a_pause_tells() {
        let mut windows = windows(&[(1, 60_000)]);
        windows.forget();
        windows.update(1, &update(9_000), moment(5_000));
        assert_eq!(windows.data(1, 1_000, moment(5_001)).map(|held| held.end), Some(moment(5_001)));
        windows.sent(1, moment(5_001));
        windows.update(1, &update(9_000), moment(5_002));
        assert_eq!(windows.data(1, 1_000, moment(5_100)), None);
        assert_eq!(windows.under_way(), None);
    }

    #[test]
    fn a_window_that_more_is_sent_than_it_allows_was_not_known() {
        let mut windows = windows(&[(1, 70_000)]);
        assert_eq!(windows.under_way(), None);
        assert_eq!(windows.end(1, Some(moment(9))), None);
    }
}
