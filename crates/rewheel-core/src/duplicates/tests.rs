//! Tests what submits with a known key do.

use super::{
    Debounce, Duplicates, DuplicatesError, OnDuplicate, OnKey, UniqueUntil, Waits, replaced_facts,
};
use crate::id::{Fence, HolderId, JobId};
use crate::job::{Job, NewJob, Status, When};
use crate::name::{GroupKey, Key, KindName};
use crate::timestamp::Timestamp;
use rewheel::{Random, seconds};

fn policy(until: UniqueUntil, on: OnDuplicate) -> Duplicates {
    Duplicates::new(Some(until), Some(on), None).unwrap()
}

fn debounced(delay: u64, max: u64) -> Duplicates {
    let debounce = Debounce::new(seconds(delay), Some(seconds(max))).unwrap();
    Duplicates::new(None, None, Some(debounce)).unwrap()
}

fn new(payload: &str) -> NewJob {
    let id = JobId::new(Timestamp::from_millis(1), &Random::thread());
    let key = Key::parse("page-7").ok();
    let kind = KindName::parse("index").unwrap();
    NewJob { key, ..NewJob::new(id, kind, payload.as_bytes().to_vec()) }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

#[test]
fn every_combination_is_decided() {
    let cases = [
        (UniqueUntil::Ended, OnDuplicate::Answer, OnKey::Answer, OnKey::Answer),
        (UniqueUntil::Ended, OnDuplicate::Replace, OnKey::Replace, OnKey::Answer),
        (UniqueUntil::Claimed, OnDuplicate::Answer, OnKey::Answer, OnKey::Take),
        (UniqueUntil::Claimed, OnDuplicate::Replace, OnKey::Replace, OnKey::Take),
    ];
    for (until, on, waiting, other) in cases {
        let policy = policy(until, on);
        assert_eq!(policy.decide(Waits::Yes), waiting, "{policy:?}");
        assert_eq!(policy.decide(Waits::No), other, "{policy:?}");
    }
    assert_eq!(debounced(2, 10).decide(Waits::Yes), OnKey::Replace);
    assert_eq!(debounced(2, 10).decide(Waits::No), OnKey::Take);
}

#[test]
fn what_cannot_be_combined_names_its_field() {
    let debounce = Debounce::new(seconds(2), None).unwrap();
    let field = |error: DuplicatesError| error.field;
    let ended = Duplicates::new(Some(UniqueUntil::Ended), None, Some(debounce));
    assert_eq!(ended.map_err(field), Err("debounce"));
    let answer = Duplicates::new(None, Some(OnDuplicate::Answer), Some(debounce));
    assert_eq!(answer.map_err(field), Err("debounce"));
    let asked = Duplicates::default().with_unique_until(UniqueUntil::Ended).unwrap();
    assert_eq!(asked.with_debounce(debounce).map_err(field), Err("debounce"));
    assert!(Duplicates::default().with_debounce(debounce).is_ok());
    assert_eq!(Debounce::new(seconds(0), None).map_err(field), Err("debounce"));
    assert_eq!(Debounce::new(seconds(3), Some(seconds(2))).map_err(field), Err("debounce"));
    let keyless = |duplicates| NewJob { key: None, duplicates, ..new("1") };
    let needs = |duplicates| keyless(duplicates).check_duplicates().map_err(field);
    assert_eq!(needs(debounced(2, 10)), Err("debounce"));
    assert_eq!(needs(policy(UniqueUntil::Ended, OnDuplicate::Replace)), Err("on_duplicate"));
    assert_eq!(needs(policy(UniqueUntil::Claimed, OnDuplicate::Answer)), Err("unique_until"));
    assert_eq!(needs(Duplicates::default()), Ok(()));
    assert_eq!(NewJob { duplicates: debounced(2, 10), ..new("1") }.check_duplicates(), Ok(()));
}

#[test]
fn only_a_job_that_was_never_claimed_waits() {
    let job = new("1").to_job(at(0));
    assert_eq!(job.waits(), Waits::Yes);
    assert_eq!(Job { status: Status::Paused, ..job.clone() }.waits(), Waits::Yes);
    assert_eq!(Job { fence: Fence::new(1), ..job.clone() }.waits(), Waits::No);
    let holder = HolderId::from_bytes([1; 16]);
    let status = Status::Leased { holder, overdue: at(1), wanted: None };
    assert_eq!(Job { status, fence: Fence::new(1), ..job.clone() }.waits(), Waits::No);
    assert_eq!(Job { status: Status::Dead(at(1)), ..job }.waits(), Waits::No);
}

#[test]
fn a_debounced_job_is_postponed_up_to_its_limit() {
    let submit =
        |due| NewJob { due: When::In(seconds(due)), duplicates: debounced(2, 5), ..new("1") };
    let before = submit(2).to_job(at(100));
    let due = |now| submit(2).in_place_of(&before, at(now)).due;
    assert_eq!(due(101), When::At(at(103)));
    assert_eq!(due(103), When::At(at(105)));
    assert_eq!(due(104), When::At(at(105)), "created + max");
    assert_eq!(due(200), When::At(at(105)));
}

#[test]
fn a_job_of_a_group_replaces_no_other() {
    let group_key = Some(GroupKey::parse("customer-17").unwrap());
    let key = Some(Key::parse("invoice-2").unwrap());
    for (duplicates, field) in [
        (debounced(2, 5), "debounce"),
        (Duplicates::new(None, Some(OnDuplicate::Replace), None).unwrap(), "on_duplicate"),
    ] {
        let job = NewJob { key: key.clone(), group_key: group_key.clone(), duplicates, ..new("1") };
        assert_eq!(job.check_duplicates().map_err(|wrong| wrong.field), Err(field));
        assert_eq!(NewJob { group_key: None, ..job }.check_duplicates(), Ok(()));
    }
}

#[test]
fn a_replaced_job_keeps_its_identity_and_nothing_else() {
    let before = Job { status: Status::Paused, ..new("1").to_job(at(100)) };
    let deadline = Some(When::In(seconds(60)));
    let submit = NewJob { deadline, due: When::In(seconds(5)), attempts_max: Some(3), ..new("2") };
    let after = submit.in_place_of(&before, at(110)).replaced(&before);
    assert_eq!((after.id, after.created, after.status), (before.id, at(100), Status::Paused));
    assert_eq!((after.due, after.deadline), (at(115), Some(at(170))));
    assert_eq!((after.payload.as_deref(), after.attempts_max), (Some(&b"2"[..]), Some(3)));
    assert_eq!(after.version, before.version.next());
    let (old, new) = replaced_facts(&before, &after, submit.id);
    let names: Vec<&str> = new.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["payload", "due", "deadline", "attempts_max", "submit"]);
    assert_eq!(old.iter().next(), Some(("payload", Some("1"))));
}
