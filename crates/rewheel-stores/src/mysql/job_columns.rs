//! The columns of a job: which there are, how new jobs are stored in them, and how a job is read from them.

use super::error::{VerbError, unreadable};
use super::row::{
    backoff, because, bytes, duration, failure, get, id16, instant, maybe_bytes, millis, parsed,
    unsigned, wanted,
};
use super::transaction::Transaction;
use crate::job_columns::{Column, JobColumns, StatusColumn};
use mysql_async::{Row, Value};
use rewheel_core::{
    Fence, GroupKey, HolderId, Job, JobGroup, JobId, Key, Lane, NewJob, ShardKey, State, Status,
    Timestamp, Turn, Version,
};

/// Every column of a job. To add one: list it here, read it in [`read`], and add it to the three tables in a migration.
pub(super) const JOB: JobColumns<Give> = JobColumns {
    columns: &[
        given("id", |job| id16(job.id.to_bytes())),
        Column::named("lane"),
        Column::named("due_ms"),
        Column::named("because"),
        Column::named("fence"),
        Column::named("version"),
        Column::named("attempt"),
        Column::named("attempts_before"),
        Column::named("takeovers"),
        Column::named("takeovers_counted"),
        Column::moved("created_ms"),
        Column::named("deadline_ms"),
        given("attempts_max", |job| job.attempts_max.into()),
        given("attempt_timeout_ms", |job| job.attempt_timeout.map(millis).into()),
        given("backoff", |job| job.backoff.map(|backoff| backoff.to_string()).into()),
        given("`key`", |job| job.key.as_ref().map(Key::as_str).into()),
        given("shard_key", |job| job.shard_key.as_ref().map(ShardKey::as_str).into()),
        given("traceparent", |job| job.traceparent.as_deref().into()),
        given("parent", |job| job.parent.map(JobId::to_bytes).map(Vec::from).into()),
        given("instant_ms", |job| job.instant.map(Timestamp::as_millis).into()),
        given("group_key", |job| job.group_key.as_ref().map(GroupKey::as_str).into()),
        Column::moved("turn"),
        Column::named("failure_category"),
        Column::named("failure_code"),
        Column::named("failure_message"),
        given("payload", |job| Value::Bytes(job.payload.clone())),
    ],
    status: &[
        StatusColumn { name: "state", live: "jobs.state", ended: "state" },
        // Not a join: a statement that locks jobs must not lock their holders.
        StatusColumn {
            name: "holder_id",
            live: "(SELECT holders.id FROM rewheel_holders holders WHERE holders.seq = jobs.holder)",
            ended: "NULL",
        },
        StatusColumn { name: "overdue_ms", live: "jobs.overdue_ms", ended: "NULL" },
        StatusColumn { name: "wanted", live: "jobs.wanted", ended: "NULL" },
        StatusColumn { name: "ended_ms", live: "NULL", ended: "ended_ms" },
    ],
    no_payload: "NULL",
};

/// Where statements that read a job return its id.
pub(super) const ID: usize = JOB.position("id");

/// How many columns a statement returns for `{claimed_job}`.
pub(super) const CLAIMED: usize = JOB.claimed();

/// How many parameters `{submitted_values}` are.
pub(super) const SUBMITTED: usize = JOB.submitted();

/// The stored states of live jobs.
pub(super) const SCHEDULED: u8 = 0;
pub(super) const LEASED: u8 = 1;
pub(super) const PAUSED: u8 = 2;
/// A scheduled job that waits for others of its group.
pub(super) const BLOCKED: u8 = 3;

/// Reads a column of a job. Its position is a constant, because a claim reads thousands of rows in a second.
macro_rules! get {
    ($row:expr, $name:literal) => {
        get($row, const { JOB.position($name) })?
    };
}

/// Whether to read the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Read,
    LeaveOut,
}

/// Reads a live job.
pub(super) async fn read_live(
    tx: &mut Transaction<'_>,
    row: &Row,
    payload: Payload,
) -> Result<Job, VerbError> {
    let lane = tx.lane_of(get!(row, "lane")).await?;
    let state: u8 = get!(row, "state");
    let status = match state {
        SCHEDULED | BLOCKED => Status::Scheduled,
        PAUSED => Status::Paused,
        LEASED => {
            // A holder's row is kept while it has jobs. The nil id means that there was no such holder.
            let holder = maybe_bytes(row, const { JOB.position("holder_id") })?;
            Status::Leased {
                holder: HolderId::from_bytes(holder.unwrap_or_default()),
                overdue: instant(get!(row, "overdue_ms")),
                wanted: wanted(get!(row, "wanted"))?,
            }
        }
        _ => return Err(unreadable("a state")),
    };
    read(row, lane, (status, state == BLOCKED), payload)
}

