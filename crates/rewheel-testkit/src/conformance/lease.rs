//! Tests registering, renewing and expiring holders.

use crate::race::both;
use crate::subject::LEASE_TTL;
use crate::{Subject, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, HolderExpiry, StoreError, StoreResult, WantedJob, WatchShare,
};
use rewheel_core::{
    Actor, ExpiryWatch, Format, HolderId, Limits, NewHolder, Retain, Role, Timestamp, TokenId,
    Wanted, WorkerOwner,
};
use std::collections::BTreeMap;
use std::time::Duration;

#[track_caller]
fn assert_dead<T: std::fmt::Debug>(answer: &StoreResult<T>, holder: HolderId) {
    assert!(matches!(answer, Err(StoreError::HolderDead(dead)) if *dead == holder), "{answer:?}");
}

fn new_holder(subject: &Subject) -> NewHolder {
    let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &subject.random);
    NewHolder {
        id,
        name: "node-7".to_owned(),
        role: Role::Engine,
        lease_ttl: LEASE_TTL,
        format: Format::CURRENT,
    }
}

/// A holder reads back as it joined, without a renewal.
pub async fn lists_a_holder_as_it_joined(subject: &Subject) {
    let new = new_holder(subject);
    let joined = subject.store.join(&new).await.unwrap();

    let holder = subject.find(new.id).await.unwrap();
    assert_eq!((holder.name, holder.lease_ttl), (new.name, LEASE_TTL));
    assert_eq!((holder.joined, holder.renewed, holder.renewals), (joined, joined, 0));
    assert_eq!((holder.expired, holder.died), (false, None));
}

/// Every engine is watched by all; every living worker is in two of the shares, or in the only one.
pub async fn each_worker_is_in_two_shares_of_engines(subject: &Subject) {
    let role = Role::Worker { owner: WorkerOwner::NoToken };
    let mut workers = Vec::new();
    for _ in 0..20 {
        let new = NewHolder { role, ..new_holder(subject) };
        subject.store.join(&new).await.unwrap();
        workers.push(new.id);
    }
    let engines = [subject.holder().await, subject.holder().await];
    subject.store.leave(workers[7]).await.unwrap();
    let gone = subject.holder().await;
    subject.store.leave(gone).await.unwrap();
    for of in [1, 2, 3, 7, 100] {
        let mut seen: BTreeMap<HolderId, u32> = BTreeMap::new();
        for index in 0..of {
            let share = WatchShare::new(index, of);
            for holder in subject.store.watched_holders(share).await.unwrap() {
                assert_eq!(Some(&holder), subject.find(holder.id).await.as_ref());
                *seen.entry(holder.id).or_default() += 1;
            }
        }
        for worker in &workers {
            let times = if *worker == workers[7] { None } else { Some(of.min(2)) };
            assert_eq!(seen.remove(worker), times, "{of} engines");
        }
        assert_eq!(seen, engines.map(|engine| (engine, of)).into(), "{of} engines");
    }
}

/// A worker reads back with its owner; joining again does not change it.
pub async fn remembers_who_created_a_worker(subject: &Subject) {
    let owners =
        [WorkerOwner::NoToken, WorkerOwner::Config, WorkerOwner::Token(TokenId::new(u64::MAX))];
    for owner in owners {
        let new = NewHolder { role: Role::Worker { owner }, ..new_holder(subject) };
        subject.store.join(&new).await.unwrap();
        let other = Role::Worker { owner: WorkerOwner::Token(TokenId::new(3)) };
        subject.store.join(&NewHolder { role: other, ..new.clone() }).await.unwrap();
        let found = subject.store.holder(new.id).await.unwrap().unwrap();
        assert_eq!((found.id, found.role), (new.id, Role::Worker { owner }));
        assert_eq!(Some(found), subject.find(new.id).await);
    }
    let unknown = HolderId::new(Timestamp::from_millis(0), &subject.random);
    assert_eq!(subject.store.holder(unknown).await.unwrap(), None);
}

/// Joining again after a lost response changes nothing.
pub async fn joining_again_changes_nothing(subject: &Subject) {
    let new = new_holder(subject);
    subject.store.join(&new).await.unwrap();
    subject.store.renew(new.id).await.unwrap();
    let before = subject.find(new.id).await;
    subject.clock.advance(seconds(5));

    subject.store.join(&new).await.unwrap();
    assert_eq!(subject.find(new.id).await, before);
    assert_eq!(subject.store.holders().await.unwrap().len(), 1);
}

