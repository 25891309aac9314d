//! A small seeded generator (splitmix64, Steele et al. 2014). Not the `rand` crate's: its streams may change between
//! versions, and the demo lake must hold the same rows for ever.

/// A stream of numbers, the same for the same seed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A stream for one part of the lake.
    pub(super) fn new(seed: u64, part: u64) -> Self {
        let mut mixed = Self(seed);
        let start = mixed.next() ^ part.wrapping_mul(0xD134_2543_DE82_EF95);
        Self(Self(start).next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `0.0..1.0`.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In `0..bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// In `from..to`.
    pub(super) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from) as u64) as i64
    }

    /// True for this share of the calls.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// One of these.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Exponential, with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Normal, by Box and Muller.
    pub(super) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        mean + deviation * radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// With this many decimals.
pub(super) fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}
