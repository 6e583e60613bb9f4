//! Runs one attempt of a job, from its start to the result to settle.

use crate::admission::{FleetRule, Ticket};
use crate::checkpoint::Checkpoints;
use crate::follow_ups::FollowUps;
use crate::kinds::KindEntry;
use crate::output::Output;
use crate::park::{self, Target};
use crate::runner::{Gives, JobContext, Reporting, Runner};
use crate::shared::{Command, Finished, Shared, Waiting};
use crate::{supervise, trace};
use rewheel::{CancelToken, Category, Verdict, duration};
use rewheel_core::store::{AttemptTiming, Settlement};
use rewheel_core::{Decision, DueReason, Failure, History, Job, Lease, Report, Retain};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tracing::Instrument as _;

/// How long a cancelled handler may continue: enough to roll back a transaction.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Runs an admitted job, and passes its result to the settle loop.
pub(crate) async fn run(
    shared: Arc<Shared>,
    mut waiting: Waiting,
    kind: Arc<KindEntry>,
    mut ticket: Box<Ticket>,
    cancel: CancelToken,
) {
    let lease = waiting.lease();
    let unsettled = Unsettled { shared: Arc::clone(&shared), lease: Some(lease) };
    if waiting.job.is_suspect() && !record_start(&shared, &waiting).await {
        drop(unsettled);
        ticket.unused();
        let _ = shared.signals.to_dispatch.send(Command::Place);
        return;
    }
    let target = match begin(&shared, &waiting, &kind) {
        Ok(target) => target,
        Err((decision, failure)) => {
            let is_unused = matches!(decision, Decision::Snooze { .. });
            let slot = if is_unused { ticket.unused_until_settled() } else { ticket.ran(false) };
            let settlement = settlement(&shared, &waiting.job, &kind, decision, failure);
            unsettled.settles();
            let _ =
                shared.signals.to_settle.send(Finished { waiting, settlement, slot: Some(slot) });
            return;
        }
    };
    ticket.begins(waiting.job.attempt == waiting.job.attempts_before);
    if target.is_some() {
        // It says nothing about the other targets.
        ticket.is_of_one_target();
    }
    let started = shared.clock.now();
    kind.meters.starts(waiting.job.attempt);
    let _running = kind.meters.runs();
    kind.meters.is_late(waiting.overdue + started.since(waiting.due), started);
    let gives = gives(&shared, &waiting, &kind);
    let place = target.as_ref().map_or(0, Target::place);
    let span = trace::attempt(&waiting.job, kind.policy(&waiting.job).attempts_max);
    let report = report(&shared, &waiting, &kind, &cancel, (Arc::clone(&gives), place));
    let report = report.instrument(span.clone()).await;
    if let Some(payload) = gives.checkpoints.take() {
        // A retry that stays here continues from there.
        Arc::make_mut(&mut waiting.job).payload = Some(payload);
    }
    let took = shared.clock.now().since(started);
    kind.meters.duration.took(took);
    let told = cancel.is_cancelled();
    let spoke = if told { None } else { park::speaks(&report) };
    if let Some(asked) = park::asked_to_wait(&report).filter(|_| !told) {
        shared.heed(&kind, &waiting.job, Some(place), &asked);
    }
    if let Some(target) = target.filter(|_| !told) {
        target.note(&report);
    }
    ticket.speaks(spoke.as_ref(), told);
    let decision =
        decide_next(&shared, &waiting, &kind, if told { stopped(&report) } else { &report });
    let slot = ticket.ran(decision == Decision::Succeed);
    let (follow_ups, payload) = gives.follow_ups.end(&report, &decision);
    let given = gives.output.end(&report, &decision);
    let failure = failure(report);
    trace::decided(&span, &decision, failure.as_ref());
    let mut settlement = settlement(&shared, &waiting.job, &kind, decision, failure);
    settlement.ran = AttemptTiming { started_ago: took, duration: took };
    settlement.follow_ups = follow_ups;
    (settlement.result, settlement.code) = (given.result, given.code);
    settlement.payload = payload;
    unsettled.settles();
    // The receiver ends only with the engine.
    let _ = shared.signals.to_settle.send(Finished { waiting, settlement, slot: Some(slot) });
}

/// Returns what an attempt can give while it runs.
fn gives(shared: &Arc<Shared>, waiting: &Waiting, kind: &KindEntry) -> Arc<Gives> {
    // Payloads of the engine's own jobs are not limited like submitted ones.
    let is_own = waiting.job.lane.kind.is_reserved();
    let bytes_max = if is_own { usize::MAX } else { shared.settings.payload_bytes_max };
    Arc::new(Gives {
        checkpoints: Checkpoints::new(&shared.store, waiting.holder, waiting.lease(), bytes_max),
        follow_ups: FollowUps::new(shared),
        output: Output::new(kind.settings.result.then_some(shared.settings.result_bytes_max)),
    })
}

/// An attempt without a result yet. If it is dropped by a panic in the engine's own code, it releases the job, and the search for
/// lost leases gives the job back.
struct Unsettled {
    shared: Arc<Shared>,
    lease: Option<Lease>,
}

