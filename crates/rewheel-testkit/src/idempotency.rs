//! The conformance suite for stores of idempotency keys.

use crate::race::all;
use crate::seconds;
use crate::threads::{at_once, in_time};
use rewheel::Random;
use rewheel::idempotency::{
    AfterCrash, Begin, Begun, Fingerprint, Finished, Idempotency, IdempotencyKey, IdempotencyStore,
    RunId, Ticket,
};
use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Expands into one named test for each case.
///
/// Takes the name of an `async fn() -> IdempotencySubject` that opens a fresh, empty store.
#[macro_export]
macro_rules! idempotency_conformance {
    ($open:ident) => {
        $crate::idempotency_conformance! { @expand $open
            one_of_many_runs,
            answers_with_what_was_stored,
            stores_any_bytes,
            refuses_a_key_that_stands_for_something_else,
            tells_keys_apart,
            frees_a_key_that_is_released,
            does_not_release_an_answer,
            asking_again_after_a_lost_answer_is_the_same_run,
            finishing_again_changes_nothing,
            a_lease_that_ran_out_is_taken_over_by_one,
            a_lease_that_ran_out_may_stay_unknown,
            a_lease_lasts_as_long_as_it_is_renewed,
            a_late_run_does_not_overwrite,
            a_late_run_that_was_not_replaced_may_finish,
            an_answer_is_kept_so_long_and_no_longer,
            a_forgotten_key_is_not_given_back_to_its_run,
            prunes_what_is_over_and_nothing_else,
            a_stranger_has_nothing,
            a_thousand_duplicates_run_once,
        }
    };
    (@expand $open:ident $($case:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                let subject = $open().await;
                $crate::idempotency::$case(&subject).await;
            }
        )+
    };
}

/// A store under test.
pub struct IdempotencySubject {
    /// The store, and the same store as another process sees it.
    pub stores: [Arc<dyn IdempotencyStore>; 2],
    advance: Box<dyn Fn(Duration) + Send + Sync>,
    random: Random,
    alive: Vec<Box<dyn Any + Send + Sync>>,
}

impl IdempotencySubject {
    /// Takes a fresh store twice, and a function that moves its clock.
    pub fn new(
        stores: [Arc<dyn IdempotencyStore>; 2],
        advance: impl Fn(Duration) + Send + Sync + 'static,
    ) -> IdempotencySubject {
        let advance = Box::new(advance);
        IdempotencySubject { stores, advance, random: Random::seeded(0x5eed), alive: Vec::new() }
    }

    /// Keeps something alive as long as the store.
    #[must_use]
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> IdempotencySubject {
        self.alive.push(Box::new(thing));
        self
    }

    fn store(&self) -> &dyn IdempotencyStore {
        &*self.stores[0]
    }

    /// A request under a key, with a lease of ten seconds and a retention of an hour.
    fn ask(&self, key: &str) -> Begin {
        Begin {
            key: IdempotencyKey::new("suite", key).unwrap(),
            fingerprint: Fingerprint::of(&[b"charge"]),
            run: RunId::new(&self.random),
            lease: seconds(10),
            keep: seconds(3_600),
            after_crash: AfterCrash::RunAgain,
        }
    }

    async fn begin(&self, ask: &Begin) -> Begun {
        self.store().begin(ask).await.unwrap()
    }

    /// Starts a run under a key.
    async fn runner(&self, key: &str) -> Ticket {
        let ask = self.ask(key);
        assert_eq!(self.begin(&ask).await, Begun::Run);
        ticket(&ask)
    }

    async fn finish(&self, ticket: &Ticket, answer: &[u8]) -> Finished {
        self.store().finish(ticket, answer).await.unwrap()
    }

    async fn renew(&self, ticket: &Ticket) -> bool {
        self.store().renew(ticket, seconds(10)).await.unwrap()
    }
}

impl fmt::Debug for IdempotencySubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencySubject").field("stores", &self.stores).finish_non_exhaustive()
    }
}

