//! The short text form of a backoff.

use super::growth::{Factor, Growth};
use super::{Backoff, Backoffs, Jitter};
use crate::duration::{self, nanos};
use std::fmt;
use std::str::{FromStr, SplitWhitespace};
use std::time::Duration;

/// Error: the text is not a backoff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a backoff: {why}")]
pub struct BackoffError {
    text: String,
    why: String,
}

impl FromStr for Backoff {
    type Err = BackoffError;

    /// Parses a shape with its options, or the name of a preset.
    ///
    /// `fixed 100ms` · `linear 100ms step 50ms` · `exponential 100ms x2` · `fibonacci 100ms` ·
    /// `decorrelated 100ms` · `adaptive 100ms x2 stretch x10`, each with any of `min 10ms`,
    /// `max 30s` and `jitter none|full|equal|30%`.
    fn from_str(text: &str) -> Result<Backoff, BackoffError> {
        Backoffs::new().parse(text)
    }
}

/// Parses the grammar above, without names.
pub(super) fn parse(text: &str, names: &str) -> Result<Backoff, BackoffError> {
    let mut words = text.split_whitespace();
    let parsed = once_each(text).and_then(|()| match words.next() {
        None => Err("it is empty".to_owned()),
        Some(shape) => shape_of(shape, &mut words, names)
            .and_then(|growth| options(growth, &mut words))
            .and_then(check),
    });
    parsed.map_err(|why| BackoffError { text: text.to_owned(), why })
}

/// Parses the options that may follow a name: limits and jitter.
pub(super) fn parse_options(mut backoff: Backoff, text: &str) -> Result<Backoff, BackoffError> {
    let wrong = |why| BackoffError { text: text.to_owned(), why };
    once_each(text).map_err(wrong)?;
    let mut words = text.split_whitespace().skip(1);
    while let Some(word) = words.next() {
        apply(&mut backoff, word, words.next()).map_err(wrong)?;
    }
    check(backoff).map_err(wrong)
}

/// Rejects an option that is given twice, because it is unclear which one applies.
fn once_each(text: &str) -> Result<(), String> {
    for option in ["min", "max", "jitter", "step", "stretch"] {
        if text.split_whitespace().filter(|word| *word == option).count() > 1 {
            return Err(format!("{option} is given twice"));
        }
    }
    Ok(())
}

/// The words that a text may start with. The registry rejects them as names.
pub(super) const SHAPES: [&str; 6] =
    ["fixed", "linear", "exponential", "fibonacci", "decorrelated", "adaptive"];

fn shape_of(shape: &str, words: &mut SplitWhitespace<'_>, names: &str) -> Result<Backoff, String> {
    if !SHAPES.contains(&shape) {
        return Err(format!(
            "`{shape}` is neither a backoff type ({}) nor a registered name ({names})",
            SHAPES.join(", ")
        ));
    }
    let base = length(shape, words.next())?;
    if shape == "fixed" {
        return Ok(Backoff::fixed(base));
    }
    if base.is_zero() {
        return Err(format!("{shape} needs a first delay above zero"));
    }
    Ok(match shape {
        "linear" => Backoff::linear(base),
        "exponential" => Backoff::exponential(base),
        "fibonacci" => Backoff::fibonacci(base),
        "decorrelated" => Backoff::decorrelated(base),
        _ => Backoff::adaptive(base),
    })
}

fn options(mut backoff: Backoff, words: &mut SplitWhitespace<'_>) -> Result<Backoff, String> {
    while let Some(word) = words.next() {
        if let Some(text) = word.strip_prefix('x') {
            let new = factor(text)?;
            match &mut backoff.growth {
                Growth::Exponential { factor, .. } | Growth::Adaptive { factor, .. } => {
                    *factor = new;
                }
                Growth::Fixed { .. }
                | Growth::Linear { .. }
                | Growth::Fibonacci { .. }
                | Growth::Decorrelated { .. }
                | Growth::Custom(_) => {
                    return Err(format!(
                        "`{word}`: only exponential and adaptive backoff have a factor, so remove it"
                    ));
                }
            }
        } else {
            apply(&mut backoff, word, words.next())?;
        }
    }
    Ok(backoff)
}

