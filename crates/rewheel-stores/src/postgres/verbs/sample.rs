//! Caches job counts that one node takes for the whole fleet.

use super::super::PostgresStore;
use super::super::error::{VerbError, unreadable};
use super::super::row::{count, instant, millis, unsigned};
use super::super::session::{Param, Session};
use super::super::statements::{
    BEGIN_SAMPLE, END_SAMPLE, KIND_NAMES, SAMPLE, SAMPLE_NOW, TALLY, TALLY_DUE,
};
use crate::pages::Tallies;
use crate::sample_text;
use async_trait::async_trait;
use rewheel::Clock;
use rewheel_core::store::{Sample, SampleStore, StoreResult, Tally};
use rewheel_core::{KindName, State, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

#[async_trait]
impl SampleStore for PostgresStore {
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>> {
        let session = self.snapshot().await?;
        let sample = sample_now(&session, rows_max).await;
        session.end(sample).await
    }

    async fn sample(&self) -> StoreResult<Option<Sample>> {
        let session = self.read().await?;
        let sample = sample(&session).await;
        session.end(sample).await
    }

    async fn take_sample(&self) -> StoreResult<bool> {
        let session = self.write().await?;
        let begun = begin(&session).await;
        let Some(begun) = session.end(begun).await? else { return Ok(false) };
        let clock = Clock::system();
        let started = clock.now();
        let counted = self.count_all().await;
        let cost = clock.now().since(started);
        let text = counted.as_ref().ok().map(|tallies| sample_text::document(tallies));
        // A failed count has a cost, too: the next count waits accordingly.
        let session = self.write().await?;
        let params: [Param<'_>; 3] = [&begun.as_millis(), &millis(cost), &text];
        let ended = session.execute(&END_SAMPLE, &params).await;
        session.end(ended).await?;
        counted.map(|_| true)
    }
}

impl PostgresStore {
    /// Counts a table of any size; its statements have a longer timeout.
    async fn count_all(&self) -> StoreResult<Vec<Tally>> {
        let session = self.long_snapshot().await?;
        let tallies = tally(&session).await;
        session.end(tallies).await
    }
}

async fn begin(session: &Session<'_>) -> Result<Option<Timestamp>, VerbError> {
    let params: [Param<'_>; 4] = [
        &session.offset(),
        &millis(Sample::INTERVAL_MIN),
        &i64::from(Sample::COST_FACTOR),
        &millis(Sample::COUNT_MAX),
    ];
    let row = session.find(&BEGIN_SAMPLE, &params).await?;
    row.map(|row| Ok(instant(row.try_get(0)?))).transpose()
}

async fn sample_now(session: &Session<'_>, rows_max: usize) -> Result<Option<Sample>, VerbError> {
    // Ask for one row more than the limit, to know whether there are more.
    let limit = count((rows_max as u64).saturating_add(1));
    let row = session.one(&SAMPLE_NOW, &[&session.offset(), &limit]).await?;
    if unsigned(row.try_get(1)?) > rows_max as u64 {
        return Ok(None);
    }
    let (taken, tallies) = (instant(row.try_get(0)?), tally(session).await?);
    Ok(Some(Sample { taken, age: Duration::ZERO, tallies }))
}

async fn sample(session: &Session<'_>) -> Result<Option<Sample>, VerbError> {
    let Some(row) = session.find(&SAMPLE, &[&session.offset()]).await? else { return Ok(None) };
    let (now, taken) = (instant(row.try_get(0)?), instant(row.try_get(1)?));
    let mut tallies = all_kinds(session).await?;
    sample_text::read(row.try_get(2)?, &mut tallies).ok_or_else(|| unreadable("a sample"))?;
    Ok(Some(Sample { taken, age: now.since(taken), tallies: tallies.into_vec() }))
}

/// Returns an empty tally for each kind.
async fn all_kinds(session: &Session<'_>) -> Result<Tallies, VerbError> {
    let mut tallies = Tallies::default();
    for row in session.query(&KIND_NAMES, &[]).await? {
        tallies.add(&kind(row.try_get(0)?)?, None, None);
    }
    Ok(tallies)
}

fn kind(name: &str) -> Result<KindName, VerbError> {
    KindName::parse(name).map_err(|_| unreadable("a kind"))
}

/// Counts every job. The session must see one snapshot.
pub(in super::super) async fn tally(session: &Session<'_>) -> Result<Vec<Tally>, VerbError> {
    let mut tallies = all_kinds(session).await?;
    let mut due: BTreeMap<KindName, (u64, Option<Timestamp>)> = BTreeMap::new();
    let mut listed: BTreeMap<KindName, u64> = BTreeMap::new();
    for row in session.query(&TALLY, &[]).await? {
        let (name, jobs) = (kind(row.try_get(0)?)?, unsigned(row.try_get(2)?));
        match row.try_get::<_, &str>(1)? {
            "due" => {
                let first = row.try_get::<_, Option<i64>>(3)?.map(instant);
                due.insert(name, (jobs, first));
            }
            "listed" => drop(listed.insert(name, jobs)),
            "held" => tallies.add(&name, Some((State::Leased, jobs)), None),
            "blocked" => tallies.add(&name, Some((State::Scheduled, jobs)), None),
            "paused" => tallies.add(&name, Some((State::Paused, jobs)), None),
            "dead" => tallies.add(&name, Some((State::Dead, jobs)), None),
            _ => return Err(unreadable("a table number")),
        }
    }
    // The first job of a shelf may be a leased one.
    let names: Vec<&str> = listed.keys().map(KindName::as_str).collect();
    if !names.is_empty() {
        for name in listed.keys() {
            due.entry(name.clone()).and_modify(|known| known.1 = None);
        }
        for row in session.query(&TALLY_DUE, &[&names]).await? {
            if let Some(known) = due.get_mut(&kind(row.try_get(0)?)?) {
                known.1 = row.try_get::<_, Option<i64>>(1)?.map(instant);
            }
        }
    }
    for (name, (jobs, first)) in due {
        let leased = listed.get(&name).copied().unwrap_or(0).min(jobs);
        tallies.add(&name, Some((State::Leased, leased)), None);
        tallies.add(&name, Some((State::Scheduled, jobs - leased)), first);
    }
    Ok(tallies.into_vec())
}
