//! Matching fronts and backs: how likely each candidate is beside all others, and the likeliest links together.
//!
//! A front has at most one back here, and a back one front.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::candidates::Candidate;

/// Passes over all candidates; what they change after that is below what confidence is worth.
const PASSES: usize = 40;
/// Fixed point of weights: integers make the order of paths exact.
const UNIT: f64 = 65_536.0;

/// Computes the probability of each candidate: belief propagation on a matching in which each may stay alone.
pub(super) fn marginals(edges: &mut [Candidate], exchanges: usize) {
    // Of each candidate the odds that back and front want it, as far as their other candidates let them.
    let odds: Vec<f64> = edges.iter().map(|edge| edge.weight.clamp(-50.0, 50.0).exp()).collect();
    let mut wanted = vec![1.0f64; edges.len()];
    let mut fronts = vec![0.0f64; exchanges];
    let mut backs = vec![0.0f64; exchanges];
    let mut offered = odds.clone();
    for _ in 0..PASSES {
        // What the back offers each front: the odds, shared with the back's other candidates.
        backs.fill(0.0);
        for ((edge, odds), wanted) in edges.iter().zip(&odds).zip(&wanted) {
            if let Some(sum) = backs.get_mut(edge.back as usize) {
                *sum += odds * wanted;
            }
        }
        fronts.fill(0.0);
        for (((edge, odds), wanted), offered) in edges.iter().zip(&odds).zip(&wanted).zip(&mut offered) {
            let others = (backs.get(edge.back as usize).copied().unwrap_or_default() - odds * wanted).max(0.0);
            *offered = odds / (1.0 + others);
            if let Some(sum) = fronts.get_mut(edge.front as usize) {
                *sum += *offered;
            }
        }
        let mut change = 0.0f64;
        for ((edge, offered), wanted) in edges.iter().zip(&offered).zip(&mut wanted) {
            let others = (fronts.get(edge.front as usize).copied().unwrap_or_default() - offered).max(0.0);
            let now = 1.0 / (1.0 + others);
            change = change.max((now - *wanted).abs());
            *wanted = 0.5 * *wanted + 0.5 * now;
        }
        if change < 1e-3 {
            break;
        }
    }
    for ((edge, offered), wanted) in edges.iter_mut().zip(&offered).zip(&wanted) {
        let odds = offered * wanted;
        edge.probability = odds / (1.0 + odds);
    }
}

/// Chooses the candidates that together weigh most, no front and no back twice; gives their indices.
///
/// Backs are added one by one, each along the shortest path on which others give way (Jonker and Volgenant, 1987). Paths stay
/// short, since only fronts of the same time compete. Whom all candidates make less likely stays alone.
pub(super) fn match_up(edges: &[Candidate]) -> Vec<usize> {
    let mut matching = Matching::new(edges);
    for back in 0..matching.backs.len() {
        matching.add(back);
    }
    matching.chosen.iter().flatten().copied().collect()
}

struct Matching {
    /// Of each back: index, front and cost of its candidates.
    backs: Vec<Vec<(usize, usize, i64)>>,
    /// The candidate that each back has.
    chosen: Vec<Option<usize>>,
    /// The back that each front has.
    owner: Vec<Option<usize>>,
    /// Potential of each front and back: no candidate costs less than both of its ends.
    front_price: Vec<i64>,
    back_price: Vec<i64>,
    /// Scratch of one search: of each front the distance, and the back and the candidate that led to it.
    reached: Vec<Option<(i64, usize, usize)>>,
}

