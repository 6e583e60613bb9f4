//! Tests that query plans read only the rows they need, whatever the table statistics say.

use super::support::{Node, counted, named, until};
use rewheel_core::store::{
    ChangeVerb, Claim, Direct, Filter, FleetLimit, Insert, Inserted, LimitOf, LimitWait,
    LimitedClaim, Outcome, PageRequest, ReadStore, Settled, Settlement, Store, WorkStore,
};
use rewheel_core::{JobId, KindName, Lease, NewJob, Retain, State, Tenant, Timestamp, When};
use rewheel_testkit::{Schema, lane, seconds};
use std::time::Duration;
use tokio_postgres::Client;

/// Number of rows that a full scan would read.
const MANY: i64 = 20_000;

/// Fills the tables with unrelated rows, with statistics that say that the tables are empty.
async fn fill(client: &Client, schema: &str) {
    let sql = "
        SET synchronous_commit = off;
        ALTER TABLE s.jobs SET (autovacuum_enabled = off);
        DO $$ BEGIN FOR bin IN 0..19 LOOP
            EXECUTE format('ALTER TABLE s.finished_bin_%s SET (autovacuum_enabled = off)', bin);
        END LOOP; END $$;
        ALTER TABLE s.keys SET (autovacuum_enabled = off);
        ALTER TABLE s.attempts SET (autovacuum_enabled = off);
        CREATE PROCEDURE s.fill() LANGUAGE sql AS $$
            INSERT INTO s.jobs (id, due_ms, created_ms, fence, version, lane, attempt, attempts_before, takeovers,
                                takeovers_counted, state, because, payload)
            SELECT gen_random_uuid(), s.now_ms() + 100000000 + n, 1, 0, 1, 1, 0, 0, 0, 0, 'scheduled', 'submitted', ''
              FROM generate_series(1, 20000) AS n;
            INSERT INTO s.finished_bins (bin, id, due_ms, created_ms, ended_ms, expires_ms, fence, version, lane, attempt,
                                         attempts_before, takeovers, takeovers_counted, state, because, payload)
            SELECT n % 20, gen_random_uuid(), 1, 1, 1, s.now_ms() + 100000000, 1, 1, 1, 0, 0, 0, 0, 'succeeded', 'submitted', ''
              FROM generate_series(1, 20000) AS n;
            INSERT INTO s.keys
            SELECT 'a', '', 'key-' || n, gen_random_uuid(), '', 'succeeded', s.now_ms() + 100000000
              FROM generate_series(1, 20000) AS n;
            INSERT INTO s.attempts (job, attempt, fence, holder, started_ms, duration_ms, category, message, decision)
            SELECT gen_random_uuid(), 1, 1, gen_random_uuid(), 1, 1, 'io', '', 'retry' FROM generate_series(1, 20000) AS n;
            INSERT INTO s.ledger (at_ms, submitted, pruned) VALUES (1, 40000, 0);
        $$;
        CALL s.fill();
        DELETE FROM s.jobs; DELETE FROM s.finished_bins; DELETE FROM s.keys; DELETE FROM s.attempts; DELETE FROM s.ledger";
    client.batch_execute(&sql.replace("s.", &format!("{schema}."))).await.expect("rows");
    for table in ["jobs", "finished_bins", "keys", "attempts"] {
        // Pages without rows: what a drained queue leaves behind.
        let vacuum = format!("VACUUM (TRUNCATE off, ANALYZE) {schema}.{table}");
        client.batch_execute(&vacuum).await.expect("statistics");
    }
    client.batch_execute(&format!("CALL {schema}.fill()")).await.expect("rows");
}

/// Returns the number of rows read so far, by index or by scan.
async fn looked_at(client: &Client, schema: &str) -> i64 {
    let sql = format!(
        "SELECT (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE schemaname = '{schema}')::bigint
              + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE schemaname = '{schema}')::bigint"
    );
    counted(client, &sql).await
}