fn apply(backoff: &mut Backoff, word: &str, value: Option<&str>) -> Result<(), String> {
    match (word, &mut backoff.growth) {
        ("min", _) => backoff.delay_min = nanos(length(word, value)?),
        ("max", _) => backoff.delay_max = nanos(length(word, value)?),
        ("jitter", Growth::Decorrelated { .. }) => {
            return Err("decorrelated backoff is already random: remove the jitter".to_owned());
        }
        ("jitter", _) => {
            let value = value
                .ok_or("jitter needs a value: none, full, equal or a percentage such as 30%")?;
            backoff.jitter = value.parse::<Jitter>().map_err(|error| error.to_string())?;
        }
        ("step", Growth::Linear { step, .. }) => {
            *step = nanos(length(word, value)?);
            if *step == 0 {
                return Err(
                    "the step must be longer than 0s: use fixed for a constant delay".to_owned()
                );
            }
        }
        ("stretch", Growth::Adaptive { stretch, .. }) => {
            let value = value.and_then(|value| value.strip_prefix('x'));
            *stretch = factor(value.ok_or("stretch needs a factor such as x10")?)?;
        }
        _ => {
            return Err(format!(
                "`{word}` is not an option of this backoff: use min, max, jitter, step (linear) or stretch (adaptive)"
            ));
        }
    }
    Ok(())
}

/// The checks of the `const` builder, as errors, for input by users.
fn check(backoff: Backoff) -> Result<Backoff, String> {
    if backoff.delay_max < backoff.growth.base() {
        return Err("max is shorter than the first delay".to_owned());
    }
    if backoff.delay_max < backoff.delay_min {
        return Err("max is shorter than min".to_owned());
    }
    Ok(backoff)
}

fn length(word: &str, value: Option<&str>) -> Result<Duration, String> {
    let value = value.ok_or_else(|| format!("{word} needs a duration such as 100ms"))?;
    duration::parse(value).map_err(|error| error.to_string())
}

fn factor(text: &str) -> Result<Factor, String> {
    text.parse()
        .ok()
        .and_then(Factor::new)
        .ok_or_else(|| format!("`x{text}` is not a factor: use x1.001 to x1000"))
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |nanos| duration::text(Duration::from_nanos(nanos));
        match self.growth {
            Growth::Fixed { delay } => write!(f, "fixed {}", text(delay))?,
            Growth::Linear { base, step } if base == step => write!(f, "linear {}", text(base))?,
            Growth::Linear { base, step } => {
                write!(f, "linear {} step {}", text(base), text(step))?;
            }
            Growth::Exponential { base, factor } => {
                write!(f, "exponential {} x{}", text(base), factor.as_f64())?;
            }
            Growth::Fibonacci { base } => write!(f, "fibonacci {}", text(base))?,
            Growth::Decorrelated { base } => write!(f, "decorrelated {}", text(base))?,
            Growth::Adaptive { base, factor, stretch } => {
                let (factor, stretch) = (factor.as_f64(), stretch.as_f64());
                write!(f, "adaptive {} x{factor} stretch x{stretch}", text(base))?;
            }
            Growth::Custom(custom) => f.write_str(custom.name())?,
        }
        if self.delay_min > 0 {
            write!(f, " min {}", text(self.delay_min))?;
        }
        // A fixed delay has no maximum by default; every other shape has one.
        if self.delay_max < u64::MAX || !matches!(self.growth, Growth::Fixed { .. }) {
            write!(f, " max {}", text(self.delay_max))?;
        }
        if !matches!(self.growth, Growth::Decorrelated { .. }) {
            write!(f, " jitter {}", self.jitter)?;
        }
        Ok(())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Backoff {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Backoff {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Backoff, D::Error> {
        crate::text::deserialize(from, str::parse)
    }
}
