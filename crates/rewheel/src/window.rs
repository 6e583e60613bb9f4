//! Counts the outcomes of recent calls.

mod count;
mod time;

pub(crate) use self::count::CountWindow;
pub(crate) use self::time::TimeWindow;

/// The counts of a window at one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) slow: u64,
}

/// One outcome to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) failed: bool,
    pub(crate) slow: bool,
}

#[cfg(test)]
mod tests;
