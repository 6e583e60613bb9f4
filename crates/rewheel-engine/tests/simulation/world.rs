//! The simulated world: a few nodes and workers, one store and many faults.

use crate::duplicates;
use crate::fleet::{Fleet, REMOTE};
use crate::model::{Model, Who, now};
use crate::node::{Engines, LOOP_VERBS, Luck, Node};
use crate::schedules;
use crate::worker::{Worker, caught};
use rewheel::Random;
use rewheel_core::store::{
    Change, ChangeVerb, ClockOffset, Filter, KindStore, LeaseStore, OperateStore, PageRequest,
    ReadStore,
};
use rewheel_core::{
    Actor, JobId, KindChange, KindChanged, KindName, Retain, State, Tenant, Timestamp,
};
use rewheel_engine::Engine;
use rewheel_stores::{MemoryStore, Weakness};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const NODES: usize = 3;

const WORKERS: u64 = 2;

/// How long faults are injected.
const MISFORTUNE: Duration = Duration::from_secs(110);

/// How long the recovery may take without faults: every backoff, takeover, slow rate and budget together. The time by which the
/// store's clock was set back is added.
const RECOVERY: Duration = Duration::from_secs(1_800);

/// The settings of a simulation.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) weakness: Option<Weakness>,
    pub(crate) self_audit: bool,
    pub(crate) housekeeps_groups: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { weakness: None, self_audit: true, housekeeps_groups: true }
    }
}

/// The result of a simulation.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) simulated: Duration,
    pub(crate) jobs: usize,
    /// All events with their times.
    pub(crate) story: Vec<String>,
    /// Number of each event.
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

pub(crate) fn simulate(seed: u64, rules: &Rules) -> Outcome {
    be_quiet_about_planned_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread needs nothing to start");
    runtime.block_on(async {
        let mut world = World::new(seed, rules.clone());
        world.misfortune().await;
        world.recovery().await;
        let result = world.model.result();
        Outcome {
            violations: result.violations,
            simulated: world.started.elapsed(),
            jobs: world.submitted.len(),
            story: result.story,
            counts: result.counts,
        }
    })
}

struct World {
    rules: Rules,
    random: Random,
    clock: ClockOffset,
    model: Arc<Model>,
    luck: Luck,
    nodes: Vec<Node>,
    /// The latest engine of each node.
    who: [Who; NODES],
    engines: Engines,
    workers: JoinSet<()>,
    /// Number of started engines.
    starts: u64,
    /// Until when each node is suspended.
    until: [Duration; NODES],
    away_until: Duration,
    /// Total time by which the store's clock was set back.
    turned_back: Duration,
    submitted: BTreeSet<JobId>,
    started: Instant,
}

impl World {
    fn new(seed: u64, rules: Rules) -> World {
        let (clock, started) = (ClockOffset::default(), now());
        let time = move || {
            let millis = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(1_700_000_000_000 + millis)
        };
        let store = MemoryStore::with_time(time, clock.clone());
        if let Some(weakness) = rules.weakness {
            store.weaken(weakness);
        }
        let random = Random::seeded(seed);
        let model = Model::new(Fleet::new(&random), store, started);
        let luck = Luck::default();
        luck.leaves_groups.store(!rules.housekeeps_groups, Ordering::SeqCst);
        let engines = Engines::default();
        engines.lock().expect("nothing panics with it").resize(NODES, None);
        let mut workers = JoinSet::new();
        for who in 0..WORKERS {
            if model.fleet.kinds.contains_key(REMOTE) {
                let (model, engines) = (Arc::clone(&model), Arc::clone(&engines));
                let (luck, random) = (luck.clone(), Random::seeded(random.next()));
                let jobs = Vec::new();
                workers.spawn(Worker { model, engines, luck, random, who, id: None, jobs }.run());
            }
        }
        World {
            rules,
            random,
            clock,
            model,
            luck,
            nodes: (0..NODES).map(|_| Node::default()).collect(),
            who: [Who::Engine(0); NODES],
            engines,
            workers,
            starts: 0,
            until: [Duration::ZERO; NODES],
            away_until: Duration::ZERO,
            turned_back: Duration::ZERO,
            submitted: BTreeSet::new(),
            started,
        }
    }

    fn below(&self, end: u64) -> u64 {
        self.random.next() % end
    }

    fn tell(&self, what: &str) {
        self.model.tell(what);
    }

    fn engine(&self, node: usize) -> Option<Engine> {
        self.engines.lock().expect("nothing panics with it")[node].clone()
    }

