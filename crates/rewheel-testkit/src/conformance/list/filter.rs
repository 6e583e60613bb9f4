//! Tests job filters.

use super::{ids, newest_first, one_of_each};
use crate::{Subject, seconds};
use rewheel::Category;
use rewheel_core::store::{ChangeVerb, Filter, Settlement};
use rewheel_core::{
    Decision, DueReason, Failure, HolderId, Incident, JobId, Key, KindName, NewJob, State, Tenant,
    When,
};

/// Checks that a filter matches these jobs, and that they are some but not all.
async fn check(subject: &Subject, filter: Filter, expected: &[JobId]) {
    let listed = ids(subject, &filter).await;
    assert_eq!(listed, newest_first(expected.to_vec()), "{filter:?}");
    let all = ids(subject, &Filter::default()).await;
    assert!(!expected.is_empty() && expected.len() < all.len(), "{filter:?} proves nothing");
    // Whichever index a store uses, the result must be the same.
    for job in all {
        let whole = subject.get(job).await;
        assert_eq!(filter.matches(&whole), listed.contains(&job), "{filter:?} of {whole:?}");
    }
}

/// Stores two jobs of a kind, the second with a change.
async fn two(subject: &Subject, change: impl FnOnce(&mut NewJob)) -> (JobId, JobId) {
    subject.kinds(&["charge"]).await;
    let mut jobs = subject.jobs("charge", 2);
    change(&mut jobs[1]);
    subject.insert(&jobs).await;
    (jobs[0].id, jobs[1].id)
}

/// Lets a job fail with this failure, followed by a long delay.
async fn failed(subject: &Subject, failure: Failure) -> JobId {
    let (holder, lease) = subject.leased("charge").await;
    let settlement =
        Settlement { failure: Some(failure), ..subject.retry(lease, seconds(3_600), false) };
    subject.settle(holder, &settlement).await;
    lease.job
}

/// Filters by one or several states.
pub async fn filters_by_state(subject: &Subject) {
    let jobs = one_of_each(subject).await;
    for (at, state) in State::ALL.into_iter().enumerate() {
        let filter = Filter { states: vec![state], ..Filter::default() };
        check(subject, filter, &[jobs[at]]).await;
    }
    let states = vec![State::Scheduled, State::Dead, State::Cancelled];
    let chosen = [jobs[0], jobs[5], jobs[6]];
    check(subject, Filter { states, ..Filter::default() }, &chosen).await;
}

/// Filters by one or several kinds, in any state.
pub async fn filters_by_kind(subject: &Subject) {
    let jobs = one_of_each(subject).await;
    let kind = |state: State| KindName::parse(state.as_str()).unwrap();
    let one = Filter { kinds: vec![kind(State::Dead)], ..Filter::default() };
    check(subject, one, &[jobs[5]]).await;
    let kinds = vec![kind(State::Leased), kind(State::Succeeded)];
    check(subject, Filter { kinds, ..Filter::default() }, &[jobs[1], jobs[3]]).await;
}

/// Filters by tenant; a job without a tenant matches none.
pub async fn filters_by_tenant(subject: &Subject) {
    let tenant = Tenant::parse("acme").unwrap();
    let (_, ours) = two(subject, |job| job.tenant = Some(tenant.clone())).await;
    let mut theirs = subject.job("charge");
    theirs.tenant = Some(Tenant::parse("acme-2").unwrap());
    subject.insert(&[theirs]).await;
    check(subject, Filter { tenant: Some(tenant), ..Filter::default() }, &[ours]).await;
}

/// Filters by the category of the last failure.
pub async fn filters_by_category(subject: &Subject) {
    let slow = failed(subject, Failure::new(Category::Timeout, None, "slow")).await;
    let busy = failed(subject, Failure::new(Category::Throttled, None, "timeout")).await;
    subject.submit("charge").await;
    let filter = |category| Filter { category: Some(category), ..Filter::default() };
    check(subject, filter(Category::Timeout), &[slow]).await;
    check(subject, filter(Category::Throttled), &[busy]).await;
}

