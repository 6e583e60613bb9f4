//! Tests submits by SQL that say what to do about another job with the same key.

use super::support::{Node, Stranger, counted, named, soon, until};
use rewheel_core::store::{
    Insert, Inserted, ReadStore, Settled, Settlement, SubmitStore, WorkStore,
};
use rewheel_core::{
    Debounce, Duplicates, JobId, Key, Lane, NewJob, OnDuplicate, Shard, State, UniqueUntil,
    Version, When,
};
use rewheel_testkit::{Schema, lane, millis, seconds};
use tokio::task::JoinSet;
use tokio_postgres::Client;

async fn submit(client: &Client, schema: &str, arguments: &str) -> Result<String, String> {
    let sql = format!("SELECT {schema}.rewheel_submit('a', {arguments})::text");
    match client.query_one(&sql, &[]).await {
        Ok(row) => Ok(row.get(0)),
        Err(error) => {
            Err(error.as_db_error().map_or_else(|| error.to_string(), |e| e.message().to_owned()))
        }
    }
}

fn debounced() -> Lane {
    Lane { shard: Shard::NONE.debounced(), ..lane("a") }
}

async fn job(node: &Node, id: &str) -> rewheel_core::Job {
    let id: JobId = id.parse().expect("an id");
    node.store.get(id).await.expect("a store").expect("a job")
}

#[tokio::test]
async fn sql_replaces_a_waiting_job_and_takes_the_key_of_a_claimed_one() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    let send = async |arguments: &str| submit(&visitor, schema.name(), arguments).await;
    let first = send("'1', key => 'k'").await.expect("stored");
    let again = "'2', key => 'k', on_duplicate => 'replace', priority => 7, id => '0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e'";
    assert_eq!(send(again).await.as_ref(), Ok(&first));
    assert_eq!(send(again).await.as_ref(), Ok(&first), "sent again");
    let replaced = job(&node, &first).await;
    assert_eq!((replaced.payload.as_deref(), replaced.version), (Some(&b"2"[..]), Version::new(2)));
    assert_eq!(replaced.lane.priority.get(), 7);
    assert_eq!(send("'2', key => 'k'").await.as_ref(), Ok(&first), "the key has the new payload");
    let audit = node.store.audit(Some(replaced.id), None, 10).await.expect("a store");
    assert_eq!(audit.iter().map(|entry| entry.what.as_str()).collect::<Vec<_>>(), ["replace"]);
    let holder = node.holder().await;
    let claimed = node.claim_lane(holder, replaced.lane).await;
    assert_eq!(claimed.len(), 1);
    let refused = send("'3', key => 'k', on_duplicate => 'replace'").await;
    assert!(refused.as_ref().is_err_and(|why| why.contains("another payload")), "{refused:?}");
    let second = send("'3', key => 'k', unique_until => 'claimed'").await.expect("stored");
    assert_ne!(second, first);
    node.succeed(holder, claimed[0].lease()).await;
    assert_eq!(send("'3', key => 'k'").await.as_ref(), Ok(&second));
    assert_eq!(job(&node, &second).await.state(), State::Scheduled);
    node.balance().await;
}

#[tokio::test]
async fn sql_debounces_like_rust() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    let arguments = "'1', key => 'k', debounce => '1 hour', debounce_max => '2 hours'";
    let first = submit(&visitor, schema.name(), arguments).await.expect("stored");
    let heads = node.lanes(&["a"]).await;
    assert_eq!(heads.iter().map(|head| &head.lane).collect::<Vec<_>>(), [&debounced()]);
    assert!(heads[0].due_in > millis(3_500_000), "{heads:?}");
    let debounce = Debounce::new(seconds(1), None).expect("a debounce");
    let rust = NewJob {
        key: Key::parse("k").ok(),
        payload: b"2".to_vec(),
        due: When::In(seconds(1)),
        duplicates: Duplicates::default().with_debounce(debounce).expect("a debounce"),
        ..node.job("a")
    };
    let answers = node.store.insert(&Insert::new(&[rust])).await.expect("a store");
    assert!(matches!(answers[0], Inserted::Replaced { .. }), "{answers:?}");
    let replaced = job(&node, &first).await;
    assert_eq!((replaced.payload.as_deref(), replaced.lane), (Some(&b"2"[..]), debounced()));
}