    async fn misfortune(&mut self) {
        while self.started.elapsed() < MISFORTUNE {
            sleep(Duration::from_millis(self.below(400))).await;
            let node = usize::try_from(self.below(NODES as u64)).unwrap_or(0);
            match self.below(100) {
                0..40 => self.submit(node, 1).await,
                40..52 => self.submit_page(node).await,
                52..55 => self.submit(node, 8).await,
                55..65 => self.start(node).await,
                65..67 => self.kill(node),
                67..69 => self.stand_still(node),
                69..71 => self.store_goes_away(),
                71..72 => self.jump().await,
                72..74 => self.take_for_dead(node).await,
                74..78 => self.pause_or_resume().await,
                78..81 => self.dependency_changes(),
                81..84 => self.let_a_loop_panic(node),
                84..86 => schedules::disturb(&self.model, self.engine(node), self.below(5)).await,
                _ => self.change().await,
            }
            self.go_on();
            self.replace_failed().await;
            self.check_caps().await;
            self.model.check_waiting().await;
            for violation in self.model.store.violations() {
                self.model.complain(violation);
            }
        }
    }

    /// No more faults: every job must end.
    async fn recovery(&mut self) {
        self.luck.is_over.store(true, Ordering::SeqCst);
        self.luck.down.store(false, Ordering::SeqCst);
        self.until = [Duration::ZERO; NODES];
        self.away_until = Duration::ZERO;
        self.go_on();
        for node in &self.nodes {
            node.panics.lock().expect("nothing panics with it").take();
        }
        for kind in self.kinds() {
            self.change_kind(&kind, &KindChange::Resume).await;
        }
        self.tell("nothing goes wrong any more");
        let mut is_alone = self.leave_one_alone();
        let ends = self.started.elapsed() + RECOVERY + self.turned_back;
        loop {
            self.replace_failed().await;
            is_alone &= (0..NODES).any(|node| self.engine(node).is_some());
            for node in 0..NODES {
                if !is_alone {
                    self.start(node).await;
                }
            }
            self.resume_all().await;
            schedules::stop(&self.model).await;
            let live = Filter {
                states: vec![State::Scheduled, State::Leased, State::Paused],
                ..Filter::default()
            };
            let left = self.model.store.list(&live, &PageRequest::first(1_000)).await;
            let left = left.expect("the store itself never fails").items;
            if left.is_empty() {
                break;
            }
            if self.started.elapsed() > ends {
                for job in left {
                    let (state, fence, lane) = (job.state(), job.fence, &job.lane);
                    self.model.complain(format!(
                        "job {} of {lane:?} is still {state}, fence {fence}",
                        job.id
                    ));
                }
                break;
            }
            sleep(Duration::from_secs(5)).await;
        }
        if self.workers.try_join_next().is_some() {
            self.model.complain("a worker ended by itself".to_owned());
        }
        self.workers.abort_all();
        self.model.check_end(&self.submitted).await;
        schedules::check(&self.model).await;
        (0..NODES).for_each(|node| self.kill(node));
    }

    /// In many runs one engine must do all remaining work: the one whose loops panicked most. Other engines would hide that it
    /// does not work.
    fn leave_one_alone(&mut self) -> bool {
        let running = (0..NODES).filter(|node| self.engine(*node).is_some());
        let last = running.max_by_key(|node| self.model.panics_of(self.who[*node]));
        let Some(last) = last.filter(|_| self.below(3) > 0) else { return false };
        (0..NODES).filter(|node| *node != last).for_each(|node| self.kill(node));
        self.model.count("one engine left");
        true
    }

    fn kinds(&self) -> Vec<KindName> {
        let names = self.model.fleet.kinds.keys();
        names.map(|name| KindName::parse(name).expect("a good name")).collect()
    }

    fn has_caps(&self) -> bool {
        self.model.fleet.tenants.values().any(|tenant| tenant.jobs_max.is_some())
    }

    /// Checks that no tenant has more live jobs than its cap.
    async fn check_caps(&self) {
        for (name, settings) in &self.model.fleet.tenants {
            let Some(most) = settings.jobs_max else { continue };
            let live = Filter {
                states: vec![State::Scheduled, State::Leased, State::Paused],
                tenant: Some(Tenant::parse(name).expect("a good name")),
                ..Filter::default()
            };
            self.model.count("looks at jobs_max");
            let page = self.model.store.list(&live, &PageRequest::first(1_000)).await;
            let count = page.expect("the store itself never fails").items.len();
            if count as u64 > most {
                self.model.complain(format!("{count} live jobs of {name}: jobs_max is {most}"));
            }
        }
    }