/// Filters by the code of the last failure; another code, and none, do not match.
pub async fn filters_by_code(subject: &Subject) {
    let slow = failed(subject, Failure::new(Category::Timeout, Some("504"), "slow")).await;
    failed(subject, Failure::new(Category::Timeout, Some("5"), "504")).await;
    failed(subject, Failure::new(Category::Timeout, None, "504")).await;
    subject.submit("charge").await;
    check(subject, Filter { code: Some("504".to_owned()), ..Filter::default() }, &[slow]).await;
}

/// Filters by incident: jobs of one kind whose failures differ only in numbers, in any state.
pub async fn filters_by_incident(subject: &Subject) {
    let lost = |order| {
        let message = format!("order {order} of 'shop-{order}' is lost");
        Failure::new(Category::Rejected, Some("404"), &message)
    };
    let one = failed(subject, lost(17)).await;
    let other = failed(subject, lost(18)).await;
    subject.apply(other, ChangeVerb::Pause).await;
    failed(subject, Failure::new(Category::Rejected, Some("404"), "order 17 is lost")).await;
    failed(subject, Failure::new(Category::Rejected, None, lost(17).message())).await;
    let dead = subject.dead_letter("charge").await;
    let incident = async |job| Incident::of(&subject.get(job).await);
    let filter = |incident| Filter { incident, ..Filter::default() };
    check(subject, filter(incident(one).await), &[one, other]).await;
    check(subject, filter(incident(dead).await), &[dead]).await;
    let kinds = vec![KindName::parse("refund").unwrap()];
    subject.submit("refund").await;
    let none = Filter { kinds, ..filter(incident(one).await) };
    assert_eq!(ids(subject, &none).await, []);
    assert_eq!(ids(subject, &filter(Some("00ff".to_owned()))).await, []);
}

/// Filters by the reason why a job waits.
pub async fn filters_by_reason(subject: &Subject) {
    let failed = failed(subject, Failure::new(Category::Io, None, "")).await;
    let submitted = subject.submit("charge").await;
    let filter = |reason| Filter { reason: Some(reason), ..Filter::default() };
    check(subject, filter(DueReason::Backoff), &[failed]).await;
    check(subject, filter(DueReason::Submitted), &[submitted]).await;
    assert_eq!(ids(subject, &filter(DueReason::RetryBudget)).await, []);
}

/// Filters by the number of used attempts.
pub async fn filters_by_attempts(subject: &Subject) {
    let once = failed(subject, Failure::new(Category::Io, None, "")).await;
    let never = subject.submit("charge").await;
    let dead = subject.dead_letter("charge").await;
    let filter =
        |range: &str| Filter { attempts: Some(range.parse().unwrap()), ..Filter::default() };
    check(subject, filter("0"), &[never]).await;
    check(subject, filter(">0"), &[once, dead]).await;
    check(subject, filter("<=0"), &[never]).await;
    assert_eq!(ids(subject, &filter(">1")).await, []);
}

/// Filters by holder: only jobs that it has leased now.
pub async fn filters_by_holder(subject: &Subject) {
    let (one, first) = subject.leased("charge").await;
    let (other, second) = subject.leased("charge").await;
    subject.submit("charge").await;
    let filter = |holders: &[HolderId]| Filter { holders: holders.to_vec(), ..Filter::default() };
    check(subject, filter(&[one]), &[first.job]).await;
    check(subject, filter(&[one, other]), &[first.job, second.job]).await;
    subject.succeed(one, first).await;
    assert_eq!(ids(subject, &filter(&[one])).await, []);
}

fn text(text: &str) -> Filter {
    Filter { text: Some(text.to_owned()), ..Filter::default() }
}

