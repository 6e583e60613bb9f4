//! Maps failures to actions by an ordered list of rules.

mod action;

pub use self::action::{Action, ActionError};

use crate::decision::{Decision, History, Policy, Report, decide};
use crate::failure::Failure;
use crate::limits::Limits;
use rewheel::{Backoff, Category, Random, StatusSet, Verdict, duration};
use std::borrow::Cow;

/// Whether a job stays with its holder while it waits for a retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sticky {
    /// If the delay is at most the policy's `sticky_max`.
    #[default]
    ByWait,
    /// With any delay.
    Yes,
    /// Never: any holder may claim it.
    No,
}

/// An action for some failures.
///
/// A rule matches a failure if all of its conditions match; a rule without conditions matches every failure. If a
/// condition lists several categories, codes or statuses, one match is enough.
///
/// ```
/// use rewheel::{Category, minutes};
/// use rewheel_core::{Action, Failure, FailureRule};
///
/// let rule = FailureRule::new(Action::Snooze(minutes(5))).on_category(Category::Rejected).on_code("card_*");
/// assert!(rule.fits(&Failure::new(Category::Rejected, Some("card_locked"), "")));
/// assert!(!rule.fits(&Failure::new(Category::Timeout, Some("card_locked"), "")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRule {
    /// Categories to match; empty matches any.
    pub categories: Vec<Category>,
    /// Codes to match, where a `*` at the end matches any further characters; empty matches any.
    pub codes: Vec<String>,
    /// HTTP statuses to match, which callbacks and HTTP clients report as their code; empty matches any.
    pub statuses: StatusSet,
    /// Part of the message to match, ignoring case.
    pub message: Option<String>,
    /// The action.
    pub action: Action,
    /// Whether a retry stays with its holder.
    pub sticky: Sticky,
}

impl FailureRule {
    /// Creates a rule without conditions, which matches every failure.
    pub const fn new(action: Action) -> FailureRule {
        FailureRule {
            categories: Vec::new(),
            codes: Vec::new(),
            statuses: StatusSet::EMPTY,
            message: None,
            action,
            sticky: Sticky::ByWait,
        }
    }

    /// Adds a category to match.
    #[must_use]
    pub fn on_category(mut self, category: Category) -> FailureRule {
        self.categories.push(category);
        self
    }

    /// Adds a code to match; a `*` at the end matches any further characters.
    #[must_use]
    pub fn on_code(mut self, code: &str) -> FailureRule {
        self.codes.push(code.to_owned());
        self
    }

    /// Adds HTTP statuses to match.
    #[must_use]
    pub fn on_status(mut self, statuses: StatusSet) -> FailureRule {
        self.statuses = self.statuses.union(statuses);
        self
    }

    /// Sets the part of the message to match, ignoring case.
    #[must_use]
    pub fn on_message(mut self, part: &str) -> FailureRule {
        self.message = Some(part.to_owned());
        self
    }

    /// Sets whether a retry stays with its holder.
    #[must_use]
    pub const fn sticky(mut self, sticky: Sticky) -> FailureRule {
        self.sticky = sticky;
        self
    }

    /// Returns whether the rule matches this failure.
    pub fn fits(&self, failure: &Failure) -> bool {
        let code = failure.code();
        let fits_category =
            self.categories.is_empty() || self.categories.contains(&failure.category());
        let fits_code = self.codes.is_empty()
            || code.is_some_and(|code| self.codes.iter().any(|pattern| covers(pattern, code)));
        let fits_status =
            self.statuses.is_empty() || status(code).is_some_and(|s| self.statuses.contains(s));
        fits_category
            && fits_code
            && fits_status
            && self.message.as_deref().is_none_or(|part| has(failure.message(), part))
    }

    fn fits_everything(&self) -> bool {
        self.categories.is_empty()
            && self.codes.is_empty()
            && self.statuses.is_empty()
            && self.message.is_none()
    }