impl Matching {
    fn new(edges: &[Candidate]) -> Self {
        let mut numbers = Numbers::default();
        let mut fronts = Numbers::default();
        let mut backs: Vec<Vec<(usize, usize, i64)>> = Vec::new();
        for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.weight > 0.0) {
            let back = numbers.of(edge.back);
            if back == backs.len() {
                backs.push(Vec::new());
            }
            #[expect(clippy::cast_possible_truncation, reason = "weights are small")]
            let cost = -(edge.weight * UNIT) as i64;
            if let Some(list) = backs.get_mut(back) {
                list.push((index, fronts.of(edge.front), cost));
            }
        }
        let back_price = backs.iter().map(|list| list.iter().map(|&(.., cost)| cost).min().unwrap_or(0)).collect();
        let front_count = fronts.0.len();
        Self {
            chosen: vec![None; backs.len()],
            owner: vec![None; front_count],
            front_price: vec![0; front_count],
            back_price,
            reached: vec![None; front_count],
            backs,
        }
    }

    /// Gives a back its place, and others new ones where that is better for all.
    fn add(&mut self, new: usize) {
        let mut heap = BinaryHeap::new();
        let mut touched: Vec<usize> = Vec::new();
        let mut settled: Vec<(i64, usize, usize)> = Vec::new();
        // To stay alone costs nothing: the way out of every back.
        let mut best_alone = (-self.price(new), new);
        let (mut back, mut distance) = (new, 0i64);
        let end = loop {
            for &(index, front, cost) in self.backs.get(back).map(Vec::as_slice).unwrap_or_default() {
                let step = cost - self.price(back) - self.front_price.get(front).copied().unwrap_or_default();
                let total = distance + step;
                if let Some(reached) = self.reached.get_mut(front)
                    && reached.is_none_or(|(known, ..)| total < known)
                {
                    if reached.is_none() {
                        touched.push(front);
                    }
                    *reached = Some((total, back, index));
                    heap.push(Reverse((total, front)));
                }
            }
            let alone = distance - self.price(back);
            if alone < best_alone.0 {
                best_alone = (alone, back);
            }
            let next = loop {
                match heap.pop() {
                    Some(Reverse((total, front)))
                        if self.reached.get(front).copied().flatten().is_some_and(|(known, ..)| known == total) =>
                    {
                        break Some((total, front));
                    }
                    Some(_) => {}
                    None => break None,
                }
            };
            match next {
                Some((total, front)) if total < best_alone.0 => match self.owner.get(front).copied().flatten() {
                    Some(owner) => {
                        settled.push((total, front, owner));
                        (back, distance) = (owner, total);
                    }
                    None => break End { total, front: Some(front), alone: None },
                },
                _ => break End { total: best_alone.0, front: None, alone: Some(best_alone.1) },
            }
        };
        self.reprice(new, &settled, end.total);
        self.give_way(new, &end);
        for front in touched {
            if let Some(reached) = self.reached.get_mut(front) {
                *reached = None;
            }
        }
    }

    fn price(&self, back: usize) -> i64 {
        self.back_price.get(back).copied().unwrap_or_default()
    }

    /// Keeps the potentials such that no candidate is cheaper than its ends, and chosen ones cost just as much.
    fn reprice(&mut self, new: usize, settled: &[(i64, usize, usize)], total: i64) {
        if let Some(price) = self.back_price.get_mut(new) {
            *price += total;
        }
        for &(distance, front, owner) in settled {
            if let Some(price) = self.front_price.get_mut(front) {
                *price -= total - distance;
            }
            if let Some(price) = self.back_price.get_mut(owner) {
                *price += total - distance;
            }
        }
    }

    /// Walks the path back from its end: every back on it takes the front that it was reached from.
    fn give_way(&mut self, new: usize, end: &End) {
        let mut front = end.front;
        if let Some(alone) = end.alone {
            front = self.taken_by(alone);
            if let Some(chosen) = self.chosen.get_mut(alone) {
                *chosen = None;
            }
            if alone == new {
                return;
            }
        }
        while let Some(place) = front {
            let Some((_, back, index)) = self.reached.get(place).copied().flatten() else { return };
            let before = self.taken_by(back);
            if let Some(owner) = self.owner.get_mut(place) {
                *owner = Some(back);
            }
            if let Some(chosen) = self.chosen.get_mut(back) {
                *chosen = Some(index);
            }
            if back == new {
                return;
            }
            front = before;
        }
    }

    /// The front that a back has.
    fn taken_by(&self, back: usize) -> Option<usize> {
        let index = self.chosen.get(back).copied().flatten()?;
        let list = self.backs.get(back)?;
        list.iter().find(|&&(candidate, ..)| candidate == index).map(|&(_, front, _)| front)
    }
}

/// Where a path ends: at a front that nobody has, or at a back that stays alone.
struct End {
    total: i64,
    front: Option<usize>,
    alone: Option<usize>,
}

/// Numbers things as they are met, from 0.
#[derive(Default)]
struct Numbers(std::collections::HashMap<u32, usize, foldhash::fast::FixedState>);

impl Numbers {
    fn of(&mut self, key: u32) -> usize {
        let next = self.0.len();
        *self.0.entry(key).or_insert(next)
    }
}
