//! Remembers the latest jobs that this process acknowledged, to count those that a failover, a restart or a restore forgot.

use rewheel_core::{JobId, KindName, Timestamp};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of remembered jobs of each sort: 13 seconds at 5,000 jobs per second, in 6 MiB. A standby that is further behind has
/// forgotten more than this process can count.
const REMEMBERED_MAX: usize = 65_536;

/// The age up to which jobs are looked for: a standby is rarely further behind. Older jobs may have been deleted after their retention.
const REMEMBERED_FOR: Duration = Duration::from_secs(10 * 60);

/// Maximum number of kinds whose retention is remembered; a user has some hundreds.
const KINDS_MAX: usize = 10_000;

/// The latest jobs that were stored and that have ended, each acknowledged to its caller.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    submitted: Recent<Submitted>,
    ended: Recent<Ended>,
    /// The shortest retention of the jobs of a kind that this process submitted and ended.
    kept: HashMap<u64, Duration>,
    /// The epoch that began, and when, until its check begins.
    asked: Option<(i64, Timestamp)>,
    check: Option<Check>,
}

#[derive(Clone, Copy, Debug)]
struct Submitted {
    at: Timestamp,
    /// A hash of the kind's name. Two kinds with the same hash share the shorter retention.
    kind: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    at: Timestamp,
    is_kept: bool,
}

/// The jobs to look for after an epoch has begun, without those that were looked for.
#[derive(Debug)]
struct Check {
    submitted: HashMap<JobId, Submitted>,
    ended: HashSet<JobId>,
    found: Found,
}

/// The next step of a check.
#[derive(Debug)]
pub(crate) enum Step {
    /// Look for these jobs.
    Look(Part),
    /// Report the result: all jobs were looked for.
    Report(Found),
}

/// Jobs to look for at once.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) submitted: Vec<JobId>,
    pub(crate) ended: Vec<JobId>,
}

/// What a check has found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) epoch: i64,
    /// Number of jobs that were looked for.
    pub(crate) checked: usize,
    /// Jobs that are missing.
    pub(crate) submitted: Vec<JobId>,
    /// Jobs that had ended and are live again.
    pub(crate) ended: Vec<JobId>,
}

impl Acknowledged {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers jobs that were stored, each with its kind.
    pub(crate) fn submitted<'k>(
        &self,
        jobs: impl Iterator<Item = (JobId, &'k KindName)>,
        now: Timestamp,
    ) {
        let known = &mut *self.known();
        for (job, kind) in jobs {
            // It may have ended before its submitter was scheduled again.
            if known.ended.get(job).is_none_or(|ended| ended.is_kept) {
                known.submitted.remember(job, Submitted { at: now, kind: hash(kind) });
            }
        }
    }

    /// Remembers jobs that have ended for good, each with its retention.
    pub(crate) fn ended(&self, jobs: impl Iterator<Item = (JobId, Duration)>, now: Timestamp) {
        let known = &mut *self.known();
        for (job, keep) in jobs {
            known.ended.remember(job, Ended { at: now, is_kept: !keep.is_zero() });
            if let Some(submitted) = known.submitted.get(job) {
                if known.kept.len() >= KINDS_MAX {
                    known.kept.clear();
                }
                let shortest = known.kept.entry(submitted.kind).or_insert(keep);
                *shortest = keep.min(*shortest);
            }
            if keep.is_zero() {
                // It is in no table, and not missing.
                known.submitted.forget(job);
                if let Some(check) = &mut known.check {
                    check.submitted.remove(&job);
                }
            }
        }
    }

    /// Asks for a check, because an epoch began.
    pub(crate) fn ask(&self, epoch: i64, now: Timestamp) {
        self.known().asked = Some((epoch, now));
    }

    /// Returns the next step of the check, if an epoch began, with at most `most` jobs. It is the same one until it is done.
    pub(crate) fn next(&self, most: usize) -> Option<Step> {
        let known = &mut *self.known();
        if let Some((epoch, began)) = known.asked.take() {
            // What an unfinished check of an earlier epoch has found is found again.
            known.check = Some(known.check_of(epoch, began));
        }
        let check = known.check.as_ref()?;
        let mut submitted: Vec<JobId> = check.submitted.keys().take(most).copied().collect();
        let mut ended: Vec<JobId> =
            check.ended.iter().take(most - submitted.len()).copied().collect();
        if submitted.is_empty() && ended.is_empty() {
            return Some(Step::Report(check.found.clone()));
        }
        // Neighbours in an index.
        submitted.sort_unstable();
        ended.sort_unstable();
        Some(Step::Look(Part { submitted, ended }))
    }

