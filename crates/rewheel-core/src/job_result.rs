//! What a successful attempt leaves behind: its result and its code.

use crate::failure::clean;
use crate::limits::Limits;
use std::fmt;

/// The media type of a result, such as `application/json`. Printable ASCII, so that it is safe in a header and in a terminal.
///
/// ```
/// use rewheel_core::ContentType;
///
/// assert_eq!(ContentType::parse("text/csv; charset=utf-8")?.as_str(), "text/csv; charset=utf-8");
/// assert!(ContentType::parse("text/html\r\nset-cookie: a=b").is_err());
/// assert!(ContentType::parse("json").is_err());
/// # Ok::<(), rewheel_core::ContentTypeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentType(String);

/// Error: a text is not a media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a media type such as application/json, with at most {} printable ASCII characters",
    Limits::CONTENT_TYPE_BYTES_MAX
)]
pub struct ContentTypeError;

impl ContentType {
    /// Parses a media type, with or without parameters.
    ///
    /// # Errors
    /// If it is too long, has no type and subtype, or contains other characters than printable ASCII.
    pub fn parse(text: &str) -> Result<ContentType, ContentTypeError> {
        let name = text.split(';').next().unwrap_or_default().trim_end();
        let is_token = |part: &str| !part.is_empty() && part.bytes().all(is_token_byte);
        let is_name =
            name.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
        let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !is_name || !is_printable || text.len() > Limits::CONTENT_TYPE_BYTES_MAX {
            return Err(ContentTypeError);
        }
        Ok(ContentType(text.to_owned()))
    }

    /// Returns `application/json`.
    pub fn json() -> ContentType {
        ContentType("application/json".to_owned())
    }

    /// Returns `application/octet-stream`: bytes of an unknown type.
    pub fn bytes() -> ContentType {
        ContentType("application/octet-stream".to_owned())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is JSON: `application/json`, or a type that ends in `+json`.
    pub fn is_json(&self) -> bool {
        let name = self.0.split(';').next().unwrap_or_default().trim_end().to_ascii_lowercase();
        name == "application/json" || name.ends_with("+json")
    }
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The characters of a token, by RFC 9110.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The result of a job: bytes with a content type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// Their type.
    pub content_type: ContentType,
    /// The bytes.
    pub body: Vec<u8>,
}

/// What a settlement says about the result of a job. A result that cannot be kept never refuses the settlement: the job succeeds,
/// and the reason is stored instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenResult {
    /// Keep it.
    Kept(JobResult),
    /// It is not kept.
    Dropped(DropReason),
}

impl GivenResult {
    /// Keeps a result of at most `bytes_max`.
    ///
    /// ```
    /// use rewheel_core::{ContentType, GivenResult, JobResult};
    ///
    /// let large = JobResult { content_type: ContentType::json(), body: vec![b' '; 9] };
    /// let GivenResult::Dropped(why) = GivenResult::within(large, 8) else { panic!("kept") };
    /// assert_eq!(why.as_str(), "the result has 9 bytes; the limit is 8");
    /// ```
    pub fn within(result: JobResult, bytes_max: usize) -> GivenResult {
        let bytes = result.body.len();
        if bytes > bytes_max {
            return GivenResult::Dropped(DropReason::new(&GivenResult::too_large(
                bytes as u64,
                bytes_max,
            )));
        }
        GivenResult::Kept(result)
    }

    /// Returns the reason to drop a result of this size.
    pub fn too_large(bytes: u64, bytes_max: usize) -> String {
        format!("the result has {bytes} bytes; the limit is {bytes_max}")
    }
}

/// Why a result is not kept: limited in size, without characters that databases reject.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropReason(String);

impl DropReason {
    /// Creates a reason. Cuts a text that is too long.
    pub fn new(why: &str) -> DropReason {
        DropReason(clean(why, Limits::DROP_REASON_BYTES_MAX))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a store knows of the result of a job that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredResult {
    /// It is kept, as long as the job.
    Kept(JobResult),
    /// It was dropped when the job succeeded.
    Dropped(DropReason),
    /// It was kept, and was deleted with the job, when its retention ended.
    Pruned,
}

/// The code of an attempt that succeeded, such as an HTTP status.
///
/// ```
/// use rewheel_core::SuccessCode;
///
/// assert_eq!(SuccessCode::new("204").unwrap().as_str(), "204");
/// assert_eq!(SuccessCode::new(""), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SuccessCode(String);

impl SuccessCode {
    /// Creates a code; `None` if it is empty. Cuts a text that is too long, and removes NUL.
    pub fn new(code: &str) -> Option<SuccessCode> {
        let code = clean(code, Limits::CODE_BYTES_MAX);
        (!code.is_empty()).then_some(SuccessCode(code))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{ContentType, DropReason};
    use crate::limits::Limits;

    #[test]
    fn a_content_type_is_printable_and_has_two_parts() {
        for good in ["text/plain", "application/vnd.api+json; charset=\"utf-8\"", "a/b"] {
            assert_eq!(ContentType::parse(good).unwrap().as_str(), good);
        }
        let long = format!("text/{}", "x".repeat(Limits::CONTENT_TYPE_BYTES_MAX));
        for bad in [
            "",
            "text",
            "/",
            "text/",
            "/plain",
            "te xt/plain",
            "a/b\n",
            "a/b;\0",
            "a/ü",
            "a/b/c",
            &long,
        ] {
            assert!(ContentType::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn json_is_recognized() {
        for json in
            ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"]
        {
            assert!(ContentType::parse(json).unwrap().is_json(), "{json}");
        }
        assert!(!ContentType::bytes().is_json());
        assert!(ContentType::json().is_json());
    }

    #[test]
    fn a_reason_can_be_stored() {
        assert_eq!(DropReason::new("a\0b").as_str(), "ab");
        assert_eq!(
            DropReason::new(&"x".repeat(9_999)).as_str().len(),
            Limits::DROP_REASON_BYTES_MAX
        );
    }
}
