//! Tests submitting with plain SQL.

use super::support::{Database, Node, counted};
use rewheel_core::store::SubmitStore;
use rewheel_core::store::{Insert, Inserted};
use rewheel_core::{DueReason, Key, Lane, NewJob, Priority, ShardKey, State, Tenant, Timestamp};
use rewheel_testkit::{Schema, lane, millis};
use tokio_postgres::Client;

async fn submit(client: &Client, schema: &str, arguments: &str) -> Result<String, String> {
    let sql = format!("SELECT {schema}.rewheel_submit({arguments})::text");
    match client.query_one(&sql, &[]).await {
        Ok(row) => Ok(row.get(0)),
        Err(error) => {
            Err(error.as_db_error().map_or_else(|| error.to_string(), |e| e.message().to_owned()))
        }
    }
}

#[tokio::test]
async fn a_job_is_claimed_as_if_rust_had_submitted_it() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    // The caller's time zone and settings do not matter.
    visitor
        .batch_execute("SET TIME ZONE 'Pacific/Chatham'; SET search_path = public")
        .await
        .expect("set");
    let id = submit(
        &visitor,
        schema.name(),
        r#"'a', '{"name":"Zoë"}', key => 'k é', tenant => 'acme', priority => 2, due => '2001-02-03 04:05:06.789+00',
           deadline => '2090-01-01 00:00:00.5+00', attempts_max => 4, attempt_timeout => '1500 ms', shard_key => 's',
           traceparent => '00-abc-def-01'"#,
    )
    .await
    .expect("submitted");
    let holder = node.holder().await;
    let name = Lane {
        tenant: Some(Tenant::parse("acme").expect("a tenant")),
        priority: Priority::new(2).expect("a priority"),
        ..lane("a")
    };
    let claimed = node.claim_lane(holder, name).await;
    let job = &claimed[0].job;
    assert_eq!((claimed.len(), job.id.to_string()), (1, id));
    assert_eq!(job.payload.as_deref(), Some(r#"{"name":"Zoë"}"#.as_bytes()));
    assert_eq!(job.key, Key::parse("k é").ok());
    assert_eq!(job.shard_key, ShardKey::parse("s").ok());
    assert_eq!(job.due, Timestamp::from_millis(981_173_106_789));
    assert_eq!(job.deadline, Some(Timestamp::from_millis(3_786_912_000_500)));
    assert_eq!((job.attempts_max, job.attempt_timeout), (Some(4), Some(millis(1_500))));
    assert_eq!(job.traceparent.as_deref(), Some("00-abc-def-01"));
    assert_eq!(
        (job.because, job.attempt, job.fence.get(), job.version.get()),
        (DueReason::Submitted, 0, 1, 2)
    );
    node.succeed(holder, claimed[0].lease()).await;
    node.balance().await;
}

#[tokio::test]
async fn a_delay_begins_when_the_job_is_submitted() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    submit(&visitor, schema.name(), "'a', '[]', delay => '1 hour'").await.expect("submitted");
    let due_in = node.lanes(&["a"]).await[0].due_in;
    assert!(due_in > millis(3_500_000) && due_in <= millis(3_600_000), "{due_in:?}");
}

#[tokio::test]
async fn the_same_key_is_the_same_job() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    let first = submit(&visitor, schema.name(), "'a', '{}', key => 'k'").await.expect("submitted");
    let again = submit(&visitor, schema.name(), "'a', '{}', key => 'k'").await.expect("known");
    assert_eq!(first, again);
    let other = submit(&visitor, schema.name(), "'a', '{}', key => 'k', tenant => 't'").await;
    assert_ne!(Ok(&first), other.as_ref());
    let error = submit(&visitor, schema.name(), "'a', '[]', key => 'k'").await.expect_err("reused");
    assert!(error.contains("key k") && error.contains(&first), "{error}");
    // Rust finds the key that SQL submitted, and the other way round.
    let jobs = [NewJob { key: Key::parse("k").ok(), payload: b"{}".to_vec(), ..node.job("a") }];
    let answers = node.store.insert(&Insert::new(&jobs)).await.expect("an answer");
    let [Inserted::Duplicate { job, state: State::Scheduled }] = answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(job.to_string(), first);
    let books = node.subject.store.books().await.expect("books");
    assert_eq!((books.submitted, books.missing()), (2, 0));
}

