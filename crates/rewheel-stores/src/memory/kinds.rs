//! Stores kinds and their settings.

use super::world::{KindRow, Note, World};
use rewheel_core::store::KindsSince;
use rewheel_core::{
    Actor, AuditFields, HolderId, Kind, KindChange, KindChanged, KindEdit, KindEditVerb,
    KindEdited, KindName, NewKind, RetryAsk, RetryPool, State, Timestamp, Version,
};

impl World {
    pub(super) fn put_kind(&mut self, new: &NewKind, by: &Actor, now: Timestamp) {
        let old = self.kinds.get(&new.name).map(|row| row.kind.clone());
        let fresh = Kind {
            name: new.name.clone(),
            settings: String::new(),
            takeovers_max: 0,
            on_dead: new.on_dead,
            paused: false,
            parked: None,
            suspects: Vec::new(),
            forced: false,
            generation: 0,
            version: Version::new(u64::try_from(now.as_millis()).unwrap_or(0)),
        };
        let mut kind = Kind {
            settings: new.settings.clone(),
            takeovers_max: new.takeovers_max,
            on_dead: new.on_dead,
            ..old.clone().unwrap_or(fresh)
        };
        if old.as_ref() == Some(&kind) {
            return;
        }
        if let Some(old) = &old {
            kind.version = old.version.next();
        }
        let note = Note {
            who: by,
            what: "put kind",
            job: None,
            kind: Some(new.name.clone()),
            before: old.as_ref().map(Kind::facts).unwrap_or_default(),
            after: kind.facts(),
        };
        self.note(note, now);
        let probe = self.kinds.get(&new.name).and_then(|row| row.probe);
        let changed = self.next_kind_change();
        self.kinds.insert(new.name.clone(), KindRow { kind, probe, changed });
        self.report.get_or_insert_default();
    }

    pub(super) fn change_kind(
        &mut self,
        name: &KindName,
        change: &KindChange,
        by: &Actor,
        now: Timestamp,
    ) -> KindChanged {
        let Some(row) = self.kinds.get(name) else { return KindChanged::NotFound };
        let old = row.kind.clone();
        let prober = old.parked.as_ref().and_then(|parked| parked.prober);
        let mut living: Vec<HolderId> = self.engines();
        living.extend(prober.into_iter().chain(change.prober()).filter(|one| self.is_alive(*one)));
        let Some(kind) = change.apply(&old, now, &living) else {
            return KindChanged::Refused(old);
        };
        if kind == old {
            return KindChanged::Applied(kind);
        }
        let probe = if kind.generation == old.generation { row.probe } else { None };
        let changed = self.next_kind_change();
        self.kinds.insert(name.clone(), KindRow { kind: kind.clone(), probe, changed });
        let note = Note {
            who: by,
            what: change.as_str(),
            job: None,
            kind: Some(name.clone()),
            before: old.doings(),
            after: kind.doings(),
        };
        self.note(note, now);
        self.report.get_or_insert_default();
        KindChanged::Applied(kind)
    }

    pub(super) fn edit_kind(&mut self, edit: &KindEdit, by: &Actor, now: Timestamp) -> KindEdited {
        let before = self.kinds.get(&edit.name).map(|row| row.kind.clone());
        if let Some(answer) = edit.refusal(before.as_ref()) {
            return answer;
        }
        match (&edit.what, before) {
            (KindEditVerb::Put { settings, takeovers_max, on_dead }, _) => {
                let (name, settings) = (edit.name.clone(), settings.clone());
                let (takeovers_max, on_dead) = (*takeovers_max, *on_dead);
                let new = NewKind { name, settings, takeovers_max, on_dead };
                self.put_kind(&new, by, now);
                let kind = self.kinds.get(&edit.name).map(|row| row.kind.clone());
                kind.map_or(KindEdited::NotFound, KindEdited::Done)
            }
            (KindEditVerb::Change(change), _) => {
                match self.change_kind(&edit.name, change, by, now) {
                    KindChanged::Applied(kind) | KindChanged::Refused(kind) => {
                        KindEdited::Done(kind)
                    }
                    KindChanged::NotFound => KindEdited::NotFound,
                }
            }
            (KindEditVerb::Delete, Some(kind)) => self.delete_kind(kind, by, now),
            (KindEditVerb::Delete, None) => KindEdited::NotFound,
        }
    }

    fn delete_kind(&mut self, kind: Kind, by: &Actor, now: Timestamp) -> KindEdited {
        let is_of_it = |job: &rewheel_core::Job| {
            job.lane.kind == kind.name
                && match job.state() {
                    State::Scheduled | State::Leased | State::Paused | State::Dead => true,
                    State::Succeeded | State::Failed | State::Cancelled => false,
                }
        };
        if self.jobs.values().any(|row| is_of_it(&row.job)) {
            return KindEdited::HasJobs(kind);
        }
        self.kinds.remove(&kind.name);
        self.budgets.remove(&kind.name);
        self.kind_changes.1 = self.next_kind_change();
        let note = Note {
            who: by,
            what: "delete kind",
            job: None,
            kind: Some(kind.name.clone()),
            before: kind.facts(),
            after: AuditFields::default(),
        };
        self.note(note, now);
        self.report.get_or_insert_default();
        KindEdited::Done(kind)
    }

    fn next_kind_change(&mut self) -> u64 {
        self.kind_changes.0 += 1;
        self.kind_changes.0
    }

    pub(super) fn kinds_since(&self, since: u64) -> KindsSince {
        let (at, deleted) = self.kind_changes;
        let all = since == 0 || since > at || deleted > since;
        let changed = self.kinds.values().filter(|row| all || row.changed > since);
        KindsSince { at, all, kinds: changed.map(|row| row.kind.clone()).collect() }
    }

    pub(super) fn grant(&mut self, ask: &RetryAsk, now: Timestamp) -> u32 {
        let pool = self.budgets.entry(ask.kind.clone()).or_insert_with(|| RetryPool::fresh(now));
        let (left, granted) = pool.grant(ask, now);
        *pool = left;
        granted
    }
}