/// Does what a node usually does, with a few jobs.
async fn live(node: &Node) {
    let store = &node.subject.store;
    let holder = node.holder().await;
    let direct = Direct { holder, attempt_timeout: seconds(30), grace: seconds(5) };
    let jobs: Vec<NewJob> = node.jobs("a", 8);
    let insert = Insert { direct: Some(direct), ..Insert::new(&jobs) };
    let answers = node.answers(&insert).await;
    assert!(answers.iter().all(|a| matches!(a, Inserted::Created { leased: Some(_), .. })));
    let leases = store.held(holder, Duration::ZERO, None, 100).await.expect("leases");
    assert_eq!(leases.len(), 8);
    assert_eq!(store.start(holder, &leases).await.expect("started"), [true; 8]);
    let drop = Retain { job: Duration::ZERO, key: Duration::ZERO };
    let settlements = [
        node.retry(leases[0], Duration::ZERO, true),
        node.retry(leases[1], Duration::ZERO, false),
        node.dead(leases[2]),
        Settlement { decision: rewheel_core::Decision::Cancel, ..Settlement::succeed(leases[3]) },
    ];
    let settled = store.settle(holder, &settlements).await.expect("settled");
    assert!(settled.iter().all(|settled| matches!(settled, Settled::Applied(_))), "{settled:?}");
    store.give_back(holder, &leases[4..6], Retain::default()).await.expect("given back");
    let again = node.claim(holder, &["a"], 100).await;
    assert_eq!(again.len(), 3);
    let succeeded: Vec<Settlement> = again
        .iter()
        .map(|leased| Settlement { keep: drop, ..Settlement::succeed(leased.lease()) })
        .collect();
    let settled = store.settle(holder, &succeeded).await.expect("settled");
    assert_eq!(settled, [Settled::Applied(Outcome::LetGo(State::Succeeded)); 3]);
    limited(node, holder).await;
    let kept: Vec<Settlement> =
        leases[6..8].iter().map(|lease: &Lease| Settlement::succeed(*lease)).collect();
    store.settle(holder, &kept).await.expect("settled");
    node.prune(100).await;
    let letters = store.unannounced(10).await.expect("dead letters");
    store.announce(&letters).await.expect("announced");
    let by = node.holder().await;
    node.park("a").await;
    node.probe("a", by).await;
    assert_eq!(node.claim(by, &["a"], 5).await.len(), 0);
    node.apply(letters[0].job, ChangeVerb::Retry).await;
    assert_eq!(node.claim(by, &["a"], 5).await.len(), 1);
    let heir = node.heir_of(holder).await;
    assert_eq!(node.sweep(heir).await.len(), 0);
}

/// Counts leased jobs beside many scheduled ones.
async fn limited(node: &Node, holder: rewheel_core::HolderId) {
    let limit = |of| FleetLimit { of, concurrency_max: Some(3), interval: Some(seconds(1)) };
    let limits = [
        limit(LimitOf::Kind(KindName::parse("a").expect("a kind"))),
        limit(LimitOf::Tenant(Tenant::parse("acme").expect("a tenant"))),
    ];
    let visits = [node.visit(lane("a"), 10)];
    let claim = LimitedClaim { holder, visits: &visits, limit: 10, limits: &limits };
    // Three are leased: two new ones, and a sticky retry.
    let claimed = node.store.claim_limited(&claim).await.expect("a claim");
    assert_eq!(
        (claimed.leased.len(), claimed.waits),
        (0, vec![Some(LimitWait::Concurrency), None])
    );
    let waits = node.store.limit_waits(&limits).await.expect("waits");
    assert_eq!(waits, [Some(LimitWait::Concurrency), None]);
}

#[tokio::test]
async fn rows_that_no_call_needs_are_not_read() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    // Create the lane.
    let due = When::At(Timestamp::from_millis(100_000_000_000_000));
    node.insert(&[NewJob { due, ..node.job("a") }]).await;
    node.store.close().await.expect("it closes");
    let visitor = schema.connect().await;
    {
        let filler = schema.connect().await;
        fill(&filler, schema.name()).await;
        let pid = counted(&filler, "SELECT pg_backend_pid()::bigint").await;
        drop(filler);
        // A connection reports its statistics when it ends.
        let connection = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        until(&visitor, &connection, 0).await;
    }
    let before = looked_at(&visitor, schema.name()).await;

    let node = Node::open(&named(&schema, "")).await;
    live(&node).await;
    node.store.close().await.expect("it closes");
    let connections = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'",
        schema.name()
    );
    until(&visitor, &connections, 0).await;
    let read = looked_at(&visitor, schema.name()).await - before;
    assert!(read > 0, "the server counts what is looked at");
    assert!(read < MANY / 2, "{read} rows were read that the calls do not need");
    Node::of(&schema).await.balance().await;
}