    /// Returns the first invalid part of the rule, and the reason.
    fn check(&self) -> Result<(), (&'static str, String)> {
        for code in &self.codes {
            let before = code.strip_suffix('*').unwrap_or(code);
            if before.contains('*') {
                return Err(("code", format!("`{code}`: a `*` may only be the last character")));
            }
            if code.is_empty() || code.len() > Limits::CODE_BYTES_MAX {
                return Err(("code", format!("must be 1 to {} bytes", Limits::CODE_BYTES_MAX)));
            }
        }
        let fits = |part: &String| (1..=Limits::ROUTE_MESSAGE_BYTES_MAX).contains(&part.len());
        if !self.message.as_ref().is_none_or(fits) {
            let why = format!("must be 1 to {} bytes", Limits::ROUTE_MESSAGE_BYTES_MAX);
            return Err(("message", why));
        }
        self.action.check().map_err(|why| ("then", why))?;
        if self.sticky != Sticky::ByWait && !self.action.is_retry() {
            let why = format!("applies only to retry, not to `{}`", self.action);
            return Err(("sticky", why));
        }
        Ok(())
    }
}

/// Reads a code as an HTTP status.
fn status(code: Option<&str>) -> Option<u16> {
    code.filter(|code| code.len() == 3)?.parse().ok()
}

fn covers(pattern: &str, code: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => code.starts_with(beginning),
        None => code == pattern,
    }
}

fn has(message: &str, part: &str) -> bool {
    message.to_lowercase().contains(&part.to_lowercase())
}

/// Decides by an ordered list of rules how failures are handled; the first matching rule applies. A failure without a matching
/// rule is retried by the policy of its kind, then given up.
///
/// Rules apply to classified failures. A report in which the handler itself decides (dead, fail, pause, cancel, snooze) overrides
/// every rule. Rules do not remove limits. The maximum number of attempts still applies. A rule cannot make a delay longer
/// than `retry_after_max` of the policy, except if the backoff itself is longer. If the deadline is before the end of a
/// delay, the job ends at once. A snooze uses no attempt: only the deadline limits how often it repeats.
///
/// ```
/// use rewheel::{Category, Random, StatusSet, Verdict, minutes};
/// use rewheel_core::{Action, DueReason, Decision, Failure, History, Policy, Report, FailureRules, FailureRule};
///
/// let router = FailureRules::new()
///     .rule(FailureRule::new(Action::Snooze(minutes(5))).on_status(StatusSet::EMPTY.with(409)))
///     .rule(FailureRule::new(Action::RetrySlower(4)).on_category(Category::Throttled));
///
/// let conflict = Failure::new(Category::Rejected, Some("409"), "being edited");
/// let report = Report::AttemptFailed { verdict: Verdict::Stop, failure: conflict };
/// let routed = router.route(&report, &Policy::default());
/// let decision = routed.decide(&History::of_attempt(1), &Random::thread());
/// assert_eq!(decision, Decision::Snooze { after: minutes(5), because: DueReason::Snooze });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureRules {
    rules: Vec<FailureRule>,
}

impl FailureRules {
    /// Creates a router without rules.
    pub const fn new() -> FailureRules {
        FailureRules { rules: Vec::new() }
    }

    /// Adds a rule, which applies if no earlier rule matches.
    #[must_use]
    pub fn rule(mut self, rule: FailureRule) -> FailureRules {
        self.rules.push(rule);
        self
    }

    /// Returns the rules in their order.
    pub fn rules(&self) -> &[FailureRule] {
        &self.rules
    }

