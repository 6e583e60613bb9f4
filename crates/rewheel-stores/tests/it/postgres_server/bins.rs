//! Tests of the bins of finished jobs: tables that are emptied when all their jobs have expired.

use super::support::{Node, WITHOUT_BINS, counted, soon};
use rewheel_core::store::{
    Filter, Leased, PageRequest, ReadStore, Settled, Settlement, Store, StoreResult,
};
use rewheel_core::{GroupKey, HolderId, JobId, Key, NewJob, Retain, State};
use rewheel_stores::PostgresOptions;
use rewheel_testkit::{Schema, seconds};
use std::time::Duration;
use tokio_postgres::Client;

pub(super) const MINUTE: Duration = seconds(60);

/// Two retentions with bins of their own.
pub(super) const SHORT: Duration = seconds(5 * 60);
const LONG: Duration = seconds(24 * 3_600);

/// A node that opens a bin for each finished job, and a connection of another client.
pub(super) struct Scene {
    pub(super) schema: Schema,
    pub(super) node: Node,
    holder: HolderId,
    visitor: rewheel_testkit::Visitor,
}

impl Scene {
    pub(super) async fn new() -> Scene {
        let schema = Schema::fresh();
        let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
        options.binned_min = 1;
        let node = Node::with(options).await;
        node.kinds(&["a"]).await;
        let holder = node.holder().await;
        let visitor = schema.connect().await;
        Scene { schema, node, holder, visitor }
    }

    /// Runs jobs that succeed and are kept.
    async fn succeed(&self, jobs: &[NewJob], keep: Duration) {
        self.node.insert(jobs).await;
        let leased = self.node.claim(self.holder, &["a"], jobs.len()).await;
        assert_eq!(leased.len(), jobs.len());
        let keep = Retain { job: keep, key: keep };
        let settlements: Vec<Settlement> = leased
            .iter()
            .map(|leased| Settlement { keep, ..Settlement::succeed(leased.lease()) })
            .collect();
        self.settle(&settlements).await;
    }

    /// Runs some jobs. The first one opens the bin for the others.
    pub(super) async fn fill(&self, jobs: usize, keep: Duration) -> Vec<JobId> {
        self.succeed(&self.node.jobs("a", 1), keep).await;
        let jobs = self.node.jobs("a", jobs);
        self.succeed(&jobs, keep).await;
        jobs.iter().map(|job| job.id).collect()
    }

    /// Begins another epoch, as after a failover: all fences are larger from now on. Returns the job that is due.
    async fn promote(&self) -> Leased {
        self.sql("UPDATE {s}.epochs SET timeline = timeline - 1").await;
        for _ in 0..3 {
            let Ok(mut leased) = self.node.try_claim(self.holder, &["a"], 1).await else {
                continue;
            };
            let leased = leased.pop().expect("a job is due");
            assert!(leased.job.fence.get() > 1 << 32);
            return leased;
        }
        panic!("no epoch begins");
    }

    async fn settle(&self, settlements: &[Settlement]) {
        let settled = self.node.subject.store.settle(self.holder, settlements).await;
        let settled = settled.expect("settled");
        assert!(settled.iter().all(|answer| matches!(answer, Settled::Applied(_))), "{settled:?}");
    }

    async fn sql(&self, sql: &str) {
        let sql = sql.replace("{s}", self.schema.name());
        self.visitor.batch_execute(&sql).await.expect("a statement");
    }

    async fn count(&self, sql: &str) -> i64 {
        counted(&self.visitor, &sql.replace("{s}", self.schema.name())).await
    }

    /// Returns the number of jobs in bins that are emptied as a whole.
    async fn binned(&self) -> i64 {
        self.count("SELECT count(*) FROM {s}.finished_bins WHERE bin > 0").await
    }

