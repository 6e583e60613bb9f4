//! A node of a simulation: its engine, store connection and handler.

use crate::fleet::{GRACE, REMOTE};
use crate::model::{Model, PLACES, Who};
use rewheel::{Category, Random, Verdict};
use rewheel_core::store::Store;
use rewheel_core::{Failure, Report};
use rewheel_engine::{Engine, EngineBuilder, EngineSettings, FollowUp, JobContext};
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// The engine of each node that runs.
pub(crate) type Engines = Arc<Mutex<Vec<Option<Engine>>>>;

/// Calls that loops make, each of which may panic. Some loops are restarted, some stop their engine.
pub(crate) const LOOP_VERBS: [Verb; 16] = [
    Verb::Renew,
    Verb::Sweep,
    Verb::Deadlines,
    Verb::ReleaseGroups,
    Verb::KindsSince,
    Verb::ChangeKind,
    Verb::Lanes,
    Verb::Lanes,
    Verb::Claim,
    Verb::ClaimLimited,
    Verb::Settle,
    Verb::GiveBack,
    Verb::Insert,
    Verb::Prune,
    Verb::TakeSample,
    Verb::ReportHistory,
];

/// The faults for all nodes and workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Luck {
    /// Whether random faults have ended.
    pub(crate) is_over: Arc<AtomicBool>,
    /// Whether the store is unavailable.
    pub(crate) away: Arc<AtomicBool>,
    /// Whether the dependency of the kinds with a breaker is down.
    pub(crate) down: Arc<AtomicBool>,
    /// Whether no housekeeping releases jobs of groups.
    pub(crate) leaves_groups: Arc<AtomicBool>,
}

impl Luck {
    /// Returns true once in `once_in` times, at random.
    pub(crate) fn is_bad(&self, random: &Random, once_in: u64) -> bool {
        !self.is_over.load(Ordering::SeqCst) && random.next().is_multiple_of(once_in)
    }

    /// Returns the report of an attempt.
    pub(crate) fn report(&self, random: &Random, depends: bool) -> Report {
        let failure = Failure::new(Category::Io, None, "planned");
        let is_down = depends && self.down.load(Ordering::SeqCst);
        match random.next() % 10 {
            _ if is_down => Report::AttemptFailed { verdict: Verdict::Retry, failure },
            0..6 => Report::Done,
            6 => Report::Snooze(Duration::from_secs(1)),
            _ => Report::AttemptFailed { verdict: Verdict::Retry, failure },
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Whether the process is suspended: its calls complete when it resumes.
    pub(crate) stopped: Arc<AtomicBool>,
    /// The call that panics next.
    pub(crate) panics: Arc<Mutex<Option<Verb>>>,
}

impl Node {
    pub(crate) fn builder(
        &self,
        name: String,
        who: Who,
        model: &Arc<Model>,
        luck: &Luck,
        random: &Random,
    ) -> EngineBuilder {
        let settings = EngineSettings {
            name,
            concurrency: PLACES,
            overdue_grace: GRACE,
            // Some wait for responses longer than their lease lasts.
            statement_timeout: Duration::from_secs([10, 120][(random.next() % 2) as usize]),
            ..EngineSettings::default()
        };
        let mut builder = Engine::builder(self.store(who, model, luck, random))
            .settings(settings)
            .random(Random::seeded(random.next()));
        for (kind, settings) in &model.fleet.kinds {
            builder = builder.kind(kind, settings.clone());
            if *kind != REMOTE {
                builder = builder.raw_handler(kind, handler(who, model, luck, random));
            }
        }
        for (tenant, settings) in &model.fleet.tenants {
            builder = builder.tenant(tenant, settings.clone());
        }
        builder
    }

    fn store(&self, who: Who, model: &Arc<Model>, luck: &Luck, random: &Random) -> Arc<dyn Store> {
        let (node, model, luck) = (self.clone(), Arc::clone(model), luck.clone());
        let random = Random::seeded(random.next());
        let inner: Arc<dyn Store> = Arc::new(model.store.clone());
        Arc::new(FaultyStore::with_faults(inner, move |verb| {
            let (node, model, luck) = (node.clone(), Arc::clone(&model), luck.clone());
            let random = random.clone();
            Box::pin(async move {
                sleep(Duration::from_millis(random.next() % 5)).await;
                while node.stopped.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(100)).await;
                }
                let is_hit = node.take_panic(verb);
                if is_hit {
                    model.panics(who, verb);
                }
                assert!(!is_hit, "planned");
                model.look_at_breakers(who);
                let leaves_groups = luck.leaves_groups.load(Ordering::SeqCst);
                if luck.away.load(Ordering::SeqCst)
                    || (leaves_groups && verb == Verb::ReleaseGroups)
                {
                    return Some(Fault::Before);
                }
                let is_unlucky = luck.is_bad(&random, 50);
                let fault = is_unlucky.then(|| Fault::ALL[(random.next() % 3) as usize]);
                if matches!(verb, Verb::Kinds | Verb::KindsSince) && fault.is_none() {
                    model.hears(who);
                }
                fault
            })
        }))
    }

    /// Returns whether this call panics.
    fn take_panic(&self, verb: Verb) -> bool {
        let mut panics = self.panics.lock().expect("nothing panics with it");
        panics.take_if(|planned| *planned == verb).is_some()
    }
}

type Reporting = Pin<Box<dyn Future<Output = Report> + Send>>;

/// Works, fails, panics or takes too long; and checks whether its lease was taken away wrongly.
fn handler(
    who: Who,
    model: &Arc<Model>,
    luck: &Luck,
    random: &Random,
) -> impl Fn(JobContext) -> Reporting + Send + Sync + 'static + use<> {
    let (model, luck) = (Arc::clone(model), luck.clone());
    let random = Random::seeded(random.next());
    move |context: JobContext| {
        let (model, luck, random) = (Arc::clone(&model), luck.clone(), random.clone());
        Box::pin(async move {
            let job = context.job();
            let _run = model.begin(who, job).await;
            let wants = model.may_submit(job) && random.next().is_multiple_of(3);
            let submitted = wants.then(|| context.submit(FollowUp::raw("work", Vec::new())));
            let submitted = submitted.and_then(Result::ok);
            submitted.iter().for_each(|id| model.submits(job, *id));
            sleep(Duration::from_millis(random.next() % 3_000)).await;
            if luck.is_bad(&random, 30) {
                sleep(Duration::from_secs(20)).await;
            }
            assert!(!luck.is_bad(&random, 60), "planned");
            model.look_at_lease(who, job).await;
            let _ = context.set_result("text/plain", model.gives(job));
            let report = luck.report(&random, model.fleet.depends(job.lane.kind.as_str()));
            if let (Some(id), Report::Done) = (submitted, &report) {
                model.submitter_is_done(id);
            }
            match (submitted, report) {
                // Whether a snooze counted cannot be read from the job afterwards.
                (Some(_), Report::Snooze(_)) => {
                    let failure = Failure::new(Category::Io, None, "planned");
                    Report::AttemptFailed { verdict: Verdict::Retry, failure }
                }
                (_, report) => report,
            }
        })
    }
}
