//! Remembers the row position (`ctid`) of claimed jobs, and the claim list that names them.

use rewheel_core::{Fence, JobId, Lease};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Maximum number of remembered jobs: more than a process holds. A job that is not remembered costs a lookup.
const REMEMBERED_MAX: usize = 100_000;

/// The `ctid` of a row: block and position. With it a settle needs no index lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowAddress([u8; 6]);

impl<'a> FromSql<'a> for RowAddress {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<RowAddress, Box<dyn Error + Sync + Send>> {
        Ok(RowAddress(raw.try_into()?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }
}

impl ToSql for RowAddress {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TID
    }

    to_sql_checked!();
}

/// The number of a claim's list, and when it was created. After a restore from a backup another list may get the same number.
pub(super) type List = (i64, i64);

/// The row positions of jobs when this process claimed them. They are hints: statements check the row they find.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    jobs: HashMap<JobId, Spot>,
    /// The number of unsettled jobs of each list.
    unsettled: HashMap<List, usize>,
    /// Lists whose jobs are all settled.
    done: Vec<List>,
}

#[derive(Clone, Copy, Debug)]
struct Spot {
    fence: Fence,
    place: RowAddress,
    list: Option<List>,
    /// Whether the job has a group.
    grouped: bool,
}

/// The row positions of jobs that are about to be settled.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) places: Vec<Option<RowAddress>>,
    lists: Vec<Option<List>>,
}

impl Places {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers jobs that were claimed together.
    pub(super) fn remember(&self, jobs: &[(Lease, RowAddress)], list: Option<List>) {
        let mut known = self.known();
        if known.jobs.len() + jobs.len() > REMEMBERED_MAX {
            // The sweep removes lists that are forgotten here.
            *known = Known::default();
        }
        for (lease, place) in jobs {
            let spot = Spot { fence: lease.fence, place: *place, list, grouped: false };
            known.jobs.insert(lease.job, spot);
        }
        if let Some(list) = list {
            known.unsettled.insert(list, jobs.len());
        }
    }

    /// Remembers which of these jobs have a group.
    pub(super) fn remember_groups(&self, grouped: impl Iterator<Item = JobId>) {
        let mut known = self.known();
        for job in grouped {
            if let Some(spot) = known.jobs.get_mut(&job) {
                spot.grouped = true;
            }
        }
    }

    /// Returns those of these jobs that are known to have a group.
    pub(super) fn grouped(&self, jobs: impl Iterator<Item = JobId>) -> HashSet<JobId> {
        let known = self.known();
        jobs.filter(|job| known.jobs.get(job).is_some_and(|spot| spot.grouped)).collect()
    }

    /// Forgets everything: the rows may be others.
    pub(super) fn forget(&self) {
        *self.known() = Known::default();
    }

    /// Returns the row positions of jobs, and forgets them: settling moves the rows.
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

    /// Counts down the unsettled jobs of their lists.
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

    /// Forgets lists whose jobs were only partly settled: their count is no longer correct. The sweep removes such lists.
    pub(super) fn forget_lists(&self, taken: &Taken) {
        let mut known = self.known();
        for list in taken.lists.iter().flatten() {
            known.unsettled.remove(list);
        }
    }

    /// Returns the lists that are no longer needed, each only once.
    pub(super) fn done(&self) -> (Vec<i64>, Vec<i64>) {
        std::mem::take(&mut self.known().done).into_iter().unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::{Places, RowAddress};
    use rewheel_core::{Fence, JobId, Lease};

    fn lease(job: u8, fence: u64) -> Lease {
        Lease { job: JobId::from_bytes([job; 16]), fence: Fence::new(fence) }
    }

    #[test]
    fn a_list_is_done_when_the_last_of_its_jobs_is_settled() {
        let places = Places::default();
        places.remember(
            &[(lease(1, 1), RowAddress([1; 6])), (lease(2, 1), RowAddress([2; 6]))],
            Some((7, 1)),
        );
        let one = places.take([lease(1, 1)].into_iter());
        assert_eq!(one.places, [Some(RowAddress([1; 6]))]);
        places.settled(&one);
        assert!(places.done().0.is_empty());
        // A job that was not settled leaves only its list behind.
        places.settled(&places.take([lease(2, 9)].into_iter()));
        assert!(places.done().0.is_empty());
        places.remember(&[(lease(3, 1), RowAddress([3; 6]))], Some((8, 1)));
        places.settled(&places.take([lease(3, 1)].into_iter()));
        assert_eq!(places.done(), (vec![8], vec![1]));
        assert!(places.done().0.is_empty());
    }

    #[test]
    fn a_list_that_is_not_counted_any_more_is_forgotten() {
        let places = Places::default();
        places.remember(
            &[(lease(1, 1), RowAddress([1; 6])), (lease(2, 1), RowAddress([2; 6]))],
            Some((7, 1)),
        );
        places.forget_lists(&places.take([lease(1, 1)].into_iter()));
        assert!(places.known().unsettled.is_empty());
        places.settled(&places.take([lease(2, 1)].into_iter()));
        assert!(places.done().0.is_empty());
    }

    #[test]
    fn jobs_with_a_group_are_known_until_they_are_settled() {
        let places = Places::default();
        let jobs = || [1, 2].map(|job| lease(job, 1)).into_iter();
        places.remember(&jobs().map(|lease| (lease, RowAddress([1; 6]))).collect::<Vec<_>>(), None);
        places.remember_groups([2, 3].map(|job| lease(job, 1).job).into_iter());
        let grouped =
            || places.grouped(jobs().map(|lease| lease.job)).into_iter().collect::<Vec<_>>();
        assert_eq!(grouped(), [lease(2, 1).job]);
        places.take(jobs());
        assert_eq!(grouped(), []);
    }

    #[test]
    fn a_place_under_another_fence_is_not_known() {
        let places = Places::default();
        places.remember(&[(lease(1, 1), RowAddress([1; 6]))], None);
        assert_eq!(places.take([lease(1, 2)].into_iter()).places, [None]);
    }
}