    /// Returns the number of bytes of the tables of these bins, without their indexes.
    async fn bytes(&self) -> i64 {
        let name = self.schema.name();
        let sql = format!(
            "SELECT sum(pg_relation_size(oid))::bigint FROM pg_class
              WHERE relnamespace = '{name}'::regnamespace AND relkind = 'r' AND relname ~ '^finished_bin_[1-9]'"
        );
        counted(&self.visitor, &sql).await
    }

    pub(super) fn wait(&self, time: Duration) {
        self.node.clock.advance(time);
    }
}

#[tokio::test]
async fn a_bin_is_emptied_when_all_its_jobs_have_expired() {
    let scene = Scene::new().await;
    let node = &scene.node;
    let jobs = scene.fill(20, SHORT).await;
    assert_eq!(scene.binned().await, 20);
    node.balance().await;

    scene.wait(SHORT / 2);
    assert_eq!(node.prune_all().await.finished, 0);
    assert_eq!(node.get(jobs[0]).await.state(), State::Succeeded);

    scene.wait(SHORT / 2 + MINUTE);
    assert_eq!(node.prune_all().await.finished, 21);
    let books = node.store.books().await.expect("books");
    assert_eq!((books.submitted, books.finished, books.pruned), (21, 0, 21));
    assert_eq!(books.missing(), 0);
    assert_eq!(scene.bytes().await, 0, "they were deleted one by one");
    assert_eq!(
        scene
            .count("SELECT count(*) FROM {s}.bins WHERE from_ms + width_ms < {s}.now_ms() + 360000")
            .await,
        0
    );
}

/// Five minutes of retention, and twenty minutes of jobs: the tables stay as small as after seven minutes.
#[tokio::test]
async fn a_short_retention_keeps_the_tables_small() {
    let scene = Scene::new().await;
    let mut sizes = Vec::new();
    for _ in 0..20 {
        scene.fill(200, SHORT).await;
        scene.wait(MINUTE);
        scene.node.prune_all().await;
        assert!(scene.count("SELECT count(*) FROM {s}.bins").await <= 9);
        sizes.push(scene.bytes().await);
    }
    let (early, late) = (&sizes[..10], &sizes[10..]);
    let most = |sizes: &[i64]| sizes.iter().copied().max().unwrap_or(0);
    assert!(most(late) <= most(early) * 5 / 4, "{sizes:?}");
    assert!(scene.binned().await >= 4 * 200, "they are kept");
    let dead = "SELECT count(*) FROM {s}.finished_bin_0";
    assert!(scene.count(dead).await < 20, "most jobs are in bins");
    scene.node.balance().await;
}

#[tokio::test]
async fn jobs_are_found_in_every_bin() {
    let scene = Scene::new().await;
    let (node, store) = (&scene.node, &scene.node.subject.store);
    let (short, long) = (scene.fill(5, SHORT).await, scene.fill(5, LONG).await);
    let bins = "SELECT count(DISTINCT bin) FROM {s}.finished_bins";
    assert!(scene.count(bins).await >= 3, "bin 0, and one of each retention");
    let parent = short[0];
    let group = GroupKey::parse("g").ok();
    let keyed = NewJob { key: Key::parse("k").ok(), ..node.job("a") };
    let child = NewJob { parent: Some(parent), ..node.job("a") };
    let grouped = NewJob { group_key: group.clone(), ..node.job("a") };
    for job in [&keyed, &child, &grouped] {
        scene.succeed(std::slice::from_ref(job), SHORT).await;
    }
    let in_bin = async |job: &NewJob| {
        let sql = "SELECT count(*) FROM {s}.finished_bins WHERE bin > 0 AND id = 'ID'";
        scene.count(&sql.replace("ID", &job.id.to_string())).await == 1
    };
    let in_bins = [in_bin(&keyed).await, in_bin(&child).await, in_bin(&grouped).await];
    assert_eq!(in_bins, [true, false, false], "what others refer to is in bin 0");

    let mut all: Vec<JobId> = Vec::new();
    let filter = Filter { states: vec![State::Succeeded], ..Filter::default() };
    let mut page = PageRequest::first(4);
    loop {
        let found = store.list(&filter, &page).await.expect("a page");
        all.extend(found.items.iter().map(|job| job.id));
        page.cursor = found.next;
        if page.cursor.is_none() {
            break;
        }
    }
    assert!(all.is_sorted_by(|one, other| one > other), "newest first, each once: {all:?}");
    assert_eq!(all.len(), 15);
    for job in short.iter().chain(&long) {
        assert!(all.contains(job));
        assert_eq!(node.get(*job).await.state(), State::Succeeded);
    }
    assert_eq!(store.find(&all).await.expect("jobs").len(), 15);
    let only = async |filter: Filter| -> Vec<JobId> {
        let found = store.list(&filter, &PageRequest::first(100)).await.expect("a page");
        found.items.iter().map(|job| job.id).collect()
    };
    assert_eq!(only(Filter { parent: Some(parent), ..Filter::default() }).await, [child.id]);
    assert_eq!(only(Filter { key: keyed.key.clone(), ..Filter::default() }).await, [keyed.id]);
    assert_eq!(only(Filter { group_key: group, ..Filter::default() }).await, [grouped.id]);
}

