//! Draws random numbers of the distributions that simulations need.

use rewheel::Random;
use std::cell::Cell;
use std::time::Duration;

/// Random numbers from a seed.
#[derive(Debug)]
pub(crate) struct Chance {
    random: Random,
    /// A drawn number of the normal distribution: they come in pairs.
    spare: Cell<Option<f64>>,
}

impl Chance {
    pub(crate) fn seeded(seed: u64) -> Chance {
        Chance::new(Random::seeded(seed))
    }

    pub(crate) fn new(random: Random) -> Chance {
        Chance { random, spare: Cell::new(None) }
    }

    /// Returns a source for a part of the simulation, so that one more draw in a part does not change the others.
    pub(crate) fn fork(&self) -> Random {
        Random::seeded(self.random.next())
    }

    /// Returns a number from 0 to below 1.
    pub(crate) fn unit(&self) -> f64 {
        /// The 53 bits that a number below 1 can have.
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.random.next() >> 11) as f64 * STEP
    }

    pub(crate) fn happens(&self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Returns a number from 0 to below `count`.
    pub(crate) fn below(&self, count: u32) -> u32 {
        ((u128::from(self.random.next()) * u128::from(count)) >> 64) as u32
    }

    /// Returns a number of the exponential distribution with mean 1.
    pub(crate) fn exponential(&self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Returns a number of the normal distribution with mean 0 and deviation 1.
    pub(crate) fn normal(&self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (2.0 * self.exponential()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.unit()).sin_cos();
        self.spare.set(Some(radius * sine));
        radius * cosine
    }

    /// Returns how long one message takes that needs |N(mean, deviation)|.
    pub(crate) fn message(&self, mean: Duration, deviation: Duration) -> Duration {
        let drawn = self.normal().mul_add(deviation.as_secs_f64(), mean.as_secs_f64());
        Duration::from_secs_f64(drawn.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    /// Mean and variance of many draws.
    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        const DRAWS: u32 = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let drawn = draw();
            sum += drawn;
            squares += drawn * drawn;
        }
        let mean = sum / f64::from(DRAWS);
        (mean, squares / f64::from(DRAWS) - mean * mean)
    }

    #[test]
    fn means_and_variances_are_those_of_the_distributions() {
        let chance = Chance::seeded(1);
        for ((mean, variance), expected) in [
            (moments(|| chance.unit()), (0.5, 1.0 / 12.0)),
            (moments(|| chance.exponential()), (1.0, 1.0)),
            (moments(|| chance.normal()), (0.0, 1.0)),
            (moments(|| f64::from(chance.below(10))), (4.5, 99.0 / 12.0)),
            (moments(|| f64::from(u8::from(chance.happens(0.3)))), (0.3, 0.21)),
        ] {
            assert!((mean - expected.0).abs() < 0.02, "mean {mean}, not {}", expected.0);
            assert!((variance - expected.1).abs() < 0.06, "variance {variance}");
        }
    }
}
