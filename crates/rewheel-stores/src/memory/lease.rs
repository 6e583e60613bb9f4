//! Registers holders, renews leases and expires dead holders.

use super::world::{Row, World};
use rewheel_core::store::{HolderExpiry, Renewed, StoreError, StoreResult, WantedJob, WatchShare};
use rewheel_core::{Holder, HolderId, Lease, Limits, NewHolder, Role, Timestamp};

impl World {
    pub(super) fn join(&mut self, new: &NewHolder, now: Timestamp) -> StoreResult<Timestamp> {
        if self.holders.contains_key(&new.id) {
            self.must_be_alive(new.id)?;
            return Ok(now);
        }
        if self.format.is_some_and(|used| new.format < used) {
            let why = format!("the release of {} is too old for jobs in this store", new.name);
            return Err(StoreError::Rejected(why.into()));
        }
        let holder = Holder {
            id: new.id,
            name: new.name.clone(),
            role: new.role,
            lease_ttl: new.lease_ttl,
            format: new.format,
            renewals: 0,
            joined: now,
            renewed: now,
            expired: false,
            died: None,
        };
        self.holders.insert(new.id, holder);
        Ok(now)
    }

    pub(super) fn renew(&mut self, id: HolderId, now: Timestamp) -> StoreResult<Renewed> {
        let wanted = self.wanted(id);
        let holder = self.holders.get_mut(&id).filter(|holder| holder.died.is_none());
        let holder = holder.ok_or(StoreError::HolderDead(id))?;
        holder.renewals += 1;
        holder.renewed = now;
        Ok(Renewed { at: now, renewals: holder.renewals, wanted })
    }

    /// Returns every engine that is alive.
    pub(super) fn engines(&self) -> Vec<HolderId> {
        let is_one = |holder: &&Holder| holder.role == Role::Engine && holder.died.is_none();
        self.holders.values().filter(is_one).map(|holder| holder.id).collect()
    }

    fn wanted(&self, by: HolderId) -> Vec<WantedJob> {
        let wanted = |row: &Row| {
            let lease = Lease { job: row.job.id, fence: row.job.fence };
            row.wanted().map(|wanted| WantedJob { lease, wanted })
        };
        let held = self.jobs.values().filter(|row| row.holder() == Some(by));
        held.filter_map(wanted).take(Limits::BATCH_MAX).collect()
    }

    pub(super) fn leave(&mut self, id: HolderId, now: Timestamp) {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.died.get_or_insert(now);
        }
    }

    pub(super) fn holders(&self, now: Timestamp) -> Vec<Holder> {
        self.holders.values().map(|holder| seen(holder, now)).collect()
    }

    pub(super) fn watched_holders(&self, share: WatchShare, now: Timestamp) -> Vec<Holder> {
        let number = |id: HolderId| {
            let [.., a, b, c, d] = id.to_bytes();
            u64::from(u32::from_be_bytes([a, b, c, d]))
        };
        let is_watched =
            |holder: &&Holder| holder.role == Role::Engine || share.has(number(holder.id));
        let living = self.holders.values().filter(|holder| holder.died.is_none());
        living.filter(is_watched).map(|holder| seen(holder, now)).collect()
    }

    pub(super) fn holder(&self, id: HolderId, now: Timestamp) -> Option<Holder> {
        self.holders.get(&id).map(|holder| seen(holder, now))
    }

    pub(super) fn expire_holder(
        &mut self,
        by: HolderId,
        other: HolderId,
        renewals: u64,
        now: Timestamp,
    ) -> StoreResult<HolderExpiry> {
        self.must_be_alive(by)?;
        let Some(holder) = self.holders.get_mut(&other).filter(|other| other.died.is_none()) else {
            return Ok(HolderExpiry::Dead);
        };
        if holder.renewals != renewals || !has_expired(holder, now) {
            return Ok(HolderExpiry::Alive);
        }
        holder.died = Some(now);
        Ok(HolderExpiry::Expired)
    }
}

fn seen(holder: &Holder, now: Timestamp) -> Holder {
    Holder { expired: has_expired(holder, now), ..holder.clone() }
}

fn has_expired(holder: &Holder, now: Timestamp) -> bool {
    holder.renewed.plus(holder.lease_ttl) <= now
}
