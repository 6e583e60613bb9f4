//! Tests of the cost of waiting jobs: memory and clock reads.

use super::Dispatch;
use crate::engine::Engine;
use crate::events::Log;
use crate::settings::{EngineSettings, KindSettings};
use crate::shared::{Command, Parts, Shared, Waiting};
use crate::submit::IdTime;
use rewheel::Random;
use rewheel_core::store::{Direct, Store};
use rewheel_core::{Fence, KindName, NewJob, Report, Timestamp};
use rewheel_stores::MemoryStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const JOBS: u32 = 2_000;

#[test]
fn a_waiting_job_takes_a_kibibyte_at_most_besides_its_payload() {
    let (to_dispatch, commands) = mpsc::unbounded_channel();
    let (to_settle, _finished) = mpsc::unbounded_channel();
    let (returning, _returned) = mpsc::unbounded_channel();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let shared = Arc::new(Shared::new(
        Parts {
            store,
            store_meters: Arc::default(),
            unsure: Arc::default(),
            settings: EngineSettings { wheel_max: JOBS, ..EngineSettings::default() },
            random: Random::seeded(1),
            id_time: IdTime::None,
            self_audit: true,
            handlers: BTreeMap::new(),
            source: None,
            backoffs: rewheel::Backoffs::new(),
            router: None,
            tenants: crate::tenant_settings::TenantBook::default(),
            desk: None,
            events: Log::new(1),
            build: crate::meters::Build::default(),
        },
        to_dispatch,
        to_settle,
    ));
    let kind = KindName::parse("work").unwrap();
    let mut dispatch = None;
    let found = allocation_counter::measure(|| {
        let mut made = Dispatch::new(Arc::clone(&shared), commands, returning);
        made.obey(Command::Leased((0..JOBS).map(|_| waiting(&shared, &kind)).collect()));
        dispatch = Some(made);
    });
    assert_eq!(dispatch.map(|dispatch| dispatch.wheel.len()), Some(JOBS as usize));
    let each = found.bytes_current / i64::from(JOBS);
    assert!(each <= 1_024, "{each} bytes for each waiting job");
}

fn waiting(shared: &Shared, kind: &KindName) -> Waiting {
    let new = NewJob::new(shared.new_id(), kind.clone(), Vec::new());
    let (attempt_timeout, grace) = (Duration::from_secs(30), Duration::from_secs(30));
    let direct = Direct { holder: shared.holder(), attempt_timeout, grace };
    let due = Timestamp::from_millis(0);
    let job = crate::submit::leased_job(&new, direct, due, Fence::new(1));
    let waiting = shared.waiting(job, direct.holder, Duration::from_secs(60), None);
    shared.leases.hold(waiting.lease());
    waiting
}

/// A job that a rate held back may also wait for a slot: its start time has passed then, and must not determine the next wake-up.
#[tokio::test(start_paused = true)]
async fn a_rate_that_waits_for_a_place_does_not_wake_the_loop_all_the_time() {
    let rated = KindSettings { rate: "10/s".parse().ok(), ..KindSettings::default() };
    let engine = Engine::builder(Arc::new(MemoryStore::new()))
        .settings(EngineSettings { concurrency: 4, ..EngineSettings::default() })
        .kind("rated", rated)
        .raw_handler("rated", |_| async { Report::Done })
        .raw_handler("slow", |_| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Report::Done
        })
        .start()
        .await
        .unwrap();
    for kind in ["rated", "rated", "rated", "slow", "slow", "slow", "slow"] {
        engine.submit_raw(kind, Vec::new()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(engine.status().concurrency_free, 0);
    let before = engine.shared().signals.ticks();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let ticks = engine.shared().signals.ticks() - before;
    assert!(ticks < 100, "{ticks} ticks in 10 s");
}
