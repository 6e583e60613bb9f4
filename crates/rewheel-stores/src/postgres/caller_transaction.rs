//! Submits and settles jobs inside the user's own transaction.

use super::PostgresStore;
use super::error::DriverError;
use super::row::millis;
use super::session::Session;
use super::verbs::groups;
use super::verbs::insert::{Insertion, lanes_changed, stored_lines};
use super::verbs::settle;
use crate::batch::leave_out;
use rewheel_core::store::{
    IfRefused, Insert, Inserted, Settled, Settlement, StoreError, StoreResult,
};
use rewheel_core::{HolderId, NewJob, Timestamp, When};
use std::fmt::Write;
use std::time::Duration;
use tokio_postgres::Transaction;

impl PostgresStore {
    /// Stores new jobs inside the caller's transaction: they exist when the transaction has committed. This replaces an outbox table:
    /// an order and the job that charges for it are stored together, or neither is stored.
    ///
    /// It wakes no other node, because the jobs are not visible yet. The next poll finds them; call [`wake_in`](PostgresStore::wake_in)
    /// in the same transaction to run them at once after the commit. [`Insert::direct`] is ignored for the same reason. The same poll
    /// releases a job that is the first of its group.
    ///
    /// ```no_run
    /// use rewheel::Random;
    /// use rewheel_core::store::Insert;
    /// use rewheel_core::{JobId, KindName, NewJob, Timestamp};
    /// use rewheel_stores::PostgresStore;
    ///
    /// # async fn order(client: &mut tokio_postgres::Client, store: &PostgresStore) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// transaction.execute("INSERT INTO orders (id, cents) VALUES (17, 4200)", &[]).await?;
    /// let id = JobId::new(Timestamp::from_millis(1_700_000_000_000), &Random::thread());
    /// let job = NewJob::new(id, KindName::parse("charge-card")?, br#"{"order":17}"#.to_vec());
    /// store.insert_in(&transaction, &Insert::new(&[job])).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`SubmitStore::insert`](rewheel_core::store::SubmitStore::insert). After an error PostgreSQL rejects all further statements of
    /// the transaction: roll it back.
    pub async fn insert_in(
        &self,
        transaction: &Transaction<'_>,
        insert: &Insert<'_>,
    ) -> StoreResult<Vec<Inserted>> {
        let insert = Insert { direct: None, ..insert.clone() };
        // Try twice: if the cached lanes are out of date, they are looked up again.
        for _ in 0..2 {
            // Lanes are numbered outside of the transaction, because a rollback would make the cached numbers wrong.
            let lanes = self.prepare_insert(&insert).await?;
            let mut insertion = Insertion::new(&insert, lanes);
            if let Some(answers) = self.try_insert_in(transaction, &insert, &mut insertion).await? {
                return Ok(answers);
            }
            self.shared.lanes.forget();
        }
        Err(lanes_changed())
    }

    async fn try_insert_in(
        &self,
        transaction: &Transaction<'_>,
        insert: &Insert<'_>,
        insertion: &mut Insertion<'_>,
    ) -> StoreResult<Option<Vec<Inserted>>> {
        let unavailable = |error: tokio_postgres::Error| StoreError::from(DriverError(error));
        // Without keys nothing is written before it is known that the jobs can be.
        let guarded = insert.if_refused == IfRefused::StoreNothing
            || insert.jobs.iter().any(|job| job.key.is_some());
        if guarded {
            transaction.batch_execute("SAVEPOINT rewheel").await.map_err(unavailable)?;
        }
        let session = Session::theirs(&self.shared, transaction);
        let answers = insertion.careful(&session).await;
        let mut answers = session.end(answers).await?;
        let undo = match &mut answers {
            None => true,
            Some(answers) => {
                let refused = answers.iter().any(|answer| matches!(answer, Inserted::Refused(_)));
                let undo = refused && insert.if_refused == IfRefused::StoreNothing;
                if undo {
                    leave_out(insert.jobs, answers);
                }
                undo
            }
        };
        if guarded && undo {
            transaction.batch_execute("ROLLBACK TO rewheel").await.map_err(unavailable)?;
        }
        if guarded {
            transaction.batch_execute("RELEASE rewheel").await.map_err(unavailable)?;
        }
        let mut lines = std::mem::take(&mut insertion.lines);
        lines.extend(stored_lines(insert.jobs, answers.as_deref().unwrap_or_default()));
        let session = Session::theirs(&self.shared, transaction);
        let listed = groups::list(&session, &lines).await;
        session.end(listed).await?;
        Ok(answers)
    }