    async fn submit(&mut self, node: usize, count: usize) {
        let Some(engine) = self.engine(node) else { return };
        let kinds = self.kinds();
        let kind = &kinds[self.below(kinds.len() as u64) as usize];
        for _ in 0..count {
            if !self.submit_one(&engine, kind).await {
                return;
            }
        }
    }

    /// Returns whether there was a response.
    async fn submit_one(&mut self, engine: &Engine, kind: &KindName) -> bool {
        let delay = Duration::from_millis([0, 0, 50, 2_000, 20_000][self.below(5) as usize]);
        let key = format!("key-{}", self.below(400));
        let mut submit = engine.submit_raw(kind.as_str(), Vec::new()).delay(delay);
        match self.below(5) {
            0 | 1 => submit = submit.key(&key),
            2 | 3 => submit = submit.group_key(["odd", "even"][self.below(2) as usize]),
            _ => {}
        }
        if self.below(6) == 0 {
            submit = submit.deadline_in(delay + Duration::from_secs(self.below(90) + 1));
        }
        if self.below(2) == 0 {
            submit = submit.tenant(["acme", "beta", "gamma"][self.below(3) as usize]);
        }
        if self.below(3) == 0 {
            submit = submit.shard_key(&format!("shard-{}", self.below(4)));
        }
        // Without a response in time the job may not be stored.
        let answer = timeout(Duration::from_secs(2), caught(submit.into_future())).await;
        if let Ok(Some(Ok(receipt))) = answer {
            self.tell(&format!("{} of {kind} submitted", receipt.id));
            if self.submitted.insert(receipt.id) {
                self.model.accepted(receipt.id).await;
            }
            return true;
        }
        false
    }

    /// Submits a job that replaces another one, and notes its payload.
    async fn submit_page(&mut self, node: usize) {
        let Some(engine) = self.engine(node) else { return };
        let number = self.model.payloads().send();
        let submit = duplicates::submit(&engine, &self.random, number);
        let answer = timeout(Duration::from_secs(2), caught(submit.into_future())).await;
        if let Ok(Some(Ok(receipt))) = answer {
            self.tell(&format!("submit {number} is in {}: {}", receipt.id, receipt.replaced));
            self.model.payloads().accept(number, &receipt);
            self.model.count(if receipt.replaced { "jobs replaced" } else { "jobs with a page" });
            self.submitted.insert(receipt.id);
        }
    }

    async fn start(&mut self, node: usize) {
        if self.engine(node).is_some() {
            return;
        }
        self.starts += 1;
        let (name, who) = (format!("node-{node}"), Who::Engine(self.starts));
        self.who[node] = who;
        self.nodes[node].panics.lock().expect("nothing panics with it").take();
        let its = &self.nodes[node];
        let mut builder = its.builder(name, who, &self.model, &self.luck, &self.random);
        if !self.rules.self_audit {
            builder = builder.without_self_audit();
        }
        let started = timeout(Duration::from_secs(10), builder.start()).await;
        if let Ok(Ok(engine)) = started {
            self.tell(&format!("node {node} is {who:?}, {}", engine.status().holder));
            self.model.watch(who, engine.clone());
            self.engines.lock().expect("nothing panics with it")[node] = Some(engine);
        }
    }

    fn kill(&mut self, node: usize) {
        let engine = self.engines.lock().expect("nothing panics with it")[node].take();
        if let Some(engine) = engine {
            self.tell(&format!("node {node} killed"));
            self.model.unwatch(self.who[node]);
            engine.kill();
        }
    }

    /// Makes a loop of a node panic at its next call.
    fn let_a_loop_panic(&self, node: usize) {
        if self.engine(node).is_some() {
            let verb = LOOP_VERBS[self.below(LOOP_VERBS.len() as u64) as usize];
            *self.nodes[node].panics.lock().expect("nothing panics with it") = Some(verb);
        }
    }

    /// Ends the process of an engine that failed by itself.
    async fn replace_failed(&mut self) {
        for node in 0..NODES {
            let Some(engine) = self.engine(node) else { continue };
            if timeout(Duration::ZERO, engine.failed()).await.is_ok() {
                self.model.count("engines failed");
                self.kill(node);
            }
        }
    }

