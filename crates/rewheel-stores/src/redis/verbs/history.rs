//! Keeps the counts per kind and minute.

use super::super::RedisStore;
use super::super::error::unreadable;
use super::super::pack::{Args, count, time};
use super::super::script::{FOLD_HISTORY, HISTORY, REPORT_HISTORY};
use async_trait::async_trait;
use rewheel_core::store::{
    HistoryFold, HistoryPage, HistoryPosition, HistoryRow, HistoryScan, HistoryStore, StoreResult,
};
use rewheel_core::{HolderId, Timestamp};

#[async_trait]
impl HistoryStore for RedisStore {
    async fn report_history(&self, rows: &[HistoryRow]) -> StoreResult<Timestamp> {
        let args = Args::default()
            .millis(HistoryRow::LATE_MAX)
            .millis(HistoryRow::EARLY_MAX)
            .list(Args::lists(rows.iter().map(packed)));
        self.run(&REPORT_HISTORY, args).await?.time()
    }

    async fn history(&self, scan: &HistoryScan) -> StoreResult<HistoryPage> {
        let after = scan.after.map(name);
        let args = Args::default()
            .millis(scan.since)
            .millis(scan.older_than)
            .maybe_number(scan.after.map(|(start, _)| time(start)))
            .maybe_bytes(after.as_deref())
            .number(count(scan.limit));
        let [now, names, data] = self.read(&HISTORY, args).await?.parts()?;
        let mut rows = Vec::new();
        for (name, data) in names.list()?.into_iter().zip(data.list()?) {
            let (start, reporter) = read_name(&name.must()?).ok_or_else(|| unreadable("a row"))?;
            // A row without data was cut off by an eviction, which Rewheel does not support: it is not reported.
            let Some(data) = data.bytes()? else { continue };
            rows.push(HistoryRow { start, reporter, data });
        }
        Ok(HistoryPage { now: now.time()?, rows })
    }

    async fn fold_history(&self, fold: &HistoryFold) -> StoreResult<bool> {
        let args = Args::default()
            .number(time(fold.from))
            .number(time(fold.until))
            .maybe_number(fold.rows.map(count))
            .maybe_list(fold.into.as_ref().map(packed));
        Ok(self.run(&FOLD_HISTORY, args).await?.count()? == 1)
    }
}

fn packed(row: &HistoryRow) -> Args {
    Args::default().number(time(row.start)).bytes(&name(row.position())).bytes(&row.data)
}

/// Returns the name of a row. Names are in the order of positions, for all times after 1970.
fn name((start, reporter): HistoryPosition) -> Vec<u8> {
    [start.as_millis().to_be_bytes().as_slice(), &reporter.to_bytes()].concat()
}

fn read_name(name: &[u8]) -> Option<HistoryPosition> {
    let (start, reporter) = name.split_at_checked(8)?;
    let start = i64::from_be_bytes(start.try_into().ok()?);
    Some((Timestamp::from_millis(start), HolderId::from_bytes(reporter.try_into().ok()?)))
}
