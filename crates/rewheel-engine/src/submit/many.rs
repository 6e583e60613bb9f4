//! Submits many jobs with few statements.

use super::{Receipt, Submit, SubmitError, check, receipt, store_error};
use crate::engine::Engine;
use crate::runner::JobKind;
use crate::submit_batching;
use rewheel_core::store::{Insert, Inserted, StoreError, StoreResult};
use rewheel_core::{Limits, NewJob};
use std::future::{Future, IntoFuture};
use std::pin::Pin;

/// Payloads that go to the store together: a transaction of more would delay all others.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// A job for [`Engine::submit_many`]: a job of a type of this program, or a [`Submit`] with a key, a
/// tenant or other settings.
pub trait IntoSubmit<'a> {
    /// Creates the submit. The job goes to `engine`, even if another engine created the [`Submit`].
    fn into_submit(self, engine: &'a Engine) -> Submit<'a>;
}

impl<'a, T: JobKind> IntoSubmit<'a> for T {
    fn into_submit(self, engine: &'a Engine) -> Submit<'a> {
        engine.submit(self)
    }
}

impl<'a> IntoSubmit<'a> for Submit<'a> {
    fn into_submit(self, engine: &'a Engine) -> Submit<'a> {
        Submit { engine, ..self }
    }
}

/// Jobs to submit together, see [`Engine::submit_many`]. Await it.
#[must_use = "a submit does nothing unless you await it"]
#[derive(Debug)]
pub struct SubmitMany<'a> {
    engine: &'a Engine,
    jobs: Vec<Result<NewJob, SubmitError>>,
}

impl<'a> SubmitMany<'a> {
    pub(crate) fn new<S: IntoSubmit<'a>>(
        engine: &'a Engine,
        jobs: impl IntoIterator<Item = S>,
    ) -> SubmitMany<'a> {
        let jobs = jobs.into_iter().map(|job| job.into_submit(engine).job).collect();
        SubmitMany { engine, jobs }
    }

    async fn send(self) -> Vec<Result<Receipt, SubmitError>> {
        let engine = self.engine;
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let mut wrong = Vec::with_capacity(self.jobs.len());
        for job in self.jobs {
            match job.and_then(|job| check(engine, &job).map(|()| job)) {
                Ok(job) => {
                    jobs.push(job);
                    wrong.push(None);
                }
                Err(error) => wrong.push(Some(error)),
            }
        }
        let mut answers = Vec::with_capacity(jobs.len());
        for part in parts(&jobs) {
            insert_part(engine, part, &mut answers).await;
        }
        let mut stored = jobs.iter().zip(answers).map(|(job, answer)| match answer {
            Ok(answer) => receipt(engine, job.id, Some(answer)),
            Err(error) => Err(store_error(engine, error)),
        });
        let result = |wrong: Option<SubmitError>| match wrong {
            Some(error) => Err(error),
            None => stored.next().unwrap_or(Err(SubmitError::ShutDown)),
        };
        wrong.into_iter().map(result).collect()
    }
}

impl<'a> IntoFuture for SubmitMany<'a> {
    type Output = Vec<Result<Receipt, SubmitError>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Splits jobs into batches that a store takes quickly.
fn parts(jobs: &[NewJob]) -> Vec<&[NewJob]> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, job) in jobs.iter().enumerate() {
        let size = job.payload.len();
        if at > start && (at - start == Limits::BATCH_MAX || bytes + size > BYTES_MAX) {
            parts.push(&jobs[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += size;
    }
    if start < jobs.len() {
        parts.push(&jobs[start..]);
    }
    parts
}

/// Stores a batch, with one answer for each job, in order. A batch that holds something that cannot
/// be stored is halved until that is alone.
async fn insert_part(engine: &Engine, part: &[NewJob], answers: &mut Vec<StoreResult<Inserted>>) {
    let mut parts = vec![part];
    while let Some(part) = parts.pop() {
        match engine.insert(&Insert::new(part)).await {
            Ok(stored) => answers.extend(stored.into_iter().map(Ok)),
            Err(StoreError::Rejected(_)) if part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            Err(error) => answers.extend(part.iter().map(|_| Err(submit_batching::copy(&error)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Engine, NewJob, StoreError, SubmitError, parts};
    use rewheel::Random;
    use rewheel_core::store::{ReadStore as _, Store};
    use rewheel_core::{JobId, KindName, Timestamp};
    use rewheel_stores::MemoryStore;
    use rewheel_testkit::FaultyStore;
    use std::sync::Arc;

    #[track_caller]
    fn check(sizes: &[usize], expected: &[usize]) {
        let random = Random::seeded(1);
        let job = |bytes: &usize| {
            let id = JobId::new(Timestamp::from_millis(0), &random);
            NewJob::new(id, KindName::parse("mail").unwrap(), vec![0; *bytes])
        };
        let jobs: Vec<NewJob> = sizes.iter().map(job).collect();
        let lengths: Vec<usize> = parts(&jobs).iter().map(|part| part.len()).collect();
        assert_eq!(lengths, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_the_store_cannot_take_does_not_affect_the_others() {
        let memory = MemoryStore::new();
        let faulty = Arc::new(FaultyStore::new(Arc::new(memory.clone())));
        let store: Arc<dyn Store> = Arc::<FaultyStore>::clone(&faulty);
        let engine = Engine::builder(store).raw_handler("mail", |_| async {}).start();
        let engine = engine.await.unwrap();
        let jobs: Vec<_> = (0..9).map(|_| engine.submit_raw("mail", Vec::new())).collect();
        let ids: Vec<JobId> = jobs.iter().map(|job| job.job.as_ref().unwrap().id).collect();
        faulty.fail_batches_with(ids[4]);
        for (place, result) in engine.submit_many(jobs).await.into_iter().enumerate() {
            match result {
                Ok(receipt) => assert_eq!(receipt.id, ids[place]),
                Err(error) => {
                    let is_rejected = matches!(error, SubmitError::Store(StoreError::Rejected(_)));
                    assert!(place == 4 && is_rejected, "{place}: {error:?}");
                }
            }
        }
        assert_eq!(memory.books().await.unwrap().submitted, 8);
    }

    #[test]
    fn a_batch_is_limited_in_jobs_and_in_bytes() {
        check(&[], &[]);
        check(&[0; 1_000], &[1_000]);
        check(&[0; 2_001], &[1_000, 1_000, 1]);
        check(&[BYTES_MAX, 1], &[1, 1]);
        check(&[1, BYTES_MAX - 1, 1, 1], &[2, 2]);
        check(&[BYTES_MAX + 1, BYTES_MAX + 1], &[1, 1]);
    }
}
