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
/// How often order says nothing, at least.
const DOUBT: f64 = 0.1;
/// That a front has one more back has to be shown.
const AGAIN: f64 = 2.0;
/// A shorter capture tells as little of how often backs come by themselves.
const LEAST_SPAN_NS: f64 = 100_000_000.0;
/// No fact makes a candidate likelier or less likely than by this factor's logarithm: any fact may be wrong.
const MOST: f64 = 12.0;

/// The habits of all proxies of a capture.
#[derive(Clone, Debug)]
pub(super) struct Habits {
    routes: Vec<Habit>,
}

/// Habits between one front endpoint and one back endpoint.
#[derive(Clone, Debug)]
struct Habit {
    /// How often a back comes that no front caused, per nanosecond.
    uncaused: f64,
    /// The front has a back already, in every candidate.
    again: bool,
    /// What earlier links showed.
    known: Option<Box<Learned>>,
    learned: Learned,
}

/// How the facts of links, and of all candidates, are distributed.
#[derive(Clone, Debug)]
struct Learned {
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
    /// Those of any proxy, before anything is learned but what candidates look like.
    pub(super) fn of_any_proxy(routes: &[Route], edges: &[Candidate]) -> Self {
        let mut times = vec![(i64::MAX, i64::MIN, 0u32); routes.len()];
        let mut last = None;
        for edge in edges {
            if let Some((first_at, last_at, backs)) = times.get_mut(edge.route as usize) {
                (*first_at, *last_at) = ((*first_at).min(edge.began_at), (*last_at).max(edge.began_at));
                *backs += u32::from(last.replace((edge.back, edge.route)) != Some((edge.back, edge.route)));
            }
        }
        let again = edges.first().is_some_and(|edge| edge.again);
        let habit = |(route, (first_at, last_at, backs)): (&Route, (i64, i64, u32))| {
            // Backs that are left over may all have come by themselves.
            let uncaused = f64::from(route.alone) + if again { f64::from(backs) } else { 0.5 };
            Habit::of_any_proxy(uncaused / (last_at.saturating_sub(first_at) as f64).max(LEAST_SPAN_NS))
        };
        let mut habits = Self { routes: routes.iter().zip(times).map(habit).collect() };
        for edge in edges {
            if let Some(habit) = habits.routes.get_mut(edge.route as usize) {
                habit.learned.add_candidate(edge);
            }
        }
        habits
    }

    /// Those of a proxy of which links are known, towards the candidates that are left: what it does for a front once more is
    /// like what it did before, and how often backs come by themselves is seen in those that are left.
    pub(super) fn once_more(&self, routes: &[Route], edges: &[Candidate]) -> Self {
        let mut habits = Self::of_any_proxy(routes, edges);
        for (habit, known) in habits.routes.iter_mut().zip(&self.routes) {
            habit.again = true;
            habit.known = Some(Box::new(known.learned.clone()));
        }
        habits
    }

    /// Learns what the candidates' probabilities show.
    pub(super) fn learn(&mut self, edges: &[Candidate]) {
        self.routes.iter_mut().for_each(Habit::forget);
        for edge in edges {
            if let Some(habit) = self.routes.get_mut(edge.route as usize) {
                habit.learned.add_link(edge, edge.probability);
            }
        }
        self.routes.iter_mut().for_each(|habit| habit.learned.smooth());
    }

    /// Weighs the candidates.
    pub(super) fn weigh(&self, edges: &mut [Candidate]) {
        for edge in edges {
            edge.weight = self.routes.get(edge.route as usize).map_or(f64::NEG_INFINITY, |habit| habit.weight(edge));
        }
    }

    /// What told a link from others most clearly.
    pub(super) fn method(&self, edge: &Candidate) -> &'static str {
        let Some(habit) = self.routes.get(edge.route as usize) else { return "time" };
        let (told, habit) = (|gain: f64| gain > 2.0, &habit.learned);
        if edge.ids == Agreement::Same && told(habit.ids.gain(edge.ids as usize)) {
            "id"
        } else if edge.target == Agreement::Same && told(habit.target.gain(edge.target as usize)) {
            "target"
        } else if told(habit.request_grown.gain(edge.request_grown) + habit.response_grown.gain(edge.response_grown)) {
            "size"
        } else {
            "time"
        }
    }
}