impl Unsettled {
    fn settles(mut self) {
        self.lease = None;
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        let Some(lease) = self.lease else { return };
        if std::thread::panicking() {
            tracing::error!(job = %lease.job, "bug in the engine: an attempt panicked outside its handler; the job runs again later");
        }
        self.shared.leases.forget(lease);
    }
}

/// Begins the call of an attempt, or returns what follows instead: a delay if its target is down, a failure if the code of the
/// runner panicked.
fn begin(
    shared: &Shared,
    waiting: &Waiting,
    kind: &KindEntry,
) -> Result<Option<Target>, (Decision, Option<Failure>)> {
    match catch_unwind(AssertUnwindSafe(|| call(shared, waiting, kind))) {
        Ok(Ok(target)) => Ok(target),
        Ok(Err((after, because, failure))) => Err((Decision::Snooze { after, because }, failure)),
        Err(panic) => {
            let report = panicked(&*panic);
            Err((decide_next(shared, waiting, kind, &report), failure(report)))
        }
    }
}

/// Begins the call of an attempt whose kind has several targets, or returns why it is not made.
fn call(
    shared: &Shared,
    waiting: &Waiting,
    kind: &KindEntry,
) -> Result<Option<Target>, (Duration, DueReason, Option<Failure>)> {
    let Some(runner) = &kind.runner else { return Ok(None) };
    let targets = runner.targets(&waiting.job);
    if targets.is_empty() {
        return Ok(None);
    }
    let open = shared
        .admission
        .open_targets(&waiting.job.lane.kind, &targets, || shared.random.next())
        .map_err(|wait| (wait, DueReason::RetryAfter, None))?;
    let are_watched = targets.len() > 1 || kind.settings.breaker.is_some();
    if !are_watched {
        return Ok(None);
    }
    let refused = |wait| (wait, DueReason::Parked, park::left_alone(&waiting.job, &targets));
    kind.targets.begin(&targets, &open).map(Some).map_err(refused)
}

/// Builds the settlement of an attempt that a worker made elsewhere.
pub(crate) fn settlement_of(
    shared: &Shared,
    kind: &KindEntry,
    job: &Job,
    deadline_in: Option<Duration>,
    report: Report,
    took: Duration,
) -> Settlement {
    let mut decision = decide(shared, kind, job, (None, deadline_in), &report);
    if let Decision::Retry { sticky, .. } = &mut decision {
        // A remote worker has no timing wheel to wait in.
        *sticky = false;
    }
    let mut settlement = settlement(shared, job, kind, decision, failure(report));
    settlement.ran = AttemptTiming { started_ago: took, duration: took };
    settlement
}

fn settlement(
    shared: &Shared,
    job: &Job,
    kind: &KindEntry,
    decision: Decision,
    failure: Option<Failure>,
) -> Settlement {
    let keep_job = match decision {
        Decision::Succeed => kind.settings.keep_succeeded,
        Decision::Retry { .. }
        | Decision::Snooze { .. }
        | Decision::Dead { .. }
        | Decision::Fail { .. }
        | Decision::Pause
        | Decision::Cancel => shared.settings.retention_ended,
    };
    let timeout = kind.attempt_timeout(job);
    Settlement {
        lease: Lease { job: job.id, fence: job.fence },
        decision,
        ran: AttemptTiming { started_ago: Duration::ZERO, duration: Duration::ZERO },
        failure,
        hold: timeout + shared.settings.overdue_grace,
        keep: Retain { job: keep_job, key: shared.settings.retention_keys },
        follow_ups: Vec::new(),
        code: None,
        result: None,
        payload: None,
    }
}

/// A takeover counts against a suspect job only from here on, so this must be durable first. If the store cannot confirm it, no
/// attempt is used: the job is found overdue, or given back.
async fn record_start(shared: &Shared, waiting: &Waiting) -> bool {
    let lease = waiting.lease();
    match shared.store.start(waiting.holder, &[lease]).await {
        Ok(answers) => answers == [true],
        Err(error) => {
            tracing::debug!(job = %lease.job, %error, "failed to record the start of a job that was taken over from another holder: releasing the job without running it");
            let keep = shared.retain_ended();
            let _ = shared.store.give_back(waiting.holder, &[lease], keep).await;
            false
        }
    }
}

async fn report(
    shared: &Shared,
    waiting: &Waiting,
    kind: &KindEntry,
    cancel: &CancelToken,
    (gives, target): (Arc<Gives>, usize),
) -> Report {
    let Some(runner) = &kind.runner else {
        let failure =
            Failure::new(Category::NoHandler, None, "this node has no handler for the kind");
        return Report::AttemptFailed { verdict: Verdict::Retry, failure };
    };
    let now = shared.clock.now();
    let left = waiting.deadline.map(|deadline| deadline.since(now));
    if left.is_some_and(|left| left.is_zero()) {
        return Report::Dead(Failure::of_deadline());
    }
    let timeout = kind.attempt_timeout(&waiting.job);
    let ends_in = left.map_or(timeout, |left| left.min(timeout));
    let job = Arc::clone(&waiting.job);
    let context = JobContext::new(job, ends_in, cancel.clone(), gives, target);
    let cut = async {
        tokio::select! {
            biased;
            () = shared.clock.sleep(ends_in) => {}
            () = told_to_stop(shared, cancel) => {}
        }
    };
    tokio::select! {
        biased;
        report = guarded(&**runner, context) => report,
        () = cut => cut_short(shared, waiting, ends_in, cancel),
    }
}

