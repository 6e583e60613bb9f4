//! Runs one attempt as one HTTP call.

use super::answer::{self, Answer, Judged};
use super::client::{Client, Clients};
use super::request::{Call, Now, request};
use super::settings::Callback;
use super::span;
use rewheel::{CancelToken, Category, Clock, Verdict};
use rewheel_core::{Failure, Job, KindName, Report};
use rewheel_engine::{JobContext, Reporting, Runner};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;
use tracing::Instrument as _;

/// Runs the jobs of one kind by HTTP calls.
#[derive(Clone, Debug)]
pub struct CallbackRunner {
    kind: KindName,
    callback: Arc<Callback>,
    client: Client,
}

impl CallbackRunner {
    /// Creates the runner of a kind, with the shared connections.
    ///
    /// # Errors
    /// If TLS cannot be set up on this machine.
    pub fn new(
        kind: KindName,
        callback: Callback,
        clients: &Clients,
    ) -> Result<CallbackRunner, rustls::Error> {
        let client = clients.of(callback.allow(), callback.ca())?;
        Ok(CallbackRunner { kind, callback: Arc::new(callback), client })
    }

    /// Makes one call, which takes at most `ends_in`, to the URL with index `place` among those of this attempt.
    ///
    /// Cancelling the future takes the attempt back: it is reported as not made, although the callee may have seen the request.
    pub fn call(
        &self,
        job: &Job,
        attempt: u32,
        ends_in: Duration,
        place: usize,
        cancel: &CancelToken,
    ) -> Reporting {
        let judging = self.judging(job, (attempt, ends_in), place, cancel, None);
        Box::pin(async move { judging.await.report })
    }

    /// Makes one call, and keeps a response body of at most `keep` bytes.
    fn judging(
        &self,
        job: &Job,
        (attempt, ends_in): (u32, Duration),
        place: usize,
        cancel: &CancelToken,
        keep: Option<usize>,
    ) -> Pin<Box<dyn Future<Output = Judged> + Send>> {
        debug_assert_eq!(job.lane.kind, self.kind, "the runner got a job of another kind");
        let at = wall_clock();
        let now = Now { attempt, at };
        let call = match self.callback.urls.in_turn(job).get(place) {
            Some(url) => request(&self.callback, url, job, now),
            None => Err(Failure::new(Category::Unknown, None, "no such callback url")),
        };
        let mut call = match call {
            Ok(call) => call,
            Err(failure) => {
                let report = Report::AttemptFailed { verdict: Verdict::Stop, failure };
                return Box::pin(std::future::ready(report.into()));
            }
        };
        let (client, callback) = (self.client.clone(), Arc::clone(&self.callback));
        let span = span::begin(&mut call, attempt);
        let inside = span.clone();
        let Call { url, request } = call;
        let call = async move {
            let clock = Clock::system();
            let started = clock.now();
            let unanswered = |report: Report| {
                span::unanswered(&span, &report);
                Judged::from(report)
            };
            match timeout(ends_in, client.call(request)).await {
                Ok(Ok(response)) => {
                    span::answered(&span, response.status());
                    let left = ends_in.saturating_sub(clock.now().since(started));
                    answer::judge(&callback, response, &url, (at, left), keep).await
                }
                Ok(Err(error)) => unanswered(answer::judge_error(&callback, &error, &url)),
                Err(_) => unanswered(answer::none_within(ends_in, &url)),
            }
        }
        .instrument(inside);
        let cancelled = cancel.cancelled();
        Box::pin(async move {
            tokio::select! {
                biased;
                judged = call => judged,
                () = cancelled => Report::Snooze(Duration::ZERO).into(),
            }
        })
    }
}

impl Runner for CallbackRunner {
    fn run(&self, context: JobContext) -> Reporting {
        let limits = (context.attempt(), context.ends_in());
        let keep = context.result_bytes_max();
        let judging = self.judging(context.job(), limits, context.target(), context.cancel(), keep);
        Box::pin(async move {
            let Judged { report, answer } = judging.await;
            if let Some(Answer { status, result }) = answer {
                context.set_code(status.as_str());
                match result {
                    Some(Ok(result)) => context.give_result(result),
                    Some(Err(why)) => context.drop_result(&why),
                    None => {}
                }
            }
            report
        })
    }

    fn host(&self) -> Option<String> {
        self.callback.urls.only_host()
    }

    fn targets(&self, job: &Job) -> Vec<String> {
        self.callback.urls.targets(job)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the called service compares the timestamp with its own clock"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