#[tokio::test]
async fn what_cannot_be_a_job_is_named_and_leaves_nothing() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    for (arguments, named) in [
        ("'unknown', '{}', key => 'k'", "kind unknown"),
        ("NULL, '{}'", "kind"),
        ("'a', NULL", "payload"),
        ("'a', '{'", "payload"),
        ("'a', ''", "payload"),
        ("'a', 'a'", "payload"),
        ("'a', repeat('[', 100000)", "payload"),
        ("'a', '\"' || repeat('x', 16777216) || '\"'", "payload"),
        ("'a', '{}', priority => 10", "priority"),
        ("'a', '{}', priority => -1", "priority"),
        ("'a', '{}', priority => NULL", "priority"),
        ("'a', '{}', key => ''", "key"),
        ("'a', '{}', key => repeat('é', 128)", "key"),
        ("'a', '{}', key => E'a\\nb'", "key"),
        ("'a', '{}', key => E'a\\u0085b'", "key"),
        ("'a', '{}', tenant => ''", "tenant"),
        ("'a', '{}', tenant => repeat('t', 129)", "tenant"),
        ("'a', '{}', tenant => E'\\x7f'", "tenant"),
        ("'a', '{}', shard_key => E'\\t'", "shard_key"),
        ("'a', '{}', traceparent => E'\\x01'", "traceparent"),
        ("'a', '{}', attempts_max => 0", "attempts_max"),
        ("'a', '{}', attempt_timeout => '0'", "attempt_timeout"),
        ("'a', '{}', attempt_timeout => '-1 year 361 days'", "attempt_timeout"),
        ("'a', '{}', delay => '-1 ms'", "delay"),
        ("'a', '{}', delay => '1 s', due => now()", "delay or due"),
        ("'a', '{}', due => 'infinity'", "due"),
        ("'a', '{}', deadline => '-infinity'", "deadline"),
        ("'a', '{}', key => 'k', deadline => clock_timestamp() - interval '1 s'", "deadline"),
        ("'a', '{}', key => 'k', delay => '2 h', deadline => now() + interval '1 h'", "deadline"),
    ] {
        let error = submit(&visitor, schema.name(), arguments).await.expect_err(arguments);
        assert!(error.starts_with("rewheel: ") && error.contains(named), "{arguments}: {error}");
    }
    let left = format!(
        "SELECT (SELECT count(*) FROM {0}.jobs) + (SELECT count(*) FROM {0}.keys) + (SELECT count(*) FROM {0}.ledger)",
        schema.name()
    );
    assert_eq!(counted(&visitor, &left).await, 0, "something was left");
}

#[tokio::test]
async fn an_id_is_used_once() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let (holder, lease) = node.leased("a").await;
    let visitor = schema.connect().await;
    let arguments = format!("'a', '{{}}', id => '{}'", lease.job);
    submit(&visitor, schema.name(), &arguments).await.expect_err("it is live");
    node.succeed(holder, lease).await;
    let error = submit(&visitor, schema.name(), &arguments).await.expect_err("it has ended");
    assert!(error.contains(&lease.job.to_string()), "{error}");
    let dead = node.dead_letter("a").await;
    let arguments = format!("'a', '{{}}', id => '{dead}'");
    submit(&visitor, schema.name(), &arguments).await.expect_err("it is dead");
    node.balance().await;
}

/// A role that may only submit must not be able to act with the rights of the schema's owner.
#[tokio::test]
async fn a_role_that_may_only_submit_cannot_do_more() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    let role = format!("{}_role", schema.name());
    let make = format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {} TO {role}", schema.name());
    visitor.batch_execute(&make).await.expect("a role");
    let trick = format!(
        "SET ROLE {role};
         CREATE FUNCTION pg_temp.check(text) RETURNS boolean LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'runs as %', current_user; END $$;
         CREATE DOMAIN pg_temp.json AS text CHECK (pg_temp.check(VALUE));
         CREATE DOMAIN pg_temp.uuid AS text CHECK (pg_temp.check(VALUE));"
    );
    visitor.batch_execute(&trick).await.expect("temporary types");
    let submitted = submit(&visitor, schema.name(), "'a', '{}'").await;
    let direct = visitor.batch_execute(&format!("DELETE FROM {}.jobs", schema.name())).await;
    let end = format!("RESET ROLE; DISCARD TEMP; DROP OWNED BY {role}; DROP ROLE {role}");
    visitor.batch_execute(&end).await.expect("the role goes");
    submitted.expect("it may submit");
    direct.expect_err("it may not do anything else");
}

#[tokio::test]
async fn the_schema_need_not_be_named_where_it_is_called_rewheel() {
    let database = Database::fresh("").await;
    let node = Node::open(&database.url()).await;
    node.kinds(&["a"]).await;
    let stranger = database.connect().await;
    let sql = "SELECT rewheel_submit('a', '{}', key => 'k', delay => '1 s')::text";
    let id: String = stranger.query_one(sql, &[]).await.expect("submitted").get(0);
    stranger.batch_execute("SELECT rewheel_wake()").await.expect("told");
    let known: String = stranger.query_one(sql, &[]).await.expect("known").get(0);
    let books = node.subject.store.books().await.expect("books");
    drop((node, stranger));
    database.drop().await;
    assert_eq!((id, books.live), (known, 1));
}
