//! Tests reading jobs without changing them.

mod filter;
mod found;

pub use self::filter::*;
pub use self::found::*;

use crate::{Subject, lane, seconds};
use rewheel_core::store::{ChangeVerb, Count, Filter, PageRequest, Tally};
use rewheel_core::{Job, JobGroup, JobId, KindName, Limits, NewJob, State, Status, When};
use std::time::Duration;

/// Reads a list to its end, a page at a time.
async fn pages(subject: &Subject, filter: &Filter, first: PageRequest) -> Vec<Vec<Job>> {
    let mut pages = Vec::new();
    let mut request = first;
    loop {
        let page = subject.store.list(filter, &request).await.unwrap();
        assert!(page.items.len() <= request.limit, "more than asked for");
        pages.push(page.items);
        assert!(pages.len() < 1_000, "the list never ends");
        match page.next {
            None => return pages,
            Some(cursor) => request.cursor = Some(cursor),
        }
    }
}

async fn ids(subject: &Subject, filter: &Filter) -> Vec<JobId> {
    let pages = pages(subject, filter, PageRequest::first(100)).await;
    pages.iter().flatten().map(|job| job.id).collect()
}

/// Stores a job in each state, each with its own kind.
async fn one_of_each(subject: &Subject) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for state in State::ALL {
        jobs.push(subject.job_in(state.as_str(), state).await);
    }
    jobs
}

fn newest_first(mut jobs: Vec<JobId>) -> Vec<JobId> {
    jobs.sort_by(|a, b| b.cmp(a));
    jobs
}

/// A job is found in every state, with the data of that state.
pub async fn finds_a_job_in_every_state(subject: &Subject) {
    for (state, job) in State::ALL.into_iter().zip(one_of_each(subject).await) {
        let found = subject.get(job).await;
        assert_eq!((found.id, found.state(), &found.lane), (job, state, &lane(state.as_str())));
        assert_eq!(found.payload.as_deref(), Some(b"{\"order\":17}".as_slice()));
        let now = subject.now().await;
        match found.status {
            Status::Scheduled | Status::Paused => {}
            Status::Leased { overdue, wanted, .. } => {
                assert!(overdue > now && wanted.is_none());
            }
            Status::Succeeded(at)
            | Status::Failed(at)
            | Status::Dead(at)
            | Status::Cancelled(at) => assert!(found.created <= at && at <= now),
        }
    }
}

/// All fields of a job stay with it from state to state.
pub async fn keeps_what_a_job_says_in_every_state(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let new = subject.full_job("charge");
    subject.insert(std::slice::from_ref(&new)).await;
    let stored = subject.get(new.id).await;
    let check = async |state: State| {
        let now = subject.get(new.id).await;
        assert_eq!(now.state(), state);
        let same = Job {
            due: now.due,
            because: now.because,
            status: now.status,
            fence: now.fence,
            version: now.version,
            attempt: now.attempt,
            attempts_before: now.attempts_before,
            failure: now.failure.clone(),
            // A redrive is another turn of its group.
            group: stored.group.clone().map(|group| JobGroup {
                turn: now.group.as_ref().and_then(|group| group.turn),
                ..group
            }),
            ..stored.clone()
        };
        assert_eq!(now, same);
    };
    let claim = async || {
        let leased = subject.claim_lane(holder, new.lane()).await.remove(0);
        assert_eq!(leased.job, subject.get(new.id).await);
        leased.lease()
    };
    check(State::Scheduled).await;
    subject.apply(new.id, ChangeVerb::Pause).await;
    check(State::Paused).await;
    subject.apply(new.id, ChangeVerb::Resume).await;
    let lease = claim().await;
    check(State::Leased).await;
    subject.settle(holder, &subject.dead(lease)).await;
    check(State::Dead).await;
    subject.apply(new.id, ChangeVerb::Redrive { deadline: None }).await;
    check(State::Scheduled).await;
    let lease = claim().await;
    subject.succeed(holder, lease).await;
    check(State::Succeeded).await;
}

/// All fields of a job stay with it if it is cancelled, whether alive or dead.
pub async fn keeps_what_a_cancelled_job_says(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let check = async |before: Job| {
        subject.apply(before.id, ChangeVerb::Cancel).await;
        let now = subject.get(before.id).await;
        assert_eq!(now.state(), State::Cancelled);
        let same = Job { status: now.status, version: now.version, ..before };
        assert_eq!(now, same);
    };
    let dead = subject.full_job("charge");
    subject.insert(std::slice::from_ref(&dead)).await;
    let lease = subject.claim_lane(holder, dead.lane()).await.remove(0).lease();
    subject.settle(holder, &subject.dead(lease)).await;
    check(subject.get(dead.id).await).await;
    let live = NewJob { key: None, ..subject.full_job("charge") };
    subject.insert(std::slice::from_ref(&live)).await;
    check(subject.get(live.id).await).await;
}

