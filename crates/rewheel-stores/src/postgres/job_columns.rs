//! The columns of a job: which there are, how new jobs are stored in them, and how a job is read from them.

use super::error::{VerbError, unreadable};
use super::row::{
    backoff, because, duration, failure, fence, holder_id, instant, job_id, millis, number, parsed,
    small, unsigned, uuid, version, wanted,
};
use crate::job_columns::{Column, JobColumns, StatusColumn};
use rewheel_core::{
    GroupKey, HolderId, Job, JobGroup, Key, Lane, NewJob, ShardKey, State, Status, Timestamp, Turn,
    When,
};
use tokio_postgres::Row;
use tokio_postgres::types::{Kind, ToSql, Type};
use uuid::Uuid;

/// Every column of a job. To add one: list it here, read it in [`read`], and add it to the three tables in a migration.
pub(super) const JOB: JobColumns<New> = JobColumns {
    columns: &[
        given("id", Use::Always, Type::UUID_ARRAY, |jobs| all(jobs, |job, _| uuid(job.id))),
        given("lane", Use::Always, Type::INT4_ARRAY, |jobs| all(jobs, |_, lane| lane)),
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
        given("attempts_max", Use::Often, Type::INT8_ARRAY, |jobs| {
            some(jobs, |job| job.attempts_max.map(i64::from))
        }),
        given("attempt_timeout_ms", Use::Often, Type::INT8_ARRAY, |jobs| {
            some(jobs, |job| job.attempt_timeout.map(millis))
        }),
        given("backoff", Use::Often, Type::TEXT_ARRAY, |jobs| {
            some(jobs, |job| job.backoff.map(|backoff| backoff.to_string()))
        }),
        given("key", Use::Often, Type::TEXT_ARRAY, |jobs| {
            some(jobs, |job| job.key.as_ref().map(Key::as_str))
        }),
        given("shard_key", Use::Often, Type::TEXT_ARRAY, |jobs| {
            some(jobs, |job| job.shard_key.as_ref().map(ShardKey::as_str))
        }),
        given("traceparent", Use::Often, Type::TEXT_ARRAY, |jobs| {
            some(jobs, |job| job.traceparent.as_deref())
        }),
        given("parent", Use::Rare, Type::UUID_ARRAY, |jobs| some(jobs, |job| job.parent.map(uuid))),
        given("instant_ms", Use::Rare, Type::INT8_ARRAY, |jobs| {
            some(jobs, |job| job.instant.map(Timestamp::as_millis))
        }),
        given("group_key", Use::Rare, Type::TEXT_ARRAY, |jobs| {
            some(jobs, |job| job.group_key.as_ref().map(GroupKey::as_str))
        }),
        Column::moved("turn"),
        Column::named("failure_category"),
        Column::named("failure_code"),
        Column::named("failure_message"),
        given("payload", Use::Always, Type::BYTEA_ARRAY, |jobs| {
            all(jobs, |job, _| job.payload.as_slice())
        }),
    ],
    status: &[
        StatusColumn { name: "state", live: "jobs.state", ended: "state" },
        StatusColumn {
            name: "holder_id",
            live: "(SELECT holders.id FROM rewheel.holders WHERE holders.seq = jobs.holder)",
            ended: "NULL::uuid",
        },
        StatusColumn { name: "overdue_ms", live: "jobs.overdue_ms", ended: "NULL::bigint" },
        StatusColumn { name: "wanted", live: "jobs.wanted", ended: "NULL::text" },
        StatusColumn { name: "blocked", live: "jobs.shelf = 'blocked'", ended: "false" },
        StatusColumn { name: "ended_ms", live: "NULL::bigint", ended: "ended_ms" },
    ],
    no_payload: "NULL::bytea",
};

/// From these an insert computes `due_ms` and `deadline_ms`, since times may be relative to the server's clock, and `attempt` and
/// `attempts_before`, which are the same for a new job.
static COMPUTED_FROM: [(&str, New); 5] = [
    ("due_at", New(Use::Often, Type::INT8_ARRAY, |jobs| some(jobs, |job| at(job.due)))),
    ("due_in", New(Use::Always, Type::INT8_ARRAY, |jobs| some(jobs, |job| within(job.due)))),
    (
        "deadline_at",
        New(Use::Often, Type::INT8_ARRAY, |jobs| some(jobs, |job| job.deadline.and_then(at))),
    ),
    (
        "deadline_in",
        New(Use::Often, Type::INT8_ARRAY, |jobs| some(jobs, |job| job.deadline.and_then(within))),
    ),
    (
        "attempts_made",
        New(Use::Rare, Type::INT8_ARRAY, |jobs| {
            some(jobs, |job| (job.attempts_before > 0).then(|| i64::from(job.attempts_before)))
        }),
    ),
];

/// Where statements that read a job return its id and the number of its lane.
pub(super) const ID: usize = JOB.position("id");
pub(super) const LANE: usize = JOB.position("lane");

