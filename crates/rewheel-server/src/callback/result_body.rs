//! Reads the body of a response that is the result of a job.

use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body as _, Incoming};
use hyper::header::CONTENT_TYPE;
use rewheel::duration;
use rewheel_core::{ContentType, GivenResult, JobResult};
use std::time::Duration;

/// Reads a body of at most `bytes_max`, or says why it cannot be kept: the call succeeded in any case. `None` if it is empty.
pub(super) async fn read(
    response: &mut Response<Incoming>,
    most: Duration,
    bytes_max: usize,
) -> Option<Result<JobResult, String>> {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    // A callee may send anything: bytes of an unknown type are the safe choice.
    let content_type = header.and_then(|text| ContentType::parse(text).ok());
    let content_type = content_type.unwrap_or_else(ContentType::bytes);
    let body = match tokio::time::timeout(most, read_all(response.body_mut(), bytes_max)).await {
        Ok(Ok(body)) => body,
        Ok(Err(why)) => return Some(Err(why)),
        Err(_) => {
            let most = duration::text(most);
            return Some(Err(format!("the body of the response was not complete after {most}")));
        }
    };
    if body.is_empty() {
        return None;
    }
    Some(Ok(JobResult { content_type, body }))
}

async fn read_all(body: &mut Incoming, bytes_max: usize) -> Result<Vec<u8>, String> {
    // The callee may announce the size: then nothing of a body that is too large is read.
    if let Some(bytes) = body.size_hint().exact().filter(|bytes| *bytes > bytes_max as u64) {
        return Err(GivenResult::too_large(bytes, bytes_max));
    }
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| format!("the body of the response ended early: {error}"))?;
        let Ok(chunk) = frame.into_data() else { continue };
        if read.len() + chunk.len() > bytes_max {
            return Err(format!("the result has more than {bytes_max} bytes, which is the limit"));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read)
}
