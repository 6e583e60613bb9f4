//! A world of a few nodes, one store and much misfortune.

use rewheel::{Backoff, Category, Random, Verdict};
use rewheel_core::store::{
    Change, ClockOffset, Filter, LeaseStore, OperateStore, PageRequest, ReadStore, Store, What,
};
use rewheel_core::{Actor, Failure, JobId, Keep, Report, State, Status, Timestamp};
use rewheel_engine::{Engine, EngineSettings, JobContext, KindSettings};
use rewheel_stores::{MemoryStore, Weakness};
use rewheel_testkit::{Fault, FaultyStore};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const NODES: usize = 3;

/// How long everything goes wrong.
const MISFORTUNE: Duration = Duration::from_secs(180);

/// How long the rest may take, once nothing goes wrong any more: longer than every clock jump,
/// backoff and takeover together.
const RECOVERY: Duration = Duration::from_secs(3 * 3_600);

/// What is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) weakness: Option<Weakness>,
    pub(crate) self_audit: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { weakness: None, self_audit: true }
    }
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) simulated: Duration,
    pub(crate) jobs: usize,
    /// Everything that happened, when.
    pub(crate) story: Vec<String>,
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
        let told = world.told.lock().expect("nobody panics with it").clone();
        Outcome {
            violations: told.violations,
            simulated: world.started.elapsed(),
            jobs: world.submitted.len(),
            story: told.story,
        }
    })
}

#[derive(Clone, Default)]
struct Told {
    violations: Vec<String>,
    story: Vec<String>,
}

struct World {
    rules: Rules,
    random: Random,
    store: MemoryStore,
    clock: ClockOffset,
    /// Whether the store is away, for everybody.
    away: Arc<AtomicBool>,
    /// Whether anything goes wrong by chance.
    unlucky: Arc<AtomicBool>,
    nodes: Vec<Node>,
    /// Until when each node stands still.
    until: [Duration; NODES],
    away_until: Duration,
    submitted: BTreeSet<JobId>,
    told: Arc<Mutex<Told>>,
    started: Instant,
}

struct Node {
    engine: Option<Engine>,
    /// Whether the process stands still: what it asked for happens when it goes on.
    stopped: Arc<AtomicBool>,
}

