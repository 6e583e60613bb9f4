//! Records what every engine and worker of a simulation does, and compares it with what is allowed.

use crate::duplicates::Payloads;
use crate::fleet::{ATTEMPT_TIMEOUT, Fleet, GRACE, Limit};
use crate::groups::Lines;
use crate::outages::{Load, Outages};
use rewheel::Category;
use rewheel_core::store::{AttemptRecord, ReadStore};
use rewheel_core::{
    Fence, HolderId, Job, JobId, KindName, Lane, State, Status, StoredResult, Timestamp,
};
use rewheel_stores::MemoryStore;
use rewheel_testkit::Verb;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// Number of concurrent attempts in one engine.
pub(crate) const PLACES: usize = 8;

/// The number of seconds over which a fast rate is checked.
const RATE_SECONDS: u32 = 2;

/// An attempt that was decided before an engine learned of a pause starts within this time.
const ON_ITS_WAY: Duration = Duration::from_millis(10);

/// Calls of loops that are not restarted.
const ESSENTIAL: [Verb; 3] = [Verb::Settle, Verb::GiveBack, Verb::Insert];

/// Number of restarts of a loop before its engine stops.
const RESTARTS_MAX: u32 = 5;

/// One life of an engine or of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Engine(u64),
    Worker(u64),
}

#[derive(Clone, Debug)]
struct Running {
    who: Who,
    lane: Lane,
    job: JobId,
    fence: Fence,
    holder: Option<HolderId>,
    /// Whether it began before an outage of its dependency.
    is_old: bool,
}

#[derive(Debug)]
struct Pause {
    at: Instant,
    at_store: Timestamp,
    /// When each engine first learned of it.
    heard: BTreeMap<Who, Instant>,
}

#[derive(Debug, Default)]
struct Book {
    violations: Vec<String>,
    story: Vec<String>,
    counts: BTreeMap<&'static str, u64>,
    running: BTreeMap<u64, Running>,
    last_run: u64,
    runs: BTreeMap<JobId, u32>,
    /// When jobs under a slow rate were leased, since the store's clock last jumped.
    leased: BTreeMap<String, BTreeSet<Timestamp>>,
    /// When the store's clock last jumped, by its new time.
    jumped: Option<Timestamp>,
    /// Recent starts under a fast rate.
    recent: BTreeMap<(Who, String), VecDeque<Instant>>,
    paused: BTreeMap<KindName, Pause>,
    /// Number of panics in the loops of each engine.
    panics: BTreeMap<Who, u32>,
    /// The jobs that attempts submitted, by id.
    follow_ups: BTreeMap<JobId, FollowUp>,
    /// The results that were given under each fence of a job.
    results: BTreeMap<(JobId, Fence), Vec<Vec<u8>>>,
    /// The first result of a job that was seen in the store.
    first_results: BTreeMap<JobId, StoredResult>,
}

/// A job that an attempt submitted with its result.
#[derive(Clone, Copy, Debug)]
struct FollowUp {
    parent: JobId,
    /// The fence of the attempt.
    fence: Fence,
    /// Whether the attempt reported a success.
    done: bool,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) fleet: Fleet,
    pub(crate) store: MemoryStore,
    started: Instant,
    book: Mutex<Book>,
    payloads: Mutex<Payloads>,
    lines: Mutex<Lines>,
    outages: Mutex<Outages>,
}

/// The result of a simulation.
pub(crate) struct Result {
    pub(crate) violations: Vec<String>,
    pub(crate) story: Vec<String>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

/// An attempt that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Run {
    model: Arc<Model>,
    number: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.model.book().running.remove(&self.number);
    }
}

