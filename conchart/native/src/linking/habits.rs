//! A proxy's habits: how the facts of a link are distributed, and those of a mere coincidence.
//!
//! In: candidates, each with the probability that it is a link. Out: the weight of each candidate: the logarithm of how much
//! likelier its facts are of a link than of a coincidence. Of few candidates habits are those of any proxy.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::candidates::{Agreement, Candidate, Route};

/// Bins of a delay's distribution per doubling.
const PER_OCTAVE: f64 = 4.0;
/// Bins: up to 2^30 µs.
const BINS: usize = 120;
/// How many links the habits of any proxy weigh as much as.
const PRIOR: f64 = 6.0;
/// How many coincidences those of any capture weigh as much as.
const PRIOR_CHANCE: f64 = 40.0;
/// That a front has one more back has to be shown.
const AGAIN: f64 = 2.0;
/// How often order says nothing, at least.
const DOUBT: f64 = 0.15;
/// A shorter capture tells as little of how often backs come by themselves.
const LEAST_SPAN_NS: f64 = 100_000_000.0;
/// No fact makes a candidate likelier or less likely than by this factor's logarithm: any fact may be wrong.
const MOST: f64 = 12.0;

/// The habits of all proxies of a capture.
#[derive(Debug)]
pub(super) struct Habits {
    routes: Vec<Habit>,
}

/// Habits between one front endpoint and one back endpoint.
#[derive(Clone, Debug)]
struct Habit {
    /// How often a back comes that no front caused, per nanosecond.
    uncaused: f64,
    learned: Learned,
}

/// What the links of a route have in common.
#[derive(Clone, Debug)]
struct Learned {
    /// Anything was learned.
    known: bool,
    asked: [Delay; 3],
    answered: Delay,
    opening: Facts<3>,
    order: Facts<3>,
    ids: Facts<3>,
    target: Facts<3>,
    status: Facts<3>,
    request_grown: Growth,
    response_grown: Growth,
    asked_overtaken: Facts<4>,
    answered_overtaken: Facts<4>,
}

impl Habits {
    /// Those of any proxy, before anything is learned.
    pub(super) fn of_any_proxy(routes: &[Route], edges: &[Candidate]) -> Self {
        let again = edges.first().is_some_and(|edge| edge.again);
        let mut times = vec![(i64::MAX, i64::MIN); routes.len()];
        let mut backs: Vec<(u32, u32)> = edges.iter().map(|edge| (edge.route, edge.back)).collect();
        backs.dedup();
        backs.sort_unstable();
        backs.dedup();
        for edge in edges {
            if let Some((first, last)) = times.get_mut(edge.route as usize) {
                (*first, *last) = ((*first).min(edge.began_at), (*last).max(edge.began_at));
            }
        }
        let habit = |(route, &(first, last)): (&Route, &(i64, i64))| Habit {
            uncaused: (f64::from(route.alone) + 0.5) / (last.saturating_sub(first) as f64).max(LEAST_SPAN_NS),
            learned: Learned::nothing(),
        };
        let mut habits: Vec<Habit> = routes.iter().zip(&times).map(habit).collect();
        if again {
            // Backs that are left over may all have come by themselves.
            for of_route in backs.chunk_by(|one, other| one.0 == other.0) {
                let number = of_route.first().map_or(0, |&(route, _)| route as usize);
                if let Some((habit, &(first, last))) = habits.get_mut(number).zip(times.get(number)) {
                    habit.uncaused += of_route.len() as f64 / (last.saturating_sub(first) as f64).max(LEAST_SPAN_NS);
                }
            }
        }
        habits.iter_mut().for_each(Habit::smooth);
        Self { routes: habits }
    }

    /// Learns what the candidates' probabilities show.
    pub(super) fn learn(&mut self, edges: &[Candidate]) {
        for habit in &mut self.routes {
            habit.learned = Learned::nothing();
            habit.learned.known = true;
        }
        for edge in edges {
            if let Some(habit) = self.routes.get_mut(edge.route as usize) {
                habit.learned.add(edge, edge.probability);
            }
        }
        self.routes.iter_mut().for_each(Habit::smooth);
    }

    /// Weighs the candidates.
    pub(super) fn weigh(&self, edges: &mut [Candidate]) {
        for edge in edges {
            edge.weight = self.routes.get(edge.route as usize).map_or(f64::NEG_INFINITY, |route| route.weight(edge));
        }
    }