    /// Settles jobs inside the caller's transaction: the database changes of the attempt and its result commit together, and so do the
    /// [`follow_ups`](Settlement::follow_ups). Like [`insert_in`](PostgresStore::insert_in), it wakes no other node for them, nor for the
    /// next job of a group.
    ///
    /// # Errors
    /// As [`WorkStore::settle`](rewheel_core::store::WorkStore::settle). After an error PostgreSQL rejects all further statements of the
    /// transaction: roll it back. Also roll back if the result is [`Settled::Lost`].
    pub async fn settle_in(
        &self,
        transaction: &Transaction<'_>,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        let session = Session::theirs(&self.shared, transaction);
        let answers = settle::settle_mixed(&session, holder, settlements).await;
        session.end(answers).await.map(|(answers, ..)| answers)
    }

    /// Wakes all nodes when the caller's transaction commits. PostgreSQL commits transactions with a notification one at a time: do not
    /// call it in thousands of transactions per second.
    ///
    /// # Errors
    /// Returns an error if the statement fails.
    pub async fn wake_in(&self, transaction: &Transaction<'_>) -> StoreResult<()> {
        let text = format!("SELECT {}.rewheel_wake()", self.shared.schema);
        let told = transaction.batch_execute(&text).await;
        told.map_err(|error| DriverError(error).into())
    }

    /// Returns an SQL statement that stores a job, for a transaction of any other driver: a call of `rewheel_submit` with all values as
    /// literals. The statement returns the job's id, or the id of the job that already has its key.
    ///
    /// # Errors
    /// The payload must be text, and the job must not have a parent or its own backoff: set the backoff of its kind.
    ///
    /// ```no_run
    /// # async fn show(store: &rewheel_stores::PostgresStore, job: rewheel_core::NewJob) -> Result<(), rewheel_core::store::StoreError> {
    /// let sql = store.insert_sql(&job)?;
    /// assert!(sql.starts_with("SELECT rewheel.rewheel_submit("));
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert_sql(&self, job: &NewJob) -> StoreResult<String> {
        insert_sql(&self.shared.schema, job)
    }
}

fn insert_sql(schema: &str, job: &NewJob) -> StoreResult<String> {
    let rejected = |why: &str| StoreError::Rejected(why.into());
    if job.backoff.is_some() {
        return Err(rejected(
            "a job submitted by SQL cannot have its own backoff: set it for the kind",
        ));
    }
    if job.attempts_before > 0 {
        return Err(rejected("a job submitted by SQL cannot have earlier attempts"));
    }
    if job.parent.is_some() || job.instant.is_some() {
        return Err(rejected(
            "a job submitted by SQL cannot have a parent or an instant: only a job that is submitted together with the result of another job has one",
        ));
    }
    let payload = std::str::from_utf8(&job.payload)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| rejected("the payload of a job submitted by SQL must be JSON"))?;
    let mut sql = format!(
        "SELECT {schema}.rewheel_submit({}, {}, id => '{}', priority => {}",
        quoted(job.kind.as_str()),
        quoted(payload),
        job.id,
        job.priority.get(),
    );
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(sql, ", {name} => {value}");
        }
    };
    add("key", job.key.as_ref().map(|key| quoted(key.as_str())));
    add("tenant", job.tenant.as_ref().map(|tenant| quoted(tenant.as_str())));
    add("shard_key", job.shard_key.as_ref().map(|key| quoted(key.as_str())));
    add("group_key", job.group_key.as_ref().map(|key| quoted(key.as_str())));
    add("traceparent", job.traceparent.as_deref().map(quoted));
    add("attempts_max", job.attempts_max.map(|most| most.to_string()));
    add("attempt_timeout", job.attempt_timeout.map(interval));
    let duplicates = job.duplicates;
    if let Some(debounce) = duplicates.debounce() {
        add("debounce", Some(interval(debounce.delay())));
        add("debounce_max", Some(interval(debounce.max())));
    } else if !duplicates.is_default() {
        add("unique_until", Some(quoted(duplicates.unique_until().as_str())));
        add("on_duplicate", Some(quoted(duplicates.on_duplicate().as_str())));
    }
    match job.due {
        // The debounce has the delay.
        When::In(_) if duplicates.debounce().is_some() => {}
        When::In(delay) if delay.is_zero() => {}
        When::In(delay) => add("delay", Some(interval(delay))),
        When::At(at) => add("due", Some(timestamp(at))),
    }
    match job.deadline {
        None => {}
        Some(When::In(left)) => {
            add("deadline", Some(format!("clock_timestamp() + {}", interval(left))));
        }
        Some(When::At(at)) => add("deadline", Some(timestamp(at))),
    }
    sql.push(')');
    Ok(sql)
}

