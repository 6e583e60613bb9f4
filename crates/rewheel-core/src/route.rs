//! Maps failures to what is done about them, by an ordered list of rules.

mod action;

pub use self::action::{Action, ActionError};

use crate::decision::{Decision, History, Policy, Report, decide};
use crate::failure::Failure;
use crate::limits::Limits;
use rewheel::{Backoff, Category, Random, StatusSet, Verdict, duration};
use std::borrow::Cow;

/// Whether a retry stays with its holder while it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sticky {
    /// If the wait is short: up to the policy's `sticky_max`.
    #[default]
    ByWait,
    /// However long it waits.
    Yes,
    /// Never: any holder may take it.
    No,
}

/// What is done about some failures.
///
/// A rule names what it looks at, and everything that it names must fit; one that names nothing
/// fits every failure. Of several categories, codes or statuses one is enough.
///
/// ```
/// use rewheel::{Category, minutes};
/// use rewheel_core::{Action, Failure, Rule};
///
/// let rule = Rule::new(Action::Snooze(minutes(5))).on_category(Category::Rejected).on_code("card_*");
/// assert!(rule.fits(&Failure::new(Category::Rejected, Some("card_locked"), "")));
/// assert!(!rule.fits(&Failure::new(Category::Timeout, Some("card_locked"), "")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The categories that it looks for; any if there is none.
    pub categories: Vec<Category>,
    /// The codes that it looks for, where a `*` at the end stands for anything; any if there is none.
    pub codes: Vec<String>,
    /// The HTTP statuses that it looks for, which callbacks and HTTP clients have as their code; any
    /// if there is none.
    pub statuses: StatusSet,
    /// A part of the message, in small or capital letters.
    pub message: Option<String>,
    /// What is done.
    pub action: Action,
    /// Whether a retry stays with its holder.
    pub sticky: Sticky,
}

impl Rule {
    /// Does something about every failure, until it is told what to look at.
    pub const fn new(action: Action) -> Rule {
        Rule {
            categories: Vec::new(),
            codes: Vec::new(),
            statuses: StatusSet::EMPTY,
            message: None,
            action,
            sticky: Sticky::ByWait,
        }
    }

    /// Looks for a category, beside those named before.
    #[must_use]
    pub fn on_category(mut self, category: Category) -> Rule {
        self.categories.push(category);
        self
    }

    /// Looks for a code, or for all that begin with what is before a `*`, beside those named before.
    #[must_use]
    pub fn on_code(mut self, code: &str) -> Rule {
        self.codes.push(code.to_owned());
        self
    }

    /// Looks for HTTP statuses, beside those named before.
    #[must_use]
    pub fn on_status(mut self, statuses: StatusSet) -> Rule {
        self.statuses = self.statuses.union(statuses);
        self
    }

    /// Looks for a part of the message, in small or capital letters.
    #[must_use]
    pub fn on_message(mut self, part: &str) -> Rule {
        self.message = Some(part.to_owned());
        self
    }

    /// Says whether a retry stays with its holder.
    #[must_use]
    pub const fn sticky(mut self, sticky: Sticky) -> Rule {
        self.sticky = sticky;
        self
    }

    /// Returns whether it is about this failure.
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

    /// Says which part of it makes no sense, and why.
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

/// A code as the statuses know them.
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

/// Decides by rules what is done about failures; the first rule that fits is obeyed. A failure that
/// no rule fits is retried by its kind's policy, then given up.
///
/// Rules are about failures that were judged. What a handler says outright (dead, fail, pause,
/// cancel, snooze) stands, whatever a rule says. Rules do not lift limits either: attempts run out
/// after every kind of retry, no rule makes a retry wait longer than the policy's `retry_after_max`
/// unless its backoff does, and a deadline that comes before the end of a wait ends the job at once.
/// A snooze uses up no attempt: only the deadline bounds how often it is repeated.
///
/// ```
/// use rewheel::{Category, Random, StatusSet, Verdict, minutes};
/// use rewheel_core::{Action, Because, Decision, Failure, History, Policy, Report, Router, Rule};
///
/// let router = Router::new()
///     .rule(Rule::new(Action::Snooze(minutes(5))).on_status(StatusSet::EMPTY.with(409)))
///     .rule(Rule::new(Action::RetrySlower(4)).on_category(Category::Throttled));
///
/// let conflict = Failure::new(Category::Rejected, Some("409"), "being edited");
/// let report = Report::AttemptFailed { verdict: Verdict::Stop, failure: conflict };
/// let routed = router.route(&report, &Policy::default());
/// let decision = routed.decide(&History::of_attempt(1), &Random::thread());
/// assert_eq!(decision, Decision::Snooze { after: minutes(5), because: Because::Snooze });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Router {
    rules: Vec<Rule>,
}

impl Router {
    /// Starts without a rule.
    pub const fn new() -> Router {
        Router { rules: Vec::new() }
    }

    /// Adds a rule, for what none before it fits.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Router {
        self.rules.push(rule);
        self
    }

    /// Returns the rules in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns whether there is no rule.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Says what follows from the rules: a report and a policy to decide by.
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

    /// Says which rule makes no sense, and why.
    ///
    /// # Errors
    /// The first rule that cannot work, or is never reached.
    pub fn check(&self) -> Result<(), RuleError> {
        if self.rules.len() > Limits::ROUTES_MAX {
            let why =
                format!("has {} rules; the limit is {}", self.rules.len(), Limits::ROUTES_MAX);
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

    /// Returns the first rule that would make a job wait longer than its policy lets anybody.
    ///
    /// # Errors
    /// Names the rule.
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

/// A failure that a rule wants retried. When the callee said how long it wants to be left alone,
/// that still holds.
fn again(verdict: Verdict, failure: &Failure) -> Report {
    let verdict = match verdict {
        asked @ Verdict::RetryAfter(_) => asked,
        Verdict::Done | Verdict::Retry | Verdict::Stop => Verdict::Retry,
    };
    Report::AttemptFailed { verdict, failure: failure.clone() }
}

/// What rules made of a report: what to decide by.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed<'a> {
    /// The report, or what a rule put in its place.
    pub report: Cow<'a, Report>,
    /// The policy, as a rule changed it.
    pub policy: Policy,
    /// The rule that was obeyed, counted from 0.
    pub rule: Option<usize>,
}

impl Routed<'_> {
    /// Decides what follows; see [`decide`].
    pub fn decide(&self, history: &History, random: &Random) -> Decision {
        decide(&self.report, &self.policy, history, random)
    }
}

/// A rule that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Which, counted from 1.
    pub rule: usize,
    /// Which part of it, as the config calls it.
    pub key: Option<&'static str>,
    /// What is wrong with it.
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
