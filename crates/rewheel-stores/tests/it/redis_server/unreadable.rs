//! Tests that a job whose values are damaged blocks no other job and waits for a person.

use rewheel_core::store::{ChangeVerb, ClockOffset, Filter, PageRequest};
use rewheel_core::{JobId, State};
use rewheel_stores::{RedisOptions, RedisStore};
use rewheel_testkit::{Prefix, Subject};
use std::sync::Arc;

async fn open() -> (Subject, Prefix) {
    let prefix = Prefix::fresh();
    let clock = ClockOffset::default();
    let mut options = RedisOptions::parse(prefix.url()).expect("a URL");
    options.clock = clock.clone();
    let store = RedisStore::open_with(options).await.expect("a fresh prefix opens");
    (Subject::new(Arc::new(store), clock), prefix)
}

fn body(prefix: &Prefix, job: JobId) -> Vec<u8> {
    let key = format!("{}body", prefix.keys());
    redis::cmd("HGET")
        .arg(key)
        .arg(&job.to_bytes())
        .query(&mut prefix.connect())
        .expect("the server answers")
}

fn write(prefix: &Prefix, job: JobId, body: &[u8]) {
    let key = format!("{}body", prefix.keys());
    redis::cmd("HSET")
        .arg(key)
        .arg(&job.to_bytes())
        .arg(body)
        .exec(&mut prefix.connect())
        .expect("the server answers");
}

/// A newer version wrote a job with another layout.
#[tokio::test]
async fn a_claim_passes_over_a_job_of_a_newer_version() {
    let (subject, prefix) = open().await;
    subject.kinds(&["a"]).await;
    let jobs = subject.jobs("a", 3);
    subject.insert(&jobs).await;
    let whole = body(&prefix, jobs[1].id);
    let newer = [&[2], &whole[1..]].concat();
    write(&prefix, jobs[1].id, &newer);

    let holder = subject.holder().await;
    let page = subject.store.list(&Filter::default(), &PageRequest::first(10)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    let claimed = subject.claim(holder, &["a"], 10).await;
    let ids: Vec<JobId> = claimed.iter().map(|leased| leased.job.id).collect();
    assert_eq!(ids, [jobs[0].id, jobs[2].id]);
    assert!(subject.claim(holder, &["a"], 10).await.is_empty());
    let error = subject.store.get(jobs[1].id).await.unwrap_err().to_string();
    assert!(error.contains("upgrade this node"), "{error}");
    let risk = subject.store.unreadable().await.unwrap().expect("a risk");
    assert!(risk.message.contains(&jobs[1].id.to_string()), "{risk:?}");

    // The node is upgraded, and a person resumes the job.
    write(&prefix, jobs[1].id, &whole);
    assert_eq!(subject.get(jobs[1].id).await.state(), State::Paused);
    subject.apply(jobs[1].id, ChangeVerb::Resume).await;
    assert_eq!(subject.store.unreadable().await.unwrap(), None);
    assert_eq!(subject.claim_only(holder, "a").await.job.id, jobs[1].id);
}

/// A job whose values no script can read does not stop a sweep.
#[tokio::test]
async fn a_sweep_passes_over_damaged_values() {
    let (subject, prefix) = open().await;
    subject.kinds(&["a"]).await;
    let jobs = subject.jobs("a", 3);
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["a"], 10).await.len(), 3);
    write(&prefix, jobs[1].id, b"?");
    let heir = subject.holder().await;
    let events = subject.take_over(heir, holder).await;
    let mut swept: Vec<JobId> = events.iter().map(|event| event.job).collect();
    swept.sort_unstable();
    let mut good = vec![jobs[0].id, jobs[2].id];
    good.sort_unstable();
    assert_eq!(swept, good);
    assert!(subject.sweep(heir).await.is_empty());
    assert_eq!(subject.claim(heir, &["a"], 10).await.len(), 2);
    assert!(subject.store.unreadable().await.unwrap().is_some());
    subject.balance().await;
}
