//! Builds the callback URL of a job from a template.

use super::callee_url::{CalleeUrl, Path};
use super::variables::{Piece, pieces};
use rewheel_core::{Job, MASKED, masked_url};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::net::IpAddr;
use url::{Url, form_urlencoded};

/// Maximum length of a URL: longer than common servers accept by default.
const URL_BYTES_MAX: usize = 8 * 1024;

/// Stands for every value while a template is checked.
const SAMPLE: &str = "x";

/// A second value, to see whether values can change the host.
const OTHER: &str = "y";

/// Stands for a value of a job while the words of a template are read: no URL contains it.
const GAP: &str = "\0";

/// A URL with placeholders that each job fills in, and values of variables.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UrlTemplate {
    /// The template as written, without the values of variables.
    source: String,
    parts: Vec<Part>,
    /// The URL itself, if it has no placeholders for jobs.
    fixed: Option<CalleeUrl>,
    address: Option<IpAddr>,
    path: Path,
    /// Whether jobs fill in the host.
    has_hosts: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The value of an environment variable, inserted as it is.
    Variable(String),
    Place(Place),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Id,
    Kind,
    Tenant,
    /// A JSON pointer into the payload.
    Payload(String),
}

/// Why a URL cannot be built for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoUrl {
    /// The payload lacks a value that the template needs.
    BadPayload(String),
    /// The result is not a valid URL.
    Rejected(String),
}

impl UrlTemplate {
    /// Parses a template. `${NAME}` is an environment variable.
    pub(super) fn parse(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<UrlTemplate, String> {
        if text.contains(MASKED) {
            return Err(
                "is a masked value: send the whole URL, or use `${NAME}` for secrets".to_owned()
            );
        }
        let parts = parse_parts(text, variable)?;
        let is_fixed = !parts.iter().any(|part| matches!(part, Part::Place(_)));
        let mut template = UrlTemplate {
            source: text.to_owned(),
            path: if has_variable_in_path(&parts) { Path::Secret } else { Path::Shown },
            parts,
            fixed: None,
            address: None,
            has_hosts: false,
        };
        let sample = template.fill(|_| Ok::<_, String>(SAMPLE.to_owned()))?;
        let url = CalleeUrl::parse(&sample, template.path)?;
        template.address = url.address();
        let other = template.fill(|_| Ok::<_, String>(OTHER.to_owned()))?;
        template.has_hosts = CalleeUrl::parse(&other, template.path)
            .is_ok_and(|other| other.origin() != url.origin());
        template.fixed = is_fixed.then_some(url);
        Ok(template)
    }

    /// Returns its secret words: the values of its query, and of variables in its path.
    pub(super) fn secrets(&self) -> Vec<String> {
        let piece = |part: &'_ Part| match part {
            Part::Text(text) | Part::Variable(text) => text.clone(),
            Part::Place(_) => GAP.to_owned(),
        };
        let filled: String = self.parts.iter().map(piece).collect();
        let (place, query) = filled.split_once('?').unwrap_or((&filled, ""));
        let values =
            query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
        let mut words: Vec<&str> = values.flat_map(|value| value.split(GAP)).collect();
        if self.path == Path::Secret {
            words.extend(place[authority_end(place)..].split(['/', '\0']));
        }
        let decoded = |word: &str| {
            let pair = format!("word={word}");
            form_urlencoded::parse(pair.as_bytes()).map(|(_, value)| value.into_owned()).collect()
        };
        words.into_iter().flat_map(|word| [word.to_owned(), decoded(word)]).collect()
    }

    /// Returns the host of all jobs' URLs, if it is the same.
    pub(super) fn only_host(&self) -> Option<String> {
        let sample = self.fill(|_| Ok::<_, String>(SAMPLE.to_owned())).ok();
        let url = CalleeUrl::parse(&sample.filter(|_| !self.has_hosts)?, self.path).ok()?;
        Some(host_and_port(&url))
    }

    /// Returns the host of a job's URL, if jobs have different hosts.
    pub(super) fn host_of(&self, job: &Job) -> Option<String> {
        if self.has_hosts { self.host(job) } else { None }
    }

    /// Returns the host of a job's URL.
    pub(super) fn host(&self, job: &Job) -> Option<String> {
        self.render(job).ok().map(|url| host_and_port(&url))
    }

    /// Returns the IP address of all jobs' URLs, if the template contains one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Builds the URL of one job.
    pub(super) fn render(&self, job: &Job) -> Result<CalleeUrl, NoUrl> {
        if let Some(url) = &self.fixed {
            return Ok(url.clone());
        }
        let text = self.fill(|place| match place {
            Place::Id => Ok(job.id.to_string()),
            Place::Kind => Ok(job.lane.kind.to_string()),
            Place::Tenant => {
                Ok(job.lane.tenant.as_ref().map_or_else(String::new, ToString::to_string))
            }
            Place::Payload(pointer) => {
                let bytes = job.payload.as_deref().unwrap_or_default();
                let payload = serde_json::from_slice::<&RawValue>(bytes);
                let payload = payload.map_err(|error| bad_payload(pointer, &error))?;
                scalar(find(payload, pointer)).map_err(|why| bad_payload(pointer, &why))
            }
        })?;
        CalleeUrl::parse(&text, self.path)
            .map_err(|why| NoUrl::Rejected(format!("the callback url of this job {why}")))
    }