    /// Lets others expire a node that is alive.
    async fn take_for_dead(&self, node: usize) {
        let Some(engine) = self.engine(node) else { return };
        let _ = self.model.store.leave(engine.status().holder).await;
        self.tell(&format!("node {node} is taken for dead"));
    }

    /// Suspends a process for a moment, or for longer than its lease.
    fn stand_still(&mut self, node: usize) {
        let seconds = if self.below(2) == 0 { self.below(8) } else { 35 + self.below(50) };
        self.until[node] = self.started.elapsed() + Duration::from_secs(seconds);
        self.nodes[node].stopped.store(true, Ordering::SeqCst);
        self.tell(&format!("node {node} stops for {seconds} s"));
    }

    fn store_goes_away(&mut self) {
        let seconds = if self.below(2) == 0 { self.below(8) } else { 20 + self.below(20) };
        self.away_until = self.started.elapsed() + Duration::from_secs(seconds);
        self.luck.away.store(true, Ordering::SeqCst);
        self.tell(&format!("the store goes away for {seconds} s"));
    }

    /// Resumes the nodes that have been suspended for long enough.
    fn go_on(&self) {
        let now = self.started.elapsed();
        for (node, until) in self.nodes.iter().zip(self.until) {
            if now >= until {
                node.stopped.store(false, Ordering::SeqCst);
            }
        }
        if now >= self.away_until {
            self.luck.away.store(false, Ordering::SeqCst);
        }
    }

    /// At least by the lease duration, so that earlier leases can be distinguished from later ones.
    async fn jump(&mut self) {
        let by = Duration::from_secs(60 + self.below(120));
        if self.below(2) == 0 {
            self.clock.advance(by);
        } else {
            self.clock.turn_back(by);
            self.turned_back += by;
        }
        self.model.jumped().await;
        self.tell("the store's clock jumps");
    }

    fn dependency_changes(&self) {
        let was_down = self.luck.down.fetch_xor(true, Ordering::SeqCst);
        self.tell(if was_down { "the dependency is back" } else { "the dependency is down" });
    }

    async fn pause_or_resume(&self) {
        let kinds = self.kinds();
        let kind = &kinds[self.below(kinds.len() as u64) as usize];
        let is_paused = self.model.is_paused(kind);
        let change = if is_paused { KindChange::Resume } else { KindChange::Pause };
        self.change_kind(kind, &change).await;
    }

    async fn change_kind(&self, kind: &KindName, change: &KindChange) {
        let changed = self.model.store.change_kind(kind, change, &Actor::new("person")).await;
        // It does not exist before the first engine creates it.
        let Ok(KindChanged::Applied(_)) = changed else { return };
        self.tell(&format!("{kind}: {change:?}"));
        if *change == KindChange::Pause {
            self.model.paused(kind).await;
        } else {
            self.model.resumed(kind);
        }
    }

    /// An operator pauses, resumes, cancels or retries a job.
    async fn change(&self) {
        let count = self.submitted.len() as u64;
        if count == 0 {
            return;
        }
        let nth = usize::try_from(self.below(count)).unwrap_or(0);
        let job = *self.submitted.iter().nth(nth).expect("it was counted");
        let what = match self.below(4) {
            0 => ChangeVerb::Pause,
            1 => ChangeVerb::Resume,
            2 => ChangeVerb::Cancel,
            // A cap does not refuse jobs that an operator runs again.
            _ if self.has_caps() => ChangeVerb::Resume,
            _ => ChangeVerb::Retry,
        };
        let changes = [Change::new(job, what)];
        let store = &self.model.store;
        let before = store.get(job).await.expect("the store itself never fails");
        if before.is_some_and(|before| before.state() == State::Dead) {
            self.model.redriven(job);
        }
        let answer = store.change(&changes, &Actor::new("person"), Retain::default()).await;
        self.tell(&format!("{job} changed: {answer:?}"));
    }

    async fn resume_all(&self) {
        let paused = Filter { states: vec![State::Paused], ..Filter::default() };
        let page = self.model.store.list(&paused, &PageRequest::first(1_000)).await;
        let changes: Vec<Change> = page
            .expect("the store itself never fails")
            .items
            .iter()
            .map(|job| Change::new(job.id, ChangeVerb::Resume))
            .collect();
        let _ = self.model.store.change(&changes, &Actor::new("person"), Retain::default()).await;
    }
}

/// Silences the planned panics of handlers and store calls; others are printed.
fn be_quiet_about_planned_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&"planned") {
                usual(panic);
            }
        }));
    });
}
