//! Submits a few jobs a second.

use super::kinds::{self, DemoKind};
use rewheel::{CancelToken, Clock, Random, millis, seconds};
use rewheel_engine::{Engine, SubmitError};
use serde_json::json;
use std::net::IpAddr;
use std::time::Duration;

/// The tenants of some of the jobs.
const TENANTS: [&str; 3] = ["acme", "globex", "initech"];

/// Customers whose jobs run in order.
const CUSTOMERS: u64 = 4;

/// Submits jobs of the demo's kinds until it is stopped.
pub async fn trickle(engine: Engine, hosts: Vec<IpAddr>, stop: CancelToken) {
    let clock = Clock::system();
    let mut trickle = Trickle::new(engine, hosts, Random::thread());
    while !stop.is_cancelled() {
        let rest = trickle.tick().await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = clock.sleep(rest) => {}
        }
    }
}

struct Trickle {
    engine: Engine,
    /// The hosts of shops.
    hosts: Vec<IpAddr>,
    random: Random,
    /// Distinguishes the orders of this run from those of earlier runs in the store.
    run: u64,
    order: u64,
}

impl Trickle {
    fn new(engine: Engine, hosts: Vec<IpAddr>, random: Random) -> Trickle {
        let run = random.next() % 0x1_0000;
        Trickle { engine, hosts, random, run, order: 0 }
    }

    /// Submits one job; returns how long to wait.
    async fn tick(&mut self) -> Duration {
        match self.submit().await {
            Ok(()) => millis(120 + self.random.next() % 400),
            Err(error) => {
                tracing::debug!(%error, "the demo failed to submit a job");
                seconds(1)
            }
        }
    }

    async fn submit(&mut self) -> Result<(), SubmitError> {
        // Sometimes an order is submitted twice, and its key prevents a second job.
        let comes_again = self.order > 0 && self.random.next().is_multiple_of(20);
        if !(comes_again && Order::numbered(self.order, self.run).has_key) {
            self.order += 1;
        }
        let order = Order::numbered(self.order, self.run);
        let mut payload = json!({"order": self.order, "cents": order.cents});
        let shop = usize::try_from(order.cents).unwrap_or(0) % self.hosts.len().max(1);
        if let Some(host) = self.hosts.get(shop).filter(|_| order.kind.has_hosts) {
            payload["host"] = json!(host.to_string());
        }
        let mut submit = self.engine.submit_raw(order.kind.name, payload.to_string().into_bytes());
        if order.kind.has_groups {
            submit = submit.group_key(&format!("customer-{}", order.cents % CUSTOMERS));
        }
        if order.has_key {
            submit = submit.key(&format!("order-{:04x}-{}", self.run, self.order));
        }
        if let Some(tenant) = order.tenant {
            submit = submit.tenant(tenant);
        }
        submit.await.map(|_| ())
    }
}

/// The data of an order. It follows from its number, so that the order can be submitted again.
#[derive(Clone, Copy, Debug)]
struct Order {
    kind: DemoKind,
    cents: u64,
    has_key: bool,
    tenant: Option<&'static str>,
}

impl Order {
    fn numbered(number: u64, run: u64) -> Order {
        let dice = Random::seeded(run ^ (number << 16));
        let draw = |sides: u64| dice.next() % sides;
        Order {
            kind: kinds::drawn(draw(100)),
            cents: 100 + draw(10_000),
            has_key: draw(4) > 0,
            // Beyond the last tenant there is none.
            tenant: TENANTS.get(draw(9) as usize).copied(),
        }
    }
}
