//! Looking at who did what.

use crate::served::{config, served};
use serde_json::json;

#[tokio::test]
async fn what_people_do_is_written_down() {
    served(config(), async |api| {
        api.put("/v1/kinds/parcel", "{}").await;
        let job = api.post("/v1/jobs", r#"{"kind":"parcel","payload":1,"delay":"1h"}"#).await;
        let id = job.body["id"].as_str().unwrap_or_default().to_owned();
        api.post("/v1/kinds/parcel/pause", "").await;
        api.post(&format!("/v1/jobs/{id}/cancel"), "").await;

        let all = api.get("/v1/audit?limit=2").await;
        let items = all.body["items"].as_array().cloned().unwrap_or_default();
        let what: Vec<_> = items.iter().map(|line| (&line["what"], &line["kind"])).collect();
        let parcel = json!("parcel");
        assert_eq!(what, [(&json!("cancel"), &parcel), (&json!("pause kind"), &parcel)]);
        assert_eq!((&items[0]["job"], &items[1]["job"]), (&json!(id), &json!(null)));
        assert_eq!(
            (&items[0]["who"], &items[1]["after"]["paused"]),
            (&json!("rest"), &json!("true"))
        );
        let cursor = all.body["next"].as_str().unwrap_or_default();
        let rest = api.get(&format!("/v1/audit?limit=1000&cursor={cursor}")).await;
        assert_eq!(rest.body["items"][0]["what"], "put kind");
        assert_eq!(rest.body["next"], json!(null));

        let one = api.get(&format!("/v1/audit?job={id}")).await;
        assert_eq!(one.body["items"].as_array().map(Vec::len), Some(1));
        for bad in ["cursor=x", "job=1", "limit=0", "who=me"] {
            let answer = api.get(&format!("/v1/audit?{bad}")).await;
            assert_eq!((answer.status, &answer.body["code"]), (400, &json!("bad_query")), "{bad}");
        }
    })
    .await;
}
