//! Counts jobs by kind, and caches the counts for the whole fleet.

use super::super::RedisStore;
use super::super::error::unreadable;
use super::super::pack::{Args, number, time};
use super::super::reply::Reply;
use super::super::script::{SAMPLE, TALLY};
use super::super::values::state;
use crate::pages::Tallies;
use crate::sample_text;
use async_trait::async_trait;
use rewheel::Clock;
use rewheel_core::store::{Sample, SampleStore, StoreResult, Tally};
use rewheel_core::{KindName, Timestamp};
use std::time::Duration;

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
        let [now, jobs, kinds, counters] = self.read(&TALLY, Args::default()).await?.parts()?;
        let mut tallies = Tallies::default();
        let kinds: Vec<KindName> =
            kinds.list()?.into_iter().map(Reply::kind).collect::<StoreResult<_>>()?;
        kinds.iter().for_each(|kind| tallies.add(kind, None, None));
        let mut counters = counters.list()?.into_iter();
        while let (Some(name), Some(jobs)) = (counters.next(), counters.next()) {
            let name = name.text()?;
            let (kind, of) = name[1..].split_once('\0').ok_or_else(|| unreadable("a counter"))?;
            let kind = KindName::parse(kind).map_err(|_| unreadable("the name of a kind"))?;
            let of = state(of.as_bytes()).map_err(|why| unreadable(why.0))?;
            tallies.add(&kind, Some((of, jobs.count()?)), None);
        }
        for head in self.lanes(&kinds, None, usize::MAX).await? {
            tallies.add(&head.lane.kind, None, Some(head.due));
        }
        Ok((now.time()?, jobs.count()?, tallies.into_vec()))
    }
}
