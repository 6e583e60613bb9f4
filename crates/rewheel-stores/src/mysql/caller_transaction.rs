//! Submits and settles jobs inside the user's own transaction.

use super::MysqlStore;
use super::transaction::Transaction;
use super::verbs::insert::{Lines, insert};
use super::verbs::settle::{Share, settle};
use rewheel_core::HolderId;
use rewheel_core::store::{Insert, Inserted, Settled, Settlement, StoreResult};

impl MysqlStore {
    /// Stores new jobs inside the caller's transaction: they exist when the transaction has committed. This replaces an outbox table: an
    /// order and the job that charges for it are stored together, or neither is stored.
    ///
    /// The connection must use the database of the store, and the isolation level READ COMMITTED for the whole session: at a higher level a
    /// transaction would decide by rows that others have changed since, and would stop the submits of others. The session's `sql_mode` must
    /// be strict, which is the server's default. The call wakes no node, because the jobs are not visible yet: the next poll finds them.
    /// [`Insert::direct`] is ignored for the same reason. The same poll releases a job that is the first of its group.
    ///
    /// ```no_run
    /// use mysql_async::TxOpts;
    /// use mysql_async::prelude::Queryable;
    /// use rewheel::Random;
    /// use rewheel_core::store::Insert;
    /// use rewheel_core::{JobId, KindName, NewJob, Timestamp};
    /// use rewheel_stores::MysqlStore;
    ///
    /// # async fn order(connection: &mut mysql_async::Conn, store: &MysqlStore) -> Result<(), Box<dyn std::error::Error>> {
    /// // Once for each connection. `OptsBuilder::setup` does it for those of a pool.
    /// connection.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
    /// let mut transaction = connection.start_transaction(TxOpts::new()).await?;
    /// transaction.query_drop("INSERT INTO orders (id, cents) VALUES (17, 4200)").await?;
    /// let id = JobId::new(Timestamp::from_millis(1_700_000_000_000), &Random::thread());
    /// let job = NewJob::new(id, KindName::parse("charge-card")?, br#"{"order":17}"#.to_vec());
    /// store.insert_in(&mut transaction, &Insert::new(&[job])).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`SubmitStore::insert`](rewheel_core::store::SubmitStore::insert), and
    /// [`StoreError::Rejected`](rewheel_core::store::StoreError::Rejected) if the session has another isolation level or a `sql_mode` that is
    /// not strict. After an error roll the transaction back; after
    /// [`StoreError::Unavailable`](rewheel_core::store::StoreError::Unavailable) (a deadlock, for example) run it again.
    pub async fn insert_in(
        &self,
        transaction: &mut mysql_async::Transaction<'_>,
        jobs: &Insert<'_>,
    ) -> StoreResult<Vec<Inserted>> {
        jobs.check()?;
        let jobs = Insert { direct: None, ..jobs.clone() };
        let mut tx = Transaction::theirs(&self.shared, transaction).await?;
        let answers = insert(&mut tx, &jobs, Lines::Leave).await;
        tx.hand_back(answers).await
    }

    /// Settles jobs inside the caller's transaction: the database changes of the attempt and its result commit together, and so do the
    /// [`follow_ups`](Settlement::follow_ups). Like [`insert_in`](MysqlStore::insert_in), it wakes no node for them.
    ///
    /// # Errors
    /// As [`WorkStore::settle`](rewheel_core::store::WorkStore::settle), and for the session as
    /// [`insert_in`](MysqlStore::insert_in). After an error roll the transaction back. Also roll back if the
    /// result is [`Settled::Lost`].
    pub async fn settle_in(
        &self,
        transaction: &mut mysql_async::Transaction<'_>,
        holder: HolderId,
        settlements: &[Settlement],
    ) -> StoreResult<Vec<Settled>> {
        let mut tx = Transaction::theirs(&self.shared, transaction).await?;
        let answers = settle(&mut tx, holder, settlements, Share::All).await;
        tx.hand_back(answers).await
    }
}