/// Finished jobs are found by their ids in whichever bin they are, and a page of a list reads little more than its jobs.
#[tokio::test]
async fn finished_jobs_are_found_by_index_in_all_bins() {
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "")).await;
    node.kinds(&["a"]).await;
    // Create the lane.
    node.submit("a").await;
    let visitor = schema.connect().await;
    {
        // A connection reports its statistics when it ends.
        let filler = schema.connect().await;
        fill(&filler, schema.name()).await;
        let pid = counted(&filler, "SELECT pg_backend_pid()::bigint").await;
        drop(filler);
        let open = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        until(&visitor, &open, 0).await;
    }
    let holder = node.holder().await;
    let job = node.submit("a").await;
    let lease = node.claim_only(holder, "a").await.lease();
    node.settle(holder, &Settlement::succeed(lease)).await;
    node.store.close().await.expect("it closes");
    let before = rows_read(&visitor, &schema).await;

    let node = Node::open(&named(&schema, "")).await;
    let store = &node.subject.store;
    let some = store.list(&Filter::default(), &PageRequest::first(10)).await;
    let some: Vec<JobId> = some.expect("a page").items.iter().map(|job| job.id).collect();
    assert_eq!(some.len(), 10);
    for job in some.iter().chain([&job]) {
        store.get(*job).await.expect("a read");
        store.attempts(*job).await.expect("a read");
        store.result(*job).await.expect("a read");
    }
    assert_eq!(store.find(&some).await.expect("jobs").len(), 10);
    // A settle that comes too late.
    let late = store.settle(holder, &[Settlement::succeed(lease)]).await.expect("an answer");
    assert_eq!(late, [Settled::AlreadyApplied(Outcome::LetGo(State::Succeeded))]);
    let by_parent = Filter { parent: Some(job), ..Filter::default() };
    let children = store.list(&by_parent, &PageRequest::first(10)).await.expect("a page");
    assert!(children.items.is_empty());
    node.store.close().await.expect("it closes");
    let read = rows_read(&visitor, &schema).await - before;
    assert!(read < MANY / 4, "{read} rows were looked at");
}

/// The row position from a claim is used when the job is settled.
#[tokio::test]
async fn a_settle_in_any_order_goes_straight_to_its_jobs() {
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "")).await;
    node.kinds(&["a"]).await;
    node.insert(&node.jobs("a", 50)).await;
    let holder = node.holder().await;
    let mut leased = node.claim(holder, &["a"], 50).await;
    leased.sort_by_key(|leased| std::cmp::Reverse(leased.job.id));
    let settlements: Vec<Settlement> =
        leased.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    let settled = node.subject.store.settle(holder, &settlements).await.expect("settled");
    assert_eq!(settled, [Settled::Applied(Outcome::LetGo(State::Succeeded)); 50]);
    node.store.close().await.expect("it closes");
    let visitor = schema.connect().await;
    let connections = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'",
        schema.name()
    );
    until(&visitor, &connections, 0).await;
    let looked = format!(
        "SELECT idx_scan FROM pg_stat_user_indexes WHERE schemaname = '{}' AND indexrelname = 'jobs_pkey'",
        schema.name()
    );
    assert_eq!(counted(&visitor, &looked).await, 0, "they were looked for");
}

#[tokio::test]
async fn lanes_are_visited_in_the_order_of_the_claim() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    for table in ["jobs", "kinds", "lanes", "holders"] {
        let analyze = format!("ANALYZE {}.{table}", schema.name());
        visitor.batch_execute(&analyze).await.expect("statistics");
    }
    let kinds = ["z", "a", "m", "b", "y", "c"];
    node.kinds(&kinds).await;
    for kind in kinds {
        node.insert(&node.jobs(kind, 2)).await;
    }
    let node = Node::of(&schema).await;
    let holder = node.holder().await;
    let visits: Vec<_> = kinds.iter().map(|kind| node.visit(lane(kind), 2)).collect();
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 3 };
    let leased = node.subject.store.claim(&claim).await.expect("a claim");
    let got: Vec<&str> = leased.iter().map(|leased| leased.job.lane.kind.as_str()).collect();
    assert_eq!(got, ["z", "z", "a"]);
}

/// Returns the number of rows that the server has read in a schema, by index or not. A connection reports its statistics when it ends.
async fn rows_read(visitor: &Client, schema: &Schema) -> i64 {
    let name = schema.name();
    let connections =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
    until(visitor, &connections, 0).await;
    let read = format!(
        "SELECT (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE schemaname = '{name}')::bigint
              + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE schemaname = '{name}')::bigint"
    );
    counted(visitor, &read).await
}