fn ticket(ask: &Begin) -> Ticket {
    Ticket { key: ask.key, run: ask.run, keep: ask.keep }
}

fn is_in_flight(begun: &Begun) -> bool {
    matches!(begun, Begun::InFlight { left } if !left.is_zero() && *left <= seconds(10))
}

async fn race(subject: &IdempotencySubject, key: &str) -> (usize, usize) {
    let begun = at_once(16, |place| {
        let (store, ask) = (Arc::clone(&subject.stores[place % 2]), subject.ask(key));
        async move { store.begin(&ask).await.unwrap() }
    });
    let begun = in_time("sixteen answers", begun).await;
    let run = begun.iter().filter(|begun| **begun == Begun::Run).count();
    (run, begun.iter().filter(|begun| is_in_flight(begun)).count())
}

/// Of sixteen concurrent requests one runs.
pub async fn one_of_many_runs(subject: &IdempotencySubject) {
    assert_eq!(race(subject, "order-17").await, (1, 15));
}

/// A repeated request gets the response, through either store.
pub async fn answers_with_what_was_stored(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    let begun = subject.begin(&subject.ask("order-17")).await;
    assert!(is_in_flight(&begun), "{begun:?}");
    assert_eq!(subject.finish(&run, b"charged").await, Finished::Stored);
    for store in &subject.stores {
        let begun = store.begin(&subject.ask("order-17")).await.unwrap();
        assert_eq!(begun, Begun::Done(b"charged".to_vec()));
    }
}

/// A response is any bytes, or none.
pub async fn stores_any_bytes(subject: &IdempotencySubject) {
    let large: Vec<u8> = (0..400_000_u32).map(|n| (n % 251) as u8).collect();
    for (key, answer) in [("none", vec![]), ("zero", vec![0, 255, 0]), ("large", large)] {
        let run = subject.runner(key).await;
        assert_eq!(subject.finish(&run, &answer).await, Finished::Stored);
        assert_eq!(subject.begin(&subject.ask(key)).await, Begun::Done(answer));
    }
}

/// A key belongs to one request, from the start.
pub async fn refuses_a_key_that_stands_for_something_else(subject: &IdempotencySubject) {
    let other = || Begin { fingerprint: Fingerprint::of(&[b"refund"]), ..subject.ask("order-17") };
    let run = subject.runner("order-17").await;
    assert_eq!(subject.begin(&other()).await, Begun::Reused, "while it runs");
    (subject.advance)(seconds(11));
    assert_eq!(subject.begin(&other()).await, Begun::Reused, "after a crash");
    subject.finish(&run, b"charged").await;
    assert_eq!(subject.begin(&other()).await, Begun::Reused, "when it is done");
}

/// Different keys and callers are independent.
pub async fn tells_keys_apart(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    subject.runner("order-18").await;
    subject.finish(&run, b"charged").await;
    let mut rival = subject.ask("order-17");
    rival.key = IdempotencyKey::new("rival", "order-17").unwrap();
    assert_eq!(subject.begin(&rival).await, Begun::Run, "the key of another caller");
}

/// A released key leaves no trace.
pub async fn frees_a_key_that_is_released(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    subject.store().release(&run).await.unwrap();
    subject.store().release(&run).await.unwrap();
    let other = Begin { fingerprint: Fingerprint::of(&[b"refund"]), ..subject.ask("order-17") };
    assert_eq!(subject.begin(&other).await, Begun::Run);
    assert_eq!(subject.finish(&run, b"late").await, Finished::Lost);
}

/// A response stays, whatever its run does next.
pub async fn does_not_release_an_answer(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    subject.finish(&run, b"charged").await;
    subject.store().release(&run).await.unwrap();
    assert!(!subject.renew(&run).await, "there is nothing to renew");
    assert_eq!(subject.begin(&subject.ask("order-17")).await, Begun::Done(b"charged".to_vec()));
}

