//! A store under test, with the steps that most cases start with.

use rewheel::{Backoff, Category, Random};
use rewheel_core::store::{
    Change, ChangeVerb, Changed, Claim, ClockOffset, Insert, Inserted, LaneHead, Leased, Outcome,
    Settled, Settlement, Store, StoreResult, Sweep, Visit,
};
use rewheel_core::{
    Actor, Decision, DueReason, Duplicates, Failure, Format, GroupKey, HolderId, Job, JobId, Key,
    KindName, Lane, Lease, NewHolder, NewJob, NewKind, OnDead, Priority, Retain, Role, Shard,
    ShardKey, State, Tenant, Timestamp, When,
};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// The lease duration of holders in the suite.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(15);

/// The attempt timeout of the suite, and the grace until a job is overdue.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A store under test.
#[derive(Debug)]
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The offset of its clock.
    pub clock: ClockOffset,
    /// The source of ids.
    pub random: Random,
    alive: Vec<Box<dyn Any + Send + Sync>>,
}

/// Creates a duration from milliseconds.
pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Creates a duration from seconds.
pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the lane of jobs that set only their kind.
pub fn lane(kind: &str) -> Lane {
    let kind = KindName::parse(kind).unwrap();
    Lane { kind, tenant: None, priority: Priority::DEFAULT, shard: Shard::NONE }
}

impl Subject {
    /// Takes a fresh store, and the clock offset that it was opened with.
    pub fn new(store: Arc<dyn Store>, clock: ClockOffset) -> Subject {
        Subject { store, clock, random: Random::seeded(0x5eed), alive: Vec::new() }
    }

    /// Keeps a value alive as long as the store: a folder, a server.
    #[must_use]
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Subject {
        self.alive.push(Box::new(thing));
        self
    }

    /// Creates a new id.
    pub fn id(&self) -> JobId {
        JobId::new(Timestamp::from_millis(1_700_000_000_000), &self.random)
    }

    /// Creates kinds.
    pub async fn kinds(&self, names: &[&str]) {
        let kinds: Vec<NewKind> = names
            .iter()
            .map(|name| NewKind {
                name: KindName::parse(name).unwrap(),
                settings: "{}".to_owned(),
                takeovers_max: 3,
                on_dead: OnDead::Continue,
            })
            .collect();
        self.store.put_kinds(&kinds, &Actor::new("suite")).await.unwrap();
    }