/// A holder dies once: its id cannot be used again.
pub async fn the_dead_cannot_join_again(subject: &Subject) {
    let new = new_holder(subject);
    subject.store.join(&new).await.unwrap();
    subject.store.leave(new.id).await.unwrap();

    assert_dead(&subject.store.join(&new).await, new.id);
    assert!(subject.find(new.id).await.unwrap().died.is_some());
}

/// Each renewal is counted, and updates the time of the last renewal.
pub async fn counts_renewals(subject: &Subject) {
    let holder = subject.holder().await;
    for count in 1..=3 {
        subject.clock.advance(seconds(5));
        let renewed = subject.store.renew(holder).await.unwrap();
        assert_eq!((renewed.renewals, renewed.wanted), (count, vec![]));

        let found = subject.find(holder).await.unwrap();
        assert_eq!((found.renewals, found.renewed), (count, renewed.at));
        assert!(renewed.at.since(found.joined) >= seconds(5) * u32::try_from(count).unwrap());
    }
}

/// A holder that never joined cannot renew, and is not created by the attempt.
pub async fn the_unknown_cannot_renew(subject: &Subject) {
    let stranger = new_holder(subject).id;
    assert_dead(&subject.store.renew(stranger).await, stranger);
    assert_eq!(subject.find(stranger).await, None);
}

/// A holder that left cannot renew.
pub async fn one_who_left_cannot_renew(subject: &Subject) {
    let holder = subject.holder().await;
    subject.store.leave(holder).await.unwrap();
    assert_dead(&subject.store.renew(holder).await, holder);
}

/// An expired holder cannot renew, however soon it comes back.
pub async fn one_who_was_expired_cannot_renew(subject: &Subject) {
    let (by, silent) = (subject.holder().await, subject.holder().await);
    subject.expire_holder(by, silent).await;

    assert_dead(&subject.store.renew(silent).await, silent);
    let found = subject.find(silent).await.unwrap();
    assert_eq!(found.renewals, 0);
    assert!(found.died.is_some());
}

/// An expired lease has no effect until another holder expires its holder.
pub async fn one_whose_lease_ran_out_may_renew(subject: &Subject) {
    let holder = subject.holder().await;
    subject.clock.advance(LEASE_TTL - seconds(10));
    assert!(!subject.find(holder).await.unwrap().expired);
    subject.clock.advance(seconds(3_600));
    assert!(subject.find(holder).await.unwrap().expired);

    subject.store.renew(holder).await.unwrap();
    let found = subject.find(holder).await.unwrap();
    assert_eq!((found.expired, found.died), (false, None));
}

/// A renewal returns what operators want of the holder's jobs, with their fences.
pub async fn a_renewal_tells_what_people_want(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (holder, other) = (subject.holder().await, subject.holder().await);
    subject.insert(&subject.jobs("charge", 3)).await;
    let leases: Vec<_> =
        subject.claim(holder, &["charge"], 3).await.iter().map(|leased| leased.lease()).collect();
    subject.change(leases[0].job, ChangeVerb::Pause).await;
    subject.change(leases[2].job, ChangeVerb::Cancel).await;

    let mut told = subject.store.renew(holder).await.unwrap().wanted;
    told.sort_by_key(|told| leases.iter().position(|lease| *lease == told.lease));
    let pause = WantedJob { lease: leases[0], wanted: Wanted::Pause };
    assert_eq!(told, [pause, WantedJob { lease: leases[2], wanted: Wanted::Cancel }]);
    assert_eq!(subject.store.renew(other).await.unwrap().wanted, []);
}