/// A repeated request with the same id is the same run.
pub async fn asking_again_after_a_lost_answer_is_the_same_run(subject: &IdempotencySubject) {
    let ask = subject.ask("order-17");
    for _ in 0..2 {
        assert_eq!(subject.begin(&ask).await, Begun::Run);
    }
    // Even late: no other run had the key meanwhile.
    (subject.advance)(seconds(11));
    assert_eq!(subject.begin(&ask).await, Begun::Run);
    let begun = subject.begin(&subject.ask("order-17")).await;
    assert!(is_in_flight(&begun), "its lease is not from now on: {begun:?}");
}

/// The first response of a run counts.
pub async fn finishing_again_changes_nothing(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    assert_eq!(subject.finish(&run, b"first").await, Finished::Stored);
    assert_eq!(subject.finish(&run, b"second").await, Finished::Already);
    assert_eq!(subject.begin(&subject.ask("order-17")).await, Begun::Done(b"first".to_vec()));
}

/// After a crash one of the waiting requests runs again.
pub async fn a_lease_that_ran_out_is_taken_over_by_one(subject: &IdempotencySubject) {
    subject.runner("order-17").await;
    (subject.advance)(seconds(11));
    assert_eq!(race(subject, "order-17").await, (1, 15));
}

/// After a crash no request runs again, if that is not wanted.
pub async fn a_lease_that_ran_out_may_stay_unknown(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    let ask = Begin { after_crash: AfterCrash::Unknown, ..subject.ask("order-17") };
    let begun = subject.begin(&ask).await;
    assert!(is_in_flight(&begun), "{begun:?}");
    (subject.advance)(seconds(11));
    assert_eq!(subject.begin(&ask).await, Begun::Unknown);
    // The run may only have been slow.
    subject.finish(&run, b"charged").await;
    assert_eq!(subject.begin(&ask).await, Begun::Done(b"charged".to_vec()));
}

/// Work may take longer than its lease.
pub async fn a_lease_lasts_as_long_as_it_is_renewed(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    for _ in 0..4 {
        (subject.advance)(seconds(6));
        assert!(subject.renew(&run).await);
        let begun = subject.begin(&subject.ask("order-17")).await;
        assert!(is_in_flight(&begun), "{begun:?}");
    }
    (subject.advance)(seconds(11));
    assert_eq!(subject.begin(&subject.ask("order-17")).await, Begun::Run);
    assert!(!subject.renew(&run).await, "it is another's");
}

/// A run that lost its key cannot change it.
pub async fn a_late_run_does_not_overwrite(subject: &IdempotencySubject) {
    let late = subject.runner("order-17").await;
    (subject.advance)(seconds(11));
    let newer = subject.runner("order-17").await;
    assert_eq!(subject.finish(&late, b"late").await, Finished::Lost, "while the newer one runs");
    subject.store().release(&late).await.unwrap();
    let begun = subject.begin(&subject.ask("order-17")).await;
    assert!(is_in_flight(&begun), "the late one let go of it: {begun:?}");
    assert_eq!(subject.finish(&newer, b"newer").await, Finished::Stored);
    assert_eq!(subject.finish(&late, b"late").await, Finished::Lost, "after the newer one");
    subject.store().release(&late).await.unwrap();
    assert_eq!(subject.begin(&subject.ask("order-17")).await, Begun::Done(b"newer".to_vec()));
}

/// An expired lease has no effect until another run takes over.
pub async fn a_late_run_that_was_not_replaced_may_finish(subject: &IdempotencySubject) {
    let late = subject.runner("order-17").await;
    (subject.advance)(seconds(60));
    assert_eq!(subject.finish(&late, b"charged").await, Finished::Stored);
    assert_eq!(subject.begin(&subject.ask("order-17")).await, Begun::Done(b"charged".to_vec()));
}

