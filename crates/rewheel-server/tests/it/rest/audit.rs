//! Tests reading the audit log.

use super::served::{config, served};
use rewheel::{millis, seconds};
use rewheel_server::rfc3339;
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
        for bad in ["cursor=x", "job=1", "limit=0", "what=", "kind=A", "whom=me"] {
            let answer = api.get(&format!("/v1/audit?{bad}")).await;
            assert_eq!((answer.status, &answer.body["code"]), (400, &json!("bad_query")), "{bad}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_ended_a_job_is_written_down_for_people() {
    let mut config = config();
    config.engine.housekeeping = millis(100);
    served(config, async |api| {
        let other = api.submit("").await;
        let other = api.get(&format!("/v1/jobs/{other}")).await.body["created"].clone();
        let now = rfc3339::parse(other.as_str().unwrap_or_default()).expect("an instant");
        let soon = rfc3339::text(now.plus(millis(2_000)));
        let id = api.submit(&format!(r#","deadline":"{soon}""#)).await;
        let path = format!("/v1/jobs/{id}");
        let wait = async {
            while api.get(&path).await.body["state"] != "dead" {
                tokio::time::sleep(millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(seconds(120), wait).await.is_ok(), "it does not die");

        let line = api.get(&format!("/v1/audit?job={id}")).await.body["items"][0].clone();
        assert_eq!((&line["what"], &line["who"]), (&json!("dead"), &json!("engine")));
        assert_eq!((&line["job"], &line["kind"]), (&json!(id), &json!("mail")));
        assert_eq!(line["before"], json!({"state": "scheduled"}));
        let after = json!({
            "state": "dead", "category": "deadline",
            "message": "deadline passed before the job succeeded",
        });
        assert_eq!(line["after"], after);
        let shown = api.get(&path).await.body["audit"].clone();
        assert_eq!(shown.as_array().map(Vec::len), Some(1), "{shown}");
        assert_eq!((&shown[0]["what"], &shown[0]["after"]), (&line["what"], &after));
    })
    .await;
}

#[tokio::test]
async fn the_log_is_searched_by_what_kind_and_who() {
    served(config(), async |api| {
        for kind in ["parcel", "letter"] {
            api.put(&format!("/v1/kinds/{kind}"), "{}").await;
            for verb in ["pause", "resume", "pause", "resume"] {
                api.post(&format!("/v1/kinds/{kind}/{verb}"), "").await;
            }
        }
        let found = async |query: &str| {
            let answer = api.get(&format!("/v1/audit?{query}")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let items = answer.body["items"].as_array().cloned().unwrap_or_default();
            let told: Vec<String> =
                items.iter().map(|line| format!("{} {}", line["what"], line["kind"])).collect();
            (told.join(", ").replace('"', ""), answer.body["next"].clone())
        };
        let (paused, next) = found("what=pause%20kind&kind=parcel").await;
        assert_eq!((paused.as_str(), next), ("pause kind parcel, pause kind parcel", json!(null)));
        let (both, _) = found("what=pause%20kind&what=put%20kind&kind=letter&who=rest").await;
        assert_eq!(both, "pause kind letter, pause kind letter, put kind letter");
        assert_eq!(found("who=unknown").await, (String::new(), json!(null)));

        // Pages of the filtered entries, without gaps or repetitions.
        let (first, next) = found("what=resume%20kind&limit=3").await;
        assert_eq!(first, "resume kind letter, resume kind letter, resume kind parcel");
        let next = next.as_str().unwrap_or_default().to_owned();
        let rest = found(&format!("what=resume%20kind&limit=3&cursor={next}")).await;
        assert_eq!(rest, ("resume kind parcel".to_owned(), json!(null)));
    })
    .await;
}
