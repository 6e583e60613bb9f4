//! Tests a job that crashes every process that runs it, beside a thousand other jobs.

use crate::fleet::{Fleet, until};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use rewheel::millis;
use rewheel_core::store::{Change, ChangeVerb, Filter, PageRequest, Store};
use rewheel_core::{Actor, Job, KindName, Retain, State as JobState};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const THOUSAND: usize = 1_000;
const CAP: u32 = 3;

/// What the thousand jobs do when their process dies.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    /// They wait in its timing wheel: nothing may be counted against them.
    Waits,
    /// They are due: a running job that was taken over before may itself be the poison. That is counted, but no count reaches the cap,
    /// because the last run is alone.
    Runs,
}

impl Beside {
    fn job(self) -> Value {
        let delay = match self {
            Beside::Waits => "1h",
            Beside::Runs => "0s",
        };
        json!({"kind": "steady", "payload": {}, "delay": delay})
    }

    #[track_caller]
    fn check(self, job: &Job, state: JobState) {
        let counted = job.takeovers_counted;
        match self {
            Beside::Waits => assert_eq!((job.state(), counted), (state, 0)),
            Beside::Runs => assert!(job.state() != JobState::Dead && counted < CAP, "{job:?}"),
        }
        let ran = u32::from(job.state() == JobState::Succeeded);
        assert_eq!(job.attempt, ran, "a crash uses up no attempt");
    }
}

/// The callee of the jobs, and the receiver of notices.
struct World {
    url: String,
    /// The node that runs the poison job, reported at its start.
    poisoned: mpsc::UnboundedReceiver<String>,
    told: Arc<Mutex<Vec<Value>>>,
    _serving: JoinSet<()>,
}

impl World {
    async fn start() -> World {
        let (name, poisoned) = mpsc::unbounded_channel();
        let told = Arc::new(Mutex::default());
        let app = Router::new()
            .route("/poison", post(poison).with_state(name))
            .route("/steady", post(steady).with_state(Arc::clone(&told)))
            .route("/told", post(tell).with_state(Arc::clone(&told)));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        World { url, poisoned, told, _serving: serving }
    }

    fn told(&self) -> Vec<Value> {
        self.told.lock().unwrap().clone()
    }

    fn config(&self, store: &str) -> String {
        let url = &self.url;
        let kind = |name: &str| {
            format!(
                r#"
                [kinds.{name}]
                runner = "callback"
                takeovers_max = {CAP}
                [kinds.{name}.callback]
                url = "{url}/{name}"
                allow = ["127.0.0.0/8"]
                headers = {{ x-node = "${{NODE}}" }}
                "#
            )
        };
        // A long horizon: jobs that are due in an hour wait in the timing wheels.
        format!(
            r#"
            [store]
            url = "{store}"
            [engine]
            lease_ttl = "3s"
            housekeeping = "500ms"
            horizon = "2h"
            [[notify.route]]
            to = "webhook"
            url = "{url}/told"
            events = ["dead_letter"]
            {}{}"#,
            kind("poison"),
            kind("steady"),
        )
    }
}

/// Reports the node, and never responds: the process is killed before that.
async fn poison(State(name): State<mpsc::UnboundedSender<String>>, headers: HeaderMap) {
    name.send(headers["x-node"].to_str().unwrap().to_owned()).unwrap();
    std::future::pending::<()>().await;
}

/// Takes long enough to be running when the process dies. Later that is not necessary: jobs with one chance left run one at a time.
async fn steady(State(told): State<Arc<Mutex<Vec<Value>>>>) {
    if told.lock().unwrap().is_empty() {
        tokio::time::sleep(millis(300)).await;
    }
}

async fn tell(State(told): State<Arc<Mutex<Vec<Value>>>>, Json(notice): Json<Value>) {
    told.lock().unwrap().push(notice);
}

async fn thousand(store: &dyn Store) -> Vec<Job> {
    let filter = Filter { kinds: vec![KindName::parse("steady").unwrap()], ..Filter::default() };
    let mut jobs = store.list(&filter, &PageRequest::first(THOUSAND)).await.unwrap().items;
    jobs.sort_by_key(|job| job.id);
    jobs
}

/// Returns the document of the poison job once it is dead, and how many processes it killed.
async fn kill_until_dead(world: &mut World, fleet: &mut Fleet, beside: Beside) -> (Value, u32) {
    fleet.post("/v1/jobs/batch", json!({"jobs": vec![beside.job(); THOUSAND]})).await;
    let poison = fleet.post("/v1/jobs", json!({"kind": "poison", "payload": {}})).await;
    let path = format!("/v1/jobs/{}", poison["id"].as_str().unwrap());
    let mut killed = 0;
    loop {
        tokio::select! {
            name = world.poisoned.recv() => {
                if beside == Beside::Waits {
                    let leased = async || fleet.kind("steady").await["jobs"]["leased"].clone();
                    until("all are held", async || leased().await == THOUSAND).await;
                }
                fleet.kill(&name.unwrap()).await;
                killed += 1;
            }
            () = until("it runs, or is dead", async || fleet.get(&path).await["state"] == "dead") => {
                return (fleet.get(&path).await, killed);
            }
        }
    }
}