/// A renewal returns at most one batch of wanted changes.
pub async fn a_renewal_tells_a_batch_at_most(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let jobs = subject.jobs("charge", Limits::BATCH_MAX + 5);
    subject.insert(&jobs).await;
    for limit in [Limits::BATCH_MAX, 5] {
        assert_eq!(subject.claim(holder, &["charge"], limit).await.len(), limit);
    }
    let cancels: Vec<Change> =
        jobs.iter().map(|job| Change::new(job.id, ChangeVerb::Cancel)).collect();
    for batch in cancels.chunks(Limits::BATCH_MAX) {
        subject.store.change(batch, &Actor::new("suite"), Retain::default()).await.unwrap();
    }
    let told = subject.store.renew(holder).await.unwrap().wanted;
    assert_eq!(told.len(), Limits::BATCH_MAX);
    let leases: Vec<_> = told.iter().map(|told| told.lease).collect();
    subject.store.give_back(holder, &leases, Retain::default()).await.unwrap();
    assert_eq!(subject.store.renew(holder).await.unwrap().wanted.len(), 5);
}

/// A wanted change of a sticky retry is returned with its new fence.
pub async fn a_renewal_tells_the_fence_of_a_sticky_retry(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(1), true)).await;
    subject.change(lease.job, ChangeVerb::Cancel).await;

    let told = subject.store.renew(holder).await.unwrap().wanted;
    let fences: Vec<_> = told.iter().map(|told| (told.lease.job, told.lease.fence)).collect();
    assert_eq!(fences, [(lease.job, lease.fence.next())]);
}

/// A wanted change is returned at every renewal until the job is released.
pub async fn a_renewal_tells_it_until_it_is_obeyed(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Pause).await;
    for _ in 0..2 {
        assert_eq!(subject.store.renew(holder).await.unwrap().wanted.len(), 1);
    }
    subject.give_back(holder, lease).await;
    assert_eq!(subject.store.renew(holder).await.unwrap().wanted, []);
}

/// Leaving deregisters a holder; leaving again changes nothing.
pub async fn leaving_ends_a_life(subject: &Subject) {
    let holder = subject.holder().await;
    subject.store.leave(holder).await.unwrap();
    let died = subject.find(holder).await.unwrap().died;
    assert!(died.is_some());

    subject.clock.advance(seconds(5));
    subject.store.leave(holder).await.unwrap();
    assert_eq!(subject.find(holder).await.unwrap().died, died);
}

/// A holder that never joined may leave without effect.
pub async fn the_unknown_may_leave(subject: &Subject) {
    let stranger = new_holder(subject).id;
    subject.store.leave(stranger).await.unwrap();
    assert_eq!(subject.find(stranger).await, None);
}

/// A silent holder is expired once; a second caller learns that it is dead.
pub async fn a_silent_holder_is_expired_once(subject: &Subject) {
    let (by, silent) = (subject.holder().await, subject.holder().await);
    subject.expire_holder(by, silent).await;
    assert_eq!(subject.store.expire_holder(by, silent, 0).await.unwrap(), HolderExpiry::Dead);
    let stranger = new_holder(subject).id;
    assert_eq!(subject.store.expire_holder(by, stranger, 0).await.unwrap(), HolderExpiry::Dead);
}

/// Of two concurrent expirations one succeeds.
pub async fn of_two_who_expire_one_succeeds(subject: &Subject) {
    let (a, b, silent) = (subject.holder().await, subject.holder().await, subject.holder().await);
    subject.clock.advance(LEASE_TTL + seconds(1));

    let store = &subject.store;
    let (first, second) =
        both(store.expire_holder(a, silent, 0), store.expire_holder(b, silent, 0)).await;
    let answers = [first.unwrap(), second.unwrap()];
    assert!(
        answers.contains(&HolderExpiry::Expired) && answers.contains(&HolderExpiry::Dead),
        "{answers:?}"
    );
}

/// A holder that renewed since its counter was read is alive, even if its lease expired again.
pub async fn one_who_renewed_since_is_not_expired(subject: &Subject) {
    let (by, other) = (subject.holder().await, subject.holder().await);
    let seen = subject.find(other).await.unwrap().renewals;
    subject.store.renew(other).await.unwrap();
    subject.clock.advance(LEASE_TTL + seconds(1));

    assert_eq!(subject.store.expire_holder(by, other, seen).await.unwrap(), HolderExpiry::Alive);
    subject.store.renew(other).await.unwrap();
}

/// A holder with a valid lease is alive, even if its counter did not change.
pub async fn one_whose_lease_runs_is_not_expired(subject: &Subject) {
    let (by, other) = (subject.holder().await, subject.holder().await);
    subject.clock.advance(LEASE_TTL - seconds(10));

    assert_eq!(subject.store.expire_holder(by, other, 0).await.unwrap(), HolderExpiry::Alive);
    assert_eq!(subject.find(other).await.unwrap().died, None);
}

