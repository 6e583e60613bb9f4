//! Reads and writes the values of a job: its body, what changed since, and its lease. The scripts know the same layout, see
//! `lua/lib/job.lua`.

mod bytes;
mod failure;

pub(super) use self::bytes::{Reader, Writer};
pub(super) use self::failure::{read_failure, refusal as failure_refusal, write_failure};

use super::pack::{duration, instant, millis, time};
use rewheel::Backoff;
use rewheel_core::{
    DueReason, Fence, GroupKey, HolderId, Job, JobGroup, JobId, Key, KindName, Lane, NewJob,
    Priority, Shard, ShardKey, State, Status, Tenant, Timestamp, Turn, Version, Wanted,
};

/// The version of the layout.
const LAYOUT: u8 = 1;

/// Payloads up to this size are part of the body.
const INLINE_MAX: usize = 1_024;

/// Bytes before the part that the submitter's node writes: layout, flags, length, place and three times.
const HEAD: usize = 34;

const KEY: u8 = 1;
const DEADLINE: u8 = 2;
pub(super) const GROUP: u8 = 4;
const PARENT: u8 = 8;
const BIG: u8 = 16;
const TIMEOUT: u8 = 32;
const BEFORE: u8 = 64;

/// In a `mut`: the job is due as submitted.
const SAME: f64 = -9_007_199_254_740_992.0;

/// Marks of a lease.
const PAUSE: u8 = 1;
const CANCEL: u8 = 2;

/// What cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(pub(super) &'static str);

type Read<T> = Result<T, Unreadable>;

/// The letter of a state.
pub(super) const fn letter(state: State) -> &'static [u8] {
    match state {
        State::Scheduled => b"s",
        State::Leased => b"l",
        State::Paused => b"p",
        State::Dead => b"d",
        State::Succeeded => b"S",
        State::Failed => b"F",
        State::Cancelled => b"C",
    }
}

/// Reads the letter of a state.
pub(super) fn state(letter: &[u8]) -> Read<State> {
    Ok(match letter {
        b"s" => State::Scheduled,
        b"l" => State::Leased,
        b"p" => State::Paused,
        b"d" => State::Dead,
        b"S" => State::Succeeded,
        b"F" => State::Failed,
        b"C" => State::Cancelled,
        _ => return Err(Unreadable("a state")),
    })
}

/// The name of a lane: it sorts as lanes do.
pub(super) fn lane_name(lane: &Lane) -> Vec<u8> {
    let mut name = scope(&lane.kind, lane.tenant.as_ref(), b"\x01");
    name.push(0);
    name.push(lane.priority.get());
    name.extend_from_slice(&lane.shard.get().to_be_bytes());
    name
}

/// The name of a kind and a tenant together. Names contain no control characters.
pub(super) fn scope(kind: &KindName, tenant: Option<&Tenant>, mark: &[u8]) -> Vec<u8> {
    let mut name = kind.as_str().as_bytes().to_vec();
    name.push(0);
    if let Some(tenant) = tenant {
        name.extend_from_slice(mark);
        name.extend_from_slice(tenant.as_str().as_bytes());
    }
    name
}

/// Reads the name of a lane.
pub(super) fn read_lane(name: &[u8]) -> Read<Lane> {
    const WHAT: Unreadable = Unreadable("a lane");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| WHAT);
    let (names, place) = name.split_at_checked(name.len().saturating_sub(4)).ok_or(WHAT)?;
    let [0, priority, shard @ ..] = place else { return Err(WHAT) };
    let shard = u16::from_be_bytes(shard.try_into().map_err(|_| WHAT)?);
    let at = names.iter().position(|byte| *byte == 0).ok_or(WHAT)?;
    let tenant = match &names[at + 1..] {
        [] => None,
        [1, tenant @ ..] => Some(Tenant::parse(&text(tenant)?).map_err(|_| WHAT)?),
        _ => return Err(WHAT),
    };
    Ok(Lane {
        kind: KindName::parse(&text(&names[..at])?).map_err(|_| WHAT)?,
        tenant,
        priority: Priority::new(*priority).map_err(|_| WHAT)?,
        shard: Shard::stored(shard).ok_or(WHAT)?,
    })
}

/// The body of a job, in parts: a script adds the head.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) flags: u8,
    /// The length without the payload.
    pub(super) head: usize,
    pub(super) tail: Vec<u8>,
    /// A payload that is not part of the body.
    pub(super) big: Option<Vec<u8>>,
}

impl Body {
    pub(super) fn of_new(new: &NewJob) -> Body {
        Body::of(&new.to_job(Timestamp::from_millis(0)))
    }

