//! How an exchange ended, who ended it, and when.
//!
//! In: an [`Exchange`] as its reader left it, and when the ends of its connection broke that off. Out: its [`Outcome`].
//! Readers tell what only their protocol says (RST_STREAM, GOAWAY); everything else follows from the messages and from
//! FIN and RST. Non-goals: what an answer says; an error is an answer.

use super::Exchange;
use super::ledger::GUESSED;
use crate::stream::{BySide, Moment, Side};

/// A FIN this soon after the request is part of it: programs that send one request say so with a half-close. Inside TLS
/// nobody does: what a client writes and does not wait for says goodbye (`close_notify`, GOAWAY, a database's QUIT).
const HALF_CLOSE_NS: i64 = 10_000_000;
/// A datagram without an answer for so long was not answered: resolvers ask again after 5 s (resolv.conf(5)).
const SILENCE_NS: i64 = 5_000_000_000;

/// How an exchange ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The response is complete, as its protocol says.
    Answered,
    /// The response had begun, and more was announced than came.
    Cut,
    /// Not a byte of a response came before the responder ended it, or was silent for long.
    Unanswered,
    /// The requester ended it before the response was complete.
    Abandoned,
    /// The responder says that it has not looked at it, so that it may be sent again (RFC 9113 section 8.7).
    Refused,
    /// The capture does not show its end.
    Unknown,
}

impl Outcome {
    /// The name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Cut => "cut",
            Self::Unanswered => "unanswered",
            Self::Abandoned => "abandoned",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

/// Who broke off an exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ender {
    Side(Side),
    /// Something between them, in the name of one of them.
    Path,
}

impl Ender {
    /// The name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Side(side) => side.name(),
            Self::Path => "path",
        }
    }
}

/// When the ends of a connection broke it off, as far as is known by now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// The first FIN of each side, or its CONNECTION_CLOSE.
    pub fin: BySide<Option<Moment>>,
    pub rst: Option<Moment>,
    /// The RST came from neither side.
    pub is_foreign: bool,
    /// Datagrams, of which no packet says that nothing follows: the latest frame of the capture.
    pub silent_until: Option<i64>,
}

impl Ends {
    fn rst(&self, by: Side) -> Option<Moment> {
        self.rst.filter(|rst| rst.sender() == by)
    }

    /// When the requester stopped to wait.
    fn left(&self, Exchange { requester, request, .. }: &Exchange, is_sealed: bool) -> Option<Moment> {
        let last = request.last.filter(|_| request.done && !is_sealed);
        let goes = |fin: &Moment| last.is_none_or(|last| fin.at.saturating_sub(last.at) > HALF_CLOSE_NS);
        Moment::earliest([self.fin[*requester].filter(goes), self.rst(*requester)])
    }

    /// When the responder ended what began there. A FIN from before crossed the request on the way.
    fn closed(&self, responder: Side, opened: Moment) -> Option<Moment> {
        let ends = [self.fin[responder], self.rst(responder)];
        let since = ends.map(|end| end.filter(|end| end.at >= opened.at));
        Moment::earliest(since).or_else(|| ends.iter().any(Option::is_some).then_some(opened))
    }

    fn ender(&self, end: Moment) -> Ender {
        if self.is_foreign && self.rst == Some(end) { Ender::Path } else { Ender::Side(end.sender()) }
    }
}

impl Exchange {
    /// Says how it ended, from what is known of its connection. What its protocol told before stands.
    pub fn conclude(&mut self, ends: &Ends) {
        let responder = self.requester.peer();
        let Some(opened) = self.opened() else { return };
        // Bytes that nobody saw may have been the rest, or all, of the response.
        let may_lack = self.response.revealed.is_some() || self.inferred && self.confidence <= GUESSED;
        if let Some(outcome) = self.outcome {
            let is_guess = may_lack && matches!(outcome, Outcome::Cut | Outcome::Unanswered);
            self.outcome = Some(if is_guess { Outcome::Unknown } else { outcome });
            self.ended_by = self.ended.filter(|_| !is_guess).map(|ended| Ender::Side(ended.sender()));
            return;
        }
        let left = ends.left(self, self.inferred && matches!(self.protocol, "h2" | "tls"));
        let is_after = |last: Moment| left.is_some_and(|left| left.at < last.at);
        // What came after a RST in the server's name found nobody any more.
        let came_late =
            |rst: &Moment| rst.at >= opened.at && self.response.first.is_some_and(|first| rst.at <= first.at);
        if let Some(rst) = ends.rst(responder).filter(|rst| ends.is_foreign && came_late(rst)) {
            (self.outcome, self.ended, self.ended_by) = (Some(Outcome::Unanswered), Some(rst), Some(Ender::Path));
            return;
        }
        if self.response.done && !self.response.last.is_some_and(is_after) {
            self.outcome = Some(Outcome::Answered);
            return;
        }
        if self.ended.is_some() {
            // No response was due, or nobody knows.
            return;
        }
        let closed = ends.closed(responder, opened).filter(|_| !self.response.done);
        let is_silent = ends.silent_until.is_some_and(|now| now.saturating_sub(opened.at) >= SILENCE_NS);
        let has_begun = self.response.first.is_some();
        let (outcome, end) = match Moment::earliest([left, closed]) {
            Some(end) if left == Some(end) => (Outcome::Abandoned, Some(end)),
            Some(_) if may_lack => (Outcome::Unknown, None),
            Some(end) => (if has_begun { Outcome::Cut } else { Outcome::Unanswered }, Some(end)),
            None if is_silent && !has_begun && !may_lack => (Outcome::Unanswered, None),
            None => (Outcome::Unknown, None),
        };
        self.outcome = Some(outcome);
        self.ended = end;
        self.ended_by = end.map(|end| ends.ender(end));
    }