/// Reads a dead letter or a finished job.
pub(super) async fn read_ended(
    tx: &mut Transaction<'_>,
    row: &Row,
    payload: Payload,
) -> Result<Job, VerbError> {
    let lane = tx.lane_of(get!(row, "lane")).await?;
    let state: String = get!(row, "state");
    let ended = instant(get!(row, "ended_ms"));
    let status = match state.parse().map_err(|_| unreadable("a state"))? {
        State::Succeeded => Status::Succeeded(ended),
        State::Failed => Status::Failed(ended),
        State::Dead => Status::Dead(ended),
        State::Cancelled => Status::Cancelled(ended),
        State::Scheduled | State::Leased | State::Paused => return Err(unreadable("a state")),
    };
    read(row, lane, (status, false), payload)
}

/// Reads a scheduled job that is being claimed.
pub(super) fn read_claimed(row: &Row, lane: Lane) -> Result<Job, VerbError> {
    read(row, lane, (Status::Scheduled, false), Payload::Read)
}

/// Reads a job, given its status and whether it waits for others of its group.
fn read(
    row: &Row,
    lane: Lane,
    (status, blocked): (Status, bool),
    payload: Payload,
) -> Result<Job, VerbError> {
    let reason: String = get!(row, "because");
    let parent = maybe_bytes(row, const { JOB.position("parent") })?;
    let turn: Option<i64> = get!(row, "turn");
    let turn = turn.map(|turn| Turn::new(unsigned(turn)));
    let group = parsed(get!(row, "group_key"), "a group key")?;
    Ok(Job {
        id: JobId::from_bytes(bytes(row, ID)?),
        lane,
        due: instant(get!(row, "due_ms")),
        because: because(&reason)?,
        status,
        fence: Fence::new(unsigned(get!(row, "fence"))),
        version: Version::new(unsigned(get!(row, "version"))),
        attempt: get!(row, "attempt"),
        attempts_before: get!(row, "attempts_before"),
        takeovers: get!(row, "takeovers"),
        takeovers_counted: get!(row, "takeovers_counted"),
        created: instant(get!(row, "created_ms")),
        deadline: Option::map(get!(row, "deadline_ms"), instant),
        attempts_max: get!(row, "attempts_max"),
        attempt_timeout: Option::map(get!(row, "attempt_timeout_ms"), duration),
        backoff: backoff(get!(row, "backoff"))?,
        key: parsed(get!(row, "`key`"), "a key")?,
        shard_key: parsed(get!(row, "shard_key"), "a shard key")?,
        traceparent: get!(row, "traceparent"),
        parent: parent.map(JobId::from_bytes),
        instant: Option::map(get!(row, "instant_ms"), instant),
        group: group.map(|key| JobGroup { key, blocked, turn }),
        failure: failure(
            get!(row, "failure_category"),
            get!(row, "failure_code"),
            get!(row, "failure_message"),
        )?,
        payload: match payload {
            Payload::Read => Some(get!(row, "payload")),
            Payload::LeaveOut => None,
        },
    })
}

/// Fills in the columns of a job in an SQL file of this store.
pub(super) fn fill_in(text: &str) -> String {
    crate::template::fill_in(text, |name| match name {
        // The parameters for the columns of `{submitted}`.
        "submitted_values" => Some(["?"; SUBMITTED].join(", ")),
        // Sets the columns of `{submitted}`.
        "submitted_set" => {
            let names = JOB.values().map(|(name, _)| format!("{name} = ?"));
            Some(names.collect::<Vec<_>>().join(", "))
        }
        name => JOB.meaning(name),
    })
}

/// Appends the values of `{submitted_values}`.
pub(super) fn give(values: &mut Vec<Value>, job: &NewJob) {
    values.extend(JOB.values().map(|(_, give)| give(job)));
}

/// Returns the value of a new job.
type Give = fn(&NewJob) -> Value;

const fn given(name: &'static str, give: Give) -> Column<Give> {
    Column::submitted(name, give)
}