    /// Registers a holder.
    pub async fn holder(&self) -> HolderId {
        let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &self.random);
        let holder = NewHolder {
            id,
            name: "suite".to_owned(),
            role: Role::Engine,
            lease_ttl: LEASE_TTL,
            format: Format::CURRENT,
        };
        self.store.join(&holder).await.unwrap();
        id
    }

    /// Builds a job of a kind that may not exist: due at once, with defaults.
    pub fn job(&self, kind: &str) -> NewJob {
        NewJob::new(self.id(), KindName::parse(kind).unwrap(), b"{\"order\":17}".to_vec())
    }

    /// Builds a job with a value in every field. A new field does not compile until it has one here, and then the cases about
    /// storing, claiming and moving jobs check it.
    pub fn full_job(&self, kind: &str) -> NewJob {
        NewJob {
            id: self.id(),
            kind: KindName::parse(kind).unwrap(),
            tenant: Some(Tenant::parse("Ünïcode & Söhne").unwrap()),
            key: Some(Key::parse("order-17 '日本'").unwrap()),
            // Not stored: it says what the insert does if another job has the key.
            duplicates: Duplicates::default(),
            shard_key: Some(ShardKey::parse("customer 3").unwrap()),
            shard: Some(Shard::new(3)),
            priority: Priority::new(8).unwrap(),
            payload: (0..=u8::MAX).collect(),
            due: When::In(Duration::ZERO),
            deadline: Some(When::In(Duration::from_secs(3_600))),
            attempts_max: Some(4),
            attempt_timeout: Some(Duration::from_millis(1_500)),
            backoff: Some(Backoff::exponential(Duration::from_millis(250))),
            traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
            attempts_before: 3,
            parent: Some(self.id()),
            instant: Some(Timestamp::from_millis(1_767_225_600_000)),
            group_key: Some(GroupKey::parse("customer 17 '日本'").unwrap()),
        }
    }

    /// Builds several jobs.
    pub fn jobs(&self, kind: &str, count: usize) -> Vec<NewJob> {
        (0..count).map(|_| self.job(kind)).collect()
    }

    /// Stores jobs, which must all be new.
    pub async fn insert(&self, jobs: &[NewJob]) {
        let answers = self.store.insert(&Insert::new(jobs)).await.unwrap();
        assert_eq!(answers.len(), jobs.len());
        for answer in answers {
            assert!(matches!(answer, Inserted::Created { .. }), "not stored: {answer:?}");
        }
    }

    /// Stores one job of a new kind, and returns its id.
    pub async fn submit(&self, kind: &str) -> JobId {
        self.kinds(&[kind]).await;
        let job = self.job(kind);
        self.insert(std::slice::from_ref(&job)).await;
        job.id
    }

    /// Claims due jobs in the lanes of these kinds at the default priority.
    pub async fn claim(&self, holder: HolderId, kinds: &[&str], limit: usize) -> Vec<Leased> {
        self.try_claim(holder, kinds, limit).await.unwrap()
    }

    /// Claims, and returns an error if it fails.
    pub async fn try_claim(
        &self,
        holder: HolderId,
        kinds: &[&str],
        limit: usize,
    ) -> StoreResult<Vec<Leased>> {
        let visits: Vec<Visit> = kinds.iter().map(|kind| self.visit(lane(kind), limit)).collect();
        let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit };
        self.store.claim(&claim).await
    }

    /// Builds a visit of a lane with the suite's attempt timeout and grace.
    pub fn visit(&self, lane: Lane, limit: usize) -> Visit {
        Visit {
            lane,
            limit,
            attempt_timeout: ATTEMPT_TIMEOUT,
            attempt_timeout_ceiling: Duration::MAX,
            grace: GRACE,
        }
    }

    /// Stores a job of a kind and leases it to a new holder. Returns both.
    pub async fn leased(&self, kind: &str) -> (HolderId, Lease) {
        let holder = self.holder().await;
        let job = self.submit(kind).await;
        let claimed = self.claim(holder, &[kind], 1_000).await;
        let lease = claimed.iter().map(Leased::lease).find(|lease| lease.job == job).unwrap();
        (holder, lease)
    }

    /// Settles one attempt.
    pub async fn settle(&self, holder: HolderId, settlement: &Settlement) -> Settled {
        let answers = self.store.settle(holder, std::slice::from_ref(settlement)).await.unwrap();
        assert_eq!(answers.len(), 1);
        answers[0]
    }

    /// Settles one attempt as a success, with retention.
    pub async fn succeed(&self, holder: HolderId, lease: Lease) -> Settled {
        self.settle(holder, &Settlement::succeed(lease)).await
    }

    /// Builds the settlement of a failed attempt with a retry after a delay.
    pub fn retry(&self, lease: Lease, after: Duration, sticky: bool) -> Settlement {
        Settlement {
            decision: Decision::Retry { after, sticky, because: DueReason::Backoff },
            failure: Some(self.timeout()),
            hold: ATTEMPT_TIMEOUT + GRACE,
            ..Settlement::succeed(lease)
        }
    }

    /// Builds the settlement of a failed attempt that makes the job a dead letter.
    pub fn dead(&self, lease: Lease) -> Settlement {
        Settlement {
            decision: Decision::Dead { failure: self.timeout() },
            failure: Some(self.timeout()),
            ..Settlement::succeed(lease)
        }
    }

    /// The failure used in this suite.
    pub fn timeout(&self) -> Failure {
        Failure::new(Category::Timeout, Some("504"), "no answer")
    }

    /// Stores a job of a kind, and makes it a dead letter.
    pub async fn dead_letter(&self, kind: &str) -> JobId {
        let (holder, lease) = self.leased(kind).await;
        let settled = self.settle(holder, &self.dead(lease)).await;
        assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Dead)));
        lease.job
    }

    /// Changes one job on behalf of an operator.
    pub async fn change(&self, job: JobId, what: ChangeVerb) -> Changed {
        let change = [Change::new(job, what)];
        let answers =
            self.store.change(&change, &Actor::new("suite"), Retain::default()).await.unwrap();
        assert_eq!(answers.len(), 1);
        answers[0]
    }

    /// Reads a job that must exist.
    pub async fn get(&self, job: JobId) -> Job {
        self.store.get(job).await.unwrap().expect("the job exists")
    }

    /// Reads the lanes of these kinds.
    pub async fn lanes(&self, kinds: &[&str]) -> Vec<LaneHead> {
        let kinds: Vec<KindName> =
            kinds.iter().map(|kind| KindName::parse(kind).unwrap()).collect();
        self.store.lanes(&kinds, None, 100).await.unwrap()
    }

    /// Expires a holder: its lease expires, and `by` marks it as dead.
    pub async fn expire_holder(&self, by: HolderId, other: HolderId) {
        use rewheel_core::store::HolderExpiry;
        let all = self.store.holders().await.unwrap();
        let seen = all.iter().find(|holder| holder.id == other).expect("it joined").renewals;
        self.clock.advance(LEASE_TTL + seconds(1));
        assert_eq!(self.store.expire_holder(by, other, seen).await.unwrap(), HolderExpiry::Expired);
    }

    /// Checks that every job is accounted for.
    pub async fn balance(&self) {
        let books = self.store.books().await.unwrap();
        assert_eq!(books.missing(), 0, "the books do not balance: {books:?}");
    }

    /// Stores one new job, and returns its id.
    pub async fn put(&self, job: NewJob) -> JobId {
        self.insert(std::slice::from_ref(&job)).await;
        job.id
    }

    /// Stores jobs, and returns the result of each.
    pub async fn answers(&self, insert: &Insert<'_>) -> Vec<Inserted> {
        let answers = self.store.insert(insert).await.unwrap();
        assert_eq!(answers.len(), insert.jobs.len());
        answers
    }

    /// Expires a holder, and sweeps its jobs. Returns the sweeping holder.
    pub async fn heir_of(&self, from: HolderId) -> HolderId {
        let by = self.holder().await;
        self.store.leave(from).await.unwrap();
        self.store.sweep(&Sweep::new(by, 1_000, Retain::default())).await.unwrap();
        by
    }

    /// Reports that a case does not apply to a store that lacks a capability.
    #[expect(clippy::print_stderr, reason = "a case that was skipped must not look as if it ran")]
    pub fn skip(&self, why: &str) {
        eprintln!("skipped: the store {} {why}", self.store.capabilities().name);
    }
}
