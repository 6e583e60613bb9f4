//! Counts the heap allocations of a call.

use super::Check;

/// Fails a subject that allocates at all.
pub fn none(call: impl FnMut()) -> Check {
    let count = count(call);
    Check { text: format!("{count} allocations"), errors: count }
}

/// Only says how many there are.
pub fn reported(call: impl FnMut()) -> Check {
    Check { text: format!("{} allocations", count(call)), errors: 0 }
}

fn count(mut call: impl FnMut()) -> u64 {
    // The first call may set up what the others share, such as thread-local state.
    call();
    allocation_counter::measure(call).count_total
}
