//! Remembers where in the table a claimed job is.

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

/// Where jobs were when this process claimed them. A hint: whoever uses it checks what is there.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<JobId, (Fence, Place)>>);

impl Places {
    fn known(&self) -> MutexGuard<'_, HashMap<JobId, (Fence, Place)>> {
        // Nothing that can panic happens under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn remember(&self, jobs: impl Iterator<Item = (Lease, Place)>) {
        let mut known = self.known();
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.extend(jobs.map(|(lease, place)| (lease.job, (lease.fence, place))));
    }

    /// Returns where jobs were, and forgets it: they are about to be elsewhere.
    pub(super) fn take(&self, leases: impl Iterator<Item = Lease>) -> Vec<Option<Place>> {
        let mut known = self.known();
        leases
            .map(|lease| {
                let (fence, place) = known.remove(&lease.job)?;
                (fence == lease.fence).then_some(place)
            })
            .collect()
    }
}
