//! A proxy's habits: how the facts of a link are distributed, and those of a mere coincidence.
//!
//! In: candidates, each with the probability that it is a link. Out: the weight of each candidate: the logarithm of how much
//! likelier its facts are of a link than of a coincidence. Of few candidates habits are those of any proxy.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::candidates::{Agreement, Candidate, Route};
use super::delay::Delay;
use super::marginals::{Counts, MOST_COUNTED, along, marginals};
use super::model::{PRIOR, PRIOR_CHANCE};
use super::order::MOST_OVERTAKEN;
use super::pairs::Pairs;
use super::rivals::{Expectations, weigh_rivals};
use super::visits::Chains;

/// Candidates that weigh less than another of their back by this have no part in what follows.
const HOPELESS: f64 = 10.0;
/// The same of an application that asks its stores.
const ANY_COUNTS: Counts = [0.3, 0.3, 0.2, 0.12, 0.08];
/// By how much trust shrinks at most where fronts have any number of backs.
const CROWDED: f64 = 0.4;
/// Where at least so many fronts have one back, a back is not taken for another front's.
const EXCLUSIVE: f64 = 0.8;
/// Bounds of the factor by which one more overtaking is less likely.
const LEAST_OVERTAKING: f64 = 0.08;
const MOST_OVERTAKING: f64 = 0.6;
/// How often a front has no back, one, two … where nothing else is known.
const USUAL_COUNTS: Counts = [0.1, 0.83, 0.04, 0.02, 0.01];
/// A shorter capture tells as little of how often backs come by themselves.
const LEAST_SPAN_NS: f64 = 100_000_000.0;
/// No fact makes a candidate likelier or less likely than by this factor's logarithm: any fact may be wrong.
const MOST: f64 = 12.0;

/// The habits of all proxies of a capture.
#[derive(Clone, Debug)]
pub(super) struct Habits {
    routes: Vec<Habit>,
    /// Of each front endpoint, how often a front has so many backs.
    front_endpoints: Vec<Counts>,
}

/// Habits between one front endpoint and one back endpoint.
#[derive(Clone, Debug)]
struct Habit {
    /// Index of the front endpoint.
    front_endpoint: usize,
    /// How often a back comes that no front caused, per nanosecond: the logarithm.
    uncaused: f64,
    /// How often a back comes that has candidates, per nanosecond.
    left: f64,
    /// Where fronts keep their connections: how often they seem not to.
    held: Option<f64>,
    /// What earlier links showed.
    earlier: Option<Box<Learned>>,
    learned: Learned,
}

/// How the facts of links, and of all candidates, are distributed.
#[derive(Clone, Debug)]
struct Learned {
    requested: [Delay; 3],
    answered: Delay,
    opening: Facts<3>,
    answering: Facts<3>,
    ids: Facts<3>,
    target: Facts<3>,
    status: Facts<3>,
    request_grown: Growth,
    response_grown: Growth,
    requested_overtaken: Overtaking,
    answered_overtaken: Overtaking,
    kinds: Pairs,
    lines: Pairs,
    handover: Facts<3>,
}