    /// The body of a job as submitted.
    pub(super) fn of(job: &Job) -> Body {
        let mut flags = 0;
        let mut mark = |flag: u8, is_set: bool| flags |= if is_set { flag } else { 0 };
        mark(KEY, job.key.is_some());
        mark(DEADLINE, job.deadline.is_some());
        mark(GROUP, job.group.is_some());
        mark(PARENT, job.parent.is_some());
        mark(TIMEOUT, job.attempt_timeout.is_some());
        mark(BEFORE, job.attempts_before > 0);
        let mut tail = Writer::default();
        tail.short(&lane_name(&job.lane)).u32(job.attempts_before);
        if let Some(timeout) = job.attempt_timeout {
            tail.f64(millis(timeout));
        }
        if let Some(key) = &job.key {
            tail.short(key.as_str().as_bytes());
        }
        if let Some(group) = &job.group {
            tail.short(group.key.as_str().as_bytes());
        }
        if let Some(parent) = job.parent {
            tail.raw(&parent.to_bytes());
        }
        tail.maybe_u32(job.attempts_max);
        tail.maybe_text(job.backoff.map(|backoff| backoff.to_string()).as_deref());
        tail.maybe_text(job.traceparent.as_deref());
        tail.maybe_text(job.shard_key.as_ref().map(ShardKey::as_str));
        tail.maybe_f64(job.instant.map(time));
        let mut tail = tail.done();
        let head = HEAD + tail.len();
        let payload = job.payload.as_deref().unwrap_or_default();
        let is_big = payload.len() > INLINE_MAX;
        if is_big {
            flags |= BIG;
        } else {
            tail.extend_from_slice(payload);
        }
        Body { flags, head, tail, big: is_big.then(|| payload.to_vec()) }
    }

    /// The whole body of a stored job, with the head that it had: its place and its times.
    pub(super) fn whole(&self, old: &[u8], created: Timestamp, due: f64, job: &Job) -> Vec<u8> {
        let mut whole = Writer::default();
        whole.u8(LAYOUT).u8(self.flags).u16(self.head).raw(old.get(4..10).unwrap_or(&[0; 6]));
        whole.f64(time(created)).f64(due).f64(job.deadline.map_or(0.0, time));
        whole.raw(&self.tail);
        whole.done()
    }
}

/// When a job was due as submitted.
pub(super) fn due_submitted(body: &[u8]) -> f64 {
    let due = body.get(18..26).and_then(|bytes| bytes.try_into().ok());
    f64::from_be_bytes(due.unwrap_or_default())
}

/// The values of one job.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) body: Vec<u8>,
    pub(super) changed: Option<Vec<u8>>,
    pub(super) lease: Option<Vec<u8>>,
    pub(super) big: Option<Vec<u8>>,
}

/// Whether a job is read with its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    Payload,
    NoPayload,
}

impl Values {
    pub(super) fn job(&self, id: JobId, with: With) -> Read<Job> {
        let (mut job, due) = self.read_body(id, with)?;
        if let Some(changed) = &self.changed {
            read_changed(changed, due, &mut job)?;
        }
        if let Some(raw) = &self.lease {
            let lease = Lease::read(raw)?;
            (job.fence, job.version) = (lease.fence, lease.version);
            job.status = lease.status();
        }
        Ok(job)
    }

    fn read_body(&self, id: JobId, with: With) -> Read<(Job, f64)> {
        let mut from = Reader(&self.body);
        if from.u8()? != LAYOUT {
            return Err(Unreadable("a newer layout"));
        }
        let flags = from.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let head = usize::from(from.u16()?);
        from.raw(6)?;
        let (created, due, deadline) = (instant(from.f64()?), from.f64()?, instant(from.f64()?));
        let lane = read_lane(from.short()?)?;
        let attempts_before = from.u32()?;
        let timeout = if has(TIMEOUT) { Some(from.f64()?) } else { None };
        let key = if has(KEY) { Some(from.short()?) } else { None };
        let group = if has(GROUP) { Some(from.short()?) } else { None };
        let parent = if has(PARENT) { Some(from.id()?) } else { None };
        let attempts_max = from.maybe_u32()?;
        let backoff = from.maybe_text()?.map(Backoff::from_stored).transpose();
        let traceparent = from.maybe_text()?.map(str::to_owned);
        let shard_key = from.maybe_text()?.map(ShardKey::parse).transpose();
        let instant_of = from.maybe_f64()?.map(instant);
        let payload = match with {
            With::NoPayload => None,
            With::Payload if has(BIG) => Some(self.big.clone().ok_or(Unreadable("a payload"))?),
            With::Payload => self.body.get(head..).map(<[u8]>::to_vec),
        };
        let job = Job {
            id,
            lane,
            key: key
                .map(text)
                .transpose()?
                .map(Key::parse)
                .transpose()
                .map_err(|_| Unreadable("a key"))?,
            shard_key: shard_key.map_err(|_| Unreadable("a shard key"))?,
            payload,
            attempts_max,
            attempt_timeout: timeout.map(duration),
            backoff: backoff.map_err(|_| Unreadable("a backoff"))?,
            traceparent,
            parent: parent.map(JobId::from_bytes),
            instant: instant_of,
            group: group.map(group_of).transpose()?,
            created,
            deadline: has(DEADLINE).then_some(deadline),
            due: instant(due),
            because: DueReason::Submitted,
            status: Status::Scheduled,
            fence: Fence::new(0),
            version: Version::new(1),
            attempt: attempts_before,
            attempts_before,
            takeovers: 0,
            takeovers_counted: 0,
            failure: None,
        };
        Ok((job, due))
    }
}