    /// What told a link from others most clearly.
    pub(super) fn method(&self, edge: &Candidate) -> &'static str {
        let Some(route) = self.routes.get(edge.route as usize) else { return "time" };
        let told = |gain: f64| gain > 2.0;
        if edge.ids == Agreement::Same && told(route.learned.ids.gain(edge.ids as usize)) {
            "id"
        } else if edge.target == Agreement::Same && told(route.learned.target.gain(edge.target as usize)) {
            "target"
        } else if told(route.learned.request_grown.gain(edge.request_grown) + route.learned.response_grown.gain(edge.response_grown)) {
            "size"
        } else {
            "time"
        }
    }
}

impl Habit {
    fn smooth(&mut self) {
        self.learned.asked.iter_mut().for_each(Delay::smooth);
        self.learned.answered.smooth();
    }

    fn weight(&self, edge: &Candidate) -> f64 {
        let learned = &self.learned;
        // Had the front not caused it, the back could have come at any time, and the front been answered at any.
        let asked = learned.asked.get(edge.opening as usize).map_or(0.0, |asked| asked.density(edge.asked_ns));
        let answered = edge.answered_ns.map_or(1.0, |ns| learned.answered.density(ns) * edge.window_ns as f64);
        let facts = learned.opening.gain(edge.opening as usize)
            + learned.order.gain(edge.order as usize)
            + learned.ids.gain(edge.ids as usize)
            + learned.target.gain(edge.target as usize)
            + learned.status.gain(edge.status as usize)
            + learned.request_grown.gain(edge.request_grown)
            + learned.response_grown.gain(edge.response_grown)
            + learned.asked_overtaken.doubted(edge.asked_overtaken)
            + learned.answered_overtaken.doubted(edge.answered_overtaken);
        (asked / self.uncaused).ln().clamp(-MOST, MOST)
            + answered.ln().clamp(-MOST, MOST)
            // What is usual of all candidates is not known to be usual of chance before some are links.
            + if learned.known { facts } else { 0.0 }
            - if edge.again { AGAIN } else { 0.0 }
    }
}

impl Learned {
    fn nothing() -> Self {
        Self {
            known: false,
            asked: [Delay::new(), Delay::new(), Delay::new()],
            answered: Delay::new(),
            // Reused, for it, before.
            opening: Facts::new([0.5, 0.45, 0.05], [0.5, 0.4, 0.1]),
            // The back answers first, the front does, one answer is missing.
            order: Facts::new([0.96, 0.01, 0.03], [0.5, 0.4, 0.1]),
            // Same, different, unknown.
            ids: Facts::new([0.08, 0.02, 0.9], [0.0005, 0.0995, 0.9]),
            target: Facts::new([0.42, 0.08, 0.5], [0.05, 0.45, 0.5]),
            status: Facts::new([0.48, 0.02, 0.5], [0.3, 0.2, 0.5]),
            request_grown: Growth::default(),
            response_grown: Growth::default(),
            asked_overtaken: Facts::new([0.85, 0.1, 0.03, 0.02], [0.4, 0.25, 0.15, 0.2]),
            answered_overtaken: Facts::new([0.85, 0.1, 0.03, 0.02], [0.4, 0.25, 0.15, 0.2]),
        }
    }

    fn add(&mut self, edge: &Candidate, p: f64) {
        if let Some(asked) = self.asked.get_mut(edge.opening as usize) {
            asked.add(edge.asked_ns, p);
        }
        if let Some(answered_ns) = edge.answered_ns {
            self.answered.add(answered_ns, p);
        }
        self.opening.add(edge.opening as usize, p);
        self.order.add(edge.order as usize, p);
        self.ids.add(edge.ids as usize, p);
        self.target.add(edge.target as usize, p);
        self.status.add(edge.status as usize, p);
        self.request_grown.add(edge.request_grown, p);
        self.response_grown.add(edge.response_grown, p);
        self.asked_overtaken.add(edge.asked_overtaken, p);
        self.answered_overtaken.add(edge.answered_overtaken, p);
    }
}

/// The distribution of a delay.
#[derive(Clone, Debug)]
struct Delay {
    counted: Vec<f64>,
    density: Vec<f64>,
}

impl Delay {
    fn new() -> Self {
        Self { counted: vec![0.0; BINS], density: vec![0.0; BINS] }
    }

    fn bin(ns: i64) -> usize {
        let octaves = (1.0 + ns as f64 / 1_000.0).log2();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
        let bin = (octaves * PER_OCTAVE) as usize;
        bin.min(BINS - 1)
    }

