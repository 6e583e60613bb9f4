//! Results of jobs that succeeded, and the records of attempts.

use super::super::error::{VerbError, unreadable};
use super::super::row::{bytes, count, duration, failure, get, id16, instant, unsigned};
use super::super::statement::parts;
use super::super::transaction::Transaction;
use super::prune::hex_list;
use mysql_async::{Row, Value};
use rewheel_core::store::{AttemptEnd, AttemptRecord};
use rewheel_core::{
    ContentType, Decision, DropReason, Fence, GivenResult, HolderId, JobId, JobResult, Limits,
    StoredResult, SuccessCode, Timestamp,
};
use std::collections::HashSet;

/// Results that one statement stores.
const ROWS_MAX: usize = 512;

/// Bytes of results that one statement stores: a fraction of the smallest `max_allowed_packet` that servers have by default.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Stores the results of jobs that succeeded.
pub(super) async fn store(
    tx: &mut Transaction<'_>,
    expires: Timestamp,
    results: &[(JobId, GivenResult)],
) -> Result<(), VerbError> {
    let bytes = |(_, result): &(JobId, GivenResult)| match result {
        GivenResult::Kept(result) => result.body.len(),
        GivenResult::Dropped(_) => 0,
    };
    let sizes: Vec<usize> = results.iter().map(bytes).collect();
    let mut left = results.iter();
    for size in parts(&sizes, ROWS_MAX, BYTES_MAX) {
        let rows = left.by_ref().take(size);
        let values = rows.flat_map(|(job, result)| values(*job, expires, result)).collect();
        tx.insert_rows(include_str!("../sql/insert_result.sql"), size, values).await?;
    }
    Ok(())
}

fn values(job: JobId, expires: Timestamp, result: &GivenResult) -> [Value; 5] {
    let (content_type, dropped, body) = match result {
        GivenResult::Kept(result) => {
            (Some(result.content_type.as_str()), None, Some(result.body.as_slice()))
        }
        GivenResult::Dropped(why) => (None, Some(why.as_str()), None),
    };
    [
        id16(job.to_bytes()),
        expires.as_millis().into(),
        content_type.into(),
        dropped.into(),
        body.into(),
    ]
}

pub(in super::super) async fn result(
    tx: &mut Transaction<'_>,
    job: JobId,
) -> Result<Option<StoredResult>, VerbError> {
    let row = tx.find(include_str!("../sql/result.sql"), vec![id16(job.to_bytes())]).await?;
    let Some(row) = row else { return Ok(None) };
    let (content_type, dropped): (Option<String>, Option<String>) = (get(&row, 0)?, get(&row, 1)?);
    // The job may be pruned before its result.
    let is_kept: bool = get(&row, 3)?;
    Ok(Some(match (content_type, dropped) {
        (Some(content_type), _) if is_kept => {
            let content_type =
                ContentType::parse(&content_type).map_err(|_| unreadable("a content type"))?;
            let body: Option<Vec<u8>> = get(&row, 2)?;
            StoredResult::Kept(JobResult { content_type, body: body.unwrap_or_default() })
        }
        (None, Some(why)) if is_kept => StoredResult::Dropped(DropReason::new(&why)),
        _ => StoredResult::Pruned,
    }))
}

/// Deletes results whose retention has ended, and remembers for a while that they existed. Later forgets them.
pub(super) async fn prune(tx: &mut Transaction<'_>, limit: usize) -> Result<u64, VerbError> {
    let values = vec![tx.now.as_millis().into(), count(limit as u64)];
    let rows = tx.rows(include_str!("../sql/prune_results.sql"), values).await?;
    let (mut remembered, mut kept): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
    for row in rows {
        if get(&row, 1)? { remembered.push(row) } else { kept.push(row) }
    }
    if !remembered.is_empty() {
        let jobs = hex_list(&remembered)?;
        tx.execute(include_str!("../sql/forget_results.sql"), vec![jobs.into()]).await?;
    }
    if !kept.is_empty() {
        let until = tx.now.plus(Limits::RESULTS_REMEMBERED).as_millis();
        let values = vec![hex_list(&kept)?.into(), until.into()];
        tx.execute(include_str!("../sql/delete_results.sql"), values).await?;
    }
    Ok((remembered.len() + kept.len()) as u64)
}

pub(in super::super) async fn ended(
    tx: &mut Transaction<'_>,
    jobs: &[JobId],
) -> Result<Vec<JobId>, VerbError> {
    let ids: Vec<_> = jobs.iter().map(|job| id16(job.to_bytes())).collect();
    let found = tx.run_list(include_str!("../sql/still_live.sql"), &[], &ids, &[]).await?.rows;
    let live = found.iter().map(|row| bytes(row, 0).map(JobId::from_bytes));
    let live = live.collect::<Result<HashSet<JobId>, _>>()?;
    Ok(jobs.iter().copied().filter(|job| !live.contains(job)).collect())
}

pub(in super::super) async fn attempts(
    tx: &mut Transaction<'_>,
    job: JobId,
) -> Result<Vec<AttemptRecord>, VerbError> {
    let values = vec![id16(job.to_bytes()), count(Limits::ATTEMPTS_LISTED_MAX as u64)];
    let rows = tx.rows(include_str!("../sql/attempts.sql"), values).await?;
    let mut attempts = rows.iter().rev().map(read_failed).collect::<Result<Vec<_>, _>>()?;
    attempts.extend(succeeded(tx, job).await?);
    Ok(attempts)
}

fn read_failed(row: &Row) -> Result<AttemptRecord, VerbError> {
    Ok(AttemptRecord {
        attempt: get(row, 0)?,
        fence: Fence::new(unsigned(get(row, 1)?)),
        holder: HolderId::from_bytes(bytes(row, 2)?),
        started: instant(get(row, 3)?),
        duration: duration(get(row, 4)?),
        ended: failure(get(row, 5)?, get(row, 6)?, get(row, 7)?)?
            .map(AttemptEnd::Failed)
            .ok_or_else(|| unreadable("an attempt"))?,
        decision: get(row, 8)?,
        delay: get::<Option<i64>>(row, 9)?.map(duration),
        dropped: unsigned(get(row, 10)?),
    })
}

/// Reads the record of the attempt that succeeded.
async fn succeeded(
    tx: &mut Transaction<'_>,
    job: JobId,
) -> Result<Option<AttemptRecord>, VerbError> {
    let sql = include_str!("../sql/attempt_succeeded.sql");
    let Some(row) = tx.find(sql, vec![id16(job.to_bytes())]).await? else { return Ok(None) };
    let code: Option<String> = get(&row, 5)?;
    Ok(Some(AttemptRecord {
        attempt: get(&row, 0)?,
        fence: Fence::new(unsigned(get(&row, 1)?)),
        holder: HolderId::from_bytes(bytes(&row, 2)?),
        started: instant(get(&row, 3)?),
        duration: duration(get(&row, 4)?),
        ended: AttemptEnd::Succeeded(code.as_deref().and_then(SuccessCode::new)),
        decision: Decision::Succeed.as_str().to_owned(),
        delay: None,
        dropped: 0,
    }))
}
