//! Compares a hedged call whose first attempt is fast with the call alone.

use std::hint::black_box;
use std::io;

use rewheel::{Hedge, SafeToRepeat, millis};

use crate::correctness::allocations;
use crate::goal::Limit::Plus;
use crate::harness::{Comparison, Group, Pace, Subject};
use crate::retry::{awaited, runtime};

const ALONE: &str = "the call alone";

pub fn compare(pace: &Pace) -> Vec<Group> {
    let subjects = vec![
        hedged("rewheel, fixed delay", Hedge::after(millis(50)).build()),
        hedged("rewheel, percentile", Hedge::percentile(0.95).build()),
        awaited!(ALONE, answer()),
    ];
    vec![Comparison { name: "hedge, ready call", threads: &[1], subjects }.measure(pace)]
}

fn hedged(name: &'static str, hedge: Hedge) -> Subject {
    let check = allocations::none(|| {
        let _ = black_box(runtime().block_on(hedge.call(SafeToRepeat, answer)));
    });
    awaited!(name, hedge.call(SafeToRepeat, answer))
        .versus(&[ALONE], &[(1, Plus(60.0))])
        .checked(check)
}

async fn answer() -> io::Result<u64> {
    Ok(black_box(42))
}
