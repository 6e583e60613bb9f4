//! Test steps that operators would do.

use crate::subject::Subject;
use rewheel_core::store::{
    Change, ChangeVerb, Changed, Claim, Leased, Prune, Pruned, Settlement, Sweep,
};
use rewheel_core::{
    Actor, Decision, Holder, HolderId, JobEvent, JobId, Kind, KindChange, KindChanged, KindName,
    Lane, Lease, NewJob, Retain, State, Timestamp, Version,
};
use std::time::Duration;

/// Longer than anything in the suite.
pub(crate) const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// No retention of an ended job and its key.
pub(crate) const KEEP_NOTHING: Retain = Retain { job: Duration::ZERO, key: Duration::ZERO };

impl Subject {
    /// Stores a job of a new kind, and brings it into a state. Other due jobs of its lane may be
    /// leased on the way.
    pub async fn job_in(&self, kind: &str, state: State) -> JobId {
        match state {
            State::Scheduled => self.submit(kind).await,
            State::Leased => self.leased(kind).await.1.job,
            State::Paused => self.changed_by(kind, ChangeVerb::Pause).await,
            State::Cancelled => self.changed_by(kind, ChangeVerb::Cancel).await,
            State::Succeeded => self.ended_by(kind, Decision::Succeed).await,
            State::Failed => self.ended_by(kind, Decision::Fail { failure: self.timeout() }).await,
            State::Dead => self.dead_letter(kind).await,
        }
    }

    async fn changed_by(&self, kind: &str, what: ChangeVerb) -> JobId {
        let job = self.submit(kind).await;
        let changed = self.change(job, what).await;
        assert!(matches!(changed, Changed::Applied { .. }), "not changed: {changed:?}");
        job
    }

    async fn ended_by(&self, kind: &str, decision: Decision) -> JobId {
        let (holder, lease) = self.leased(kind).await;
        self.settle(holder, &Settlement { decision, ..Settlement::succeed(lease) }).await;
        lease.job
    }

    /// Stores a job of an existing kind, and leases it to a new holder.
    pub async fn lease_new(&self, job: &NewJob) -> (HolderId, Lease) {
        let holder = self.holder().await;
        self.insert(std::slice::from_ref(job)).await;
        let claimed = self.claim_lane(holder, job.lane()).await;
        let lease = claimed.iter().map(Leased::lease).find(|lease| lease.job == job.id).unwrap();
        (holder, lease)
    }

    /// Claims the due jobs of one lane.
    pub async fn claim_lane(&self, holder: HolderId, lane: Lane) -> Vec<Leased> {
        let visits = [self.visit(lane, 1_000)];
        let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 1_000 };
        self.store.claim(&claim).await.unwrap()
    }

    /// Claims the only due job of a kind.
    pub async fn claim_only(&self, holder: HolderId, kind: &str) -> Leased {
        let mut claimed = self.claim(holder, &[kind], 1_000).await;
        assert_eq!(claimed.len(), 1, "not the only one: {claimed:?}");
        claimed.remove(0)
    }

    /// Records the start of a job that its holder must still have.
    pub async fn start(&self, holder: HolderId, lease: Lease) {
        assert_eq!(self.store.start(holder, &[lease]).await.unwrap(), [true]);
    }

    /// Gives one job back.
    pub async fn give_back(&self, holder: HolderId, lease: Lease) {
        self.store.give_back(holder, &[lease], Retain::default()).await.unwrap();
    }

    /// Sweeps at most a thousand jobs.
    pub async fn sweep(&self, by: HolderId) -> Vec<JobEvent> {
        self.store.sweep(&Sweep::new(by, 1_000, Retain::default())).await.unwrap()
    }

    /// Expires a holder, and frees its jobs.
    pub async fn take_over(&self, by: HolderId, other: HolderId) -> Vec<JobEvent> {
        self.expire_holder(by, other).await;
        self.sweep(by).await
    }

    /// Reads a holder that is alive or died recently.
    pub async fn find(&self, holder: HolderId) -> Option<Holder> {
        self.store.holders().await.unwrap().into_iter().find(|found| found.id == holder)
    }

    /// Changes one job, if it still has this version.
    pub async fn change_if(&self, job: JobId, what: ChangeVerb, version: Version) -> Changed {
        let change = [Change { if_version: Some(version), ..Change::new(job, what) }];
        self.store.change(&change, &Actor::new("suite"), Retain::default()).await.unwrap()[0]
    }

    /// Changes one job, which must succeed, and returns its version.
    pub async fn apply(&self, job: JobId, what: ChangeVerb) -> Version {
        let changed = self.change(job, what).await;
        let Changed::Applied { version, .. } = changed else { panic!("not applied: {changed:?}") };
        version
    }

    /// Reads a kind that must exist.
    pub async fn kind(&self, name: &str) -> Kind {
        let kinds = self.store.kinds().await.unwrap();
        kinds.into_iter().find(|kind| kind.name.as_str() == name).expect("the kind exists")
    }

    /// Changes a kind on behalf of an operator.
    pub async fn change_kind(&self, name: &str, change: KindChange) -> KindChanged {
        let name = KindName::parse(name).unwrap();
        self.store.change_kind(&name, &change, &Actor::new("suite")).await.unwrap()
    }

    /// Changes a kind, which must succeed, and returns it.
    pub async fn apply_kind(&self, name: &str, change: KindChange) -> Kind {
        let changed = self.change_kind(name, change).await;
        let KindChanged::Applied(kind) = changed else { panic!("not applied: {changed:?}") };
        kind
    }

    /// Parks a kind at its current generation.
    pub async fn park(&self, name: &str) -> Kind {
        let generation = self.kind(name).await.generation;
        self.apply_kind(name, KindChange::Park { generation, reason: "down".to_owned() }).await
    }

    /// Gives a holder the right to probe a parked kind.
    pub async fn probe(&self, name: &str, holder: HolderId) -> Kind {
        let generation = self.kind(name).await.generation;
        self.apply_kind(name, KindChange::Probe { generation, holder }).await
    }

    /// Unparks a kind.
    pub async fn unpark(&self, name: &str) -> Kind {
        let generation = self.kind(name).await.generation;
        self.apply_kind(name, KindChange::Unpark { generation }).await
    }

    /// Prunes once, except for audit entries.
    pub async fn prune(&self, limit: usize) -> Pruned {
        self.store.prune(&Prune { limit, audit_older_than: AGES }).await.unwrap()
    }

    /// Prunes until nothing is left to delete, and returns the totals.
    pub async fn prune_all(&self) -> Pruned {
        let mut total = Pruned::default();
        for _ in 0..1_000 {
            let pruned = self.prune(1_000).await;
            if pruned.is_nothing() {
                return total;
            }
            total.finished += pruned.finished;
            total.results += pruned.results;
            total.keys += pruned.keys;
            total.audit += pruned.audit;
            total.holders += pruned.holders;
            total.ledger += pruned.ledger;
        }
        panic!("pruning never ends: {total:?} so far");
    }

    /// Reads the store's time.
    pub async fn now(&self) -> Timestamp {
        self.store.now().await.unwrap()
    }
}