/// A dead holder cannot expire others.
pub async fn a_dead_holder_expires_no_other(subject: &Subject) {
    let (dead, other) = (subject.holder().await, subject.holder().await);
    subject.store.leave(dead).await.unwrap();
    subject.clock.advance(LEASE_TTL + seconds(1));

    assert_dead(&subject.store.expire_holder(dead, other, 0).await, dead);
    assert_eq!(subject.find(other).await.unwrap().died, None);
}

/// Of a concurrent renewal and expiration one wins, and the other gets an error.
pub async fn a_renewal_and_a_expiry_do_not_both_succeed(subject: &Subject) {
    let by = subject.holder().await;
    for renewal_first in [true, false] {
        let other = subject.holder().await;
        subject.clock.advance(LEASE_TTL + seconds(1));
        let (renew, bury) = (subject.store.renew(other), subject.store.expire_holder(by, other, 0));
        let (renewed, expired) = if renewal_first {
            both(renew, bury).await
        } else {
            let (expired, renewed) = both(bury, renew).await;
            (renewed, expired)
        };
        match expired.unwrap() {
            HolderExpiry::Expired => assert_dead(&renewed, other),
            HolderExpiry::Alive => assert!(renewed.is_ok(), "{renewed:?}"),
            HolderExpiry::Dead => panic!("no other holder expires it"),
        }
    }
}

/// A fleet of holders that watch each other and renew at the same intervals.
struct Fleet {
    holders: Vec<(HolderId, ExpiryWatch)>,
    at: Duration,
}

impl Fleet {
    async fn new(subject: &Subject, count: usize) -> Fleet {
        let mut holders = Vec::new();
        for _ in 0..count {
            holders.push((subject.holder().await, ExpiryWatch::new(LEASE_TTL)));
        }
        Fleet { holders, at: Duration::ZERO }
    }

    /// Lets the first `count` holders renew one after the other, and expire those they may.
    async fn beat(&mut self, subject: &Subject, count: usize) -> Vec<HolderId> {
        let mut expired = Vec::new();
        for (id, expiry_watch) in &mut self.holders[..count] {
            subject.store.renew(*id).await.unwrap();
            let seen = subject.store.holders().await.unwrap();
            for silent in expiry_watch.renewed(self.at, &seen) {
                let burial =
                    subject.store.expire_holder(*id, silent.id, silent.renewals).await.unwrap();
                if burial == HolderExpiry::Expired {
                    expired.push(silent.id);
                }
            }
        }
        expired
    }

    fn wait(&mut self, subject: &Subject, time: Duration) {
        subject.clock.advance(time);
        self.at += time;
    }
}

/// The store is unavailable for longer than every lease; when it is back, no holder is expired.
pub async fn after_an_outage_no_holder_is_expired(subject: &Subject) {
    let mut fleet = Fleet::new(subject, 5).await;
    for renewal_failed in [true, false] {
        for _ in 0..4 {
            assert_eq!(fleet.beat(subject, 5).await, []);
            fleet.wait(subject, LEASE_TTL / 3);
        }
        fleet.wait(subject, LEASE_TTL * 10);
        let seen = subject.store.holders().await.unwrap();
        assert!(seen.iter().all(|holder| holder.expired), "all were silent: {seen:?}");
        if renewal_failed {
            fleet.holders.iter_mut().for_each(|(_, expiry_watch)| expiry_watch.failed());
        }
    }
    for _ in 0..6 {
        assert_eq!(fleet.beat(subject, 5).await, []);
        fleet.wait(subject, LEASE_TTL / 3);
    }
}

/// A holder that stays silent is expired after the others have renewed for one lease duration.
pub async fn one_who_stays_silent_is_expired_after_a_lease_life(subject: &Subject) {
    let mut fleet = Fleet::new(subject, 3).await;
    let silent = fleet.holders[2].0;
    fleet.wait(subject, LEASE_TTL + seconds(1));
    for _ in 0..3 {
        assert_eq!(fleet.beat(subject, 2).await, []);
        fleet.wait(subject, LEASE_TTL / 3);
    }
    assert_eq!(fleet.beat(subject, 2).await, [silent]);
}
