//! Measures how long each step of a command takes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// The steps of one run, in the order they ran.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    ended: Vec<Step>,
    untested: Vec<String>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    took: Duration,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Passed,
    Failed,
}

impl Steps {
    /// Runs `work` under a headline.
    ///
    /// # Errors
    ///
    /// Returns what `work` returns. The caller stops there: most later steps would fail for the same
    /// reason, which hides it.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        println!("\n== {name}");
        let started = now();
        let result = work();
        let end = if result.is_ok() { End::Passed } else { End::Failed };
        let step = Step { name, took: now() - started, end };
        println!("-- {}", line(&step));
        self.ended.push(step);
        result
    }

    /// Notes what could not be tested here, each with its reason.
    pub(crate) fn leave_out(&mut self, untested: Vec<String>) {
        self.untested.extend(untested);
    }

    /// Fails if anything was left out: CI that tests less than it says is no CI.
    pub(crate) fn ensure_complete(&self) -> Result<()> {
        ensure!(self.untested.is_empty(), "not everything was tested, see above");
        Ok(())
    }

    /// Prints all steps with their durations, then what was left out; a single step has just been
    /// printed.
    pub(crate) fn print_summary(&self) {
        if self.ended.len() > 1 {
            println!("\n{}", summary(&self.ended));
        }
        for line in &self.untested {
            println!("not tested: {line}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "reports how long real programs ran")]
fn now() -> Instant {
    Instant::now()
}

fn summary(steps: &[Step]) -> String {
    let total: Duration = steps.iter().map(|step| step.took).sum();
    let mut lines: Vec<String> = steps.iter().map(line).collect();
    lines.push(format!("{:<32} {:>8.1} s", "total", total.as_secs_f64()));
    lines.join("\n")
}

fn line(step: &Step) -> String {
    let end = match step.end {
        End::Passed => "ok",
        End::Failed => "FAILED",
    };
    format!("{:<32} {:>8.1} s  {end}", step.name, step.took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_shows_each_step_with_the_total() {
        let step = |name, millis, end| Step { name, took: Duration::from_millis(millis), end };
        let steps = [step("format", 1_500, End::Passed), step("clippy", 61_000, End::Failed)];

        let expected = "\
format                                1.5 s  ok
clippy                               61.0 s  FAILED
total                                62.5 s";
        assert_eq!(summary(&steps), expected);
    }

    #[test]
    fn a_failing_step_is_recorded_as_failed() {
        let mut steps = Steps::default();
        let result = steps.run("breaks", || anyhow::bail!("no"));
        assert!(result.is_err());
        assert!(matches!(steps.ended[0].end, End::Failed));
    }

    #[test]
    fn what_was_left_out_makes_a_run_incomplete() {
        let mut steps = Steps::default();
        steps.leave_out(Vec::new());
        assert!(steps.ensure_complete().is_ok());
        steps.leave_out(vec!["PostgreSQL store (not installed)".to_owned()]);
        assert!(steps.ensure_complete().is_err());
    }
}
