//! Enforces the limit of live jobs of a tenant (`jobs_max`).

mod reserved;
mod fit;

use self::reserved::{Reserved, Taken};
use crate::shared::Shared;
use crate::submit;
use crate::tenant_settings::TenantBook;
use rewheel_core::store::{Insert, Inserted, StoreResult};
use rewheel_core::{NewJob, Tenant};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of tenants to keep before those without a reservation are removed.
const REMEMBERED_MAX: usize = 10_000;

/// This engine's reservations for tenants with a cap.
#[derive(Debug)]
pub(crate) struct Caps {
    tenants: TenantBook,
    /// Whether any tenant has a cap.
    are_any: bool,
    rooms: Mutex<HashMap<Tenant, Arc<Reserved>>>,
}

impl Caps {
    pub(crate) fn new(tenants: TenantBook) -> Caps {
        let are_any = tenants.says(|settings| settings.jobs_max.is_some());
        Caps { tenants, are_any, rooms: Mutex::default() }
    }

    /// Returns whether any tenant has a concurrency limit.
    pub(crate) fn limit_concurrency(&self) -> bool {
        self.tenants.says(|settings| settings.concurrency_max.is_some())
    }

    /// Returns a tenant's cap on live jobs.
    pub(crate) fn jobs_max(&self, tenant: &Tenant) -> Option<u64> {
        self.tenants.of(tenant).jobs_max
    }

    fn room(&self, tenant: &Tenant) -> Arc<Reserved> {
        // No code under this lock can panic.
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(tenant) {
            return Arc::clone(room);
        }
        if rooms.len() >= REMEMBERED_MAX {
            rooms.retain(|_, room| Arc::strong_count(room) > 1 || !room.is_empty());
        }
        Arc::clone(rooms.entry(tenant.clone()).or_default())
    }

    /// Forgets all reservations: the store may have forgotten them, and gives others the same part.
    pub(crate) fn forget(&self) {
        self.all().iter().for_each(|(_, room)| room.forget());
    }

    fn all(&self) -> Vec<(Tenant, Arc<Reserved>)> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.iter().map(|(tenant, room)| (tenant.clone(), Arc::clone(room))).collect()
    }
}

/// Inserts jobs, within the caps of their tenants.
pub(crate) async fn insert(
    shared: &Arc<Shared>,
    insert: &Insert<'_>,
) -> StoreResult<Vec<Inserted>> {
    let needs = needs(shared, insert.jobs);
    if needs.is_empty() {
        return submit::insert(shared, insert).await;
    }
    let mut taken = BTreeMap::new();
    for (tenant, need) in needs {
        let room = shared.intake.caps.room(tenant);
        taken.insert(tenant.clone(), reserved::take(shared, &room, tenant, need).await?);
    }
    if taken.values().any(Taken::is_short) {
        return fit::insert(shared, insert, taken).await;
    }
    let answers = submit::insert(shared, insert).await?;
    note(&mut taken, insert.jobs, &answers);
    Ok(answers)
}

/// Releases reservations that were not used for a while: other engines may need them.
pub(crate) async fn give_back_unused(shared: &Shared) -> StoreResult<()> {
    for (tenant, room) in shared.intake.caps.all() {
        reserved::give_back_unused(shared, &room, &tenant).await?;
    }
    Ok(())
}

/// Returns how much of each tenant's cap a batch needs.
fn needs<'j>(shared: &Shared, jobs: &'j [NewJob]) -> BTreeMap<&'j Tenant, u64> {
    let mut needs = BTreeMap::new();
    if shared.intake.caps.are_any {
        let tenants = jobs.iter().filter_map(|job| job.tenant.as_ref());
        for tenant in tenants.filter(|tenant| shared.intake.caps.jobs_max(tenant).is_some()) {
            *needs.entry(tenant).or_default() += 1;
        }
    }
    needs
}

/// Records the results of jobs for which part of a reservation was taken.
fn note(taken: &mut BTreeMap<Tenant, Taken>, jobs: &[NewJob], answers: &[Inserted]) {
    for (job, answer) in jobs.iter().zip(answers) {
        if let Some(taken) = job.tenant.as_ref().and_then(|tenant| taken.get_mut(tenant)) {
            taken.note(lives(job, answer));
        }
    }
}

/// Returns whether a new job now exists. A job that was sent again is a duplicate of itself.
fn lives(job: &NewJob, answer: &Inserted) -> bool {
    match answer {
        Inserted::Created { .. } => true,
        Inserted::Duplicate { job: known, .. } => *known == job.id,
        Inserted::Replaced { .. } | Inserted::Refused(_) | Inserted::LeftOut => false,
    }
}
