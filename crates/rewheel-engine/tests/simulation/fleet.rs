//! The kinds and tenants of a simulation, with their limits.

use rewheel::{Backoff, Random};
use rewheel_core::Lane;
use rewheel_engine::{BreakerSettings, BudgetSettings, KindSettings, Rate};
use rewheel_engine::{RunnerKind, TenantSettings};
use std::collections::BTreeMap;
use std::time::Duration;

/// The same for all kinds, so that the time of a lease can be computed from its overdue time.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const GRACE: Duration = Duration::from_secs(20);

/// The kind that workers run.
pub(crate) const REMOTE: &str = "remote";

/// Every seed has `work`, and some of the others.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) kinds: BTreeMap<&'static str, KindSettings>,
    pub(crate) tenants: BTreeMap<&'static str, TenantSettings>,
}

/// The limits of a kind or a tenant.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    /// The kind or the tenant.
    pub(crate) of: String,
    pub(crate) is_kind: bool,
    /// In one engine or worker.
    pub(crate) concurrency_max: Option<usize>,
    /// In all of them.
    pub(crate) fleet_concurrency_max: Option<usize>,
    pub(crate) rate: Option<Rate>,
}

impl Limit {
    pub(crate) fn covers(&self, lane: &Lane) -> bool {
        if self.is_kind {
            return lane.kind.as_str() == self.of;
        }
        lane.tenant.as_ref().is_some_and(|tenant| tenant.as_str() == self.of)
    }

    /// Returns the minimum time between two starts of a slow rate.
    pub(crate) fn interval(&self) -> Option<Duration> {
        let (calls, period) = self.rate?.parts();
        Some(period / calls).filter(|interval| *interval >= Duration::from_secs(1))
    }

    /// Returns how many attempts one engine may start in this many seconds at a fast rate: the whole rate, since it may believe
    /// that it is the only one, and a tenth of a second at once.
    pub(crate) fn starts_max(&self, seconds: u32) -> Option<usize> {
        let (calls, period) = self.rate.filter(|_| self.interval().is_none())?.parts();
        let per_second = f64::from(calls) / period.as_secs_f64();
        Some((per_second * f64::from(seconds) + (per_second * 0.1).ceil()) as usize)
    }
}

fn below(random: &Random, end: u32) -> u32 {
    u32::try_from(random.next() % u64::from(end)).unwrap_or(0)
}

fn one_of(random: &Random, rates: [(u32, u64); 3]) -> Option<Rate> {
    let (calls, seconds) = rates[below(random, 3) as usize];
    Some(Rate::new(calls, Duration::from_secs(seconds)))
}

fn slow(random: &Random) -> Option<Rate> {
    one_of(random, [(1, 1), (1, 2), (2, 5)])
}

fn fast(random: &Random) -> Option<Rate> {
    one_of(random, [(3, 2), (2, 1), (5, 1)])
}

fn breaker(random: &Random) -> Option<BreakerSettings> {
    let open_for = Duration::from_secs(u64::from(2 + below(random, 8)));
    let window = 3 + below(random, 6);
    Some(BreakerSettings { window, open_for, ..BreakerSettings::default() })
}

fn budget() -> Option<BudgetSettings> {
    Some(BudgetSettings { floor: Rate::new(1, Duration::from_secs(1)), ..Default::default() })
}

impl Fleet {
    pub(crate) fn new(random: &Random) -> Fleet {
        let plain = KindSettings {
            attempts_max: 6,
            attempt_timeout: ATTEMPT_TIMEOUT,
            backoff: Backoff::exponential(Duration::from_millis(200)).max(Duration::from_secs(10)),
            sticky_max: Duration::from_secs(2),
            result: true,
            ..KindSettings::default()
        };
        let few = || Some(1 + below(random, 2));
        let few_here = || few().map(|few| few as usize);
        let all = [
            ("guarded", KindSettings { breaker: breaker(random), ..plain.clone() }),
            ("fast", KindSettings { rate: fast(random), ..plain.clone() }),
            ("slow", KindSettings { rate: slow(random), ..plain.clone() }),
            ("shared", KindSettings { fleet_concurrency_max: few(), ..plain.clone() }),
            (
                "thrifty",
                KindSettings {
                    concurrency_max: few_here(),
                    retry_budget: budget(),
                    ..plain.clone()
                },
            ),
            (REMOTE, remote(random, plain.clone())),
        ];
        let mut kinds: BTreeMap<_, _> = all.into_iter().filter(|_| below(random, 2) == 0).collect();
        kinds.insert("work", plain);
        let tenants = ["acme", "beta", "gamma"].map(|name| (name, tenant(random)));
        Fleet { kinds, tenants: tenants.into() }
    }

    /// Returns the limits for the jobs of a lane.
    pub(crate) fn limits(&self, lane: &Lane) -> impl Iterator<Item = Limit> + use<> {
        let kind = self.kinds.get(lane.kind.as_str()).map(|kind| Limit {
            of: lane.kind.to_string(),
            is_kind: true,
            concurrency_max: kind.concurrency_max,
            fleet_concurrency_max: kind.fleet_concurrency_max.map(|max| max as usize),
            rate: kind.rate,
        });
        let tenant = lane.tenant.as_ref().and_then(|name| {
            let tenant = self.tenants.get(name.as_str())?;
            Some(Limit {
                of: name.to_string(),
                is_kind: false,
                concurrency_max: tenant.concurrency_max,
                fleet_concurrency_max: tenant.fleet_concurrency_max.map(|max| max as usize),
                rate: tenant.rate,
            })
        });
        kind.into_iter().chain(tenant)
    }

    /// Returns whether attempts of a kind fail while the dependency is down.
    pub(crate) fn depends(&self, kind: &str) -> bool {
        self.kinds.get(kind).is_some_and(|kind| kind.breaker.is_some())
    }
}

fn remote(random: &Random, plain: KindSettings) -> KindSettings {
    let plain = KindSettings { runner: RunnerKind::Worker, ..plain };
    match below(random, 6) {
        0 => KindSettings { breaker: breaker(random), ..plain },
        1 => KindSettings { rate: slow(random), ..plain },
        2 => KindSettings { fleet_concurrency_max: Some(1 + below(random, 2)), ..plain },
        3 => KindSettings { concurrency_max: Some(1 + below(random, 2) as usize), ..plain },
        4 => KindSettings { retry_budget: budget(), ..plain },
        _ => plain,
    }
}

fn tenant(random: &Random) -> TenantSettings {
    let plain = TenantSettings::default();
    match below(random, 6) {
        0 => TenantSettings { rate: fast(random), ..plain },
        1 => TenantSettings { rate: slow(random), ..plain },
        2 => TenantSettings { concurrency_max: Some(1 + below(random, 2) as usize), ..plain },
        3 => TenantSettings { fleet_concurrency_max: Some(1 + below(random, 2)), ..plain },
        4 => TenantSettings { jobs_max: Some(u64::from(3 + below(random, 6))), ..plain },
        _ => TenantSettings { weight: 3, ..plain },
    }
}
