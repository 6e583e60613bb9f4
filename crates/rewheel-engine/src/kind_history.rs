//! Reports what this node counts per kind and minute to the store, merges old rows, and reads the history.
//!
//! The counters of the metrics are the source, so that an attempt costs nothing extra. Every [`REPORT_EVERY`] the loop adds what they have
//! grown by to the current minute, and writes the whole minute again: one statement for all kinds, which may be repeated.

use crate::engine::Engine;
use crate::meters::Meters;
use crate::shared::{Shared, lock};
use rewheel::{CancelToken, Moment};
use rewheel_core::store::{HistoryFold, HistoryPosition, HistoryRow, HistoryScan, StoreResult};
use rewheel_core::{HistorySlot, HistoryTimeline, HolderId, KindCounts, KindName, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a node reports. Idle nodes report once a minute: that they were there.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// How often a node merges old rows.
const FOLD_EVERY: Duration = Duration::from_secs(300);

/// How far back a node looks for rows to merge: several rounds, because any of them may fail.
const FOLD_WINDOW: Duration = FOLD_EVERY.saturating_mul(6);

/// How many rows to read at once: about a megabyte with some dozens of kinds.
const ROWS_AT_ONCE: usize = 500;

/// How long all requests of a node share the rows that one of them read.
const SHARED_FOR: Duration = Duration::from_secs(2);

/// What this node has counted. It outlives a restart of the loop.
#[derive(Debug)]
pub(crate) struct HistoryBook {
    counted: Mutex<Counted>,
    /// The rows that were read last. Held during the request to the store: concurrent requests share the result.
    read: tokio::sync::Mutex<Option<(Moment, Arc<ReadRows>)>>,
}

#[derive(Debug)]
struct Counted {
    /// Whose rows these are: a report replaces the row of the same reporter and minute.
    reporter: HolderId,
    /// What the counters showed at the last look.
    before: BTreeMap<Option<KindName>, KindCounts>,
    /// The current minute, and earlier ones that the store does not have yet.
    minutes: BTreeMap<Timestamp, Minute>,
}

#[derive(Debug)]
struct Minute {
    slot: HistorySlot,
    /// Whether the store has not confirmed it as it is.
    is_new: bool,
}

#[derive(Debug)]
struct ReadRows {
    now: Timestamp,
    rows: Vec<HistoryRow>,
}

impl HistoryBook {
    pub(crate) fn new(reporter: HolderId) -> HistoryBook {
        let (before, minutes) = (BTreeMap::new(), BTreeMap::new());
        let counted = Mutex::new(Counted { reporter, before, minutes });
        HistoryBook { counted, read: tokio::sync::Mutex::default() }
    }

    /// Adds what the counters have grown by to the current minute. Returns the rows that the store does not have.
    ///
    /// If the store's clock was set back, this node may have reported the current minute before: `anew` becomes the reporter, because a row
    /// of the old one would replace what is known of that minute.
    fn collect(
        &self,
        meters: &Meters,
        now: Timestamp,
        anew: impl FnOnce() -> HolderId,
    ) -> Vec<HistoryRow> {
        let start = HistorySlot::start_of(now);
        let mut counted = lock(&self.counted);
        let Counted { reporter, before, minutes } = &mut *counted;
        if minutes.last_key_value().is_some_and(|(latest, _)| *latest > start) {
            minutes.clear();
            *reporter = anew();
        }
        minutes.retain(|minute, _| now.since(*minute) < HistoryRow::LATE_MAX);
        let minute = minutes
            .entry(start)
            .or_insert_with(|| Minute { slot: HistorySlot::minute(), is_new: true });
        for (kind, meters) in meters.kinds_and_others() {
            // Jobs of the engine itself are no work that users know.
            if kind.as_ref().is_some_and(KindName::is_reserved) {
                continue;
            }
            let total = meters.totals();
            let grown = match before.get(&kind) {
                Some(before) => total.since(before),
                None => total.clone(),
            };
            if !grown.is_empty() {
                minute.is_new = true;
                minute.slot.of(kind.as_ref()).add_after(&grown);
            }
            before.insert(kind, total);
        }
        let unsent = minutes.iter().filter(|(_, minute)| minute.is_new);
        let reporter = *reporter;
        unsent
            .map(|(start, minute)| HistoryRow {
                start: *start,
                reporter,
                data: minute.slot.encode(),
            })
            .collect()
    }

    /// Notes that the store has these rows.
    fn confirm(&self, rows: &[HistoryRow]) {
        let minutes = &mut lock(&self.counted).minutes;
        for row in rows {
            if let Some(minute) = minutes.get_mut(&row.start) {
                minute.is_new = minute.slot.encode() != row.data;
            }
        }
        let current = minutes.last_key_value().map(|(start, _)| *start);
        minutes.retain(|start, minute| minute.is_new || Some(*start) == current);
    }
}

/// The loop that reports and merges.
pub(crate) async fn run(shared: Arc<Shared>, stop: CancelToken) {
    // Nodes that start together do not merge together.
    let first = shared.random.next() % FOLD_EVERY.as_millis() as u64;
    let mut next_fold = shared.clock.now().plus(Duration::from_millis(first));
    let mut window = HistorySlot::KEPT;
    while !stop.is_cancelled() {
        if !shared.is_lease_expired() {
            report(&shared).await;
            let now = shared.clock.now();
            if now >= next_fold {
                next_fold = now.plus(FOLD_EVERY);
                let folded = fold(&shared, window).await;
                // After a failure, look at everything again.
                window = if folded.is_ok() { FOLD_WINDOW } else { HistorySlot::KEPT };
                if let Err(error) = folded {
                    tracing::debug!(%error, "failed to merge old rows of the history: retrying");
                }
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = shared.clock.sleep(REPORT_EVERY) => {}
        }
    }
}

/// Reports what this node has counted. If the store fails, the next report has these counts, too, for up to ten minutes.
pub(crate) async fn report(shared: &Shared) {
    let (book, meters) = (&shared.reports.history, &shared.reports.meters);
    let Some(now) = meters.store_now(shared.clock.now()) else { return };
    let rows = book.collect(meters, now, || shared.new_holder_id());
    if rows.is_empty() {
        return;
    }
    match shared.store.report_history(&rows).await {
        Ok(now) => {
            meters.store_time(now, shared.clock.now());
            book.confirm(&rows);
        }
        Err(error) => tracing::debug!(%error, "failed to report the history: retrying"),
    }
}

/// Merges rows that no node changes any more, and deletes what is no longer kept. Nodes that do so at the same time are no problem: the
/// store refuses what another one has merged.
async fn fold(shared: &Shared, window: Duration) -> StoreResult<()> {
    for older_than in [HistoryFold::MERGE_AFTER, HistorySlot::MINUTES_KEPT] {
        let mut scan = HistoryScan {
            since: older_than.saturating_add(window),
            older_than,
            after: None,
            limit: ROWS_AT_ONCE,
        };
        let mut rows: Vec<HistoryRow> = Vec::new();
        loop {
            let page = shared.store.history(&scan).await?;
            let is_last = page.rows.len() < scan.limit;
            scan.after = page.rows.last().map(HistoryRow::position);
            rows.extend(page.rows);
            // The last slot may go on behind this page.
            let known = if is_last { rows.len() } else { complete(&rows) };
            for fold in HistoryFold::due(&rows[..known], page.now) {
                shared.store.fold_history(&fold).await?;
            }
            if is_last {
                break;
            }
            if known > 0 {
                // The rest of its slot is read again with the next page: another node may merge the slot in the meantime.
                scan.after = Some(rows[known - 1].position());
                rows.clear();
            }
        }
    }
    let now = shared.store.now().await?;
    shared.store.fold_history(&HistoryFold::expired(now)).await?;
    Ok(())
}

/// Returns how many of the first rows are in slots that are complete.
fn complete(rows: &[HistoryRow]) -> usize {
    let Some(last) = rows.last() else { return 0 };
    let width = HistorySlot::MINUTE * HistorySlot::COARSE_MINUTES;
    let width = i64::try_from(width.as_millis()).unwrap_or(1);
    let slot = last.start.as_millis().div_euclid(width);
    rows.partition_point(|row| row.start.as_millis().div_euclid(width) < slot)
}

impl Engine {
    /// Returns what happened to jobs of these kinds in the last time, at most 24 hours, on all nodes: one point for each of the last 180
    /// minutes and for each five minutes before. With kinds, each point has the counts of each of them; without, it has the sum of all
    /// kinds. Requests of a node share what one of them read, for some seconds.
    ///
    /// # Errors
    /// Returns the error of the store.
    ///
    /// ```
    /// # use rewheel_engine::{Engine, Report};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .raw_handler("mail", |_| async { Report::Done }).start().await?;
    /// let history = engine.history(&[], Duration::from_secs(3_600)).await?;
    /// let first = history.points.first().expect("an hour has minutes");
    /// assert!(first.is_gap(), "no node ran an hour ago: nothing is known");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn history(
        &self,
        kinds: &[KindName],
        since: Duration,
    ) -> StoreResult<HistoryTimeline> {
        let read = read(self.shared()).await?;
        Ok(HistoryTimeline::new(&read.rows, read.now, since, kinds))
    }
}

async fn read(shared: &Shared) -> StoreResult<Arc<ReadRows>> {
    let mut cached = shared.reports.history.read.lock().await;
    let began = shared.clock.now();
    if let Some((at, rows)) = &*cached
        && began.since(*at) < SHARED_FOR
    {
        return Ok(Arc::clone(rows));
    }
    let since = HistorySlot::KEPT + HistorySlot::MINUTE * HistorySlot::COARSE_MINUTES;
    let mut after: Option<HistoryPosition> = None;
    let mut rows = Vec::new();
    let now = loop {
        let scan = HistoryScan { since, older_than: Duration::ZERO, after, limit: ROWS_AT_ONCE };
        let page = shared.store.history(&scan).await?;
        let is_last = page.rows.len() < scan.limit;
        after = page.rows.last().map(HistoryRow::position);
        rows.extend(page.rows);
        if is_last {
            break page.now;
        }
    };
    let read = Arc::new(ReadRows { now, rows });
    *cached = Some((began, Arc::clone(&read)));
    Ok(read)
}
