//! The callback settings of a kind.

mod failover;

pub(super) use self::failover::Urls;

use super::address::Allow;
use super::ceiling::{Ceiling, parse_network};
use super::client::Authority;
use super::echo::Echo;
use super::variables::substitute;
use crate::signature::Secrets;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use rewheel::{StatusSet, duration};
pub(crate) use rewheel_core::MASKED;
use rewheel_core::{masked_secret, masked_url};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Maximum number of headers: more than any callee needs, fewer than servers reject.
const HEADERS_MAX: usize = 32;

/// Maximum number of allowed networks; larger lists belong in a firewall.
const ALLOW_MAX: usize = 32;

/// The methods that a callback may use.
const METHODS: [Method; 5] =
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::GET];

/// Headers that the connection or every callback sets itself.
const HEADERS_TAKEN: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The checked callback settings of a kind.
///
/// ```
/// use rewheel_server::callback::Callback;
/// use serde_json::json;
///
/// let callback = Callback::parse(&json!({"url": "https://pay.example/hook/{payload.order}"}))?;
/// assert_eq!(callback.method(), "POST");
///
/// let error = Callback::parse(&json!({"url": "ftp://pay.example"})).unwrap_err();
/// assert_eq!(error.to_string(), "url: must begin with http:// or https://");
/// assert_eq!(error.pointer(), "/url");
/// # Ok::<(), rewheel_server::callback::CallbackError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Callback {
    pub(super) urls: Urls,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) success: StatusSet,
    pub(super) allow: Allow,
    pub(super) retry_after_max: Option<Duration>,
    pub(super) secrets: Secrets,
    pub(super) ca: Option<Authority>,
    /// The secrets to mask in responses.
    pub(super) echo: Echo,
}

/// The field names, before any value is parsed, so that an error in a value can name its field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    url: Option<Value>,
    region: Option<Value>,
    failover: Option<Value>,
    method: Option<Value>,
    headers: Option<Value>,
    success: Option<Value>,
    allow: Option<Value>,
    retry_after_max: Option<Value>,
    secrets: Option<Value>,
    ca: Option<Value>,
}

impl Callback {
    /// Parses the `callback` of a kind's settings. `${NAME}` in a URL, a header or a secret is replaced by an environment variable of
    /// this process.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse(settings: &Value) -> Result<Callback, CallbackError> {
        Callback::parse_with(settings, &|name| std::env::var(name).ok())
    }

    /// As [`parse`](Callback::parse), with another environment.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn parse_with(
        settings: &Value,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Callback, CallbackError> {
        let fields = Fields::deserialize(settings).map_err(|error| not_fields(settings, &error))?;
        let allow = match &fields.allow {
            Some(allow) => parse_allow(&typed::<Vec<String>>("allow", allow)?)?,
            None => Allow::default(),
        };
        let urls = failover::parse(&fields, &allow, variable)?;
        let headers = match &fields.headers {
            Some(headers) => {
                parse_headers(&unquoted("headers", headers, "an object of strings")?, variable)?
            }
            None => HeaderMap::new(),
        };
        Ok(Callback {
            method: match &fields.method {
                Some(method) => parse_method(&typed::<String>("method", method)?)?,
                None => Method::POST,
            },
            success: match &fields.success {
                Some(success) => parse_success(&typed::<Vec<String>>("success", success)?)?,
                None => StatusSet::SUCCESS,
            },
            allow,
            retry_after_max: match &fields.retry_after_max {
                Some(max) => {
                    Some(parse_retry_after_max(&typed::<String>("retry_after_max", max)?)?)
                }
                None => None,
            },
            secrets: match &fields.secrets {
                Some(secrets) => parse_secrets(
                    &unquoted::<Vec<String>>("secrets", secrets, "a list of strings")?,
                    variable,
                )?,
                None => Secrets::default(),
            },
            ca: match &fields.ca {
                Some(ca) => {
                    let ca = Authority::parse(&typed::<String>("ca", ca)?);
                    Some(ca.map_err(|why| CallbackError::of("ca", why))?)
                }
                None => None,
            },
            echo: Echo::new(words(&headers).chain(urls.secrets())),
            urls,
            headers,
        })
    }

    /// Prefers the URLs of a region.
    #[must_use]
    pub fn near(mut self, region: Option<&str>) -> Callback {
        self.urls.prefer(region);
        self
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// Returns the non-public addresses that it may reach.
    pub fn allow(&self) -> &Allow {
        &self.allow
    }

    /// Limits the non-public addresses that it may reach.
    #[must_use]
    pub fn within(mut self, ceiling: &Ceiling) -> Callback {
        self.allow = self.allow.within(ceiling);
        self
    }

    /// Returns what a kind set over REST must not allow, if there is anything.
    pub(crate) fn beyond(settings: &Value, ceiling: &Ceiling) -> Option<CallbackError> {
        let allow = settings.get("allow").and_then(Value::as_array);
        let networks = allow.into_iter().flatten().filter_map(Value::as_str);
        for network in networks.filter_map(|text| parse_network(text).ok()) {
            if let Err(why) = ceiling.check(&network) {
                return Some(CallbackError::of("allow", why));
            }
        }
        // The code that parses the settings reports invalid ones.
        let callback = Callback::parse(settings).ok()?.within(ceiling);
        callback.urls.refused(&callback.allow)
    }

    /// Returns the only authority to trust for the callee, if one is set.
    pub(crate) fn ca(&self) -> Option<&Authority> {
        self.ca.as_ref()
    }
}