    /// Notes that a part was looked for: which submitted jobs are in no table, and which ended jobs are live.
    pub(crate) fn looked(
        &self,
        part: &Part,
        missing: &HashSet<JobId>,
        live: &HashSet<JobId>,
        now: Timestamp,
    ) {
        let known = &mut *self.known();
        let Known { check: Some(check), kept, .. } = known else { return };
        let Check { submitted, ended, found } = check;
        for job in &part.submitted {
            // Another sweep may have looked for it, or it has ended meanwhile.
            let Some(looked_for) = submitted.remove(job) else { continue };
            found.checked += 1;
            // Another node may have ended it, so that it was deleted after its retention.
            let is_deleted =
                kept.get(&looked_for.kind).is_some_and(|keep| now.since(looked_for.at) >= *keep);
            if missing.contains(job) && !is_deleted {
                found.submitted.push(*job);
            }
        }
        for job in part.ended.iter().filter(|job| ended.remove(*job)) {
            found.checked += 1;
            if live.contains(job) {
                found.ended.push(*job);
            }
        }
    }

    /// Ends a check. The next one does not count the same jobs again.
    pub(crate) fn reported(&self, found: &Found) {
        let known = &mut *self.known();
        for job in &found.submitted {
            known.submitted.forget(*job);
        }
        for job in &found.ended {
            known.ended.forget(*job);
        }
        // Another epoch may have begun meanwhile.
        known.check = known.check.take().filter(|check| check.found.epoch != found.epoch);
    }
}

impl Known {
    fn check_of(&self, epoch: i64, began: Timestamp) -> Check {
        let is_recent = |at: Timestamp| began.since(at) <= REMEMBERED_FOR;
        let submitted = self.submitted.known.iter().filter(|(_, it)| is_recent(it.at));
        let ended = self.ended.known.iter().filter(|(_, it)| is_recent(it.at));
        Check {
            submitted: submitted.map(|(job, it)| (*job, *it)).collect(),
            ended: ended.map(|(job, _)| *job).collect(),
            found: Found { epoch, ..Found::default() },
        }
    }
}

/// The latest jobs of one sort.
#[derive(Debug)]
struct Recent<T> {
    /// May name jobs that were forgotten.
    order: VecDeque<JobId>,
    known: HashMap<JobId, T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { order: VecDeque::new(), known: HashMap::new() }
    }
}

impl<T: Copy> Recent<T> {
    fn get(&self, job: JobId) -> Option<T> {
        self.known.get(&job).copied()
    }

    fn remember(&mut self, job: JobId, what: T) {
        if self.known.insert(job, what).is_none() {
            self.order.push_back(job);
        }
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn forget(&mut self, job: JobId) {
        self.known.remove(&job);
    }
}

fn hash(kind: &KindName) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.as_str().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{Acknowledged, Found, Part, REMEMBERED_FOR, REMEMBERED_MAX, Step};
    use rewheel_core::{JobId, KindName, Timestamp};
    use std::collections::HashSet;
    use std::time::Duration;

    const DAY: Duration = Duration::from_secs(24 * 3_600);
    const MINUTE: Duration = Duration::from_secs(60);

    fn job(number: usize) -> JobId {
        JobId::from_bytes((number as u128).to_be_bytes())
    }

    fn at(after: Duration) -> Timestamp {
        Timestamp::from_millis(1_000_000).plus(after)
    }

    fn now() -> Timestamp {
        at(Duration::ZERO)
    }

    fn submit(known: &Acknowledged, kind: &str, jobs: impl Iterator<Item = usize>, now: Timestamp) {
        let kind = KindName::parse(kind).expect("a name");
        known.submitted(jobs.map(|number| (job(number), &kind)), now);
    }

    /// Looks for all jobs in parts of at most 1,000; `gone` are in no table, and `live` are live.
    fn check(known: &Acknowledged, gone: &[usize], live: &[usize], now: Timestamp) -> Found {
        let set = |jobs: &[usize]| jobs.iter().copied().map(job).collect::<HashSet<JobId>>();
        let (gone, live) = (set(gone), set(live));
        loop {
            match known.next(1_000).expect("an epoch began") {
                Step::Look(part) => {
                    assert!((1..=1_000).contains(&(part.submitted.len() + part.ended.len())));
                    known.looked(&part, &gone, &live, now);
                }
                Step::Report(mut found) => {
                    known.reported(&found);
                    found.submitted.sort_unstable();
                    return found;
                }
            }
        }
    }

    #[test]
    fn the_latest_jobs_are_checked_once_after_an_epoch_began() {
        let known = Acknowledged::default();
        submit(&known, "a", 0..8, now());
        submit(&known, "b", 8..9, now());
        submit(&known, "a", 9..REMEMBERED_MAX + 2, now());
        known.ended([(job(7), DAY), (job(8), Duration::ZERO)].into_iter(), now());
        assert!(known.next(10).is_none());
        known.ask(3, now());
        // The first two are forgotten, and one is in no table because it was not kept.
        let found = check(&known, &[0, 1, 8, 9], &[7], now());
        assert_eq!((found.epoch, found.checked), (3, REMEMBERED_MAX - 1 + 2));
        assert_eq!((found.submitted, found.ended), (vec![job(9)], vec![job(7)]));
        assert!(known.next(10).is_none());
        known.ask(4, now());
        let found = check(&known, &[8, 9], &[7], now());
        assert_eq!((found.submitted, found.ended), (vec![], vec![]), "they were counted");
    }