#[expect(clippy::disallowed_methods, reason = "the time of a simulation stands still by itself")]
fn now() -> Instant {
    Instant::now()
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
        let nodes = (0..NODES).map(|_| Node { engine: None, stopped: Arc::default() }).collect();
        World {
            rules,
            random: Random::seeded(seed),
            store,
            clock,
            away: Arc::default(),
            unlucky: Arc::new(AtomicBool::new(true)),
            nodes,
            until: [Duration::ZERO; NODES],
            away_until: Duration::ZERO,
            submitted: BTreeSet::new(),
            told: Arc::default(),
            started,
        }
    }

    fn below(&self, end: u64) -> u64 {
        self.random.next() % end
    }

    fn tell(&self, what: impl Into<String>) {
        let at = self.started.elapsed().as_millis();
        self.told
            .lock()
            .expect("nobody panics with it")
            .story
            .push(format!("{at} {}", what.into()));
    }

    fn complain(&self, what: String) {
        self.told.lock().expect("nobody panics with it").violations.push(what);
    }

    async fn misfortune(&mut self) {
        while self.started.elapsed() < MISFORTUNE {
            sleep(Duration::from_millis(self.below(500))).await;
            let node = usize::try_from(self.below(NODES as u64)).unwrap_or(0);
            match self.below(100) {
                0..60 => self.submit(node).await,
                60..70 => self.start(node).await,
                70..73 => self.kill(node),
                73..76 => self.stand_still(node).await,
                76..78 => self.store_goes_away().await,
                78..79 => self.jump(),
                79..81 => self.take_for_dead(node).await,
                _ => self.change().await,
            }
            self.go_on();
            for violation in self.store.violations() {
                self.complain(violation);
            }
        }
    }

    /// Nothing goes wrong any more: everything must end.
    async fn recovery(&mut self) {
        self.unlucky.store(false, Ordering::SeqCst);
        self.until = [Duration::ZERO; NODES];
        self.away_until = Duration::ZERO;
        self.go_on();
        for node in 0..NODES {
            self.start(node).await;
        }
        let ends = self.started.elapsed() + RECOVERY;
        loop {
            self.resume_all().await;
            let live = Filter {
                states: vec![State::Scheduled, State::Leased, State::Paused],
                ..Filter::default()
            };
            let left = self.store.list(&live, &PageRequest::first(1_000)).await;
            let left = left.expect("the store itself never fails").items;
            if left.is_empty() {
                break;
            }
            if self.started.elapsed() > ends {
                for job in left {
                    let (state, fence) = (job.state(), job.fence);
                    self.complain(format!("job {} is still {state}, fence {fence}", job.id));
                }
                break;
            }
            sleep(Duration::from_secs(5)).await;
        }
        self.check().await;
        for node in &self.nodes {
            if let Some(engine) = &node.engine {
                engine.kill();
            }
        }
    }

    async fn check(&self) {
        for id in &self.submitted {
            match self.store.get(*id).await.expect("the store itself never fails") {
                None => self.complain(format!("job {id} was acknowledged, and is lost")),
                Some(job) if job.state().is_live() => {}
                Some(job) => self.tell(format!("{id} is {} at last", job.state())),
            }
        }
        let books = self.store.books().await.expect("the store itself never fails");
        if books.missing() != 0 {
            self.complain(format!("the books do not balance: {books:?}"));
        }
    }

    async fn submit(&mut self, node: usize) {
        let Some(engine) = self.nodes[node].engine.clone() else { return };
        let delay = Duration::from_millis([0, 0, 50, 2_000, 20_000][self.below(5) as usize]);
        let key = format!("key-{}", self.below(400));
        let mut submit = engine.submit_raw("work", Vec::new()).delay(delay);
        if self.below(3) == 0 {
            submit = submit.key(&key);
        }
        if self.below(6) == 0 {
            submit = submit.deadline_in(delay + Duration::from_secs(self.below(90) + 1));
        }
        // Who does not wait for the answer may not count on the job; nor may we.
        let answer = tokio::time::timeout(Duration::from_secs(2), submit).await;
        if let Ok(Ok(receipt)) = answer {
            self.tell(format!("{} submitted", receipt.id));
            self.submitted.insert(receipt.id);
        }
    }

    async fn start(&mut self, node: usize) {
        if self.nodes[node].engine.is_some() {
            return;
        }
        let settings = EngineSettings {
            name: format!("node-{node}"),
            places: 8,
            grace: Duration::from_secs(20),
            // Some wait for their answers longer than others take them to be alive.
            statement_timeout: Duration::from_secs([10, 120][self.below(2) as usize]),
            ..EngineSettings::default()
        };
        let kind = KindSettings {
            attempts_max: 6,
            attempt_timeout: Duration::from_secs(10),
            backoff: Backoff::exponential(Duration::from_millis(200)).max(Duration::from_secs(30)),
            sticky_max: Duration::from_secs(2),
            ..KindSettings::default()
        };
        let mut builder = Engine::builder(self.store_of(node))
            .settings(settings)
            .random(Random::seeded(self.random.next()))
            .kind("work", kind)
            .raw_handler("work", self.handler());
        if !self.rules.self_audit {
            builder = builder.without_self_audit();
        }
        let started = tokio::time::timeout(Duration::from_secs(10), builder.start()).await;
        if let Ok(Ok(engine)) = started {
            self.tell(format!("node {node} started as {}", engine.status().holder));
            self.nodes[node].engine = Some(engine);
        }
    }

    fn store_of(&self, node: usize) -> Arc<dyn Store> {
        let (away, unlucky) = (Arc::clone(&self.away), Arc::clone(&self.unlucky));
        let stopped = Arc::clone(&self.nodes[node].stopped);
        let random = Random::seeded(self.random.next());
        let inner: Arc<dyn Store> = Arc::new(self.store.clone());
        Arc::new(FaultyStore::in_weather(inner, move |_verb| {
            let (away, unlucky) = (Arc::clone(&away), Arc::clone(&unlucky));
            let (stopped, random) = (Arc::clone(&stopped), random.clone());
            Box::pin(async move {
                sleep(Duration::from_millis(random.next() % 5)).await;
                while stopped.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(20)).await;
                }
                if away.load(Ordering::SeqCst) {
                    return Some(Fault::Before);
                }
                let is_unlucky = unlucky.load(Ordering::SeqCst) && random.next() % 50 == 0;
                is_unlucky.then(|| Fault::ALL[(random.next() % 3) as usize])
            })
        }))
    }

    /// Works, fails, panics, takes too long; and looks whether its lease was taken away unfairly.
    fn handler(
        &self,
    ) -> impl Fn(JobContext) -> std::pin::Pin<Box<dyn Future<Output = Report> + Send>>
    + Send
    + Sync
    + 'static
    + use<> {
        let (store, told) = (self.store.clone(), Arc::clone(&self.told));
        let random = Random::seeded(self.random.next());
        move |context: JobContext| {
            let (store, told, random) = (store.clone(), Arc::clone(&told), random.clone());
            Box::pin(async move {
                sleep(Duration::from_millis(random.next() % 3_000)).await;
                if random.next() % 30 == 0 {
                    sleep(Duration::from_secs(20)).await;
                }
                assert!(random.next() % 60 != 0, "planned");
                look_at_lease(&store, &told, &context).await;
                let failure = Failure::new(Category::Io, None, "planned");
                match random.next() % 10 {
                    0..6 => Report::Done,
                    6 => Report::Snooze(Duration::from_secs(1)),
                    _ => Report::Failed { verdict: Verdict::Retry, failure },
                }
            })
        }
    }

    fn kill(&mut self, node: usize) {
        if let Some(engine) = self.nodes[node].engine.take() {
            self.tell(format!("node {node} killed"));
            engine.kill();
        }
    }

    /// Others take a node for dead that is not.
    async fn take_for_dead(&self, node: usize) {
        let Some(engine) = &self.nodes[node].engine else { return };
        let _ = self.store.leave(engine.status().holder).await;
        self.tell(format!("node {node} is taken for dead"));
    }

    /// A process stops for a moment, or for longer than others wait for it.
    async fn stand_still(&mut self, node: usize) {
        let seconds = if self.below(2) == 0 { self.below(8) } else { 35 + self.below(50) };
        self.until[node] = self.started.elapsed() + Duration::from_secs(seconds);
        self.nodes[node].stopped.store(true, Ordering::SeqCst);
        self.tell(format!("node {node} stops for {seconds} s"));
    }

    async fn store_goes_away(&mut self) {
        let seconds = if self.below(2) == 0 { self.below(8) } else { 20 + self.below(40) };
        self.away_until = self.started.elapsed() + Duration::from_secs(seconds);
        self.away.store(true, Ordering::SeqCst);
        self.tell(format!("the store goes away for {seconds} s"));
    }

    /// Lets go on whatever has stood still for long enough.
    fn go_on(&self) {
        let now = self.started.elapsed();
        for (node, until) in self.nodes.iter().zip(self.until) {
            if now >= until {
                node.stopped.store(false, Ordering::SeqCst);
            }
        }
        if now >= self.away_until {
            self.away.store(false, Ordering::SeqCst);
        }
    }

    fn jump(&mut self) {
        let by = Duration::from_secs(self.below(600));
        if self.below(2) == 0 {
            self.clock.advance(by);
        } else {
            self.clock.turn_back(by);
        }
        self.tell("the store's clock jumps");
    }

    /// A person pauses, resumes, cancels or retries some job.
    async fn change(&self) {
        let count = self.submitted.len() as u64;
        if count == 0 {
            return;
        }
        let nth = usize::try_from(self.below(count)).unwrap_or(0);
        let job = *self.submitted.iter().nth(nth).expect("it was counted");
        let what = match self.below(4) {
            0 => What::Pause,
            1 => What::Resume,
            2 => What::Cancel,
            _ => What::Retry,
        };
        let changes = [Change::new(job, what)];
        let answer = self.store.change(&changes, &Actor::new("person"), Keep::default()).await;
        self.tell(format!("{job} changed: {answer:?}"));
    }

    async fn resume_all(&self) {
        let paused = Filter { states: vec![State::Paused], ..Filter::default() };
        let page = self.store.list(&paused, &PageRequest::first(1_000)).await;
        let changes: Vec<Change> = page
            .expect("the store itself never fails")
            .items
            .iter()
            .map(|job| Change::new(job.id, What::Resume))
            .collect();
        let _ = self.store.change(&changes, &Actor::new("person"), Keep::default()).await;
    }
}

/// A lease ends by its own holder's hand, or by a takeover, or at the deadline. If it is gone
/// otherwise, somebody wrote who may not.
async fn look_at_lease(store: &MemoryStore, told: &Mutex<Told>, context: &JobContext) {
    let mine = context.job();
    let Status::Leased { holder, .. } = mine.status else { return };
    let Ok(Some(job)) = store.get(mine.id).await else { return };
    let is_mine = matches!(job.status, Status::Leased { holder: now, .. } if now == holder)
        && job.fence == mine.fence;
    let is_late = job.failure.as_ref().is_some_and(|f| f.category() == Category::Deadline);
    if !is_mine && job.takeovers == mine.takeovers && !is_late {
        let (state, fence) = (job.state(), job.fence);
        told.lock().expect("nobody panics with it").violations.push(format!(
            "job {} was taken from its holder: fence {} of a lease without a takeover, now {state} with fence {fence}",
            mine.id, mine.fence
        ));
    }
}

/// Panics of handlers are part of the plan; others are worth reading.
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
