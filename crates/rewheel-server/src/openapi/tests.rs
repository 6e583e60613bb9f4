//! Tests that the OpenAPI document matches the code.

use super::{document, html};
use crate::app::App;
use crate::config::Config;
use crate::{bulk, conditions, kind_document, rest, schedule, submit, tokens, workers};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tower::ServiceExt;

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "options", "trace"];

fn documented() -> BTreeSet<(String, String)> {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(|method| (method.clone(), path.clone()))
    });
    all.collect()
}

#[tokio::test]
async fn the_router_serves_exactly_the_documented_methods() {
    let app = Arc::new(App::new(Config::default()));
    let router = rest::router(app);
    let documented = documented();
    let mut served = BTreeSet::new();
    for path in documented.iter().map(|(_, path)| path) {
        for method in METHODS {
            let concrete = path.replace("{id}", "x").replace("{kind}", "x");
            let request = Request::builder().method(method.to_uppercase().as_str()).uri(concrete);
            let request = request.body(Body::from("{}")).unwrap();
            let status = router.clone().oneshot(request).await.unwrap().status().as_u16();
            if status != 405 {
                served.insert((method.to_owned(), path.clone()));
            }
        }
    }
    assert_eq!(served, documented);
}

#[track_caller]
fn check(schema: &str, known: &[&str]) {
    let document = document();
    let fields = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
    let fields: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
    assert_eq!(fields, known.iter().copied().collect(), "{schema}");
}

#[test]
fn a_request_has_the_fields_that_are_parsed() {
    check("NewJob", &submit::FIELDS);
    let follow_up: Vec<&str> =
        submit::FIELDS.into_iter().filter(|field| *field != "tenant").collect();
    check("FollowUp", &follow_up);
    check("Edit", &submit::EDIT_FIELDS);
    check("Filter", &conditions::NAMES);
    check("Order", &bulk::FIELDS);
    check("Redrive", &bulk::FIELDS);
    check("IncidentOrder", &bulk::FIELDS[bulk::FIELDS_WHICH..]);
    check("IncidentRedrive", &bulk::FIELDS[bulk::FIELDS_WHICH..]);
    check("NewSchedule", &schedule::FIELDS);
    check("Claim", &workers::CLAIM_FIELDS);
    check("Heartbeat", &workers::HEARTBEAT_FIELDS);
    check("Settle", &workers::SETTLE_FIELDS);
    check("Extend", &workers::EXTEND_FIELDS);
    check("Checkpoint", &workers::CHECKPOINT_FIELDS);
    check("Leave", &workers::LEAVE_FIELDS);
    check("Result", &workers::RESULT_FIELDS);
    check("JobResult", &workers::JOB_RESULT_FIELDS);
    check("NewToken", &tokens::FIELDS);
    let settings = kind_document::names();
    check("KindSettings", &settings.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Calls a function for every part of the document.
fn walk(value: &Value, visit: &mut dyn FnMut(&Value)) {
    visit(value);
    match value {
        Value::Array(parts) => parts.iter().for_each(|part| walk(part, visit)),
        Value::Object(parts) => parts.values().for_each(|part| walk(part, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A description on the field itself: beside a reference it says what the field means here.
fn undescribed(at: &str, part: &Value, found: &mut Vec<String>) {
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| undescribed(at, part, found)),
        Value::Object(parts) => {
            for (name, part) in parts {
                let at = format!("{at}/{name}");
                // What narrows a schema down says nothing new about its fields.
                if ["if", "then", "examples", "example", "dependentSchemas"]
                    .contains(&name.as_str())
                {
                    continue;
                }
                let fields = part.as_object().filter(|_| name == "properties");
                for (field, schema) in fields.into_iter().flatten() {
                    let said = schema["description"].as_str().unwrap_or_default();
                    if said.len() < 5 || !said.ends_with('.') {
                        found.push(format!("{at}/{field}: {said}"));
                    }
                }
                undescribed(&at, part, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_field_has_a_description() {
    let document = document();
    let mut found = Vec::new();
    undescribed("", &document["components"]["schemas"], &mut found);
    assert!(found.is_empty(), "without a description:\n{}", found.join("\n"));
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name} has no description");
    }
    for (method, path) in documented() {
        let operation = &document["paths"][&path][&method];
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        for part in parameters.chain(operation["responses"].as_object().unwrap().values()) {
            let said = part["description"].as_str().unwrap_or_default();
            assert!(!said.is_empty(), "{method} {path}: {part}");
        }
    }
}

#[test]
fn a_field_without_a_description_is_found() {
    let part = json!({"properties": {"a": {"type": "string"}, "b": {"description": "A text."}}});
    let mut found = Vec::new();
    undescribed("", &part, &mut found);
    assert_eq!(found, ["/properties/a: "]);
}

#[test]
fn whatever_is_referred_to_is_there_and_used() {
    let document = document();
    let mut used = BTreeSet::new();
    walk(&document, &mut |part| {
        if let Some(reference) = part.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
            used.insert(pointer.rsplit('/').next().unwrap().to_owned());
        }
    });
    let there = document["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(used, there);
}

#[test]
fn every_operation_is_complete() {
    let document = document();
    let mut names = BTreeSet::new();
    for (method, path) in documented() {
        let operation = &document["paths"][&path][&method];
        assert!(names.insert(operation["operationId"].as_str().unwrap()), "{path}");
        assert!(!operation["summary"].as_str().unwrap().is_empty());
        assert!(operation["responses"]["503"].is_object(), "{path}");
        let named = path.split('{').skip(1).map(|part| part.split('}').next().unwrap());
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        for name in named {
            let has = |one: &Value| one["in"] == "path" && one["name"] == name;
            assert!(parameters.iter().any(has), "{path}: {name}");
        }
    }
}

#[test]
fn every_example_fits_its_schema() {
    let document = document();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("mem://rewheel/openapi.json", document.clone()).unwrap();
    let mut schemas = boon::Schemas::new();
    let mut seen = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let at = format!("mem://rewheel/openapi.json#/components/schemas/{name}");
        let compiled = compiler.compile(&at, &mut schemas).unwrap();
        for example in schema["examples"].as_array().into_iter().flatten() {
            schemas.validate(example, compiled).unwrap_or_else(|error| panic!("{name}: {error}"));
            seen += 1;
        }
    }
    assert!(seen >= 14, "{seen}");
}

#[test]
fn the_page_shows_everything_and_loads_nothing() {
    let page = html(&document());
    for (_, path) in documented() {
        assert!(page.contains(&path), "{path}");
    }
    for outside in ["<script", "<link", "<img", "src=", "@import", "url(", "//cdn"] {
        assert!(!page.contains(outside), "{outside}");
    }
}
