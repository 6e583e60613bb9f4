//! What an attempt gives besides its report: a result and a code.

use crate::runner::{IntoReport, JobContext};
use crate::shared::lock;
use rewheel_core::{
    ContentType, ContentTypeError, Decision, DropReason, GivenResult, JobResult, Report,
    SuccessCode,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// The output of one attempt so far.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` if the kind keeps no results.
    bytes_max: Option<usize>,
    given: Mutex<Given>,
}

/// What an attempt that succeeds leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) result: Option<GivenResult>,
    pub(crate) code: Option<SuccessCode>,
}

impl Output {
    pub(crate) fn new(bytes_max: Option<usize>) -> Output {
        Output { bytes_max, given: Mutex::default() }
    }

    /// Converts what a handler returned, and keeps its result.
    pub(crate) fn report<M>(&self, said: impl IntoReport<M>) -> Report {
        if self.bytes_max.is_some() {
            // The attempt is over: a value that cannot be written must not fail it.
            match catch_unwind(AssertUnwindSafe(|| said.to_json())) {
                Ok(None) => {}
                Ok(Some(Ok(body))) => {
                    self.set(JobResult { content_type: ContentType::json(), body });
                }
                Ok(Some(Err(why))) => {
                    self.drop_result(&format!("it cannot be written as JSON: {why}"))
                }
                Err(_) => self.drop_result("writing it as JSON panicked"),
            }
        }
        said.into_report()
    }

    fn set(&self, result: JobResult) {
        if let Some(bytes_max) = self.bytes_max {
            lock(&self.given).result = Some(GivenResult::within(result, bytes_max));
        }
    }

    fn drop_result(&self, why: &str) {
        lock(&self.given).result = Some(GivenResult::Dropped(DropReason::new(why)));
    }

    /// Ends the attempt. Returns nothing unless it succeeded: an attempt that failed may have set anything.
    pub(crate) fn end(&self, report: &Report, decision: &Decision) -> Given {
        let given = std::mem::take(&mut *lock(&self.given));
        if is_success(report, decision) { given } else { Given::default() }
    }
}

/// Returns whether a result and a code count.
pub(crate) fn is_success(report: &Report, decision: &Decision) -> bool {
    matches!(report, Report::Done) && *decision == Decision::Succeed
}

impl JobContext {
    /// Returns the size of the largest result that is kept; `None` if the kind keeps no results. A larger one is dropped, and the
    /// job succeeds without it.
    pub fn result_bytes_max(&self) -> Option<usize> {
        self.output().bytes_max
    }

    /// Sets the result of the job, for a handler whose result is not JSON. It is kept if this attempt succeeds and the kind keeps
    /// results ([`KindSettings::result`](crate::KindSettings::result)). A value that the handler returns replaces it.
    ///
    /// ```
    /// use rewheel_engine::{Engine, JobContext, KindSettings, Report};
    /// use rewheel::seconds;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .kind("export", KindSettings { result: true, ..KindSettings::default() })
    ///     .raw_handler("export", |ctx: JobContext| async move {
    ///         ctx.set_result("text/csv", b"order,cents\n17,4200\n".to_vec())?;
    ///         Ok::<(), Report>(())
    ///     })
    ///     .start()
    ///     .await?;
    /// let job = engine.submit_raw("export", Vec::new()).await?;
    /// let export = job.result_bytes(seconds(30)).await?;
    /// assert_eq!(export.content_type.as_str(), "text/csv");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the content type is not a media type.
    pub fn set_result(&self, content_type: &str, body: Vec<u8>) -> Result<(), SetResultError> {
        let content_type = ContentType::parse(content_type).map_err(SetResultError)?;
        self.give_result(JobResult { content_type, body });
        Ok(())
    }

    /// Sets the result of the job, like [`JobContext::set_result`].
    pub fn give_result(&self, result: JobResult) {
        self.output().set(result);
    }

    /// Says why the result is not kept: it becomes `result_dropped` of the job, which still succeeds.
    pub fn drop_result(&self, why: &str) {
        if self.result_bytes_max().is_some() {
            self.output().drop_result(why);
        }
    }

    /// Sets the code of the attempt, such as an HTTP status. It is kept with the record of the attempt if it succeeds; the code of
    /// a failure is part of its report.
    pub fn set_code(&self, code: &str) {
        lock(&self.output().given).code = SuccessCode::new(code);
    }
}

/// Error: the content type of a result is not a media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("content_type {0}")]
pub struct SetResultError(ContentTypeError);

impl rewheel::Classify for SetResultError {
    fn classify(&self) -> rewheel::Class {
        // A repetition would fail in the same way.
        rewheel::Class::stop(rewheel::Category::Rejected)
    }
}