fn text(bytes: &[u8]) -> Read<&str> {
    std::str::from_utf8(bytes).map_err(|_| Unreadable("a text"))
}

fn group_of(key: &[u8]) -> Read<JobGroup> {
    let key = GroupKey::parse(text(key)?).map_err(|_| Unreadable("a group key"))?;
    Ok(JobGroup::new(key))
}

fn read_changed(changed: &[u8], submitted: f64, job: &mut Job) -> Read<()> {
    let mut from = Reader(changed);
    let state = state(from.raw(1)?)?;
    (job.fence, job.version) = (Fence::new(from.whole()?), Version::new(from.whole()?));
    let due = from.f64()?;
    job.due = instant(if due == SAME { submitted } else { due });
    let because = usize::from(from.u8()?);
    job.because = *DueReason::ALL.get(because).ok_or(Unreadable("a due reason"))?;
    (job.attempt, job.attempts_before) = (from.u32()?, from.u32()?);
    (job.takeovers, job.takeovers_counted) = (from.u32()?, from.u32()?);
    let ended = instant(from.f64()?);
    let (blocked, turn, how) = (from.u8()? != 0, from.whole()?, from.u8()?);
    if let Some(group) = &mut job.group {
        group.blocked = blocked;
        group.turn = (turn > 0).then(|| Turn::new(turn));
    }
    // Who has let the job go, and the fence that it got if it was kept: only for scripts.
    from.raw(match how {
        0 => 0,
        1 => 32,
        _ => 24,
    })?;
    job.failure = match from.long()? {
        [] => None,
        failure => Some(read_failure(failure)?),
    };
    job.status = match state {
        State::Scheduled => Status::Scheduled,
        State::Paused => Status::Paused,
        State::Dead => Status::Dead(ended),
        State::Succeeded => Status::Succeeded(ended),
        State::Failed => Status::Failed(ended),
        State::Cancelled => Status::Cancelled(ended),
        State::Leased => return Err(Unreadable("a state")),
    };
    Ok(())
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) holder: HolderId,
    pub(super) fence: Fence,
    pub(super) version: Version,
    pub(super) leased: Timestamp,
    pub(super) overdue: Timestamp,
    pub(super) wanted: Option<Wanted>,
}

impl Lease {
    pub(super) fn read(raw: &[u8]) -> Read<Lease> {
        let mut from = Reader(raw);
        let holder = HolderId::from_bytes(from.id()?);
        let (fence, version) = (Fence::new(from.whole()?), Version::new(from.whole()?));
        let (leased, overdue) = (instant(from.f64()?), instant(from.f64()?));
        let wanted = match from.u8()? & (PAUSE | CANCEL) {
            0 => None,
            PAUSE => Some(Wanted::Pause),
            _ => Some(Wanted::Cancel),
        };
        Ok(Lease { holder, fence, version, leased, overdue, wanted })
    }

    const fn status(self) -> Status {
        Status::Leased { holder: self.holder, overdue: self.overdue, wanted: self.wanted }
    }
}

/// The marks of a lease for what a person wants.
pub(super) const fn marks(wanted: Option<Wanted>) -> u8 {
    match wanted {
        None => 0,
        Some(Wanted::Pause) => PAUSE,
        Some(Wanted::Cancel) => CANCEL,
    }
}

/// The number of a due reason.
pub(super) fn because(reason: DueReason) -> f64 {
    DueReason::ALL.iter().position(|known| *known == reason).unwrap_or(0) as f64
}
