//! Reads results and attempts.

use super::super::error::unreadable;
use super::super::pack::{Args, duration};
use super::super::script::{ATTEMPTS, ENDED, RESULT};
use super::super::values::{Reader, Unreadable, Writer, read_failure};
use super::super::{RedisStore, SCRIPT_JOBS_MAX};
use super::rows::ids;
use rewheel_core::store::{AttemptEnd, AttemptRecord, StoreResult};
use rewheel_core::{
    ContentType, DropReason, Fence, GivenResult, HolderId, JobId, JobResult, Limits, StoredResult,
    SuccessCode, Timestamp,
};

/// Writes a result.
pub(super) fn write_result(result: &GivenResult) -> Vec<u8> {
    let mut to = Writer::default();
    match result {
        GivenResult::Kept(result) => {
            to.raw(b"K").long(result.content_type.as_str().as_bytes()).raw(&result.body);
        }
        GivenResult::Dropped(why) => {
            to.raw(b"D").raw(why.as_str().as_bytes());
        }
    }
    to.done()
}

fn read_result(raw: &[u8]) -> Result<StoredResult, Unreadable> {
    const WHAT: Unreadable = Unreadable("a result");
    let mut from = Reader(raw);
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| WHAT);
    Ok(match from.u8()? {
        b'K' => {
            let content_type = ContentType::parse(text(from.long()?)?).map_err(|_| WHAT)?;
            StoredResult::Kept(JobResult { content_type, body: from.0.to_vec() })
        }
        b'D' => StoredResult::Dropped(DropReason::new(text(from.0)?)),
        b'P' => StoredResult::Pruned,
        _ => return Err(WHAT),
    })
}

impl RedisStore {
    pub(in super::super) async fn result(&self, job: JobId) -> StoreResult<Option<StoredResult>> {
        let args = Args::default().bytes(&job.to_bytes());
        let [raw, exists] = self.read(&RESULT, args).await?.parts()?;
        let Some(raw) = raw.bytes()? else { return Ok(None) };
        let known = read_result(&raw).map_err(|why| unreadable(why.0))?;
        // The job may be pruned before its result.
        Ok(Some(if exists.count()? == 1 { known } else { StoredResult::Pruned }))
    }

    pub(in super::super) async fn ended(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        let mut ended = Vec::new();
        for part in jobs.chunks(SCRIPT_JOBS_MAX) {
            let answers = self.read(&ENDED, Args::default().list(ids(part))).await?.list()?;
            for (job, answer) in part.iter().zip(answers) {
                if answer.count()? == 1 {
                    ended.push(*job);
                }
            }
        }
        Ok(ended)
    }

    pub(in super::super) async fn attempts(&self, job: JobId) -> StoreResult<Vec<AttemptRecord>> {
        let args = Args::default().bytes(&job.to_bytes());
        let [failed, succeeded, ended] = self.read(&ATTEMPTS, args).await?.parts()?;
        let mut records = Vec::new();
        for raw in failed.list()? {
            records.push(read_failed(&raw.must()?).map_err(|why| unreadable(why.0))?);
        }
        let unlisted = records.len().saturating_sub(Limits::ATTEMPTS_LISTED_MAX);
        records.drain(..unlisted);
        let (succeeded, ended) = (succeeded.must()?, ended.time()?);
        if !succeeded.is_empty() {
            records.push(read_succeeded(&succeeded, ended).map_err(|why| unreadable(why.0))?);
        }
        Ok(records)
    }
}

fn text(bytes: &[u8]) -> Result<String, Unreadable> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Unreadable("an attempt"))
}

fn earlier(at: Timestamp, ago: f64) -> Timestamp {
    let ago = i64::try_from(duration(ago).as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(at.as_millis().saturating_sub(ago))
}

fn read_failed(raw: &[u8]) -> Result<AttemptRecord, Unreadable> {
    let mut from = Reader(raw);
    let (dropped, attempt) = (from.u32()?, from.u32()?);
    let (fence, at) = (Fence::new(from.whole()?), super::super::pack::instant(from.f64()?));
    let holder = HolderId::from_bytes(from.id()?);
    let (started_ago, took) = (from.f64()?, from.f64()?);
    let delay = from.maybe_f64()?.map(duration);
    let decision = text(from.short()?)?;
    let ended = AttemptEnd::Failed(read_failure(from.0)?);
    let (started, duration) = (earlier(at, started_ago), duration(took));
    Ok(AttemptRecord {
        attempt,
        fence,
        holder,
        started,
        duration,
        ended,
        decision,
        delay,
        dropped: dropped.into(),
    })
}

fn read_succeeded(raw: &[u8], at: Timestamp) -> Result<AttemptRecord, Unreadable> {
    let mut from = Reader(raw);
    let (attempt, fence) = (from.u32()?, Fence::new(from.whole()?));
    let holder = HolderId::from_bytes(from.id()?);
    let (started_ago, took) = (from.f64()?, from.f64()?);
    let code = from.maybe_text()?.and_then(SuccessCode::new);
    let decision = text(from.short()?)?;
    let (started, duration) = (earlier(at, started_ago), duration(took));
    let ended = AttemptEnd::Succeeded(code);
    Ok(AttemptRecord {
        attempt,
        fence,
        holder,
        started,
        duration,
        ended,
        decision,
        delay: None,
        dropped: 0,
    })
}
