//! Measures how long each step of a command takes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

/// The steps of one run, in the order they ran.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    ended: Vec<Step>,
    /// The failures inside steps, by name.
    failures: Vec<String>,
    untested: Vec<String>,
    /// As `untested`, but CI passes without it.
    exceptions: Vec<String>,
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
    /// Runs `work` under a heading.
    ///
    /// # Errors
    ///
    /// Returns the error of `work`. The caller stops only if later steps would fail for the same reason; otherwise it continues, and
    /// calls [`ensure_passed`](Steps::ensure_passed) at the end.
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

    /// Runs `work` under a heading, and prints its error instead of returning it, so that the next step can run.
    pub(crate) fn run_and_go_on(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) {
        if let Err(error) = self.run(name, work) {
            eprintln!("error: {error:#}");
        }
    }

    /// Records failures inside a step for the summary.
    pub(crate) fn name_failures(&mut self, failures: Vec<String>) {
        self.failures.extend(failures);
    }

    /// Fails if any step failed, and names those steps.
    pub(crate) fn ensure_passed(&self) -> Result<()> {
        let failed: Vec<&str> =
            self.ended.iter().filter(|step| step.end.is_failed()).map(|step| step.name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }

    /// Records what could not be tested here, with the reasons.
    pub(crate) fn leave_out(&mut self, untested: Vec<String>) {
        self.untested.extend(untested);
    }

    /// Records what could not be tested here with a tool that is no Debian package, so that CI cannot require it.
    pub(crate) fn except(&mut self, exceptions: Vec<String>) {
        self.exceptions.extend(exceptions);
    }

    /// Fails if anything was left out: CI must test everything that it claims to test.
    pub(crate) fn ensure_complete(&self) -> Result<()> {
        ensure!(self.untested.is_empty(), "not everything was tested, see the last line");
        Ok(())
    }

    /// Prints all steps with their durations, then the failures. A single step has just been printed.
    pub(crate) fn print_summary(&self) {
        if self.ended.len() > 1 {
            println!("\n{}", summary(&self.ended));
        }
        for failure in &self.failures {
            println!("FAILED: {failure}");
        }
    }

    /// Returns the last line of the run if something could not be tested here.
    pub(crate) fn untested(&self) -> Option<String> {
        let lists =
            [("not tested", &self.untested), ("not tested and not required", &self.exceptions)];
        let named = lists.iter().filter(|(_, list)| !list.is_empty());
        let lines: Vec<String> =
            named.map(|(what, list)| format!("{what}: {}", list.join("; "))).collect();
        (!lines.is_empty()).then(|| lines.join("; ").replace('\n', " "))
    }
}

impl End {
    fn is_failed(self) -> bool {
        match self {
            End::Passed => false,
            End::Failed => true,
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
        assert_eq!(steps.untested(), None);
        steps.leave_out(vec!["PostgreSQL store (not\ninstalled)".to_owned()]);
        steps.leave_out(vec!["clocks (no faketime)".to_owned()]);
        assert!(steps.ensure_complete().is_err());
        let line = "not tested: PostgreSQL store (not installed); clocks (no faketime)";
        assert_eq!(steps.untested().as_deref(), Some(line));
    }

    #[test]
    fn what_ci_does_not_require_is_named_and_no_failure() {
        let mut steps = Steps::default();
        steps.except(vec!["workflows (no actionlint)".to_owned()]);
        assert!(steps.ensure_complete().is_ok());
        let line = "not tested and not required: workflows (no actionlint)";
        assert_eq!(steps.untested().as_deref(), Some(line));
        steps.leave_out(vec!["clocks (no faketime)".to_owned()]);
        assert!(steps.ensure_complete().is_err());
        let line = format!("not tested: clocks (no faketime); {line}");
        assert_eq!(steps.untested(), Some(line));
    }

    #[test]
    fn steps_go_on_after_a_failure_and_the_end_names_it() {
        let mut steps = Steps::default();
        steps.run_and_go_on("tests", || anyhow::bail!("no"));
        steps.run_and_go_on("documentation examples", || Ok(()));
        steps.run_and_go_on("loom models", || anyhow::bail!("no"));
        assert_eq!(steps.ended.len(), 3);
        assert_eq!(steps.ensure_passed().unwrap_err().to_string(), "failed: tests, loom models");
    }
}
