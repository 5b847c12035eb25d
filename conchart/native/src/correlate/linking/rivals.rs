//! How sure each link is beside the hypotheses that rival it: that two fronts have each other's back, that a front has another
//! one's back besides its own, that no front has it.
//!
//! Belief propagation ([`super::marginals`]) finds which links are the likeliest together, but not how likely they are: of two
//! fronts and two backs that fit either way nearly as well, it makes one way certain, because what each candidate hears of its
//! rivals is its own claim, come back along the circle. Here each back's candidates are weighed as whole hypotheses instead: all
//! other links stay, but for the one that the change takes away. That is exact for two that compete, and for any number of fronts
//! that fit equally well. It takes as long as a back has candidates, squared.
//!
//! How far weights are to be trusted, the capture itself tells: how a front came to its back (delay, order, size of the request)
//! and how the response came back are two witnesses. Of two hypotheses, they should favour the same one as often as they claim to
//! know it. Where they contradict each other more often, the habits do not hold, and both are believed less.

use super::candidates::Candidate;
use super::marginals::{Counts, MOST_COUNTED};

/// Odds beyond `e` to this power are as good as certain.
const CERTAIN: f64 = 24.0;
/// How far weights are trusted at least: this, and its powers.
const STEP: f64 = 0.8;
/// Powers that are tried.
const STEPS: i32 = 14;
/// What speaks against each step before anything is seen: the logarithm.
const RELUCTANCE: f64 = 1.0;
/// Whatever the witnesses claim, so many of their claims are wrong for reasons of their own.
const MISTAKEN: f64 = 0.02;
/// Classes of how much a witness claims, of half a doubling each.
const CLASSES: usize = 12;

/// What is known of habits here: of each candidate, how often fronts like its have so many backs, and its route.
pub(super) trait Expectations {
    fn counts(&self, candidate: &Candidate) -> &Counts;
    /// What the weights of two candidates have too much where their fronts would have each other's back, on the way in and out.
    fn counted_twice(&self, candidate: &Candidate) -> [f64; 2];
}

/// Gives each candidate its probability among the hypotheses about its back.
///
/// Candidates of a back stand together, in the order of their backs, and have the probability that says which links are the
/// likeliest together.
pub(super) fn weigh_rivals(candidates: &mut [Candidate], fronts: usize, routes: usize, habits: &impl Expectations) {
    let groups = Groups::new(candidates, fronts);
    let mut witnesses = vec![Witnesses::default(); routes];
    for of_back in candidates.chunk_by(|one, other| one.back == other.back) {
        let Some(own) = of_back.iter().find(|candidate| groups.is_chosen(candidate)) else { continue };
        for other in of_back.iter().filter(|other| other.front != own.front) {
            let mut has_swaps = false;
            groups.swaps(candidates, own, other, habits, |[coming, going, _]| {
                has_swaps = true;
                if let Some(witnesses) = witnesses.get_mut(own.route as usize) {
                    witnesses.add(coming, going, 0.5);
                }
            });
            if !has_swaps && let Some(witnesses) = witnesses.get_mut(own.route as usize) {
                witnesses.add(other.coming - own.coming, other.going - own.going, 1.0);
            }
        }
    }
    let trust: Vec<f64> = witnesses.iter().map(Witnesses::trust).collect();
    let trust = |candidate: &Candidate| trust.get(candidate.route as usize).copied().unwrap_or(1.0);

    let mut probabilities = Vec::with_capacity(candidates.len());
    let mut odds = Vec::new();
    for of_back in candidates.chunk_by(|one, other| one.back == other.back) {
        let own = of_back.iter().find(|candidate| groups.is_chosen(candidate));
        let leaves = own.map_or(1.0, |own| groups.share(own, habits.counts(own), -1));
        odds.clear();
        let mut all = own.map_or(1.0, |own| leaves * odds_of(-weight(own, trust(own))));
        for other in of_back {
            if own.is_some_and(|own| own.front == other.front) {
                odds.push(1.0);
                continue;
            }
            let beside = own.map_or(0.0, |own| weight(own, trust(own)));
            let joins =
                leaves * odds_of(weight(other, trust(other)) - beside) * groups.share(other, habits.counts(other), 1);
            let mut swaps = 0.0;
            if let Some(own) = own {
                let trust = trust(own);
                groups.swaps(candidates, own, other, habits, |[coming, going, rest]| {
                    swaps += odds_of(trust * (coming + going) + rest);
                });
            }
            odds.push(joins + swaps);
        }
        all += odds.iter().sum::<f64>();
        probabilities.extend(odds.iter().map(|odds| odds / all));
    }
    for (candidate, probability) in candidates.iter_mut().zip(probabilities) {
        // Neither knows what the other does: that the others are not sure either, and that two may have each other's.
        candidate.confidence = probability.min(candidate.probability);
        candidate.probability = probability;
    }
}

/// The weight of a candidate, as far as its witnesses are trusted.
fn weight(candidate: &Candidate, trust: f64) -> f64 {
    let witnessed = candidate.coming + candidate.going;
    candidate.weight - witnessed + trust * witnessed
}

fn odds_of(logarithm: f64) -> f64 {
    logarithm.clamp(-CERTAIN, CERTAIN).exp()
}

/// How often the two witnesses agree, by how much each claims.
#[derive(Clone, Default)]
struct Witnesses {
    /// For each class of the one and of the other: how often they agreed, and contradicted each other.
    cells: Vec<[f64; 2]>,
}

impl Witnesses {
    fn add(&mut self, one: f64, other: f64, times: f64) {
        self.cells.resize(CLASSES * CLASSES, [0.0; 2]);
        if let Some([agreed, contradicted]) = self.cells.get_mut(class(one) * CLASSES + class(other)) {
            *if (one > 0.0) == (other > 0.0) { agreed } else { contradicted } += times;
        }
    }

