//! The ticket for one attempt: a slot, and the rate and budget it used.

use super::Admission;
use super::answer::Suspect;
use super::kind::Evidence;
use super::machine::{Admitted, KindId};
use rewheel_core::{Failure, Tenant};
use std::sync::Arc;

/// The right to run one attempt. It ends with [`unused`](Ticket::unused), which returns rate and budget, or with
/// [`ran`](Ticket::ran), which does not. If it is dropped, for example by a panic, it frees its slot and returns nothing.
#[derive(Debug)]
pub(crate) struct Ticket {
    slot: Slot,
    evidence: Option<Evidence>,
    is_paid: bool,
}

/// A slot that is taken until the result of its attempt is durable.
#[derive(Debug)]
pub(crate) struct Slot {
    admission: Arc<Admission>,
    kind: KindId,
    outages: u64,
    tenant: Option<Tenant>,
    suspect: Suspect,
}

/// A job that is due here and waits for a slot.
#[derive(Debug)]
pub(crate) struct InHand {
    admission: Arc<Admission>,
    kind: KindId,
    tenant: Option<Tenant>,
}

impl Ticket {
    pub(super) fn new(
        admission: &Arc<Admission>,
        admitted: Admitted,
        tenant: Option<&Tenant>,
        suspect: Suspect,
    ) -> Ticket {
        let Admitted { kind, outages, evidence, is_paid } = admitted;
        let (admission, tenant) = (Arc::clone(admission), tenant.cloned());
        Ticket { slot: Slot { admission, kind, outages, tenant, suspect }, evidence, is_paid }
    }

    /// The attempt was not made: frees its slot, and returns rate and budget.
    pub(crate) fn unused(self) {
        let Slot { admission, kind, tenant, .. } = &self.slot;
        admission.machine().refund(*kind, self.is_paid, tenant.as_ref());
    }

    /// The attempt was not made, and its job is written back first: returns rate and budget at once, and frees the slot once the
    /// write is durable.
    pub(crate) fn unused_until_settled(self) -> Slot {
        let Ticket { slot, is_paid, .. } = self;
        slot.admission.machine().refund(slot.kind, is_paid, slot.tenant.as_ref());
        slot
    }

    /// The attempt begins. A first attempt earns retries for its kind.
    pub(crate) fn begins(&self, is_first: bool) {
        if !is_first {
            return;
        }
        let mut machine = self.slot.admission.machine();
        if let Some(budget) = machine.kind(self.slot.kind).and_then(|kind| kind.budget.as_mut()) {
            budget.earn();
        }
    }

    /// The attempt calls one of many targets, so it says nothing about the kind. A probe does.
    pub(crate) fn is_of_one_target(&mut self) {
        self.evidence.take_if(|evidence| matches!(evidence, Evidence::Own(_)));
    }

    /// Records what the attempt says about the dependency: that it works, that it does not, or nothing. A cancelled attempt says
    /// nothing.
    pub(crate) fn speaks(&mut self, spoke: Option<&Result<(), Failure>>, was_told_to_stop: bool) {
        let Slot { admission, kind, .. } = &self.slot;
        let failure = spoke.and_then(|spoke| spoke.as_ref().err()).map(ToString::to_string);
        let spoke = spoke.map(|_| failure.as_deref().map_or(Ok(()), Err));
        let mut machine = admission.machine();
        if spoke.is_none() && !was_told_to_stop {
            let slots = machine.slots();
            // Its dependency works.
            machine.kind(*kind).into_iter().for_each(|kind| kind.load.succeeded(slots));
        }
        if let (Some(budget), Some(spoke)) =
            (machine.kind(*kind).and_then(|kind| kind.budget.as_mut()), spoke)
        {
            budget.note(spoke.is_ok());
        }
        let is_news = machine.spoke(*kind, self.evidence.take(), spoke);
        drop(machine);
        if is_news {
            admission.parking.notify_one();
        }
    }

    /// The attempt has ended. Its slot becomes free once the result is durable.
    pub(crate) fn ran(self, has_succeeded: bool) -> Slot {
        let Ticket { slot, is_paid, .. } = self;
        if is_paid && has_succeeded {
            let mut machine = slot.admission.machine();
            if let Some(budget) = machine.kind(slot.kind).and_then(|kind| kind.budget.as_mut()) {
                budget.refund();
            }
        }
        slot
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let tenant = self.tenant.as_ref();
        self.admission.machine().end(self.kind, self.outages, tenant, self.suspect);
    }
}

impl InHand {
    pub(super) fn new(admission: &Arc<Admission>, kind: KindId, tenant: Option<&Tenant>) -> InHand {
        InHand { admission: Arc::clone(admission), kind, tenant: tenant.cloned() }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.admission.machine().unqueue(self.kind, self.tenant.as_ref());
    }
}
