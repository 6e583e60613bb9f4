//! Results of jobs that succeeded, and the record of the attempt.

use super::super::error::{VerbError, unreadable};
use super::super::row::{
    duration, fence, holder_id, holder_uuid, instant, job_id, millis, small, unsigned, uuid,
};
use super::super::session::{Param, Session};
use super::super::statements::{ATTEMPT_SUCCEEDED, ENDED, INSERT_RESULTS, PRUNE_RESULTS, RESULT};
use rewheel_core::store::{AttemptEnd, AttemptRecord, Settlement};
use rewheel_core::{
    ContentType, Decision, DropReason, GivenResult, HolderId, JobId, JobResult, Limits,
    StoredResult, SuccessCode, Timestamp,
};
use uuid::Uuid;

/// Most bytes of results in one statement: the server and this process hold it in memory several times.
const STATEMENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Results as one array per column.
pub(super) struct Results<'r> {
    pub(super) jobs: Vec<Uuid>,
    content_types: Vec<Option<&'r str>>,
    dropped: Vec<Option<&'r str>>,
    bodies: Vec<Option<&'r [u8]>>,
}

impl<'r> Results<'r> {
    pub(super) fn of(results: impl Iterator<Item = (JobId, &'r GivenResult)>) -> Results<'r> {
        let (jobs, content_types, dropped, bodies) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut columns = Results { jobs, content_types, dropped, bodies };
        for (job, result) in results {
            let (content_type, dropped, body) = match result {
                GivenResult::Kept(result) => {
                    (Some(result.content_type.as_str()), None, Some(result.body.as_slice()))
                }
                GivenResult::Dropped(why) => (None, Some(why.as_str()), None),
            };
            columns.jobs.push(uuid(job));
            columns.content_types.push(content_type);
            columns.dropped.push(dropped);
            columns.bodies.push(body);
        }
        columns
    }

    pub(super) fn params(&self) -> [Param<'_>; 4] {
        [&self.jobs, &self.content_types, &self.dropped, &self.bodies]
    }

    /// Takes those of settlements, in any order.
    pub(super) fn settled(settlements: &'r [Settlement]) -> Results<'r> {
        let given = settlements.iter().filter_map(|settled| {
            settled.result.as_ref().map(|result| (settled.lease.job, result))
        });
        Results::of(given)
    }
}

/// Cuts a batch where its results become too large for one statement.
pub(super) fn portions(settlements: &[Settlement]) -> Vec<&[Settlement]> {
    let bytes = |settled: &Settlement| match &settled.result {
        Some(GivenResult::Kept(result)) => result.body.len(),
        Some(GivenResult::Dropped(_)) | None => 0,
    };
    let mut sum = settlements.first().map_or(0, bytes);
    let fits = |_: &Settlement, next: &Settlement| {
        sum += bytes(next);
        let fits = sum <= STATEMENT_BYTES_MAX;
        if !fits {
            sum = bytes(next);
        }
        fits
    };
    settlements.chunk_by(fits).collect()
}

/// Stores the results of jobs that succeeded, each until its time.
pub(super) async fn store(
    session: &Session<'_>,
    results: &[(JobId, &GivenResult, Timestamp)],
) -> Result<(), VerbError> {
    if results.is_empty() {
        return Ok(());
    }
    let columns = Results::of(results.iter().map(|(job, result, _)| (*job, *result)));
    let expires: Vec<i64> = results.iter().map(|(.., expires)| expires.as_millis()).collect();
    let params: [Param<'_>; 5] =
        [&columns.jobs, &expires, &columns.content_types, &columns.dropped, &columns.bodies];
    session.execute(&INSERT_RESULTS, &params).await.map(drop)
}

pub(in super::super) async fn result(
    session: &Session<'_>,
    job: JobId,
) -> Result<Option<StoredResult>, VerbError> {
    let rows = session.query(&RESULT, &[&uuid(job)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (content_type, dropped): (Option<&str>, Option<&str>) = (row.try_get(0)?, row.try_get(1)?);
    // The job may be pruned before its result.
    let is_kept: bool = row.try_get(3)?;
    Ok(Some(match (content_type, dropped) {
        (Some(content_type), _) if is_kept => {
            let content_type =
                ContentType::parse(content_type).map_err(|_| unreadable("a content type"))?;
            let body: Option<Vec<u8>> = row.try_get(2)?;
            StoredResult::Kept(JobResult { content_type, body: body.unwrap_or_default() })
        }
        (None, Some(why)) if is_kept => StoredResult::Dropped(DropReason::new(why)),
        _ => StoredResult::Pruned,
    }))
}

/// Deletes results whose retention has ended, and later forgets them.
pub(super) async fn prune(session: &Session<'_>, limit: i64) -> Result<u64, VerbError> {
    let remembered = millis(Limits::RESULTS_REMEMBERED);
    let row = session.one(&PRUNE_RESULTS, &[&session.offset(), &limit, &remembered]).await?;
    Ok(unsigned(row.try_get(0)?))
}

pub(in super::super) async fn ended(
    session: &Session<'_>,
    jobs: &[JobId],
) -> Result<Vec<JobId>, VerbError> {
    let ids: Vec<Uuid> = jobs.iter().map(|job| uuid(*job)).collect();
    let rows = session.query(&ENDED, &[&ids]).await?;
    rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
}

/// Reads the record of the attempt that succeeded.
pub(super) async fn succeeded(
    session: &Session<'_>,
    job: JobId,
) -> Result<Option<AttemptRecord>, VerbError> {
    let rows = session.query(&ATTEMPT_SUCCEEDED, &[&uuid(job)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(AttemptRecord {
        attempt: small(row.try_get(0)?),
        fence: fence(row.try_get(1)?),
        holder: holder_id(row.try_get(2)?),
        started: instant(row.try_get(3)?),
        duration: duration(row.try_get(4)?),
        ended: AttemptEnd::Succeeded(row.try_get::<_, Option<&str>>(5)?.and_then(SuccessCode::new)),
        decision: Decision::Succeed.as_str().to_owned(),
        delay: None,
        dropped: 0,
    }))
}

/// The record of an attempt that succeeded, which is stored with its job.
pub(super) struct Ran {
    by: Uuid,
    started_ms: i64,
    duration_ms: i64,
    code: Option<String>,
}

impl Ran {
    /// Returns the record, unless the attempt has one in the history of its job.
    pub(super) fn of(settled: &Settlement, holder: HolderId, now: Timestamp) -> Option<Ran> {
        settled.is_plain_success().then(|| Ran {
            by: holder_uuid(holder),
            started_ms: now.as_millis().saturating_sub(millis(settled.ran.started_ago)),
            duration_ms: millis(settled.ran.duration),
            code: settled.code.as_ref().map(|code| code.as_str().to_owned()),
        })
    }
}

/// Records of attempts as one array per column.
pub(super) struct Rans<'r> {
    by: Vec<Option<Uuid>>,
    started_ms: Vec<Option<i64>>,
    duration_ms: Vec<Option<i64>>,
    codes: Vec<Option<&'r str>>,
}

impl<'r> Rans<'r> {
    pub(super) fn of(rans: impl Iterator<Item = Option<&'r Ran>> + Clone) -> Rans<'r> {
        Rans {
            by: rans.clone().map(|ran| ran.map(|ran| ran.by)).collect(),
            started_ms: rans.clone().map(|ran| ran.map(|ran| ran.started_ms)).collect(),
            duration_ms: rans.clone().map(|ran| ran.map(|ran| ran.duration_ms)).collect(),
            codes: rans.map(|ran| ran.and_then(|ran| ran.code.as_deref())).collect(),
        }
    }

    pub(super) fn params(&self) -> [Param<'_>; 4] {
        [&self.by, &self.started_ms, &self.duration_ms, &self.codes]
    }
}
