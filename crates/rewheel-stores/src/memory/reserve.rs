//! Reserves room for new jobs under a tenant's job cap.

use super::world::World;
use rewheel_core::store::{Reserve, StoreResult};

impl World {
    pub(super) fn reserve(&mut self, reserve: &Reserve) -> StoreResult<u64> {
        self.must_be_alive(reserve.holder)?;
        let Reserve { holder, tenant, .. } = reserve;
        let mut reserved = std::mem::take(&mut self.reserved);
        reserved.retain(|(_, other), _| self.is_alive(*other));
        reserved.remove(&(tenant.clone(), *holder));
        let others =
            reserved.iter().filter(|((of, _), _)| of == tenant).map(|(_, jobs)| jobs).sum();
        let live = self.live.get(tenant).copied().unwrap_or(0);
        let granted = reserve.granted(live, others);
        if granted > 0 {
            reserved.insert((tenant.clone(), *holder), granted);
        }
        self.reserved = reserved;
        Ok(granted)
    }
}
