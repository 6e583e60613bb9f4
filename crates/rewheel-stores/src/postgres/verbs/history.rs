//! Keeps the counts per kind and minute.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{count, holder_id, holder_uuid, instant, millis};
use super::super::session::{Param, Session};
use super::super::statements::{FOLD_HISTORY, HISTORY, PUT_HISTORY, REPORT_HISTORY};
use async_trait::async_trait;
use rewheel_core::Timestamp;
use rewheel_core::store::{
    HistoryFold, HistoryPage, HistoryRow, HistoryScan, HistoryStore, StoreResult,
};
use uuid::Uuid;

#[async_trait]
impl HistoryStore for PostgresStore {
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp> {
        let session = self.write().await?;
        let reported = report(&session, rows).await;
        session.end(reported).await
    }

    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage> {
        let session = self.read().await?;
        let page = history(&session, scan).await;
        session.end(page).await
    }

    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool> {
        let session = self.transaction().await?;
        match replace(&session, fold).await {
            Ok(false) => session.undo(false).await,
            replaced => session.end(replaced).await,
        }
    }
}

async fn report(session: &Session<'_>, rows: &[HistoryRow]) -> Result<Timestamp, VerbError> {
    let starts: Vec<i64> = rows.iter().map(|row| row.start.as_millis()).collect();
    let reporters: Vec<Uuid> = rows.iter().map(|row| holder_uuid(row.reporter)).collect();
    let data: Vec<&[u8]> = rows.iter().map(|row| row.data.as_slice()).collect();
    let params: [Param<'_>; 6] = [
        &session.offset(),
        &starts,
        &reporters,
        &data,
        &millis(HistoryRow::LATE_MAX),
        &millis(HistoryRow::EARLY_MAX),
    ];
    Ok(instant(session.one(&REPORT_HISTORY, &params).await?.try_get(0)?))
}

async fn history(session: &Session<'_>, scan: &HistoryScan) -> Result<HistoryPage, VerbError> {
    let now = session.now().await?;
    let (from, until) = scan.range(now);
    // Before every row, if there is no position.
    let after = scan.after.unwrap_or((Timestamp::from_millis(i64::MIN), HistoryRow::MERGED));
    let params: [Param<'_>; 5] = [
        &from.as_millis(),
        &until.as_millis(),
        &after.0.as_millis(),
        &holder_uuid(after.1),
        &count(scan.limit as u64),
    ];
    let mut rows = Vec::new();
    for row in session.query(&HISTORY, &params).await? {
        let reporter = holder_id(row.try_get(1)?);
        rows.push(HistoryRow { start: instant(row.try_get(0)?), reporter, data: row.try_get(2)? });
    }
    Ok(HistoryPage { now, rows })
}

async fn replace(session: &Session<'_>, fold: &HistoryFold) -> Result<bool, VerbError> {
    let range: [Param<'_>; 2] = [&fold.from.as_millis(), &fold.until.as_millis()];
    // Of two nodes that fold the same rows, the second waits here, and then finds none.
    let deleted = session.execute(&FOLD_HISTORY, &range).await?;
    if fold.rows.is_some_and(|rows| rows as u64 != deleted) {
        return Ok(false);
    }
    if let Some(row) = &fold.into {
        let params: [Param<'_>; 3] =
            [&row.start.as_millis(), &holder_uuid(row.reporter), &row.data];
        session.execute(&PUT_HISTORY, &params).await?;
    }
    Ok(true)
}