    /// Nanoseconds that a bin is wide.
    fn width(bin: usize) -> f64 {
        let edge = |bin: usize| ((bin as f64 / PER_OCTAVE).exp2() - 1.0) * 1_000.0;
        edge(bin + 1) - edge(bin)
    }

    fn add(&mut self, ns: i64, p: f64) {
        if let Some(counted) = self.counted.get_mut(Self::bin(ns)) {
            *counted += p;
        }
    }

    /// Makes densities of counts: neighbours lend to each other, any proxy lends a broad hump around 0.3 ms.
    fn smooth(&mut self) {
        const KERNEL: [f64; 5] = [1.0 / 16.0, 4.0 / 16.0, 6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0];
        let usual: Vec<f64> = (0..BINS)
            .map(|bin| {
                let octaves = bin as f64 / PER_OCTAVE - (300f64).log2();
                let deviation = if octaves < 0.0 { 4.0 } else { 6.0 };
                (-(octaves / deviation).powi(2) / 2.0).exp()
            })
            .collect();
        let usual_sum: f64 = usual.iter().sum();
        let total: f64 = self.counted.iter().sum();
        self.density = (0..BINS)
            .map(|bin| {
                let near = KERNEL.iter().enumerate().filter_map(|(at, share)| {
                    let from = (bin + at).checked_sub(2)?;
                    Some(share * self.counted.get(from)?)
                });
                let counted: f64 = near.sum();
                let lent = PRIOR * usual.get(bin).copied().unwrap_or_default() / usual_sum;
                (counted + lent) / (total + PRIOR) / Self::width(bin)
            })
            .collect();
    }

    /// Per nanosecond.
    fn density(&self, ns: i64) -> f64 {
        self.density.get(Self::bin(ns)).copied().unwrap_or_default()
    }
}

/// The distribution of a fact with few values.
#[derive(Clone, Debug)]
struct Facts<const N: usize> {
    linked: [f64; N],
    all: [f64; N],
}

impl<const N: usize> Facts<N> {
    fn new(linked: [f64; N], chance: [f64; N]) -> Self {
        Self { linked: linked.map(|share| share * PRIOR), all: chance.map(|share| share * PRIOR_CHANCE) }
    }

    fn add(&mut self, value: usize, p: f64) {
        if let Some(linked) = self.linked.get_mut(value) {
            *linked += p;
        }
        if let Some(all) = self.all.get_mut(value) {
            *all += 1.0 - p;
        }
    }

    fn gain(&self, value: usize) -> f64 {
        let share = |counts: &[f64; N]| counts.get(value).copied().unwrap_or_default() / counts.iter().sum::<f64>();
        (share(&self.linked) / share(&self.all)).ln().clamp(-MOST, MOST)
    }
}

impl Facts<4> {
    /// Links are chosen such that few are overtaken: that few are is no proof of them.
    fn doubted(&self, value: usize) -> f64 {
        let share = |counts: &[f64; 4]| counts.get(value).copied().unwrap_or_default() / counts.iter().sum::<f64>();
        let (linked, all) = (share(&self.linked), share(&self.all));
        ((linked * (1.0 - DOUBT) + all * DOUBT) / all).ln()
    }
}

/// The distribution of by how much a message grows on its way through.
#[derive(Clone, Debug, Default)]
struct Growth {
    linked: HashMap<i64, f64, FixedState>,
    all: HashMap<i64, f64, FixedState>,
    linked_sum: f64,
    all_sum: f64,
}

impl Growth {
    fn add(&mut self, grown: Option<i64>, p: f64) {
        let Some(grown) = grown else { return };
        if p > 0.001 {
            *self.linked.entry(grown).or_default() += p;
            self.linked_sum += p;
        }
        *self.all.entry(grown).or_default() += 1.0 - p;
        self.all_sum += 1.0 - p;
    }

    fn gain(&self, grown: Option<i64>) -> f64 {
        let Some(grown) = grown else { return 0.0 };
        let spread = |scale: f64| scale / 2.0 / (grown.unsigned_abs() as f64 + scale).powi(2);
        let unchanged = if grown == 0 { 0.3 } else { 0.0 };
        let linked = self.linked.get(&grown).copied().unwrap_or_default() + PRIOR * (unchanged + 0.7 * spread(200.0));
        let all = self.all.get(&grown).copied().unwrap_or_default() + PRIOR_CHANCE * spread(2_000.0);
        let gain = (linked / (self.linked_sum + PRIOR) * (self.all_sum + PRIOR_CHANCE) / all).ln();
        gain.clamp(-MOST, MOST)
    }
}