/// The id of a finished job is not free, in whichever bin it is: a submit that is repeated stores nothing.
#[tokio::test]
async fn a_repeated_submit_finds_its_finished_job() {
    use rewheel_core::store::{Insert, Inserted, Sent};
    let scene = Scene::new().await;
    scene.fill(1, SHORT).await;
    let job = scene.node.job("a");
    scene.succeed(std::slice::from_ref(&job), SHORT).await;
    let jobs = [job];
    let again = Insert { sent: Sent::Again, ..Insert::new(&jobs) };
    let answers = scene.node.answers(&again).await;
    assert!(!matches!(answers[0], Inserted::Created { .. }), "{answers:?}");
    scene.node.balance().await;
}

#[tokio::test]
async fn records_of_failed_attempts_go_with_their_jobs() {
    let scene = Scene::new().await;
    let node = &scene.node;
    scene.fill(3, SHORT).await;
    let jobs = node.jobs("a", 30);
    node.insert(&jobs).await;
    for leased in node.claim(scene.holder, &["a"], 30).await {
        node.settle(scene.holder, &node.retry(leased.lease(), Duration::ZERO, false)).await;
    }
    let leased = node.claim(scene.holder, &["a"], 30).await;
    let keep = Retain { job: SHORT, key: SHORT };
    let settlements: Vec<Settlement> = leased
        .iter()
        .map(|leased| Settlement { keep, ..Settlement::succeed(leased.lease()) })
        .collect();
    node.subject.store.settle(scene.holder, &settlements).await.expect("settled");
    assert_eq!(scene.binned().await, 3, "jobs with records are in bin 0");
    // An attempt that failed, and the one that succeeded.
    assert_eq!(node.subject.store.attempts(jobs[7].id).await.expect("attempts").len(), 2);
    let living = node.submit("a").await;
    let leased = node.claim_only(scene.holder, "a").await;
    node.settle(scene.holder, &node.retry(leased.lease(), Duration::ZERO, false)).await;
    assert_eq!(scene.count("SELECT count(*) FROM {s}.attempts").await, 31);

    scene.wait(SHORT + MINUTE);
    // In batches of four jobs.
    let mut pruned = 0;
    for _ in 0..100 {
        pruned += node.prune(4).await.finished;
    }
    assert_eq!(pruned, 34);
    assert_eq!(scene.count("SELECT count(*) FROM {s}.attempts").await, 1);
    assert_eq!(node.subject.store.attempts(living).await.expect("attempts").len(), 1);
    node.balance().await;
}

