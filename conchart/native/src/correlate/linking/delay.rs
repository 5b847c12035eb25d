//! The distribution of a delay, learned from counts: bins on a logarithmic scale. No IO, no clock.

use std::sync::LazyLock;

use super::model::PRIOR;

/// Bins of a delay's distribution per doubling.
const PER_OCTAVE: f64 = 4.0;
/// Bins: up to 2^30 µs.
const BINS: usize = 120;
/// The distribution of a delay.
#[derive(Clone, Debug, Default)]
pub(super) struct Delay {
    /// Nothing, where nothing was counted: of many routes little is known, and it takes no room.
    counted: Vec<f64>,
    density: Vec<f64>,
}

/// What any proxy lends to the bins of a delay: a broad hump around 0.3 ms, [`PRIOR`] in all.
static LENT: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let hump = |bin: usize| {
        let octaves = bin as f64 / PER_OCTAVE - (300f64).log2();
        let deviation = if octaves < 0.0 { 4.0 } else { 6.0 };
        (-(octaves / deviation).powi(2) / 2.0).exp()
    };
    let usual: Vec<f64> = (0..BINS).map(hump).collect();
    let sum: f64 = usual.iter().sum();
    usual.into_iter().map(|usual| PRIOR * usual / sum).collect()
});

impl Delay {
    fn bin(ns: i64) -> usize {
        let octaves = (1.0 + ns as f64 / 1_000.0).log2();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
        let bin = (octaves * PER_OCTAVE) as usize;
        bin.min(BINS - 1)
    }

    /// Nanoseconds that a bin is wide.
    fn width(bin: usize) -> f64 {
        let candidate = |bin: usize| ((bin as f64 / PER_OCTAVE).exp2() - 1.0) * 1_000.0;
        candidate(bin + 1) - candidate(bin)
    }

    pub(super) fn add(&mut self, ns: i64, p: f64) {
        self.counted.resize(BINS, 0.0);
        if let Some(counted) = self.counted.get_mut(Self::bin(ns)) {
            *counted += p;
        }
    }

    /// Makes densities of counts: neighbours lend to each other, and any proxy lends.
    pub(super) fn smooth(&mut self) {
        const KERNEL: [f64; 5] = [1.0 / 16.0, 4.0 / 16.0, 6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0];
        if self.counted.is_empty() {
            self.density.clear();
            return;
        }
        let total: f64 = self.counted.iter().sum();
        self.density = (0..BINS)
            .map(|bin| {
                let near = KERNEL.iter().enumerate().filter_map(|(at, share)| {
                    let from = (bin + at).checked_sub(2)?;
                    Some(share * self.counted.get(from)?)
                });
                Self::log_density(near.sum(), total, bin)
            })
            .collect();
    }

    fn log_density(counted: f64, total: f64, bin: usize) -> f64 {
        let lent = LENT.get(bin).copied().unwrap_or_default();
        ((counted + lent) / (total + PRIOR) / Self::width(bin)).ln()
    }

    /// Per nanosecond: the logarithm.
    pub(super) fn density(&self, ns: i64) -> f64 {
        let bin = Self::bin(ns);
        self.density.get(bin).copied().unwrap_or_else(|| Self::log_density(0.0, 0.0, bin))
    }
}
