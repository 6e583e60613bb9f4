//! A failover that leaves out targets.

use super::{BUSY, Heard, three};
use crate::{CircuitBreaker, Failover, ManualClock, OutlierEjection, seconds};
use std::cell::Cell;
use std::sync::Arc;

/// Calls in turns with targets of which `a` fails; returns how often each was called.
fn call(failover: &Failover<&'static str>, calls: u32) -> [u32; 3] {
    let counts = [const { Cell::new(0) }; 3];
    for _ in 0..calls {
        failover
            .call_blocking(|target| {
                let index = ["a", "b", "c"].iter().position(|name| name == target).unwrap();
                counts[index].set(counts[index].get() + 1);
                if index == 0 { BUSY } else { Ok(1) }
            })
            .unwrap();
    }
    counts.map(|count| count.get())
}

#[test]
fn a_target_that_fails_more_than_the_others_is_left_out_for_a_while() {
    let clock = ManualClock::new();
    let heard = Arc::new(Heard::default());
    // The breakers never open.
    let breaker = CircuitBreaker::consecutive(1_000).clock(&clock);
    let failover = three().circuit_breaker(breaker).round_robin().clock(&clock);
    let failover = failover.ejection(OutlierEjection::margin(0.3)).named("replicas");
    let failover = failover.observer(heard.clone()).build();
    assert_eq!(call(&failover, 60)[0], 20);
    assert!(failover.is_ejected(0));
    assert_eq!(call(&failover, 30), [0, 15, 15], "its share goes to one of the others");
    clock.advance(seconds(30));
    assert!(!failover.is_ejected(0));
    assert_eq!(call(&failover, 60)[0], 20, "its old failures were held against it");
    let ejected = heard
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|line| line.contains("out"))
        .cloned()
        .collect::<Vec<_>>();
    assert_eq!(ejected, ["replicas: 0 out for 30s", "replicas: 0 out for 60s"]);
}

#[test]
fn targets_that_are_left_out_are_called_if_no_other_can_be() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1_000).clock(&clock);
    let failover = three().circuit_breaker(breaker).round_robin().clock(&clock);
    let failover = failover.ejection(OutlierEjection::margin(0.3)).build();
    call(&failover, 60);
    assert!(failover.is_ejected(0) && !failover.is_ejected(1) && !failover.is_ejected(9));
    for index in [1, 2] {
        failover.breaker(index).unwrap().isolate();
    }
    assert_eq!(failover.call_blocking(|target| Ok::<_, std::io::Error>(*target)).unwrap(), "a");
}
