//! How often two facts come together: a kind of request and a kind of what it causes, a connection and another one.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::model::{PRIOR, PRIOR_CHANCE};

/// No pair makes a link likelier or less likely than by this factor's logarithm: what was rare so far may come.
const MOST_OF_PAIRS: f64 = 5.0;

/// How often two facts come together, of links and of all candidates: what of them was seen of one link alone tells nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    linked: HashMap<u64, f64, FixedState>,
    all: HashMap<u64, f64, FixedState>,
    linked_sum: f64,
    all_sum: f64,
    /// What [`Self::smooth`] makes of them.
    gains: HashMap<u64, f64, FixedState>,
}

impl Pairs {
    pub(super) fn know(&mut self, earlier: &Self) {
        self.linked.clone_from(&earlier.linked);
        self.linked_sum = earlier.linked_sum;
    }

    pub(super) fn add_candidate(&mut self, pair: Option<u64>) {
        if let Some(pair) = pair {
            *self.all.entry(pair).or_default() += 1.0;
            self.all_sum += 1.0;
        }
    }

    pub(super) fn add_link(&mut self, pair: Option<u64>, p: f64) {
        if let Some(pair) = pair.filter(|_| p > 0.001) {
            *self.linked.entry(pair).or_default() += p;
            self.linked_sum += p;
        }
    }

    /// Computes how much likelier each pair is of a link than of a coincidence: the logarithm.
    pub(super) fn smooth(&mut self) {
        self.gains.clear();
        let others_sum = (self.all_sum - self.linked_sum).max(0.0);
        let shown = |pair: &u64| (self.linked.get(pair).copied().unwrap_or_default() - 1.0).max(0.0);
        let shown_sum: f64 = self.all.keys().map(shown).sum();
        for (pair, &all) in &self.all {
            let links = self.linked.get(pair).copied().unwrap_or_default();
            let usual = all / self.all_sum;
            let linked = (shown(pair) + PRIOR * usual) / (shown_sum + PRIOR);
            let chance = ((all - links).max(0.0) + PRIOR_CHANCE * usual) / (others_sum + PRIOR_CHANCE);
            self.gains.insert(*pair, (linked / chance).ln().clamp(-MOST_OF_PAIRS, MOST_OF_PAIRS));
        }
    }

    pub(super) fn gain(&self, pair: Option<u64>) -> f64 {
        pair.and_then(|pair| self.gains.get(&pair)).copied().unwrap_or_default()
    }
}
