//! Stores idempotency keys and the responses to them.

use super::super::PostgresStore;
use super::super::error::{VerbError, unreadable};
use super::super::row::{count, duration, millis};
use super::super::session::{Param, Session};
use super::super::statements::{
    IDEMPOTENCY_FIND, IDEMPOTENCY_FINISH, IDEMPOTENCY_INSERT, IDEMPOTENCY_PRUNE,
    IDEMPOTENCY_RELEASE, IDEMPOTENCY_RENEW, IDEMPOTENCY_TAKE,
};
use crate::idempotency::judge;
use async_trait::async_trait;
use rewheel::idempotency::{
    Begin, Begun, Fingerprint, Finished, IdempotencyStore, IdempotencyStoreError, Judged, RunId,
    StoredKey, Ticket,
};
use rewheel_core::store::StoreResult;
use std::time::Duration;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

/// Maximum number of tries for a key that keeps changing. After each change another request got its result.
const LOOKS_MAX: usize = 16;

impl PostgresStore {
    /// Stores the response to an idempotency key inside the caller's transaction: the database changes of the handler and the response
    /// commit together, **exactly once**. If the process dies before the commit, nothing was done and the next request runs the handler.
    /// If it dies after the commit, the next request gets the stored response.
    ///
    /// If the result is [`Finished::Lost`], another request has the key: roll the transaction back. A handler behind
    /// `rewheel::axum::IdempotencyLayer` finds its ticket in the extensions of the request, and stores the bytes of a
    /// `rewheel::axum::KeptResponse`; the layer sends the handler's return value to the client unchanged.
    ///
    /// The transaction must be `READ COMMITTED`, the server's default. At a stricter level it fails with a serialization error if another
    /// request took over the key meanwhile, and nothing is done.
    ///
    /// ```no_run
    /// use rewheel::idempotency::{Finished, Ticket};
    /// use rewheel_stores::PostgresStore;
    ///
    /// # async fn charge(client: &mut tokio_postgres::Client, store: &PostgresStore, ticket: Ticket) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// transaction.execute("INSERT INTO charges (order_id, cents) VALUES (17, 4200)", &[]).await?;
    /// if store.finish_in(&transaction, &ticket, b"charged").await? == Finished::Lost {
    ///     transaction.rollback().await?;
    ///     return Err("another request with this key is at work".into());
    /// }
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the statement fails. PostgreSQL then rejects all further statements of the transaction: roll it back.
    pub async fn finish_in(
        &self,
        transaction: &Transaction<'_>,
        ticket: &Ticket,
        answer: &[u8],
    ) -> StoreResult<Finished> {
        let session = Session::theirs(&self.shared, transaction);
        let finished = finish(&session, ticket, answer).await;
        session.end(finished).await
    }
}

#[async_trait]
impl IdempotencyStore for PostgresStore {
    async fn begin(&self, ask: &Begin) -> Result<Begun, IdempotencyStoreError> {
        let session = self.write().await.map_err(judge)?;
        let begun = begin(&session, ask).await;
        session.end(begun).await.map_err(judge)
    }

    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError> {
        let session = self.write().await.map_err(judge)?;
        let (key, run) = names(ticket);
        let params: [Param<'_>; 4] = [&session.offset(), &key, &run, &millis(lease)];
        let renewed = session.execute(&IDEMPOTENCY_RENEW, &params).await.map(|rows| rows == 1);
        session.end(renewed).await.map_err(judge)
    }

    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError> {
        let session = self.write().await.map_err(judge)?;
        let finished = finish(&session, ticket, answer).await;
        session.end(finished).await.map_err(judge)
    }

    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError> {
        let session = self.write().await.map_err(judge)?;
        let (key, run) = names(ticket);
        let released = session.execute(&IDEMPOTENCY_RELEASE, &[&key, &run]).await.map(drop);
        session.end(released).await.map_err(judge)
    }

    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError> {
        let session = self.write().await.map_err(judge)?;
        let limit = count(limit as u64);
        let pruned = session.execute(&IDEMPOTENCY_PRUNE, &[&session.offset(), &limit]).await;
        session.end(pruned).await.map_err(judge)
    }
}

/// Takes one statement for a new key, two for a known key, three for a takeover.
async fn begin(session: &Session<'_>, ask: &Begin) -> Result<Begun, VerbError> {
    let (key, fingerprint) = (&ask.key.as_bytes()[..], &ask.fingerprint.as_bytes()[..]);
    let run = Uuid::from_bytes(*ask.run.as_bytes());
    let (offset, lease, keep) = (session.offset(), millis(ask.lease), millis(ask.keep));
    for _ in 0..LOOKS_MAX {
        let params: [Param<'_>; 6] = [&offset, &key, &fingerprint, &run, &lease, &keep];
        if session.execute(&IDEMPOTENCY_INSERT, &params).await? == 1 {
            return Ok(Begun::Run);
        }
        // The key may be gone by now: then it is new.
        let Some(row) = session.find(&IDEMPOTENCY_FIND, &[&offset, &key]).await? else { continue };
        let known = read(&row)?;
        let before = Uuid::from_bytes(*known.run.as_bytes());
        match known.judge(ask) {
            Judged::Answer(begun) => return Ok(begun),
            Judged::Take => {
                let params: [Param<'_>; 7] =
                    [&offset, &key, &fingerprint, &run, &lease, &keep, &before];
                if session.execute(&IDEMPOTENCY_TAKE, &params).await? == 1 {
                    return Ok(Begun::Run);
                }
            }
        }
    }
    // Other requests were faster each time: one of them is running.
    Ok(Begun::InFlight { left: Duration::from_millis(1) })
}

async fn finish(
    session: &Session<'_>,
    ticket: &Ticket,
    answer: &[u8],
) -> Result<Finished, VerbError> {
    let (key, run) = names(ticket);
    let offset = session.offset();
    let params: [Param<'_>; 5] = [&offset, &key, &run, &answer, &millis(ticket.keep)];
    if session.execute(&IDEMPOTENCY_FINISH, &params).await? == 1 {
        return Ok(Finished::Stored);
    }
    let known = session.find(&IDEMPOTENCY_FIND, &[&offset, &key]).await?;
    let known = known.as_ref().map(read).transpose()?;
    let ours = known.is_some_and(|known| known.run == ticket.run);
    Ok(if ours { Finished::Already } else { Finished::Lost })
}

fn names(ticket: &Ticket) -> (&[u8], Uuid) {
    (&ticket.key.as_bytes()[..], Uuid::from_bytes(*ticket.run.as_bytes()))
}

fn read(row: &Row) -> Result<StoredKey, VerbError> {
    let fingerprint: &[u8] = row.try_get(0)?;
    let fingerprint = fingerprint.try_into().map_err(|_| unreadable("a fingerprint"))?;
    let run: Uuid = row.try_get(1)?;
    let left: Option<i64> = row.try_get(2)?;
    Ok(StoredKey {
        fingerprint: Fingerprint::from_bytes(fingerprint),
        run: RunId::from_bytes(run.into_bytes()),
        lease_left: left.map(duration),
        expired: row.try_get(3)?,
        answer: row.try_get(4)?,
    })
}