impl Habit {
    fn of_any_proxy(uncaused: f64) -> Self {
        Self { uncaused, again: false, known: None, learned: Learned::of_any_proxy() }
    }

    fn forget(&mut self) {
        self.learned.forget(self.known.as_deref());
    }

    fn weight(&self, edge: &Candidate) -> f64 {
        let Learned { asked, answered, .. } = &self.learned;
        // Had the front not caused it, the back could have come at any time, and the front been answered at any.
        let asked = asked.get(edge.opening as usize).map_or(0.0, |asked| asked.density(edge.asked_ns));
        let answered = edge.answered_ns.map_or(1.0, |ns| answered.density(ns) * edge.window_ns as f64);
        let again = if self.again { AGAIN } else { 0.0 };
        (asked / self.uncaused).ln().clamp(-MOST, MOST) + answered.ln().clamp(-MOST, MOST) + self.learned.gain(edge) - again
    }
}

impl Learned {
    fn of_any_proxy() -> Self {
        let overtaken = Facts::new([0.85, 0.1, 0.03, 0.02], [0.4, 0.25, 0.15, 0.2]);
        let mut learned = Self {
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
            asked_overtaken: overtaken.clone(),
            answered_overtaken: overtaken,
        };
        learned.smooth();
        learned
    }

    /// Counts a candidate of any kind: most are coincidences.
    fn add_candidate(&mut self, edge: &Candidate) {
        self.opening.add_candidate(edge.opening as usize);
        self.order.add_candidate(edge.order as usize);
        self.ids.add_candidate(edge.ids as usize);
        self.target.add_candidate(edge.target as usize);
        self.status.add_candidate(edge.status as usize);
        self.request_grown.add_candidate(edge.request_grown);
        self.response_grown.add_candidate(edge.response_grown);
    }

    /// Forgets what links showed, but what was known before.
    fn forget(&mut self, known: Option<&Self>) {
        let nothing = Self::of_any_proxy();
        let known = known.unwrap_or(&nothing);
        self.asked.clone_from(&known.asked);
        self.answered.clone_from(&known.answered);
        self.opening.linked = known.opening.linked;
        self.order.linked = known.order.linked;
        self.ids.linked = known.ids.linked;
        self.target.linked = known.target.linked;
        self.status.linked = known.status.linked;
        self.request_grown.know(&known.request_grown);
        self.response_grown.know(&known.response_grown);
        self.asked_overtaken.linked = known.asked_overtaken.linked;
        self.answered_overtaken.linked = known.answered_overtaken.linked;
    }

    /// Counts a candidate as far as it is a link.
    fn add_link(&mut self, edge: &Candidate, p: f64) {
        if let Some(asked) = self.asked.get_mut(edge.opening as usize) {
            asked.add(edge.asked_ns, p);
        }
        if let Some(answered_ns) = edge.answered_ns {
            self.answered.add(answered_ns, p);
        }
        self.opening.add_link(edge.opening as usize, p);
        self.order.add_link(edge.order as usize, p);
        self.ids.add_link(edge.ids as usize, p);
        self.target.add_link(edge.target as usize, p);
        self.status.add_link(edge.status as usize, p);
        self.request_grown.add_link(edge.request_grown, p);
        self.response_grown.add_link(edge.response_grown, p);
        self.asked_overtaken.add_link(edge.asked_overtaken, p);
        self.answered_overtaken.add_link(edge.answered_overtaken, p);
    }

    fn smooth(&mut self) {
        self.asked.iter_mut().for_each(Delay::smooth);
        self.answered.smooth();
    }

