//! How much of an engine each tenant takes, or may take.

use crate::park::Load;
use crate::tenant_settings::TenantBook;
use rewheel_core::Tenant;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Tenants that are remembered before those with nothing in hand are forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// What each tenant has of this engine.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    /// Of those who name none.
    none: Arc<Load>,
    named: Mutex<HashMap<Tenant, Arc<Load>>>,
    are_several: AtomicBool,
    book: TenantBook,
    have_caps: bool,
}

impl Tenants {
    pub(crate) fn new(book: TenantBook) -> Tenants {
        let have_caps = book.says(|settings| settings.jobs_max.is_some());
        Tenants { book, have_caps, ..Tenants::default() }
    }

    /// Returns whether any tenant has a cap.
    pub(crate) const fn have_caps(&self) -> bool {
        self.have_caps
    }

    /// Returns how many live jobs a tenant may have.
    pub(crate) fn jobs_max(&self, tenant: &Tenant) -> Option<u64> {
        self.book.of(tenant).jobs_max
    }

    pub(crate) fn load(&self, tenant: Option<&Tenant>) -> Arc<Load> {
        let Some(tenant) = tenant else { return Arc::clone(&self.none) };
        // Nothing that can panic happens under this lock.
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = named.get(tenant) {
            return Arc::clone(load);
        }
        if named.len() >= REMEMBERED_MAX {
            named.retain(|_, load| !load.is_idle());
        }
        Arc::clone(named.entry(tenant.clone()).or_default())
    }

    /// Notes whether more than one has something due.
    pub(crate) fn note<'t>(&self, mut due: impl Iterator<Item = Option<&'t Tenant>>) {
        let first = due.next();
        let are_several = first.is_some_and(|first| due.any(|other| other != first));
        self.are_several.store(are_several, Ordering::Relaxed);
    }

    /// Returns how many of the places one may have. The last fifth is for the others, while others have something due.
    pub(crate) fn places_of_one(&self, places: usize) -> usize {
        if self.are_several.load(Ordering::Relaxed) { places - places / 5 } else { places }
    }
}

#[cfg(test)]
mod tests {
    use super::Tenants;
    use rewheel_core::Tenant;

    #[test]
    fn the_last_fifth_is_for_others_while_there_are_others() {
        let tenants = Tenants::default();
        let (a, b) = (Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        for (due, places) in [
            (vec![], 10),
            (vec![Some(&a), Some(&a)], 10),
            (vec![None, Some(&a)], 8),
            (vec![Some(&a), Some(&b)], 8),
        ] {
            tenants.note(due.into_iter());
            assert_eq!(tenants.places_of_one(10), places);
        }
    }

    #[test]
    fn one_tenant_has_one_load() {
        let tenants = Tenants::default();
        let (a, b) = (Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        let _running = tenants.load(Some(&a)).begin(1);
        assert!(tenants.load(Some(&a)).begin(1).is_none());
        assert!(tenants.load(Some(&b)).begin(1).is_some() && tenants.load(None).begin(1).is_some());
    }
}
