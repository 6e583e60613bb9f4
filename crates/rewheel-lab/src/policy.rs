//! A client's policy, parsed from one line of text.

use crate::storm::Client;
use rewheel::{CircuitBreaker, Pipeline, Retry, RetryBudget, seconds};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Treated as unlimited beyond this number.
const ATTEMPTS_MAX: u32 = 1_000;

/// The policies of the library that clients put around each call.
///
/// A retry policy as in config files, by name or by parts, or `none`; then optionally `budget 10%` and `breaker`:
///
/// ```
/// use rewheel_lab::Policy;
///
/// let policy: Policy = "3 attempts, exponential 100ms max 10s, budget 10% floor 1, breaker".parse()?;
/// assert_eq!(policy.attempts(), 3);
/// assert_eq!("external_api, breaker".parse::<Policy>()?.attempts(), 5);
/// assert!("0 attempts, fixed 100ms".parse::<Policy>().is_err());
/// # Ok::<(), rewheel_lab::PolicyError>(())
/// ```
///
/// `budget 10%` allows each client one retry for ten calls. `floor 1` allows one retry per second at any traffic; the default is
/// ten, as in [`RetryBudget::ratio`]. `breaker` opens for five seconds once half of the calls of the last ten seconds failed,
/// with at least ten calls.
#[derive(Clone, Debug)]
pub struct Policy {
    text: String,
    retry: Option<Retry>,
    budget: Option<Budget>,
    breaker: bool,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    ratio: f64,
    /// Retries per second that each client may always make.
    floor: Option<u32>,
}

/// Error: the text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a policy: {why}")]
pub struct PolicyError {
    text: String,
    why: String,
}

impl Policy {
    /// Returns the maximum number of attempts of a call.
    pub fn attempts(&self) -> u32 {
        self.retry.map_or(1, |retry| retry.attempts())
    }

    /// Builds the pipeline of one client, with this timeout for each attempt.
    pub fn pipeline(&self, client: &Client, attempt_timeout: Duration) -> Pipeline {
        let mut pipeline = Pipeline::new();
        if let Some(retry) = self.retry {
            pipeline = pipeline.retry(retry);
        }
        if let Some(Budget { ratio, floor }) = self.budget {
            let mut budget = RetryBudget::ratio(ratio).clock(client.clock());
            if let Some(floor) = floor {
                budget = budget.floor_per_second(floor);
            }
            pipeline = pipeline.retry_budget(&budget.build());
        }
        if self.breaker {
            let breaker = CircuitBreaker::time_window(seconds(10)).failure_ratio(0.5);
            let breaker = breaker.open_for(seconds(5)).clock(client.clock());
            pipeline = pipeline.circuit_breaker(&breaker.random(client.random()).build());
        }
        pipeline.attempt_timeout(attempt_timeout)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        parse(text).map_err(|why| PolicyError { text: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<Policy, String> {
    let (mut retry, mut budget, mut breaker) = (Vec::new(), None, false);
    for part in text.split(',').map(str::trim) {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            ["budget", ..] if budget.is_some() => {
                return Err("the policy has two budgets: remove one".to_owned());
            }
            ["budget", words @ ..] => budget = Some(parse_budget(words)?),
            ["breaker"] => breaker = true,
            _ => retry.push(part),
        }
    }
    let retry = match retry.join(", ").as_str() {
        "none" if budget.is_some() => {
            return Err("a budget needs retries: `none` has no retries".to_owned());
        }
        "none" => None,
        "" => {
            return Err("a policy must start with `none` or a retry policy such as `external_api`"
                .to_owned());
        }
        text => Some(text.parse::<Retry>().map_err(|error| error.to_string())?),
    };
    if retry.is_some_and(|retry| retry.attempts() > ATTEMPTS_MAX) {
        return Err(format!("the simulation allows at most {ATTEMPTS_MAX} attempts per call"));
    }
    Ok(Policy { text: text.trim().to_owned(), retry, budget, breaker })
}

fn parse_budget(words: &[&str]) -> Result<Budget, String> {
    const FORM: &str = "the budget is not valid: use `budget 10%` or `budget 10% floor 1`";
    let percent = |word: &str| word.strip_suffix('%')?.parse::<f64>().ok();
    let (ratio, floor) = match words {
        [ratio] => (percent(ratio), None),
        [ratio, "floor", floor] => (percent(ratio), Some(floor.parse().map_err(|_| FORM)?)),
        _ => return Err(FORM.to_owned()),
    };
    let ratio = ratio.filter(|percent| (0.1..=100.0).contains(percent)).ok_or(FORM)? / 100.0;
    if floor.is_some_and(|floor| floor > 1_000) {
        return Err("the floor of a budget must be 1000 per second or less".to_owned());
    }
    Ok(Budget { ratio, floor })
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[track_caller]
    fn refuse(text: &str, why: &str) {
        let error = text.parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_mistake_is_named() {
        refuse("", "a policy must start with `none` or a retry policy");
        refuse("budget 10%", "a policy must start with `none` or a retry policy");
        refuse("none, budget 10%", "a budget needs retries");
        refuse("3 attempts, fixed 1s, budget 10", "the budget is not valid");
        refuse("3 attempts, fixed 1s, budget 0%", "the budget is not valid");
        refuse("3 attempts, fixed 1s, budget 1% floor x", "the budget is not valid");
        refuse("3 attempts, fixed 1s, budget 1% floor 1001", "1000 per second or less");
        refuse("3 attempts, fixed 1s, budget 1%, budget 1%", "two budgets");
        refuse("1001 attempts, fixed 1s", "at most 1000 attempts");
        refuse("3 attempts, fixd 1s", "fixd");
        refuse("3 attempts, fixed 1s, braker", "braker");
    }

    #[test]
    fn is_printed_as_it_was_written() {
        let text = "3 attempts, exponential 100ms max 10s, budget 10% floor 1, breaker";
        assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        assert_eq!("none, breaker".parse::<Policy>().unwrap().attempts(), 1);
    }
}