/// An unknown job is not found, and has no history.
pub async fn finds_nothing_that_is_not_there(subject: &Subject) {
    let job = subject.id();
    assert_eq!(subject.store.get(job).await.unwrap(), None);
    assert_eq!(subject.store.attempts(job).await.unwrap(), []);
    assert_eq!(subject.store.audit(Some(job), None, 10).await.unwrap(), []);
    assert_eq!(ids(subject, &Filter::default()).await, []);
}

/// A list contains every job in every state, the newest id first.
pub async fn lists_the_newest_first(subject: &Subject) {
    let mut jobs = one_of_each(subject).await;
    let more = subject.jobs("charge", 10);
    subject.kinds(&["charge"]).await;
    subject.insert(&more).await;
    jobs.extend(more.iter().map(|job| job.id));
    assert_eq!(ids(subject, &Filter::default()).await, newest_first(jobs));
}

/// A listed job is complete except for its payload.
pub async fn lists_everything_but_the_payload(subject: &Subject) {
    one_of_each(subject).await;
    let listed = subject.store.list(&Filter::default(), &PageRequest::first(100)).await.unwrap();
    assert_eq!(listed.items.len(), State::ALL.len());
    for job in listed.items {
        let whole = subject.get(job.id).await;
        assert!(whole.payload.is_some());
        assert_eq!(job, Job { payload: None, ..whole });
    }
}

/// Pages have no gaps or repetitions.
pub async fn pages_have_no_gaps(subject: &Subject) {
    let mut jobs = one_of_each(subject).await;
    subject.kinds(&["charge"]).await;
    let more = subject.jobs("charge", 13);
    subject.insert(&more).await;
    jobs.extend(more.iter().map(|job| job.id));
    for limit in [1, 3, 20, 100] {
        let pages = pages(subject, &Filter::default(), PageRequest::first(limit)).await;
        let listed: Vec<JobId> = pages.iter().flatten().map(|job| job.id).collect();
        assert_eq!(listed, newest_first(jobs.clone()), "in pages of {limit}");
    }
}

/// A page ends when its time is over, but every page makes progress, and none of them has gaps.
pub async fn a_page_ends_when_its_time_is_over(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let mut jobs = subject.jobs("charge", PageRequest::SCANNED_MIN + 200);
    jobs.sort_by_key(|job| job.id);
    jobs[0].kind = KindName::parse("refund").unwrap();
    let oldest = jobs[0].id;
    for part in jobs.chunks(500) {
        subject.insert(part).await;
    }
    let kinds = vec![KindName::parse("refund").unwrap()];
    let filter = Filter { kinds, ..Filter::default() };
    let request = PageRequest { scan_time: Some(Duration::ZERO), ..PageRequest::first(100) };
    let pages = pages(subject, &filter, request).await;
    let found: Vec<Vec<JobId>> =
        pages.iter().map(|page| page.iter().map(|job| job.id).collect()).collect();
    assert_eq!(found, [vec![], vec![oldest]]);
    let enough = PageRequest { scan_time: Some(seconds(3_600)), ..request };
    assert_eq!(subject.store.list(&filter, &enough).await.unwrap().items.len(), 1);
}

/// A job that is settled between two pages is listed once.
pub async fn pages_have_no_gaps_while_jobs_move(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let jobs = subject.jobs("charge", 12);
    subject.insert(&jobs).await;
    let mut request = PageRequest::first(3);
    let mut listed = Vec::new();
    loop {
        let page = subject.store.list(&Filter::default(), &request).await.unwrap();
        listed.extend(page.items.iter().map(|job| job.id));
        for leased in subject.claim(holder, &["charge"], 2).await {
            subject.succeed(holder, leased.lease()).await;
        }
        for leased in subject.claim(holder, &["charge"], 1).await {
            subject.settle(holder, &subject.dead(leased.lease())).await;
        }
        request = match page.next {
            None => break,
            Some(cursor) => PageRequest::behind(cursor, 3),
        };
    }
    assert_eq!(listed, newest_first(jobs.iter().map(|job| job.id).collect()));
}

/// A cursor that was converted to text and back leads to the same page.
pub async fn a_cursor_survives_as_text(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 4)).await;
    let filter = Filter::default();
    let cursor = subject.store.list(&filter, &PageRequest::first(2)).await.unwrap().next.unwrap();
    let read = cursor.to_string().parse().unwrap();
    let page = subject.store.list(&filter, &PageRequest::behind(cursor, 2)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    assert_eq!(subject.store.list(&filter, &PageRequest::behind(read, 2)).await.unwrap(), page);
}

