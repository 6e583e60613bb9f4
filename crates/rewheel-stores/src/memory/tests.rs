//! Runs random histories and checks the invariants of the tables after each step.

use super::MemoryStore;
use super::world::{Place, World};
use rewheel::{Category, Random};
use rewheel_core::store::{
    Change, ChangeVerb, Claim, ClockOffset, Direct, Edit, Insert, KindStore, LeaseStore,
    OperateStore, Prune, ReadStore, Settlement, SubmitStore, Sweep, Visit, WorkStore,
};
use rewheel_core::{
    Actor, Decision, DueReason, Failure, HolderId, JobId, Key, KindName, Lane, Lease, NewHolder,
    NewJob, NewKind, Priority, Retain, Shard, State, Timestamp, When,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const STEPS: usize = 400;

/// A store, and the ids that a careless client of it remembers.
struct History {
    store: MemoryStore,
    clock: ClockOffset,
    random: Random,
    holders: Vec<HolderId>,
    jobs: Vec<JobId>,
    leases: Vec<(HolderId, Lease)>,
}

impl History {
    async fn new(seed: u64) -> History {
        let clock = ClockOffset::default();
        let store = MemoryStore::with_clock(clock.clone());
        let kind = NewKind {
            name: kind(),
            settings: String::new(),
            takeovers_max: 2,
            on_dead: Default::default(),
        };
        store.put_kinds(&[kind], &Actor::new("test")).await.unwrap();
        let random = Random::seeded(seed);
        History { store, clock, random, holders: vec![], jobs: vec![], leases: vec![] }
    }

    fn below(&self, end: usize) -> usize {
        usize::try_from(self.random.next() % end as u64).unwrap()
    }

    fn seconds(&self) -> Duration {
        SECOND * u32::try_from(self.below(5)).unwrap()
    }

    fn keep(&self) -> Retain {
        Retain { job: self.seconds(), key: self.seconds() }
    }

    fn lane(&self) -> Lane {
        let priority = Priority::new(u8::try_from(self.below(2)).unwrap()).unwrap();
        Lane { kind: kind(), tenant: None, priority, shard: Shard::NONE }
    }

    /// Performs a random action, whether it has an effect or not.
    async fn step(&mut self) {
        match self.below(12) {
            0 => self.join().await,
            1..=3 => self.insert().await,
            4 | 5 => self.claim().await,
            6 | 7 => self.settle().await,
            8 | 9 => self.change().await,
            10 => self.die().await,
            _ => self.tidy().await,
        }
    }

    async fn join(&mut self) {
        let id = HolderId::new(Timestamp::from_millis(0), &self.random);
        let new = NewHolder {
            id,
            name: "test".to_owned(),
            role: rewheel_core::Role::Engine,
            lease_ttl: SECOND,
            format: rewheel_core::Format::CURRENT,
        };
        self.store.join(&new).await.unwrap();
        self.holders.push(id);
    }

    async fn insert(&mut self) {
        let id = JobId::new(Timestamp::from_millis(0), &self.random);
        let key = Key::parse(["a", "b", "c"][self.below(3)]).unwrap();
        let job = NewJob {
            key: (self.below(2) == 0).then_some(key),
            priority: self.lane().priority,
            due: When::In(self.seconds()),
            deadline: (self.below(4) == 0).then_some(When::In(SECOND * 6)),
            ..NewJob::new(id, kind(), vec![u8::from(self.below(3) == 0)])
        };
        let holder = self.holders.last().copied();
        let direct = |holder| Direct { holder, attempt_timeout: SECOND, grace: SECOND };
        let jobs = [job];
        let insert = Insert { direct: holder.map(direct), ..Insert::new(&jobs) };
        self.store.insert(&insert).await.unwrap();
        self.jobs.push(id);
    }

    async fn claim(&mut self) {
        let Some(holder) = self.holders.last().copied() else { return };
        let (lane, limit) = (self.lane(), self.below(4));
        let visits = [Visit {
            lane,
            limit,
            attempt_timeout: SECOND,
            attempt_timeout_ceiling: SECOND,
            grace: SECOND,
        }];
        let claim = Claim { holder, visits: &visits, horizon: self.seconds(), limit: 3 };
        let claimed = self.store.claim(&claim).await.unwrap_or_default();
        let leases: Vec<Lease> = claimed.iter().map(|leased| leased.lease()).collect();
        self.store.start(holder, &leases).await.unwrap();
        self.leases.extend(leases.into_iter().map(|lease| (holder, lease)));
    }

    async fn settle(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        let (holder, lease) = self.leases[self.below(self.leases.len())];
        let failure = Failure::new(Category::Timeout, None, "");
        let sticky = self.below(2) == 0;
        let decisions = [
            Decision::Succeed,
            Decision::Retry { after: self.seconds(), sticky, because: DueReason::Backoff },
            Decision::Snooze { after: self.seconds(), because: DueReason::Snooze },
            Decision::Dead { failure: failure.clone() },
            Decision::Fail { failure },
            Decision::Pause,
        ];
        let chosen = self.below(decisions.len() + 1);
        if let Some(decision) = decisions.get(chosen).cloned() {
            let settlement =
                Settlement { decision, keep: self.keep(), ..Settlement::succeed(lease) };
            self.store.settle(holder, &[settlement]).await.unwrap();
        } else {
            self.store.give_back(holder, &[lease], self.keep()).await.unwrap();
        }
    }

    async fn change(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let job = self.jobs[self.below(self.jobs.len())];
        let edit = Edit {
            priority: Some(self.lane().priority),
            due: Some(When::In(self.seconds())),
            ..Edit::default()
        };
        let deadline = Some(When::In(SECOND));
        let all = [
            ChangeVerb::Pause,
            ChangeVerb::Resume,
            ChangeVerb::Cancel,
            ChangeVerb::Retry,
            ChangeVerb::Redrive { deadline },
            ChangeVerb::Edit(Box::new(edit)),
        ];
        let change = [Change::new(job, all[self.below(all.len())].clone())];
        self.store.change(&change, &Actor::new("test"), self.keep()).await.unwrap();
    }

    async fn die(&mut self) {
        if let Some(holder) = self.holders.pop() {
            self.store.leave(holder).await.unwrap();
        }
    }

    async fn tidy(&mut self) {
        self.clock.advance(self.seconds());
        if let Some(by) = self.holders.last() {
            self.store.sweep(&Sweep::new(*by, 3, self.keep())).await.unwrap();
        }
        self.store.deadlines(SECOND, 3).await.unwrap();
        let prune = Prune { limit: 2, audit_older_than: SECOND };
        self.store.prune(&prune).await.unwrap();
    }
}

fn kind() -> KindName {
    KindName::parse("charge").unwrap()
}

fn check(world: &World) {
    let mut lanes: BTreeMap<Lane, BTreeSet<Place>> = BTreeMap::new();
    for row in world.jobs.values().filter(|row| row.job.state() == State::Scheduled) {
        let place = (row.job.due, row.inserted, row.job.id);
        lanes.entry(row.job.lane.clone()).or_default().insert(place);
    }
    assert_eq!(world.lanes, lanes, "a lane is not what is scheduled in it");
    for key in world.keys.values() {
        let ended = world.jobs.get(&key.job).is_none_or(|row| row.job.state().is_final());
        assert_eq!(key.ended.is_some(), ended, "the key of {} is wrong about its end", key.job);
    }
    for row in world.jobs.values() {
        let is_final = row.job.state().is_final();
        assert_eq!(row.expires.is_some(), is_final, "job {} is kept wrongly", row.job.id);
    }
}

#[tokio::test]
async fn the_tables_agree_after_every_step() {
    let mut seen = BTreeSet::new();
    for seed in 0..20 {
        let mut history = History::new(seed).await;
        for step in 0..STEPS {
            history.step().await;
            {
                let world = history.store.lock().unwrap();
                check(&world);
                seen.extend(world.jobs.values().map(|row| row.job.state()));
            }
            let books = history.store.books().await.unwrap();
            assert_eq!(books.missing(), 0, "seed {seed}, step {step}: {books:?}");
        }
    }
    assert_eq!(seen, BTreeSet::from(State::ALL), "the histories are too tame");
}
