//! Reads and takes the idempotency keys of jobs.

use super::super::error::VerbError;
use super::super::lane_rows::tenant_text;
use super::super::row::{bytes, get, id16};
use super::super::statement::chunks;
use super::super::transaction::Transaction;
use super::given::{ForJob, Given};
use crate::payload::payload_hash;
use mysql_async::Value;
use rewheel_core::{JobId, Key, Lane, NewJob, State, Tenant, Timestamp};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// Keys that one statement stores.
const ROWS_MAX: usize = 512;

/// The hash by which a key is stored.
pub(super) type KeyName = [u8; 32];

/// Returns the hash of kind, tenant and key. Lengths keep different parts from having the same bytes.
pub(super) fn name(kind: &str, tenant: &str, key: &str) -> KeyName {
    let mut hash = Sha256::new();
    for part in [kind, tenant, key] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// Returns the name of the key of a new job.
pub(super) fn name_of(job: &NewJob, key: &Key) -> KeyName {
    name(job.kind.as_str(), tenant_text(job.tenant.as_ref()), key.as_str())
}

/// A stored key.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) job: JobId,
    pub(super) payload_hash: [u8; 32],
    /// The final state of the job, if it has reached one.
    pub(super) ended: Option<State>,
    /// The key belongs to no job any more.
    pub(super) expired: bool,
}

/// The keys of a batch, locked, as they are after the jobs before.
#[derive(Debug, Default)]
pub(super) struct Keys {
    found: HashMap<KeyName, Found>,
    new: Vec<(KeyName, JobId, [u8; 32])>,
}

impl Keys {
    pub(super) async fn find(tx: &mut Transaction<'_>, jobs: &[NewJob]) -> Result<Keys, VerbError> {
        let names = jobs.iter().filter_map(|job| Some(name_of(job, job.key.as_ref()?)));
        let mut names: Vec<KeyName> = names.collect();
        // In one order, so that two batches with the same keys do not deadlock.
        names.sort_unstable();
        names.dedup();
        let list: Vec<Value> = names.into_iter().map(|name| name.to_vec().into()).collect();
        let rows = tx.run_list(include_str!("../sql/find_keys.sql"), &[], &list, &[]).await?.rows;
        let mut keys = Keys::default();
        for row in rows {
            let (ended, expires): (Option<String>, Option<i64>) = (get(&row, 3)?, get(&row, 4)?);
            let found = Found {
                job: JobId::from_bytes(bytes(&row, 1)?),
                payload_hash: bytes(&row, 2)?,
                ended: ended.and_then(|state| state.parse().ok()),
                expired: expires.is_some_and(|expires| expires <= tx.now.as_millis()),
            };
            keys.found.insert(bytes(&row, 0)?, found);
        }
        Ok(keys)
    }

    /// Returns the job that has a key.
    pub(super) fn get(&self, job: &NewJob, key: &Key) -> Option<&Found> {
        self.found.get(&name_of(job, key)).filter(|found| !found.expired)
    }

    /// Takes a key for a job, also from the job that has it, and stores the hash of its payload.
    pub(super) async fn take(
        &mut self,
        tx: &mut Transaction<'_>,
        job: &NewJob,
        key: &Key,
    ) -> Result<(), VerbError> {
        let (name, payload_hash) = (name_of(job, key), payload_hash(&job.payload));
        let taken = Found { job: job.id, payload_hash, ended: None, expired: false };
        if self.found.insert(name, taken).is_none() {
            self.new.push((name, job.id, payload_hash));
            return Ok(());
        }
        if let Some(new) = self.new.iter_mut().find(|(new, ..)| *new == name) {
            (new.1, new.2) = (job.id, payload_hash);
            return Ok(());
        }
        let values =
            vec![id16(job.id.to_bytes()), payload_hash.to_vec().into(), name.to_vec().into()];
        tx.execute(include_str!("../sql/take_key.sql"), values).await.map(drop)
    }

    /// Stores the keys that did not exist.
    pub(super) async fn write(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        let mut new = std::mem::take(&mut self.new);
        new.sort_unstable_by_key(|(name, ..)| *name);
        let mut left = &new[..];
        for size in chunks(new.len(), ROWS_MAX) {
            let (part, rest) = left.split_at(size);
            let mut values: Vec<Value> = Vec::with_capacity(3 * size);
            for (name, job, hash) in part {
                values.extend([name.to_vec().into(), id16(job.to_bytes()), hash.to_vec().into()]);
            }
            tx.insert_rows(include_str!("../sql/insert_key.sql"), size, values).await?;
            left = rest;
        }
        Ok(())
    }
}

/// Stores the final state of a job in its key, until the key expires.
pub(super) async fn end_key(
    tx: &mut Transaction<'_>,
    lane: &Lane,
    key: &str,
    job: JobId,
    state: State,
    expires: Timestamp,
) -> Result<(), VerbError> {
    let mut keys = Given::default();
    keys.add(ended(lane, key, job));
    end_keys(tx, &mut keys, state, expires).await
}

/// Returns what [`end_keys`] is given for the key of a job.
pub(super) fn ended(lane: &Lane, key: &str, job: JobId) -> ForJob {
    let name = name(lane.kind.as_str(), lane.tenant.as_ref().map_or("", Tenant::as_str), key);
    ForJob::default().bytes(&name).bytes(&job.to_bytes())
}

/// Stores the final state of jobs in their keys, until the keys expire.
pub(super) async fn end_keys(
    tx: &mut Transaction<'_>,
    keys: &mut Given,
    state: State,
    expires: Timestamp,
) -> Result<(), VerbError> {
    // In one order, so that two batches with the same keys do not deadlock.
    keys.sort();
    for given in keys.take() {
        let values = vec![given.into(), state.as_str().into(), expires.as_millis().into()];
        tx.execute(include_str!("../sql/end_keys.sql"), values).await?;
    }
    Ok(())
}
