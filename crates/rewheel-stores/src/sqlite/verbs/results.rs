//! Results of jobs that succeeded, and the record of the attempt.

use super::super::error::{VerbError, unreadable};
use super::super::row::{duration, instant, millis, unsigned};
use super::super::transaction::Transaction;
use rewheel_core::store::{AttemptEnd, AttemptRecord};
use rewheel_core::{
    ContentType, Decision, DropReason, Fence, GivenResult, HolderId, JobId, JobResult, Limits,
    StoredResult, SuccessCode, Timestamp,
};
use rusqlite::types::Value;
use std::rc::Rc;

/// Stores the result of a job that succeeded.
pub(super) fn store(
    tx: &Transaction<'_, '_>,
    job: JobId,
    expires: Timestamp,
    result: &GivenResult,
) -> Result<(), VerbError> {
    let (content_type, dropped, body) = match result {
        GivenResult::Kept(result) => {
            (Some(result.content_type.as_str()), None, Some(result.body.as_slice()))
        }
        GivenResult::Dropped(why) => (None, Some(why.as_str()), None),
    };
    let values = (job.to_bytes(), expires.as_millis(), content_type, dropped, body);
    tx.execute(include_str!("../sql/insert_result.sql"), values)?;
    Ok(())
}

pub(in super::super) fn result(
    tx: &Transaction<'_, '_>,
    job: JobId,
) -> Result<Option<StoredResult>, VerbError> {
    type Row = (Option<String>, Option<String>, Option<Vec<u8>>, bool);
    let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Row> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    };
    let found = tx.find(include_str!("../sql/result.sql"), [job.to_bytes()], read)?;
    let Some((content_type, dropped, body, is_kept)) = found else { return Ok(None) };
    // The job may be pruned before its result.
    Ok(Some(match (content_type, dropped) {
        (Some(content_type), _) if is_kept => {
            let content_type =
                ContentType::parse(&content_type).map_err(|_| unreadable("a content type"))?;
            StoredResult::Kept(JobResult { content_type, body: body.unwrap_or_default() })
        }
        (None, Some(why)) if is_kept => StoredResult::Dropped(DropReason::new(&why)),
        _ => StoredResult::Pruned,
    }))
}

/// Deletes results whose retention has ended, and later forgets them.
pub(super) fn prune(tx: &Transaction<'_, '_>, limit: i64) -> Result<u64, VerbError> {
    let now = tx.now.as_millis();
    let forgotten = tx.execute(include_str!("../sql/forget_results.sql"), (now, limit))?;
    let until = tx.now.plus(Limits::RESULTS_REMEMBERED).as_millis();
    let deleted = tx.execute(include_str!("../sql/prune_results.sql"), (now, limit, until))?;
    Ok(forgotten.max(deleted) as u64)
}

pub(in super::super) fn ended(
    tx: &Transaction<'_, '_>,
    jobs: &[JobId],
) -> Result<Vec<JobId>, VerbError> {
    let ids: Vec<Value> = jobs.iter().map(|job| Value::Blob(job.to_bytes().to_vec())).collect();
    let statement = tx.sql(include_str!("../sql/ended.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([Rc::new(ids)])?;
    let mut ended = Vec::new();
    while let Some(row) = rows.next()? {
        ended.push(JobId::from_bytes(row.get(0)?));
    }
    Ok(ended)
}

/// Reads the record of the attempt that succeeded.
pub(super) fn succeeded(
    tx: &Transaction<'_, '_>,
    job: JobId,
) -> Result<Option<AttemptRecord>, VerbError> {
    tx.find(include_str!("../sql/attempt_succeeded.sql"), [job.to_bytes()], |row| {
        let code: Option<String> = row.get(5)?;
        Ok(AttemptRecord {
            attempt: row.get(0)?,
            fence: Fence::new(unsigned(row.get(1)?)),
            holder: HolderId::from_bytes(row.get(2)?),
            started: instant(row.get(3)?),
            duration: duration(row.get(4)?),
            ended: AttemptEnd::Succeeded(code.as_deref().and_then(SuccessCode::new)),
            decision: Decision::Succeed.as_str().to_owned(),
            delay: None,
            dropped: 0,
        })
    })
}

/// Appends a duration in milliseconds with 13 digits: 300 years, longer than any attempt.
pub(super) fn write_millis(text: &mut Vec<u8>, duration: std::time::Duration) {
    let mut number = unsigned(millis(duration)).min(9_999_999_999_999);
    let at = text.len();
    text.extend_from_slice(b"0000000000000");
    for digit in text[at..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}