    /// The power of [`STEP`] by which claims are to be shrunk so that the witnesses agree as often as they say: the likeliest.
    fn trust(&self) -> f64 {
        let mut best = (f64::NEG_INFINITY, 1.0);
        for step in 0..STEPS {
            let trust = STEP.powi(step);
            let sure = |class: usize| (trust * claim(class) / 2.0).tanh() * (1.0 - MISTAKEN);
            let cells = self.cells.iter().enumerate().filter(|(_, [agreed, contradicted])| agreed + contradicted > 0.0);
            let likelihood: f64 = cells
                .map(|(index, [agreed, contradicted])| {
                    let both = sure(index / CLASSES) * sure(index % CLASSES);
                    agreed * (1.0 + both).ln() + contradicted * (1.0 - both).ln()
                })
                .sum();
            let likelihood = likelihood - RELUCTANCE * f64::from(step);
            if likelihood > best.0 {
                best = (likelihood, trust);
            }
        }
        best.1
    }
}

fn class(claim: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let class = (2.0 * (1.0 + claim.abs()).log2()) as usize;
    class.min(CLASSES - 1)
}

/// How much the witnesses of a class claim, about.
fn claim(class: usize) -> f64 {
    ((class as f64 + 0.5) / 2.0).exp2() - 1.0
}

/// Where candidates are, and which are the likeliest together.
struct Groups {
    /// Of each back, where its candidates begin.
    starts: Vec<u32>,
    /// Of each back, the front whose link to it is among the likeliest.
    fronts: Vec<Option<u32>>,
    /// Of each front, those of its candidates whose links are among the likeliest.
    chosen: Vec<Vec<u32>>,
}

impl Groups {
    fn new(candidates: &[Candidate], fronts: usize) -> Self {
        let backs = candidates.last().map_or(0, |last| last.back as usize + 1);
        let mut groups =
            Self { starts: vec![u32::MAX; backs], fronts: vec![None; backs], chosen: vec![Vec::new(); fronts] };
        let mut start = 0u32;
        for of_back in candidates.chunk_by(|one, other| one.back == other.back) {
            let likeliest =
                (start..).zip(of_back).max_by(|one, other| one.1.probability.total_cmp(&other.1.probability));
            let linked: f64 = of_back.iter().map(|candidate| candidate.probability).sum();
            if let Some((index, candidate)) = likeliest {
                let back = candidate.back as usize;
                if let Some(slot) = groups.starts.get_mut(back) {
                    *slot = start;
                }
                if candidate.probability > 1.0 - linked
                    && let (Some(slot), Some(chosen)) =
                        (groups.fronts.get_mut(back), groups.chosen.get_mut(candidate.front as usize))
                {
                    *slot = Some(candidate.front);
                    chosen.push(index);
                }
            }
            start += u32::try_from(of_back.len()).unwrap_or(u32::MAX);
        }
        groups
    }

    fn is_chosen(&self, candidate: &Candidate) -> bool {
        self.fronts.get(candidate.back as usize).copied().flatten() == Some(candidate.front)
    }

    /// Hands on what speaks for each way to give the back of `own` to the front of `other`, and one of that front's backs in
    /// return: what the way in says, what the way out says, and all else.
    fn swaps(
        &self,
        candidates: &[Candidate],
        own: &Candidate,
        other: &Candidate,
        habits: &impl Expectations,
        mut each: impl FnMut([f64; 3]),
    ) {
        let chosen = self.chosen.get(other.front as usize).into_iter().flatten();
        for theirs in chosen.filter_map(|&index| candidates.get(index as usize)) {
            let Some(ours) = self.find(candidates, own.front, theirs.back) else { continue };
            let gain = |of: fn(&Candidate) -> f64| of(other) + of(ours) - of(own) - of(theirs);
            let [twice_in, twice_out] = habits.counted_twice(other);
            let rest = |candidate: &Candidate| candidate.weight - candidate.coming - candidate.going;
            each([gain(|c| c.coming) - twice_in, gain(|c| c.going) - twice_out, gain(rest)]);
        }
    }

    /// The candidate of a front and a back.
    fn find<'a>(&self, candidates: &'a [Candidate], front: u32, back: u32) -> Option<&'a Candidate> {
        let start = self.starts.get(back as usize).copied()?;
        let of_back = candidates.get(start as usize..)?.iter().take_while(|candidate| candidate.back == back);
        of_back.into_iter().find(|candidate| candidate.front == front)
    }

    /// How much more often a front has one back more, or less, than as many as it has.
    fn share(&self, candidate: &Candidate, counts: &Counts, change: isize) -> f64 {
        let now = self.chosen.get(candidate.front as usize).map_or(0, Vec::len).min(MOST_COUNTED);
        let then = now.saturating_add_signed(change).min(MOST_COUNTED);
        match (counts.get(then), counts.get(now)) {
            (Some(then), Some(now)) if *now > 0.0 => then / now,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(agreed: f64, contradicted: f64) -> f64 {
        let mut witnesses = Witnesses::default();
        witnesses.add(4.0, 4.0, agreed);
        witnesses.add(4.0, -4.0, contradicted);
        witnesses.trust()
    }

    #[test]
    fn witnesses_that_agree_as_often_as_they_claim_are_trusted() {
        assert!(trust(97.0, 3.0) > 0.99);
    }

    #[test]
    fn witnesses_that_contradict_each_other_are_trusted_less() {
        assert!(trust(80.0, 20.0) < 0.7);
        assert!(trust(50.0, 50.0) < 0.3);
    }

    #[test]
    fn a_single_contradiction_proves_nothing() {
        assert!(trust(0.0, 1.0) > 0.6);
    }
}
