//! How delays grow with the attempt number, before limits and jitter.

use super::custom::Custom;
use crate::ratio::Ratio;

/// In nanoseconds, except for a custom function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    Fixed { delay: u64 },
    Linear { base: u64, step: u64 },
    Exponential { base: u64, factor: Factor },
    Fibonacci { base: u64 },
    Decorrelated { base: u64 },
    Adaptive { base: u64, factor: Factor, stretch: Factor },
    Custom(Custom),
}

impl Growth {
    /// Returns the first delay, the lowest possible maximum.
    pub(super) const fn base(&self) -> u64 {
        match *self {
            Growth::Fixed { delay } => delay,
            Growth::Linear { base, .. }
            | Growth::Exponential { base, .. }
            | Growth::Fibonacci { base }
            | Growth::Decorrelated { base }
            | Growth::Adaptive { base, .. } => base,
            Growth::Custom(_) => 0,
        }
    }

    /// Returns the range of the delay after `attempt`, at most `max`; both ends are equal unless
    /// growth itself is random.
    pub(super) const fn after(&self, attempt: u32, failure_ratio: Ratio, max: u64) -> (u64, u64) {
        let steps = attempt.saturating_sub(1);
        let delay = match *self {
            Growth::Fixed { delay } => delay,
            Growth::Linear { base, step } => base.saturating_add(step.saturating_mul(steps as u64)),
            Growth::Exponential { base, factor } => factor.raise(base, steps, max),
            Growth::Fibonacci { base } => fibonacci(base, steps, max),
            Growth::Decorrelated { base } => {
                return (base, Factor::THREE.raise(base, steps.saturating_add(1), max));
            }
            Growth::Adaptive { base, factor, stretch } => {
                let delay = factor.raise(base, steps, max);
                let extra = stretch.of(delay).saturating_sub(delay);
                delay.saturating_add(failure_ratio.share_of(extra))
            }
            // Functions cannot be called in a constant; the callers handle them first.
            Growth::Custom(_) => max,
        };
        (delay, delay)
    }
}

/// A growth factor in thousandths: exact for every factor a person writes down, never NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor(u32);

impl Factor {
    pub(super) const TWO: Factor = Factor(2_000);
    pub(super) const THREE: Factor = Factor(3_000);
    pub(super) const TEN: Factor = Factor(10_000);

    pub(super) const fn new(factor: f64) -> Option<Factor> {
        if factor >= 1.001 && factor <= 1_000.0 {
            Some(Factor((factor * 1_000.0 + 0.5) as u32))
        } else {
            None
        }
    }

    pub(super) fn as_f64(self) -> f64 {
        f64::from(self.0) / 1_000.0
    }

    /// Returns `delay` times the factor.
    const fn of(self, delay: u64) -> u64 {
        let product = delay as u128 * self.0 as u128 / 1_000;
        if product > u64::MAX as u128 { u64::MAX } else { product as u64 }
    }

    /// Returns `base` times the factor to the power of `steps`, at most `max`.
    const fn raise(self, base: u64, steps: u32, max: u64) -> u64 {
        if self.0 == Factor::TWO.0 {
            // Doubling is a shift, exact while no bit is lost.
            return if steps < base.leading_zeros() { least(base << steps, max) } else { max };
        }
        let mut power = 1.0_f64;
        let mut square = self.0 as f64 / 1_000.0;
        let mut bits = steps;
        while bits > 0 {
            if bits & 1 == 1 {
                power *= square;
            }
            square *= square;
            bits >>= 1;
        }
        // The power may be infinite; the base is not zero, so the product is never NaN.
        least((base as f64 * power) as u64, max)
    }
}

const fn fibonacci(base: u64, steps: u32, max: u64) -> u64 {
    let (mut current, mut next) = (base, base);
    let mut step = 0;
    while step < steps && current < max {
        (current, next) = (next, current.saturating_add(next));
        step += 1;
    }
    least(current, max)
}

const fn least(delay: u64, max: u64) -> u64 {
    if delay < max { delay } else { max }
}
