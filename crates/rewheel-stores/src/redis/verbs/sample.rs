//! Counts jobs by kind, and caches the counts for the whole fleet.

use super::super::RedisStore;
use super::super::error::unreadable;
use super::super::pack::{Args, number, time};
use super::super::script::{SAMPLE, TALLY};
use super::kinds::KINDS_READ;
use crate::pages::Tallies;
use crate::sample_text;
use async_trait::async_trait;
use rewheel::Clock;
use rewheel_core::store::{Sample, SampleStore, StoreResult, Tally};
use rewheel_core::{KindName, State, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// The states that a tally counts, as `tally.lua` orders them.
const COUNTED: [State; 4] = [State::Scheduled, State::Leased, State::Paused, State::Dead];

#[async_trait]
impl SampleStore for RedisStore {
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>> {
        let (taken, jobs, tallies) = self.counted().await?;
        Ok((jobs <= rows_max as u64).then_some(Sample { taken, age: Duration::ZERO, tallies }))
    }

    async fn sample(&self) -> StoreResult<Option<Sample>> {
        let args = Args::default().bytes(b"read");
        let [now, row] = self.read(&SAMPLE, args).await?.parts()?;
        let [taken, text] = row.parts()?;
        let (Some(taken), Some(text)) = (taken.maybe_time()?, text.bytes()?) else {
            return Ok(None);
        };
        let mut tallies = Tallies::default();
        for kind in self.kinds().await? {
            tallies.add(&kind.name, None, None);
        }
        let text = std::str::from_utf8(&text).ok();
        text.and_then(|text| sample_text::read(text, &mut tallies))
            .ok_or_else(|| unreadable("a sample"))?;
        Ok(Some(Sample { taken, age: now.time()?.since(taken), tallies: tallies.into_vec() }))
    }

    async fn take_sample(&self) -> StoreResult<bool> {
        let args = Args::default()
            .bytes(b"begin")
            .millis(Sample::INTERVAL_MIN)
            .number(Sample::COST_FACTOR.into())
            .millis(Sample::COUNT_MAX);
        let begun = self.run(&SAMPLE, args).await?;
        if begun.is_missing() {
            return Ok(false);
        }
        let begun: Timestamp = begun.time()?;
        let clock = Clock::system();
        let started = clock.now();
        let counted = self.tally().await;
        let cost = clock.now().since(started);
        let text = counted.as_ref().ok().map(|tallies| sample_text::document(tallies));
        // A failed count has a cost, too: the next count waits accordingly.
        let args = Args::default()
            .bytes(b"end")
            .bytes(format!("{}", time(begun)).as_bytes())
            .number(number(u64::try_from(cost.as_millis()).unwrap_or(u64::MAX)))
            .maybe_bytes(text.as_deref().map(str::as_bytes));
        self.run(&SAMPLE, args).await?;
        counted.map(|_| true)
    }
}

impl RedisStore {
    pub(in super::super) async fn tally(&self) -> StoreResult<Vec<Tally>> {
        self.counted().await.map(|(_, _, tallies)| tallies)
    }

    /// Reads the counters, which every script keeps, and the first job of each lane.
    async fn counted(&self) -> StoreResult<(Timestamp, u64, Vec<Tally>)> {
        let (mut after, mut counts) = (0.0, BTreeMap::new());
        let (now, jobs) = loop {
            let args = Args::default().number(after).count(KINDS_READ);
            let [now, jobs, kinds, counters, last] = self.read(&TALLY, args).await?.parts()?;
            let (kinds, mut counters) = (kinds.list()?, counters.list()?.into_iter());
            let is_last = kinds.len() < KINDS_READ;
            for kind in kinds {
                let kind = kind.kind()?;
                let mut of = [0; COUNTED.len()];
                for (jobs, counter) in of.iter_mut().zip(counters.by_ref()) {
                    *jobs = if counter.is_missing() { 0 } else { counter.count()? };
                }
                // A kind that has changed since an earlier part is counted once.
                counts.insert(kind, of);
            }
            after = last.number()?;
            if is_last {
                break (now.time()?, jobs.count()?);
            }
        };
        let mut tallies = Tallies::default();
        for (kind, of) in &counts {
            tallies.add(kind, None, None);
            let of = COUNTED.into_iter().zip(*of);
            of.for_each(|counted| tallies.add(kind, Some(counted), None));
        }
        let kinds: Vec<KindName> = counts.into_keys().collect();
        for head in self.lanes(&kinds, None, usize::MAX).await? {
            tallies.add(&head.lane.kind, None, Some(head.due));
        }
        Ok((now, jobs, tallies.into_vec()))
    }
}
