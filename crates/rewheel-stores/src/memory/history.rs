//! Keeps the counts per kind and minute.

use super::MemoryStore;
use async_trait::async_trait;
use rewheel_core::Timestamp;
use rewheel_core::store::{
    HistoryFold, HistoryPage, HistoryRow, HistoryScan, HistoryStore, StoreResult,
};

#[async_trait]
impl HistoryStore for MemoryStore {
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp> {
        self.run(|world, now| {
            for row in rows.iter().filter(|row| row.is_accepted(now)) {
                world.history.insert(row.position(), row.clone());
            }
            Ok(now)
        })
    }

    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage> {
        self.run(|world, now| {
            let (from, until) = scan.range(now);
            let rows = world.history.values().filter(|row| {
                row.start >= from
                    && row.start < until
                    && scan.after.is_none_or(|after| row.position() > after)
            });
            Ok(HistoryPage { now, rows: rows.take(scan.limit).cloned().collect() })
        })
    }

    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool> {
        self.run(|world, _| {
            let is_inside = |row: &HistoryRow| row.start >= fold.from && row.start < fold.until;
            let found = world.history.values().filter(|row| is_inside(row)).count();
            if fold.rows.is_some_and(|rows| rows != found) {
                return Ok(false);
            }
            world.history.retain(|_, row| !is_inside(row));
            let into = fold.into.iter().map(|row| (row.position(), row.clone()));
            world.history.extend(into);
            Ok(true)
        })
    }
}
