//! Knows the kinds.

use super::world::{KindRow, Note, World};
use rewheel_core::{
    Actor, HolderId, Kind, KindChange, KindChanged, KindName, NewKind, RetryAsk, RetryPool,
    Timestamp,
};

impl World {
    pub(super) fn put_kind(&mut self, new: &NewKind, by: &Actor, now: Timestamp) {
        let old = self.kinds.get(&new.name).map(|row| row.kind.clone());
        let fresh = Kind {
            name: new.name.clone(),
            settings: String::new(),
            takeovers_max: 0,
            paused: false,
            parked: None,
            suspects: Vec::new(),
            forced: false,
            generation: 0,
        };
        let kind = Kind {
            settings: new.settings.clone(),
            takeovers_max: new.takeovers_max,
            ..old.clone().unwrap_or(fresh)
        };
        if old.as_ref() == Some(&kind) {
            return;
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
        self.kinds.insert(new.name.clone(), KindRow { kind, probe });
        self.is_reason_to_look = true;
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
        let living: Vec<HolderId> = self.engines();
        let Some(kind) = change.apply(&old, now, &living) else {
            return KindChanged::Refused(old);
        };
        if kind == old {
            return KindChanged::Applied(kind);
        }
        let probe = if kind.generation == old.generation { row.probe } else { None };
        self.kinds.insert(name.clone(), KindRow { kind: kind.clone(), probe });
        let note = Note {
            who: by,
            what: change.as_str(),
            job: None,
            kind: Some(name.clone()),
            before: old.doings(),
            after: kind.doings(),
        };
        self.note(note, now);
        self.is_reason_to_look = true;
        KindChanged::Applied(kind)
    }

    pub(super) fn grant(&mut self, ask: &RetryAsk, now: Timestamp) -> u32 {
        let pool = self.budgets.entry(ask.kind.clone()).or_insert_with(|| RetryPool::fresh(now));
        let (left, granted) = pool.grant(ask, now);
        *pool = left;
        granted
    }
}