/// Large fences say nothing about the attempts of a job.
#[tokio::test]
async fn jobs_of_a_later_epoch_go_into_bins() {
    let scene = Scene::new().await;
    let node = &scene.node;
    let keep = |keep: Duration| Retain { job: keep, key: keep };
    // In the old epoch: the bins are opened, and an attempt of a job fails.
    scene.fill(1, SHORT).await;
    scene.fill(1, LONG).await;
    let failed = node.submit("a").await;
    let first = node.claim_only(scene.holder, "a").await.lease();
    scene.settle(&[node.retry(first, Duration::ZERO, false)]).await;
    let second = scene.promote().await.lease();
    assert_eq!(second.job, failed);
    scene.settle(&[Settlement { keep: keep(SHORT), ..Settlement::succeed(second) }]).await;
    assert_eq!(scene.binned().await, 2, "a job with a record is in bin 0");

    scene.fill(20, SHORT).await;
    assert_eq!(scene.binned().await, 23);
    // Different retentions, and a job that was retried in this epoch: another statement.
    node.insert(&node.jobs("a", 3)).await;
    let again = node.claim(scene.holder, &["a"], 1).await[0].lease();
    scene.settle(&[node.retry(again, Duration::ZERO, false)]).await;
    let leased = node.claim(scene.holder, &["a"], 3).await;
    let mixed: Vec<Settlement> = leased
        .iter()
        .zip([SHORT, LONG, SHORT])
        .map(|(leased, time)| Settlement {
            keep: keep(time),
            ..Settlement::succeed(leased.lease())
        })
        .collect();
    scene.settle(&mixed).await;
    assert_eq!(scene.binned().await, 25);
    assert_eq!(node.subject.store.attempts(again.job).await.expect("attempts").len(), 2);

    scene.wait(2 * LONG);
    node.prune_all().await;
    assert_eq!(scene.count("SELECT count(*) FROM {s}.attempts").await, 0);
    let books = node.store.books().await.expect("books");
    assert_eq!((books.finished, books.missing()), (0, 0));
}

/// Without retention, the records of an earlier epoch are deleted with their jobs.
#[tokio::test]
async fn no_record_stays_behind_a_job_of_a_later_epoch() {
    let scene = Scene::new().await;
    let node = &scene.node;
    node.submit("a").await;
    let first = node.claim_only(scene.holder, "a").await.lease();
    scene.settle(&[node.retry(first, Duration::ZERO, false)]).await;
    let second = scene.promote().await.lease();
    let keep = Retain { job: Duration::ZERO, key: Duration::ZERO };
    scene.settle(&[Settlement { keep, ..Settlement::succeed(second) }]).await;
    assert_eq!(scene.count("SELECT count(*) FROM {s}.attempts").await, 0);
    node.balance().await;
}

/// A backup or a report keeps a lock on every table for its whole duration.
#[tokio::test]
async fn a_reader_delays_only_the_end_of_a_bin() {
    let scene = Scene::new().await;
    let node = &scene.node;
    scene.fill(20, SHORT).await;
    scene.wait(SHORT + MINUTE);
    let reader = scene.schema.connect().await;
    let read = format!("BEGIN; SELECT count(*) FROM {}.finished", scene.schema.name());
    reader.batch_execute(&read).await.expect("a report");
    // The one in bin 0.
    assert_eq!(soon("a prune beside a reader", node.prune_all()).await.finished, 1);
    assert_eq!(scene.binned().await, 20);
    scene.fill(3, SHORT).await;
    node.balance().await;
    reader.batch_execute("COMMIT").await.expect("the report ends");
    assert_eq!(node.prune_all().await.finished, 20);
    node.balance().await;
}

