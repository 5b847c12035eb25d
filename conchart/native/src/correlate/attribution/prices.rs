//! What users pay for findings: the part of each delay in which a user's wait ran through it.

use std::collections::{HashMap, HashSet};

use super::{Attribution, Stretch};
use crate::correlate::sharing::{Piece, share};

/// A stretch of a connection that a finding explains.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    /// The finding.
    pub id: i32,
    pub stream: i32,
    /// `OPENING` (-1) stands for what is of no exchange.
    pub exchange: Option<i32>,
    pub start_at: i64,
    pub end_at: i64,
}

/// A stretch of an exchange for which a user waits, on the same or another connection.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub user_stream: i32,
    pub stream: i32,
    pub exchange: i32,
    pub start_at: i64,
    pub end_at: i64,
}

/// What a user waited for a finding, where several of its delays together count once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paid {
    pub id: i32,
    pub user_stream: i32,
    pub start_at: i64,
    pub end_at: i64,
    /// On the clock of what was waited on the connection, which stands still in between.
    pub from_ns: i64,
    pub until_ns: i64,
    /// Of a connection that nobody answered: it has no such clock.
    pub vain_ns: i64,
}

/// What a finding costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Delays.
    pub count: i64,
    /// The sum of these.
    pub cost_ns: i64,
    /// Delays that last until the last packet.
    pub unfinished: i64,
    /// Their median, if it is more than nothing.
    pub each_ns: Option<i64>,
    /// The median's interval, by ranks: it needs no distribution (Conover, Practical Nonparametric Statistics).
    pub between_ns: Option<(i64, i64)>,
    /// The mean confidence of the exchanges that were delayed.
    pub guessed: Option<f64>,
    /// What users waited for it on connections that were answered, and on others.
    pub critical_ns: i64,
    pub vain_ns: i64,
}

/// Fewer delays have no interval.
const LEAST_RANKED: usize = 8;
const Z_95: f64 = 1.96;

/// What is known of exchanges that findings delay.
#[derive(Debug, Default)]
pub struct Delayed {
    delays: Vec<Delay>,
    wanted: HashSet<(i32, i32)>,
    streams: HashSet<i32>,
    confidences: HashMap<(i32, i32), f64>,
    /// Connections whose last packet ended a response.
    done: HashSet<i32>,
}

impl Delayed {
    /// Takes the delays.
    #[must_use]
    pub fn of(delays: Vec<Delay>) -> Self {
        let wanted = delays.iter().filter_map(|delay| Some((delay.stream, delay.exchange?))).collect();
        let streams = delays.iter().map(|delay| delay.stream).collect();
        Self { delays, wanted, streams, confidences: HashMap::new(), done: HashSet::new() }
    }
}

impl Attribution {
    /// Takes an exchange: how sure it is, and when its response was done.
    pub fn know(
        &self,
        delayed: &mut Delayed,
        exchange: (i32, i32),
        confidence: Option<f64>,
        response_done_at: Option<i64>,
    ) {
        if let Some(confidence) = confidence.filter(|_| delayed.wanted.contains(&exchange)) {
            delayed.confidences.insert(exchange, confidence);
        }
        if delayed.streams.contains(&exchange.0) {
            let until = self.connections.get(&exchange.0).and_then(|connection| connection.goes_on_until);
            if until.is_some() && until == response_done_at {
                delayed.done.insert(exchange.0);
            }
        }
    }

    /// Tells what each finding costs, and keeps what users paid for it.
    pub fn price(&mut self, delayed: &Delayed, waits: &[Wait]) -> Vec<(i32, Price)> {
        self.paid = self.pay(&delayed.delays, waits);
        let mut delays: Vec<&Delay> = delayed.delays.iter().collect();
        delays.sort_by_key(|delay| (delay.id, delay.end_at.saturating_sub(delay.start_at)));
        let mut prices: Vec<(i32, Price)> = delays
            .chunk_by(|one, other| one.id == other.id)
            .filter_map(|of_one| Some((of_one.first()?.id, self.price_of(delayed, of_one))))
            .collect();
        let places: HashMap<i32, usize> = prices.iter().enumerate().map(|(place, (id, _))| (*id, place)).collect();
        for paid in &self.paid {
            if let Some((_, price)) = places.get(&paid.id).and_then(|&place| prices.get_mut(place)) {
                price.critical_ns += paid.until_ns - paid.from_ns;
                price.vain_ns += paid.vain_ns;
            }
        }
        prices
    }

