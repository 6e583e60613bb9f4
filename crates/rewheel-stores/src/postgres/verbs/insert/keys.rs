//! Takes the keys of new jobs, and answers for those whose key another job has.

use super::super::super::error::{VerbError, broken, unreadable};
use super::super::super::row::{job_id, tenant_text, uuid};
use super::super::super::session::{Param, Session};
use super::super::super::statements::{FIND_KEYS, TAKE_KEYS};
use super::Insertion;
use crate::payload::payload_hash;
use rewheel_core::store::{Inserted, Refusal, StoreError};
use rewheel_core::{JobId, Key, NewJob, State};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

impl Insertion<'_> {
    /// Takes the keys of jobs to store that do not have them yet, and fills in the results of jobs whose key belongs to another job. Returns the jobs whose key
    /// belongs to another job of the same batch, with that job.
    pub(super) async fn keys(
        &self,
        session: &Session<'_>,
        have_keys: &HashSet<usize>,
        answers: &mut [Option<Inserted>],
    ) -> Result<HashMap<usize, usize>, VerbError> {
        let mut keyed: Vec<(usize, &NewJob, &Key)> = Vec::new();
        for (place, job) in self.insert.jobs.iter().enumerate() {
            let is_open = answers[place].is_none() && !have_keys.contains(&place);
            if let Some(key) = job.key.as_ref().filter(|_| is_open) {
                keyed.push((place, job, key));
            }
        }
        self.answer_known(session, &keyed, answers).await?;
        keyed.retain(|(place, ..)| answers[*place].is_none());
        // If several jobs have the same key, the first takes it. A job whose deadline has passed takes none.
        let mut twins = HashMap::new();
        let mut first: HashMap<(&str, &str, &str), usize> = HashMap::new();
        keyed.retain(|(place, job, key)| {
            let name = (job.kind.as_str(), tenant_text(job.tenant.as_ref()), key.as_str());
            match first.get(&name) {
                Some(other) => drop(twins.insert(*place, *other)),
                None if job.is_too_late(self.now) => {}
                None => drop(first.insert(name, *place)),
            }
            first.get(&name) == Some(place)
        });
        if keyed.is_empty() {
            return Ok(twins);
        }
        let taken = self.take(session, &keyed).await?;
        keyed.retain(|(_, job, _)| !taken.contains(&job.id));
        if keyed.is_empty() {
            return Ok(twins);
        }
        // Another transaction took the key and has committed. The twins of this job are duplicates of that transaction's job, too.
        let lost: HashSet<usize> = keyed.iter().map(|(place, ..)| *place).collect();
        for (place, first) in &twins {
            let job = &self.insert.jobs[*place];
            if let Some(key) = job.key.as_ref().filter(|_| lost.contains(first)) {
                keyed.push((*place, job, key));
            }
        }
        twins.retain(|_, first| !lost.contains(first));
        self.answer_known(session, &keyed, answers).await?;
        if keyed.iter().any(|(place, ..)| answers[*place].is_none()) {
            let why = "a key was released at the same time: repeat the request";
            return Err(StoreError::Unavailable(why.into()).into());
        }
        Ok(twins)
    }

    async fn take(
        &self,
        session: &Session<'_>,
        keyed: &[(usize, &NewJob, &Key)],
    ) -> Result<HashSet<JobId>, VerbError> {
        let names = KeyNames::of(keyed);
        let jobs: Vec<Uuid> = keyed.iter().map(|(_, job, _)| uuid(job.id)).collect();
        let hashes: Vec<[u8; 32]> =
            keyed.iter().map(|(_, job, _)| payload_hash(&job.payload)).collect();
        let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
        let now = self.now.as_millis();
        let params: [Param<'_>; 6] =
            [&now, &names.kinds, &names.tenants, &names.keys, &jobs, &hashes];
        let rows = session.query(&TAKE_KEYS, &params).await?;
        rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
    }

    /// Fills in the results of jobs whose key belongs to another stored job.
    async fn answer_known(
        &self,
        session: &Session<'_>,
        keyed: &[(usize, &NewJob, &Key)],
        answers: &mut [Option<Inserted>],
    ) -> Result<(), VerbError> {
        if keyed.is_empty() {
            return Ok(());
        }
        let names = KeyNames::of(keyed);
        let now = self.now.as_millis();
        let params: [Param<'_>; 4] = [&now, &names.kinds, &names.tenants, &names.keys];
        for row in session.query(&FIND_KEYS, &params).await? {
            let nth = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(1) - 1;
            let (place, job, _) = keyed[nth];
            let known = job_id(row.try_get(1)?);
            let hash: &[u8] = row.try_get(2)?;
            answers[place] = Some(if hash != payload_hash(&job.payload) {
                Inserted::Refused(Refusal::KeyReused { job: known })
            } else {
                let state = row.try_get::<_, Option<&str>>(3)?.ok_or_else(|| lost_job(known))?;
                let state = state.parse().map_err(|_| unreadable("a state"))?;
                Inserted::Duplicate { job: known, state }
            });
        }
        Ok(())
    }

    /// Fills in the results of jobs whose key belongs to another job of the same batch.
    pub(super) fn answer_twins(
        &self,
        answers: &mut [Option<Inserted>],
        twins: &HashMap<usize, usize>,
    ) {
        for (place, first) in twins {
            let (job, other) = (&self.insert.jobs[*place], &self.insert.jobs[*first]);
            let leased =
                matches!(&answers[*first], Some(Inserted::Created { leased: Some(_), .. }));
            let state = if leased { State::Leased } else { State::Scheduled };
            answers[*place] = Some(if job.payload == other.payload {
                Inserted::Duplicate { job: other.id, state }
            } else {
                Inserted::Refused(Refusal::KeyReused { job: other.id })
            });
        }
    }
}

/// Names of keys as one array per column.
struct KeyNames<'a> {
    kinds: Vec<&'a str>,
    tenants: Vec<&'a str>,
    keys: Vec<&'a str>,
}

impl<'a> KeyNames<'a> {
    fn of(keyed: &[(usize, &'a NewJob, &'a Key)]) -> KeyNames<'a> {
        KeyNames {
            kinds: keyed.iter().map(|(_, job, _)| job.kind.as_str()).collect(),
            tenants: keyed.iter().map(|(_, job, _)| tenant_text(job.tenant.as_ref())).collect(),
            keys: keyed.iter().map(|(_, _, key)| key.as_str()).collect(),
        }
    }
}

pub(in super::super) fn lost_job(job: JobId) -> VerbError {
    let what = format!(
        "an idempotency key refers to job {job}, which does not exist: run `rewheel doctor`"
    );
    VerbError::Said(broken(what, None))
}
