//! Measures how many calls the lab simulates per second on this machine, on one core.
//!
//! Run it with `cargo run --release -p rewheel-lab --example speed`.

#![expect(clippy::print_stdout, reason = "an example that reports numbers")]

use rewheel::{Clock, millis, seconds};
use rewheel_lab::{Dependency, Latency, Policy, Storm};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Clock::system();
    let storm = Storm::new(Dependency::new(20_000, Latency::spread(millis(20))), 10_000);
    let storm = storm.clients(100).lasts(seconds(100));
    let flaky = Dependency::new(20_000, Latency::spread(millis(20))).failure_ratio(0.1);
    let flaky = Storm::new(flaky, 10_000).clients(100).lasts(seconds(100));
    let all = "4 attempts, exponential 100ms max 10s, budget 10% floor 1, breaker";
    for (storm, name, policy) in [
        (&storm, "healthy", "none"),
        (&storm, "healthy", all),
        (&flaky, "10 % fail", "none"),
        (&flaky, "10 % fail", all),
    ] {
        let policy: Policy = policy.parse()?;
        let start = clock.now();
        let outcome = storm.run(|client| policy.pipeline(client, seconds(1)));
        let took = clock.now().since(start).as_secs_f64();
        let millions = outcome.offered() as f64 / took / 1e6;
        println!("{millions:.2} million calls/s  {name}: {policy}");
    }
    Ok(())
}
