//! Tests results of jobs, and the record of the attempt that succeeded.

use crate::people::KEEP_NOTHING;
use crate::{Subject, millis, seconds};
use rewheel_core::store::{
    AttemptEnd, AttemptRecord, AttemptTiming, ChangeVerb, Outcome, Settled, Settlement,
};
use rewheel_core::{
    ContentType, Decision, DropReason, DueReason, GivenResult, JobId, JobResult, Lease, Limits,
    Retain, State, StoredResult, SuccessCode,
};
use std::time::Duration;

fn json(body: &str) -> JobResult {
    JobResult { content_type: ContentType::json(), body: body.as_bytes().to_vec() }
}

/// Settles an attempt as a success with a result.
fn giving(lease: Lease, result: &JobResult) -> Settlement {
    Settlement { result: Some(GivenResult::Kept(result.clone())), ..Settlement::succeed(lease) }
}

async fn result(subject: &Subject, job: JobId) -> Option<StoredResult> {
    subject.store.result(job).await.unwrap()
}

fn applied(state: State) -> Settled {
    Settled::Applied(Outcome::LetGo(state))
}

/// A result reads back as it was given: any bytes, none, and as many as an engine may allow.
pub async fn are_stored_with_the_success(subject: &Subject) {
    let octets: Vec<u8> = (0..=255).collect();
    for body in [b"{}".to_vec(), Vec::new(), octets, vec![7; Limits::RESULT_BYTES_CEILING]] {
        let (holder, lease) = subject.leased("charge").await;
        assert_eq!(result(subject, lease.job).await, None);
        let content_type = ContentType::parse("text/csv; charset=\"utf-8\"").unwrap();
        let given = JobResult { content_type, body };
        let settled = subject.settle(holder, &giving(lease, &given)).await;
        assert_eq!(settled, applied(State::Succeeded));
        assert_eq!(result(subject, lease.job).await, Some(StoredResult::Kept(given)));
    }
    subject.balance().await;
}

/// A result that is not kept leaves its reason, and the job succeeds.
pub async fn that_are_dropped_leave_the_reason(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let why = DropReason::new("the result has 70000 bytes; the limit is 65536 \u{e4} ' %");
    let dropped = Some(GivenResult::Dropped(why.clone()));
    let settled =
        subject.settle(holder, &Settlement { result: dropped, ..Settlement::succeed(lease) }).await;
    assert_eq!(settled, applied(State::Succeeded));
    assert_eq!(result(subject, lease.job).await, Some(StoredResult::Dropped(why)));
}

/// Only a success that is kept has a result.
pub async fn are_only_of_kept_successes(subject: &Subject) {
    let (after, because) = (seconds(60), DueReason::Backoff);
    for decision in [
        Decision::Retry { after, sticky: false, because },
        Decision::Retry { after, sticky: true, because },
        Decision::Snooze { after, because: DueReason::Snooze },
        Decision::Dead { failure: subject.timeout() },
        Decision::Fail { failure: subject.timeout() },
        Decision::Pause,
        Decision::Cancel,
    ] {
        let (holder, lease) = subject.leased("charge").await;
        let settlement = Settlement { decision: decision.clone(), ..giving(lease, &json("1")) };
        let settled = subject.settle(holder, &settlement).await;
        assert!(matches!(settled, Settled::Applied(_)), "{decision:?}: {settled:?}");
        assert_eq!(result(subject, lease.job).await, None, "{decision:?}");
    }
    let (holder, lease) = subject.leased("charge").await;
    let not_kept = Settlement { keep: KEEP_NOTHING, ..giving(lease, &json("1")) };
    assert_eq!(subject.settle(holder, &not_kept).await, applied(State::Succeeded));
    assert_eq!(result(subject, lease.job).await, None);
    subject.balance().await;
}

/// A settle that is repeated keeps the first result, in a batch of its own and in the same one.
pub async fn stay_the_first_if_the_settle_is_repeated(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let (first, second) = (json("1"), json("2"));
    subject.settle(holder, &giving(lease, &first)).await;
    let again = subject.settle(holder, &giving(lease, &second)).await;
    assert!(matches!(again, Settled::AlreadyApplied(_)), "{again:?}");
    assert_eq!(result(subject, lease.job).await, Some(StoredResult::Kept(first.clone())));

    let (holder, lease) = subject.leased("charge").await;
    let both = [giving(lease, &first), giving(lease, &second)];
    let settled = subject.store.settle(holder, &both).await.unwrap();
    assert_eq!(settled[0], applied(State::Succeeded));
    assert!(matches!(settled[1], Settled::AlreadyApplied(_)), "{settled:?}");
    assert_eq!(result(subject, lease.job).await, Some(StoredResult::Kept(first)));
}