    /// The end of a stretch of it: nobody waits for what comes after it was abandoned.
    pub(crate) fn until(&self, end: Moment) -> Moment {
        let left = self.ended.filter(|_| self.outcome == Some(Outcome::Abandoned));
        Moment::earliest([left, Some(end)]).unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Span;

    const CLIENT: Side = Side::Client;
    const SERVER: Side = Side::Server;

    fn moment(ms: i64, sender: Side) -> Moment {
        Moment::new(ms * 1_000_000, ms.cast_unsigned() + 1, sender)
    }

    fn span(from: i64, to: i64, sender: Side, done: bool) -> Span {
        Span { first: Some(moment(from, sender)), last: Some(moment(to, sender)), done, ..Span::default() }
    }

    /// A request that is sent from 100 to 110 ms.
    fn with_response(response: Span) -> Exchange {
        Exchange { request: span(100, 110, CLIENT, true), response, confidence: 1.0, ..Exchange::default() }
    }

    fn fate(mut exchange: Exchange, ends: &Ends) -> (&'static str, Option<&'static str>, Option<i64>) {
        exchange.conclude(ends);
        let outcome = exchange.outcome.map_or("none", Outcome::name);
        (outcome, exchange.ended_by.map(Ender::name), exchange.ended.map(|at| at.at / 1_000_000))
    }

    fn fins(client: Option<i64>, server: Option<i64>) -> Ends {
        let fin = BySide { client: client.map(|at| moment(at, CLIENT)), server: server.map(|at| moment(at, SERVER)) };
        Ends { fin, ..Ends::default() }
    }

    fn rst(at: i64, by: Side) -> Ends {
        Ends { rst: Some(moment(at, by)), ..Ends::default() }
    }

    #[test]
    fn a_complete_response_is_an_answer_whoever_closes_after_it() {
        let whole = span(200, 300, SERVER, true);
        for ends in [fins(None, None), fins(Some(400), Some(410)), fins(None, Some(300)), rst(301, CLIENT)] {
            assert_eq!(fate(with_response(whole), &ends), ("answered", None, None));
        }
        // A half-close goes with the request.
        assert_eq!(fate(with_response(whole), &fins(Some(111), None)), ("answered", None, None));
    }

    #[test]
    fn whoever_ends_first_before_the_response_is_complete_has_ended_it() {
        let (nothing, part) = (Span::default(), span(200, 300, SERVER, false));
        assert_eq!(fate(with_response(nothing), &fins(None, Some(500))), ("unanswered", Some("server"), Some(500)));
        assert_eq!(fate(with_response(nothing), &rst(120, SERVER)), ("unanswered", Some("server"), Some(120)));
        assert_eq!(fate(with_response(nothing), &fins(Some(400), Some(500))), ("abandoned", Some("client"), Some(400)));
        assert_eq!(fate(with_response(part), &fins(Some(501), Some(500))), ("cut", Some("server"), Some(500)));
        assert_eq!(fate(with_response(part), &rst(400, CLIENT)), ("abandoned", Some("client"), Some(400)));
        // Whatever arrives later.
        assert_eq!(fate(with_response(span(500, 600, SERVER, true)), &fins(Some(400), None)).0, "abandoned");
        assert_eq!(fate(with_response(nothing), &fins(None, None)), ("unknown", None, None));
    }

    #[test]
    fn a_client_that_closes_behind_its_last_words_inside_tls_waits_for_nothing() {
        let sealed = Exchange { protocol: "tls", inferred: true, ..with_response(Span::default()) };
        assert_eq!(fate(sealed.clone(), &fins(Some(111), Some(150))), ("abandoned", Some("client"), Some(111)));
        assert_eq!(fate(sealed, &fins(Some(160), Some(150))).0, "unanswered");
        assert_eq!(fate(with_response(Span::default()), &fins(Some(111), Some(150))).0, "unanswered");
    }

    #[test]
    fn a_server_that_had_closed_before_answers_nothing() {
        let late = Ends { rst: Some(moment(130, SERVER)), ..fins(Some(140), Some(90)) };
        assert_eq!(fate(with_response(Span::default()), &late), ("unanswered", Some("server"), Some(130)));
        let (outcome, _, ended) = fate(with_response(Span::default()), &fins(Some(140), Some(90)));
        assert_eq!((outcome, ended), ("unanswered", Some(100)));
    }

    #[test]
    fn a_reset_of_somebody_else_is_the_paths() {
        let ends = Ends { is_foreign: true, ..rst(120, SERVER) };
        assert_eq!(fate(with_response(Span::default()), &ends), ("unanswered", Some("path"), Some(120)));
        // The server's own answer comes too late, unless it had begun before.
        assert_eq!(fate(with_response(span(200, 300, SERVER, true)), &ends), ("unanswered", Some("path"), Some(120)));
        let ends = Ends { is_foreign: true, ..rst(250, SERVER) };
        assert_eq!(fate(with_response(span(200, 240, SERVER, true)), &ends), ("answered", None, None));
    }

    #[test]
    fn where_bytes_are_missing_the_rest_may_have_come() {
        let mut exchange = with_response(span(200, 300, SERVER, false));
        exchange.doubt(GUESSED);
        assert_eq!(fate(exchange, &fins(None, Some(500))), ("unknown", None, None));
    }

    #[test]
    fn a_datagram_is_unanswered_after_a_long_silence() {
        let until = |ms: i64| Ends { silent_until: Some(ms * 1_000_000), ..Ends::default() };
        assert_eq!(fate(with_response(Span::default()), &until(5_099)), ("unknown", None, None));
        assert_eq!(fate(with_response(Span::default()), &until(5_100)), ("unanswered", None, None));
    }
}