impl Habits {
    /// Those of any proxy, before anything is learned but what candidates look like.
    pub(super) fn of_any_proxy(routes: &[Route], candidates: &[Candidate]) -> Self {
        let mut times = vec![(i64::MAX, i64::MIN, 0u32); routes.len()];
        let mut last = None;
        for candidate in candidates {
            if let Some((first_at, last_at, backs)) = times.get_mut(candidate.route as usize) {
                (*first_at, *last_at) = ((*first_at).min(candidate.began_at), (*last_at).max(candidate.began_at));
                *backs += u32::from(
                    last.replace((candidate.back, candidate.route)) != Some((candidate.back, candidate.route)),
                );
            }
        }
        let habit = |(route, (first_at, last_at, backs)): (&Route, (i64, i64, u32))| {
            let span = (last_at.saturating_sub(first_at) as f64).max(LEAST_SPAN_NS);
            Habit {
                front_endpoint: route.front_endpoint,
                uncaused: ((f64::from(route.alone) + 0.5) / span).ln(),
                left: f64::from(backs) / span,
                held: route.held,
                earlier: None,
                learned: Learned::of_any_proxy(),
            }
        };
        let front_endpoints = routes.iter().map(|route| route.front_endpoint + 1).max().unwrap_or_default();
        let mut habits = Self {
            routes: routes.iter().zip(times).map(habit).collect(),
            front_endpoints: vec![USUAL_COUNTS; front_endpoints],
        };
        for candidate in candidates {
            if let Some(habit) = habits.routes.get_mut(candidate.route as usize) {
                habit.learned.add_candidate(candidate);
            }
        }
        habits.routes.iter_mut().for_each(|habit| habit.learned.smooth());
        habits
    }

    /// Those of a proxy of which links are known, towards the candidates that are left: what it does for a front once more is
    /// like what it did before, and how often backs come by themselves is seen in those that are left.
    pub(super) fn once_more(&self, routes: &[Route], candidates: &[Candidate]) -> Self {
        let mut habits = Self::of_any_proxy(routes, candidates);
        for (habit, earlier) in habits.routes.iter_mut().zip(&self.routes) {
            // Backs that are left over may all have come by themselves.
            habit.uncaused = (habit.uncaused.exp() + habit.left).ln();
            habit.earlier = Some(Box::new(earlier.learned.clone()));
        }
        habits
    }

    /// How often fronts like the candidate's have so many backs.
    pub(super) fn counts(&self, candidate: &Candidate) -> &Counts {
        let front_endpoint =
            self.routes.get(candidate.route as usize).and_then(|habit| self.front_endpoints.get(habit.front_endpoint));
        front_endpoint.unwrap_or(&USUAL_COUNTS)
    }

    /// Takes it for usual that fronts have any number of backs.
    pub(super) fn often(&mut self) {
        self.front_endpoints.fill(ANY_COUNTS);
    }