/// Frequent reads of idle nodes and monitoring cost the same, however many kinds there are and however many lanes have jobs that are due
/// later.
#[tokio::test]
async fn what_is_due_later_is_not_looked_at() {
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "")).await;
    node.kinds(&["a"]).await;
    node.submit("a").await;
    assert!(node.subject.store.take_sample().await.expect("a sample"));
    let since = node.subject.store.kinds_since(0).await.expect("kinds").at;
    node.store.close().await.expect("it closes");
    let fill = "
        SET application_name = 's'; SET synchronous_commit = off;
        INSERT INTO s.lanes (kind, tenant, priority) SELECT 'a', 'tenant-' || n, 5 FROM generate_series(1, 20000) AS n;
        INSERT INTO s.jobs (id, due_ms, created_ms, fence, version, lane, attempt, attempts_before, takeovers,
                            takeovers_counted, state, because, payload)
        SELECT gen_random_uuid(), s.now_ms() + 100000000 + lane, 1, 0, 1, lane, 0, 0, 0, 0, 'scheduled', 'submitted', ''
          FROM s.lanes WHERE tenant <> '';
        INSERT INTO s.ledger (at_ms, submitted, pruned) VALUES (1, 20000, 0)";
    let fill = fill.replace("'s'", &format!("'{}'", schema.name()));
    let fill = fill.replace(" s.", &format!(" {}.", schema.name()));
    // Use a separate connection: its reads are reported before the measurement.
    schema.connect().await.batch_execute(&fill).await.expect("rows");
    let visitor = schema.connect().await;
    let before = rows_read(&visitor, &schema).await;

    let node = Node::open(&named(&schema, "")).await;
    let store = &node.subject.store;
    for _ in 0..5 {
        assert_eq!(store.sample().await.expect("a sample").expect("it was taken").jobs(), 1);
        assert!(store.sample_now(100).await.expect("a look").is_none());
        assert!(!store.kinds_since(since).await.expect("kinds").all);
        assert!(!store.take_sample().await.expect("a look"), "it is not time");
    }
    node.store.close().await.expect("it closes");
    let read = rows_read(&visitor, &schema).await - before;
    assert!(read < 1_500, "{read} rows were looked at");
}

/// A list of all lanes in pages costs the same for each lane, however many kinds and lanes come before its page.
#[tokio::test]
async fn a_page_of_lanes_does_not_look_for_the_kinds_before_it() {
    const KINDS: usize = 4_000;
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "")).await;
    let names: Vec<String> = (0..KINDS).map(|nth| format!("kind-{nth:04}")).collect();
    node.kinds(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let kinds: Vec<KindName> =
        names.iter().map(|name| KindName::parse(name).expect("a kind")).collect();
    let jobs: Vec<NewJob> = names.iter().map(|name| node.job(name)).collect();
    node.insert(&jobs).await;
    node.store.close().await.expect("it closes");
    let visitor = schema.connect().await;
    let before = blocks_of_lanes(&visitor, &schema).await;

    let node = Node::open(&named(&schema, "")).await;
    let (mut after, mut found) = (None, 0);
    loop {
        let page = node.subject.store.lanes(&kinds, after.as_ref(), 200).await.expect("a page");
        found += page.len();
        match page.last() {
            Some(last) if page.len() == 200 => after = Some(last.lane.clone()),
            _ => break,
        }
    }
    assert_eq!(found, KINDS);
    node.store.close().await.expect("it closes");
    let read = blocks_of_lanes(&visitor, &schema).await - before;
    // Three or four for each lane. Without the limit to the kinds of the page and after it: ten times as many.
    assert!(read < 8 * KINDS as i64, "{read} blocks were read for {KINDS} lanes");
}

/// Returns the number of blocks that were read from the index of lanes.
async fn blocks_of_lanes(visitor: &Client, schema: &Schema) -> i64 {
    // It waits until the connections have ended.
    rows_read(visitor, schema).await;
    let read = format!(
        "SELECT (idx_blks_hit + idx_blks_read)::bigint FROM pg_statio_user_indexes
          WHERE schemaname = '{}' AND indexrelname = 'lanes_kind_tenant_priority_shard_key'",
        schema.name()
    );
    counted(visitor, &read).await
}
