//! The name of a group.

use crate::name::{GroupKey, KindName, Tenant};
use std::fmt;

/// Identifies a group: the jobs of one kind and tenant with the same group key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName {
    /// The kind of its jobs.
    pub kind: KindName,
    /// Their tenant.
    pub tenant: Option<Tenant>,
    /// Their group key.
    pub key: GroupKey,
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of kind `{}`", self.key, self.kind)?;
        match &self.tenant {
            Some(tenant) => write!(f, " and tenant `{tenant}`"),
            None => Ok(()),
        }
    }
}