    /// Returns whether there is no rule.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Applies the rules. Returns the report and the policy to decide by.
    pub fn route<'a>(&self, report: &'a Report, policy: &Policy) -> Routed<'a> {
        let as_it_is = Routed { report: Cow::Borrowed(report), policy: *policy, rule: None };
        let Report::AttemptFailed { verdict, failure } = report else { return as_it_is };
        let Some(index) = self.rules.iter().position(|rule| rule.fits(failure)) else {
            return as_it_is;
        };
        let rule = &self.rules[index];
        let policy = Policy { sticky: rule.sticky, ..*policy };
        let (report, policy) = match rule.action {
            Action::Retry => (again(*verdict, failure), policy),
            Action::RetryAfter(after) => {
                let backoff = Backoff::fixed(after.min(policy.retry_after_max));
                (again(*verdict, failure), Policy { backoff, ..policy })
            }
            Action::RetrySlower(factor) => {
                (again(*verdict, failure), Policy { backoff_factor: factor, ..policy })
            }
            Action::Snooze(after) => (Report::Snooze(after), policy),
            Action::Dead => (Report::Dead(failure.clone()), policy),
            Action::Fail => (Report::FailJob(failure.clone()), policy),
            Action::Pause => (Report::Pause, policy),
            Action::Cancel => (Report::Cancel, policy),
        };
        Routed { report: Cow::Owned(report), policy, rule: Some(index) }
    }

    /// Checks every rule.
    ///
    /// # Errors
    /// Fails with the first rule that cannot work or is never reached.
    pub fn check(&self) -> Result<(), RuleError> {
        if self.rules.len() > Limits::ROUTES_MAX {
            let why = format!(
                "is above the limit: there are {} rules, and the limit is {}",
                self.rules.len(),
                Limits::ROUTES_MAX
            );
            return Err(RuleError { rule: Limits::ROUTES_MAX + 1, key: None, why });
        }
        for (number, rule) in (1..).zip(&self.rules) {
            let wrong = |(key, why)| RuleError { rule: number, key: Some(key), why };
            rule.check().map_err(wrong)?;
            if rule.fits_everything() && number < self.rules.len() {
                let why = format!("is never reached: rule {number} matches every failure");
                return Err(RuleError { rule: number + 1, key: None, why });
            }
        }
        Ok(())
    }

    /// Checks that no rule makes a job wait longer than its policy allows.
    ///
    /// # Errors
    /// Fails with the first such rule.
    pub fn check_waits(&self, policy: &Policy) -> Result<(), RuleError> {
        for (number, rule) in (1..).zip(&self.rules) {
            if let Action::RetryAfter(after) = rule.action
                && after > policy.retry_after_max
            {
                let most = duration::text(policy.retry_after_max);
                let why = format!("`{}` is longer than retry_after_max ({most})", rule.action);
                return Err(RuleError { rule: number, key: Some("then"), why });
            }
        }
        Ok(())
    }
}

/// A failure that a rule retries. A delay that the callee asked for still applies.
fn again(verdict: Verdict, failure: &Failure) -> Report {
    let verdict = match verdict {
        asked @ Verdict::RetryAfter(_) => asked,
        Verdict::Done | Verdict::Retry | Verdict::Stop => Verdict::Retry,
    };
    Report::AttemptFailed { verdict, failure: failure.clone() }
}

/// The result of applying rules to a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed<'a> {
    /// The report, or its replacement by a rule.
    pub report: Cow<'a, Report>,
    /// The policy, with the changes of the rule.
    pub policy: Policy,
    /// The rule that was applied, counted from 0.
    pub rule: Option<usize>,
}

impl Routed<'_> {
    /// Decides what happens next; see [`decide`].
    pub fn decide(&self, history: &History, random: &Random) -> Decision {
        decide(&self.report, &self.policy, history, random)
    }
}

/// Error: a rule is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The rule, counted from 1.
    pub rule: usize,
    /// The invalid part of the rule, by its name in the config.
    pub key: Option<&'static str>,
    /// The reason.
    pub why: String,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.key {
            Some(key) => write!(f, "rule {}: {key}: {}", self.rule, self.why),
            None => write!(f, "rule {}: {}", self.rule, self.why),
        }
    }
}

impl std::error::Error for RuleError {}

#[cfg(test)]
mod tests;