/// A transaction that has been open since before the bin expired adds a job to it, and commits after the count would have begun.
#[tokio::test]
async fn a_writer_delays_the_end_of_a_bin() {
    let scene = Scene::new().await;
    scene.fill(5, SHORT).await;
    scene.wait(SHORT + MINUTE);
    let writer = scene.schema.connect().await;
    let copy = "BEGIN;
        CREATE TEMP TABLE copied AS SELECT * FROM {s}.finished_bins WHERE bin > 0 LIMIT 1;
        UPDATE copied SET id = gen_random_uuid();
        INSERT INTO {s}.finished_bins SELECT * FROM copied;
        INSERT INTO {s}.ledger (at_ms, submitted, pruned) VALUES (1, 1, 0)";
    let copy = copy.replace("{s}", scene.schema.name());
    writer.batch_execute(&copy).await.expect("a job");
    assert_eq!(soon("a prune beside a writer", scene.node.prune_all()).await.finished, 1);
    writer.batch_execute("COMMIT").await.expect("a commit");
    assert_eq!(scene.node.prune_all().await.finished, 6, "the late one is counted");
    scene.node.balance().await;
}

#[tokio::test]
async fn a_job_that_has_not_expired_keeps_its_bin() {
    let scene = Scene::new().await;
    scene.fill(5, SHORT).await;
    scene
        .sql(
            "UPDATE {s}.finished_bins SET expires_ms = expires_ms + 600000
                WHERE id = (SELECT id FROM {s}.finished_bins WHERE bin > 0 LIMIT 1)",
        )
        .await;
    scene.wait(SHORT + MINUTE);
    assert_eq!(scene.node.prune_all().await.finished, 1);
    assert_eq!(scene.binned().await, 5);
    scene.node.balance().await;
    scene.wait(10 * MINUTE);
    assert_eq!(scene.node.prune_all().await.finished, 5);
    scene.node.balance().await;
}

/// More retentions than there are bins: the jobs are kept all the same, and are deleted one by one.
#[tokio::test]
async fn without_an_empty_bin_jobs_are_deleted_one_by_one() {
    let scene = Scene::new().await;
    scene.sql("INSERT INTO {s}.bins (bin, width_ms, from_ms) SELECT n, 1, 1000000000000000 + n FROM generate_series(1, 19) AS n").await;
    let jobs = scene.fill(20, SHORT).await;
    assert_eq!(
        (scene.binned().await, scene.count("SELECT count(*) FROM {s}.finished_bin_0").await),
        (0, 21)
    );
    assert_eq!(scene.node.get(jobs[0]).await.state(), State::Succeeded);
    scene.wait(SHORT + seconds(1));
    assert_eq!(scene.node.prune_all().await.finished, 21);
    scene.node.balance().await;
}

/// Several nodes open the same bins, and prune at the same time.
#[tokio::test]
async fn nodes_that_prune_at_once_count_each_job_once() {
    let scene = Scene::new().await;
    scene.fill(50, SHORT).await;
    scene.fill(50, LONG).await;
    scene.wait(LONG + LONG / 4);
    let clock = scene.node.clock.clone();
    let mut options = PostgresOptions::parse(scene.schema.url()).expect("a URL");
    options.clock = clock;
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let options = options.clone();
        nodes.spawn(async move {
            let store = rewheel_stores::PostgresStore::open_with(options).await.expect("it opens");
            prune(&store).await.expect("a prune")
        });
    }
    let pruned: u64 = soon("four nodes", nodes.join_all()).await.iter().sum();
    let rest = scene.node.prune_all().await.finished;
    assert_eq!(pruned + rest, 102);
    let books = scene.node.store.books().await.expect("books");
    assert_eq!((books.finished, books.pruned, books.missing()), (0, 102, 0));
}

async fn prune(store: &dyn Store) -> StoreResult<u64> {
    let prune = rewheel_core::store::Prune { limit: 1_000, audit_older_than: Duration::MAX };
    Ok(store.prune(&prune).await?.finished)
}