/// The result of a holder that lost the job is not stored, neither before nor after its heir succeeded.
pub async fn of_a_lost_lease_are_not_stored(subject: &Subject) {
    let (late, lease) = subject.leased("charge").await;
    let heir = subject.heir_of(late).await;
    subject.sweep(heir).await;
    let settled = subject.settle(late, &giving(lease, &json("1"))).await;
    assert_eq!(settled, Settled::Lost);
    assert_eq!(result(subject, lease.job).await, None);
    let current = subject.claim_only(heir, "charge").await.lease();
    let right = json("2");
    subject.settle(heir, &giving(current, &right)).await;
    assert_eq!(subject.settle(late, &giving(lease, &json("3"))).await, Settled::Lost);
    assert_eq!(result(subject, lease.job).await, Some(StoredResult::Kept(right)));
}

/// Each job of a batch gets its own result, beside jobs without one, failures and jobs that submit others.
pub async fn of_a_batch_belong_to_their_jobs(subject: &Subject) {
    let holder = subject.holder().await;
    subject.kinds(&["charge", "mail"]).await;
    subject.insert(&subject.jobs("charge", 6)).await;
    let leases: Vec<Lease> =
        subject.claim(holder, &["charge"], 6).await.iter().map(|leased| leased.lease()).collect();
    let mut settlements: Vec<Settlement> =
        (0..).zip(&leases).map(|(nth, lease)| giving(*lease, &json(&format!("{nth}")))).collect();
    settlements[1].result = None;
    settlements[3].follow_ups = vec![subject.job("mail")];
    let only_successes = settlements.clone();
    settlements[4] = subject.dead(leases[4]);
    for settled in subject.store.settle(holder, &settlements[..]).await.unwrap() {
        assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
    }
    for (nth, lease) in leases.iter().enumerate() {
        let expected = match nth {
            1 | 4 => None,
            nth => Some(StoredResult::Kept(json(&format!("{nth}")))),
        };
        assert_eq!(result(subject, lease.job).await, expected, "{nth}");
    }
    // The same without a failure, which a store may write in another way.
    subject.insert(&subject.jobs("charge", 6)).await;
    let leases: Vec<Lease> =
        subject.claim(holder, &["charge"], 6).await.iter().map(|leased| leased.lease()).collect();
    let again: Vec<Settlement> = only_successes
        .into_iter()
        .zip(&leases)
        .map(|(settled, lease)| Settlement { lease: *lease, follow_ups: Vec::new(), ..settled })
        .collect();
    subject.store.settle(holder, &again).await.unwrap();
    for (nth, lease) in leases.iter().enumerate() {
        let expected = (nth != 1).then(|| StoredResult::Kept(json(&format!("{nth}"))));
        assert_eq!(result(subject, lease.job).await, expected, "{nth}");
    }
    subject.balance().await;
}

/// A result is deleted with its job. That it existed is remembered for a while.
pub async fn are_pruned_with_their_jobs(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let given = json("{}");
    let keep = Retain { job: seconds(60), ..Retain::default() };
    subject.settle(holder, &Settlement { keep, ..giving(lease, &given) }).await;
    subject.clock.advance(seconds(30));
    assert_eq!(subject.prune_all().await.results, 0);
    assert_eq!(result(subject, lease.job).await, Some(StoredResult::Kept(given)));

    subject.clock.advance(seconds(31));
    let pruned = subject.prune_all().await;
    assert_eq!((pruned.finished, pruned.results), (1, 1));
    assert_eq!(result(subject, lease.job).await, Some(StoredResult::Pruned));
    assert_eq!(subject.prune_all().await.results, 0);

    subject.clock.advance(Limits::RESULTS_REMEMBERED);
    assert_eq!(subject.prune_all().await.results, 1);
    assert_eq!(result(subject, lease.job).await, None);
    subject.balance().await;
}