    /// How much likelier the candidates make what was seen than chance does: the logarithm.
    pub(super) fn likelihood(&self, candidates: &[Candidate]) -> f64 {
        let weights: f64 = candidates.iter().map(|candidate| candidate.weight * candidate.probability).sum();
        let mut counts = 0.0;
        for (front_endpoint, backs) in backs_of_fronts(&self.routes, candidates).into_values() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
            let whole = (backs.round() as usize).min(MOST_COUNTED);
            let share =
                self.front_endpoints.get(front_endpoint).and_then(|counts| counts.get(whole)).copied().unwrap_or(1.0);
            counts += share.ln();
        }
        weights + counts
    }

    /// How far a probability is to be trusted, as measured in `tests/hops`: less where fronts have any number of backs, the more
    /// of them wait side by side; and where it is only guessed what is an exchange (HTTP/2 without keys).
    pub(super) fn trust(&self, candidate: &Candidate) -> f64 {
        let [_, once, ..] = self.counts(candidate);
        let crowd = 1.0 - 1.0 / f64::from(candidate.rivals.max(1));
        let held = self.routes.get(candidate.route as usize).and_then(|habit| habit.held);
        if let Some(off) = held {
            return (1.0 - 2.0 * off) * (candidate.seen + 0.3).min(1.0);
        }
        let often = CROWDED * (1.0 - once / EXCLUSIVE).max(0.0) * crowd;
        (1.0 - often) * (candidate.seen + 0.3).min(1.0)
    }

    /// Learns how many backs fronts have.
    fn count_backs(&mut self, candidates: &[Candidate]) {
        self.front_endpoints.fill(USUAL_COUNTS.map(|share| share * PRIOR));
        for (front_endpoint, backs) in backs_of_fronts(&self.routes, candidates).into_values() {
            let Some(counts) = self.front_endpoints.get_mut(front_endpoint) else { continue };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
            let whole = (backs as usize).min(MOST_COUNTED);
            let more = if whole < MOST_COUNTED { backs - whole as f64 } else { 0.0 };
            for (count, share) in counts.iter_mut().skip(whole).zip([1.0 - more, more]) {
                *count += share;
            }
        }
        for counts in &mut self.front_endpoints {
            let sum: f64 = counts.iter().sum();
            counts.iter_mut().for_each(|count| *count /= sum);
        }
    }

    /// Learns what the candidates' probabilities show.
    pub(super) fn learn(&mut self, candidates: &[Candidate]) {
        let nothing = Learned::of_any_proxy();
        self.routes.iter_mut().for_each(|habit| habit.forget(&nothing));
        for candidate in candidates {
            if let Some(habit) = self.routes.get_mut(candidate.route as usize) {
                habit.learned.add_link(candidate, candidate.probability);
            }
        }
        self.routes.iter_mut().for_each(|habit| habit.learned.smooth());
        self.count_backs(candidates);
    }

    /// Gives the candidates the probabilities that these habits make of them.
    pub(super) fn judge(&self, candidates: &mut Vec<Candidate>, fronts: usize) {
        self.weigh(candidates);
        marginals(candidates, fronts, |candidate| self.counts(candidate));
        weigh_rivals(candidates, fronts, self.routes.len(), self);
    }

    /// The same of candidates whose neighbours on their connection are known.
    pub(super) fn judge_along(&self, candidates: &mut [Candidate], chains: &mut Chains) {
        for candidate in candidates.iter_mut() {
            if let Some(habit) = self.routes.get(candidate.route as usize) {
                candidate.weight = habit.learned.regardless_of_place(candidate);
            }
        }
        chains.follow(candidates);
        along(candidates, chains);
    }

    /// Weighs the candidates, and drops those that are hopeless beside another one of their back.
    fn weigh(&self, candidates: &mut Vec<Candidate>) {
        for candidate in candidates.iter_mut() {
            if let Some(habit) = self.routes.get(candidate.route as usize) {
                habit.weigh(candidate);
            }
        }
        let mut best: HashMap<u32, f64, FixedState> = HashMap::default();
        for of_back in candidates.chunk_by(|one, other| one.back == other.back) {
            let most = of_back.iter().map(|candidate| candidate.weight).fold(f64::NEG_INFINITY, f64::max);
            best.extend(of_back.first().map(|candidate| (candidate.back, most)));
        }
        candidates
            .retain(|candidate| candidate.weight >= best.get(&candidate.back).copied().unwrap_or_default() - HOPELESS);
    }

    /// What told a link from others most clearly.
    pub(super) fn method(&self, candidate: &Candidate) -> &'static str {
        let Some(habit) = self.routes.get(candidate.route as usize) else { return "time" };
        let (is_clear, habit) = (|gain: f64| gain > 2.0, &habit.learned);
        if candidate.ids == Agreement::Same && is_clear(habit.ids.gain(candidate.ids as usize)) {
            "id"
        } else if candidate.target == Agreement::Same && is_clear(habit.target.gain(candidate.target as usize)) {
            "target"
        } else if is_clear(
            habit.request_grown.gain(candidate.request_grown) + habit.response_grown.gain(candidate.response_grown),
        ) {
            "size"
        } else {
            "time"
        }
    }
}

/// Of each front that has candidates: the index of its endpoint, and how many backs it has.
fn backs_of_fronts(routes: &[Habit], candidates: &[Candidate]) -> HashMap<u32, (usize, f64), FixedState> {
    let mut backs: HashMap<u32, (usize, f64), FixedState> = HashMap::default();
    for candidate in candidates {
        if let Some(habit) = routes.get(candidate.route as usize) {
            backs.entry(candidate.front).or_insert((habit.front_endpoint, 0.0)).1 += candidate.probability;
        }
    }
    backs
}

