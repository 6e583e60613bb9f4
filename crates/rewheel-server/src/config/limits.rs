//! The limits on what clients may use: connections, requests, memory.

use rewheel::duration;
use serde::Deserialize;
use std::time::Duration;

/// The section `server.limits`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum number of connections. A further connection replaces the one that has been idle
    /// longest; if none is idle, the server rejects it.
    pub connections_max: usize,
    /// Maximum number of concurrent requests, except for health, events and workers that wait for
    /// jobs.
    pub requests_max: usize,
    /// Maximum total size of request bodies in memory, including the values parsed from them.
    pub bodies_bytes_max: usize,
    /// Maximum number of request headers.
    pub headers_max: usize,
    /// Maximum size of a request before its body, in bytes.
    pub head_bytes_max: usize,
    /// Maximum length of a path with its parameters, in bytes.
    pub url_bytes_max: usize,
    /// Timeout for receiving everything before the body.
    #[serde(with = "duration::serde")]
    pub head_timeout: Duration,
    /// Interval in which the minimum rate of a body must be reached.
    #[serde(with = "duration::serde")]
    pub body_timeout: Duration,
    /// Minimum rate of a body, in bytes per second.
    pub body_rate_min: u32,
    /// How long a connection may stay open without a request.
    #[serde(with = "duration::serde")]
    pub idle_timeout: Duration,
    /// How long a client may read none of the response.
    #[serde(with = "duration::serde")]
    pub write_timeout: Duration,
}

impl Default for LimitSettings {
    fn default() -> LimitSettings {
        LimitSettings {
            connections_max: 4_096,
            requests_max: 1_024,
            bodies_bytes_max: 256 * 1024 * 1024,
            headers_max: 100,
            head_bytes_max: 32 * 1024,
            url_bytes_max: 8 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_rate_min: 1_024,
            // Longer than the minute after which common proxies close their connections: the client
            // side should close first, so that no request is sent to a connection that the server
            // just closed.
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
        }
    }
}

/// Shorter timeouts would affect local clients that lose the CPU for a moment.
const TIMEOUT_MIN: Duration = Duration::from_millis(100);

impl LimitSettings {
    /// Returns the first invalid setting, and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let ranges = [
            ("connections_max", self.connections_max, 1, 1_000_000),
            ("requests_max", self.requests_max, 1, 1_000_000),
            ("bodies_bytes_max", self.bodies_bytes_max, 1, u32::MAX as usize),
            ("headers_max", self.headers_max, 10, 10_000),
            ("head_bytes_max", self.head_bytes_max, 1_024, 1024 * 1024),
            ("url_bytes_max", self.url_bytes_max, 256, 64 * 1024 - 2),
        ];
        for (key, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err((key, format!("must be {least} to {most}")));
            }
        }
        let timeouts = [
            ("head_timeout", self.head_timeout),
            ("body_timeout", self.body_timeout),
            ("idle_timeout", self.idle_timeout),
            ("write_timeout", self.write_timeout),
        ];
        match timeouts.into_iter().find(|(_, timeout)| *timeout < TIMEOUT_MIN) {
            Some((key, _)) => Err((key, "must be 100ms or more".to_owned())),
            None => Ok(()),
        }
    }
}