/// Masks the secrets in the settings of a callback: `secrets`, the values of `headers`, and user, password and query of `url` and
/// `failover`. Texts that only refer to environment variables stay.
pub(crate) fn masked(settings: &mut Value) {
    let mask = |value: &mut Value, masked: &dyn Fn(&str) -> String| {
        if let Some(text) = value.as_str() {
            *value = Value::from(masked(text));
        }
    };
    let secret = |text: &str| masked_secret(text).to_owned();
    let secrets = settings.get_mut("secrets").and_then(Value::as_array_mut);
    secrets.into_iter().flatten().for_each(|value| mask(value, &secret));
    let headers = settings.get_mut("headers").and_then(Value::as_object_mut);
    headers.into_iter().flatten().for_each(|(_, value)| mask(value, &secret));
    settings.get_mut("url").into_iter().for_each(|url| mask(url, &masked_url));
    let failover = settings.get_mut("failover").and_then(Value::as_array_mut);
    for entry in failover.into_iter().flatten() {
        mask(entry, &masked_url);
        entry.get_mut("url").into_iter().for_each(|url| mask(url, &masked_url));
    }
}

/// Returns the words of all headers.
fn words(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let values = headers.values().filter_map(|value| value.to_str().ok());
    values.flat_map(str::split_whitespace).map(str::to_owned)
}

/// Finds the unknown field: serde only returns its name. A value is not quoted: it may be a URL with a secret.
fn not_fields(settings: &Value, error: &serde_json::Error) -> CallbackError {
    let Some(fields) = settings.as_object() else {
        return CallbackError { path: Vec::new(), message: "must be an object".to_owned() };
    };
    let message = error.to_string();
    let is_blamed = |name: &&String| message.starts_with(&format!("unknown field `{name}`"));
    CallbackError { path: fields.keys().find(is_blamed).cloned().into_iter().collect(), message }
}

fn typed<T: for<'de> Deserialize<'de>>(
    field: &'static str,
    value: &Value,
) -> Result<T, CallbackError> {
    T::deserialize(value).map_err(|error| CallbackError::of(field, error))
}

/// As [`typed`], for values that must not be quoted in an error: they may be secrets.
fn unquoted<T: for<'de> Deserialize<'de>>(
    field: &'static str,
    value: &Value,
    what: &str,
) -> Result<T, CallbackError> {
    T::deserialize(value).map_err(|_| CallbackError::of(field, format!("must be {what}")))
}