impl Habit {
    fn forget(&mut self, nothing: &Learned) {
        self.learned.forget(self.earlier.as_deref().unwrap_or(nothing));
    }

    fn weigh(&self, candidate: &mut Candidate) {
        let learned = &self.learned;
        // Had the front not caused it, the back could have come at any time, and the front been answered at any.
        let requested = learned
            .requested
            .get(candidate.opening as usize)
            .map_or(-MOST, |requested| requested.density(candidate.requested_ns) - self.uncaused);
        let answered = candidate.answered_ns.map_or(0.0, |ns| learned.answered.density(ns) + candidate.window);
        candidate.coming = requested.clamp(-MOST, MOST) + learned.coming(candidate);
        candidate.going = answered.clamp(-MOST, MOST) + learned.going(candidate);
        candidate.weight = candidate.coming + candidate.going + learned.contents(candidate);
    }
}

impl Learned {
    fn of_any_proxy() -> Self {
        let mut learned = Self {
            requested: Default::default(),
            answered: Delay::default(),
            // Reused, for it, before.
            opening: Facts::new([0.5, 0.45, 0.05], [0.5, 0.4, 0.1]),
            // The back answers first, the front does, one answer is missing.
            answering: Facts::new([0.96, 0.01, 0.03], [0.5, 0.4, 0.1]),
            // Same, different, unknown.
            ids: Facts::new([0.08, 0.02, 0.9], [0.0005, 0.0995, 0.9]),
            target: Facts::new([0.42, 0.08, 0.5], [0.05, 0.45, 0.5]),
            status: Facts::new([0.48, 0.02, 0.5], [0.3, 0.2, 0.5]),
            request_grown: Growth::default(),
            response_grown: Growth::default(),
            requested_overtaken: Overtaking::default(),
            answered_overtaken: Overtaking::default(),
            kinds: Pairs::default(),
            lines: Pairs::default(),
            // The front is over before the next back on the connection, it is not, there is none.
            handover: Facts::new([0.3, 0.2, 0.5], [0.3, 0.2, 0.5]),
        };
        learned.smooth();
        learned
    }

    /// Counts a candidate of any kind: most are coincidences.
    fn add_candidate(&mut self, candidate: &Candidate) {
        self.opening.add_candidate(candidate.opening as usize);
        self.answering.add_candidate(candidate.answering as usize);
        self.ids.add_candidate(candidate.ids as usize);
        self.target.add_candidate(candidate.target as usize);
        self.status.add_candidate(candidate.status as usize);
        self.request_grown.add_candidate(candidate.request_grown);
        self.response_grown.add_candidate(candidate.response_grown);
        self.kinds.add_candidate(candidate.kinds);
        self.lines.add_candidate(candidate.lines);
        self.handover.add_candidate(candidate.handover as usize);
    }

    /// Forgets what links showed, but what was known before.
    fn forget(&mut self, earlier: &Self) {
        self.requested.clone_from(&earlier.requested);
        self.answered.clone_from(&earlier.answered);
        self.opening.linked = earlier.opening.linked;
        self.answering.linked = earlier.answering.linked;
        self.ids.linked = earlier.ids.linked;
        self.target.linked = earlier.target.linked;
        self.status.linked = earlier.status.linked;
        self.request_grown.know(&earlier.request_grown);
        self.response_grown.know(&earlier.response_grown);
        self.requested_overtaken = earlier.requested_overtaken;
        self.answered_overtaken = earlier.answered_overtaken;
        self.kinds.know(&earlier.kinds);
        self.lines.know(&earlier.lines);
        self.handover.linked = earlier.handover.linked;
    }