/// How many columns a statement returns for `{claimed_job}`. Then comes when the job becomes overdue.
pub(super) const CLAIMED: usize = JOB.claimed();

/// Reads a column of a job. Its position is a constant, because a claim reads thousands of rows in a second.
macro_rules! get {
    ($row:expr, $name:literal) => {
        $row.try_get(const { JOB.position($name) })?
    };
}

/// Reads a job of any table.
pub(super) fn read_job(row: &Row, lane: Lane) -> Result<Job, VerbError> {
    let state: &str = get!(row, "state");
    let ended = || Ok::<_, VerbError>(instant(get!(row, "ended_ms")));
    let status = match state.parse().map_err(|_| unreadable("a state"))? {
        State::Scheduled => Status::Scheduled,
        State::Paused => Status::Paused,
        State::Leased => Status::Leased {
            // A holder's row is kept while it has jobs. The nil id means that there was no such holder.
            holder: holder_id(Option::<Uuid>::unwrap_or_default(get!(row, "holder_id"))),
            overdue: instant(get!(row, "overdue_ms")),
            wanted: wanted(get!(row, "wanted"))?,
        },
        State::Succeeded => Status::Succeeded(ended()?),
        State::Failed => Status::Failed(ended()?),
        State::Dead => Status::Dead(ended()?),
        State::Cancelled => Status::Cancelled(ended()?),
    };
    read(row, lane, status, get!(row, "blocked"))
}

/// Reads a job that was just claimed.
pub(super) fn read_claimed(row: &Row, lane: Lane, holder: HolderId) -> Result<Job, VerbError> {
    let overdue = instant(row.try_get(CLAIMED)?);
    read(row, lane, Status::Leased { holder, overdue, wanted: None }, false)
}

/// Reads a job, given its status and whether it waits for others of its group.
fn read(row: &Row, lane: Lane, status: Status, blocked: bool) -> Result<Job, VerbError> {
    let key: Option<GroupKey> = parsed(get!(row, "group_key"), "a group key")?;
    let turn: Option<i64> = get!(row, "turn");
    let turn = turn.map(|turn| Turn::new(unsigned(turn)));
    Ok(Job {
        id: job_id(get!(row, "id")),
        lane,
        due: instant(get!(row, "due_ms")),
        because: because(get!(row, "because"))?,
        status,
        fence: fence(get!(row, "fence")),
        version: version(get!(row, "version")),
        attempt: small(get!(row, "attempt")),
        attempts_before: small(get!(row, "attempts_before")),
        takeovers: small(get!(row, "takeovers")),
        takeovers_counted: small(get!(row, "takeovers_counted")),
        created: instant(get!(row, "created_ms")),
        deadline: Option::map(get!(row, "deadline_ms"), instant),
        attempts_max: Option::map(get!(row, "attempts_max"), number),
        attempt_timeout: Option::map(get!(row, "attempt_timeout_ms"), duration),
        backoff: backoff(get!(row, "backoff"))?,
        key: parsed(get!(row, "key"), "a key")?,
        shard_key: parsed(get!(row, "shard_key"), "a shard key")?,
        traceparent: get!(row, "traceparent"),
        parent: Option::map(get!(row, "parent"), job_id),
        instant: Option::map(get!(row, "instant_ms"), instant),
        group: key.map(|key| JobGroup { key, blocked, turn }),
        failure: failure(
            get!(row, "failure_category"),
            get!(row, "failure_code"),
            get!(row, "failure_message"),
        )?,
        payload: get!(row, "payload"),
    })
}

/// How often jobs have a value in a column. A statement leaves out the columns that no job of its batch uses: PostgreSQL spends time on
/// every array and every job, also if the array is empty. There is one statement for each of these values and not one for each set of
/// columns, because every connection prepares each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Every job has a value.
    Always,
    /// Many programs set it for their jobs.
    Often,
    /// It belongs to a feature that few jobs use.
    Rare,
}

/// Every [`Use`] in ascending order.
pub(super) const USES: [Use; 3] = [Use::Always, Use::Often, Use::Rare];

/// Stands for the new jobs: a table `given` with all columns of `arrays`. Its arrays are the last parameters of a statement.
pub(super) const NEW_JOBS: &str = "new_jobs";

/// Returns what a name in braces stands for in an SQL file of this store, in a statement with so many other parameters. `used` says
/// which columns of new jobs the statement takes; it reads the others as NULLs.
pub(super) fn meaning(name: &str, others: usize, used: Use) -> Option<String> {
    if name != NEW_JOBS {
        return JOB.meaning(name);
    }
    let list = |texts: Vec<String>| texts.join(", ");
    let types = array_types(used).zip(others + 1..);
    let params =
        list(types.map(|(array, number)| format!("${number}::{}", array.name())).collect());
    let (taken, left_out): (Vec<_>, Vec<_>) = arrays().partition(|(_, new)| new.0 <= used);
    let names = list(taken.iter().map(|(name, _)| (*name).to_owned()).collect());
    let given = format!("unnest({params}) AS given ({names})");
    let null =
        |(name, New(_, array, _)): &(&str, &New)| format!("NULL::{} AS {name}", element(array));
    Some(match left_out.as_slice() {
        [] => given,
        some => {
            let nulls = list(some.iter().map(null).collect());
            format!("(SELECT given.*, {nulls} FROM {given}) AS given")
        }
    })
}