fn parse_method(text: &str) -> Result<Method, CallbackError> {
    METHODS.into_iter().find(|method| method.as_str() == text).ok_or_else(|| {
        let names = METHODS.each_ref().map(Method::as_str).join(", ");
        CallbackError::of("method", format!("`{text}` is not one of {names}"))
    })
}

fn parse_headers(
    headers: &BTreeMap<String, String>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<HeaderMap, CallbackError> {
    if headers.len() > HEADERS_MAX {
        return Err(CallbackError::of(
            "headers",
            format!("must have {HEADERS_MAX} entries or fewer"),
        ));
    }
    let mut parsed = HeaderMap::new();
    for (name, value) in headers {
        let wrong = |why: String| CallbackError::within("headers", name, why);
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| wrong("is not a valid header name".to_owned()))?;
        if is_taken(&name) {
            return Err(wrong(
                "cannot be set: the server sets this header on every callback; remove it"
                    .to_owned(),
            ));
        }
        if value == MASKED {
            return Err(wrong(
                "is a masked value: send the real value, or use `${NAME}`".to_owned(),
            ));
        }
        let value = substitute(value, variable).map_err(wrong)?;
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            wrong("contains a character that is not allowed in a header".to_owned())
        })?;
        // Marks the value as a secret, so that it is never printed.
        value.set_sensitive(true);
        parsed.insert(name, value);
    }
    Ok(parsed)
}

fn is_taken(name: &HeaderName) -> bool {
    let name = name.as_str();
    HEADERS_TAKEN.contains(&name) || name.starts_with("webhook-") || name.starts_with("rewheel-")
}

fn parse_success(statuses: &[String]) -> Result<StatusSet, CallbackError> {
    let mut success = StatusSet::EMPTY;
    for (index, text) in statuses.iter().enumerate() {
        let set = text.parse().map_err(|error| CallbackError::within("success", index, error))?;
        success = success.union(set);
    }
    if success.is_empty() {
        return Err(CallbackError::of(
            "success",
            "must not be empty: list the status codes that count as success, such as 2xx",
        ));
    }
    Ok(success)
}

fn parse_allow(networks: &[String]) -> Result<Allow, CallbackError> {
    if networks.len() > ALLOW_MAX {
        return Err(CallbackError::of("allow", format!("must have {ALLOW_MAX} entries or fewer")));
    }
    let parse = |(index, text): (usize, &String)| {
        parse_network(text).map_err(|why| CallbackError::within("allow", index, why))
    };
    let networks: Result<Vec<IpNet>, CallbackError> =
        networks.iter().enumerate().map(parse).collect();
    Ok(Allow::new(networks?))
}

fn parse_secrets(
    secrets: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Secrets, CallbackError> {
    Secrets::parse(secrets, variable).map_err(|error| match error.index {
        Some(index) => CallbackError::within("secrets", index, error.why),
        None => CallbackError::of("secrets", error.why),
    })
}

fn parse_retry_after_max(text: &str) -> Result<Duration, CallbackError> {
    duration::parse(text).map_err(|error| CallbackError::of("retry_after_max", error))
}

/// An invalid callback setting, and its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackError {
    path: Vec<String>,
    message: String,
}

impl CallbackError {
    fn of(field: &str, why: impl fmt::Display) -> CallbackError {
        CallbackError { path: vec![field.to_owned()], message: why.to_string() }
    }

    fn within(field: &str, part: impl fmt::Display, why: impl fmt::Display) -> CallbackError {
        CallbackError { path: vec![field.to_owned(), part.to_string()], message: why.to_string() }
    }

    /// Returns the location as a JSON pointer relative to the callback; empty for the callback itself.
    pub fn pointer(&self) -> String {
        let escape = |part: &String| format!("/{}", part.replace('~', "~0").replace('/', "~1"));
        self.path.iter().map(escape).collect()
    }

    /// Returns what is wrong there.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for CallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path.join("."))?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for CallbackError {}

#[cfg(test)]
mod tests;
