//! Counts the outcomes of recent calls.

mod count;
mod time;

pub(crate) use self::count::CountWindow;
pub(crate) use self::time::TimeWindow;

/// What a window holds at some instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) slow: u64,
}

/// One outcome to be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) failed: bool,
    pub(crate) slow: bool,
}

#[cfg(test)]
mod tests;
