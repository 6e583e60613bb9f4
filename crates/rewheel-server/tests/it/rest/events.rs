//! Tests the stream of job events.

use super::served::{Api, config, served};
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// A connection that receives events.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    async fn open(api: &Api, path: &str, last: Option<&str>) -> Events {
        let request = api.request(Method::GET, path);
        let request =
            last.into_iter().fold(request, |request, id| request.header("last-event-id", id));
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, text: String::new() }
    }

    /// Waits for the next event: its name, its id, its data.
    async fn next(&mut self) -> (String, String, Value) {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let line = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim().to_owned()
                };
                let told = (line("event:"), line("id:"), line("data:"));
                self.text = rest.to_owned();
                if !told.0.is_empty() {
                    return (told.0, told.1, serde_json::from_str(&told.2).unwrap());
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap().expect("it goes on");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

#[tokio::test]
async fn what_happens_is_told_and_told_again_to_who_comes_back() {
    served(config(), async |api| {
        let mut events = Events::open(&api, "/v1/events?kind=mail", None).await;
        api.put("/v1/kinds/other", "{}").await;
        api.post("/v1/jobs", r#"{"kind":"other","payload":1}"#).await;
        let id = api.submit(r#","delay":"1h""#).await;
        let (name, first, told) = events.next().await;
        assert_eq!(
            (name.as_str(), &told["job"], &told["kind"]),
            ("job", &json!(id), &json!("mail"))
        );
        assert_eq!((&told["from"], &told["to"]), (&Value::Null, &json!("scheduled")));
        api.post(&format!("/v1/jobs/{id}/cancel"), "").await;
        let (_, second, told) = events.next().await;
        assert_eq!((&told["from"], &told["to"]), (&json!("scheduled"), &json!("cancelled")));
        drop(events);

        let mut again = Events::open(&api, "/v1/events?kind=mail", Some(&first)).await;
        assert_eq!(again.next().await.1, second);
        // Events from before the first listener are gone, and the stream says so.
        let mut late = Events::open(&api, "/v1/events?after=17", None).await;
        let (name, up_to, _) = late.next().await;
        assert!(name == "missed" && up_to.parse::<u64>().unwrap() > 17);
        assert!(up_to.parse::<u64>().unwrap() < first.parse::<u64>().unwrap());
        for bad in ["kind=No!", "job=1", "after=x", "all=1"] {
            assert_eq!(api.get(&format!("/v1/events?{bad}")).await.problem(), "bad_query");
        }
        // A listener does not prevent the shutdown of the server.
    })
    .await;
}

#[tokio::test]
async fn an_operation_tells_what_it_changes() {
    served(config(), async |api| {
        let id = api.submit(r#","delay":"1h""#).await;
        let mut events = Events::open(&api, &format!("/v1/events?job={id}"), None).await;
        api.post("/v1/jobs/pause", r#"{"filter":{"kind":"mail"}}"#).await;
        assert_eq!(events.next().await.2["to"], "paused");
    })
    .await;
}
