//! Tests that batches take few round trips, however many jobs they have.

use super::support::{number, open_at};
use mysql_async::prelude::Queryable;
use rewheel::Category;
use rewheel_core::store::{Change, ChangeVerb, Changed, Leased, Outcome, Settled, Settlement};
use rewheel_core::{
    Actor, ContentType, Decision, DueReason, Failure, GivenResult, HolderId, Job, JobId, JobResult,
    Key, KindName, Lease, Limits, NewJob, NewKind, Retain, State, StoredResult, Timestamp, When,
};
use rewheel_testkit::{Database, Subject};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Number of jobs in a batch.
const JOBS: usize = 400;

/// Forwards connections to the server, and counts how often clients sent something.
struct Proxy {
    url: String,
    asked: Arc<AtomicUsize>,
    commits: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Proxy {
    async fn start(database: &Database) -> Proxy {
        Proxy::slow(database, Duration::ZERO).await
    }

    /// Forwards what clients send after this time, as a long line does.
    async fn slow(database: &Database, delay: Duration) -> Proxy {
        let (login, rest) = database.url().rsplit_once('@').expect("a login");
        let (server, name) = rest.split_once('/').expect("a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("{login}@{}/{name}", listener.local_addr().expect("an address"));
        let (server, mut task) = (server.to_owned(), JoinSet::new());
        let (asked, commits) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, committed) = (Arc::clone(&asked), Arc::clone(&commits));
        task.spawn(async move {
            let mut pumps = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.expect("a server");
                let (mut client_says, mut client_hears) = client.into_split();
                let (mut server_says, mut server_hears) = server.into_split();
                let (counted, committed) = (Arc::clone(&counted), Arc::clone(&committed));
                pumps.spawn(async move {
                    let mut bytes = vec![0; 64 * 1024];
                    while let Ok(count @ 1..) = client_says.read(&mut bytes).await {
                        counted.fetch_add(1, Ordering::SeqCst);
                        let is_commit = bytes[..count].windows(6).any(|part| part == b"COMMIT");
                        committed.fetch_add(usize::from(is_commit), Ordering::SeqCst);
                        if !delay.is_zero() {
                            tokio::time::sleep(delay).await;
                        }
                        if server_hears.write_all(&bytes[..count]).await.is_err() {
                            return;
                        }
                    }
                });
                pumps.spawn(async move { drop(copy(&mut server_says, &mut client_hears).await) });
            }
        });
        Proxy { url, asked, commits, _task: task }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// What needs statements of its own for each job is written in parts: one transaction for all would never end before its caller gives up.
#[tokio::test]
async fn a_long_batch_over_a_slow_line_is_written_in_parts() {
    const MANY: usize = 250;
    let database = Database::fresh();
    let proxy = Proxy::slow(&database, Duration::from_millis(5)).await;
    // Each transaction may take a quarter of it.
    let subject = open_at(&format!("{}?statement_timeout=4s", proxy.url)).await;
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.insert(&subject.jobs("charge", MANY)).await;
    let leased = subject.claim(holder, &["charge"], MANY).await;
    let settlements: Vec<Settlement> = leased
        .iter()
        .map(|leased| Settlement {
            // A new payload is a statement of its own.
            payload: Some(b"{}".to_vec()),
            ..subject.retry(leased.lease(), Duration::ZERO, false)
        })
        .collect();
    let before = proxy.commits.load(Ordering::SeqCst);
    let answers = subject.store.settle(holder, &settlements).await.expect("settled");
    assert_eq!(answers, [Settled::Applied(Outcome::LetGo(State::Scheduled))].repeat(MANY));
    assert!(proxy.commits.load(Ordering::SeqCst) > before + 1, "one transaction");
    let change = |leased: &Leased| Change::new(leased.job.id, ChangeVerb::Pause);
    let changes: Vec<Change> = leased.iter().map(change).collect();
    let before = proxy.commits.load(Ordering::SeqCst);
    let by = Actor::new("test");
    let answers = subject.store.change(&changes, &by, Retain::default()).await.expect("changed");
    assert_eq!(answers.len(), MANY);
    let is_done =
        |answer: &Changed| matches!(answer, Changed::Applied { state: State::Paused, .. });
    assert!(answers.iter().all(is_done), "{:?}", answers[0]);
    assert!(proxy.commits.load(Ordering::SeqCst) > before + 1, "one transaction");
    subject.balance().await;
}

/// A takeover of thousands of jobs must not take minutes, nor exceed a timeout, where the server is some milliseconds away.
#[tokio::test]
async fn a_sweep_takes_a_few_round_trips() {
    let database = Database::fresh();
    let proxy = Proxy::start(&database).await;
    let subject = open_at(&proxy.url).await;
    subject.kinds(&["charge"]).await;
    let (by, dead) = (subject.holder().await, subject.holder().await);
    subject.insert(&subject.jobs("charge", JOBS)).await;
    assert_eq!(subject.claim(dead, &["charge"], JOBS).await.len(), JOBS);
    subject.store.leave(dead).await.expect("it left");
    let before = proxy.asked();
    assert_eq!(subject.sweep(by).await.len(), JOBS);
    let asked = proxy.asked() - before;
    assert!(asked <= JOBS / 8, "{asked} round trips");
    subject.balance().await;
}

/// Jobs in a batch of the largest size, leased to one holder on a server that counts what it is asked.
struct Batch {
    database: Database,
    proxy: Proxy,
    subject: Subject,
    holder: HolderId,
    leases: Vec<Lease>,
}

/// Round trips for one batch: each text of a statement is sent once before it runs.
const FEW: usize = 60;

impl Batch {
    async fn leased(change: impl Fn(usize, &mut NewJob)) -> Batch {
        let database = Database::fresh();
        let proxy = Proxy::start(&database).await;
        let subject = open_at(&proxy.url).await;
        subject.kinds(&["charge"]).await;
        let holder = subject.holder().await;
        let mut jobs = subject.jobs("charge", Limits::BATCH_MAX);
        jobs.iter_mut().enumerate().for_each(|(nth, job)| change(nth, job));
        subject.insert(&jobs).await;
        let leased = subject.claim(holder, &["charge"], Limits::BATCH_MAX).await;
        assert_eq!(leased.len(), Limits::BATCH_MAX);
        let leases = leased.iter().map(Leased::lease).collect();
        Batch { database, proxy, subject, holder, leases }
    }

    /// Settles all jobs twice, each time with few round trips, and returns the first answers.
    async fn settle(&self, settlement: impl Fn(Lease) -> Settlement) -> Vec<Settled> {
        let settlements: Vec<Settlement> = self.leases.iter().copied().map(settlement).collect();
        let mut both = Vec::new();
        for _ in 0..2 {
            let before = self.proxy.asked();
            both.push(self.subject.store.settle(self.holder, &settlements).await.expect("settled"));
            let asked = self.proxy.asked() - before;
            assert!(asked <= FEW, "{asked} round trips");
        }
        let again = both.pop().expect("the second");
        let first = both.pop().expect("the first");
        for (first, again) in first.iter().zip(again) {
            match (first, again) {
                (
                    Settled::Applied(Outcome::Kept { fence, .. }),
                    Settled::AlreadyApplied(Outcome::Kept { fence: same, .. }),
                ) => {
                    assert_eq!(*fence, same);
                }
                (Settled::Applied(outcome), Settled::AlreadyApplied(Outcome::Gone)) => {
                    assert!(matches!(outcome, Outcome::LetGo(state) if !state.is_live()));
                }
                (Settled::Applied(outcome), Settled::AlreadyApplied(same)) => {
                    assert_eq!(*outcome, same);
                }
                other => panic!("{other:?}"),
            }
        }
        self.subject.balance().await;
        first
    }

    async fn jobs(&self) -> Vec<Job> {
        let ids: Vec<JobId> = self.leases.iter().map(|lease| lease.job).collect();
        self.subject.store.find(&ids).await.expect("the jobs")
    }
}

#[tokio::test]
async fn a_batch_of_successes_takes_a_few_round_trips() {
    Batch::leased(|_, _| ()).await.settle(Settlement::succeed).await;
}

/// Keys, deadlines and results are rows of their own.
#[tokio::test]
async fn a_batch_of_successes_with_keys_deadlines_and_results_takes_a_few_round_trips() {
    let batch = Batch::leased(|nth, job| {
        job.key = Key::parse(&format!("order-{nth}")).ok();
        job.deadline = Some(When::In(Duration::from_secs(3_600)));
    })
    .await;
    let result = GivenResult::Kept(JobResult {
        content_type: ContentType::parse("text/plain").expect("a content type"),
        body: b"paid".to_vec(),
    });
    let hour = Duration::from_secs(3_600);
    let keep = Retain { job: hour, key: hour };
    let settle =
        |lease| Settlement { keep, result: Some(result.clone()), ..Settlement::succeed(lease) };
    batch.settle(settle).await;
    for lease in [batch.leases[0], batch.leases[Limits::BATCH_MAX - 1]] {
        let stored = batch.subject.store.result(lease.job).await.expect("a result");
        assert!(matches!(stored, Some(StoredResult::Kept(result)) if result.body == b"paid"));
    }
    let mut connection = batch.database.connect().await;
    for (sql, expected) in [
        (
            "SELECT COUNT(*) FROM rewheel_keys WHERE state = 'succeeded' AND expires_ms > 0",
            Limits::BATCH_MAX,
        ),
        ("SELECT COUNT(*) FROM rewheel_deadlines", 0),
        ("SELECT COUNT(*) FROM rewheel_claims", 0),
    ] {
        assert_eq!(number(&mut connection, sql).await, expected as i64, "{sql}");
    }
}

/// A failure as awkward as it can be stored.
fn failure(nth: usize) -> Failure {
    Failure::new(Category::Io, Some("E\"'"), &format!("it's \"broken\" \\ \u{1f980} {nth}"))
}

#[tokio::test]
async fn a_batch_of_retries_takes_a_few_round_trips() {
    let batch = Batch::leased(|_, _| ()).await;
    let (after, because) = (Duration::from_secs(60), DueReason::Backoff);
    batch
        .settle(|lease| Settlement {
            decision: Decision::Retry { after, sticky: false, because },
            failure: Some(failure(7)),
            ..Settlement::succeed(lease)
        })
        .await;
    for job in batch.jobs().await {
        assert_eq!((job.state(), job.attempt, job.because), (State::Scheduled, 1, because));
        assert_eq!(job.failure, Some(failure(7)));
    }
    let attempts = batch.subject.store.attempts(batch.leases[3].job).await.expect("records");
    assert_eq!(attempts.len(), 1);
    // They run again, and without retention their records end with them.
    batch.subject.clock.advance(after);
    let leased = batch.subject.claim(batch.holder, &["charge"], Limits::BATCH_MAX).await;
    let leases: Vec<Lease> = leased.iter().map(Leased::lease).collect();
    assert_eq!(leases.len(), Limits::BATCH_MAX);
    let batch = Batch { leases, ..batch };
    let keep = Retain { job: Duration::ZERO, key: Duration::ZERO };
    batch.settle(|lease| Settlement { keep, ..Settlement::succeed(lease) }).await;
    let mut connection = batch.database.connect().await;
    let left =
        "SELECT (SELECT COUNT(*) FROM rewheel_attempts) + (SELECT COUNT(*) FROM rewheel_jobs)";
    assert_eq!(number(&mut connection, left).await, 0);
}

#[tokio::test]
async fn a_batch_of_sticky_retries_takes_a_few_round_trips() {
    let batch = Batch::leased(|_, _| ()).await;
    let (after, because) = (Duration::from_secs(60), DueReason::Backoff);
    batch
        .settle(|lease| Settlement {
            decision: Decision::Retry { after, sticky: true, because },
            failure: Some(failure(7)),
            hold: Duration::from_secs(30),
            ..Settlement::succeed(lease)
        })
        .await;
    for job in batch.jobs().await {
        assert_eq!((job.state(), job.attempt, job.because), (State::Leased, 1, because));
        assert_eq!(job.failure, Some(failure(7)));
    }
}

#[tokio::test]
async fn a_batch_of_dead_letters_takes_a_few_round_trips() {
    let deadline = Some(When::In(Duration::from_secs(3_600)));
    let batch = Batch::leased(|_, job| job.deadline = deadline).await;
    batch
        .settle(|lease| Settlement {
            decision: Decision::Dead { failure: failure(7) },
            failure: Some(failure(7)),
            ..Settlement::succeed(lease)
        })
        .await;
    for job in batch.jobs().await {
        assert_eq!((job.state(), job.attempt), (State::Dead, 1));
        assert_eq!(job.failure, Some(failure(7)));
    }
    let mut connection = batch.database.connect().await;
    assert_eq!(number(&mut connection, "SELECT COUNT(*) FROM rewheel_deadlines").await, 0);
}

#[tokio::test]
async fn a_batch_that_is_given_back_takes_a_few_round_trips() {
    let batch = Batch::leased(|_, _| ()).await;
    for expected in [
        Settled::Applied(Outcome::LetGo(State::Scheduled)),
        Settled::AlreadyApplied(Outcome::LetGo(State::Scheduled)),
    ] {
        let before = batch.proxy.asked();
        let store = &batch.subject.store;
        let answers = store.give_back(batch.holder, &batch.leases, Retain::default()).await;
        let asked = batch.proxy.asked() - before;
        assert!(asked <= FEW, "{asked} round trips");
        let answers = answers.expect("given back");
        assert_eq!(answers.len(), Limits::BATCH_MAX);
        assert!(answers.iter().all(|answer| *answer == expected), "{:?}", answers[0]);
    }
    let leased = batch.subject.claim(batch.holder, &["charge"], Limits::BATCH_MAX).await;
    assert_eq!(leased.len(), Limits::BATCH_MAX);
    batch.subject.balance().await;
}

/// A holder that the store does not know asks for many jobs.
#[tokio::test]
async fn late_results_take_a_few_round_trips() {
    let batch = Batch::leased(|_, _| ()).await;
    let settlements: Vec<Settlement> =
        batch.leases.iter().copied().map(Settlement::succeed).collect();
    let unknown = HolderId::new(Timestamp::from_millis(1), &batch.subject.random);
    let before = batch.proxy.asked();
    let answers = batch.subject.store.settle(unknown, &settlements).await.expect("answers");
    let asked = batch.proxy.asked() - before;
    assert!(asked <= FEW, "{asked} round trips");
    assert!(answers.iter().all(|answer| *answer == Settled::Lost), "{:?}", answers[0]);
}

#[tokio::test]
async fn many_kinds_are_put_with_a_few_round_trips() {
    let database = Database::fresh();
    let proxy = Proxy::start(&database).await;
    let subject = open_at(&proxy.url).await;
    let kind = |nth: usize, settings: &str| NewKind {
        name: KindName::parse(&format!("kind-{nth:04}")).expect("a kind"),
        settings: settings.to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    let old: Vec<NewKind> = (0..1_000).map(|nth| kind(nth, "{}")).collect();
    // Half of them are known, and of these half are as they were.
    let settings = |nth: usize| if nth.is_multiple_of(2) { "{}" } else { "{\"a\":1}" };
    let new: Vec<NewKind> = (500..1_500).map(|nth| kind(nth, settings(nth))).collect();
    let at = subject.store.kinds_since(0).await.expect("the kinds").at;
    for (kinds, changes) in [(&old, 1_000), (&old, 1_000), (&new, 1_000 + 250 + 500)] {
        let before = proxy.asked();
        subject.store.put_kinds(kinds, &Actor::new("test")).await.expect("stored");
        let asked = proxy.asked() - before;
        assert!(asked <= FEW, "{asked} round trips");
        assert_eq!(subject.store.kinds_since(0).await.expect("the kinds").at, at + changes);
    }
    let found = subject.store.kinds().await.expect("the kinds");
    assert_eq!(found.len(), 1_500);
    assert_eq!(found[501].settings, "{\"a\":1}");
    let since = subject.store.kinds_since(at + 1_750 - 10).await.expect("the kinds");
    assert_eq!((since.all, since.kinds.len()), (false, 10));
    let log = subject.store.audit(None, None, 1).await.expect("the log");
    assert_eq!(log[0].what, "put kind");
    let mut connection = database.connect().await;
    let entries = "SELECT COUNT(*) FROM rewheel_audit WHERE what = 'put kind'";
    assert_eq!(number(&mut connection, entries).await, 1_750);
    assert_eq!(number(&mut connection, "SELECT COUNT(*) FROM rewheel_kind_names").await, 1_500);
}

/// Fences are large after a failover, but the histories of jobs are as short as before: none is searched for records.
#[tokio::test]
async fn a_later_epoch_takes_as_many_round_trips() {
    let database = Database::fresh();
    let proxy = Proxy::start(&database).await;
    let (mut fails, mut drops) = (Vec::new(), Vec::new());
    for epoch in 0..2_u64 {
        let subject = open_at(&proxy.url).await;
        subject.kinds(&["charge"]).await;
        let holder = subject.holder().await;
        // The least of some, because a connection prepares its statements first.
        let mut least = usize::MAX;
        for _ in 0..6 {
            subject.submit("charge").await;
            let lease = subject.claim_only(holder, "charge").await.lease();
            assert_eq!(lease.fence.get(), (epoch << 32) + 1);
            let before = proxy.asked();
            subject.settle(holder, &subject.dead(lease)).await;
            least = least.min(proxy.asked() - before);
        }
        fails.push(least);

        subject.insert(&subject.jobs("charge", JOBS)).await;
        let keep = Retain { job: Duration::ZERO, key: Duration::ZERO };
        let leased = subject.claim(holder, &["charge"], JOBS).await;
        let settlements: Vec<Settlement> = leased
            .iter()
            .map(|leased| Settlement { keep, ..Settlement::succeed(leased.lease()) })
            .collect();
        let before = proxy.asked();
        subject.store.settle(holder, &settlements).await.expect("settled");
        drops.push(proxy.asked() - before);
        let mut connection = database.connect().await;
        connection.query_drop("UPDATE rewheel_epochs SET server = 'another'").await.expect("moved");
    }
    assert_eq!(fails[0], fails[1]);
    assert!(drops.iter().all(|asked| *asked <= JOBS / 8), "{drops:?}");
}
