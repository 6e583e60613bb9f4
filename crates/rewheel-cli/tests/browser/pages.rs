//! Every page of the dashboard, with something to show.

use crate::browser::Browser;
use crate::site::{Site, timeout};
use crate::stories;
use serde_json::{Value, json};

/// The texts in the fields of jobs that people choose.
pub(crate) struct Texts {
    pub(crate) key: String,
    pub(crate) tenant: String,
    pub(crate) message: String,
}

impl Texts {
    pub(crate) fn usual() -> Texts {
        let owned = |text: &str| text.to_owned();
        Texts { key: owned("order-17"), tenant: owned("acme"), message: owned("no answer") }
    }
}

/// The pages whose address is the same on every server.
const PAGES: [&str; 23] = [
    "",
    "jobs",
    "jobs?state=dead",
    "jobs?filter=nonsense:1",
    "jobs?key=none",
    "incidents",
    "kinds",
    "kinds/charge-card",
    "kinds/mail",
    "kinds/mail/settings",
    "kinds/mail/breaker-close",
    "operations",
    "bulk/redrive?kind=charge-card",
    "bulk/cancel?kind=mail",
    "schedules",
    "schedules/nightly/pause",
    "fleet",
    "audit",
    "tokens",
    "preferences",
    "help",
    "sign-in",
    "no-such-page",
];

/// Signs in on a server with jobs in all states, and returns the paths of the pages.
pub(crate) async fn furnish(site: &Site, browser: &Browser, texts: &Texts) -> Vec<String> {
    let job = |kind: &str| {
        json!({
            "kind": kind, "key": texts.key, "tenant": texts.tenant, "group_key": texts.key,
            "shard_key": texts.tenant, "payload": { texts.key.as_str(): texts.message, "amount": 1.50 },
        })
    };
    let message = |verdict: &str| {
        let mut result = timeout();
        result["verdict"] = json!(verdict);
        result["message"] = json!(texts.message);
        result
    };
    let dead = site.submit(job("charge-card")).await;
    site.settle(1, message("dead")).await;
    site.dead_letters(12).await;
    site.charge(2).await;
    site.settle(1, message("retry")).await;
    site.settle(1, json!({ "verdict": "done" })).await;
    let waiting = site.submit(job("mail")).await;
    let paused = site.submit(json!({ "kind": "mail", "payload": {} })).await;
    site.post(&format!("/v1/jobs/{paused}/pause"), Value::Null).await;
    let schedule = json!({ "every": "1h", "job": { "kind": "mail", "payload": {} } });
    site.ask("PUT", "/v1/schedules/nightly", schedule).await;
    site.post("/v1/kinds/mail/breaker/open", Value::Null).await;
    let canary = json!({ "filter": { "kind": ["charge-card"], "code": "504" }, "canary": [1, 10] });
    let operation = site.post("/v1/jobs/redrive", canary).await["id"].clone();
    let token =
        site.post("/v1/tokens", json!({ "name": "ci", "roles": ["read"] })).await["id"].clone();
    let incident = site.get("/v1/incidents").await["items"][0]["id"].clone();
    let (operation, token) = (operation.as_str().unwrap(), token.as_str().unwrap());
    let incident = incident.as_str().unwrap();
    stories::sign_in(browser).await;
    let mut paths = PAGES.map(|path| format!("/ui/{path}")).to_vec();
    paths.extend([
        format!("/ui/jobs/{dead}"),
        format!("/ui/jobs/{dead}/edit"),
        format!("/ui/jobs/{dead}/cancel"),
        format!("/ui/jobs/{waiting}"),
        format!("/ui/incidents/{incident}"),
        format!("/ui/operations/{operation}"),
        format!("/ui/operations/{operation}/abort"),
        format!("/ui/tokens/{token}/revoke"),
    ]);
    paths
}
