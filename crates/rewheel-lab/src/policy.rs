//! A client's policy, parsed from one line of text.

mod part;

use self::part::Part;
use crate::storm::{Client, ClientPolicies};
use rewheel::{Hedge, Inner, Nested, Pipeline, Retry};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Treated as unlimited beyond this number.
const ATTEMPTS_MAX: u32 = 1_000;

/// The policies of the library that clients put around each call.
///
/// A retry policy as in config files, by name or by parts, or `none`; then any other policies:
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
/// - `timeout 5s` limits the time of a call with all its attempts.
/// - `hedge 50ms` makes a call again that takes longer than 50 ms, for at most a tenth of the calls and one per second; the first success
///   counts.
/// - `budget 10%` allows each client one retry for ten calls. `floor 1` allows one retry per second at any traffic; the default is
///   ten, as in [`RetryBudget::ratio`](rewheel::RetryBudget::ratio).
/// - `limit 50/s` lets each client make 50 requests per second, and refuses the others.
/// - `throttle 2` lets each client refuse calls at random while the dependency accepts less than half of the requests of the last 30
///   seconds; one per second always passes.
/// - `breaker` opens for five seconds once half of the calls of the last ten seconds failed, with at least ten calls.
/// - `bulkhead 4` lets each client have four requests at the same time; others wait for up to a second.
/// - `adaptive 1..50` is a bulkhead with 1 to 50 slots, as many as the dependency serves without a queue.
#[derive(Clone, Debug)]
pub struct Policy {
    text: String,
    retry: Option<Retry>,
    /// From the outside in.
    parts: Vec<Part>,
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

    /// Returns the retry; `None` for `none`.
    pub fn retry(&self) -> Option<Retry> {
        self.retry
    }

    /// Returns the policy with retries that also repeat inside of other retries. By default the library prevents this, because the
    /// attempts multiply.
    #[must_use]
    pub fn without_guard(&self) -> Policy {
        let retry = self.retry.map(|retry| retry.nested(Nested::Retry).inner(Inner::Allow));
        Policy { retry, ..self.clone() }
    }

    /// Returns whether the policy is only a retry, or `none`.
    pub fn is_plain(&self) -> bool {
        self.parts.is_empty()
    }

    /// Builds the policies of one client, with this timeout for each attempt.
    pub fn client_policies(&self, client: &Client, attempt_timeout: Duration) -> ClientPolicies {
        let policies = ClientPolicies::from(self.pipeline(client, attempt_timeout));
        let delay = self.parts.iter().find_map(|part| part.hedge_delay());
        match delay.and_then(|delay| Hedge::try_after(delay).ok()) {
            Some(hedge) => policies.hedge(hedge.clock(client.clock()).build()),
            None => policies,
        }
    }

    /// Builds the pipeline of one client, with this timeout for each attempt. A hedge is around the pipeline, so it is not a part of it.
    pub fn pipeline(&self, client: &Client, attempt_timeout: Duration) -> Pipeline {
        let (outer, inner): (Vec<Part>, Vec<Part>) =
            self.parts.iter().partition(|part| part.rank() < 0);
        let add = |pipeline: Pipeline, part: Part| part.add_to(pipeline, client);
        let mut pipeline = outer.into_iter().fold(Pipeline::new(), add);
        if let Some(retry) = self.retry {
            pipeline = pipeline.retry(retry);
        }
        inner.into_iter().fold(pipeline, add).attempt_timeout(attempt_timeout)
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
    let (mut retry, mut parts) = (Vec::new(), Vec::<Part>::new());
    for part in text.split(',').map(str::trim) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let Some(part) = Part::parse(&words).transpose()? else {
            retry.push(part);
            continue;
        };
        if parts.iter().any(|other| other.name() == part.name()) {
            return Err(format!("`{}` is in the policy twice: remove one", part.name()));
        }
        parts.push(part);
    }
    parts.sort_by_key(Part::rank);
    let useless = parts.iter().find(|part| part.needs_retries());
    let retry = match (retry.join(", ").as_str(), useless) {
        ("none", Some(part)) => {
            return Err(format!("a {} needs retries: `none` has no retries", part.name()));
        }
        ("none", None) => None,
        ("", _) => {
            return Err("a policy must start with `none` or a retry policy such as `external_api`"
                .to_owned());
        }
        (text, _) => Some(text.parse::<Retry>().map_err(|error| {
            format!("{error}; after the retry, a policy can have {}", Part::FORMS)
        })?),
    };
    if retry.is_some_and(|retry| retry.attempts() > ATTEMPTS_MAX) {
        return Err(format!("the simulation allows at most {ATTEMPTS_MAX} attempts per call"));
    }
    Ok(Policy { text: text.trim().to_owned(), retry, parts })
}

#[cfg(test)]
mod tests {
    use super::Policy;
    use crate::storm::Client;
    use rewheel::{ManualClock, Random, seconds};

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
        refuse("3 attempts, fixed 1s, budget 1%, budget 1%", "`budget` is in the policy twice");
        refuse("1001 attempts, fixed 1s", "at most 1000 attempts");
        refuse("3 attempts, fixd 1s", "fixd");
        refuse("3 attempts, fixed 1s, braker", "braker");
        refuse("3 attempts, fixed 1s, braker", "can have `timeout 5s`, `hedge 50ms`");
        refuse("3 attempts, fixed 1s, breaker 4", "breaker 4");
        refuse("none, breaker, breaker", "`breaker` is in the policy twice");
        refuse("none, limit 0/s", "the limit is not valid");
        refuse("none, limit 5", "the limit is not valid");
        refuse("none, bulkhead 0", "the bulkhead is not valid");
        refuse("none, timeout 0s", "the timeout is not valid");
        refuse("none, hedge", "the hedge is not valid: use `hedge 50ms`");
        refuse("none, hedge 0ms", "the hedge is not valid");
        refuse("none, throttle 0.5", "the throttle is not valid: use `throttle 2`");
        refuse("none, throttle nan", "the throttle is not valid");
        refuse("none, adaptive 5", "the adaptive limit is not valid: use `adaptive 1..50`");
        refuse("none, adaptive 0..5", "the adaptive limit is not valid");
        refuse("none, adaptive 9..5", "the adaptive limit is not valid");
        refuse("none, adaptive 1..1000000", "with 1 to 100000 slots");
        refuse("none, hedge 1s, hedge 2s", "`hedge` is in the policy twice");
    }

    #[test]
    fn is_printed_as_it_was_written() {
        let text = "3 attempts, exponential 100ms max 10s, budget 10% floor 1, breaker";
        assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        assert_eq!("none, breaker".parse::<Policy>().unwrap().attempts(), 1);
    }

    #[test]
    fn each_policy_is_a_step_of_the_pipeline_in_its_place() {
        let text = "adaptive 1..50, bulkhead 4, breaker, throttle 2, limit 50/s, budget 10%, timeout 9s, hedge 50ms, 3 attempts, fixed 1s";
        let policy: Policy = text.parse().unwrap();
        let client = Client::new(0, &ManualClock::new(), Random::seeded(1));
        let explanation = policy.pipeline(&client, seconds(2)).explain().to_string();
        let steps = [
            "timeout",
            "retry",
            "rate limiter",
            "client throttle",
            "breaker",
            "bulkhead",
            "adaptive limit",
            "attempt timeout",
        ];
        let places = steps
            .map(|step| explanation.find(step).unwrap_or_else(|| panic!("{step}: {explanation}")));
        assert!(places.is_sorted(), "{explanation}");
    }
}
