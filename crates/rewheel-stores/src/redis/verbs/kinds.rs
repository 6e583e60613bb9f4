//! Stores kinds and their settings.

use super::super::error::unreadable;
use super::super::pack::{Args, instant, number, time};
use super::super::reply::Reply;
use super::super::script::{CHANGE_KIND, KINDS, PUT_KINDS};
use super::super::values::{Reader, Unreadable, Writer};
use super::super::{RedisStore, TRIES_MAX, overtaken};
use super::holders::read_holders;
use crate::audit::document;
use crate::suspects;
use rewheel_core::store::{KindsSince, StoreChange, StoreResult};
use rewheel_core::{
    Actor, AuditFields, HolderId, Kind, KindChange, KindChanged, KindEdit, KindEditVerb,
    KindEdited, KindName, NewKind, OnDead, Parked, Role, Timestamp, Version,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Kinds that one script reads.
pub(super) const KINDS_READ: usize = 500;

const PAUSED: u8 = 1;
const PARKED: u8 = 2;
const BLOCKS: u8 = 4;

/// What a script did with a kind.
enum Written {
    Done,
    Again,
    Used,
}

/// A change of a stored kind.
struct Edit<'e> {
    name: &'e KindName,
    /// As it was read.
    before: Option<(&'e [u8], &'e Kind)>,
    /// `None`: it is deleted.
    after: Option<&'e Kind>,
    note: Args,
}

impl RedisStore {
    pub(in super::super) async fn put_kinds(
        &self,
        kinds: &[NewKind],
        by: &Actor,
    ) -> StoreResult<()> {
        for part in kinds.chunks(KINDS_READ) {
            // Most nodes start with kinds that are already stored.
            let names: Vec<&KindName> = part.iter().map(|new| &new.name).collect();
            let mut known: HashMap<KindName, Kind> = HashMap::new();
            for (_, kind) in self.known_kinds(&names).await?.1 {
                known.insert(kind.name.clone(), kind);
            }
            // One kind may be there twice: once it was written, the stored one is another.
            let mut written: HashSet<&KindName> = HashSet::new();
            for new in part {
                let is_stored = known.get(&new.name).is_some_and(|known| new.is_stored_as(known));
                if !is_stored || written.contains(&new.name) {
                    self.put_kind(new, by).await?;
                    written.insert(&new.name);
                }
            }
        }
        Ok(())
    }

    async fn put_kind(&self, new: &NewKind, by: &Actor) -> StoreResult<()> {
        for _ in 0..TRIES_MAX {
            let (now, known) = self.known_kind(&new.name).await?;
            if self.try_put(new, known.as_ref(), now, by).await?.is_some() {
                return Ok(());
            }
        }
        Err(overtaken())
    }

    /// Writes settings. Returns the kind; `None` if it has changed meanwhile.
    async fn try_put(
        &self,
        new: &NewKind,
        known: Option<&(Vec<u8>, Kind)>,
        now: Timestamp,
        by: &Actor,
    ) -> StoreResult<Option<Kind>> {
        let old = known.map(|(_, kind)| kind);
        let mut kind = old.cloned().unwrap_or_else(|| default_kind(new));
        match old {
            Some(old) if new.is_stored_as(old) => return Ok(Some(old.clone())),
            Some(old) => kind.version = old.version.next(),
            None => kind.version = Version::new(u64::try_from(now.as_millis()).unwrap_or(0)),
        }
        (kind.settings, kind.takeovers_max, kind.on_dead) =
            (new.settings.clone(), new.takeovers_max, new.on_dead);
        let before = old.map(Kind::facts).unwrap_or_default();
        let note = kind_note(by, "put kind", &new.name, &before, &kind.facts()).number(time(now));
        let before = known.map(|(raw, kind)| (raw.as_slice(), kind));
        let written =
            self.write_kind(Edit { name: &new.name, before, after: Some(&kind), note }).await?;
        Ok(matches!(written, Written::Done).then_some(kind))
    }

    pub(in super::super) async fn kinds(&self) -> StoreResult<Vec<Kind>> {
        Ok(self.kinds_since(0).await?.kinds)
    }

    pub(in super::super) async fn kinds_since(&self, since: u64) -> StoreResult<KindsSince> {
        let (mut found, mut after) = (BTreeMap::new(), None);
        let mut first = None;
        loop {
            let args = Args::default().number(number(since)).missing().maybe_number(after);
            let args = args.count(KINDS_READ);
            let [_, at, all, names, rows, last] = self.read(&KINDS, args).await?.parts()?;
            let (names, rows) = (names.list()?, rows.list()?);
            let is_last = names.len() < KINDS_READ;
            for (name, row) in names.into_iter().zip(rows) {
                let Some(row) = row.bytes()? else { continue };
                let kind = read_kind(name.kind()?, &row).map_err(|why| unreadable(why.0))?;
                found.insert(kind.name.clone(), kind);
            }
            after = Some(last.number()?);
            // The caller reads what changes between two parts again.
            let (at, all) = *first.get_or_insert((at.count()?, all.count()? == 1));
            if is_last {
                return Ok(KindsSince { at, all, kinds: found.into_values().collect() });
            }
        }
    }

