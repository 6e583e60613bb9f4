//! The policies of the library that a simulated client can use beside its retry.
//!
//! To add a policy of the library: a variant of [`Part`], its form in [`Part::FORMS`], a line in [`Part::parse`], its place in
//! [`Part::rank`], and its step in [`Part::add_to`]. Nothing else in the lab needs to know it, unless it is around the pipeline, as a hedge.

use crate::storm::Client;
use rewheel::{
    AdaptiveLimit, Bulkhead, CircuitBreaker, ClientThrottle, Pipeline, RateLimiter, RetryBudget,
    duration, seconds,
};
use std::time::Duration;

/// Calls that may wait for a slot of a bulkhead. A longer queue only adds calls that end in a timeout.
const QUEUE_MAX: usize = 100;

/// A policy beside the retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    /// Makes a call again that takes longer than this.
    Hedge(Duration),
    /// Limits the time of the whole call.
    Timeout(Duration),
    /// Limits retries to a share of the calls, and to a number per second that is always allowed.
    Budget { ratio: f64, floor: Option<u32> },
    /// Limits the requests per second of each client.
    Limit(u32),
    /// Refuses calls while the dependency accepts less than one of this many.
    Throttle(f64),
    /// Stops calling while most calls fail.
    Breaker,
    /// Limits the concurrent requests of each client.
    Bulkhead(usize),
    /// Limits the concurrent requests of each client to what the dependency serves at once.
    Adaptive { floor: usize, ceiling: usize },
}

impl Part {
    /// How each part is written.
    pub(super) const FORMS: &str = "`timeout 5s`, `hedge 50ms`, `budget 10%`, `budget 10% floor 1`, `limit 50/s`, `throttle 2`, `breaker`, `bulkhead 4` or `adaptive 1..50`";

    /// Parses a part; `None` if the words are not a part, so that they belong to the retry.
    pub(super) fn parse(words: &[&str]) -> Option<Result<Part, String>> {
        match *words {
            ["timeout", ref words @ ..] => Some(parse_timeout(words)),
            ["hedge", ref words @ ..] => Some(parse_hedge(words)),
            ["budget", ref words @ ..] => Some(parse_budget(words)),
            ["limit", ref words @ ..] => Some(parse_limit(words)),
            ["throttle", ref words @ ..] => Some(parse_throttle(words)),
            ["breaker"] => Some(Ok(Part::Breaker)),
            ["bulkhead", ref words @ ..] => Some(parse_bulkhead(words)),
            ["adaptive", ref words @ ..] => Some(parse_adaptive(words)),
            _ => None,
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Part::Hedge(_) => "hedge",
            Part::Timeout(_) => "timeout",
            Part::Budget { .. } => "budget",
            Part::Limit(_) => "limit",
            Part::Throttle(_) => "throttle",
            Part::Breaker => "breaker",
            Part::Bulkhead(_) => "bulkhead",
            Part::Adaptive { .. } => "adaptive",
        }
    }

    /// Returns whether the part is useless without retries.
    pub(super) const fn needs_retries(&self) -> bool {
        match self {
            Part::Budget { .. } => true,
            Part::Hedge(_)
            | Part::Timeout(_)
            | Part::Limit(_)
            | Part::Throttle(_)
            | Part::Breaker
            | Part::Bulkhead(_)
            | Part::Adaptive { .. } => false,
        }
    }

    /// Returns the delay of a hedge.
    pub(super) const fn hedge_delay(&self) -> Option<Duration> {
        match self {
            Part::Hedge(delay) => Some(*delay),
            Part::Timeout(_)
            | Part::Budget { .. }
            | Part::Limit(_)
            | Part::Throttle(_)
            | Part::Breaker
            | Part::Bulkhead(_)
            | Part::Adaptive { .. } => None,
        }
    }

    /// Returns its place in the pipeline, from the outside in. The retry has place 0.
    pub(super) const fn rank(&self) -> i8 {
        match self {
            Part::Hedge(_) => -2,
            Part::Timeout(_) => -1,
            Part::Budget { .. } => 1,
            Part::Limit(_) => 2,
            Part::Throttle(_) => 3,
            Part::Breaker => 4,
            Part::Bulkhead(_) => 5,
            Part::Adaptive { .. } => 6,
        }
    }

