//! Sends test notifications.

use crate::cli_error::{CliError, exit};
use crate::local;
use crate::output::{Output, table};
use crate::serve;
use rewheel::duration;
use rewheel_server::notify::{self, RouteTest, RouteTestResult};
use serde_json::{Value, json};
use std::path::Path;

/// Sends a test notice through every route of the config.
pub(crate) async fn test(config: Option<&Path>, output: Output) -> Result<(), CliError> {
    let config = local::config(config)?.notify;
    if config.route.is_empty() {
        return Err(CliError::usage(
            "the config has no [[notify.route]]: no notifications are sent".to_owned(),
        )
        .hint("see docs/notifications.md for an example, or use another file with --config"));
    }
    // Show the log, so that the test of a route to the log is visible.
    serve::log(None);
    let tried =
        notify::try_out(&config).await.map_err(|error| CliError::new(exit::USAGE, error))?;
    output.answer(document(&tried), || words(&tried));
    let failed = tried.iter().filter(|tried| error(tried).is_some()).count();
    if failed == 0 {
        return Ok(());
    }
    let message = format!("the test notification failed for {failed} of {} routes", tried.len());
    Err(CliError::new(exit::FAILED, anyhow::Error::msg(message)))
}

fn document(tried: &[RouteTest]) -> Value {
    let routes: Vec<Value> = tried
        .iter()
        .enumerate()
        .map(|(index, tried)| {
            json!({
                "route": index,
                "to": tried.to.to_string(),
                "ok": error(tried).is_none(),
                "tried": tried.result != RouteTestResult::NotTried,
                "error": error(tried),
                "took": took(tried),
            })
        })
        .collect();
    json!({ "ok": tried.iter().all(|tried| error(tried).is_none()), "routes": routes })
}

fn words(tried: &[RouteTest]) -> String {
    let rows = tried.iter().enumerate().map(|(index, tried)| {
        let (verdict, told) = match &tried.result {
            RouteTestResult::Sent => ("ok", "sent"),
            RouteTestResult::Failed(error) => ("FAILED", error.as_str()),
            RouteTestResult::NotTried => ("not tried", "a test submits no job"),
        };
        let cells = [&index.to_string(), &tried.to.to_string(), verdict, &took(tried), told];
        cells.map(str::to_owned).to_vec()
    });
    table(&["ROUTE", "TO", "RESULT", "TOOK", "DETAIL"], rows)
}

fn error(tried: &RouteTest) -> Option<&str> {
    match &tried.result {
        RouteTestResult::Failed(error) => Some(error),
        RouteTestResult::Sent | RouteTestResult::NotTried => None,
    }
}

fn took(tried: &RouteTest) -> String {
    let millis = u64::try_from(tried.took.as_millis()).unwrap_or(u64::MAX);
    duration::text(rewheel::millis(millis)).to_string()
}