    #[test]
    fn an_epoch_that_begins_during_a_check_begins_another_check() {
        let known = Acknowledged::default();
        submit(&known, "a", 0..100, now());
        known.ask(3, now());
        let Some(Step::Look(part)) = known.next(10) else { panic!("nothing to look for") };
        assert_eq!(part.submitted.len(), 10);
        let missing: HashSet<JobId> = part.submitted.iter().copied().collect();
        known.looked(&part, &missing, &HashSet::new(), now());
        known.ask(4, now());
        let found = check(&known, &(0..100).collect::<Vec<_>>(), &[], now());
        assert_eq!((found.epoch, found.checked, found.submitted.len()), (4, 100, 100));
        assert!(known.next(10).is_none());
    }

    /// A part that failed, or that two sweeps looked for, is counted once.
    #[test]
    fn a_part_is_counted_once() {
        let known = Acknowledged::default();
        submit(&known, "a", 0..5, now());
        known.ask(1, now());
        let look = || match known.next(10) {
            Some(Step::Look(part)) => part,
            step => panic!("{step:?}"),
        };
        let (first, second): (Part, Part) = (look(), look());
        assert_eq!(first.submitted, second.submitted);
        let missing: HashSet<JobId> = first.submitted.iter().copied().collect();
        known.looked(&first, &missing, &HashSet::new(), now());
        known.looked(&second, &missing, &HashSet::new(), now());
        let Some(Step::Report(found)) = known.next(10) else { panic!("not all were looked for") };
        assert_eq!((found.checked, found.submitted.len()), (5, 5));
    }

    #[test]
    fn old_jobs_are_not_looked_for() {
        let known = Acknowledged::default();
        submit(&known, "a", 0..2, now());
        known.ended([(job(0), DAY)].into_iter(), now());
        submit(&known, "a", 2..3, at(MINUTE));
        known.ask(1, at(REMEMBERED_FOR + MINUTE));
        let found = check(&known, &[0, 1], &[0], at(DAY));
        assert_eq!((found.checked, found.submitted, found.ended), (1, vec![], vec![]));
    }

    #[test]
    fn a_job_whose_retention_may_have_ended_is_not_missing() {
        let known = Acknowledged::default();
        submit(&known, "short", 0..3, now());
        submit(&known, "long", 10..13, now());
        submit(&known, "unknown", 20..21, now());
        known.ended([(job(0), 2 * MINUTE), (job(1), DAY), (job(10), DAY)].into_iter(), now());
        let all: Vec<usize> = (0..30).collect();
        known.ask(1, at(MINUTE));
        assert_eq!(check(&known, &all, &[], at(MINUTE)).submitted.len(), 7);

        submit(&known, "short", 0..3, now());
        submit(&known, "long", 10..13, now());
        known.ask(2, at(MINUTE));
        let found = check(&known, &all, &[], at(2 * MINUTE));
        assert_eq!(found.submitted, [10, 11, 12].map(job));
    }

    /// Another node may end jobs of a kind that this node did not keep either.
    #[test]
    fn jobs_of_a_kind_that_is_not_kept_are_not_missing() {
        let known = Acknowledged::default();
        submit(&known, "dropped", 0..10, now());
        submit(&known, "kept", 10..20, now());
        known.ended([(job(4), Duration::ZERO), (job(14), DAY)].into_iter(), now());
        known.ask(1, now());
        let found = check(&known, &[3, 4, 5, 13, 14], &[], now());
        assert_eq!(found.submitted, [13, 14].map(job));
    }

    /// The ends of a busy node are many more than what it submits.
    #[test]
    fn a_job_that_was_not_kept_stays_known_as_ended() {
        let known = Acknowledged::default();
        submit(&known, "a", 0..1, now());
        known.ended([(job(0), Duration::ZERO)].into_iter(), now());
        known.ended((1..=REMEMBERED_MAX).map(|number| (job(number), DAY)), now());
        // Acknowledged after its end, because its submitter was slow.
        known.ended([(job(REMEMBERED_MAX + 1), Duration::ZERO)].into_iter(), now());
        submit(&known, "b", REMEMBERED_MAX + 1..REMEMBERED_MAX + 2, now());
        known.ask(1, now());
        // Ended during the check.
        submit(&known, "b", 3..4, now());
        let Some(Step::Look(_)) = known.next(10) else { panic!("nothing to look for") };
        known.ended([(job(3), Duration::ZERO)].into_iter(), now());
        assert_eq!(check(&known, &[0, 3, REMEMBERED_MAX + 1], &[], now()).submitted, []);
    }
}
