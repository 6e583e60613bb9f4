//! The events of a random walk.

use proptest::prelude::*;
use rewheel::millis;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Pass(Duration),
    Fleet(usize),
    Pause(usize, bool),
    Park(usize, Option<bool>),
    Unpark(usize),
    Close(usize),
    Limit(usize, Option<usize>),
    Grant(usize, u32),
    /// The host that two of the kinds call asks to wait.
    Hold(Duration),
    /// A job becomes due here, without a claim.
    Come(usize, usize),
    /// A job is claimed.
    Claim(usize, usize),
    /// A waiting job asks to run.
    Ask(prop::sample::Index, bool, u8),
    /// An attempt ends.
    End(prop::sample::Index, End),
    /// A result is durable.
    Settle(prop::sample::Index),
    /// A waiting job leaves.
    Leave(prop::sample::Index),
    /// A new job goes directly to a slot, if one is free for it.
    Direct(usize, usize),
    /// A worker claims up to so many jobs of a lane.
    Worker(usize, usize, usize),
    /// A worker's attempt ends, or the worker never got the job.
    WorkerEnd(prop::sample::Index, End),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Well,
    Badly,
    /// It says nothing about the dependency.
    Silent,
    Unused,
    Panic,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let end =
        prop::sample::select(vec![End::Well, End::Badly, End::Silent, End::Unused, End::Panic]);
    let worker_end = end.clone();
    prop_oneof![
        4 => (0..3_000_u64).prop_map(|time| Step::Pass(millis(time))),
        1 => (1..5_usize).prop_map(Step::Fleet),
        1 => (0..3_usize, any::<bool>()).prop_map(|(kind, paused)| Step::Pause(kind, paused)),
        2 => (0..3_usize, any::<Option<bool>>()).prop_map(|(kind, prober)| Step::Park(kind, prober)),
        2 => (0..3_usize).prop_map(Step::Unpark),
        1 => (0..3_usize).prop_map(Step::Close),
        1 => (0..3_usize, any::<Option<bool>>())
            .prop_map(|(kind, most)| Step::Limit(kind, most.map(|two| 1 + usize::from(two)))),
        1 => (0..3_usize, 0..3_u32).prop_map(|(kind, retries)| Step::Grant(kind, retries)),
        1 => (1..10_000_u64).prop_map(|time| Step::Hold(millis(time))),
        4 => (0..3_usize, 0..4_usize).prop_map(|(kind, tenant)| Step::Come(kind, tenant)),
        4 => (0..4_usize, 0..4_usize).prop_map(|(kind, tenant)| Step::Claim(kind, tenant)),
        12 => (index(), any::<bool>(), 0..3_u8)
            .prop_map(|(job, is_retry, suspect)| Step::Ask(job, is_retry, suspect)),
        6 => (index(), end).prop_map(|(attempt, end)| Step::End(attempt, end)),
        6 => index().prop_map(Step::Settle),
        1 => index().prop_map(Step::Leave),
        4 => (0..4_usize, 0..4_usize).prop_map(|(kind, tenant)| Step::Direct(kind, tenant)),
        4 => (0..3_usize, 0..4_usize, 1..4_usize)
            .prop_map(|(kind, tenant, jobs)| Step::Worker(kind, tenant, jobs)),
        4 => (index(), worker_end).prop_map(|(attempt, end)| Step::WorkerEnd(attempt, end)),
    ]
}