/// Formats a text as an SQL literal that is valid with any server setting for backslashes.
fn quoted(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Formats a duration as SQL.
fn interval(duration: Duration) -> String {
    milliseconds(millis(duration))
}

/// Formats a timestamp as SQL. Not `to_timestamp`: it takes fractions of seconds and may miss the millisecond.
fn timestamp(at: Timestamp) -> String {
    format!("timestamptz 'epoch' + {}", milliseconds(at.as_millis()))
}

/// Formats a number of milliseconds as an SQL interval. It multiplies, because older servers cannot parse large numbers of milliseconds.
/// It keeps hours apart, because the product is exact for small numbers only.
fn milliseconds(millis: i64) -> String {
    const HOUR: i64 = 3_600_000;
    let (hours, rest) = (millis.div_euclid(HOUR), millis.rem_euclid(HOUR));
    if hours == 0 {
        return format!("{rest} * interval '1 millisecond'");
    }
    format!("{hours} * interval '1 hour' + {rest} * interval '1 millisecond'")
}

#[cfg(test)]
mod tests {
    use super::insert_sql;
    use rewheel::{Backoff, Random};
    use rewheel_core::{
        Debounce, Duplicates, JobId, Key, KindName, NewJob, OnDuplicate, Timestamp, When,
    };
    use std::time::Duration;

    fn job(payload: &[u8]) -> NewJob {
        let id = JobId::new(Timestamp::from_millis(1), &Random::seeded(1));
        NewJob::new(id, KindName::parse("charge-card").expect("a kind"), payload.to_vec())
    }

    #[test]
    fn every_value_is_written_out_and_quoted() {
        let mut job = job(br#"{"name":"O'Neill \\ Sons"}"#);
        job.key = Key::parse("order'17").ok();
        job.due = When::In(Duration::from_millis(1_500));
        let sql = insert_sql("rewheel", &job).expect("a statement");
        assert_eq!(
            sql,
            format!(
                "SELECT rewheel.rewheel_submit(E'charge-card', E'{{\"name\":\"O''Neill \\\\\\\\ Sons\"}}', id => '{}', \
                 priority => 5, key => E'order''17', delay => 1500 * interval '1 millisecond')",
                job.id
            )
        );
    }

    #[test]
    fn what_to_do_about_duplicates_is_written_out() {
        let debounce = Debounce::new(Duration::from_secs(2), None).expect("a debounce");
        let duplicates = Duplicates::default().with_debounce(debounce).expect("a debounce");
        let due = When::In(Duration::from_secs(2));
        let sql = insert_sql("rewheel", &NewJob { duplicates, due, ..job(b"{}") });
        let sql = sql.expect("a statement");
        let end = "priority => 5, debounce => 2000 * interval '1 millisecond', \
                   debounce_max => 20000 * interval '1 millisecond')";
        assert!(sql.ends_with(end), "{sql}");
        let replace = Duplicates::default().with_on_duplicate(OnDuplicate::Replace);
        let duplicates = replace.expect("no debounce");
        let sql = insert_sql("rewheel", &NewJob { duplicates, ..job(b"{}") });
        let end = "unique_until => E'ended', on_duplicate => E'replace')";
        assert!(sql.expect("a statement").ends_with(end));
    }

    #[test]
    fn what_sql_cannot_say_is_refused() {
        assert!(insert_sql("rewheel", &job(b"\xff")).is_err());
        let backoff = Some(Backoff::fixed(Duration::from_secs(1)));
        assert!(insert_sql("rewheel", &NewJob { backoff, ..job(b"{}") }).is_err());
        assert!(insert_sql("rewheel", &NewJob { attempts_before: 3, ..job(b"{}") }).is_err());
        let parent = Some(job(b"{}").id);
        assert!(insert_sql("rewheel", &NewJob { parent, ..job(b"{}") }).is_err());
    }
}
