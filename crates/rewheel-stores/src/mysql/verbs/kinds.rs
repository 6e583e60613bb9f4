//! Stores kinds and their settings.

use super::super::error::{VerbError, unreadable};
use super::super::row::{bytes, count, get, id16, instant, maybe_bytes, unsigned};
use super::super::statement::parts;
use super::super::transaction::Transaction;
use super::audit::{Auditor, Line, audit};
use crate::suspects;
use mysql_async::{Row, Value};
use rewheel_core::store::{KindsSince, StoreError};
use rewheel_core::{
    Actor, AuditFields, HolderId, Kind, KindChange, KindChanged, KindEdit, KindEditVerb,
    KindEdited, KindName, Limits, NewKind, OnDead, Parked, Timestamp, Version,
};
use std::collections::{BTreeMap, HashMap};

/// Kinds that one statement writes.
const ROWS_MAX: usize = 512;

/// Bytes of settings that one statement writes: a fraction of the smallest `max_allowed_packet` that servers have by default.
const BYTES_MAX: usize = 1024 * 1024;

pub(in super::super) async fn put_kinds(
    tx: &mut Transaction<'_>,
    kinds: &[NewKind],
    by: &Actor,
) -> Result<(), VerbError> {
    if let Some(long) = kinds.iter().find(|kind| kind.settings.len() > Limits::SETTINGS_BYTES_MAX) {
        let what = format!("the settings of kind {} are too long", long.name);
        return Err(StoreError::Rejected(what.into()).into());
    }
    // Of several with one name the last wins.
    let mut named: BTreeMap<&KindName, &NewKind> =
        kinds.iter().map(|kind| (&kind.name, kind)).collect();
    // Most nodes start with kinds that are already stored: those need no lock.
    for known in self::kinds(tx).await? {
        if named.get(&known.name).is_some_and(|kind| kind.is_stored_as(&known)) {
            named.remove(&known.name);
        }
    }
    if named.is_empty() {
        return Ok(());
    }
    let mut change = lock_changes(tx).await?;
    let names: Vec<&KindName> = named.keys().copied().collect();
    let known = lock_all(tx, &names).await?;
    let known: HashMap<&KindName, &Kind> = known.iter().map(|kind| (&kind.name, kind)).collect();
    // Others may have written them meanwhile.
    named.retain(|name, kind| !known.get(name).is_some_and(|known| kind.is_stored_as(known)));
    if named.is_empty() {
        return Ok(());
    }
    let (mut rows, mut names_new, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    let mut auditor = Auditor::of(by);
    for (name, kind) in named {
        change = change.saturating_add(1);
        rows.push(values(tx, kind, change));
        sizes.push(kind.settings.len());
        let known = known.get(name);
        if known.is_none() {
            names_new.push(vec![name.as_str().into()]);
        }
        let before = known.map_or_else(AuditFields::default, |known| known.facts());
        let (what, kind, after) = ("put kind", Some(name), kind.facts());
        auditor.add(tx, by, &Line { what, job: None, kind, before, after });
    }
    write_change(tx, change, Deletes::No).await?;
    insert(tx, include_str!("../sql/put_kind.sql"), rows, &sizes).await?;
    let sizes = vec![0; names_new.len()];
    insert(tx, include_str!("../sql/insert_kind_name.sql"), names_new, &sizes).await?;
    auditor.write(tx).await?;
    tx.report.get_or_insert_default();
    Ok(())
}

fn values(tx: &Transaction<'_>, kind: &NewKind, change: i64) -> Vec<Value> {
    vec![
        kind.name.as_str().into(),
        kind.settings.as_str().into(),
        kind.takeovers_max.into(),
        tx.now.as_millis().into(),
        change.into(),
        kind.on_dead.blocks().into(),
    ]
}

/// Inserts rows of these sizes, many with one statement.
async fn insert(
    tx: &mut Transaction<'_>,
    sql: &'static str,
    rows: Vec<Vec<Value>>,
    sizes: &[usize],
) -> Result<(), VerbError> {
    let mut rows = rows.into_iter();
    for size in parts(sizes, ROWS_MAX, BYTES_MAX) {
        let values = rows.by_ref().take(size).flatten().collect();
        tx.insert_rows(sql, size, values).await?;
    }
    Ok(())
}

pub(in super::super) async fn kinds(tx: &mut Transaction<'_>) -> Result<Vec<Kind>, VerbError> {
    let rows = tx.rows(include_str!("../sql/kinds.sql"), Vec::new()).await?;
    rows.iter().map(read_kind).collect()
}

pub(in super::super) async fn kinds_since(
    tx: &mut Transaction<'_>,
    since: u64,
) -> Result<KindsSince, VerbError> {
    let row = tx.find(include_str!("../sql/kind_changes.sql"), Vec::new()).await?;
    let row = row.ok_or_else(|| unreadable("the change counter of the kinds"))?;
    let (at, deleted) = (unsigned(get(&row, 0)?), unsigned(get(&row, 1)?));
    // Read after `at`: a change in between is read again next time.
    if since == 0 || since > at || deleted > since {
        return Ok(KindsSince { at, all: true, kinds: kinds(tx).await? });
    }
    let rows = tx.rows(include_str!("../sql/kinds_since.sql"), vec![count(since)]).await?;
    let mut kinds = rows.iter().map(read_kind).collect::<Result<Vec<Kind>, _>>()?;
    kinds.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(KindsSince { at, all: false, kinds })
}

/// Waits for other changes of kinds. The lock ends with the transaction, so that numbers of changes become visible in their order.
async fn lock_changes(tx: &mut Transaction<'_>) -> Result<i64, VerbError> {
    let row = tx.find(include_str!("../sql/lock_kind_changes.sql"), Vec::new()).await?;
    get(&row.ok_or_else(|| unreadable("the change counter of the kinds"))?, 0)
}

/// Whether a change deletes its kind.
enum Deletes {
    No,
    Yes,
}

/// Returns the number of the change that this transaction makes.
async fn next_change(tx: &mut Transaction<'_>, deletes: Deletes) -> Result<i64, VerbError> {
    let change = lock_changes(tx).await?.saturating_add(1);
    write_change(tx, change, deletes).await?;
    Ok(change)
}

/// Writes the number of the latest change, under the lock of all changes.
async fn write_change(
    tx: &mut Transaction<'_>,
    change: i64,
    deletes: Deletes,
) -> Result<(), VerbError> {
    let deleted = match deletes {
        Deletes::No => None,
        Deletes::Yes => Some(change),
    };
    let values = vec![change.into(), deleted.into()];
    tx.execute(include_str!("../sql/next_kind_change.sql"), values).await.map(drop)
}

/// Reads a kind.
pub(super) async fn get_kind(
    tx: &mut Transaction<'_>,
    name: &KindName,
) -> Result<Option<Kind>, VerbError> {
    let row = tx.find(include_str!("../sql/get_kind.sql"), vec![name.as_str().into()]).await?;
    row.as_ref().map(read_kind).transpose()
}

/// Reads a kind, and locks it against other changes and new jobs.
async fn lock(tx: &mut Transaction<'_>, name: &KindName) -> Result<Option<Kind>, VerbError> {
    Ok(lock_all(tx, &[name]).await?.pop())
}

/// Reads those of these kinds that exist, and locks them.
async fn lock_all(tx: &mut Transaction<'_>, names: &[&KindName]) -> Result<Vec<Kind>, VerbError> {
    let list: Vec<Value> = names.iter().map(|name| name.as_str().into()).collect();
    let rows = tx.run_list(include_str!("../sql/lock_kind.sql"), &[], &list, &[]).await?.rows;
    rows.iter().map(read_kind).collect()
}

async fn living(
    tx: &mut Transaction<'_>,
    named: [Option<HolderId>; 2],
) -> Result<Vec<HolderId>, VerbError> {
    let id = |holder: Option<HolderId>| holder.map(|holder| id16(holder.to_bytes())).into();
    let rows = tx.rows(include_str!("../sql/living.sql"), named.map(id).to_vec()).await?;
    rows.iter().map(|row| bytes(row, 0).map(HolderId::from_bytes)).collect()
}

pub(in super::super) async fn change_kind(
    tx: &mut Transaction<'_>,
    name: &KindName,
    change: &KindChange,
    by: &Actor,
) -> Result<KindChanged, VerbError> {
    lock_changes(tx).await?;
    let Some(before) = lock(tx, name).await? else {
        return Ok(KindChanged::NotFound);
    };
    let prober = before.parked.as_ref().and_then(|parked| parked.prober);
    let living = living(tx, [prober, change.prober()]).await?;
    let Some(after) = change.apply(&before, tx.now, &living) else {
        return Ok(KindChanged::Refused(before));
    };
    if after == before {
        return Ok(KindChanged::Applied(before));
    }
    write(tx, &after).await?;
    let (what, kind) = (change.as_str(), Some(name));
    let line = Line { what, job: None, kind, before: before.doings(), after: after.doings() };
    audit(tx, by, line).await?;
    tx.report.get_or_insert_default();
    Ok(KindChanged::Applied(after))
}

/// Writes what a change of a kind may change.
async fn write(tx: &mut Transaction<'_>, after: &Kind) -> Result<(), VerbError> {
    let change = next_change(tx, Deletes::No).await?;
    let parked = after.parked.as_ref();
    let prober = parked.and_then(|parked| parked.prober);
    let values = vec![
        count(after.generation),
        after.paused.into(),
        parked.map(|parked| parked.since.as_millis()).into(),
        parked.map(|parked| parked.reason.as_str()).into(),
        prober.map(|holder| id16(holder.to_bytes())).into(),
        count(after.generation),
        suspects::text(&after.suspects).into(),
        after.forced.into(),
        count(after.version.get()),
        change.into(),
        parked.and_then(|parked| parked.until).map(Timestamp::as_millis).into(),
        after.name.as_str().into(),
    ];
    tx.execute(include_str!("../sql/change_kind.sql"), values).await.map(drop)
}

pub(in super::super) async fn edit_kind(
    tx: &mut Transaction<'_>,
    edit: &KindEdit,
    by: &Actor,
) -> Result<KindEdited, VerbError> {
    lock_changes(tx).await?;
    let before = lock(tx, &edit.name).await?;
    if let Some(answer) = edit.refusal(before.as_ref()) {
        return Ok(answer);
    }
    match (&edit.what, before) {
        (KindEditVerb::Put { settings, takeovers_max, on_dead }, _) => {
            let (name, settings) = (edit.name.clone(), settings.clone());
            let (takeovers_max, on_dead) = (*takeovers_max, *on_dead);
            let new = NewKind { name, settings, takeovers_max, on_dead };
            put_kinds(tx, &[new], by).await?;
            let kind = lock(tx, &edit.name).await?;
            Ok(kind.map_or(KindEdited::NotFound, KindEdited::Done))
        }
        (KindEditVerb::Change(change), _) => {
            Ok(match change_kind(tx, &edit.name, change, by).await? {
                KindChanged::Applied(kind) | KindChanged::Refused(kind) => KindEdited::Done(kind),
                KindChanged::NotFound => KindEdited::NotFound,
            })
        }
        (KindEditVerb::Delete, Some(kind)) => delete_kind(tx, kind, by).await,
        (KindEditVerb::Delete, None) => Ok(KindEdited::NotFound),
    }
}

/// Deletes a locked kind. An insert locks its kinds too: those in progress have ended, and a later one finds that the kind is gone.
async fn delete_kind(
    tx: &mut Transaction<'_>,
    kind: Kind,
    by: &Actor,
) -> Result<KindEdited, VerbError> {
    let name = kind.name.as_str();
    // First: it waits for users' transactions that are submitting jobs of the kind.
    tx.execute(include_str!("../sql/delete_kind_name.sql"), vec![name.into()]).await?;
    let used = tx.find(include_str!("../sql/kind_is_used.sql"), vec![name.into(); 3]).await?;
    if used.is_some() {
        let sql = include_str!("../sql/insert_kind_name.sql");
        tx.insert_rows(sql, 1, vec![name.into()]).await?;
        return Ok(KindEdited::HasJobs(kind));
    }
    next_change(tx, Deletes::Yes).await?;
    tx.execute(include_str!("../sql/delete_kind.sql"), vec![name.into()]).await?;
    tx.execute(include_str!("../sql/delete_budget.sql"), vec![name.into()]).await?;
    let (before, after) = (kind.facts(), AuditFields::default());
    let (what, name) = ("delete kind", Some(&kind.name));
    audit(tx, by, Line { what, job: None, kind: name, before, after }).await?;
    tx.report.get_or_insert_default();
    Ok(KindEdited::Done(kind))
}

fn read_kind(row: &Row) -> Result<Kind, VerbError> {
    let parked = match get::<Option<i64>>(row, 4)? {
        None => None,
        Some(since) => Some(Parked {
            since: instant(since),
            until: get::<Option<i64>>(row, 11)?.map(instant),
            reason: get::<Option<String>>(row, 5)?.unwrap_or_default(),
            prober: maybe_bytes(row, 6)?.map(HolderId::from_bytes),
        }),
    };
    Ok(Kind {
        name: KindName::parse(&get::<String>(row, 0)?).map_err(|_| unreadable("a kind"))?,
        settings: get(row, 1)?,
        takeovers_max: get(row, 2)?,
        on_dead: OnDead::of(get(row, 12)?),
        paused: get(row, 3)?,
        parked,
        generation: unsigned(get(row, 7)?),
        suspects: suspects::read(&get::<String>(row, 8)?)
            .ok_or_else(|| unreadable("the id of a holder that reported a kind as down"))?,
        forced: get(row, 9)?,
        version: Version::new(unsigned(get(row, 10)?)),
    })
}
