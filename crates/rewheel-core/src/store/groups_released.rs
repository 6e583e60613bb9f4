//! The result of a check of groups.

/// Result of [`OperateStore::release_groups`](super::OperateStore::release_groups).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupsReleased {
    /// Number of checked groups.
    pub checked: usize,
    /// Number of jobs that may run now.
    pub released: usize,
}
