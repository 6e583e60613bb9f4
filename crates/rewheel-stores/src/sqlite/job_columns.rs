//! The columns of a job: which there are, how new jobs are stored in them, and how a job is read from them.

use super::error::{VerbError, unreadable};
use super::row::{backoff, because, duration, failure, instant, millis, parsed, unsigned, wanted};
use super::transaction::Transaction;
use super::verbs::groups::BLOCKED;
use crate::job_columns::{Column, JobColumns, StatusColumn};
use rewheel_core::store::Filter;
use rewheel_core::{
    Fence, GroupKey, HolderId, Job, JobGroup, JobId, Key, Lane, NewJob, ShardKey, State, Status,
    Timestamp, Turn, Version,
};
use rusqlite::{Row, Statement};

/// Every column of a job. To add one: list it here, read it in [`read`], and add it to the three tables in a migration.
pub(super) const JOB: JobColumns<Bind> = JobColumns {
    columns: &[
        given("id", |to, at, job, _| to.raw_bind_parameter(at, job.id.to_bytes())),
        given("lane", |to, at, _, lane| to.raw_bind_parameter(at, lane)),
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
        given("attempts_max", |to, at, job, _| to.raw_bind_parameter(at, job.attempts_max)),
        given("attempt_timeout_ms", |to, at, job, _| {
            to.raw_bind_parameter(at, job.attempt_timeout.map(millis))
        }),
        given("backoff", |to, at, job, _| {
            to.raw_bind_parameter(at, job.backoff.map(|backoff| backoff.to_string()))
        }),
        given("key", |to, at, job, _| to.raw_bind_parameter(at, job.key.as_ref().map(Key::as_str))),
        given("shard_key", |to, at, job, _| {
            to.raw_bind_parameter(at, job.shard_key.as_ref().map(ShardKey::as_str))
        }),
        given("traceparent", |to, at, job, _| to.raw_bind_parameter(at, &job.traceparent)),
        given("parent", |to, at, job, _| {
            to.raw_bind_parameter(at, job.parent.map(JobId::to_bytes))
        }),
        given("instant_ms", |to, at, job, _| {
            to.raw_bind_parameter(at, job.instant.map(Timestamp::as_millis))
        }),
        given("group_key", |to, at, job, _| {
            to.raw_bind_parameter(at, job.group_key.as_ref().map(GroupKey::as_str))
        }),
        Column::moved("turn"),
        Column::named("failure_category"),
        Column::named("failure_code"),
        Column::named("failure_message"),
        given("payload", |to, at, job, _| to.raw_bind_parameter(at, &job.payload)),
    ],
    status: &[
        StatusColumn { name: "state", live: "jobs.state", ended: "state" },
        // Statements that read live jobs join their holders.
        StatusColumn { name: "holder_id", live: "holders.id", ended: "NULL" },
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

/// Reads a column of a job. Its position is a constant, because a claim reads thousands of rows in a second.
macro_rules! get {
    ($row:expr, $name:literal) => {
        $row.get(const { JOB.position($name) })?
    };
}

/// Whether to read the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Read,
    LeaveOut,
}

/// Reads a job of any table.
pub(super) fn read_job(
    tx: &mut Transaction<'_, '_>,
    row: &Row<'_>,
    payload: Payload,
) -> Result<Job, VerbError> {
    let lane = tx.lane_of(get!(row, "lane"))?;
    let state: String = get!(row, "state");
    let ended = || Ok::<_, VerbError>(instant(get!(row, "ended_ms")));
    let blocked = state == BLOCKED;
    let state = if blocked { State::Scheduled.as_str() } else { &state };
    let status = match state.parse().map_err(|_| unreadable("a state"))? {
        State::Scheduled => Status::Scheduled,
        State::Paused => Status::Paused,
        State::Leased => Status::Leased {
            // A holder's row is kept while it has jobs. The nil id means that there was no such holder.
            holder: HolderId::from_bytes(Option::unwrap_or_default(get!(row, "holder_id"))),
            overdue: instant(get!(row, "overdue_ms")),
            wanted: wanted(get!(row, "wanted"))?,
        },
        State::Succeeded => Status::Succeeded(ended()?),
        State::Failed => Status::Failed(ended()?),
        State::Dead => Status::Dead(ended()?),
        State::Cancelled => Status::Cancelled(ended()?),
    };
    read(row, lane, (status, blocked), payload)
}

/// Returns whether the job in a row can match a filter, by a few columns: reading a whole job takes much longer.
pub(super) fn may_match(
    tx: &mut Transaction<'_, '_>,
    row: &Row<'_>,
    filter: &Filter,
) -> Result<bool, VerbError> {
    if !filter.kinds.is_empty() || filter.tenant.is_some() {
        let lane = tx.lane_of(get!(row, "lane"))?;
        let is_kind = filter.kinds.is_empty() || filter.kinds.contains(&lane.kind);
        if !is_kind || filter.tenant.is_some() && filter.tenant != lane.tenant {
            return Ok(false);
        }
    }
    let text = |at: usize| row.get_ref(at)?.as_str_or_null().map_err(rusqlite::Error::from);
    if let Some(category) = filter.category {
        let stored = text(const { JOB.position("failure_category") })?;
        if stored != Some(category.as_str()) {
            return Ok(false);
        }
    }
    if let Some(code) = &filter.code {
        let stored = text(const { JOB.position("failure_code") })?;
        if stored != Some(code) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a scheduled job that is being claimed.
pub(super) fn read_claimed(row: &Row<'_>, lane: Lane) -> Result<Job, VerbError> {
    read(row, lane, (Status::Scheduled, false), Payload::Read)
}

/// Reads a job, given its status and whether it waits for others of its group.
fn read(
    row: &Row<'_>,
    lane: Lane,
    (status, blocked): (Status, bool),
    payload: Payload,
) -> Result<Job, VerbError> {
    let text = row.get_ref(const { JOB.position("because") })?;
    Ok(Job {
        id: JobId::from_bytes(get!(row, "id")),
        lane,
        due: instant(get!(row, "due_ms")),
        because: because(text.as_str().map_err(rusqlite::Error::from)?)?,
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
        key: parsed(get!(row, "key"), "a key")?,
        shard_key: parsed(get!(row, "shard_key"), "a shard key")?,
        traceparent: get!(row, "traceparent"),
        parent: Option::map(get!(row, "parent"), JobId::from_bytes),
        instant: Option::map(get!(row, "instant_ms"), instant),
        group: parsed(get!(row, "group_key"), "a group key")?
            .map(|key| Ok::<_, VerbError>(JobGroup { key, blocked, turn: turn(get!(row, "turn")) }))
            .transpose()?,
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

fn turn(turn: Option<i64>) -> Option<Turn> {
    turn.map(|turn| Turn::new(unsigned(turn)))
}

/// Fills in the columns of a job in an SQL file of this store.
pub(super) fn fill_in(text: &str) -> String {
    crate::template::fill_in(text, |name| match name {
        // The parameters for the columns of `{submitted}`.
        "submitted_values" => Some(["?"; SUBMITTED].join(", ")),
        name => JOB.meaning(name),
    })
}

/// Binds the values of `{submitted_values}`, from this parameter on.
pub(super) fn bind(
    statement: &mut Statement<'_>,
    first: usize,
    job: &NewJob,
    lane: i64,
) -> rusqlite::Result<()> {
    JOB.values().zip(first..).try_for_each(|((_, bind), at)| bind(statement, at, job, lane))
}

/// Binds the value of a new job in a lane to a parameter.
type Bind = fn(&mut Statement<'_>, usize, &NewJob, i64) -> rusqlite::Result<()>;

const fn given(name: &'static str, bind: Bind) -> Column<Bind> {
    Column::submitted(name, bind)
}

#[cfg(test)]
mod tests {
    use super::super::SqliteOptions;
    use super::super::files::Files;
    use super::{JOB, fill_in};
    use crate::job_columns::testing::JobTable;

    /// Columns that the store uses for itself.
    const TABLES: [JobTable; 3] = [
        JobTable {
            name: "jobs",
            is_live: true,
            internal: &[
                "seq",
                "holder",
                "leased_ms",
                "started_fence",
                "settled_by",
                "settled_fence",
                "settled_kept",
            ],
        },
        JobTable {
            name: "dead",
            is_live: false,
            internal: &["seq", "settled_by", "settled_fence", "announced_ms"],
        },
        JobTable {
            name: "finished",
            is_live: false,
            internal: &[
                "seq",
                "settled_by",
                "settled_fence",
                "expires_ms",
                "ran_by",
                "started_ms",
                "duration_ms",
                "success_code",
            ],
        },
    ];

    #[test]
    fn the_list_has_the_columns_of_the_tables() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(folder.path().join("rewheel.db"), &SqliteOptions::default());
        let connection = files.open_writer().unwrap();
        for table in &TABLES {
            let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
            let real = columns.query_map([table.name], |row| row.get(0)).unwrap();
            let real: Vec<String> = real.map(Result::unwrap).collect();
            JOB.check_table(table, &real);
        }
    }

    #[test]
    fn every_statement_that_stores_a_job_gives_it_all_columns() {
        let check = |text, table, except: &[&str]| JOB.check_insert(&fill_in(text), table, except);
        // A new job has not failed and has not been released.
        let unset = ["failure_category", "failure_code", "failure_message", "turn"];
        check(include_str!("sql/insert.sql"), "jobs", &unset);
        check(include_str!("sql/redrive.sql"), "jobs", &[]);
        check(include_str!("sql/end_dead.sql"), "dead", &[]);
        check(include_str!("sql/end_finished.sql"), "finished", &[]);
        check(include_str!("sql/settle_keep.sql"), "finished", &[]);
        check(include_str!("sql/cancel_dead.sql"), "finished", &[]);
    }
}
