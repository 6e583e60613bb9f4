//! Prints what happens to the demo's jobs.

use super::kinds;
use super::output::{Line, Summary, ending};
use rewheel::{CancelToken, Clock, Moment, millis, seconds};
use rewheel_core::store::{Filter, PageRequest, Store, StoreResult};
use rewheel_core::{Job, JobId, State};
use rewheel_engine::Engine;
use std::collections::{HashMap, HashSet};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

/// Polling interval: a retry is printed before the next one happens.
const LOOK_EVERY: Duration = millis(200);

/// Interval between summaries.
const SUMMARY_EVERY: Duration = seconds(5);

/// Maximum rate of lines, so that people can read them.
const LINES_PER_SECOND: f64 = 6.0;

/// Maximum number of jobs to read. The demo has a few dozen, but users may submit more.
const JOBS_MAX: usize = 200;

/// Prints to stderr what happens to the demo's jobs, until it is stopped.
pub async fn narrate(engine: Engine, stop: CancelToken) {
    let stderr = std::io::stderr();
    let color = stderr.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let clock = Clock::system();
    let store = Arc::clone(engine.store());
    let mut narrator = Narrator::new(store, stderr, color, clock.clone());
    while !stop.is_cancelled() {
        let rest = narrator.tick().await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = clock.sleep(rest) => {}
        }
    }
}

pub(super) struct Narrator<W> {
    store: Arc<dyn Store>,
    out: W,
    color: bool,
    clock: Clock,
    started: Moment,
    looked: Moment,
    summed_up: Moment,
    /// The number of lines that may be printed now.
    room: f64,
    unshown: usize,
    /// Live jobs, with the latest printed attempt.
    live: HashMap<JobId, u32>,
    /// True until the first poll: earlier events are not printed.
    is_first: bool,
}

impl<W: Write> Narrator<W> {
    pub(super) fn new(store: Arc<dyn Store>, out: W, color: bool, clock: Clock) -> Narrator<W> {
        let now = clock.now();
        Narrator {
            store,
            out,
            color,
            clock,
            started: now,
            looked: now,
            summed_up: now,
            room: LINES_PER_SECOND,
            unshown: 0,
            live: HashMap::new(),
            is_first: true,
        }
    }

    #[cfg(test)]
    pub(super) fn out(&self) -> &W {
        &self.out
    }

    /// Prints new events; returns how long to wait.
    pub(super) async fn tick(&mut self) -> Duration {
        let now = self.clock.now();
        let refill = now.since(self.looked).as_secs_f64() * LINES_PER_SECOND;
        self.room = (self.room + refill).min(LINES_PER_SECOND);
        self.looked = now;
        // The engine reports a store that does not respond.
        if let Ok(lines) = self.look().await {
            self.tell(lines, now.since(self.started));
        }
        if now.since(self.summed_up) >= SUMMARY_EVERY
            && let Ok(books) = self.store.books().await
        {
            self.summed_up = now;
            let summary = Summary { books, unshown: std::mem::take(&mut self.unshown) };
            let text = summary.text(now.since(self.started), self.color);
            self.print(&text);
        }
        LOOK_EVERY
    }

    /// Finds changes since the last poll.
    async fn look(&mut self) -> StoreResult<Vec<Line>> {
        let filter = Filter {
            states: vec![State::Scheduled, State::Leased],
            kinds: kinds::ALL.iter().map(kinds::DemoKind::name).collect(),
            ..Filter::default()
        };
        let page = self.store.list(&filter, &PageRequest::first(JOBS_MAX)).await?;
        if std::mem::take(&mut self.is_first) {
            self.live.extend(page.items.iter().map(|job| (job.id, job.attempt)));
        }
        let mut lines = Vec::new();
        let listed: HashSet<JobId> = page.items.iter().map(|job| job.id).collect();
        let mut gone: Vec<JobId> =
            self.live.keys().filter(|id| !listed.contains(id)).copied().collect();
        gone.sort_unstable();
        for id in gone.into_iter().take(JOBS_MAX) {
            let Some(job) = self.store.get(id).await? else {
                self.live.remove(&id);
                continue;
            };
            self.retries(&job, &mut lines).await?;
            if !matches!(job.state(), State::Scheduled | State::Leased) {
                self.live.remove(&id);
                lines.extend(ending(job));
            }
        }
        for job in page.items {
            self.retries(&job, &mut lines).await?;
        }
        Ok(lines)
    }

    /// Finds failed attempts of a job since the last poll, except a final one.
    async fn retries(&mut self, job: &Job, lines: &mut Vec<Line>) -> StoreResult<()> {
        let told = self.live.entry(job.id).or_insert(0);
        if job.attempt <= *told {
            return Ok(());
        }
        let attempts = self.store.attempts(job.id).await?;
        let new = attempts.into_iter().filter(|one| one.attempt > *told && one.delay.is_some());
        lines.extend(new.map(|attempt| Line::Retry { job: job.clone(), attempt }));
        *told = job.attempt;
        Ok(())
    }

    /// Prints as many lines as allowed: the most important ones, in the order in which they were
    /// found.
    fn tell(&mut self, lines: Vec<Line>, elapsed: Duration) {
        let room = self.room as usize;
        self.unshown += lines.len().saturating_sub(room);
        let mut lines: Vec<(usize, Line)> = lines.into_iter().enumerate().collect();
        lines.sort_by_key(|(_, line)| line.rank());
        lines.truncate(room);
        lines.sort_by_key(|(found, _)| *found);
        self.room -= lines.len() as f64;
        for (_, line) in lines {
            let text = line.text(elapsed, self.color);
            self.print(&text);
        }
    }

    /// A closed output is ignored.
    fn print(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }
}
