//! Remembers the row position (`ctid`) of claimed jobs, and the claim list that names them.

use rewheel_core::{Fence, JobId, Lease};
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Jobs that are remembered: more than a process holds. Forgetting one costs a lookup.
const REMEMBERED_MAX: usize = 100_000;

/// Block and number of a row: the `ctid`. It spares a settle the way through the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place([u8; 6]);

impl<'a> FromSql<'a> for Place {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Place, Box<dyn Error + Sync + Send>> {
        Ok(Place(raw.try_into()?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }
}

impl ToSql for Place {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }

    to_sql_checked!();
}

/// The number of a claim's list, and when it was made. After a restore from a backup another list may get the number.
pub(super) type List = (i64, i64);

/// Where jobs were when this process claimed them. A hint: whoever uses it checks what is there.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    jobs: HashMap<JobId, Spot>,
    /// How many of each list's jobs are not settled yet.
    unsettled: HashMap<List, usize>,
    /// Lists of which everything is settled.
    done: Vec<List>,
}

#[derive(Clone, Copy, Debug)]
struct Spot {
    fence: Fence,
    place: Place,
    list: Option<List>,
}

/// Where jobs are that are about to be settled.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) places: Vec<Option<Place>>,
    lists: Vec<Option<List>>,
}

impl Places {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic happens under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers jobs that were claimed together.
    pub(super) fn remember(&self, jobs: &[(Lease, Place)], list: Option<List>) {
        let mut known = self.known();
        if known.jobs.len() + jobs.len() > REMEMBERED_MAX {
            // Lists that are forgotten are taken away by whoever looks for old ones.
            *known = Known::default();
        }
        for (lease, place) in jobs {
            let spot = Spot { fence: lease.fence, place: *place, list };
            known.jobs.insert(lease.job, spot);
        }
        if let Some(list) = list {
            known.unsettled.insert(list, jobs.len());
        }
    }

    /// Returns where jobs were, and forgets it: they are about to be elsewhere.
    pub(super) fn take(&self, leases: impl Iterator<Item = Lease>) -> Taken {
        let mut known = self.known();
        let (places, lists) = leases
            .map(|lease| match known.jobs.remove(&lease.job) {
                Some(spot) if spot.fence == lease.fence => (Some(spot.place), spot.list),
                Some(_) | None => (None, None),
            })
            .unzip();
        Taken { places, lists }
    }

    /// Counts jobs that have left their lists.
    pub(super) fn settled(&self, taken: &Taken) {
        let mut known = self.known();
        for list in taken.lists.iter().flatten() {
            let Some(left) = known.unsettled.get_mut(list) else { continue };
            *left -= 1;
            if *left == 0 {
                known.unsettled.remove(list);
                known.done.push(*list);
            }
        }
    }

    /// Forgets lists of which some jobs were not settled as they were taken: nobody counts those any more. Whoever looks for old
    /// lists takes them away.
    pub(super) fn forget_lists(&self, taken: &Taken) {
        let mut known = self.known();
        for list in taken.lists.iter().flatten() {
            known.unsettled.remove(list);
        }
    }

    /// Returns the lists that are of no use any more, once.
    pub(super) fn done(&self) -> (Vec<i64>, Vec<i64>) {
        std::mem::take(&mut self.known().done).into_iter().unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Places};
    use rewheel_core::{Fence, JobId, Lease};

    fn lease(job: u8, fence: u64) -> Lease {
        Lease { job: JobId::from_bytes([job; 16]), fence: Fence::new(fence) }
    }

    #[test]
    fn a_list_is_done_when_the_last_of_its_jobs_is_settled() {
        let places = Places::default();
        places
            .remember(&[(lease(1, 1), Place([1; 6])), (lease(2, 1), Place([2; 6]))], Some((7, 1)));
        let one = places.take([lease(1, 1)].into_iter());
        assert_eq!(one.places, [Some(Place([1; 6]))]);
        places.settled(&one);
        assert!(places.done().0.is_empty());
        // What was not settled leaves nothing behind but the list.
        places.settled(&places.take([lease(2, 9)].into_iter()));
        assert!(places.done().0.is_empty());
        places.remember(&[(lease(3, 1), Place([3; 6]))], Some((8, 1)));
        places.settled(&places.take([lease(3, 1)].into_iter()));
        assert_eq!(places.done(), (vec![8], vec![1]));
        assert!(places.done().0.is_empty());
    }

    #[test]
    fn a_list_that_nobody_counts_any_more_is_forgotten() {
        let places = Places::default();
        places
            .remember(&[(lease(1, 1), Place([1; 6])), (lease(2, 1), Place([2; 6]))], Some((7, 1)));
        places.forget_lists(&places.take([lease(1, 1)].into_iter()));
        assert!(places.known().unsettled.is_empty());
        places.settled(&places.take([lease(2, 1)].into_iter()));
        assert!(places.done().0.is_empty());
    }

    #[test]
    fn a_place_under_another_fence_is_not_known() {
        let places = Places::default();
        places.remember(&[(lease(1, 1), Place([1; 6]))], None);
        assert_eq!(places.take([lease(1, 2)].into_iter()).places, [None]);
    }
}
