//! Changes jobs for people.

use super::super::error::unreadable;
use super::super::pack::{Args, time};
use super::super::script::CHANGE;
use super::super::values::{Body, Values, With, because, due_submitted, letter, marks};
use super::super::{PAYLOAD_BYTES_MAX, RedisStore, SCRIPT_CHANGES_MAX, TRIES_MAX, overtaken};
use super::rows::unreadable_job;
use super::settle::after_part;
use crate::audit::document;
use rewheel_core::store::{Change, ChangeVerb, Changed, StoreResult};
use rewheel_core::{Actor, Job, JobId, Retain, State, Timestamp};
use std::collections::HashSet;

/// A change that was decided, and is not written yet.
struct Decided {
    /// Its place in the batch.
    at: usize,
    args: Args,
    answer: Changed,
}

impl RedisStore {
    pub(in super::super) async fn change(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        let mut answers: Vec<Option<Changed>> = vec![None; changes.len()];
        for _ in 0..TRIES_MAX {
            let open = next_of_each(changes, &answers);
            if open.is_empty() {
                return Ok(answers
                    .into_iter()
                    .map(|answer| answer.unwrap_or(Changed::NotFound))
                    .collect());
            }
            for part in open.chunks(SCRIPT_CHANGES_MAX) {
                self.change_part(changes, part, by, keep, &mut answers).await?;
            }
        }
        Err(overtaken())
    }

    /// Reads jobs, decides about them and writes those that have not changed meanwhile.
    async fn change_part(
        &self,
        changes: &[Change],
        places: &[usize],
        by: &Actor,
        keep: Retain,
        answers: &mut [Option<Changed>],
    ) -> StoreResult<()> {
        let jobs: Vec<JobId> = places.iter().map(|at| changes[*at].job).collect();
        let (now, rows) = self.rows(&jobs, With::Payload).await?;
        let mut decided = Vec::new();
        for (at, row) in places.iter().zip(rows) {
            match decide(&changes[*at], row, by, now)? {
                Ok((args, answer)) => decided.push(Decided { at: *at, args, answer }),
                Err(answer) => answers[*at] = Some(answer),
            }
        }
        if decided.is_empty() {
            return Ok(());
        }
        let (wanted, items): (Vec<_>, Vec<_>) =
            decided.into_iter().map(|one| ((one.at, one.answer), one.args)).unzip();
        let args = Args::default().bytes(&self.shared.me).millis(keep.job).millis(keep.key);
        let args = args.list(Args::lists(items));
        let before: Vec<_> = answers.iter().flatten().copied().collect();
        let [said, woken] = after_part(self.run(&CHANGE, args).await, &before)?.parts()?;
        self.wake(woken)?;
        for ((at, answer), said) in wanted.into_iter().zip(said.list()?) {
            match said.text()?.as_str() {
                "done" => answers[at] = Some(answer),
                "again" => {}
                "gone" => answers[at] = Some(Changed::NotFound),
                _ => return Err(unreadable("a reply")),
            }
        }
        Ok(())
    }
}

/// The first open change of each job: later ones of the same job have to see it.
fn next_of_each(changes: &[Change], answers: &[Option<Changed>]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let open = (0..changes.len()).filter(|at| answers[*at].is_none());
    open.filter(|at| seen.insert(changes[*at].job)).collect()
}

type Decision = Result<(Args, Changed), Changed>;

/// Decides about one change. An `Err` is the answer of a change that changes nothing.
fn decide(
    change: &Change,
    row: Option<Values>,
    by: &Actor,
    now: Timestamp,
) -> StoreResult<Decision> {
    let Some(row) = row else { return Ok(Err(Changed::NotFound)) };
    let before = match row.job(change.job, With::Payload) {
        Ok(before) => before,
        Err(why) => return Err(unreadable_job(change.job, why)),
    };
    if change.if_version.is_some_and(|wanted| wanted != before.version) {
        return Ok(Err(Changed::VersionChanged(before.version)));
    }
    let after = match change.apply(&before, now, PAYLOAD_BYTES_MAX) {
        Ok(after) => after,
        Err(answer) => return Ok(Err(answer)),
    };
    let (state, version) = (after.state(), before.version.next());
    let answer = match after.status.wanted() {
        Some(_) => Changed::Wanted { version },
        None => Changed::Applied { state, version },
    };
    Ok(Ok((args(change, &row, (&before, &after), by, now), answer)))
}

fn args(
    change: &Change,
    row: &Values,
    (before, after): (&Job, &Job),
    by: &Actor,
    now: Timestamp,
) -> Args {
    let (old, new) = change.what.facts(before, after);
    let note = Args::default()
        .bytes(by.as_str().as_bytes())
        .bytes(change.what.as_str().as_bytes())
        .bytes(&change.job.to_bytes())
        .bytes(before.lane.kind.as_str().as_bytes())
        .bytes(document(&old).as_bytes())
        .bytes(document(&new).as_bytes())
        .number(time(now));
    let moves = after.state() != before.state();
    let rewrites = match change.what {
        ChangeVerb::Edit(_) => true,
        ChangeVerb::Retry | ChangeVerb::Redrive { .. } => before.deadline != after.deadline,
        ChangeVerb::Pause | ChangeVerb::Resume | ChangeVerb::Cancel | ChangeVerb::Abort => false,
    };
    // The attempts before are those of the submit in a body, and those of the latest redrive in what changed since.
    let submitted = first_attempts(row, before);
    let body = rewrites.then(|| Body::of(&Job { attempts_before: submitted, ..after.clone() }));
    let whole = body
        .as_ref()
        .map(|body| body.whole(&row.body, before.created, due_submitted(&row.body), after));
    let to = (moves && after.state() != State::Leased).then(|| letter(after.state()));
    Args::default()
        .bytes(&change.job.to_bytes())
        .maybe_bytes(row.changed.as_deref())
        .maybe_bytes(row.lease.as_deref())
        .maybe_bytes(whole.as_deref())
        .maybe_bytes(body.as_ref().and_then(|body| body.big.as_deref()))
        .maybe_bytes(to)
        .number(marks(after.status.wanted()).into())
        .number(time(after.due))
        .number(because(after.because))
        .number(after.attempts_before.into())
        .list(note)
}

/// The attempts that a call had made before it was continued as this job.
fn first_attempts(row: &Values, before: &Job) -> u32 {
    let fresh = Values { body: row.body.clone(), big: row.big.clone(), ..Values::default() };
    fresh.job(before.id, With::NoPayload).map_or(before.attempts_before, |job| job.attempts_before)
}
