//! Tests submitting for a tenant at its job cap.

use super::served::{config, served};
use rewheel_engine::TenantSettings;
use rewheel_server::config::Config;
use serde_json::json;

fn capped() -> Config {
    let mut config = config();
    let settings = TenantSettings { jobs_max: Some(2), ..TenantSettings::default() };
    config.tenants.insert("acme".to_owned(), settings);
    config
}

#[tokio::test]
async fn a_full_tenant_is_throttled() {
    served(capped(), async |api| {
        let first = api.submit(r#","tenant":"acme","key":"k""#).await;
        api.submit(r#","tenant":"acme""#).await;
        let body = r#"{"kind":"mail","payload":1,"tenant":"acme"}"#;
        let full = api.post("/v1/jobs", body).await;
        assert_eq!((full.status, full.problem()), (429, "throttled"));
        assert_eq!(
            (full.headers["retry-after"].to_str().unwrap(), full.blamed()),
            ("1", vec!["/tenant"])
        );
        assert_eq!(full.body["detail"], "tenant `acme` is at its limit of 2 live jobs");
        // A duplicate needs no room, and other tenants have their own.
        let body = r#"{"kind":"mail","payload":{"to":"a"},"tenant":"acme","key":"k"}"#;
        let known = api.post("/v1/jobs", body).await;
        assert_eq!((known.status, &known.body["id"]), (200, &json!(first)));
        api.submit(r#","tenant":"other""#).await;
        assert_eq!(api.count().await, 3);
    })
    .await;
}

#[tokio::test]
async fn a_batch_is_throttled_as_a_whole_or_in_part() {
    served(capped(), async |api| {
        api.submit(r#","tenant":"acme""#).await;
        let body = r#"{"jobs":[{"kind":"mail","payload":1},{"kind":"mail","payload":1,"tenant":"acme"},
            {"kind":"mail","payload":1,"tenant":"acme"}]}"#;
        let all = api.post("/v1/jobs/batch", body).await;
        assert_eq!((all.status, all.problem()), (429, "throttled"));
        assert_eq!((all.headers["retry-after"].to_str().unwrap(), all.blamed()), ("1", vec!["/jobs/2/tenant"]));
        assert_eq!(api.count().await, 1);

        let part = api.post("/v1/jobs/batch?partial=true", body).await;
        assert_eq!(part.status, 200);
        let results = part.body["results"].as_array().unwrap();
        assert_eq!(results[2]["problem"]["code"], "throttled");
        assert!(results[..2].iter().all(|one| one["duplicate"] == false), "{results:?}");
        assert_eq!(api.count().await, 3);
    })
    .await;
}
