//! Reads the audit log. Scripts write values; the sentences are made here.

use super::super::RedisStore;
use super::super::error::unreadable;
use super::super::pack::{Args, Packed, instant, number};
use super::super::reply::Reply;
use super::super::script::AUDIT;
use super::super::values::{Values, With, read_failure, state};
use crate::audit::facts;
use crate::duplicates::{REPLACE, SUBMIT};
use rewheel_core::store::StoreResult;
use rewheel_core::{
    Actor, AuditEntry, AuditNote, Cause, Failure, Fence, HolderId, JobId, KindName, Timestamp,
    Transition, Wanted, replaced_facts,
};

/// Entries that one script reads.
const ENTRIES_MAX: usize = 500;

impl RedisStore {
    pub(in super::super) async fn audit(
        &self,
        job: Option<JobId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<AuditEntry>> {
        let (mut entries, mut before) = (Vec::new(), before);
        while entries.len() < limit {
            let most = ENTRIES_MAX.min(limit - entries.len());
            let args = Args::default()
                .maybe_bytes(job.map(JobId::to_bytes).as_ref().map(<[u8; 16]>::as_slice))
                .maybe_number(before.map(number))
                .count(most);
            let found = self.read(&AUDIT, args).await?.list()?;
            let read = found.len();
            for entry in found {
                let entry = read_entry(entry)?;
                before = Some(entry.seq);
                entries.push(entry);
            }
            if read < most {
                break;
            }
        }
        Ok(entries)
    }
}

fn read_entry(entry: Reply) -> StoreResult<AuditEntry> {
    let [place, values] = entry.parts()?;
    let place = place.text()?;
    let seq = place.split('-').next().and_then(|seq| seq.parse().ok());
    let [_, raw] = values.parts()?;
    let values = Packed::read(&raw.must()?).and_then(Packed::list);
    let made = seq.zip(values).and_then(|(seq, values)| make(seq, &values));
    made.ok_or_else(|| unreadable("an entry of the audit log"))
}

fn make(seq: u64, values: &[Packed]) -> Option<AuditEntry> {
    let at = instant(values.get(1)?.number()?);
    match values.first()?.bytes()? {
        b"N" => made_note(seq, at, values),
        b"R" => replacement(seq, at, values),
        what @ (b"T" | b"E") => fate(seq, at, values, what == b"T"),
        _ => None,
    }
}

fn job_id(value: &Packed) -> Option<JobId> {
    Some(JobId::from_bytes(value.bytes()?.try_into().ok()?))
}

fn kind(value: &Packed) -> Option<KindName> {
    KindName::parse(value.text()?).ok()
}

/// An entry that was complete when it was written.
fn made_note(seq: u64, at: Timestamp, values: &[Packed]) -> Option<AuditEntry> {
    let [_, _, who, what, job, of_kind, before, after] = values else { return None };
    Some(AuditEntry {
        seq,
        at,
        who: Actor::new(who.text()?),
        what: what.text()?.to_owned(),
        job: job_id(job),
        kind: kind(of_kind),
        before: facts(before.text()?)?,
        after: facts(after.text()?)?,
    })
}

/// A submit that replaced a job: both bodies are kept.
fn replacement(seq: u64, at: Timestamp, values: &[Packed]) -> Option<AuditEntry> {
    let [_, _, job, of_kind, old, old_big, new, new_big, submit, changed] = values else {
        return None;
    };
    let id = job_id(job)?;
    let read = |body: &Packed, big: &Packed, changed: Option<&Packed>| {
        let own = |value: &Packed| value.bytes().map(<[u8]>::to_vec);
        let (body, big, changed) = (own(body)?, own(big), changed.and_then(own));
        Values { body, big, changed, lease: None }.job(id, With::Payload).ok()
    };
    let (before, after) = (read(old, old_big, Some(changed))?, read(new, new_big, None)?);
    let (before, after) = replaced_facts(&before, &after, job_id(submit)?);
    let (who, what) = (Actor::new(SUBMIT), REPLACE.to_owned());
    Some(AuditEntry { seq, at, who, what, job: Some(id), kind: kind(of_kind), before, after })
}

/// What the engine did to a job.
fn fate(seq: u64, at: Timestamp, values: &[Packed], is_takeover: bool) -> Option<AuditEntry> {
    let [_, _, author, is_known, job, of_kind, fate] = values else { return None };
    let who = match (author, is_known) {
        (Packed::Flag(false), _) => Actor::engine(),
        (name, Packed::Flag(true)) => Actor::of_holder(name.text()?),
        (id, _) => {
            Actor::of_holder(&HolderId::from_bytes(id.bytes()?.try_into().ok()?).to_string())
        }
    };
    let fate = fate.clone().list()?;
    let [cause, from, to, holder, fence, wanted, takeovers, counted, failure] = fate.as_slice()
    else {
        return None;
    };
    let failure: Option<Failure> = match failure.bytes()? {
        [] => None,
        raw => Some(read_failure(raw).ok()?),
    };
    let transition = Transition {
        cause: match cause.bytes()? {
            b"t" => Cause::Takeover,
            b"g" => Cause::GiveBack,
            b"d" => Cause::Deadline,
            _ => Cause::Settle,
        },
        from: state(from.bytes()?).ok()?,
        to: state(to.bytes()?).ok()?,
        holder: holder.bytes().and_then(|id| id.try_into().ok()).map(HolderId::from_bytes),
        fence: Fence::new(fence.number()? as u64),
        wanted: match wanted.bytes() {
            Some(b"p") => Some(Wanted::Pause),
            Some(b"C") => Some(Wanted::Cancel),
            _ => None,
        },
        takeovers: takeovers.number()? as u32,
        takeovers_counted: counted.number()? as u32,
        failure: failure.as_ref(),
    };
    let mut notes = transition.notes();
    let AuditNote { what, before, after } =
        if is_takeover { notes.next()? } else { notes.find(|note| note.what != "takeover")? };
    let (job, kind) = (job_id(job), kind(of_kind));
    Some(AuditEntry { seq, at, who, what: what.to_owned(), job, kind, before, after })
}