    /// Adds the policy to the pipeline of a client, with state of its own and the clock of the simulation.
    pub(super) fn add_to(self, pipeline: Pipeline, client: &Client) -> Pipeline {
        let clock = client.clock();
        match self {
            // Around the pipeline: see `Policy::client_policies`.
            Part::Hedge(_) => pipeline,
            Part::Timeout(limit) => pipeline.timeout(limit),
            Part::Budget { ratio, floor } => {
                let budget = RetryBudget::ratio(ratio).clock(clock);
                let budget = match floor {
                    Some(floor) => budget.floor_per_second(floor),
                    None => budget,
                };
                pipeline.retry_budget(&budget.build())
            }
            Part::Limit(calls) => {
                // A call that may not be made at once fails: waiting would only hide the overload.
                let limiter = RateLimiter::per_second(calls).wait_max(Duration::ZERO);
                pipeline.rate_limiter(&limiter.clock(clock).build())
            }
            Part::Throttle(times) => {
                let throttle = ClientThrottle::accepts_times(times).clock(clock);
                pipeline.client_throttle(&throttle.random(client.random()).build())
            }
            Part::Breaker => {
                let breaker = CircuitBreaker::time_window(seconds(10)).failure_ratio(0.5);
                let breaker = breaker.open_for(seconds(5)).clock(clock).random(client.random());
                pipeline.circuit_breaker(&breaker.build())
            }
            Part::Bulkhead(slots) => {
                let bulkhead = Bulkhead::concurrency(slots).queue_max(QUEUE_MAX);
                pipeline.bulkhead(&bulkhead.wait_max(seconds(1)).clock(clock).build())
            }
            Part::Adaptive { floor, ceiling } => {
                let limit = AdaptiveLimit::between(floor, ceiling).queue_max(QUEUE_MAX);
                let limit = limit.wait_max(seconds(1)).clock(clock).random(client.random());
                pipeline.adaptive_limit(&limit.build())
            }
        }
    }
}

/// Parses a single time that is longer than zero.
fn time(words: &[&str]) -> Option<Duration> {
    match words {
        [time] => duration::parse(time).ok().filter(|time| !time.is_zero()),
        _ => None,
    }
}

fn parse_hedge(words: &[&str]) -> Result<Part, String> {
    time(words).map(Part::Hedge).ok_or("the hedge is not valid: use `hedge 50ms`".to_owned())
}

fn parse_throttle(words: &[&str]) -> Result<Part, String> {
    let times = match words {
        [times] => times.parse().ok(),
        _ => None,
    };
    let times = times.filter(|times| (1.0..=1_000.0).contains(times)).map(Part::Throttle);
    times.ok_or(
        "the throttle is not valid: use `throttle 2`, 1 to 1000 requests for each that is accepted"
            .to_owned(),
    )
}

fn parse_adaptive(words: &[&str]) -> Result<Part, String> {
    let limits = match words {
        [limits] => limits.split_once(".."),
        _ => None,
    };
    let limits =
        limits.and_then(|(floor, ceiling)| Some((floor.parse().ok()?, ceiling.parse().ok()?)));
    let is_valid =
        |(floor, ceiling): &(usize, usize)| 1 <= *floor && floor <= ceiling && *ceiling <= 100_000;
    let part = limits.filter(is_valid).map(|(floor, ceiling)| Part::Adaptive { floor, ceiling });
    part.ok_or(
        "the adaptive limit is not valid: use `adaptive 1..50`, with 1 to 100000 slots".to_owned(),
    )
}

fn parse_timeout(words: &[&str]) -> Result<Part, String> {
    let limit = time(words).map(Part::Timeout);
    limit.ok_or("the timeout is not valid: use `timeout 5s`".to_owned())
}

fn parse_budget(words: &[&str]) -> Result<Part, String> {
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
    Ok(Part::Budget { ratio, floor })
}

fn parse_limit(words: &[&str]) -> Result<Part, String> {
    let calls = match words {
        [rate] => rate.strip_suffix("/s").and_then(|calls| calls.parse().ok()),
        _ => None,
    };
    let calls = calls.filter(|calls| (1..=1_000_000).contains(calls)).map(Part::Limit);
    calls.ok_or("the limit is not valid: use `limit 50/s`, 1 to 1000000 per second".to_owned())
}

fn parse_bulkhead(words: &[&str]) -> Result<Part, String> {
    let slots = match words {
        [slots] => slots.parse().ok(),
        _ => None,
    };
    let slots = slots.filter(|slots| (1..=100_000).contains(slots)).map(Part::Bulkhead);
    slots.ok_or("the bulkhead is not valid: use `bulkhead 4`, 1 to 100000 slots".to_owned())
}