    async fn known_kind(
        &self,
        name: &KindName,
    ) -> StoreResult<(Timestamp, Option<(Vec<u8>, Kind)>)> {
        let (now, mut known) = self.known_kinds(&[name]).await?;
        Ok((now, known.pop()))
    }

    /// Reads those of the named kinds that exist, also as they are stored; at most [`KINDS_READ`].
    async fn known_kinds(
        &self,
        names: &[&KindName],
    ) -> StoreResult<(Timestamp, Vec<(Vec<u8>, Kind)>)> {
        let list = Args::texts(names.iter().map(|name| name.as_str()));
        let args = Args::default().missing().list(list);
        let [now, _, _, _, rows, _] = self.run(&KINDS, args).await?.parts()?;
        let mut known = Vec::new();
        for (name, row) in names.iter().zip(rows.list()?) {
            let Some(row) = row.bytes()? else { continue };
            let kind = read_kind((*name).clone(), &row).map_err(|why| unreadable(why.0))?;
            known.push((row, kind));
        }
        Ok((now.time()?, known))
    }

    pub(in super::super) async fn change_kind(
        &self,
        name: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        for _ in 0..TRIES_MAX {
            let args = Args::default().bytes(name.as_str().as_bytes());
            let [now, row, holders] = self.run(&CHANGE_KIND, args).await?.parts()?;
            let Some(row) = row.bytes()? else { return Ok(KindChanged::NotFound) };
            let now = now.time()?;
            let old = read_kind(name.clone(), &row).map_err(|why| unreadable(why.0))?;
            let living = living(holders, now, &old, change)?;
            let Some(kind) = change.apply(&old, now, &living) else {
                return Ok(KindChanged::Refused(old));
            };
            if kind == old {
                return Ok(KindChanged::Applied(kind));
            }
            let note = kind_note(by, change.as_str(), name, &old.doings(), &kind.doings())
                .number(time(now));
            let edit = Edit { name, before: Some((&row, &old)), after: Some(&kind), note };
            if let Written::Done = self.write_kind(edit).await? {
                return Ok(KindChanged::Applied(kind));
            }
        }
        Err(overtaken())
    }

    pub(in super::super) async fn edit_kind(
        &self,
        edit: &KindEdit,
        by: &Actor,
    ) -> StoreResult<KindEdited> {
        for _ in 0..TRIES_MAX {
            let (now, known) = self.known_kind(&edit.name).await?;
            if let Some(answer) = edit.refusal(known.as_ref().map(|(_, kind)| kind)) {
                return Ok(answer);
            }
            match (&edit.what, known) {
                (KindEditVerb::Put { settings, takeovers_max, on_dead }, known) => {
                    let (name, settings) = (edit.name.clone(), settings.clone());
                    let new = NewKind {
                        name,
                        settings,
                        takeovers_max: *takeovers_max,
                        on_dead: *on_dead,
                    };
                    if let Some(kind) = self.try_put(&new, known.as_ref(), now, by).await? {
                        return Ok(KindEdited::Done(kind));
                    }
                }
                (KindEditVerb::Change(change), _) => {
                    if let Some(answer) = self.edit_by(edit, change, by).await? {
                        return Ok(answer);
                    }
                }
                (KindEditVerb::Delete, Some((raw, kind))) => {
                    let facts = kind.facts();
                    let note =
                        kind_note(by, "delete kind", &edit.name, &facts, &AuditFields::default());
                    let note = note.number(time(now));
                    let gone =
                        Edit { name: &edit.name, before: Some((&raw, &kind)), after: None, note };
                    match self.write_kind(gone).await? {
                        Written::Done => return Ok(KindEdited::Done(kind)),
                        Written::Used => return Ok(KindEdited::HasJobs(kind)),
                        Written::Again => {}
                    }
                }
                (KindEditVerb::Delete, None) => return Ok(KindEdited::NotFound),
            }
        }
        Err(overtaken())
    }

