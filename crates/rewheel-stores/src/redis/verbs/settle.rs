//! Writes the results of attempts, and takes back jobs that were not started.

use super::super::error::unreadable;
use super::super::pack::{Args, duration, millis, number};
use super::super::reply::Reply;
use super::super::script::{GIVE_BACK, SETTLE};
use super::super::values::{Writer, because, letter, state, write_failure};
use super::super::{PAYLOAD_BYTES_MAX, RedisStore, SCRIPT_CHANGES_MAX, SCRIPT_JOBS_MAX};
use super::claim::lease_args;
use super::results::write_result;
use crate::payload::refuse_large;
use rewheel_core::store::{Outcome, Settled, Settlement, StoreError, StoreResult};
use rewheel_core::{Failure, Fence, HolderId, Lane, Lease, Retain, State, SuccessCode, Wanted};

impl RedisStore {
    pub(in super::super) async fn settle(
        &self,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        for payload in settlements.iter().filter_map(|one| one.payload.as_ref()) {
            refuse_large(payload, PAYLOAD_BYTES_MAX)?;
        }
        let lanes = self.lanes_of_parents(settlements).await?;
        let mut answers: Vec<Settled> = Vec::with_capacity(settlements.len());
        let mut most = SCRIPT_JOBS_MAX;
        while answers.len() < settlements.len() {
            let (from, till) = (answers.len(), settlements.len().min(answers.len() + most));
            let (part, lanes) = (&settlements[from..till], &lanes[from..till]);
            let items = part.iter().zip(lanes).map(|(one, lane)| settlement(one, lane.as_ref()));
            let args = Args::default().bytes(&self.shared.me).bytes(&holder.to_bytes());
            let args = args.list(Args::lists(items));
            let answered = self.run(&SETTLE, args).await;
            let [said, woken] = after_part(answered, &answers)?.parts()?;
            self.wake(woken)?;
            let said: Vec<Settled> =
                said.list()?.into_iter().map(settled).collect::<StoreResult<_>>()?;
            if said.is_empty() {
                return Err(unreadable("a reply"));
            }
            // A script stops early if the settlements are more work than plain ones. Then the next part is smaller.
            most = if said.len() < part.len() { said.len() } else { SCRIPT_JOBS_MAX.min(2 * most) };
            self.acknowledge_ends(part, &said);
            answers.extend(said);
        }
        Ok(answers)
    }

    pub(in super::super) async fn give_back(
        &self,
        holder: HolderId,
        leases: &[Lease],
        keep: Retain,
    ) -> StoreResult<Vec<Settled>> {
        let mut answers = Vec::with_capacity(leases.len());
        for part in leases.chunks(SCRIPT_CHANGES_MAX) {
            let args = Args::default().bytes(&self.shared.me).bytes(&holder.to_bytes());
            let args = args.millis(keep.job).millis(keep.key).list(lease_args(part));
            let answered = self.run(&GIVE_BACK, args).await;
            let [said, woken] = after_part(answered, &answers)?.parts()?;
            self.wake(woken)?;
            for answer in said.list()? {
                answers.push(settled(answer)?);
            }
        }
        Ok(answers)
    }
}

/// A failed part does not undo the earlier parts of its batch. The caller repeats the whole batch; the store then answers for the parts that it has written as it did before.
pub(super) fn after_part<T>(answer: StoreResult<Reply>, before: &[T]) -> StoreResult<Reply> {
    match answer {
        Err(StoreError::Unavailable(why) | StoreError::Full(why)) if !before.is_empty() => {
            Err(StoreError::Ambiguous(why))
        }
        answer => answer,
    }
}

/// Writes a settlement as an argument, see `lua/settle.lua`.
fn settlement(one: &Settlement, lane: Option<&Lane>) -> Args {
    let decision = &one.decision;
    let failure = decision.failure().or(one.failure.as_ref());
    let wait = decision.wait();
    let is_plain = one.is_plain_success() && one.is_plain() && one.result.is_none();
    let success = one.is_plain_success().then(|| success(one));
    let args = Args::default()
        .bytes(&one.lease.job.to_bytes())
        .number(number(one.lease.fence.get()))
        .flag(is_plain)
        .millis(one.keep.job)
        .millis(one.keep.key)
        .maybe_bytes(success.as_deref());
    if is_plain {
        return args;
    }
    args.bytes(letter(decision.state(None)))
        .bytes(letter(decision.state(Some(Wanted::Pause))))
        .bytes(letter(decision.state(Some(Wanted::Cancel))))
        .flag(decision.uses_attempt())
        .maybe_number(wait.map(|(after, _)| millis(after)))
        .number(wait.map_or(0.0, |(_, reason)| because(reason)))
        .millis(one.hold)
        .bytes(&failure.map(write_failure).unwrap_or_default())
        .maybe_bytes(one.failure.as_ref().map(|failure| record(one, failure)).as_deref())
        .maybe_bytes(one.result.as_ref().map(write_result).as_deref())
        .maybe_bytes(one.payload.as_deref())
        .maybe_list(lane.map(|lane| super::follow_ups::follow_ups(one, lane)))
}

/// The part of an attempt's record that the caller knows.
fn record(one: &Settlement, failure: &Failure) -> Vec<u8> {
    let mut to = Writer::default();
    to.f64(millis(one.ran.started_ago)).f64(millis_down(one));
    to.maybe_f64(one.decision.wait().map(|(after, _)| millis(after)));
    to.short(one.decision.as_str().as_bytes()).raw(&write_failure(failure));
    to.done()
}

fn success(one: &Settlement) -> Vec<u8> {
    let mut to = Writer::default();
    to.f64(millis(one.ran.started_ago)).f64(millis_down(one));
    to.maybe_text(one.code.as_ref().map(SuccessCode::as_str));
    to.short(one.decision.as_str().as_bytes());
    to.done()
}

/// How long an attempt took. Unlike a delay it is rounded down.
fn millis_down(one: &Settlement) -> f64 {
    number(u64::try_from(one.ran.duration.as_millis()).unwrap_or(u64::MAX))
}

/// Reads the answer for one settlement.
fn settled(answer: Reply) -> StoreResult<Settled> {
    let mut parts = answer.list()?.into_iter();
    let mut next = || parts.next().unwrap_or_default();
    let what = next().must()?;
    let let_go = |letter: Reply| -> StoreResult<Outcome> {
        let state: State = state(&letter.must()?).map_err(|why| unreadable(why.0))?;
        Ok(Outcome::LetGo(state))
    };
    let kept = |fence: Reply, due_in: Reply| -> StoreResult<Outcome> {
        Ok(Outcome::Kept { fence: Fence::new(fence.count()?), due_in: duration(due_in.number()?) })
    };
    Ok(match what.as_slice() {
        b"A" => Settled::Applied(let_go(next())?),
        b"B" => Settled::AlreadyApplied(let_go(next())?),
        b"K" => Settled::Applied(kept(next(), next())?),
        b"k" => Settled::AlreadyApplied(kept(next(), next())?),
        b"G" => Settled::AlreadyApplied(Outcome::Gone),
        b"L" => Settled::Lost,
        _ => return Err(unreadable("a reply")),
    })
}
