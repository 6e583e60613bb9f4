//! Says whether opening a store may create or migrate its tables.

/// What opening a store does with its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// Creates them, and applies the missing migrations.
    Migrate,
    /// Leaves them as they are, and refuses tables of another version.
    Keep,
}

/// Says why tables of an earlier version are refused, and what to do. `found` is 0 if there are none.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) fn outdated(found: usize, wanted: usize) -> String {
    if found == 0 {
        return "the store has no tables of Rewheel: check the URL; to create the tables, run `rewheel migrate`".to_owned();
    }
    format!(
        "the tables have version {found}, and this version of Rewheel needs version {wanted}: to update the tables, run `rewheel migrate` (there is no way back); \
         to leave them as they are, use the version of Rewheel that wrote them"
    )
}
