//! Tests of the state transition table.

use super::{Cause, State};
use State::{Cancelled, Dead, Failed, Leased, Paused, Scheduled, Succeeded};

const CAUSES: [Cause; 10] = [
    Cause::Claim,
    Cause::Settle,
    Cause::GiveBack,
    Cause::Takeover,
    Cause::Deadline,
    Cause::Pause,
    Cause::Resume,
    Cause::Cancel,
    Cause::Retry,
    Cause::Redrive,
];

/// Every legal transition, written a second time, ordered by cause and states.
#[rustfmt::skip]
const LEGAL: &[(Cause, State, &[State])] = &[
    (Cause::Claim, Scheduled, &[Leased]),
    (Cause::Settle, Leased, &[Scheduled, Leased, Paused, Succeeded, Failed, Dead, Cancelled]),
    (Cause::GiveBack, Leased, &[Scheduled, Paused, Cancelled]),
    (Cause::Takeover, Leased, &[Scheduled, Paused, Dead, Cancelled]),
    (Cause::Deadline, Scheduled, &[Dead]),
    (Cause::Deadline, Leased, &[Dead]),
    (Cause::Deadline, Paused, &[Dead]),
    (Cause::Pause, Scheduled, &[Paused]),
    (Cause::Resume, Paused, &[Scheduled]),
    (Cause::Cancel, Scheduled, &[Cancelled]),
    (Cause::Cancel, Paused, &[Cancelled]),
    (Cause::Cancel, Dead, &[Cancelled]),
    (Cause::Retry, Scheduled, &[Scheduled]),
    (Cause::Retry, Paused, &[Scheduled]),
    (Cause::Retry, Dead, &[Scheduled]),
    (Cause::Redrive, Dead, &[Scheduled]),
];

#[test]
fn exactly_the_legal_transitions_are_allowed() {
    for cause in CAUSES {
        for from in State::ALL {
            let legal = LEGAL.iter().find(|(by, state, _)| (*by, *state) == (cause, from));
            for to in State::ALL {
                let expected = legal.is_some_and(|(_, _, ends)| ends.contains(&to));
                assert_eq!(from.may_become(to, cause), expected, "{from} to {to} by {cause:?}");
            }
        }
    }
}

#[test]
fn what_is_final_stays() {
    for state in State::ALL.into_iter().filter(|state| state.is_final()) {
        for (cause, to) in CAUSES.into_iter().flat_map(|by| State::ALL.map(|to| (by, to))) {
            assert!(!state.may_become(to, cause), "{state} became {to} by {cause:?}");
        }
    }
}

#[test]
fn every_state_is_live_dead_or_final() {
    for state in State::ALL {
        let kinds = [state.is_live(), state == Dead, state.is_final()];
        assert_eq!(kinds.into_iter().filter(|is| *is).count(), 1, "{state} is {kinds:?}");
    }
}

#[test]
fn every_state_can_be_left_or_is_an_end_that_can_be_reached() {
    for state in State::ALL.into_iter().filter(|state| *state != Scheduled) {
        let reached =
            State::ALL.iter().any(|from| CAUSES.iter().any(|cause| from.may_become(state, *cause)));
        assert!(reached, "nothing leads to {state}");
    }
    assert!([Succeeded, Failed, Cancelled].iter().all(|state| state.is_final()));
    assert!([Scheduled, Leased, Paused].iter().all(|state| state.is_live()));
}

#[test]
fn names_are_read_back() {
    for state in State::ALL {
        assert_eq!(state.to_string().parse(), Ok(state));
    }
    assert!("running".parse::<State>().unwrap_err().to_string().starts_with("`running` is not"));
}
