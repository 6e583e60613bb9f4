//! Caches job counts that one node takes for all.

use super::super::SqliteStore;
use super::super::error::{VerbError, unreadable};
use super::super::row::{duration, instant, millis, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use crate::pages::Tallies;
use crate::sample_text;
use async_trait::async_trait;
use rewheel::Clock;
use rewheel_core::store::{Sample, SampleStore, SampleTurn, StoreResult, Tally};
use rewheel_core::{KindName, State, Timestamp};
use std::time::Duration;

#[async_trait]
impl SampleStore for SqliteStore {
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>> {
        self.read(move |tx| sample_now(tx, rows_max)).await
    }

    async fn sample(&self) -> StoreResult<Option<Sample>> {
        self.read(|tx| sample(tx)).await
    }

    async fn take_sample(&self) -> StoreResult<bool> {
        let Some(begun) = self.write(1, |tx| begin(tx)).await? else { return Ok(false) };
        let clock = Clock::system();
        let started = clock.now();
        let counted = self.read(|tx| tally(tx)).await;
        let cost = clock.now().since(started);
        let text = counted.as_ref().ok().map(|tallies| sample_text::document(tallies));
        // A failed count has a cost, too: the next count waits accordingly.
        self.write(1, move |tx| {
            let values = (begun.as_millis(), millis(cost), text.as_deref());
            tx.execute(include_str!("../sql/end_sample.sql"), values)
        })
        .await?;
        counted.map(|_| true)
    }
}

fn begin(tx: &Transaction<'_, '_>) -> Result<Option<Timestamp>, VerbError> {
    let turn = tx.find(include_str!("../sql/sample_turn.sql"), [], |row| {
        let begun = row.get::<_, Option<i64>>(0)?.map(instant);
        Ok(SampleTurn { begun, counting: row.get(1)?, cost: duration(row.get(2)?) })
    })?;
    if !turn.unwrap_or_default().is_due(tx.now) {
        return Ok(None);
    }
    tx.execute(include_str!("../sql/begin_sample.sql"), [tx.now.as_millis()])?;
    Ok(Some(tx.now))
}

fn sample_now(tx: &Transaction<'_, '_>, rows_max: usize) -> Result<Option<Sample>, VerbError> {
    // Ask for one row more than the limit, to know whether there are more.
    let limit = count((rows_max as u64).saturating_add(1));
    let rows: Option<i64> =
        tx.find(include_str!("../sql/sample_now.sql"), [limit], |row| row.get(0))?;
    if rows.map_or(0, unsigned) > rows_max as u64 {
        return Ok(None);
    }
    Ok(Some(Sample { taken: tx.now, age: Duration::ZERO, tallies: tally(tx)? }))
}

fn sample(tx: &Transaction<'_, '_>) -> Result<Option<Sample>, VerbError> {
    let found = tx.find(include_str!("../sql/sample.sql"), [], |row| {
        Ok((instant(row.get(0)?), row.get::<_, String>(1)?))
    })?;
    let Some((taken, text)) = found else { return Ok(None) };
    let mut tallies = all_kinds(tx)?;
    sample_text::read(&text, &mut tallies).ok_or_else(|| unreadable("a sample"))?;
    Ok(Some(Sample { taken, age: tx.now.since(taken), tallies: tallies.into_vec() }))
}

/// Returns an empty tally for each kind.
fn all_kinds(tx: &Transaction<'_, '_>) -> Result<Tallies, VerbError> {
    let mut tallies = Tallies::default();
    let statement = tx.sql(include_str!("../sql/kind_names.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        tallies.add(&kind(&row.get::<_, String>(0)?)?, None, None);
    }
    Ok(tallies)
}

fn kind(name: &str) -> Result<KindName, VerbError> {
    KindName::parse(name).map_err(|_| unreadable("a kind"))
}

pub(in super::super) fn tally(tx: &Transaction<'_, '_>) -> Result<Vec<Tally>, VerbError> {
    let mut tallies = all_kinds(tx)?;
    let statement = tx.sql(include_str!("../sql/tally.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state: State = row.get::<_, String>(1)?.parse().map_err(|_| unreadable("a state"))?;
        let due = row.get::<_, Option<i64>>(3)?.map(instant);
        let jobs = Some((state, unsigned(row.get(2)?)));
        tallies.add(&kind(&row.get::<_, String>(0)?)?, jobs, due);
    }
    Ok(tallies.into_vec())
}
