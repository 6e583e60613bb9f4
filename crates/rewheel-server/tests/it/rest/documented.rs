//! Checks every response of every test against the OpenAPI document.

use super::served::Answer;
use boon::{Compiler, Schemas};
use reqwest::Method;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::sync::LazyLock;

const PLACE: &str = "mem://rewheel/openapi.json";

/// The document, with every response schema closed: undocumented fields are errors.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = rewheel_server::openapi::document();
    let schemas = document["components"]["schemas"].as_object_mut().unwrap();
    schemas.values_mut().for_each(close);
    document
});

thread_local! {
    /// Caches compiled schemas: some tests are sensitive to time.
    static COMPILED: RefCell<(Compiler, Schemas)> = RefCell::new({
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        compiler.add_resource(PLACE, DOCUMENT.clone()).unwrap();
        (compiler, Schemas::new())
    });
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            if parts.contains_key("properties") && parts.contains_key("required") {
                parts.entry("additionalProperties").or_insert(false.into());
            }
            parts.values_mut().for_each(close);
        }
        Value::Array(parts) => parts.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Checks that a response is documented.
#[track_caller]
pub(crate) fn check((method, path): &(Method, String), answer: &Answer) {
    let Some(template) = template(path) else {
        assert!(matches!(answer.status, 400..=404 | 414), "{path} is not documented: {answer:?}");
        return;
    };
    let method = method.as_str().to_lowercase();
    let Some(operation) = DOCUMENT["paths"][template].get(&method) else {
        assert_eq!(answer.status, 405, "{method} {path} is not documented: {answer:?}");
        return;
    };
    let status = answer.status.to_string();
    let response = &operation["responses"][&status];
    assert!(response.is_object(), "{method} {template} answers {status}: {answer:?}");
    let media_type = answer.headers["content-type"].to_str().unwrap().split(';').next().unwrap();
    // A result has the type that its runner gave.
    let is_any =
        response["content"].get(media_type).is_none() && response["content"].get("*/*").is_some();
    let media_type = if is_any { "*/*" } else { media_type };
    let content = &response["content"][media_type];
    assert!(content.is_object(), "{method} {template} answers {status} with {media_type}");
    let escape = |text: &str| text.replace('~', "~0").replace('/', "~1");
    let encode = |text: String| text.replace('{', "%7B").replace('}', "%7D").replace('+', "%2B");
    let at = format!(
        "{PLACE}#/paths/{}/{method}/responses/{status}/content/{}/schema",
        encode(escape(template)),
        encode(escape(media_type)),
    );
    COMPILED.with_borrow_mut(|(compiler, schemas)| {
        let schema = compiler.compile(&at, schemas).unwrap();
        if let Err(error) = schemas.validate(&answer.body, schema) {
            panic!("{method} {template} answers {status}: {error:#}\n{answer:?}");
        }
    });
}

/// Finds the path template that a path matches. Literal segments have precedence over parameters.
fn template(path: &str) -> Option<&'static str> {
    let paths: &'static Map<String, Value> = DOCUMENT["paths"].as_object().unwrap();
    let fits = |template: &&'static str| {
        let (mut parts, mut wanted) = (path.split('/'), template.split('/'));
        loop {
            match (parts.next(), wanted.next()) {
                (None, None) => return true,
                (Some(part), Some(want)) if part == want => {}
                (Some(part), Some(want)) if want.starts_with('{') && !part.is_empty() => {}
                _ => return false,
            }
        }
    };
    let all = paths.keys().map(String::as_str);
    all.filter(fits).min_by_key(|template| template.matches('{').count())
}