    /// Counts a candidate as far as it is a link.
    fn add_link(&mut self, candidate: &Candidate, p: f64) {
        if let Some(requested) = self.requested.get_mut(candidate.opening as usize) {
            requested.add(candidate.requested_ns, p);
        }
        if let Some(answered_ns) = candidate.answered_ns {
            self.answered.add(answered_ns, p);
        }
        self.opening.add_link(candidate.opening as usize, p);
        self.answering.add_link(candidate.answering as usize, p);
        self.ids.add_link(candidate.ids as usize, p);
        self.target.add_link(candidate.target as usize, p);
        self.status.add_link(candidate.status as usize, p);
        self.request_grown.add_link(candidate.request_grown, p);
        self.response_grown.add_link(candidate.response_grown, p);
        self.requested_overtaken.add(candidate.requested_overtaken, p);
        self.answered_overtaken.add(candidate.answered_overtaken, p);
        self.kinds.add_link(candidate.kinds, p);
        self.lines.add_link(candidate.lines, p);
        self.handover.add_link(candidate.handover as usize, p);
    }

    fn smooth(&mut self) {
        self.requested.iter_mut().for_each(Delay::smooth);
        self.answered.smooth();
        self.opening.smooth();
        self.answering.smooth();
        self.ids.smooth();
        self.target.smooth();
        self.status.smooth();
        self.request_grown.smooth();
        self.response_grown.smooth();
        self.kinds.smooth();
        self.lines.smooth();
        self.handover.smooth();
    }

    /// How much likelier a link makes how the request came through, but for its delay: the logarithm.
    fn coming(&self, candidate: &Candidate) -> f64 {
        self.opening.gain(candidate.opening as usize)
            + self.request_grown.gain(candidate.request_grown)
            + self.requested_overtaken.gain(candidate.requested_overtaken)
    }

    /// The same of the response.
    fn going(&self, candidate: &Candidate) -> f64 {
        self.answering.gain(candidate.answering as usize)
            + self.response_grown.gain(candidate.response_grown)
            + self.answered_overtaken.gain(candidate.answered_overtaken)
    }

    /// The same of what does not depend on where in a visit an exchange stands.
    fn regardless_of_place(&self, candidate: &Candidate) -> f64 {
        self.ids.gain(candidate.ids as usize)
            + self.kinds.gain(candidate.kinds)
            + self.lines.gain(candidate.lines)
            + self.answering.gain(candidate.answering as usize)
    }

    /// The same of what both messages say.
    fn contents(&self, candidate: &Candidate) -> f64 {
        self.ids.gain(candidate.ids as usize)
            + self.target.gain(candidate.target as usize)
            + self.status.gain(candidate.status as usize)
            + self.kinds.gain(candidate.kinds)
            + self.lines.gain(candidate.lines)
            + self.handover.gain(candidate.handover as usize)
    }
}

impl Expectations for Habits {
    fn counts(&self, candidate: &Candidate) -> &Counts {
        Self::counts(self, candidate)
    }

    fn counted_twice(&self, candidate: &Candidate) -> [f64; 2] {
        let Some(Habit { learned, .. }) = self.routes.get(candidate.route as usize) else { return [0.0; 2] };
        let twice = |crosses: Option<bool>, overtaking: &Overtaking| match crosses {
            Some(true) => overtaking.factor().ln(),
            Some(false) => -overtaking.factor().ln(),
            None => 0.0,
        };
        [
            twice(candidate.requested_crosses, &learned.requested_overtaken),
            twice(candidate.answered_crosses, &learned.answered_overtaken),
        ]
    }
}

/// The distribution of a fact with few values, of links and of all candidates.
#[derive(Clone, Debug)]
struct Facts<const N: usize> {
    usual: [f64; N],
    chance: [f64; N],
    linked: [f64; N],
    all: [f64; N],
    /// What [`Self::smooth`] makes of them.
    gains: [f64; N],
}

