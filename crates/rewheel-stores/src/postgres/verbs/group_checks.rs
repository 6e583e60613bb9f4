//! Releases jobs of groups that users' transactions have stored or unblocked.
//!
//! Such a transaction may stay open for minutes, so it locks no line, and no node knows when it commits. It lists its lines in
//! `group_checks`; the next read of the lanes by any node takes them off the list and releases their first jobs.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::count;
use super::super::session::Session;
use super::super::statements::{GROUP_CHECKS, GROUP_CHECKS_LOOK};
use super::groups::{Released, line, release};
use crate::groups::{Line, Release};
use rewheel::{Clock, Moment};
use rewheel_core::store::StoreResult;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many lines to release with one transaction.
const LINES_MAX: u64 = 500;

/// How often to look at the whole list. It is needed only for lines that a node took off the list before it died.
const WHOLE_EVERY: Duration = Duration::from_secs(10);

/// From which transaction on the next check reads the list. Those before it were seen to the end by the check before. Without it, a check
/// would read all dead rows of the list while an old snapshot keeps them.
#[derive(Debug)]
pub(in super::super) struct ChecksFrom {
    known: Mutex<Known>,
    clock: Clock,
}

#[derive(Debug)]
struct Known {
    from: i64,
    whole: Option<Moment>,
}

impl ChecksFrom {
    pub(in super::super) fn new(clock: Clock) -> ChecksFrom {
        ChecksFrom { known: Mutex::new(Known { from: i64::MIN, whole: None }), clock }
    }

    /// Looks at all lines next time: on another server, the numbers of transactions may be smaller.
    pub(in super::super) fn forget(&self) {
        *self.known() = Known { from: i64::MIN, whole: None };
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic runs under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self) -> i64 {
        let now = self.clock.now();
        let mut known = self.known();
        if known.whole.is_some_and(|whole| now.since(whole) < WHOLE_EVERY) {
            return known.from;
        }
        known.whole = Some(now);
        i64::MIN
    }

    fn set(&self, from: i64) {
        self.known().from = from;
    }
}

impl PostgresStore {
    /// Releases the first jobs of listed lines. Returns how many lines got a head.
    pub(in super::super) async fn release_listed(&self) -> StoreResult<usize> {
        let checks = &self.shared.group_checks;
        let from = checks.get();
        let session = self.read().await?;
        let looked = look(&session, from).await;
        let (found, next) = session.end(looked).await?;
        let mut released = 0;
        if found {
            loop {
                let session = self.transaction().await?;
                let done = release_some(&session, from).await;
                let (taken, done) = session.end(done).await?;
                let (count, again) = self.released(done);
                released += count;
                self.release_lines(again, Release::AfterWait).await;
                if taken < LINES_MAX {
                    break;
                }
            }
        }
        checks.set(next);
        Ok(released)
    }
}

/// Returns whether lines are listed, and where the next check starts.
async fn look(session: &Session<'_>, from: i64) -> Result<(bool, i64), VerbError> {
    let row = session.one(&GROUP_CHECKS_LOOK, &[&from]).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Takes lines off the list and releases their first jobs. Returns how many entries it took.
async fn release_some(session: &Session<'_>, from: i64) -> Result<(u64, Released), VerbError> {
    let rows = session.query(&GROUP_CHECKS, &[&from, &count(LINES_MAX)]).await?;
    let lines = rows.iter().map(line).collect::<Result<BTreeSet<Line>, _>>()?;
    let done = release(session, &lines, Release::AfterWait, None).await?;
    Ok((rows.len() as u64, done))
}
