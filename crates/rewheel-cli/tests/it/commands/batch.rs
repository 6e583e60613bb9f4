//! Tests that a batch is split into requests of a size the server accepts, and reports the result of each job.

use super::fake::{Asked, Fake};
use crate::shell::run;
use serde_json::{Value, json};

fn jobs(asked: &Asked) -> usize {
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    body["jobs"].as_array().unwrap().len()
}

#[test]
fn a_large_batch_is_split_and_keeps_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<_> =
        (0..10_001).map(|n| format!(r#"{{"kind":"mail","payload": {n}.0}}"#)).collect();
    let fake = Fake::start(|asked| {
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let jobs = body["jobs"].as_array().unwrap();
        let results: Vec<_> = jobs
            .iter()
            .map(|job| json!({"id": job["payload"].to_string(), "duplicate": false}))
            .collect();
        (201, json!({ "results": results }).to_string())
    });
    std::fs::write(folder.path().join("lines"), lines.join("\n")).unwrap();
    std::fs::write(folder.path().join("array"), format!("[{}]", lines.join(",\n"))).unwrap();
    for file in ["lines", "array"] {
        let ran = run(folder.path(), &["submit", "--batch", file, "--server", &fake.url]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let ids: Vec<_> = ran.out.lines().collect();
        assert_eq!((ids.len(), ids[0], ids[10_000]), (10_001, "0.0", "10000.0"));
        let asked = fake.asked();
        assert_eq!(asked.iter().map(jobs).collect::<Vec<_>>(), [10_000, 1]);
        assert_eq!(asked[1].line, "POST /v1/jobs/batch");
        assert_eq!(
            asked[1].body, r#"{"jobs":[{"kind":"mail","payload": 10000.0}]}"#,
            "as it is written"
        );
        let ran = run(folder.path(), &["submit", "--batch", file, "--json", "--server", &fake.url]);
        assert_eq!(ran.json()["results"].as_array().unwrap().len(), 10_001);
        fake.asked();
    }
}

#[test]
fn a_batch_of_which_a_part_failed_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs");
    let with = |args: &[&str], fake: &Fake| {
        run(
            folder.path(),
            &[&["submit", "--batch", "jobs"], args, &["--server", &fake.url]].concat(),
        )
    };
    let partly = Fake::start(|_| {
        (
            200,
            r#"{"results":[{"id":"a","duplicate":false},{"problem":{"detail":"no such kind"}}]}"#
                .to_owned(),
        )
    });
    std::fs::write(&file, "{} {}").unwrap();
    let ran = with(&["--partial"], &partly);
    assert_eq!((ran.code, ran.out.as_str()), (3, "a"));
    assert_eq!(ran.err, "job 2 of the batch: no such kind\nerror: 1 of 2 jobs were rejected");
    assert_eq!(partly.asked_once().0, "POST /v1/jobs/batch?partial=true");
    let ran = with(&["--partial", "--json"], &partly);
    assert_eq!(
        (ran.code, &ran.json()["results"][1]["problem"]["detail"]),
        (3, &json!("no such kind"))
    );

    // The first request is stored, the second is refused.
    let later = Fake::start(|asked| match jobs(asked) {
        10_000 => (201, json!({ "results": vec![json!({"id": "a"}); 10_000] }).to_string()),
        _ => (422, json!({ "detail": "no such kind" }).to_string()),
    });
    std::fs::write(&file, "{} ".repeat(10_002)).unwrap();
    let ran = with(&[], &later);
    assert_eq!((ran.code, ran.out.lines().count()), (3, 10_000));
    assert_eq!(ran.err, "error: no such kind\nerror: 2 of 10002 jobs were rejected");

    let refused = Fake::start(|_| (422, json!({ "detail": "no such kind" }).to_string()));
    let ran = with(&[], &refused);
    assert_eq!(
        (ran.code, ran.out.as_str(), refused.asked().len()),
        (1, "", 1),
        "nothing was stored"
    );
    for text in ["", "{\"kind\":", "not json"] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(with(&[], &refused).code, 2, "{text}");
    }
    assert!(refused.asked().is_empty());
    assert_eq!(run(folder.path(), &["submit", "--batch", "nowhere"]).code, 2);
    assert_eq!(run(folder.path(), &["submit", "mail", "1", "--batch", "jobs"]).code, 2);
    assert_eq!(run(folder.path(), &["submit", "mail", "1", "--partial"]).code, 2);
}