    /// Joins the parts: text and variables as they are, values of jobs percent-encoded.
    fn fill<E>(&self, mut value: impl FnMut(&Place) -> Result<String, E>) -> Result<String, E> {
        let mut url = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) | Part::Variable(text) => url.push_str(text),
                Part::Place(place) => push_encoded(&mut url, &value(place)?),
            }
        }
        Ok(url)
    }
}

impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlTemplate({:?})", masked_url(&self.source))
    }
}

/// Returns whether a variable is part of the path. Paths are printed, so such a path is masked.
fn has_variable_in_path(parts: &[Part]) -> bool {
    let mut text = String::new();
    let mut variables = Vec::new();
    for part in parts {
        let start = text.len();
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Variable(value) => {
                text.push_str(value);
                variables.push(start..text.len());
            }
            Part::Place(_) => text.push_str(SAMPLE),
        }
    }
    let path = authority_end(&text)..text.find(['?', '#']).unwrap_or(text.len());
    variables.iter().any(|value| value.start < path.end && value.end > path.start)
}

/// Returns the index at which the path of a URL begins.
fn authority_end(url: &str) -> usize {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    url[start..].find(['/', '\\', '?', '#']).map_or(url.len(), |at| start + at)
}

fn host_and_port(url: &CalleeUrl) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host())
}

fn parse_parts(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for piece in pieces(text, variable)? {
        match piece {
            Piece::Variable(value) => parts.push(Part::Variable(value)),
            Piece::Text(text) => parse_places(text, &mut parts)?,
        }
    }
    Ok(parts)
}

fn parse_places(text: &str, parts: &mut Vec<Part>) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        if !before.is_empty() {
            parts.push(Part::Text(before.to_owned()));
        }
        let inside = after.strip_prefix('{').ok_or("has a `}` without a matching `{`")?;
        let (name, tail) = inside.split_once('}').ok_or("has a `{` without a matching `}`")?;
        parts.push(Part::Place(parse_place(name)?));
        rest = tail;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(())
}

fn parse_place(name: &str) -> Result<Place, String> {
    match name {
        "id" => Ok(Place::Id),
        "kind" => Ok(Place::Kind),
        "tenant" => Ok(Place::Tenant),
        _ => match name.strip_prefix("payload.") {
            Some(path) if path.split('.').all(|step| !step.is_empty()) => {
                let escape =
                    |step: &str| format!("/{}", step.replace('~', "~0").replace('/', "~1"));
                Ok(Place::Payload(path.split('.').map(escape).collect()))
            }
            _ => Err(format!(
                "`{{{name}}}` is unknown: use {{id}}, {{kind}}, {{tenant}} or a payload field such as {{payload.order}}"
            )),
        },
    }
}

/// Parses a URL that callbacks may use.
pub(super) fn parse_url(text: &str) -> Result<Url, String> {
    if text.len() > URL_BYTES_MAX {
        return Err(format!("is too long: the limit is {URL_BYTES_MAX} bytes"));
    }
    if text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
        return Err("contains a space or a control character".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not a valid url: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "must not contain a user or a password: send credentials in `headers`".to_owned()
        );
    }
    if url.fragment().is_some() {
        return Err(
            "must not contain a fragment (`#…`), which HTTP does not send: remove it".to_owned()
        );
    }
    if has_dot_segment(text) {
        return Err("must not contain `.` or `..` as a segment of the path".to_owned());
    }
    Ok(url)
}

/// Checks the path for dot segments before it is resolved. A tenant named `..` would otherwise reach an unintended path, also when
/// encoded: URLs treat `%2e` as a dot.
fn has_dot_segment(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.split(['/', '\\']).any(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    })
}

/// Follows a JSON pointer. Values keep their written form: a number with many digits is not rounded.
fn find<'p>(payload: &'p RawValue, pointer: &str) -> Option<&'p RawValue> {
    let steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    steps.into_iter().try_fold(payload, |value, step| {
        if value.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            return items.get(step.parse::<usize>().ok()?).copied();
        }
        let mut fields: HashMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
        fields.remove(&step)
    })
}

fn scalar(value: Option<&RawValue>) -> Result<String, &'static str> {
    let text = value.map_or("null", RawValue::get);
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).map_err(|_| "the value is not valid Unicode"),
        Some(b'n') | None => Err("the payload has no such value"),
        Some(b'[' | b'{') => Err("the value is not a string, a number or a boolean"),
        Some(_) => Ok(text.to_owned()),
    }
}

fn bad_payload(pointer: &str, why: &dyn fmt::Display) -> NoUrl {
    NoUrl::BadPayload(format!(
        "the callback url needs the value at {pointer} in the payload: {why}"
    ))
}

/// Percent-encodes everything except characters that are safe in any part of a URL.
fn push_encoded(url: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            url.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