impl<const N: usize> Facts<N> {
    fn new(usual: [f64; N], chance: [f64; N]) -> Self {
        Self { usual, chance, linked: [0.0; N], all: [0.0; N], gains: [0.0; N] }
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

    /// Computes how much likelier each value is of a link than of a coincidence: the logarithm.
    fn smooth(&mut self) {
        let linked_sum: f64 = self.linked.iter().sum();
        let others_sum = (self.all.iter().sum::<f64>() - linked_sum).max(0.0);
        let values = self.gains.iter_mut().zip(&self.usual).zip(&self.chance).zip(&self.linked).zip(&self.all);
        for ((((gain, usual), chance), linked), all) in values {
            let others = (all - linked).clamp(0.0, others_sum);
            let linked = (linked + PRIOR * usual) / (linked_sum + PRIOR);
            let chance = (others + PRIOR_CHANCE * chance) / (others_sum + PRIOR_CHANCE);
            *gain = (linked / chance).ln().clamp(-MOST, MOST);
        }
    }

    fn gain(&self, value: usize) -> f64 {
        self.gains.get(value).copied().unwrap_or_default()
    }
}

/// How many overtake each other: of a link, each one more is less likely by a factor; of a coincidence, any number is as likely.
///
/// A proxy takes and answers requests in the order in which they come, but for what it does side by side. Were any factor
/// possible, the last to come could always be the first to be served: that explains delays best, and is true of no proxy.
#[derive(Clone, Copy, Debug, Default)]
struct Overtaking {
    links: f64,
    overtaken: f64,
}

impl Overtaking {
    fn add(&mut self, overtaken: usize, p: f64) {
        self.links += p;
        self.overtaken += p * overtaken as f64;
    }

    /// By how much one more overtaking is less likely.
    fn factor(&self) -> f64 {
        let mean = (self.overtaken + PRIOR * 0.3) / (self.links + PRIOR);
        (mean / (1.0 + mean)).clamp(LEAST_OVERTAKING, MOST_OVERTAKING)
    }

    fn gain(&self, overtaken: usize) -> f64 {
        let factor = self.factor();
        let chance = 1.0 / (MOST_OVERTAKEN + 1) as f64;
        ((1.0 - factor) / chance).ln() + factor.ln() * overtaken.min(MOST_OVERTAKEN) as f64
    }
}

/// The distribution of by how much a message grows on its way through, of links and of all candidates.
#[derive(Clone, Debug, Default)]
struct Growth {
    linked: HashMap<i64, f64, FixedState>,
    all: HashMap<i64, f64, FixedState>,
    linked_sum: f64,
    all_sum: f64,
    /// What [`Self::smooth`] makes of them.
    gains: HashMap<i64, f64, FixedState>,
}

impl Growth {
    fn know(&mut self, earlier: &Self) {
        self.linked.clone_from(&earlier.linked);
        self.linked_sum = earlier.linked_sum;
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

    /// Computes how much likelier each value is of a link than of a coincidence: the logarithm.
    fn smooth(&mut self) {
        let others_sum = (self.all_sum - self.linked_sum).max(0.0);
        self.gains.clear();
        for (&grown, &all) in &self.all {
            let spread = |scale: f64| scale / 2.0 / (grown.unsigned_abs() as f64 + scale).powi(2);
            let unchanged = if grown == 0 { 0.3 } else { 0.0 };
            let links = self.linked.get(&grown).copied().unwrap_or_default();
            // What one link has shown is no reason to believe that very link.
            let shown = (links - 1.0).max(0.0);
            let linked = (shown + PRIOR * (unchanged + 0.7 * spread(200.0))) / (self.linked_sum + PRIOR);
            let chance = (all - links).max(0.0) + PRIOR_CHANCE * spread(2_000.0);
            let gain = (linked * (others_sum + PRIOR_CHANCE) / chance).ln();
            self.gains.insert(grown, gain.clamp(-MOST, MOST));
        }
    }

    fn gain(&self, grown: Option<i64>) -> f64 {
        grown.and_then(|grown| self.gains.get(&grown)).copied().unwrap_or_default()
    }
}
