//! The URLs of a callback: the first one and its failover URLs.

use super::{CallbackError, Fields, typed, unquoted};
use crate::callback::address::Allow;
use crate::callback::template::UrlTemplate;
use rewheel_core::Job;
use rewheel_engine::{REGION_RULE, is_region};
use serde::Deserialize;
use serde_json::Value;

/// Maximum number of failover URLs: one for each region.
const FAILOVER_MAX: usize = 16;

/// The URLs of a callback, the preferred ones first.
#[derive(Clone, Debug)]
pub(crate) struct Urls(Vec<Placed>);

#[derive(Clone, Debug)]
struct Placed {
    url: UrlTemplate,
    region: Option<String>,
}

/// An entry of `failover`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: String,
    region: Option<String>,
}

impl Urls {
    /// Returns whether there is more than one URL.
    pub(crate) fn has_failover(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the secret words of all URLs.
    pub(super) fn secrets(&self) -> Vec<String> {
        self.0.iter().flat_map(|placed| placed.url.secrets()).collect()
    }

    /// Finds a URL with an IP address that is not permitted.
    pub(super) fn refused(&self, allow: &Allow) -> Option<CallbackError> {
        self.0.iter().enumerate().find_map(|(index, placed)| {
            let refused = allow.check(placed.url.address()?).err()?;
            let path = match index.checked_sub(1) {
                None => vec!["url".to_owned()],
                Some(index) => vec!["failover".to_owned(), index.to_string(), "url".to_owned()],
            };
            Some(CallbackError { path, message: refused.to_string() })
        })
    }

    /// Moves the URLs of a region to the front. The others keep the order in which they are written.
    pub(super) fn prefer(&mut self, region: Option<&str>) {
        self.0.sort_by_key(|placed| region.is_none() || placed.region.as_deref() != region);
    }

    /// Returns the URLs in the order in which the next attempt of a job should try them: each failed attempt moves the start to the next
    /// URL. A URL that needs a value the job lacks is left out. If that is true for all, the first one stays, so that its error is
    /// reported.
    pub(crate) fn in_turn(&self, job: &Job) -> Vec<&UrlTemplate> {
        let mut urls: Vec<&UrlTemplate> = self.0.iter().map(|placed| &placed.url).collect();
        if self.has_failover() {
            let can_be_made = |url: &&&UrlTemplate| url.render(job).is_ok();
            let made: Vec<&UrlTemplate> = urls.iter().filter(can_be_made).copied().collect();
            if !made.is_empty() {
                urls = made;
            }
            let failed = job.attempt.saturating_sub(job.attempts_before) as usize;
            let turn = failed % urls.len();
            urls.rotate_left(turn);
        }
        urls
    }

    /// Returns the host that all calls go to, if there is only one.
    pub(crate) fn only_host(&self) -> Option<String> {
        match &self.0[..] {
            [placed] => placed.url.only_host(),
            _ => None,
        }
    }

    /// Returns the targets that the next attempt may call. A single URL counts only if jobs fill in its host.
    pub(crate) fn targets(&self, job: &Job) -> Vec<String> {
        if self.has_failover() {
            let hosts = self.in_turn(job).into_iter().map(|url| url.host(job));
            return hosts.map(Option::unwrap_or_default).collect();
        }
        self.0.iter().filter_map(|placed| placed.url.host_of(job)).collect()
    }
}

/// Reads `url`, `region` and `failover`.
pub(super) fn parse(
    fields: &Fields,
    allow: &Allow,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Urls, CallbackError> {
    let Some(url) = &fields.url else {
        return Err(CallbackError::of("url", "is required"));
    };
    let region = match &fields.region {
        Some(region) => Some(typed::<String>("region", region)?),
        None => None,
    };
    let first = Entry { url: typed("url", url)?, region };
    let mut urls = vec![placed(first, allow, variable, &[])?];
    let further = match &fields.failover {
        Some(failover) => unquoted::<Vec<Value>>("failover", failover, "a list of URLs")?,
        None => Vec::new(),
    };
    if further.len() > FAILOVER_MAX {
        return Err(CallbackError::of(
            "failover",
            format!("must have {FAILOVER_MAX} entries or fewer"),
        ));
    }
    for (index, entry) in further.into_iter().enumerate() {
        let entry = match entry.as_str() {
            Some(url) => Entry { url: url.to_owned(), region: None },
            // Do not use the parser's error: it may quote a URL with a secret.
            None => Entry::deserialize(&entry).map_err(|_| {
                let why = "must be a url, or { url = \"…\", region = \"…\" }";
                CallbackError::within("failover", index, why)
            })?,
        };
        urls.push(placed(entry, allow, variable, &["failover", &index.to_string()])?);
    }
    Ok(Urls(urls))
}

fn placed(
    entry: Entry,
    allow: &Allow,
    variable: &dyn Fn(&str) -> Option<String>,
    path: &[&str],
) -> Result<Placed, CallbackError> {
    let wrong = |field: &str, message: String| CallbackError {
        path: path.iter().copied().chain([field]).map(str::to_owned).collect(),
        message,
    };
    let url = UrlTemplate::parse(&entry.url, variable).map_err(|why| wrong("url", why))?;
    if let Some(address) = url.address() {
        allow.check(address).map_err(|refused| wrong("url", refused.to_string()))?;
    }
    if entry.region.as_deref().is_some_and(|region| !is_region(region)) {
        return Err(wrong("region", REGION_RULE.to_owned()));
    }
    Ok(Placed { url, region: entry.region })
}
