//! How a store releases a job of a group.

use rewheel_core::JobId;

/// When a job is released. Neither case changes the version of the job: an operator's edit need not fail because the turn of the job came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release<'j> {
    /// With the insert of these jobs, which are due as submitted.
    WithInsert(&'j [JobId]),
    /// Later: a job that waited for others of its group is due from now on, if it was due before. So the time that it waited does not
    /// count as queue wait, and a claim finds it behind the jobs that became due earlier.
    AfterWait,
}

impl<'j> Release<'j> {
    /// Returns the jobs that are due as submitted.
    pub(crate) fn inserted(self) -> &'j [JobId] {
        match self {
            Release::WithInsert(jobs) => jobs,
            Release::AfterWait => &[],
        }
    }
}

/// The name of a line: the unfinished jobs of one group.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    pub(crate) key: String,
    pub(crate) kind: String,
    /// Empty: no tenant.
    pub(crate) tenant: String,
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
impl Line {
    /// Returns the name of the group; `None` for one that no release of Rewheel can have written.
    pub(crate) fn name(&self) -> Option<rewheel_core::store::GroupName> {
        let tenant = Some(self.tenant.as_str()).filter(|tenant| !tenant.is_empty());
        Some(rewheel_core::store::GroupName {
            kind: rewheel_core::KindName::parse(&self.kind).ok()?,
            tenant: tenant.map(rewheel_core::Tenant::parse).transpose().ok()?,
            key: rewheel_core::GroupKey::parse(&self.key).ok()?,
        })
    }
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
impl Line {
    /// Returns the line of a job, given its group key.
    pub(crate) fn of(lane: &rewheel_core::Lane, key: &str) -> Line {
        let tenant = lane.tenant.as_ref().map_or("", rewheel_core::Tenant::as_str);
        let (key, kind) = (key.to_owned(), lane.kind.as_str().to_owned());
        Line { key, kind, tenant: tenant.to_owned() }
    }

    /// Returns the line of a stored job, if it has a group.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_job(job: &rewheel_core::Job) -> Option<Line> {
        Some(Line::of(&job.lane, job.group.as_ref()?.key.as_str()))
    }

    /// Returns the line of a new job, if it has a group.
    pub(crate) fn of_new(job: &rewheel_core::NewJob) -> Option<Line> {
        let tenant = job.tenant.as_ref().map_or("", rewheel_core::Tenant::as_str);
        let (key, kind) = (job.group_key.as_ref()?.to_string(), job.kind.as_str().to_owned());
        Some(Line { key, kind, tenant: tenant.to_owned() })
    }
}

/// The line that the latest call of `release_groups` checked last. A process that starts anew begins with the first line.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
#[derive(Debug, Default)]
pub(crate) struct CheckedTo(std::sync::Mutex<Line>);

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
impl CheckedTo {
    pub(crate) fn get(&self) -> Line {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Records the lines of a check with this limit. After the last line the next check starts again.
    pub(crate) fn set(&self, last: Option<Line>, checked: usize, limit: usize) {
        let next = last.filter(|_| checked >= limit).unwrap_or_default();
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = next;
    }
}
