//! Keeps the counts per kind and minute.

use super::super::error::VerbError;
use super::super::row::{bytes, count, get, id16, instant};
use super::super::transaction::Transaction;
use super::super::{MysqlStore, read, write};
use async_trait::async_trait;
use rewheel_core::store::{
    HistoryFold, HistoryPage, HistoryRow, HistoryScan, HistoryStore, StoreResult,
};
use rewheel_core::{HolderId, Timestamp};

#[async_trait]
impl HistoryStore for MysqlStore {
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp> {
        write!(self, tx => report(tx, rows))
    }

    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage> {
        read!(self, tx => history(tx, scan))
    }

    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool> {
        write!(self, tx => replace(tx, fold))
    }
}

async fn report(tx: &mut Transaction<'_>, rows: &[HistoryRow]) -> Result<Timestamp, VerbError> {
    let now = tx.now;
    // Almost always one row: the current minute.
    for row in rows.iter().filter(|row| row.is_accepted(now)) {
        put(tx, row).await?;
    }
    Ok(now)
}

async fn put(tx: &mut Transaction<'_>, row: &HistoryRow) -> Result<(), VerbError> {
    let data = row.data.clone().into();
    let values = vec![row.start.as_millis().into(), id16(row.reporter.to_bytes()), data];
    tx.execute(include_str!("../sql/report_history.sql"), values).await.map(drop)
}

async fn history(tx: &mut Transaction<'_>, scan: &HistoryScan) -> Result<HistoryPage, VerbError> {
    let (from, until) = scan.range(tx.now);
    // Before every row, if there is no position.
    let after = scan.after.unwrap_or((Timestamp::from_millis(i64::MIN), HistoryRow::MERGED));
    let start = after.0.as_millis();
    let values = vec![
        from.as_millis().into(),
        until.as_millis().into(),
        start.into(),
        start.into(),
        id16(after.1.to_bytes()),
        count(scan.limit as u64),
    ];
    let mut rows = Vec::new();
    for row in tx.rows(include_str!("../sql/history.sql"), values).await? {
        let reporter = HolderId::from_bytes(bytes(&row, 1)?);
        rows.push(HistoryRow { start: instant(get(&row, 0)?), reporter, data: get(&row, 2)? });
    }
    Ok(HistoryPage { now: tx.now, rows })
}

async fn replace(tx: &mut Transaction<'_>, fold: &HistoryFold) -> Result<bool, VerbError> {
    let range = || vec![fold.from.as_millis().into(), fold.until.as_millis().into()];
    if let Some(rows) = fold.rows {
        let found = tx.rows(include_str!("../sql/lock_history.sql"), range()).await?;
        if found.len() != rows {
            return Ok(false);
        }
    }
    tx.execute(include_str!("../sql/fold_history.sql"), range()).await?;
    if let Some(row) = &fold.into {
        put(tx, row).await?;
    }
    Ok(true)
}