/// Completes some time after the handler was cancelled.
async fn told_to_stop(shared: &Shared, cancel: &CancelToken) {
    cancel.cancelled().await;
    shared.clock.sleep(CANCEL_GRACE).await;
}

fn cut_short(
    shared: &Shared,
    waiting: &Waiting,
    ends_in: Duration,
    cancel: &CancelToken,
) -> Report {
    let now = shared.clock.now();
    if waiting.deadline.is_some_and(|deadline| deadline.since(now).is_zero()) {
        return Report::Dead(Failure::of_deadline());
    }
    let failure = if cancel.is_cancelled() {
        Failure::new(
            Category::Cancelled,
            None,
            "the attempt was cancelled and did not stop in time",
        )
    } else {
        let message = format!("no result within {}", duration::text(ends_in));
        Failure::new(Category::Timeout, None, &message)
    };
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

/// Runs a handler; a panic becomes a failure of its job and affects nothing else.
async fn guarded(runner: &dyn Runner, context: JobContext) -> Report {
    let made = catch_unwind(AssertUnwindSafe(|| runner.run(context)));
    let mut running = match made {
        Ok(running) => Guarded(Some(running)),
        Err(panic) => return panicked(&*panic),
    };
    poll_fn(move |cx| running.poll(cx)).await
}

/// A running handler whose panic affects nothing else, neither while it runs nor when it is dropped.
struct Guarded(Option<Reporting>);

impl Guarded {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Report> {
        let Some(running) = &mut self.0 else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(panicked(&*panic)),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let running = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(running))).is_err() {
            tracing::error!("handler panicked while it was being cancelled");
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Report {
    let failure = Failure::new(Category::Panic, None, &supervise::message(panic));
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

/// A failure caused by the cancellation uses no attempt. If a user requested the cancellation, the store applies it.
fn stopped(report: &Report) -> &Report {
    match report {
        Report::AttemptFailed { .. } => &Report::Snooze(Duration::ZERO),
        Report::Done
        | Report::FailJob(_)
        | Report::Dead(_)
        | Report::Pause
        | Report::Cancel
        | Report::Snooze(_) => report,
    }
}

fn decide_next(shared: &Shared, waiting: &Waiting, kind: &KindEntry, report: &Report) -> Decision {
    let now = shared.clock.now();
    let deadline_in = waiting.deadline.map(|deadline| deadline.since(now));
    let mut decision = decide(shared, kind, &waiting.job, (waiting.previous, deadline_in), report);
    shared.afford(&mut decision, waiting);
    if let Decision::Retry { sticky, .. } = &mut decision {
        // An engine that stops, or whose lease has expired, keeps no retries. Claims enforce fleet-wide limits.
        let (admission, lane) = (&shared.admission, &waiting.job.lane);
        *sticky = *sticky
            && !shared.is_stopping()
            && !shared.is_lease_expired()
            && !admission.is_down(&lane.kind)
            && admission.fleet_rules(lane).iter().all(FleetRule::is_none);
    }
    decision
}

/// Returns the number of the running attempt of a job, from 1, since the job was last redriven.
pub(crate) fn number(job: &Job) -> u32 {
    job.attempt.saturating_sub(job.attempts_before).saturating_add(1)
}

/// Decides by the rules and the policy of a kind, given the previous delay and the time left until the deadline.
fn decide(
    shared: &Shared,
    kind: &KindEntry,
    job: &Job,
    (previous, deadline_in): (Option<Duration>, Option<Duration>),
    report: &Report,
) -> Decision {
    let history = History {
        attempt: number(job),
        previous,
        deadline_in,
        failure_ratio: shared.admission.failure_ratio(&job.lane.kind),
    };
    let routed = kind.settings.failure_rules.route(report, &kind.policy(job));
    let mut decision = routed.decide(&history, &shared.random);
    kind.ceilings.clamp_delay(&mut decision, kind.settings.sticky_max);
    if let Decision::Retry { because: because @ DueReason::Backoff, .. } = &mut decision
        && !kind.backoff(job).1
    {
        *because = DueReason::UnknownBackoff;
    }
    if let Some(rule) = routed.rule {
        let (rule, decision) = (rule + 1, decision.as_str());
        tracing::debug!(job = %job.id, kind = %job.lane.kind, rule, decision, "failure rule applied");
    }
    decision
}

/// Returns the failure for the job's history.
fn failure(report: Report) -> Option<Failure> {
    match report {
        Report::AttemptFailed { failure, .. }
        | Report::FailJob(failure)
        | Report::Dead(failure) => Some(failure),
        Report::Done | Report::Pause | Report::Cancel | Report::Snooze(_) => None,
    }
}
