//! Counts jobs, and caches the counts that one node takes for the whole fleet.

use super::super::error::{VerbError, unreadable};
use super::super::job_columns::{BLOCKED, LEASED, PAUSED, SCHEDULED};
use super::super::row::{count, duration, get, instant, millis, unsigned};
use super::super::transaction::Transaction;
use super::super::{MysqlStore, read, snapshot, write};
use crate::pages::Tallies;
use crate::sample_text;
use async_trait::async_trait;
use rewheel::Clock;
use rewheel_core::store::{Sample, SampleStore, SampleTurn, StoreResult, Tally};
use rewheel_core::{KindName, State, Timestamp};
use std::time::Duration;

#[async_trait]
impl SampleStore for MysqlStore {
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>> {
        snapshot!(self, tx => sample_now(tx, rows_max))
    }

    async fn sample(&self) -> StoreResult<Option<Sample>> {
        read!(self, tx => sample(tx))
    }

    async fn take_sample(&self) -> StoreResult<bool> {
        let Some(begun) = self.begin_sample().await? else { return Ok(false) };
        let clock = Clock::system();
        let started = clock.now();
        let counted = self.count_all().await;
        let cost = clock.now().since(started);
        let text = counted.as_ref().ok().map(|tallies| sample_text::document(tallies));
        self.end_sample(begun, cost, text.as_deref()).await?;
        counted.map(|_| true)
    }
}

impl MysqlStore {
    async fn begin_sample(&self) -> StoreResult<Option<Timestamp>> {
        write!(self, tx => begin(tx))
    }

    async fn count_all(&self) -> StoreResult<Vec<Tally>> {
        snapshot!(self, tx => tally(tx))
    }

    async fn end_sample(
        &self,
        begun: Timestamp,
        cost: Duration,
        tallies: Option<&str>,
    ) -> StoreResult<()> {
        write!(self, tx => end(tx, begun, cost, tallies))
    }
}

/// Reserves the next count for this node, if it is due.
async fn begin(tx: &mut Transaction<'_>) -> Result<Option<Timestamp>, VerbError> {
    let row = tx.find(include_str!("../sql/sample_turn.sql"), Vec::new()).await?;
    // While this transaction waited for the lock, another node may have begun a count: it must not seem to lie in the future.
    tx.refresh_now().await?;
    let turn = match row {
        None => SampleTurn::default(),
        Some(row) => SampleTurn {
            begun: get::<Option<i64>>(&row, 0)?.map(instant),
            counting: get(&row, 1)?,
            cost: duration(get(&row, 2)?),
        },
    };
    if !turn.is_due(tx.now) {
        return Ok(None);
    }
    let values = vec![tx.now.as_millis().into()];
    tx.execute(include_str!("../sql/begin_sample.sql"), values).await?;
    Ok(Some(tx.now))
}

/// Writes the result of a count, if it succeeded. A failed count has a cost, too: the next count waits accordingly.
async fn end(
    tx: &mut Transaction<'_>,
    begun: Timestamp,
    cost: Duration,
    tallies: Option<&str>,
) -> Result<(), VerbError> {
    let begun = begun.as_millis();
    if let Some(tallies) = tallies {
        let values = vec![tallies.into(), begun.into()];
        tx.execute(include_str!("../sql/keep_sample.sql"), values).await?;
    }
    let values = vec![millis(cost).into(), begun.into()];
    tx.execute(include_str!("../sql/end_sample.sql"), values).await.map(drop)
}

async fn sample_now(
    tx: &mut Transaction<'_>,
    rows_max: usize,
) -> Result<Option<Sample>, VerbError> {
    // Ask for one row more than the limit, to know whether there are more.
    let limit = count((rows_max as u64).saturating_add(1));
    let row = tx.find(include_str!("../sql/sample_now.sql"), vec![limit.clone(), limit]).await?;
    let rows: i64 = row.map_or(Ok(0), |row| get(&row, 0))?;
    if unsigned(rows) > rows_max as u64 {
        return Ok(None);
    }
    Ok(Some(Sample { taken: tx.now, age: Duration::ZERO, tallies: tally(tx).await? }))
}

async fn sample(tx: &mut Transaction<'_>) -> Result<Option<Sample>, VerbError> {
    let row = tx.find(include_str!("../sql/sample.sql"), Vec::new()).await?;
    let Some(row) = row else { return Ok(None) };
    let (taken, text) = (instant(get(&row, 0)?), get::<String>(&row, 1)?);
    let mut tallies = all_kinds(tx).await?;
    sample_text::read(&text, &mut tallies).ok_or_else(|| unreadable("a sample"))?;
    Ok(Some(Sample { taken, age: tx.now.since(taken), tallies: tallies.into_vec() }))
}

/// Returns an empty tally for each kind.
async fn all_kinds(tx: &mut Transaction<'_>) -> Result<Tallies, VerbError> {
    let mut tallies = Tallies::default();
    for row in tx.rows(include_str!("../sql/kind_names.sql"), Vec::new()).await? {
        tallies.add(&kind(&get::<String>(&row, 0)?)?, None, None);
    }
    Ok(tallies)
}

fn kind(name: &str) -> Result<KindName, VerbError> {
    KindName::parse(name).map_err(|_| unreadable("a kind"))
}

/// Counts every job. The transaction must see one snapshot.
pub(in super::super) async fn tally(tx: &mut Transaction<'_>) -> Result<Vec<Tally>, VerbError> {
    let mut tallies = all_kinds(tx).await?;
    for row in tx.rows(include_str!("../sql/tally.sql"), Vec::new()).await? {
        let state = match get::<u8>(&row, 1)? {
            SCHEDULED | BLOCKED => State::Scheduled,
            LEASED => State::Leased,
            PAUSED => State::Paused,
            DEAD => State::Dead,
            _ => return Err(unreadable("a state")),
        };
        let jobs = unsigned(get(&row, 2)?);
        let due = get::<Option<i64>>(&row, 3)?.map(instant);
        tallies.add(&kind(&get::<String>(&row, 0)?)?, Some((state, jobs)), due);
    }
    Ok(tallies.into_vec())
}

/// How `tally.sql` marks dead letters, beside the states of live jobs.
const DEAD: u8 = 4;
