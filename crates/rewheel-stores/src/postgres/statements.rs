//! Lists every SQL statement with its parameter types.
//!
//! Declared types save a round trip for each statement. They also allow sending a statement without preparing it, which a pooler in
//! transaction mode requires.

use super::job_columns::{self, USES, Use};
use crate::template::fill_in;
use std::sync::LazyLock;
use tokio_postgres::types::Type;

/// A statement, made at its first use.
pub(super) type Sql = LazyLock<Statement>;

/// The content of one SQL file, with the columns of a job filled in.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) types: Vec<Type>,
}

impl Statement {
    /// Fills in the columns of a job.
    fn new(file: &str, types: &[Type]) -> Statement {
        Statement::with_results(file, types, "")
    }

    /// The same, with the part that stores results in place of `{results}`.
    fn with_results(file: &str, types: &[Type], results: &str) -> Statement {
        let text = fill_in(file, |name| match name {
            "results" => Some(results.to_owned()),
            name => job_columns::JOB.meaning(name),
        });
        Statement { text, types: types.to_vec() }
    }

    /// Fills in the columns of a job. The columns of new jobs up to `used` are the last parameters.
    fn of_new_jobs(file: &str, types: &[Type], used: Use) -> Statement {
        let mut types = types.to_vec();
        let text = fill_in(file, |name| job_columns::meaning(name, types.len(), used));
        types.extend(job_columns::array_types(used).cloned());
        Statement { text, types }
    }
}

/// A statement that stores new jobs, in one form for each [`Use`] of their columns.
#[derive(Debug)]
pub(super) struct NewJobsSql([Sql; USES.len()]);

impl NewJobsSql {
    pub(super) fn with(&self, used: Use) -> &Sql {
        &self.0[used as usize]
    }
}

macro_rules! statements_of_new_jobs {
    ($($name:ident = $file:literal ($($type:ident),*);)*) => {
        $(pub(super) static $name: NewJobsSql = NewJobsSql([
            Sql::new(|| Statement::of_new_jobs(include_str!($file), &[$(Type::$type),*], USES[0])),
            Sql::new(|| Statement::of_new_jobs(include_str!($file), &[$(Type::$type),*], USES[1])),
            Sql::new(|| Statement::of_new_jobs(include_str!($file), &[$(Type::$type),*], USES[2])),
        ]);)*

        /// Every such statement with the name of its file.
        #[cfg(test)]
        static ALL_OF_NEW_JOBS: &[(&str, &NewJobsSql)] = &[$(($file, &$name)),*];
    };
}

macro_rules! statements {
    ($($name:ident = $file:literal ($($type:ident),*);)*) => {
        $(pub(super) static $name: Sql =
            Sql::new(|| Statement::new(include_str!($file), &[$(Type::$type),*]));)*

        /// Every statement with the name of its file.
        #[cfg(test)]
        static ALL: &[(&str, &Sql)] = &[$(($file, &$name)),*];
    };
}

statements_of_new_jobs! {
    INSERT = "sql/insert.sql" (INT8, INT8, UUID, INT8, INT8, INT4_ARRAY, INT8_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY,
        INT4_ARRAY);
    INSERT_GROUPED = "sql/insert_grouped.sql" (INT8, INT8, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY);
    INSERT_MANY = "sql/insert_many.sql" (INT8, INT8, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY);
    REPLACE = "sql/replace.sql" (UUID_ARRAY, INT8_ARRAY);
}