    /// Changes a kind for a person, if it still has the version. `None`: it has changed meanwhile.
    async fn edit_by(
        &self,
        edit: &KindEdit,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<Option<KindEdited>> {
        // A change between the check of the version and this one is found by comparing the version again.
        let args = Args::default().bytes(edit.name.as_str().as_bytes());
        let [now, row, holders] = self.run(&CHANGE_KIND, args).await?.parts()?;
        let Some(row) = row.bytes()? else { return Ok(Some(KindEdited::NotFound)) };
        let now = now.time()?;
        let old = read_kind(edit.name.clone(), &row).map_err(|why| unreadable(why.0))?;
        if let Some(answer) = edit.refusal(Some(&old)) {
            return Ok(Some(answer));
        }
        let living = living(holders, now, &old, change)?;
        let kind = match change.apply(&old, now, &living) {
            Some(kind) if kind != old => kind,
            Some(_) | None => return Ok(Some(KindEdited::Done(old))),
        };
        let note = kind_note(by, change.as_str(), &edit.name, &old.doings(), &kind.doings())
            .number(time(now));
        let written =
            Edit { name: &edit.name, before: Some((&row, &old)), after: Some(&kind), note };
        let written = self.write_kind(written).await?;
        Ok(matches!(written, Written::Done).then_some(KindEdited::Done(kind)))
    }

    async fn write_kind(&self, edit: Edit<'_>) -> StoreResult<Written> {
        let is_new_turn = match (edit.before, edit.after) {
            (Some((_, before)), Some(after)) => before.generation != after.generation,
            _ => true,
        };
        let args = Args::default()
            .bytes(&self.shared.me)
            .bytes(edit.name.as_str().as_bytes())
            .maybe_bytes(edit.before.map(|(raw, _)| raw))
            .maybe_bytes(edit.after.map(write_kind).as_deref())
            .list(edit.note)
            .flag(is_new_turn);
        let written = match self.run(&PUT_KINDS, args).await?.text()?.as_str() {
            "done" => Written::Done,
            "used" => Written::Used,
            _ => Written::Again,
        };
        if let Written::Done = written {
            self.shared.woken.wake(StoreChange::default());
        }
        Ok(written)
    }
}

/// The living engines, and the living workers that have or want the right to probe.
fn living(
    holders: Reply,
    now: Timestamp,
    old: &Kind,
    change: &KindChange,
) -> StoreResult<Vec<HolderId>> {
    let prober = old.parked.as_ref().and_then(|parked| parked.prober);
    let asked = [prober, change.prober()];
    let living = read_holders(holders, now)?.into_iter().filter(|holder| holder.died.is_none());
    let counted = living.filter(|one| one.role == Role::Engine || asked.contains(&Some(one.id)));
    Ok(counted.map(|holder| holder.id).collect())
}

/// A kind that was just created.
pub(super) fn default_kind(new: &NewKind) -> Kind {
    Kind {
        name: new.name.clone(),
        settings: new.settings.clone(),
        takeovers_max: new.takeovers_max,
        on_dead: new.on_dead,
        paused: false,
        parked: None,
        suspects: Vec::new(),
        forced: false,
        generation: 0,
        version: Version::new(0),
    }
}

/// An entry of the audit log about a kind.
pub(super) fn kind_note(
    by: &Actor,
    what: &str,
    name: &KindName,
    before: &AuditFields,
    after: &AuditFields,
) -> Args {
    Args::default()
        .bytes(by.as_str().as_bytes())
        .bytes(what.as_bytes())
        .missing()
        .bytes(name.as_str().as_bytes())
        .bytes(document(before).as_bytes())
        .bytes(document(after).as_bytes())
}

/// Writes a kind. The scripts read the first part.
pub(super) fn write_kind(kind: &Kind) -> Vec<u8> {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let flags = flag(kind.paused, PAUSED)
        | flag(kind.parked.is_some(), PARKED)
        | flag(kind.on_dead.blocks(), BLOCKS);
    let parked = kind.parked.as_ref();
    let prober = parked.and_then(|parked| parked.prober).map_or([0; 16], HolderId::to_bytes);
    let mut to = Writer::default();
    to.u8(flags).u32(kind.takeovers_max).f64(number(kind.version.get()));
    to.f64(number(kind.generation)).raw(&prober);
    let parked =
        parked.map(|parked| json!([time(parked.since), parked.until.map(time), parked.reason]));
    let rest = json!([kind.settings, parked, suspects::text(&kind.suspects), kind.forced]);
    to.raw(rest.to_string().as_bytes());
    to.done()
}

/// Reads the output of [`write_kind`].
pub(super) fn read_kind(name: KindName, raw: &[u8]) -> Result<Kind, Unreadable> {
    const WHAT: Unreadable = Unreadable("a kind");
    let mut from = Reader(raw);
    let (flags, takeovers_max) = (from.u8()?, from.u32()?);
    let (version, generation) = (Version::new(from.whole()?), from.whole()?);
    let prober = Some(from.id()?).filter(|id| *id != [0; 16]).map(HolderId::from_bytes);
    let rest: Value = serde_json::from_slice(from.0).map_err(|_| WHAT)?;
    let read_parked = |parked: &Value| {
        Some(Parked {
            since: instant(parked[0].as_f64()?),
            until: parked[1].as_f64().map(instant),
            reason: parked[2].as_str()?.to_owned(),
            prober,
        })
    };
    let parked = if rest[1].is_null() { None } else { Some(read_parked(&rest[1]).ok_or(WHAT)?) };
    Ok(Kind {
        name,
        settings: rest[0].as_str().ok_or(WHAT)?.to_owned(),
        takeovers_max,
        on_dead: OnDead::of(flags & BLOCKS != 0),
        paused: flags & PAUSED != 0,
        parked,
        suspects: suspects::read(rest[2].as_str().ok_or(WHAT)?).ok_or(WHAT)?,
        forced: rest[3].as_bool().ok_or(WHAT)?,
        generation,
        version,
    })
}
