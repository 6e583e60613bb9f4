//! A workload that uses every feature of jobs at once, and what must be true of each when a cell ends.
//!
//! A cell starts it with [`Mixed::run`] and breaks something meanwhile. Each file is one feature: what it submits, and its
//! checks. All checks read from outside: the REST interface, `rewheel doctor`, and the calls that the service received.

mod config;
mod service;
mod ended;
mod plain;
mod groups;
mod waiting_line;
mod lines;
mod worker;
mod charges;
mod pages;
mod schedules;
mod dead_letters;

use self::charges::Charges;
use self::dead_letters::DeadLetters;
use self::ended::Ended;
use self::groups::{BLOCKS, CONTINUES, Groups};
use self::pages::Pages;
use self::plain::Plain;
use self::schedules::Schedules;
use self::service::Service;
use self::waiting_line::WaitingLine;
use self::worker::{Given, Worker};
use crate::cell::{Cell, Settings};
use crate::door::Door;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The pause between two submits of a feature.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the last job may take after the last fault.
const DRAIN_MAX: Duration = Duration::from_secs(300);

/// Tells a loop that it may end.
#[derive(Debug, Default)]
pub(crate) struct Enough(AtomicBool);

impl Enough {
    fn is_reached(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn reach(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A fleet with this workload.
pub(crate) struct Mixed {
    service: Service,
    cell: Cell,
}

/// Everything that was acknowledged.
struct Submitted {
    plain: Plain,
    groups: [Groups; 2],
    waiting: WaitingLine,
    charges: Charges,
    pages: Pages,
    dead_letters: DeadLetters,
}

impl Mixed {
    pub(crate) async fn start(store: &str, nodes: usize) -> Mixed {
        let service = Service::start().await;
        let config = config::sections(&service);
        let cell = Cell::start(store, Settings { nodes, config, ..Settings::default() }).await;
        Mixed { service, cell }
    }

    /// Submits and works while the faults last, waits until every job has ended, then checks all guarantees.
    pub(crate) async fn run(mut self, faults: impl AsyncFnOnce(&mut Cell)) {
        let door = self.cell.door();
        let (enough, over) = (Enough::default(), Enough::default());
        let (cell, service) = (&mut self.cell, &self.service);
        let schedules = Schedules::put(&door).await;
        let main = async {
            let faults = async {
                faults(cell).await;
                enough.reach();
            };
            let ((), submitted) = tokio::join!(faults, submit(&door, &enough));
            schedules::pause(&door).await;
            drain(cell, &door, &submitted).await;
            over.reach();
            submitted
        };
        let (submitted, (), mut given, more) = tokio::join!(
            main,
            groups::redrive(&door, service, &over),
            Worker::run("till-1", &door, &over),
            Worker::run("till-2", &door, &over),
        );
        given.extend(more);
        self.check(&submitted, &schedules, &given).await;
    }

    async fn check(&self, submitted: &Submitted, schedules: &Schedules, given: &[Given]) {
        let (cell, service) = (&self.cell, &self.service);
        let ended = Ended { cell, service, jobs: cell.jobs("").await };
        submitted.plain.check(&ended).await;
        submitted.groups.iter().for_each(|groups| groups.check(&ended));
        submitted.waiting.check(&ended);
        lines::check(&ended).await;
        submitted.charges.check(&ended, given).await;
        submitted.pages.check(&ended).await;
        schedules.check(&ended).await;
        submitted.dead_letters.check(&ended).await;
        check_keys(&ended);
        let (well, found) = cell.doctor().await;
        assert!(well, "{found}");
        let submitted = found["books"]["submitted"].as_u64();
        assert_eq!(submitted, Some(ended.jobs.len() as u64), "jobs are not listed: {found}");
        println!("calls {:?}; books {}", service.counts(), found["books"]);
    }
}

/// Submits jobs of every feature until it is enough.
async fn submit(door: &Door, enough: &Enough) -> Submitted {
    let (plain, continues, blocks, waiting, charges, pages, dead_letters) = tokio::join!(
        Plain::submit(door, enough),
        Groups::submit(CONTINUES, door, enough),
        Groups::submit(BLOCKS, door, enough),
        WaitingLine::submit(door, enough),
        Charges::submit(door, enough),
        Pages::submit(door, enough),
        DeadLetters::submit(door, enough),
    );
    let groups = [continues, blocks];
    Submitted { plain, groups, waiting, charges, pages, dead_letters }
}

/// Waits until every job has ended. One node must do all that is left, so that no other hides what it does not do.
async fn drain(cell: &mut Cell, door: &Door, submitted: &Submitted) {
    for node in cell.nodes.iter_mut().skip(1) {
        node.terminate().await;
    }
    let started = Instant::now();
    wait_until_none_left(cell, started, |job| !WaitingLine::has(job)).await;
    submitted.waiting.release(cell, door).await;
    wait_until_none_left(cell, started, |_| true).await;
    println!("drained in {:.1} s", started.elapsed().as_secs_f64());
}

async fn wait_until_none_left(
    cell: &Cell,
    started: Instant,
    counts: impl Fn(&serde_json::Value) -> bool,
) {
    loop {
        let mut left = cell.jobs("state=scheduled&state=leased&state=paused&").await;
        // The paused schedules are jobs.
        left.retain(|_, job| job["kind"] != "rewheel.schedule" && counts(job));
        let unannounced = DeadLetters::left(cell).await;
        if left.is_empty() && unannounced == 0 {
            return;
        }
        if started.elapsed() > DRAIN_MAX {
            let some: Vec<_> = left.values().take(3).collect();
            let (said, (_, found)) = (cell.nodes[0].said(), cell.doctor().await);
            panic!(
                "{} jobs do not end, {unannounced} dead letters have no refund: {some:#?} {said:#?} {found}",
                left.len()
            );
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Each key of a job that keeps it until its end has one job.
fn check_keys(ended: &Ended<'_>) {
    let mut keys = BTreeSet::new();
    for job in ended.jobs.values().filter(|job| job["kind"] != "page") {
        if let Some(key) = job["key"].as_str() {
            let key = (job["kind"].to_string(), job["tenant"].to_string(), key.to_owned());
            assert!(keys.insert(key), "one key, two jobs: {job}");
        }
    }
}