statements! {
    ANNOUNCE = "sql/announce.sql" (INT8, UUID_ARRAY, INT8_ARRAY);
    ATTEMPTS = "sql/attempts.sql" (UUID, INT8);
    ATTEMPT_SUCCEEDED = "sql/attempt_succeeded.sql" (UUID);
    AUDIT = "sql/audit.sql" (INT8, INT8);
    AUDIT_JOB = "sql/audit_job.sql" (INT8, INT8, UUID);
    AUDIT_REPLACES = "sql/audit_replaces.sql" (INT8, TEXT, UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY);
    BEGIN_EPOCH = "sql/begin_epoch.sql" (INT8, TEXT);
    BINS_EXPIRED = "sql/bins_expired.sql" (INT8);
    BINS_STUCK = "sql/bins_stuck.sql" (INT8, INT8);
    BEGIN_SAMPLE = "sql/begin_sample.sql" (INT8, INT8, INT8, INT8);
    BOOKS = "sql/books.sql" ();
    EXPIRE_HOLDER = "sql/expire_holder.sql" (UUID, UUID, INT8, INT8);
    CANCEL_DEAD = "sql/cancel_dead.sql" (UUID_ARRAY, INT8, INT8);
    CHANGE_KIND = "sql/change_kind.sql" (TEXT, BOOL, INT8, TEXT, UUID, INT8, TEXT, BOOL, INT8, INT8);
    CHANGE_LIVES = "sql/change_lives.sql" (UUID_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY);
    CHECKPOINT = "sql/checkpoint.sql" (UUID, UUID, INT8, BYTEA);
    CHILDREN_DEAD = "sql/children_dead.sql" (UUID, INT8, UUID);
    CHILDREN_FINISHED = "sql/children_finished.sql" (UUID, INT8, UUID);
    CHILDREN_LIVE = "sql/children_live.sql" (UUID, INT8, UUID);
    CLAIM = "sql/claim.sql" (UUID, INT8, INT8, TEXT_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY, INT8_ARRAY,
        INT8_ARRAY, INT8, INT8, INT8_ARRAY, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY);
    CLAIM_LIMITED_LOCK = "sql/claim_limited_lock.sql" (TEXT_ARRAY, TEXT_ARRAY);
    CLAIM_LIMITED_MAKE = "sql/claim_limited_make.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY, INT8);
    CLAIM_LIMITED_START = "sql/claim_limited_start.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY);
    CLAIM_LOOK = "sql/claim_look.sql" (UUID, INT8, TEXT_ARRAY);
    DEAD_ROWS = "sql/dead_rows.sql" ();
    DEADLINES = "sql/deadlines.sql" (INT8, INT8, INT8);
    DEADLINES_LOOK = "sql/deadlines_look.sql" (INT8, INT8);
    DELETE_KIND = "sql/delete_kind.sql" (TEXT);
    DROP_DEAD = "sql/drop_dead.sql" (UUID_ARRAY);
    DROP_JOBS = "sql/drop_jobs.sql" (UUID_ARRAY);
    DUPLICATES_BEGIN = "sql/duplicates_begin.sql" ();
    DUPLICATES_END = "sql/duplicates_end.sql" ();
    DUPLICATES_UNDO = "sql/duplicates_undo.sql" ();
    EDIT_DEAD = "sql/edit_dead.sql" (UUID, INT4, INT8, TEXT, INT8, INT8, BYTEA);
    EDIT_LIVE = "sql/edit_live.sql" (UUID, INT4, TEXT, INT8, TEXT, INT8, INT8, TEXT, BYTEA);
    END_DEAD = "sql/end_dead.sql" (INT8, UUID_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    END_FINISHED = "sql/end_finished.sql" (INT8, UUID_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY,
        INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY,
        INT8_ARRAY);
    EMPTY_BIN = "sql/empty_bin.sql" (INT2, INT8);
    ENDED = "sql/ended.sql" (UUID_ARRAY);
    END_KEYS = "sql/end_keys.sql" (INT4_ARRAY, TEXT_ARRAY, UUID_ARRAY, TEXT_ARRAY, INT8_ARRAY);
    END_SAMPLE = "sql/end_sample.sql" (INT8, INT8, TEXT);
    EPOCH = "sql/epoch.sql" (UUID);
    EXTEND = "sql/extend.sql" (UUID, UUID, INT8, INT8, INT8, INT8, INT8);
    FAILURES_DEAD = "sql/failures_dead.sql" (UUID, INT8);
    FAILURES_LIVE = "sql/failures_live.sql" (UUID, INT8);
    FIND = "sql/find.sql" (UUID_ARRAY);
    FIND_FINISHED = "sql/find_finished.sql" (UUID_ARRAY);
    FIND_HOLDER = "sql/find_holder.sql" (UUID, INT8);
    FIND_KEY_JOBS = "sql/find_key_jobs.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    FIND_KEYS = "sql/find_keys.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    FIND_KIND_ROWS = "sql/find_kind_rows.sql" (TEXT_ARRAY);
    FIND_KINDS = "sql/find_kinds.sql" (TEXT_ARRAY);
    FIND_LANES = "sql/find_lanes.sql" (TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY);
    FIND_OPEN_LANES = "sql/find_open_lanes.sql" (TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY);
    FIND_REPLACED = "sql/find_replaced.sql" (UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    FIND_STATES = "sql/find_states.sql" (UUID_ARRAY);
    FOLD_HISTORY = "sql/fold_history.sql" (INT8, INT8);
    FORGOTTEN = "sql/forgotten.sql" (INT8, INT8);
    FORGOTTEN_ENDS = "sql/forgotten_ends.sql" (UUID_ARRAY);
    FORGOTTEN_SUBMITS = "sql/forgotten_submits.sql" (UUID_ARRAY);
    GET = "sql/get.sql" (UUID);
    GET_FINISHED = "sql/get_finished.sql" (UUID);
    GRANT = "sql/grant.sql" (INT8, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8, INT8, INT8, INT8);
    GROUP_CHECK = "sql/group_check.sql" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    GROUP_CHECKS = "sql/group_checks.sql" (INT8, INT8);
    GROUP_CHECKS_LOOK = "sql/group_checks_look.sql" (INT8);
    GROUP_LEAVE = "sql/group_leave.sql" (UUID_ARRAY, UUID_ARRAY, UUID_ARRAY);
    GROUP_NEXT = "sql/group_next.sql" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    GROUP_STALE = "sql/group_stale.sql" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    GROUPED_DEAD = "sql/grouped_dead.sql" (UUID, INT8, TEXT);
    GROUPED_FINISHED = "sql/grouped_finished.sql" (UUID, INT8, TEXT);
    GROUPED_LIVE = "sql/grouped_live.sql" (UUID, INT8, TEXT);
    HELD = "sql/held.sql" (UUID, INT8, INT8, UUID, INT8, INT8);
    HISTORY = "sql/history.sql" (INT8, INT8, INT8, UUID, INT8);
    HOLDER = "sql/holder.sql" (INT8, UUID);
    HOLDERS = "sql/holders.sql" (INT8);
    WATCHED_HOLDERS = "sql/watched_holders.sql" (INT8, INT4, INT4, INT4);
    IDEMPOTENCY_FIND = "sql/idempotency_find.sql" (INT8, BYTEA);
    IDEMPOTENCY_FINISH = "sql/idempotency_finish.sql" (INT8, BYTEA, UUID, BYTEA, INT8);
    IDEMPOTENCY_INSERT = "sql/idempotency_insert.sql" (INT8, BYTEA, BYTEA, UUID, INT8, INT8);
    IDEMPOTENCY_PRUNE = "sql/idempotency_prune.sql" (INT8, INT8);
    IDEMPOTENCY_RELEASE = "sql/idempotency_release.sql" (BYTEA, UUID);
    IDEMPOTENCY_RENEW = "sql/idempotency_renew.sql" (INT8, BYTEA, UUID, INT8);
    IDEMPOTENCY_TAKE = "sql/idempotency_take.sql" (INT8, BYTEA, BYTEA, UUID, INT8, INT8, UUID);
    INSERT_ATTEMPTS = "sql/insert_attempts.sql" (UUID, UUID_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY);
    INSERT_FORGOTTEN = "sql/insert_forgotten.sql" (INT8, UUID, INT8, INT8, INT8, INT8);
    INSERT_AUDIT = "sql/insert_audit.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    INSERT_BUDGETS = "sql/insert_budgets.sql" (INT8, TEXT_ARRAY, INT8, INT8);
    INSERT_KEYS = "sql/insert_keys.sql" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, UUID_ARRAY, BYTEA_ARRAY);
    INSERT_LANES = "sql/insert_lanes.sql" (TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY);
    INSERT_LEDGER = "sql/insert_ledger.sql" (INT8, INT8, INT8);
    INSERT_RESULTS = "sql/insert_results.sql" (UUID_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY);
    JOIN = "sql/join.sql" (UUID, INT8, TEXT, INT8, TEXT, TEXT, INT4);
    KEEP_LEASE = "sql/keep_lease.sql" (INT4, INT8, UUID_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY);
    KEYED_JOBS = "sql/keyed_jobs.sql" (TEXT, INT8, TEXT_ARRAY, TEXT, INT8);
    KIND_IS_USED = "sql/kind_is_used.sql" (TEXT);
    KINDS = "sql/kinds.sql" ();
    KINDS_SINCE = "sql/kinds_since.sql" (INT8);
    KIND_NAMES = "sql/kind_names.sql" ();
    LANE_HEADS = "sql/lane_heads.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY);
    LANES = "sql/lanes.sql" (INT8, TEXT_ARRAY, TEXT, TEXT, INT4, INT8, INT4_ARRAY, INT8_ARRAY, INT4);
    LANES_LOOK = "sql/lanes_look.sql" (INT4_ARRAY, INT8_ARRAY);
    LEAVE = "sql/leave.sql" (UUID, INT8);
    LET_GO = "sql/let_go.sql" (UUID_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY,
        INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    LIMIT_WAITS = "sql/limit_waits.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8, INT8);
    LIVE = "sql/live.sql" (UUID_ARRAY);
    LIST_DEAD = "sql/list_dead.sql" (UUID, INT8);
    LIST_FINISHED = "sql/list_finished.sql" (UUID, INT8);
    LIST_LIVE = "sql/list_live.sql" (UUID, INT8);
    LOCK_DEADS = "sql/lock_deads.sql" (UUID_ARRAY);
    LOCK_LIVES = "sql/lock_lives.sql" (UUID_ARRAY);
    LOCK_WAITING = "sql/lock_waiting.sql" (UUID_ARRAY);
    MOVE_KEYS = "sql/move_keys.sql" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, UUID_ARRAY, BYTEA_ARRAY);
    LOCK_DEAD = "sql/lock_dead.sql" (UUID);
    LOCK_JOBS = "sql/lock_jobs.sql" ();
    LOCK_TIMEOUT = "sql/lock_timeout.sql" ();
    LOCK_KINDS = "sql/lock_kinds.sql" (TEXT_ARRAY);
    LOCK_KIND = "sql/lock_kind.sql" (TEXT, INT8, UUID);
    LOCK_LIVE = "sql/lock_live.sql" (UUID);
    NAME_LANES = "sql/name_lanes.sql" (INT4_ARRAY);
    NOW = "sql/now.sql" (INT8);
    PROBE = "sql/probe.sql" (UUID, INT4, INT8, INT8, INT8, INT8, INT8, INT8);
    PROBE_KIND = "sql/probe_kind.sql" (TEXT, UUID);
    OPEN_BIN = "sql/open_bin.sql" (INT8, INT8);
    PRUNE_AUDIT = "sql/prune_audit.sql" (INT8, INT8, INT8);
    PRUNE_FINISHED = "sql/prune_finished.sql" (INT8, INT8);
    PRUNE_FINISHED_BEFORE = "sql/prune_finished_before.sql" (INT8, INT8);
    PRUNE_HOLDERS = "sql/prune_holders.sql" (INT8, INT8, INT8);
    PRUNE_KEYS = "sql/prune_keys.sql" (INT8, INT8);
    PRUNE_LIMITS = "sql/prune_limits.sql" (INT8, INT8);
    PRUNE_RESERVED = "sql/prune_reserved.sql" ();
    PRUNE_LEDGER = "sql/prune_ledger.sql" (INT8, INT8);
    PRUNE_RESULTS = "sql/prune_results.sql" (INT8, INT8, INT8);
    PRUNE_TOKENS = "sql/prune_tokens.sql" (INT8, INT8, INT8);
    PUT_HISTORY = "sql/put_history.sql" (INT8, UUID, BYTEA);
    PUT_KINDS = "sql/put_kinds.sql" (TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8, BOOL_ARRAY);
    PUT_TOKEN = "sql/put_token.sql" (TEXT, TEXT, TEXT, TEXT, BYTEA, INT8, INT8);
    REDRIVE = "sql/redrive.sql" (UUID_ARRAY, INT8_ARRAY, INT8_ARRAY);
    REPORT_HISTORY = "sql/report_history.sql" (INT8, INT8_ARRAY, UUID_ARRAY, BYTEA_ARRAY, INT8, INT8);
    REPLACED_BY = "sql/replaced_by.sql" (UUID_ARRAY);
    RELEASE = "sql/release.sql" (INT8, UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, INT8);
    RELEASE_GROUPS = "sql/release_groups.sql" (TEXT, TEXT, TEXT, INT8);
    RENEW = "sql/renew.sql" (UUID, INT8, INT8);
    RESERVE = "sql/reserve.sql" (TEXT, INT8, INT4_ARRAY, INT8_ARRAY, INT8, INT8, INT8);
    RESERVE_DROP = "sql/reserve_drop.sql" (TEXT, INT4);
    RESERVE_KEEP = "sql/reserve_keep.sql" (TEXT, INT4, INT8);
    RESERVE_LOCK = "sql/reserve_lock.sql" (TEXT);
    RESULT = "sql/result.sql" (UUID);
    REVOKE_TOKEN = "sql/revoke_token.sql" (TEXT, INT8);
    RISKS = "sql/risks.sql" (TEXT_ARRAY);
    SETTLE_DROP = "sql/settle_drop.sql" (UUID, INT8, UUID_ARRAY, INT8_ARRAY, TID_ARRAY, INT8);
    SETTLE_FIND = "sql/settle_find.sql" (UUID_ARRAY);
    SETTLE_KEEP = "sql/settle_keep.sql" (UUID, INT8, UUID_ARRAY, INT8_ARRAY, TID_ARRAY, INT8, INT8, INT8_ARRAY, INT8_ARRAY,
        TEXT_ARRAY, INT8);
    SETTLE_PAYLOAD = "sql/settle_payload.sql" (UUID_ARRAY, BYTEA_ARRAY);
    SETTLE_SEEN = "sql/settle_seen.sql" (UUID_ARRAY);
    SET_ASIDE = "sql/set_aside.sql" (INT8, UUID_ARRAY, TEXT_ARRAY);
    SHELVE = "sql/shelve.sql" (INT8, UUID, INT8, INT8, INT8);
    START = "sql/start.sql" (UUID, UUID_ARRAY, INT8_ARRAY);
    SWEEP = "sql/sweep.sql" (INT8, INT8, INT8);
    SWEEP_LOOK = "sql/sweep_look.sql" (UUID, INT8, INT8, INT8, INT8);
    TAKEOVERS_MAX = "sql/takeovers_max.sql" ();
    TAKE_KEYS = "sql/take_keys.sql" (INT8, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, BYTEA_ARRAY);
    SAMPLE = "sql/sample.sql" (INT8);
    SAMPLE_NOW = "sql/sample_now.sql" (INT8, INT8);
    TALLY = "sql/tally.sql" ();
    TALLY_DUE = "sql/tally_due.sql" (TEXT_ARRAY);
    TOKENS = "sql/tokens.sql" (INT8);
    TRIM_ATTEMPTS = "sql/trim_attempts.sql" (UUID_ARRAY, INT8, INT8);
    UNANNOUNCED = "sql/unannounced.sql" (INT8);
    UNREADABLE = "sql/unreadable.sql" ();
    USE_FORMAT = "sql/use_format.sql" (INT4);
    USE_PROBE = "sql/use_probe.sql" (TEXT, UUID);
    VACUUM = "sql/vacuum.sql" ();
}

/// [`SETTLE_KEEP`] for jobs with results: it stores them in the same statement.
pub(super) static SETTLE_KEEP_RESULTS: Sql = Sql::new(|| {
    let mut types = SETTLE_KEEP.types.clone();
    types.extend([Type::UUID_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::BYTEA_ARRAY]);
    let part = include_str!("sql/settle_results.sql");
    Statement::with_results(include_str!("sql/settle_keep.sql"), &types, part)
});

#[cfg(all(test, feature = "test-postgres"))]
mod joins;

#[cfg(test)]
mod tests {
    use super::job_columns::{JOB, USES, Use, array_types};
    use super::{
        ALL, ALL_OF_NEW_JOBS, CANCEL_DEAD, CLAIM, END_DEAD, END_FINISHED, INSERT, INSERT_GROUPED,
        INSERT_MANY, REDRIVE, SETTLE_KEEP, SETTLE_KEEP_RESULTS,
    };

    #[test]
    fn every_statement_is_filled_in() {
        let of_new_jobs = ALL_OF_NEW_JOBS
            .iter()
            .flat_map(|(file, forms)| forms.0.iter().map(move |sql| (file, sql)));
        for (file, sql) in ALL.iter().map(|(file, sql)| (file, *sql)).chain(of_new_jobs) {
            assert!(!sql.text.contains(['{', '}']), "{file}: {}", sql.text);
        }
        assert!(CLAIM.text.contains("RETURNING jobs.id, jobs.lane, "), "{}", CLAIM.text);
    }

    #[test]
    fn every_statement_that_stores_a_job_gives_it_all_columns() {
        let check = |text, table, except: &[&str]| JOB.check_insert(text, table, except);
        // A new job has not failed and has not been released.
        let unset = ["failure_category", "failure_code", "failure_message", "turn"];
        let inserts = [&INSERT, &INSERT_GROUPED, &INSERT_MANY];
        for sql in inserts.into_iter().flat_map(|forms| &forms.0) {
            check(&sql.text, "rewheel.jobs", &unset);
        }
        check(&REDRIVE.text, "rewheel.jobs", &[]);
        check(&END_DEAD.text, "rewheel.dead", &[]);
        check(&END_FINISHED.text, "rewheel.finished_bins", &[]);
        check(&SETTLE_KEEP.text, "rewheel.finished_bins", &[]);
        check(&SETTLE_KEEP_RESULTS.text, "rewheel.finished_bins", &[]);
        check(&CANCEL_DEAD.text, "rewheel.finished_bins", &[]);
    }

    #[test]
    fn new_jobs_are_the_last_parameters() {
        for used in USES {
            let sql = INSERT.with(used);
            let others = sql.types.len() - array_types(used).count();
            let first = format!("unnest(${}::_uuid, ${}::_int4, ", others + 1, others + 2);
            assert!(sql.text.contains(&first), "{}", sql.text);
            let last = format!("${}::_int8) AS given (id, lane, ", sql.types.len());
            assert!(sql.text.contains(&last), "{}", sql.text);
        }
    }

    #[test]
    fn columns_that_no_job_uses_are_no_parameters() {
        let arrays = |used| INSERT.with(used).text.matches("NULL::").count();
        let (always, often) = (arrays(Use::Always), arrays(Use::Often));
        assert!(always > often && often > arrays(Use::Rare), "{always} {often}");
        let plain = &INSERT.with(Use::Always).text;
        assert!(plain.contains("NULL::uuid AS parent"), "{plain}");
        assert!(plain.contains("AS given (id, lane, payload, due_in)"), "{plain}");
    }
}