#[tokio::test]
async fn sql_submits_of_other_jobs_stay_out_of_debounced_lanes() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    let send = async |arguments: &str| submit(&visitor, schema.name(), arguments).await;
    send("'1', key => 'k', debounce => '1 hour'").await.expect("stored");
    send("'2'").await.expect("stored");
    let holder = node.holder().await;
    assert_eq!(node.claim_lane(holder, lane("a")).await.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_combined_is_refused_and_changes_nothing() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    for (arguments, named) in [
        ("debounce => '2 s'", "debounce needs a key"),
        ("on_duplicate => 'replace'", "on_duplicate needs a key"),
        ("unique_until => 'claimed'", "unique_until needs a key"),
        ("key => 'k', unique_until => 'never'", "unique_until must be"),
        ("key => 'k', on_duplicate => 'drop'", "on_duplicate must be"),
        ("key => 'k', debounce => '0 s'", "debounce must be more"),
        (
            "key => 'k', debounce => '2 s', debounce_max => '1 s'",
            "debounce_max must not be shorter",
        ),
        ("key => 'k', debounce_max => '1 s'", "debounce_max needs debounce"),
        ("key => 'k', debounce => '2 s', unique_until => 'ended'", "debounce needs unique_until"),
        ("key => 'k', debounce => '2 s', on_duplicate => 'answer'", "debounce needs unique_until"),
        ("key => 'k', debounce => '2 s', delay => '1 s'", "give debounce, delay or due"),
    ] {
        let refused = submit(&visitor, schema.name(), &format!("'1', {arguments}")).await;
        assert!(refused.as_ref().is_err_and(|why| why.contains(named)), "{arguments}: {refused:?}");
    }
    assert_eq!(counted(&visitor, &format!("SELECT count(*) FROM {}.keys", schema.name())).await, 0);
    assert_eq!(node.store.books().await.expect("a store").submitted, 0);
}

/// A settle ends a key and replaces a job by a follow-up, while a batch replaces that job and takes the key: both lock the job first.
#[tokio::test]
async fn a_settle_that_replaces_a_job_and_a_batch_do_not_deadlock() {
    let schema = Schema::fresh();
    let name = schema.name();
    let node = Node::open(&named(&schema, "")).await;
    node.kinds(&["a"]).await;
    let keyed = |key: &str, duplicates| {
        let key = Key::parse(key).ok();
        NewJob { key, duplicates, payload: node.id().to_bytes().to_vec(), ..node.job("a") }
    };
    let replace = Duplicates::default().with_on_duplicate(OnDuplicate::Replace).expect("valid");
    let claimed = Duplicates::new(Some(UniqueUntil::Claimed), None, None).expect("valid");
    node.insert(&[keyed("settled", Duplicates::default())]).await;
    let holder = node.holder().await;
    let lease = node.claim_only(holder, "a").await.lease();
    let waiting = node.put(keyed("waiting", Duplicates::default())).await;

    // The settle stops when it has written the key of its job.
    let barrier = Stranger::at(schema.server()).await;
    let sql = format!(
        "CREATE FUNCTION {name}.wait() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_advisory_xact_lock(1919, hashtext('{name}')); RETURN NULL; END $$;
         CREATE TRIGGER wait AFTER UPDATE ON {name}.keys FOR EACH ROW WHEN (NEW.state = 'succeeded')
             EXECUTE FUNCTION {name}.wait();
         SELECT pg_advisory_lock(1919, hashtext('{name}'))"
    );
    barrier.batch_execute(&sql).await.expect("a trigger");
    let waits = async |count| {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND wait_event_type = 'Lock'"
        );
        until(&barrier, &sql, count).await;
    };
    let (mut settling, mut inserting) = (JoinSet::new(), JoinSet::new());
    let follow_ups = vec![keyed("waiting", replace)];
    let settlement = Settlement { follow_ups, ..Settlement::succeed(lease) };
    let store = node.store.clone();
    settling.spawn(async move { store.settle(holder, &[settlement]).await.expect("settled") });
    waits(1).await;
    let batch = [keyed("waiting", replace), keyed("settled", claimed)];
    let store = node.store.clone();
    inserting.spawn(async move { store.insert(&Insert::new(&batch)).await.expect("stored") });
    waits(2).await;
    let free = format!("SELECT pg_advisory_unlock(1919, hashtext('{name}'))");
    barrier.batch_execute(&free).await.expect("the lock is free");
    let settled = soon("the settle", settling.join_all()).await;
    assert!(matches!(settled[0][..], [Settled::Applied(_)]), "{settled:?}");
    let inserted = soon("the batch", inserting.join_all()).await;
    assert!(
        matches!(inserted[0][..], [Inserted::Replaced { job, .. }, Inserted::Created { .. }] if job == waiting),
        "{inserted:?}"
    );
    assert_eq!(node.get(waiting).await.version, Version::new(3), "replaced by both");
    node.balance().await;
}