    /// How much likelier the candidate's facts are of a link, but for its delays: the logarithm.
    fn gain(&self, edge: &Candidate) -> f64 {
        self.opening.gain(edge.opening as usize)
            + self.order.gain(edge.order as usize)
            + self.ids.gain(edge.ids as usize)
            + self.target.gain(edge.target as usize)
            + self.status.gain(edge.status as usize)
            + self.request_grown.gain(edge.request_grown)
            + self.response_grown.gain(edge.response_grown)
            + self.asked_overtaken.doubted(edge.asked_overtaken)
            + self.answered_overtaken.doubted(edge.answered_overtaken)
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

/// The distribution of a fact with few values, of links and of all candidates.
#[derive(Clone, Debug)]
struct Facts<const N: usize> {
    usual: [f64; N],
    chance: [f64; N],
    linked: [f64; N],
    all: [f64; N],
}

impl<const N: usize> Facts<N> {
    fn new(usual: [f64; N], chance: [f64; N]) -> Self {
        Self { usual, chance, linked: [0.0; N], all: [0.0; N] }
    }

    fn add_candidate(&mut self, value: usize) {
        if let Some(all) = self.all.get_mut(value) {
            *all += 1.0;
        }
    }

    fn add_link(&mut self, value: usize, p: f64) {
        if let Some(linked) = self.linked.get_mut(value) {
            *linked += p;
        }
    }

    /// Shares of links and of coincidences that have the value.
    fn shares(&self, value: usize) -> (f64, f64) {
        let of = |counts: &[f64; N]| counts.get(value).copied().unwrap_or_default();
        let sum = |counts: &[f64; N]| counts.iter().sum::<f64>();
        let linked = (of(&self.linked) + PRIOR * of(&self.usual)) / (sum(&self.linked) + PRIOR);
        let others = (sum(&self.all) - sum(&self.linked)).max(0.0);
        let chance = (of(&self.all) - of(&self.linked)).clamp(0.0, others) + PRIOR_CHANCE * of(&self.chance);
        (linked, chance / (others + PRIOR_CHANCE))
    }

    fn gain(&self, value: usize) -> f64 {
        let (linked, chance) = self.shares(value);
        (linked / chance).ln().clamp(-MOST, MOST)
    }

    /// As [`Self::gain`], of order: links are chosen such that few are overtaken, so that few are is little proof of them.
    fn doubted(&self, value: usize) -> f64 {
        let linked = self.linked.get(value).copied().unwrap_or_default() + PRIOR * self.usual.get(value).copied().unwrap_or_default();
        let linked = linked / (self.linked.iter().sum::<f64>() + PRIOR);
        let chance = self.chance.get(value).copied().unwrap_or(1.0);
        ((linked * (1.0 - DOUBT) + chance * DOUBT) / chance).ln()
    }
}

/// The distribution of by how much a message grows on its way through, of links and of all candidates.
#[derive(Clone, Debug, Default)]
struct Growth {
    linked: HashMap<i64, f64, FixedState>,
    all: HashMap<i64, f64, FixedState>,
    linked_sum: f64,
    all_sum: f64,
}

impl Growth {
    fn know(&mut self, known: &Self) {
        self.linked.clone_from(&known.linked);
        self.linked_sum = known.linked_sum;
    }

    fn add_candidate(&mut self, grown: Option<i64>) {
        if let Some(grown) = grown {
            *self.all.entry(grown).or_default() += 1.0;
            self.all_sum += 1.0;
        }
    }

    fn add_link(&mut self, grown: Option<i64>, p: f64) {
        if let Some(grown) = grown.filter(|_| p > 0.001) {
            *self.linked.entry(grown).or_default() += p;
            self.linked_sum += p;
        }
    }

    fn gain(&self, grown: Option<i64>) -> f64 {
        let Some(grown) = grown else { return 0.0 };
        let spread = |scale: f64| scale / 2.0 / (grown.unsigned_abs() as f64 + scale).powi(2);
        let unchanged = if grown == 0 { 0.3 } else { 0.0 };
        let of = |counts: &HashMap<i64, f64, FixedState>| counts.get(&grown).copied().unwrap_or_default();
        let linked = (of(&self.linked) + PRIOR * (unchanged + 0.7 * spread(200.0))) / (self.linked_sum + PRIOR);
        let others = (self.all_sum - self.linked_sum).max(0.0);
        let chance = (of(&self.all) - of(&self.linked)).max(0.0) + PRIOR_CHANCE * spread(2_000.0);
        (linked * (others + PRIOR_CHANCE) / chance).ln().clamp(-MOST, MOST)
    }
}