    /// Of one finding, whose delays are in the order of their length.
    fn price_of(&self, delayed: &Delayed, delays: &[&Delay]) -> Price {
        let mut price = Price::default();
        let (mut sum, mut guesses) = (0.0, 0_u32);
        for delay in delays {
            let until = self.connections.get(&delay.stream).and_then(|connection| connection.goes_on_until);
            let until = until.filter(|_| !delayed.done.contains(&delay.stream));
            price.count += 1;
            price.cost_ns += delay.end_at - delay.start_at;
            price.unfinished +=
                i64::from(delay.end_at > delay.start_at && until.is_some_and(|until| delay.end_at >= until));
            let exchange = delay.exchange.map(|exchange| (delay.stream, exchange));
            if let Some(confidence) = exchange.and_then(|exchange| delayed.confidences.get(&exchange)) {
                sum += confidence;
                guesses += 1;
            }
        }
        price.guessed = (guesses > 0).then(|| sum / f64::from(guesses));
        let ranked = |rank: usize| delays.get(rank.max(1) - 1).map(|delay| delay.end_at - delay.start_at);
        let n = delays.len();
        // (n + 1) // 2 and n // 2 + 1 are the same rank, or both of the middle.
        price.each_ns = ranked(n.div_ceil(2)).zip(ranked(n / 2 + 1)).map(|(one, other)| (one + other) / 2);
        price.each_ns = price.each_ns.filter(|each_ns| *each_ns > 0);
        if price.each_ns.is_some() && n >= LEAST_RANKED {
            let (low, high) = ranks(n);
            price.between_ns = ranked(low).zip(ranked(high.min(n)));
        }
        price
    }

    /// Intersects delays with waits, and measures what is left on users' clocks.
    fn pay(&self, delays: &[Delay], waits: &[Wait]) -> Vec<Paid> {
        let mut of_exchange: HashMap<(i32, i32), Vec<&Wait>> = HashMap::new();
        for wait in waits {
            of_exchange.entry((wait.stream, wait.exchange)).or_default().push(wait);
        }
        let mut pieces = Vec::new();
        for delay in delays {
            let exchange = delay.exchange.and_then(|exchange| of_exchange.get(&(delay.stream, exchange)));
            for wait in exchange.into_iter().flatten() {
                if delay.start_at < wait.end_at && wait.start_at < delay.end_at {
                    let (start_at, end_at) = (delay.start_at.max(wait.start_at), delay.end_at.min(wait.end_at));
                    pieces.push((delay.id, wait.user_stream, start_at, end_at));
                }
            }
        }
        pieces.sort_unstable();
        let clocks = self.clocks();
        let mut paid: Vec<Paid> = Vec::new();
        for (id, user_stream, start_at, end_at) in pieces {
            match paid.last_mut() {
                Some(last) if (last.id, last.user_stream) == (id, user_stream) && start_at <= last.end_at => {
                    last.end_at = last.end_at.max(end_at);
                }
                _ => paid.push(Paid { id, user_stream, start_at, end_at, from_ns: 0, until_ns: 0, vain_ns: 0 }),
            }
        }
        for piece in &mut paid {
            let connection = self.connections.get(&piece.user_stream);
            if connection.is_some_and(|connection| !connection.is_answered) {
                piece.vain_ns = piece.end_at - piece.start_at;
            }
            if let Some(clock) = clocks.get(&piece.user_stream) {
                (piece.from_ns, piece.until_ns) = (shown(clock, piece.start_at), shown(clock, piece.end_at));
            }
        }
        paid
    }

    /// A user's clock runs while somebody waits on the connection, and stands still in between.
    fn clocks(&self) -> HashMap<i32, Vec<Tick>> {
        let mut clocks = HashMap::new();
        for stretches in self.stretches.chunk_by(|one, other| one.stream == other.stream) {
            if self.served(stretches).is_none() {
                continue;
            }
            let mut ran_ns = 0;
            let mut clock = Vec::with_capacity(stretches.len());
            for stretch in stretches.iter().filter(|stretch| stretch.is_wait()) {
                clock.push(Tick { runs_at: stretch.start_at, stops_at: stretch.end_at, ran_ns });
                ran_ns += Stretch::lasts_ns(stretch);
            }
            if let Some(first) = stretches.first() {
                clocks.insert(first.stream, clock);
            }
        }
        clocks
    }

    /// Tells how much of what each of these findings explains is counted with one that comes before it.
    #[must_use]
    pub fn shared(&self, order: &[i32]) -> Vec<(i32, i64)> {
        let pieces = self.paid.iter().filter(|paid| paid.until_ns > paid.from_ns);
        let pieces = pieces.map(|paid| Piece {
            id: paid.id,
            wait: paid.user_stream,
            start_at: paid.from_ns,
            end_at: paid.until_ns,
        });
        share(pieces.collect(), order)
    }
}

/// A clock runs from one instant to another, and had run before.
#[derive(Clone, Copy, Debug)]
struct Tick {
    runs_at: i64,
    stops_at: i64,
    ran_ns: i64,
}

/// What a clock shows at an instant.
fn shown(clock: &[Tick], at: i64) -> i64 {
    let before = clock.partition_point(|tick| tick.runs_at <= at);
    let last = before.checked_sub(1).and_then(|last| clock.get(last));
    last.map_or(0, |tick| tick.ran_ns + at.min(tick.stops_at) - tick.runs_at)
}

/// The ranks between which the median of so many lies, 95 times of 100.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "ranks are far below 2^52"
)]
fn ranks(n: usize) -> (usize, usize) {
    let (n, spread) = (n as f64, Z_95 * (n as f64).sqrt());
    (((n - spread) / 2.0).floor().max(1.0) as usize, (1.0 + (n + spread) / 2.0).ceil() as usize)
}
