//! Counts the heap allocations of a call.

use super::Check;

/// Fails a subject that allocates.
pub fn none(call: impl FnMut()) -> Check {
    let count = count(call);
    Check { text: format!("{count} allocations"), errors: count }
}

/// Only reports the number.
pub fn reported(call: impl FnMut()) -> Check {
    Check { text: format!("{} allocations", count(call)), errors: 0 }
}

fn count(mut call: impl FnMut()) -> u64 {
    // The first call may initialize shared state, such as thread-local variables.
    call();
    allocation_counter::measure(call).count_total
}
