//! Tests the generated SQL that submits a job through other drivers.

use super::support::Node;
use rewheel_core::{Job, Key, NewJob, Priority, ShardKey, Tenant, Timestamp, When};
use rewheel_testkit::{Schema, seconds};
use std::time::Duration;

/// Jobs whose texts and times are hard to write as SQL.
fn jobs(node: &Node) -> Vec<NewJob> {
    let nasty = r#"it's "quoted" \' \\ $1 ? ; -- /* 日本 é 🦀 \u0041"#;
    let at = |millis| When::At(Timestamp::from_millis(millis));
    let base = || NewJob {
        payload: r#"{"a":"it's \\ \" \u0000 日本 🦀","b":[1,2.50,null]}"#.as_bytes().to_vec(),
        due: at(1_893_456_000_123),
        ..node.job("a")
    };
    vec![
        base(),
        NewJob { due: at(-62_135_596_799_999), ..base() },
        NewJob {
            due: at(253_402_300_799_999),
            deadline: Some(at(8_210_266_876_799_999)),
            ..base()
        },
        NewJob {
            tenant: Tenant::parse(nasty).ok(),
            key: Key::parse(nasty).ok(),
            shard_key: ShardKey::parse(nasty).ok(),
            traceparent: Some(nasty.to_owned()),
            priority: Priority::new(9).expect("a priority"),
            deadline: Some(at(1_893_456_000_124)),
            attempts_max: Some(2_147_483_647),
            attempt_timeout: Some(Duration::from_micros(1_500)),
            ..base()
        },
        NewJob { attempt_timeout: Some(seconds(90 * 24 * 3_600)), ..base() },
        NewJob { attempt_timeout: Some(Duration::from_micros(1)), ..base() },
    ]
}

/// Makes the fields equal that may differ.
fn alike(mut job: Job, like: &Job) -> Job {
    (job.id, job.created) = (like.id, like.created);
    job.key.clone_from(&like.key);
    job
}

#[tokio::test]
async fn the_statement_stores_what_insert_would_store() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let visitor = schema.connect().await;
    for setting in [
        "SET standard_conforming_strings = on",
        "SET standard_conforming_strings = off; SET IntervalStyle = 'iso_8601'",
    ] {
        visitor.batch_execute(setting).await.expect("set");
        for job in jobs(&node) {
            let key = job
                .key
                .as_ref()
                .map(|key| Key::parse(&format!("{key}!{}", job.id)).expect("a key"));
            let same = NewJob { id: node.id(), key, ..job.clone() };
            let job = NewJob {
                id: node.id(),
                key: job.key.clone().filter(|_| setting.ends_with("on")),
                ..job
            };
            node.insert(std::slice::from_ref(&job)).await;
            let sql = node.store.insert_sql(&same).expect("a statement");
            visitor.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            let (one, other) = (node.get(job.id).await, node.get(same.id).await);
            assert_eq!(alike(other.clone(), &one), one);
            assert_eq!(other.key, same.key);
        }
    }
    node.balance().await;
}

#[tokio::test]
async fn times_from_now_on_are_counted_by_the_server() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a"]).await;
    let hour = seconds(3_600);
    let job =
        NewJob { due: When::In(hour), deadline: Some(When::In(hour * 1_000)), ..node.job("a") };
    let sql = node.store.insert_sql(&job).expect("a statement");
    schema.connect().await.batch_execute(&sql).await.expect("submitted");
    let stored = node.get(job.id).await;
    assert_eq!(stored.due.since(stored.created), hour);
    let deadline = stored.deadline.expect("a deadline").since(stored.created);
    assert!(deadline <= hour * 1_000 && deadline > hour * 999, "{deadline:?}");
}
