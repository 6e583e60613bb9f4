//! The shards that this engine prefers.

use crate::shared::lock;
use rewheel_core::{HolderId, NewJob, Shard};
use std::sync::Mutex;

/// Chooses the shard of a job. The default is [`Shard::of`] its tenant and shard key, if engines on several machines can share
/// the store. For SQLite and the memory store, the engine ignores shard keys by default, because additional lanes cost more
/// than they save.
///
/// Each engine of a fleet prefers jobs of its own shards, and takes other jobs if it has free capacity. Every eighth claim
/// prefers no shard, so that no job waits for a busy owner. So the next job of a customer mostly runs on the engine that has
/// cached the data of this customer. This is a preference: there is no guarantee that two jobs of a shard run on the same
/// engine, or one after the other.
///
/// ```
/// use rewheel_engine::{NewJob, Report, Shard};
/// use rewheel_engine::Engine;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // For any tenant: all jobs with the same shard key share a shard.
/// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
///     .raw_handler("mail", |_| async { Report::Done })
///     .shards(|job: &NewJob| Shard::of(None, job.shard_key.as_ref()))
///     .start()
///     .await?;
/// let job = engine.submit_raw("mail", Vec::new()).tenant("acme").shard_key("eu").into_job()?;
/// assert_eq!(job.lane().shard, Shard::of(None, job.shard_key.as_ref()));
/// # Ok(())
/// # }
/// ```
pub trait ShardRouter: Send + Sync {
    /// Returns the job's shard.
    fn shard(&self, job: &NewJob) -> Shard;
}

impl<F: Fn(&NewJob) -> Shard + Send + Sync> ShardRouter for F {
    fn shard(&self, job: &NewJob) -> Shard {
        self(job)
    }
}

/// Which shards belong to which engine.
pub(crate) struct Shards {
    router: Option<Box<dyn ShardRouter>>,
    /// Whether engines on other machines may share the store.
    is_remote: bool,
    fleet: Mutex<Fleet>,
}

#[derive(Default)]
struct Fleet {
    me: Option<HolderId>,
    /// Every live engine, as far as this engine knows.
    holders: Vec<HolderId>,
    /// The shards of other engines, by number.
    foreign: Vec<bool>,
}

impl Shards {
    pub(crate) fn new(router: Option<Box<dyn ShardRouter>>, is_remote: bool) -> Shards {
        Shards { router, is_remote, fleet: Mutex::default() }
    }

    /// Returns jobs with their shards; `None` if all have their default shard.
    pub(crate) fn route(&self, jobs: &[NewJob]) -> Option<Vec<NewJob>> {
        let has_key = |job: &NewJob| job.shard_key.is_some();
        let route: &dyn Fn(&NewJob) -> Shard = match &self.router {
            Some(router) => &|job| router.shard(job),
            None if self.is_remote || !jobs.iter().any(has_key) => return None,
            None => &|job| Shard::of(job.tenant.as_ref(), None),
        };
        let shard = |job: &NewJob| job.shard.unwrap_or_else(|| route(job));
        let routed = jobs.iter().map(|job| NewJob { shard: Some(shard(job)), ..job.clone() });
        Some(routed.collect())
    }

    /// Sets the live engines.
    pub(crate) fn heard(&self, me: HolderId, mut holders: Vec<HolderId>) {
        if !holders.contains(&me) {
            holders.push(me);
        }
        holders.sort_unstable();
        let mut fleet = lock(&self.fleet);
        if fleet.me == Some(me) && fleet.holders == holders {
            return;
        }
        let is_foreign = |number| Shard::new(number).owner(&holders) != Some(me);
        let foreign = (0..=u8::MAX).map(is_foreign).collect();
        *fleet = Fleet { me: Some(me), holders, foreign };
    }

    /// Returns whether this engine does the work that one engine does for all: it has the smallest id of the live engines. An engine that
    /// has not heard of others yet does it too.
    pub(crate) fn is_first(&self) -> bool {
        let fleet = lock(&self.fleet);
        fleet.me.is_none() || fleet.holders.first() == fleet.me.as_ref()
    }

    /// Returns whether a shard belongs to another engine.
    pub(crate) fn is_foreign(&self, shard: Shard) -> bool {
        let fleet = lock(&self.fleet);
        let foreign = fleet.foreign.get(usize::from(shard.number()));
        shard.number() != Shard::NONE.number() && foreign.is_some_and(|foreign| *foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::Shards;
    use rewheel_core::{HolderId, JobId, KindName, NewJob, Shard, ShardKey, Tenant};
    use std::slice::from_ref;

    fn foreign(shards: &Shards) -> Vec<bool> {
        (0..=64).map(|number| shards.is_foreign(Shard::new(number))).collect()
    }

    #[test]
    fn each_shard_is_one_holders() {
        let holders: Vec<HolderId> = (0..3).map(|nth| HolderId::from_bytes([nth; 16])).collect();
        let seen = holders.iter().map(|me| {
            let shards = Shards::new(None, true);
            // An engine may not be in its own list yet.
            shards.heard(*me, holders.iter().copied().filter(|holder| holder != me).collect());
            foreign(&shards)
        });
        let seen: Vec<Vec<bool>> = seen.collect();
        assert!(seen.iter().all(|foreign| !foreign[0]), "what has no shard is everybody's");
        for shard in 1..=64 {
            let owners = seen.iter().filter(|foreign| !foreign[shard]).count();
            assert_eq!(owners, 1, "of shard {shard}");
        }
    }

    #[test]
    fn where_there_are_no_other_machines_a_shard_key_makes_no_lanes() {
        let (kind, tenant) = (KindName::parse("mail").unwrap(), Tenant::parse("acme").ok());
        let id = JobId::from_bytes([1; 16]);
        let plain = NewJob { tenant: tenant.clone(), ..NewJob::new(id, kind, Vec::new()) };
        let keyed = NewJob { shard_key: ShardKey::parse("eu").ok(), ..plain.clone() };
        let named = NewJob { shard: Some(Shard::new(7)), ..keyed.clone() };
        assert_eq!(Shards::new(None, true).route(from_ref(&keyed)), None);
        assert_eq!(Shards::new(None, false).route(from_ref(&plain)), None);
        let routed = Shards::new(None, false).route(&[plain.clone(), keyed, named]).unwrap();
        let lanes: Vec<Shard> = routed.iter().map(|job| job.lane().shard).collect();
        assert_eq!(lanes, [plain.lane().shard, plain.lane().shard, Shard::new(7)]);
    }

    #[test]
    fn a_single_node_has_all_shards() {
        let shards = Shards::new(None, true);
        assert_eq!(foreign(&shards), [false; 65]);
        shards.heard(HolderId::from_bytes([1; 16]), vec![HolderId::from_bytes([2; 16])]);
        assert!(foreign(&shards).contains(&true));
        shards.heard(HolderId::from_bytes([1; 16]), Vec::new());
        assert_eq!(foreign(&shards), [false; 65]);
    }
}