/// What a node of the release before bins runs, prepared before the migration.
const OLD_STATEMENTS: [(&str, &str); 3] = [
    (
        "old_end",
        "WITH gone AS (DELETE FROM {s}.jobs WHERE id = $1::text::uuid RETURNING jobs.*)
         INSERT INTO {s}.finished (id, lane, created_ms, payload, state, due_ms, because, fence, version, attempt, attempts_before,
                                 takeovers, takeovers_counted, settled_by, settled_fence, ended_ms, expires_ms, ran_by, started_ms,
                                 duration_ms, success_code)
         SELECT id, lane, created_ms, payload, 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before,
                takeovers, takeovers_counted, holder, fence, {s}.now_ms(), {s}.now_ms() + $2::bigint, NULL, NULL, NULL, NULL FROM gone",
    ),
    (
        "old_prune",
        "WITH clock AS MATERIALIZED (SELECT {s}.now_ms() + $1::bigint AS now),
         found AS MATERIALIZED (
             SELECT finished.ctid AS place FROM {s}.finished WHERE expires_ms <= (SELECT now FROM clock)
              ORDER BY expires_ms LIMIT $2::bigint FOR UPDATE SKIP LOCKED
         ),
         gone AS (DELETE FROM {s}.finished USING found WHERE finished.ctid = found.place RETURNING id),
         tries AS (
             DELETE FROM {s}.attempts
              USING gone, LATERAL (SELECT attempts.ctid AS place FROM {s}.attempts WHERE attempts.job = gone.id OFFSET 0) AS tried
              WHERE attempts.ctid = tried.place
         ),
         counted AS (SELECT count(*) AS pruned FROM gone),
         line AS (INSERT INTO {s}.ledger (at_ms, submitted, pruned) SELECT now, 0, pruned FROM clock, counted WHERE pruned > 0)
         SELECT pruned FROM counted",
    ),
    ("old_get", "SELECT count(*) FROM {s}.finished WHERE id = $1::text::uuid"),
];

async fn run(client: &Client, name: &str, params: &str) -> i64 {
    let rows = client.simple_query(&format!("EXECUTE {name} ({params})")).await.expect(name);
    let first = rows.iter().find_map(|row| {
        let tokio_postgres::SimpleQueryMessage::Row(row) = row else { return None };
        row.get(0)?.parse().ok()
    });
    first.unwrap_or(0)
}

/// Tables with jobs of the older release are migrated, while a node of that release goes on.
#[tokio::test]
async fn nodes_of_the_older_release_work_beside_new_ones() {
    let scene = Scene::new().await;
    let node = &scene.node;
    scene.sql(WITHOUT_BINS).await;
    let old = scene.schema.connect().await;
    for (name, sql) in OLD_STATEMENTS {
        let sql = sql.replace("{s}", scene.schema.name());
        old.batch_execute(&format!("PREPARE {name} AS {sql}")).await.expect(name);
    }
    let jobs = node.jobs("a", 3);
    node.insert(&jobs).await;
    let day = LONG.as_millis();
    run(&old, "old_end", &format!("'{}', {day}", jobs[0].id)).await;
    run(&old, "old_end", &format!("'{}', 1", jobs[1].id)).await;
    assert_eq!(run(&old, "old_prune", "1000, 10").await, 1, "it prunes before the migration");

    let mut options = PostgresOptions::parse(scene.schema.url()).expect("a URL");
    options.binned_min = 1;
    let new = Node::with(options).await;
    new.balance().await;
    assert_eq!(new.get(jobs[0].id).await.state(), State::Succeeded);
    // Each sees what the other ends.
    run(&old, "old_end", &format!("'{}', {day}", jobs[2].id)).await;
    assert_eq!(new.get(jobs[2].id).await.state(), State::Succeeded);
    let ours = scene.fill(5, SHORT).await;
    assert_eq!(run(&old, "old_get", &format!("'{}'", ours[4])).await, 1);
    new.balance().await;
    // Its prune neither fails nor deletes what it must not.
    let later = 2 * LONG.as_millis();
    assert_eq!(run(&old, "old_prune", &format!("{later}, 1000")).await, 0);
    new.balance().await;
    new.clock.advance(2 * LONG);
    assert_eq!(new.prune_all().await.finished, 8);
    new.balance().await;
    let books = new.store.books().await.expect("books");
    assert_eq!((books.submitted, books.live, books.finished, books.pruned), (9, 0, 0, 9));
}
