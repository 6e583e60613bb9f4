//! Stores idempotency keys and the responses to them.

use super::super::error::unreadable;
use super::super::pack::{Args, instant};
use super::super::reply::Reply;
use super::super::script::{IDEMPOTENCY_BEGIN, IDEMPOTENCY_CHANGE, IDEMPOTENCY_PRUNE};
use super::super::values::{Reader, Unreadable};
use super::super::{RedisStore, SCRIPT_JOBS_MAX, TRIES_MAX};
use crate::idempotency::judge;
use async_trait::async_trait;
use rewheel::idempotency::{
    Begin, Begun, Fingerprint, Finished, IdempotencyStore, IdempotencyStoreError, Judged, RunId,
    StoredKey, Ticket,
};
use rewheel_core::Timestamp;
use rewheel_core::store::StoreResult;
use std::time::Duration;

#[async_trait]
impl IdempotencyStore for RedisStore {
    async fn begin(&self, ask: &Begin) -> Result<Begun, IdempotencyStoreError> {
        self.begin_run(ask).await.map_err(judge)
    }

    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError> {
        let said = self.change_run("renew", ticket, lease, b"").await.map_err(judge)?;
        Ok(said == "done")
    }

    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError> {
        let said = self.change_run("finish", ticket, ticket.keep, answer).await.map_err(judge)?;
        Ok(match said.as_str() {
            "done" => Finished::Stored,
            "already" => Finished::Already,
            _ => Finished::Lost,
        })
    }

    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError> {
        self.change_run("release", ticket, Duration::ZERO, b"").await.map(drop).map_err(judge)
    }

    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError> {
        let mut pruned = 0;
        let mut left = limit;
        while left > 0 {
            let most = left.min(SCRIPT_JOBS_MAX);
            let args = Args::default().count(most);
            let answer = self.run(&IDEMPOTENCY_PRUNE, args).await.and_then(Reply::count);
            let part = answer.map_err(judge)?;
            pruned += part;
            left -= most;
            if part < most as u64 {
                break;
            }
        }
        Ok(pruned)
    }
}

impl RedisStore {
    /// Takes the key if it is as it was seen: at first as if it was free.
    async fn begin_run(&self, ask: &Begin) -> StoreResult<Begun> {
        let mut seen: Option<Vec<u8>> = None;
        for _ in 0..TRIES_MAX {
            let args = Args::default()
                .bytes(ask.key.as_bytes())
                .maybe_bytes(seen.as_deref())
                .bytes(ask.fingerprint.as_bytes())
                .bytes(ask.run.as_bytes())
                .millis(ask.lease)
                .millis(ask.keep);
            let answer = self.run(&IDEMPOTENCY_BEGIN, args).await?;
            let Ok([now, row]) = answer.parts() else { return Ok(Begun::Run) };
            // The key may be gone by now: then it is new.
            let Some(row) = row.bytes()? else {
                seen = None;
                continue;
            };
            let known = read(&row, now.time()?).map_err(|why| unreadable(why.0))?;
            match known.judge(ask) {
                Judged::Answer(begun) => return Ok(begun),
                Judged::Take => seen = Some(row),
            }
        }
        // Other requests were faster each time: one of them is running.
        Ok(Begun::InFlight { left: Duration::from_millis(1) })
    }

    async fn change_run(
        &self,
        what: &str,
        ticket: &Ticket,
        lasts: Duration,
        answer: &[u8],
    ) -> StoreResult<String> {
        let args = Args::default()
            .bytes(what.as_bytes())
            .bytes(ticket.key.as_bytes())
            .bytes(ticket.run.as_bytes())
            .millis(lasts)
            .bytes(answer);
        self.run(&IDEMPOTENCY_CHANGE, args).await?.text()
    }
}

fn read(row: &[u8], now: Timestamp) -> Result<StoredKey, Unreadable> {
    const WHAT: Unreadable = Unreadable("an idempotency key");
    let mut from = Reader(row);
    let fingerprint = from.raw(32)?.try_into().map_err(|_| WHAT)?;
    let run = RunId::from_bytes(from.id()?);
    let (lease, expires) = (from.f64()?, instant(from.f64()?));
    Ok(StoredKey {
        fingerprint: Fingerprint::from_bytes(fingerprint),
        run,
        lease_left: (lease >= 0.0).then(|| instant(lease).since(now)),
        expired: expires <= now,
        answer: from.0.to_vec(),
    })
}
