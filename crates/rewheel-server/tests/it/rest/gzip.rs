//! Tests compressed responses and requests.

use super::served::{Answer, config, served};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use reqwest::Method;
use std::io::{Read, Write};

fn packed(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[tokio::test]
async fn a_long_answer_is_packed_for_who_can_read_it() {
    served(config(), async |api| {
        for _ in 0..5 {
            api.submit("").await;
        }
        let plain = api.get("/v1/jobs").await;
        assert!(plain.headers.get("content-encoding").is_none());
        let accepts = |path| api.request(Method::GET, path).header("accept-encoding", "gzip");
        let response = accepts("/v1/jobs").send().await.unwrap();
        assert_eq!(response.headers()["content-encoding"], "gzip");
        assert_eq!(response.headers()["vary"], "accept-encoding");
        let bytes = response.bytes().await.unwrap();
        let mut text = String::new();
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), plain.body);
        assert!(bytes.len() < text.len() / 2, "{} of {}", bytes.len(), text.len());
        let short = accepts("/livez").send().await.unwrap();
        assert!(short.headers().get("content-encoding").is_none());
    })
    .await;
}

#[tokio::test]
async fn events_are_told_as_they_happen_whatever_is_accepted() {
    served(config(), async |api| {
        let events = api.request(Method::GET, "/v1/events").header("accept-encoding", "gzip");
        let mut events = events.send().await.unwrap();
        assert!(events.headers().get("content-encoding").is_none());
        api.submit("").await;
        let first = events.chunk().await.unwrap().unwrap();
        assert!(first.starts_with(b"event: job\n") || first.starts_with(b"id: "), "{first:?}");
    })
    .await;
}

#[tokio::test]
async fn a_packed_body_is_read_within_the_limit_of_what_it_holds() {
    served(config(), async |api| {
        let post = |path: &str, body: Vec<u8>, coding: &'static str| {
            let request = api.request(Method::POST, path).header("content-encoding", coding);
            Answer::of(request.body(body))
        };
        let job = r#"{"kind":"mail","payload":{"to":"ada"}}"#;
        let answer = post("/v1/jobs", packed(job), "gzip").await;
        assert_eq!((answer.status, &answer.body["payload"]["to"]), (201, &"ada".into()));
        let large = format!(r#"{{"kind":"mail","payload":"{}"}}"#, "x".repeat(4_000_000));
        assert!(packed(&large).len() < 10_000);
        let answer = post("/v1/jobs", packed(&large), "gzip").await;
        assert_eq!((answer.status, answer.problem()), (413, "too_large"));
        for torn in [b"nonsense".to_vec(), packed(job)[..20].to_vec(), Vec::new()] {
            let answer = post("/v1/jobs", torn, "gzip").await;
            assert_eq!((answer.status, answer.problem()), (400, "bad_json"), "{answer:?}");
        }
        let answer = post("/v1/jobs", job.into(), "br").await;
        assert_eq!((answer.status, answer.problem()), (415, "unknown_encoding"));
        assert_eq!(api.count().await, 1);
    })
    .await;
}