#[expect(clippy::disallowed_methods, reason = "the time of a simulation is simulated")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl Model {
    pub(crate) fn new(fleet: Fleet, store: MemoryStore, started: Instant) -> Arc<Model> {
        let (book, payloads, lines) = (Mutex::default(), Mutex::default(), Mutex::default());
        let outages = Mutex::default();
        Arc::new(Model { fleet, store, started, book, payloads, lines, outages })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("nothing panics with it")
    }

    /// Returns what submits with the same key gave, and what ran.
    pub(crate) fn payloads(&self) -> MutexGuard<'_, Payloads> {
        self.payloads.lock().expect("nothing panics with it")
    }

    pub(crate) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().expect("nothing panics with it")
    }

    pub(crate) fn outages(&self) -> MutexGuard<'_, Outages> {
        self.outages.lock().expect("nothing panics with it")
    }

    pub(crate) fn result(&self) -> Result {
        let book = std::mem::take(&mut *self.book());
        Result { violations: book.violations, story: book.story, counts: book.counts }
    }

    pub(crate) fn tell(&self, what: &str) {
        let at = self.started.elapsed().as_millis();
        self.book().story.push(format!("{at} {what}"));
    }

    pub(crate) fn complain(&self, what: String) {
        self.tell(&what);
        self.book().violations.push(what);
    }

    /// Counts events, to check that all of them occur.
    pub(crate) fn count(&self, what: &'static str) {
        *self.book().counts.entry(what).or_default() += 1;
    }

    /// A loop of an engine panics.
    pub(crate) fn panics(&self, who: Who, verb: Verb) {
        self.tell(&format!("{verb:?} panics in {who:?}"));
        self.count("loops panicked");
        let is_essential = ESSENTIAL.contains(&verb);
        let restarts = if is_essential { RESTARTS_MAX + 1 } else { 1 };
        *self.book().panics.entry(who).or_default() += restarts;
    }

    /// Returns the number of panics in the loops of an engine; those that stop it count more.
    pub(crate) fn panics_of(&self, who: Who) -> u32 {
        self.book().panics.get(&who).copied().unwrap_or(0)
    }

    /// The store's clock jumped: times before and after cannot be compared.
    pub(crate) async fn jumped(&self) {
        let now = self.store.now().await.expect("the store itself never fails");
        let mut book = self.book();
        book.jumped = Some(now);
        book.leased.clear();
        for pause in book.paused.values_mut() {
            pause.at_store = now;
        }
    }

    pub(crate) async fn paused(&self, kind: &KindName) {
        let at_store = self.store.now().await.expect("the store itself never fails");
        let pause = Pause { at: now(), at_store, heard: BTreeMap::new() };
        self.book().paused.insert(kind.clone(), pause);
    }

    pub(crate) fn resumed(&self, kind: &KindName) {
        self.book().paused.remove(kind);
    }

    pub(crate) fn is_paused(&self, kind: &KindName) -> bool {
        self.book().paused.contains_key(kind)
    }

    /// An engine has read the kinds.
    pub(crate) fn hears(&self, who: Who) {
        let now = now();
        for pause in self.book().paused.values_mut().filter(|pause| pause.at < now) {
            pause.heard.entry(who).or_insert(now);
        }
    }

    /// An attempt starts. Checks whether it may.
    pub(crate) async fn begin(self: &Arc<Model>, who: Who, job: &Job) -> Run {
        let holder =
            if let Status::Leased { holder, .. } = job.status { Some(holder) } else { None };
        self.payloads().run(job);
        self.look_at_breakers(who);
        let begin = self.begins(who, job);
        let lane = job.lane.clone();
        self.tell(&format!("{} of {} starts in {who:?}, fence {}", job.id, lane.kind, job.fence));
        let (number, is_first) = {
            let mut book = self.book();
            book.last_run += 1;
            let runs = book.runs.entry(job.id).or_default();
            *runs += 1;
            let is_first = *runs == 1;
            let number = book.last_run;
            let (job, fence, is_old) = (job.id, job.fence, begin.is_old);
            let running = Running { who, lane, job, fence, holder, is_old };
            book.running.insert(number, running);
            (number, is_first)
        };
        self.count(match who {
            Who::Engine(_) => "attempts in engines",
            Who::Worker(_) => "attempts in workers",
        });
        let store_now = self.store.now().await.expect("the store itself never fails");
        self.check_pause(who, job, store_now);
        self.check_group(job, is_first).await;
        let here = self.running_in(who, |_| true).await;
        if !begin.is_beside_hung {
            self.check_most(who, "concurrency", PLACES, here);
        } else if here > PLACES {
            self.count("tests beyond the slots");
        }
        for limit in self.fleet.limits(&job.lane) {
            if !begin.is_test || limit.is_kind {
                self.check_concurrency(who, &limit).await;
            }
            self.check_slow(&limit, job, store_now);
            self.check_fast(who, &limit);
        }
        Run { model: Arc::clone(self), number }
    }

    /// Returns the number of running attempts in one engine or worker. A worker may still run a job that was taken from it: that
    /// does not count.
    async fn running_in(&self, who: Who, which: impl Fn(&Running) -> bool) -> usize {
        let is_here = |running: &Running| running.who == who && which(running);
        match who {
            Who::Engine(_) => self.book().running.values().filter(|one| is_here(one)).count(),
            Who::Worker(_) => self.held(is_here).await.len(),
        }
    }

    /// Returns the running attempts of a kind in one engine.
    pub(crate) fn load_of(&self, who: Who, kind: &KindName) -> Load {
        let mut load = Load::default();
        let is_of = |one: &&Running| one.who == who && one.lane.kind == *kind;
        for running in self.book().running.values().filter(is_of) {
            *(if running.is_old { &mut load.old } else { &mut load.fresh }) += 1;
        }
        load
    }

    /// An outage of a kind begins for one engine.
    pub(crate) fn grow_old(&self, who: Who, kind: &KindName) {
        let is_of = |one: &&mut Running| one.who == who && one.lane.kind == *kind;
        self.book().running.values_mut().filter(is_of).for_each(|running| running.is_old = true);
    }

    /// Returns running attempts whose lease was not taken away.
    async fn held(&self, which: impl Fn(&Running) -> bool) -> Vec<Running> {
        let some: Vec<Running> =
            self.book().running.values().filter(|one| which(one)).cloned().collect();
        let ids: Vec<JobId> = some.iter().map(|running| running.job).collect();
        let live = self.store.live(&ids).await.expect("the store itself never fails");
        let live: BTreeMap<JobId, Job> = live.into_iter().map(|job| (job.id, job)).collect();
        let is_held = |running: &Running| {
            live.get(&running.job).is_some_and(|job| {
                let is_same = matches!(job.status, Status::Leased { holder, .. } if Some(holder) == running.holder);
                is_same && job.fence == running.fence
            })
        };
        some.into_iter().filter(is_held).collect()
    }

    fn check_most(&self, who: Who, what: &str, most: usize, count: usize) {
        if count > most {
            self.complain(format!("{count} attempts at once in {who:?}: {what} are {most}"));
        }
    }

    async fn check_concurrency(&self, who: Who, limit: &Limit) {
        let covered = |running: &Running| limit.covers(&running.lane);
        if let Some(most) = limit.concurrency_max {
            let here = self.running_in(who, covered).await;
            self.check_most(who, &format!("slots of {}", limit.of), most, here);
            self.count("starts under concurrency_max");
        }
        if let Some(most) = limit.fleet_concurrency_max {
            let all = self.held(covered).await;
            self.check_most(who, &format!("slots of {} in the fleet", limit.of), most, all.len());
            self.count("starts under fleet_concurrency_max");
        }
    }

    /// A start under a slow rate is a lease, by the store's clock.
    fn check_slow(&self, limit: &Limit, job: &Job, store_now: Timestamp) {
        let (Some(interval), Some(leased)) = (limit.interval(), leased_at(job)) else { return };
        let mut book = self.book();
        if leased > store_now || book.jumped.is_some_and(|jumped| leased <= jumped) {
            return;
        }
        let times = book.leased.entry(limit.of.clone()).or_default();
        let before = times.range(..=leased).next_back().copied();
        let after = times.range(leased..).next().copied();
        let is_close = before.is_some_and(|before| leased.since(before) < interval)
            || after.is_some_and(|after| after.since(leased) < interval);
        times.insert(leased);
        drop(book);
        if is_close {
            let of = &limit.of;
            self.complain(format!("{} of {of} started too soon: {leased:?} after {before:?} before {after:?}, not {interval:?} apart", job.id));
        }
        self.count("starts under a slow rate");
    }

    fn check_fast(&self, who: Who, limit: &Limit) {
        let (Some(most), Who::Engine(_)) = (limit.starts_max(RATE_SECONDS), who) else { return };
        let now = now();
        let mut book = self.book();
        let recent = book.recent.entry((who, limit.of.clone())).or_default();
        recent.push_back(now);
        let window = Duration::from_secs(u64::from(RATE_SECONDS));
        while recent.front().is_some_and(|first| now - *first > window) {
            recent.pop_front();
        }
        let count = recent.len();
        drop(book);
        if count > most {
            let of = &limit.of;
            self.complain(format!("{count} starts of {of} in {RATE_SECONDS} s, not {most}"));
        }
        self.count("starts under a fast rate");
    }

    fn check_pause(&self, who: Who, job: &Job, store_now: Timestamp) {
        let book = self.book();
        let Some(pause) = book.paused.get(&job.lane.kind) else { return };
        let is_late = match who {
            // The start of a suspect job is stored between the decision and the start, which may take any time.
            Who::Engine(_) if job.is_suspect() => false,
            Who::Engine(_) => {
                pause.heard.get(&who).is_some_and(|heard| now() > *heard + ON_ITS_WAY)
            }
            Who::Worker(_) => {
                leased_at(job).is_some_and(|leased| leased > pause.at_store && leased <= store_now)
            }
        };
        drop(book);
        if is_late {
            let kind = &job.lane.kind;
            self.complain(format!(
                "{} of {kind} starts in {who:?}, which knows of the pause",
                job.id
            ));
        }
    }

    /// A lease ends by its own holder, by a takeover, or at the deadline. If it is gone for another reason, a holder wrote that
    /// was not allowed to.
    pub(crate) async fn look_at_lease(&self, who: Who, mine: &Job) {
        if self.panics_of(who) > RESTARTS_MAX {
            // An engine that fails by itself gives back running jobs.
            return;
        }
        let Status::Leased { holder, .. } = mine.status else { return };
        let Ok(Some(job)) = self.store.get(mine.id).await else { return };
        let is_mine = matches!(job.status, Status::Leased { holder: now, .. } if now == holder)
            && job.fence == mine.fence;
        let is_late = job.failure.as_ref().is_some_and(|f| f.category() == Category::Deadline);
        if !is_mine && job.takeovers == mine.takeovers && !is_late {
            let (state, fence) = (job.state(), job.fence);
            self.complain(format!(
                "job {} was taken from its holder: fence {} of a lease without a takeover, now {state} with fence {fence}",
                mine.id, mine.fence
            ));
        }
    }

    /// Returns whether this attempt may submit a job: a cap does not count those.
    pub(crate) fn may_submit(&self, job: &Job) -> bool {
        let tenant = job.lane.tenant.as_ref();
        let settings = tenant.and_then(|tenant| self.fleet.tenants.get(tenant.as_str()));
        job.parent.is_none() && settings.is_none_or(|tenant| tenant.jobs_max.is_none())
    }

    /// An attempt submits a job with its result.
    pub(crate) fn submits(&self, parent: &Job, id: JobId) {
        self.count("jobs submitted by attempts");
        let (parent, fence) = (parent.id, parent.fence);
        self.book().follow_ups.insert(id, FollowUp { parent, fence, done: false });
    }

    /// The attempt that submitted a job reports a success.
    pub(crate) fn submitter_is_done(&self, id: JobId) {
        if let Some(follow_up) = self.book().follow_ups.get_mut(&id) {
            follow_up.done = true;
        }
    }

    /// Checks that a job which an attempt submitted exists exactly when the success of that attempt counted: the parent succeeded
    /// under the fence of that attempt.
    async fn check_follow_ups(&self) {
        let all = self.book().follow_ups.clone();
        for (id, FollowUp { parent, fence, done }) in all {
            let get = async |id| self.store.get(id).await.expect("the store itself never fails");
            let counted = done
                && get(parent).await.is_some_and(|parent| {
                    parent.state() == State::Succeeded && parent.fence == fence
                });
            let exists = get(id).await.is_some();
            self.count(if counted { "follow-ups that count" } else { "follow-ups that do not" });
            if exists != counted {
                self.complain(format!(
                    "job {id} was submitted by {parent} under fence {fence}: counted {counted}, exists {exists}"
                ));
            }
        }
    }

    /// An attempt gives a result, which differs from every other one.
    pub(crate) fn gives(&self, job: &Job) -> Vec<u8> {
        let mut book = self.book();
        let given = book.results.entry((job.id, job.fence)).or_default();
        let result = format!("{}-{}", job.fence, given.len()).into_bytes();
        given.push(result.clone());
        result
    }

    /// A settle was answered: if its job has a result now, this is the one that stays.
    pub(crate) async fn sees_result(&self, job: JobId) {
        let result = self.store.result(job).await.expect("the store itself never fails");
        if let Some(result) = result {
            self.book().first_results.entry(job).or_insert(result);
        }
    }

    /// Checks that a job has a result exactly when it succeeded, one of those that were given under the fence that counted, and
    /// the first one.
    async fn check_result(&self, id: JobId) {
        let job = self.store.get(id).await.expect("the store itself never fails");
        let Some(job) = job else { return };
        let stored = self.store.result(id).await.expect("the store itself never fails");
        let given = self.book().results.get(&(id, job.fence)).cloned().unwrap_or_default();
        let first = self.book().first_results.get(&id).cloned();
        let is_right = match (job.state(), &stored) {
            (State::Succeeded, Some(StoredResult::Kept(result))) => {
                self.count("results");
                given.contains(&result.body) && first.is_none_or(|first| Some(first) == stored)
            }
            (State::Succeeded, _) | (_, Some(_)) => false,
            (_, None) => true,
        };
        if !is_right {
            let (state, fence) = (job.state(), job.fence);
            self.complain(format!(
                "{id} is {state} under fence {fence}: given {given:?}, stored {stored:?}"
            ));
        }
    }

    /// Checks that every acknowledged job exists, and that no result was counted twice.
    pub(crate) async fn check_end(&self, promised: &BTreeSet<JobId>) {
        for id in promised {
            let Some(job) = self.store.get(*id).await.expect("the store itself never fails") else {
                self.complain(format!("job {id} was acknowledged, and is lost"));
                continue;
            };
            if !job.state().is_live() {
                self.tell(&format!("{id} is {} at last", job.state()));
            }
            let records = self.store.attempts(*id).await.expect("the store itself never fails");
            // An attempt whose deadline had passed when it should start is counted without being made.
            let is_unmade = |record: &&AttemptRecord| {
                let failure = record.failure();
                failure.is_some_and(|failure| failure.category() == Category::Deadline)
                    && record.duration.is_zero()
            };
            let unmade = records.iter().filter(is_unmade).count();
            let runs = self.book().runs.get(id).copied().unwrap_or(0) as usize + unmade;
            if job.attempt as usize > runs || records.len() > runs {
                let (kind, attempt) = (&job.lane.kind, job.attempt);
                self.complain(format!(
                    "{id} of {kind} ran {runs} times, counted {attempt}, recorded as {records:?}"
                ));
            }
        }
        self.check_follow_ups().await;
        self.check_payloads().await;
        for id in promised {
            self.check_result(*id).await;
        }
        let books = self.store.books().await.expect("the store itself never fails");
        if books.missing() != 0 {
            self.complain(format!("the books do not balance: {books:?}"));
        }
    }
}

/// Returns when a due job was leased, by the store's clock.
fn leased_at(job: &Job) -> Option<Timestamp> {
    let Status::Leased { overdue, .. } = job.status else { return None };
    let held = i64::try_from((ATTEMPT_TIMEOUT + GRACE).as_millis()).ok()?;
    Some(Timestamp::from_millis(overdue.as_millis() - held))
}
