//! Reads the header `If-Match`, which makes a change conditional on a version.

use crate::problem::{Code, Problem};
use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;
use rewheel_core::Version;

/// The condition of a request on the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMatch {
    /// No condition: the header is missing.
    Whatever,
    /// `*`: the resource must exist.
    Exists,
    /// The resource must still have this version.
    Version(Version),
}

impl IfMatch {
    /// Reads the header.
    pub(super) fn read(headers: &HeaderMap) -> Result<IfMatch, Problem> {
        let mut values = headers.get_all(IF_MATCH).iter();
        let Some(value) = values.next() else { return Ok(IfMatch::Whatever) };
        let text = value.to_str().unwrap_or_default().trim();
        let parsed = match text {
            "*" => Some(IfMatch::Exists),
            // A proxy that compresses makes the tag weak; the version is the same.
            _ => {
                let tag = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
                let is_number = !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_digit());
                let version = tag.parse().ok().filter(|_| is_number);
                version.map(|version| IfMatch::Version(Version::new(version)))
            }
        };
        parsed.filter(|_| values.next().is_none()).ok_or_else(|| {
            Problem::new(Code::BadQuery, "the If-Match header is not a single ETag of this server")
                .hint("send the ETag header of an earlier response unchanged")
        })
    }

    /// Returns the required version; `None` for any.
    pub(super) const fn version(self) -> Option<Version> {
        match self {
            IfMatch::Version(version) => Some(version),
            IfMatch::Whatever | IfMatch::Exists => None,
        }
    }
}

/// Formats the tag of a version.
pub(super) fn etag(version: Version) -> String {
    format!("\"{version}\"")
}

#[cfg(test)]
mod tests {
    use super::{HeaderMap, IF_MATCH, IfMatch, Version};

    fn read(values: &[&str]) -> Option<IfMatch> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, value.parse().unwrap());
        }
        IfMatch::read(&headers).ok()
    }

    #[test]
    fn a_tag_is_read_as_it_was_given() {
        assert_eq!(read(&[]), Some(IfMatch::Whatever));
        assert_eq!(read(&["*"]), Some(IfMatch::Exists));
        for tag in ["\"17\"", "W/\"17\"", "17"] {
            assert_eq!(read(&[tag]), Some(IfMatch::Version(Version::new(17))), "{tag}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["yesterday", "\"\"", "", "\"1\", \"2\"", "+1", "-1", "99999999999999999999"] {
            assert_eq!(read(&[bad]), None, "{bad}");
        }
        assert_eq!(read(&["\"1\"", "\"2\""]), None);
    }
}