async fn no_dead_holder_has_a_job(fleet: &Fleet) -> bool {
    let jobs = fleet.get("/v1/jobs?kind=steady&state=leased&limit=1000").await;
    let holders = fleet.get("/v1/holders?limit=1000").await;
    let alive: Vec<&Value> = holders["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|holder| holder["died"].is_null())
        .map(|holder| &holder["id"])
        .collect();
    jobs["items"].as_array().unwrap().iter().all(|job| alive.contains(&&job["holder"]))
}

async fn poison_beside_a_thousand(url: &str, nodes: usize, beside: Beside) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("rewheel.toml");
    let mut world = World::start().await;
    std::fs::write(&config, world.config(url)).unwrap();
    let mut fleet = Fleet::start(&config, nodes).await;

    let (poison, killed) = kill_until_dead(&mut world, &mut fleet, beside).await;
    // The first crash makes it a suspect, and only the starts of suspects are recorded.
    assert_eq!((killed, &poison["takeovers"]), (CAP + 1, &json!(CAP + 1)));
    assert_eq!(poison["failure"]["code"], "takeovers");
    assert_eq!(poison["attempt"], 0, "a crash uses up no attempt");
    let audit = poison["audit"].as_array().unwrap();
    let whats: Vec<&str> = audit.iter().map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["dead", "takeover", "takeover", "takeover", "takeover"]);
    until("a notification is sent", async || !world.told().is_empty()).await;
    // A sweep takes a thousand jobs at a time, and the poison was one of them.
    until("no dead holder has a job", async || no_dead_holder_has_a_job(&fleet).await).await;
    fleet.stop().await;

    let store = rewheel_stores::connect(url).await.unwrap();
    let jobs = thousand(&*store).await;
    assert_eq!(jobs.len(), THOUSAND);
    jobs.iter().for_each(|job| beside.check(job, JobState::Scheduled));
    let taken: u32 = jobs.iter().map(|job| job.takeovers).sum();
    let least = if beside == Beside::Waits { THOUSAND } else { 1 };
    assert!(taken as usize >= least, "only {taken} takeovers: they were not beside it");
    let now: Vec<Change> = jobs.iter().map(|job| Change::new(job.id, ChangeVerb::Retry)).collect();
    store.change(&now, &Actor::new("test"), Retain::default()).await.unwrap();
    store.close().await.unwrap();

    // A new start also searches for dead letters that were not announced.
    let fleet = Fleet::start(&config, nodes).await;
    until("the thousand are done", async || {
        let list = fleet.get("/v1/jobs?kind=steady&state=succeeded&limit=1000").await;
        list["items"].as_array().unwrap().len() == THOUSAND
    })
    .await;
    fleet.stop().await;
    let told = world.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["job"], &told[0]["reason"]), (&poison["id"], &json!("takeovers")));
    assert_eq!(told[0]["severity"], "critical");
    let store = rewheel_stores::connect(url).await.unwrap();
    for job in thousand(&*store).await {
        assert_eq!(job.state(), JobState::Succeeded);
        beside.check(&job, JobState::Succeeded);
    }
    assert_eq!(store.books().await.unwrap().missing(), 0);
    store.close().await.unwrap();
}

async fn on_sqlite(beside: Beside) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("poison.db").display());
    // A file has one node at a time.
    poison_beside_a_thousand(&url, 1, beside).await;
}

#[cfg(feature = "test-postgres")]
async fn on_postgres(beside: Beside) {
    let schema = rewheel_testkit::Schema::fresh();
    poison_beside_a_thousand(schema.url(), 2, beside).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poison_job_is_dead_at_its_cap_and_none_that_waits_is_charged_on_sqlite() {
    let _alone = crate::alone().await;
    on_sqlite(Beside::Waits).await;
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poison_job_is_dead_at_its_cap_and_none_that_waits_is_charged_on_postgres() {
    let _alone = crate::alone().await;
    on_postgres(Beside::Waits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_that_runs_beside_a_poison_job_dies_with_it_on_sqlite() {
    let _alone = crate::alone().await;
    on_sqlite(Beside::Runs).await;
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_that_runs_beside_a_poison_job_dies_with_it_on_postgres() {
    let _alone = crate::alone().await;
    on_postgres(Beside::Runs).await;
}
