//! Keeps the counts per kind and minute.

use super::super::SqliteStore;
use super::super::error::VerbError;
use super::super::row::{instant, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use async_trait::async_trait;
use rewheel_core::store::{
    HistoryFold, HistoryPage, HistoryRow, HistoryScan, HistoryStore, StoreResult,
};
use rewheel_core::{HolderId, Timestamp};

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp> {
        let rows = rows.to_vec();
        self.write(rows.len(), move |tx| {
            rows.iter().filter(|row| row.is_accepted(tx.now)).try_for_each(|row| put(tx, row))?;
            Ok(tx.now)
        })
        .await
    }

    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage> {
        let scan = *scan;
        self.read(move |tx| history(tx, &scan)).await
    }

    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool> {
        let fold = fold.clone();
        self.write(1, move |tx| replace(tx, &fold)).await
    }
}

fn put(tx: &Transaction<'_, '_>, row: &HistoryRow) -> Result<(), VerbError> {
    let values = (row.start.as_millis(), row.reporter.to_bytes(), &row.data);
    tx.execute(include_str!("../sql/report_history.sql"), values).map(drop)
}

fn history(tx: &Transaction<'_, '_>, scan: &HistoryScan) -> Result<HistoryPage, VerbError> {
    let (from, until) = scan.range(tx.now);
    let (start, reporter) = match scan.after {
        Some((start, reporter)) => (start.as_millis(), reporter.to_bytes().to_vec()),
        // Before every row.
        None => (i64::MIN, Vec::new()),
    };
    let statement = tx.sql(include_str!("../sql/history.sql"))?;
    let mut statement = statement.get();
    let limit = count(scan.limit as u64);
    let mut found =
        statement.query((from.as_millis(), until.as_millis(), start, reporter, limit))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let reporter = HolderId::from_bytes(row.get(1)?);
        rows.push(HistoryRow { start: instant(row.get(0)?), reporter, data: row.get(2)? });
    }
    Ok(HistoryPage { now: tx.now, rows })
}

fn replace(tx: &Transaction<'_, '_>, fold: &HistoryFold) -> Result<bool, VerbError> {
    let range = (fold.from.as_millis(), fold.until.as_millis());
    if let Some(rows) = fold.rows {
        let found: Option<i64> =
            tx.find(include_str!("../sql/history_rows.sql"), range, |row| row.get(0))?;
        if found.map(unsigned) != Some(rows as u64) {
            return Ok(false);
        }
    }
    tx.execute(include_str!("../sql/fold_history.sql"), range)?;
    fold.into.iter().try_for_each(|row| put(tx, row))?;
    Ok(true)
}
