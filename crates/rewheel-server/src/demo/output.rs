//! Formats the demo's output lines.

use rewheel::duration;
use rewheel_core::store::{AttemptRecord, Books};
use rewheel_core::{DueReason, Failure, Job, Status, Timestamp, printable};
use std::fmt;
use std::time::Duration;

const YELLOW: &str = "33";
const GREEN: &str = "32";
const RED: &str = "1;31";
const DIM: &str = "2";

/// The width of the column for a job's label.
const LABEL_MAX: usize = 16;

/// An event worth printing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// An attempt failed, and another follows.
    Retry { job: Job, attempt: AttemptRecord },
    /// A job succeeded after retries.
    Succeeded { job: Job, at: Timestamp },
    /// A job was given up.
    Dead { job: Job },
    /// A job was stopped by a user.
    Stopped { job: Job },
}

/// The overall state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) books: Books,
    /// The number of lines that were not printed.
    pub(super) unshown: usize,
}

impl Line {
    /// Returns the importance of a line, for when not all can be printed.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Line::Dead { .. } | Line::Stopped { .. } => 0,
            Line::Succeeded { .. } => 1,
            Line::Retry { .. } => 2,
        }
    }

    /// Formats the line, at this time after the start.
    pub(super) fn text(&self, elapsed: Duration, color: bool) -> String {
        let (job, code, what, details) = match self {
            Line::Retry { job, attempt } => (job, YELLOW, "retry", retry(job, attempt)),
            Line::Succeeded { job, at } => (job, GREEN, "succeeded", succeeded(job, *at)),
            Line::Dead { job } => (job, RED, "dead letter", dead(job)),
            Line::Stopped { job } => (job, DIM, job.state().as_str(), String::new()),
        };
        let what = painted(&format!("{what:<11}"), code, color);
        let (kind, label) = (job.lane.kind.as_str(), label(job));
        let line =
            format!("{}  {kind:<11}  {label:<LABEL_MAX$}  {what}  {details}", clock(elapsed));
        line.trim_end().to_owned()
    }
}

impl Summary {
    /// Formats the summary, at this time after the start.
    pub(super) fn text(&self, elapsed: Duration, color: bool) -> String {
        let Books { submitted, live, dead, finished, pruned } = self.books;
        let done = finished + pruned;
        let mut line = format!(
            "{}  {submitted} submitted = {done} done + {live} live + {dead} dead",
            clock(elapsed)
        );
        if self.unshown > 0 {
            line.push_str(&format!("   ({} events not shown)", self.unshown));
        }
        painted(&line, DIM, color)
    }
}

fn clock(elapsed: Duration) -> String {
    format!("{:>7.1}s", elapsed.as_secs_f64())
}

/// Returns a short name of a job: its key, or the end of its id, which is random.
fn label(job: &Job) -> String {
    let name = match &job.key {
        Some(key) => printable(key.as_str()).into_owned(),
        None => job.id.to_string().split_off(24),
    };
    if name.chars().count() <= LABEL_MAX {
        return name;
    }
    name.chars().take(LABEL_MAX - 1).chain(['…']).collect()
}

fn retry(job: &Job, attempt: &AttemptRecord) -> String {
    let why = attempt.failure().map(short).unwrap_or_default();
    let failed = format!("attempt {} failed, {why}", attempt.attempt);
    let Some(delay) = attempt.delay else { return failed };
    // The job stores only the reason of its latest wait.
    let is_asked = job.attempt == attempt.attempt && job.because == DueReason::RetryAfter;
    let asked = if is_asked { " (Retry-After)" } else { "" };
    format!("{failed}; retry in {}{asked}", rounded(delay))
}

fn succeeded(job: &Job, at: Timestamp) -> String {
    format!("in attempt {}, after {}", job.attempt, rounded(at.since(job.created)))
}

fn dead(job: &Job) -> String {
    let attempts = if job.attempt == 1 { "attempt" } else { "attempts" };
    let why =
        job.failure.as_ref().map_or_else(String::new, |failure| format!(", {}", short(failure)));
    format!("after {} {attempts}{why}", job.attempt)
}

fn short(failure: &Failure) -> String {
    match failure.code() {
        Some(code) => format!("{} {}", failure.category(), printable(code)),
        None => failure.category().to_string(),
    }
}

/// Rounds a duration for display.
fn rounded(duration: Duration) -> impl fmt::Display {
    let step = if duration < Duration::from_secs(1) { 1 } else { 100 };
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let rounded = Duration::from_millis(millis.div_ceil(step) * step);
    if rounded < Duration::from_secs(1) {
        duration::text(rounded).to_string()
    } else {
        format!("{:.1}s", rounded.as_secs_f64())
    }
}

fn painted(text: &str, code: &str, color: bool) -> String {
    if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Returns the line for a job that is no longer live.
pub(super) fn ending(job: Job) -> Option<Line> {
    match job.status {
        Status::Succeeded(at) if job.attempt > 1 => Some(Line::Succeeded { job, at }),
        Status::Dead(_) => Some(Line::Dead { job }),
        Status::Failed(_) | Status::Cancelled(_) => Some(Line::Stopped { job }),
        Status::Succeeded(_) | Status::Scheduled | Status::Leased { .. } | Status::Paused => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, short};
    use rewheel::Category;

    #[test]
    fn the_code_of_a_callee_does_not_command_a_terminal() {
        let failure = Failure::new(Category::Rejected, Some("a\x1b[2J"), "");
        assert_eq!(short(&failure), r"rejected a\u{1b}[2J");
    }
}