/// A filter that matches little returns early, with a cursor to continue.
pub async fn a_page_may_be_short_and_go_on(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 20);
    subject.insert(&jobs).await;
    let oldest = jobs.iter().map(|job| job.id).min().unwrap();
    subject.apply(oldest, ChangeVerb::Pause).await;
    let filter = Filter { states: vec![State::Paused], ..Filter::default() };

    let request = PageRequest { scan_max: 6, ..PageRequest::first(10) };
    let all = pages(subject, &filter, request).await;
    let found: Vec<JobId> = all.iter().flatten().map(|job| job.id).collect();
    assert_eq!(found, [oldest]);
    let text = Filter { text: Some(oldest.to_string()), ..Filter::default() };
    let all = pages(subject, &text, request).await;
    assert!(all.len() >= 4, "20 rows were looked at in {} pages of 6", all.len());
    let found: Vec<JobId> = all.iter().flatten().map(|job| job.id).collect();
    assert_eq!(found, [oldest]);
}

/// A page has a maximum size, whatever limit is requested.
pub async fn a_page_is_bounded(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", Limits::PAGE_MAX + 10)).await;
    let request = PageRequest::first(Limits::PAGE_MAX * 2);
    let page = subject.store.list(&Filter::default(), &request).await.unwrap();
    assert_eq!(page.items.len(), Limits::PAGE_MAX);
    let rest = PageRequest::behind(page.next.unwrap(), Limits::PAGE_MAX);
    let rest = subject.store.list(&Filter::default(), &rest).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (10, None));
}

/// A count is exact if all rows could be read.
pub async fn counts_what_the_filter_lets_through(subject: &Subject) {
    one_of_each(subject).await;
    let count = async |filter: &Filter| subject.store.count(filter, 100).await.unwrap();
    assert_eq!(count(&Filter::default()).await, Count::Exactly(7));
    let live = Filter { states: vec![State::Leased, State::Dead], ..Filter::default() };
    assert_eq!(count(&live).await, Count::Exactly(2));
    let none = Filter { text: Some("no such text".to_owned()), ..Filter::default() };
    assert_eq!(count(&none).await, Count::Exactly(0));
}

/// A count of more rows than may be read is a lower bound.
pub async fn counts_at_least_what_it_looked_at(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 10)).await;
    let count = subject.store.count(&Filter::default(), 4).await.unwrap();
    assert_eq!(count, Count::AtLeast(4));
}

async fn tally(subject: &Subject, kind: &str) -> Tally {
    let all = subject.store.tally().await.unwrap();
    all.into_iter().find(|tally| tally.kind.as_str() == kind).expect("the kind has jobs")
}

/// A tally counts live and dead jobs of each kind, each state exactly once.
pub async fn tallies_by_kind_and_state(subject: &Subject) {
    for state in [State::Succeeded, State::Dead, State::Dead, State::Leased, State::Paused] {
        subject.job_in("charge", state).await;
    }
    for _ in 0..3 {
        subject.submit("charge").await;
    }
    subject.submit("refund").await;

    let tally_of = |jobs: [u64; 4]| {
        [State::Scheduled, State::Leased, State::Paused, State::Dead].into_iter().zip(jobs)
    };
    let charge = tally(subject, "charge").await;
    assert_eq!(charge.jobs, tally_of([3, 1, 1, 2]).collect());
    assert_eq!(charge.kind, KindName::parse("charge").unwrap());
    let refund = tally(subject, "refund").await;
    assert_eq!(refund.jobs, tally_of([1, 0, 0, 0]).collect());
}

/// The earliest due time of a tally is that of scheduled jobs only.
pub async fn tallies_the_earliest_due(subject: &Subject) {
    let paused = subject.job_in("charge", State::Paused).await;
    assert_eq!(tally(subject, "charge").await.oldest_due, None);
    let mut dues = Vec::new();
    for after in [90, 30, 60] {
        let mut new = subject.job("charge");
        new.due = When::In(seconds(after));
        subject.insert(std::slice::from_ref(&new)).await;
        dues.push(subject.get(new.id).await.due);
    }
    assert!(subject.get(paused).await.due < dues[1]);
    assert_eq!(tally(subject, "charge").await.oldest_due, Some(dues[1]));
}

/// Live jobs are found by id, many at once.
pub async fn finds_live_jobs_by_their_ids(subject: &Subject) {
    let waiting = subject.submit("charge").await;
    let (holder, lease) = subject.leased("mail").await;
    let dead = subject.dead_letter("parcel").await;
    let (done, ended) = subject.leased("sync").await;
    subject.succeed(done, ended).await;
    let ids = [waiting, lease.job, dead, ended.job, subject.id(), waiting];
    let mut live = subject.store.live(&ids).await.unwrap();
    live.sort_by_key(|job| job.id);
    let mut expected = Vec::new();
    for id in [waiting, lease.job] {
        expected.push(Job { payload: None, ..subject.get(id).await });
    }
    expected.sort_by_key(|job| job.id);
    assert_eq!(live, expected);
    assert_eq!(subject.store.live(&[]).await.unwrap(), []);
    assert!(matches!(live.iter().find(|job| job.id == lease.job).unwrap().status,
        Status::Leased { holder: by, .. } if by == holder));
}