/// A key is kept until its retention ends.
pub async fn an_answer_is_kept_so_long_and_no_longer(subject: &IdempotencySubject) {
    let run = subject.runner("order-17").await;
    (subject.advance)(seconds(5));
    subject.finish(&run, b"charged").await;
    // An hour from the response, not from the request.
    (subject.advance)(seconds(3_598));
    assert_eq!(subject.begin(&subject.ask("order-17")).await, Begun::Done(b"charged".to_vec()));
    (subject.advance)(seconds(3));
    let other = Begin { fingerprint: Fingerprint::of(&[b"refund"]), ..subject.ask("order-17") };
    assert_eq!(subject.begin(&other).await, Begun::Run);
    assert_eq!(subject.finish(&run, b"late").await, Finished::Lost);
}

/// A run does not get a forgotten key back.
pub async fn a_forgotten_key_is_not_given_back_to_its_run(subject: &IdempotencySubject) {
    let late = subject.runner("order-17").await;
    (subject.advance)(seconds(3_601));
    assert_eq!(subject.store().prune(10).await.unwrap(), 1);
    let newer = subject.runner("order-17").await;
    assert_eq!(subject.finish(&late, b"late").await, Finished::Lost);
    assert_eq!(subject.finish(&newer, b"newer").await, Finished::Stored);
}

/// Expired keys are deleted, up to a limit per call.
pub async fn prunes_what_is_over_and_nothing_else(subject: &IdempotencySubject) {
    for key in ["a", "b", "c"] {
        let run = subject.runner(key).await;
        subject.finish(&run, key.as_bytes()).await;
    }
    let crashed = Begin { keep: seconds(1), lease: seconds(7_200), ..subject.ask("crashed") };
    assert_eq!(subject.begin(&crashed).await, Begun::Run);
    (subject.advance)(seconds(1_800));
    let young = subject.runner("young").await;
    subject.finish(&young, b"young").await;
    assert_eq!(subject.store().prune(10).await.unwrap(), 0);
    (subject.advance)(seconds(1_801));
    assert_eq!(subject.store().prune(2).await.unwrap(), 2);
    assert_eq!(subject.store().prune(2).await.unwrap(), 1);
    assert_eq!(subject.store().prune(2).await.unwrap(), 0, "one is young, one is leased");
    assert_eq!(subject.begin(&subject.ask("young")).await, Begun::Done(b"young".to_vec()));
    assert!(matches!(subject.begin(&subject.ask("crashed")).await, Begun::InFlight { .. }));
    (subject.advance)(seconds(7_200));
    assert_eq!(subject.store().prune(10).await.unwrap(), 2);
}

/// A ticket that never ran can do nothing.
pub async fn a_stranger_has_nothing(subject: &IdempotencySubject) {
    let stranger = ticket(&subject.ask("order-17"));
    assert!(!subject.renew(&stranger).await);
    assert_eq!(subject.finish(&stranger, b"x").await, Finished::Lost);
    subject.store().release(&stranger).await.unwrap();
    assert_eq!(subject.begin(&subject.ask("order-17")).await, Begun::Run);
}

/// A thousand requests at once, half of them through another store, as from another process.
pub async fn a_thousand_duplicates_run_once(subject: &IdempotencySubject) {
    let nodes = subject.stores.clone().map(|store| Idempotency::new(store).wait(seconds(60)));
    let runs = AtomicU32::new(0);
    let calls = (0..1_000).map(|place: usize| {
        let (node, runs) = (&nodes[place % 2], &runs);
        let key = IdempotencyKey::new("suite", "order-17").unwrap();
        node.run(key, Fingerprint::of(&[b"charge"]), move |_| async move {
            runs.fetch_add(1, Ordering::SeqCst);
            dawdle().await;
            Ok::<_, fmt::Error>(b"charged".to_vec())
        })
    });
    let answers = all(calls).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    assert!(answers.iter().all(|answer| answer.bytes == b"charged"));
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1);
}

/// Yields often enough for all others to have asked.
async fn dawdle() {
    let mut turns = 50;
    poll_fn(|cx| {
        turns -= 1;
        if turns == 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
