//! Tests the counts per kind and minute, which stores keep as bytes.

use crate::subject::{Subject, seconds};
use crate::threads::at_once;
use rewheel_core::store::{HistoryFold, HistoryRow, HistoryScan};
use rewheel_core::{HistorySlot, HolderId, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Every row, however old.
const ALL: HistoryScan = HistoryScan {
    since: Duration::from_secs(7 * 24 * 3_600),
    older_than: Duration::ZERO,
    after: None,
    limit: 10_000,
};

fn row(start: Timestamp, reporter: u16, data: &[u8]) -> HistoryRow {
    let mut id = [7; 16];
    id[..2].copy_from_slice(&reporter.to_be_bytes());
    HistoryRow { start, reporter: HolderId::from_bytes(id), data: data.to_vec() }
}

async fn minute(subject: &Subject) -> Timestamp {
    HistorySlot::start_of(subject.store.now().await.unwrap())
}

async fn report(subject: &Subject, rows: &[HistoryRow]) -> Timestamp {
    subject.store.report_history(rows).await.unwrap()
}

async fn all(subject: &Subject) -> Vec<HistoryRow> {
    subject.store.history(&ALL).await.unwrap().rows
}

/// Reports minutes in their time, and lets a day pass after each but the last.
async fn report_days(subject: &Subject, days: u32) -> Vec<HistoryRow> {
    let mut rows = Vec::new();
    for day in 0..days {
        if day > 0 {
            subject.clock.advance(seconds(24 * 3_600));
        }
        let known = row(minute(subject).await, 1, &[day as u8]);
        report(subject, std::slice::from_ref(&known)).await;
        rows.push(known);
    }
    rows
}

/// The store has no history before the first report; a report without rows only answers the time.
pub async fn begins_empty(subject: &Subject) {
    let before = subject.store.now().await.unwrap();
    assert!(report(subject, &[]).await >= before);
    let page = subject.store.history(&ALL).await.unwrap();
    assert_eq!(page.rows, []);
    assert!(page.now >= before);
}

/// A report replaces the report of the same node and minute: a repeated call counts nothing twice.
pub async fn a_report_replaces_the_previous_one(subject: &Subject) {
    let start = minute(subject).await;
    let every_byte: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    report(subject, &[row(start, 1, b"first"), row(start, 2, b"other")]).await;
    for _ in 0..2 {
        report(subject, &[row(start, 1, &every_byte)]).await;
    }
    report(subject, &[row(start, 2, b"")]).await;
    assert_eq!(all(subject).await, [row(start, 1, &every_byte), row(start, 2, b"")]);
}

/// Rows come in the order of time and node, page by page, without gaps or repetitions.
pub async fn rows_are_read_page_by_page(subject: &Subject) {
    let start = minute(subject).await;
    let before = start.minus(HistorySlot::MINUTE);
    // More nodes in one minute than a script of Redis reads at once.
    let mut rows: Vec<HistoryRow> =
        (0..1_203_u16).map(|node| row(start, node, &node.to_be_bytes())).collect();
    rows.extend((0..5).map(|node| row(before, node, b"x")));
    report(subject, &rows).await;
    rows.sort_by_key(HistoryRow::position);
    assert_eq!(all(subject).await, rows);
    let (mut scan, mut read) = (HistoryScan { limit: 301, ..ALL }, Vec::new());
    loop {
        let page = subject.store.history(&scan).await.unwrap().rows;
        scan.after = page.last().map(HistoryRow::position);
        let is_last = page.len() < scan.limit;
        read.extend(page);
        if is_last {
            break;
        }
    }
    assert_eq!(read, rows);
    let none = HistoryScan { limit: 0, ..ALL };
    assert_eq!(subject.store.history(&none).await.unwrap().rows, []);
}

/// Rows are selected by the age of their start, by the store's clock.
pub async fn rows_are_selected_by_age(subject: &Subject) {
    let rows = report_days(subject, 3).await;
    let day = 24 * 3_600;
    let read = async |since, older_than| {
        let scan = HistoryScan { since: seconds(since), older_than: seconds(older_than), ..ALL };
        subject.store.history(&scan).await.unwrap().rows
    };
    assert_eq!(read(3 * day, 0).await, rows);
    assert_eq!(read(day / 2, 0).await, rows[2..]);
    assert_eq!(read(day + 3_600, day / 2).await, rows[1..2]);
    assert_eq!(read(3 * day, day / 2).await, rows[..2]);
    let forever = HistoryScan { since: Duration::MAX, ..ALL };
    assert_eq!(subject.store.history(&forever).await.unwrap().rows, rows);
}

/// A minute that nodes may no longer report, or not yet, is left out of a report; the others are stored.
pub async fn minutes_of_another_time_are_ignored(subject: &Subject) {
    let start = minute(subject).await;
    let late = start.minus(HistoryRow::LATE_MAX + HistorySlot::MINUTE);
    let early = start.plus(HistoryRow::EARLY_MAX * 3);
    report(subject, &[row(late, 1, b"late"), row(start, 1, b"now"), row(early, 1, b"early")]).await;
    assert_eq!(all(subject).await, [row(start, 1, b"now")]);
    subject.clock.advance(HistoryRow::LATE_MAX + HistorySlot::MINUTE);
    report(subject, &[row(start, 1, b"changed"), row(start, 2, b"added")]).await;
    assert_eq!(all(subject).await, [row(start, 1, b"now")], "old rows do not change");
}

/// A merge replaces the rows of its range, and leaves the others.
pub async fn a_fold_replaces_its_rows(subject: &Subject) {
    let start = minute(subject).await;
    let (before, after) = (start.minus(HistorySlot::MINUTE), start.plus(HistorySlot::MINUTE));
    let other = row(before, 1, b"before");
    report(subject, &[row(start, 1, b"a"), row(start, 2, b"b"), other.clone()]).await;
    let into = HistoryRow { start, reporter: HistoryRow::MERGED, data: b"ab".to_vec() };
    let fold = HistoryFold { from: start, until: after, rows: Some(2), into: Some(into.clone()) };
    assert!(subject.store.fold_history(&fold).await.unwrap());
    let read = all(subject).await;
    assert_eq!(read, [other, into.clone()]);
    let repeated = subject.store.fold_history(&fold).await.unwrap();
    assert!(!repeated, "a merge that is repeated finds its own row");
    assert_eq!(all(subject).await, read);
    let twice = HistoryFold {
        from: before,
        rows: Some(2),
        into: Some(HistoryRow { start: before, ..into }),
        ..fold
    };
    assert!(subject.store.fold_history(&twice).await.unwrap());
    assert_eq!(all(subject).await, twice.into.into_iter().collect::<Vec<_>>());
}

/// A merge that expects other rows changes nothing.
pub async fn a_fold_of_other_rows_is_refused(subject: &Subject) {
    let start = minute(subject).await;
    let rows = [row(start, 1, b"a"), row(start, 2, b"b")];
    report(subject, &rows).await;
    let into = HistoryRow { start, reporter: HistoryRow::MERGED, data: Vec::new() };
    for expected in [0, 1, 3] {
        let fold = HistoryFold {
            from: start,
            until: start.plus(HistorySlot::MINUTE),
            rows: Some(expected),
            into: Some(into.clone()),
        };
        assert!(!subject.store.fold_history(&fold).await.unwrap(), "{expected}");
        assert_eq!(all(subject).await, rows);
    }
}

/// Of nodes that merge the same rows at the same time, one does it.
pub async fn racing_folds_merge_once(subject: &Subject) {
    let start = minute(subject).await;
    report(subject, &(0..20).map(|node| row(start, node, b"x")).collect::<Vec<_>>()).await;
    let merged = at_once(8, |_| {
        let store = Arc::clone(&subject.store);
        let into = HistoryRow { start, reporter: HistoryRow::MERGED, data: b"sum".to_vec() };
        let until = start.plus(HistorySlot::MINUTE);
        let fold = HistoryFold { from: start, until, rows: Some(20), into: Some(into) };
        async move { store.fold_history(&fold).await.unwrap() }
    })
    .await;
    assert_eq!(merged.iter().filter(|merged| **merged).count(), 1, "{merged:?}");
    let rows = all(subject).await;
    assert_eq!((rows.len(), rows[0].data.as_slice()), (1, b"sum".as_slice()));
}

/// What is older than the history is kept is deleted, and nothing else.
pub async fn expired_rows_are_deleted(subject: &Subject) {
    let rows = report_days(subject, 3).await;
    let now = subject.store.now().await.unwrap();
    assert!(subject.store.fold_history(&HistoryFold::expired(now)).await.unwrap());
    assert_eq!(all(subject).await, rows[1..], "a day old: still kept");
    subject.clock.advance(seconds(600));
    let now = subject.store.now().await.unwrap();
    assert!(subject.store.fold_history(&HistoryFold::expired(now)).await.unwrap());
    assert_eq!(all(subject).await, rows[2..]);
}