/// Finds a text in an id, a key, a failure's message or its code.
pub async fn filters_by_text(subject: &Subject) {
    let key = Some(Key::parse("order-17").unwrap());
    let failure = Failure::new(Category::Io, Some("ECONNRESET"), "the bank hung up");
    let failing = failed(subject, failure).await;
    let (plain, keyed) = two(subject, |job| job.key = key).await;
    check(subject, text(&plain.to_string()), &[plain]).await;
    check(subject, text("order-17"), &[keyed]).await;
    check(subject, text("hung up"), &[failing]).await;
    check(subject, text("CONNRESET"), &[failing]).await;
}

/// Text search ignores case.
pub async fn filters_by_text_in_any_case(subject: &Subject) {
    let (_, keyed) =
        two(subject, |job| job.key = Some(Key::parse("Straße-Ärger-X").unwrap())).await;
    for needle in ["ärger-x", "ÄRGER-X", "Ärger", "STRAßE"] {
        check(subject, text(needle), &[keyed]).await;
    }
}

/// Special characters of databases are plain text here.
pub async fn filters_by_text_literally(subject: &Subject) {
    let (_, keyed) = two(subject, |job| job.key = Some(Key::parse("100%_'\\*[a]").unwrap())).await;
    for needle in ["100%_'\\*[a]", "%", "_", "'", "\\", "*", "[a]"] {
        check(subject, text(needle), &[keyed]).await;
    }
}

/// Filters by due time: from the first time on, before the second.
pub async fn filters_by_due(subject: &Subject) {
    let (soon, later) = two(subject, |job| job.due = When::In(seconds(3_600))).await;
    let due = subject.get(later).await.due;
    let after = |at| Filter { due_after: Some(at), ..Filter::default() };
    let before = |at| Filter { due_before: Some(at), ..Filter::default() };
    check(subject, after(due), &[later]).await;
    check(subject, before(due), &[soon]).await;
    let both = Filter { due_after: Some(due), ..before(due.plus(seconds(1))) };
    check(subject, both, &[later]).await;
}

/// Filters by creation time: from the first time on, before the second.
pub async fn filters_by_creation(subject: &Subject) {
    let early = subject.submit("charge").await;
    subject.clock.advance(seconds(60));
    let late = subject.job_in("charge", State::Cancelled).await;
    let created = subject.get(late).await.created;
    let after = Filter { created_after: Some(created), ..Filter::default() };
    check(subject, after, &[late]).await;
    let before = Filter { created_before: Some(created), ..Filter::default() };
    check(subject, before, &[early]).await;
}

/// A job must match every part of a filter.
pub async fn filters_by_all_of_it(subject: &Subject) {
    let failure = || Failure::new(Category::Io, None, "the bank hung up");
    let dead = failed(subject, failure()).await;
    let alive = failed(subject, failure()).await;
    subject.apply(dead, ChangeVerb::Cancel).await;
    let filter = Filter {
        states: vec![State::Cancelled, State::Dead],
        kinds: vec![KindName::parse("charge").unwrap()],
        category: Some(Category::Io),
        text: Some("BANK".to_owned()),
        ..Filter::default()
    };
    check(subject, filter.clone(), &[dead]).await;
    let other = Filter { states: vec![State::Scheduled], ..filter };
    check(subject, other, &[alive]).await;
}

/// The last failure counts, not an earlier one.
pub async fn filters_by_the_last_failure(subject: &Subject) {
    let job = failed(subject, Failure::new(Category::Io, None, "first")).await;
    subject.submit("refund").await;
    let holder = subject.holder().await;
    subject.apply(job, ChangeVerb::Retry).await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    let decision = Decision::Fail { failure: Failure::new(Category::Panic, None, "second") };
    subject.settle(holder, &Settlement { decision, ..Settlement::succeed(lease) }).await;

    assert_eq!(ids(subject, &text("first")).await, []);
    check(subject, text("second"), &[job]).await;
    check(subject, Filter { category: Some(Category::Panic), ..Filter::default() }, &[job]).await;
}
