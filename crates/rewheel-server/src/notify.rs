//! Sends notices to the log, to webhooks and to chats.
//!
//! [`NotifyConfig`] holds the settings, [`build`] creates notifiers from them, and [`try_out`]
//! sends a test notice through each.

mod secret_text;
mod settings;
mod document;
mod message;
mod sign;
mod log;
mod http;
mod judge;

pub use self::http::HttpNotifier;
pub use self::log::LogNotifier;
pub use self::secret_text::SecretText;
pub use self::settings::{NotifyConfig, NotifyTarget, RouteConfig, RouteError, RouteTarget};

use crate::callback::{Allow, Clients};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rewheel::Clock;
use rewheel_core::Timestamp;
use rewheel_engine::notify::{Notice, Notifier, Route};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A configured notifier.
pub struct Built {
    /// Its name in metrics and logs.
    pub name: String,
    /// Its destination.
    pub to: RouteTarget,
    /// The notices it receives.
    pub route: Route,
    /// The notifier itself; `None` if it submits jobs, which the engine does.
    pub notifier: Option<Arc<dyn Notifier>>,
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Creates the notifiers of a config. `${NAME}` in a URL or a secret is replaced by an environment
/// variable of this process.
///
/// # Errors
/// Returns the first invalid route.
///
/// ```
/// use rewheel_server::notify::{NotifyConfig, RouteConfig, NotifyTarget, build};
///
/// let to_log = RouteConfig { to: NotifyTarget::Log.into(), ..RouteConfig::default() };
/// let config = NotifyConfig { route: vec![to_log], ..NotifyConfig::default() };
/// assert_eq!(build(&config)?[0].name, "log (route 0)");
/// # Ok::<(), rewheel_server::notify::RouteError>(())
/// ```
pub fn build(config: &NotifyConfig) -> Result<Vec<Built>, RouteError> {
    build_with(config, &|name| std::env::var(name).ok())
}

/// As [`build`], with another environment.
///
/// # Errors
/// Returns the first invalid route.
pub fn build_with(
    config: &NotifyConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Built>, RouteError> {
    let clients = Clients::new();
    let mut built = Vec::new();
    for (index, route) in config.route.iter().enumerate() {
        let target = route.target(variable).map_err(|error| error.of(index))?;
        let notifier: Option<Arc<dyn Notifier>> = match (target, &route.to) {
            (None, RouteTarget::Job(_)) => None,
            (None, RouteTarget::Message(_)) => Some(Arc::new(LogNotifier)),
            (Some(target), _) => {
                let client = clients.of(&everywhere(), None).map_err(|error| {
                    RouteError::new("url", format!("failed to create an HTTP client: {error}"))
                        .of(index)
                })?;
                Some(Arc::new(HttpNotifier::new(client, target)))
            }
        };
        let name = format!("{} (route {index})", route.to);
        built.push(Built { name, to: route.to.clone(), route: route.route(), notifier });
    }
    Ok(built)
}

/// Allows all addresses: the operator chose the URL in the config file. The address check is for
/// URLs that come over REST.
fn everywhere() -> Allow {
    let [v4, v6] = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    Allow::new([v4, v6])
}

/// The result of a test notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTest {
    /// The name of the notifier.
    pub name: String,
    /// Its destination.
    pub to: RouteTarget,
    /// What became of the test notice.
    pub result: RouteTestResult,
    /// How long it took.
    pub took: Duration,
}

/// What became of a test notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTestResult {
    /// It was delivered.
    Sent,
    /// It was not delivered, for this reason.
    Failed(String),
    /// The route submits jobs: a test must not.
    NotTried,
}

/// Sends one test notice through every route, whatever its filter, without retries. A route to a job is not tried.
///
/// # Errors
/// Returns the first invalid route.
pub async fn try_out(config: &NotifyConfig) -> Result<Vec<RouteTest>, RouteError> {
    let mut tried = Vec::new();
    let clock = Clock::system();
    for built in build(config)? {
        let notice = Notice::test(Timestamp::from_millis(unix_millis(wall_clock())));
        let started = clock.now();
        let result = match &built.notifier {
            None => RouteTestResult::NotTried,
            Some(notifier) => {
                match tokio::time::timeout(config.timeout, notifier.notify(&notice)).await {
                    Ok(Ok(())) => RouteTestResult::Sent,
                    Ok(Err(error)) => RouteTestResult::Failed(error.to_string()),
                    Err(_) => {
                        let timeout = rewheel::duration::text(config.timeout);
                        RouteTestResult::Failed(format!("no response within {timeout}"))
                    }
                }
            }
        };
        let took = clock.now().since(started);
        tried.push(RouteTest { name: built.name, to: built.to, result, took });
    }
    Ok(tried)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the receiver compares the timestamp with its own clock"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

fn unix_millis(at: SystemTime) -> i64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