/// The attempt that succeeded is the last one on record, with its holder, its time and its code.
pub async fn a_success_is_on_record(subject: &Subject) {
    let (first, lease) = subject.leased("charge").await;
    subject.settle(first, &subject.retry(lease, Duration::ZERO, false)).await;
    let second = subject.holder().await;
    let lease = subject.claim_only(second, "charge").await.lease();
    let ran = AttemptTiming { started_ago: seconds(3), duration: millis(2_250) };
    let code = SuccessCode::new("204");
    let before = subject.now().await.as_millis() - 3_000;
    let success = Settlement { ran, code: code.clone(), ..Settlement::succeed(lease) };
    subject.settle(second, &success).await;
    let after = subject.now().await.as_millis() - 3_000;

    let records = subject.store.attempts(lease.job).await.unwrap();
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!(records[0].failure(), Some(&subject.timeout()));
    assert!((before..=after).contains(&records[1].started.as_millis()), "{records:?}");
    let expected = AttemptRecord {
        attempt: 2,
        fence: lease.fence,
        holder: second,
        started: records[1].started,
        duration: millis(2_250),
        ended: AttemptEnd::Succeeded(code),
        decision: "succeed".to_owned(),
        delay: None,
        dropped: 0,
    };
    assert_eq!(records[1], expected);
}

/// So it is for every job of a batch, whatever else is in it, and in any order.
pub async fn successes_of_a_batch_have_their_own_records(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    for with_failure in [false, true] {
        subject.insert(&subject.jobs("charge", 5)).await;
        let mut leases: Vec<Lease> =
            subject.claim(holder, &["charge"], 5).await.iter().map(|one| one.lease()).collect();
        leases.reverse();
        let mut settlements: Vec<Settlement> = (1..)
            .zip(&leases)
            .map(|(nth, lease)| Settlement {
                ran: AttemptTiming { started_ago: millis(nth * 10), duration: millis(nth) },
                code: SuccessCode::new(if nth % 2 == 0 { "200" } else { "" }),
                ..Settlement::succeed(*lease)
            })
            .collect();
        if with_failure {
            settlements[2] = subject.dead(leases[2]);
        }
        subject.store.settle(holder, &settlements).await.unwrap();
        for (nth, lease) in (1..).zip(&leases) {
            let records = subject.store.attempts(lease.job).await.unwrap();
            assert_eq!(records.len(), 1, "{records:?}");
            if with_failure && nth == 3 {
                assert_eq!(records[0].decision, "dead");
                continue;
            }
            let code = SuccessCode::new(if nth % 2 == 0 { "200" } else { "" });
            assert_eq!(records[0].ended, AttemptEnd::Succeeded(code), "{nth}");
            let ended = subject.get(lease.job).await.status.finished().unwrap();
            assert_eq!(records[0].duration, millis(nth));
            assert_eq!(ended.since(records[0].started), millis(nth * 10));
        }
    }
}

/// A job that ended in another way has no attempt that succeeded.
pub async fn only_a_success_is_on_record_as_one(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let settlement = Settlement { decision: Decision::Cancel, ..Settlement::succeed(lease) };
    subject.settle(holder, &settlement).await;
    assert_eq!(subject.store.attempts(lease.job).await.unwrap(), []);
    let job = subject.submit("charge").await;
    subject.change(job, ChangeVerb::Cancel).await;
    assert_eq!(subject.store.attempts(job).await.unwrap(), []);
    // A rule may turn a failure into a success: then its history has it.
    let (holder, lease) = subject.leased("charge").await;
    let ruled = Settlement { failure: Some(subject.timeout()), ..Settlement::succeed(lease) };
    assert_eq!(subject.settle(holder, &ruled).await, applied(State::Succeeded));
    let records = subject.store.attempts(lease.job).await.unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0].failure(), Some(&subject.timeout()));
}

/// Jobs that are live are left out: the others have ended, or never existed.
pub async fn ended_leaves_out_live_jobs(subject: &Subject) {
    let live = [State::Scheduled, State::Leased, State::Paused];
    let ended = [State::Succeeded, State::Failed, State::Dead, State::Cancelled];
    let mut jobs = Vec::new();
    for state in live {
        jobs.push(subject.job_in("charge", state).await);
    }
    let mut expected = vec![subject.id()];
    for state in ended {
        expected.push(subject.job_in("charge", state).await);
    }
    jobs.extend(&expected);
    let mut found = subject.store.ended(&jobs).await.unwrap();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(subject.store.ended(&[]).await.unwrap(), []);
}
