//! Checks that a service hands over the requests that it gives up.

use super::scripted::{Answer, Script, retrying};
use super::{ErrorKind, GiveUpReason, Layer, ManualClock, Service, ServiceExt, io};
use rewheel::{FailedCall, Spill, SpillOutcome};
use std::sync::{Arc, Mutex};

/// Takes every job over, or none.
#[derive(Clone, Default)]
pub(super) struct Later {
    is_down: bool,
    pub(super) taken: Arc<Mutex<Vec<(String, u32)>>>,
}

impl Spill<String> for Later {
    type Receipt = usize;
    type Error = io::Error;

    async fn spill(&self, job: String, failed: FailedCall) -> io::Result<usize> {
        tokio::task::yield_now().await;
        if self.is_down {
            return Err(ErrorKind::StorageFull.into());
        }
        let mut taken = self.taken.lock().unwrap();
        taken.push((job, failed.attempts));
        Ok(taken.len())
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_is_handed_over_with_its_attempts() {
    let (clock, later) = (ManualClock::new(), Later::default());
    let layer = retrying(&clock, 2).layer().or_spill_to(later.clone(), |n| format!("request {n}"));
    let script = Script::answers([super::reset(), super::reset(), Answer::Ok(200)]);
    let mut service = layer.layer(script.service());

    let response = service.ready().await.unwrap().call(7);
    assert!(matches!(clock.drive(response).await, Ok(SpillOutcome::Spilled(1))));
    assert_eq!(*later.taken.lock().unwrap(), [("request 7".to_owned(), 2)]);

    let response = service.ready().await.unwrap().call(8);
    assert!(matches!(clock.drive(response).await, Ok(SpillOutcome::Done(200))));
    assert_eq!(later.taken.lock().unwrap().len(), 1, "a request that succeeded was handed over");
}

#[tokio::test]
async fn a_request_that_cannot_be_handed_over_says_both_reasons() {
    let clock = ManualClock::new();
    let down = Later { is_down: true, ..Later::default() };
    let layer = retrying(&clock, 2).layer().or_spill_to(down, |n| format!("request {n}"));
    let mut service = layer.layer(Script::answers([super::reset(), super::reset()]).service());

    let response = service.ready().await.unwrap().call(7);
    let error = clock.drive(response).await.unwrap_err();

    assert_eq!((error.call.reason(), error.call.attempts()), (GiveUpReason::AttemptsExhausted, 2));
    assert_eq!(error.spill.map(|spill| spill.kind()), Some(ErrorKind::StorageFull));
}