/// Returns the types of the parameters with new jobs.
pub(super) fn array_types(used: Use) -> impl Iterator<Item = &'static Type> {
    arrays().filter(move |(_, new)| new.0 <= used).map(|(_, New(_, array, _))| array)
}

/// Returns the parameters with new jobs, each with the number of its lane, and which statement takes them.
pub(super) fn array_params<'a>(jobs: &[(&'a NewJob, i32)]) -> (Use, Vec<Array<'a>>) {
    let columns: Vec<(Use, Values<'a>)> =
        arrays().map(|(_, New(usual, _, values))| (*usual, values(jobs))).collect();
    let used = columns.iter().filter(|(_, values)| values.any).map(|(usual, _)| *usual).max();
    let used = used.unwrap_or(Use::Always);
    let taken = columns.into_iter().filter(|(usual, _)| *usual <= used);
    (used, taken.map(|(_, values)| values.array).collect())
}

fn arrays() -> impl Iterator<Item = (&'static str, &'static New)> {
    JOB.values().chain(COMPUTED_FROM.iter().map(|(name, new)| (*name, new)))
}

/// Returns the name of the type of an array's elements.
fn element(array: &Type) -> &str {
    if let Kind::Array(element) = array.kind() { element.name() } else { array.name() }
}

/// How often jobs have a value, the type of the array, and its values for new jobs.
pub(super) struct New(Use, Type, ValuesOf);

type ValuesOf = for<'a> fn(&[(&'a NewJob, i32)]) -> Values<'a>;

/// One column of new jobs.
pub(super) struct Values<'a> {
    array: Array<'a>,
    /// Whether a job has a value. If none has one, the array is empty, and the statement reads NULLs.
    any: bool,
}

/// A parameter with one column of new jobs.
pub(super) type Array<'a> = Box<dyn ToSql + Sync + Send + 'a>;

const fn given(name: &'static str, usual: Use, array: Type, values: ValuesOf) -> Column<New> {
    Column::submitted(name, New(usual, array, values))
}

/// Builds a column in which every job has a value.
fn all<'a, T: ToSql + Sync + Send + 'a>(
    jobs: &[(&'a NewJob, i32)],
    value: impl Fn(&'a NewJob, i32) -> T,
) -> Values<'a> {
    let values: Vec<T> = jobs.iter().map(|(job, lane)| value(job, *lane)).collect();
    Values { array: Box::new(values), any: true }
}

/// Builds a column in which some jobs may have a value.
fn some<'a, T: ToSql + Sync + Send + 'a>(
    jobs: &[(&'a NewJob, i32)],
    value: impl Fn(&'a NewJob) -> Option<T>,
) -> Values<'a> {
    let any = jobs.iter().any(|(job, _)| value(job).is_some());
    let used = if any { jobs } else { &[] };
    let values: Vec<Option<T>> = used.iter().map(|(job, _)| value(job)).collect();
    Values { array: Box::new(values), any }
}

fn at(when: When) -> Option<i64> {
    match when {
        When::At(at) => Some(Timestamp::as_millis(at)),
        When::In(_) => None,
    }
}

fn within(when: When) -> Option<i64> {
    match when {
        When::In(duration) => Some(millis(duration)),
        When::At(_) => None,
    }
}

#[cfg(all(test, feature = "test-postgres"))]
mod tests {
    use super::JOB;
    use crate::PostgresStore;
    use crate::job_columns::testing::JobTable;
    use rewheel_testkit::Schema;

    /// Columns that the store uses for itself.
    const TABLES: [JobTable; 3] = [
        JobTable {
            name: "jobs",
            is_live: true,
            internal: &[
                "seq",
                "shelf",
                "held_by",
                "held_until_ms",
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
            internal: &["settled_by", "settled_fence", "announced_ms"],
        },
        JobTable {
            name: "finished_bins",
            is_live: false,
            internal: &[
                "bin",
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

    #[tokio::test]
    async fn the_list_has_the_columns_of_the_tables() {
        let schema = Schema::fresh();
        PostgresStore::open(schema.url()).await.expect("the store opens");
        let client = schema.connect().await;
        for table in &TABLES {
            let sql = "SELECT column_name::text FROM information_schema.columns
                        WHERE table_schema = $1 AND table_name = $2";
            let rows = client.query(sql, &[&schema.name(), &table.name]).await.expect("columns");
            let real: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            JOB.check_table(table, &real);
        }
    }
}
