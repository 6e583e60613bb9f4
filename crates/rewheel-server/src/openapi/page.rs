//! Renders the OpenAPI document as a self-contained HTML page.

use serde_json::Value;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// Returns the page of `GET /docs`.
pub(crate) fn html(document: &Value) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Rewheel REST API</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\
         <header><h1>Rewheel {}</h1><p>{}</p><p>OpenAPI document: <a href=\"/openapi.json\">\
         /openapi.json</a></p></header>",
        escape(text(&document["info"]["version"])),
        code(text(&document["info"]["description"])),
    );
    let tags = document["tags"].as_array().into_iter().flatten();
    page.push_str("<nav>");
    for tag in tags.clone() {
        let name = escape(text(&tag["name"]));
        let _ = write!(page, "<a href=\"#{name}\">{name}</a> ");
    }
    page.push_str("<a href=\"#schemas\">schemas</a></nav><main>");
    for tag in tags {
        let name = text(&tag["name"]);
        let about = escape(text(&tag["description"]));
        let _ = write!(page, "<h2 id=\"{0}\">{0}</h2><p>{about}</p>", escape(name));
        for (path, method, operation) in operations(document) {
            if operation["tags"][0] == *name {
                write_operation(&mut page, document, (path, method), operation);
            }
        }
    }
    page.push_str("<h2 id=\"schemas\">schemas</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let _ = write!(
            page,
            "<details id=\"{0}\"><summary>{0} <span>{1}</span></summary>",
            escape(name),
            escape(text(&schema["description"]))
        );
        write_json(&mut page, schema);
        page.push_str("</details>");
    }
    page.push_str("</main></body></html>");
    page
}

/// Returns every operation, with its path and method.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

fn write_operation(page: &mut String, document: &Value, at: (&str, &str), operation: &Value) {
    let (path, method) = at;
    let _ = write!(
        page,
        "<details id=\"{}\"><summary><b class=\"{method}\">{}</b> <code>{}</code> <span>{}</span>\
         </summary>",
        escape(text(&operation["operationId"])),
        method.to_uppercase(),
        escape(path),
        code(text(&operation["summary"])),
    );
    if let Some(parameters) = operation["parameters"].as_array() {
        page.push_str(
            "<table><tr><th>parameter</th><th>in</th><th>description</th><th>type</th></tr>",
        );
        for one in parameters {
            let _ = write!(
                page,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(text(&one["name"])),
                escape(text(&one["in"])),
                code(text(&one["description"])),
                form(&one["schema"]),
            );
        }
        page.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let mut curl = format!("curl -X {} http://127.0.0.1:7420{path}", method.to_uppercase());
    if body.is_object() {
        let _ = write!(page, "<p>Body: {}</p>", form(body));
        if let Some(example) = example(document, body) {
            let _ = write!(curl, " -d '{example}'");
        }
    }
    let _ = write!(
        page,
        "<pre>{}</pre><table><tr><th>status</th><th>description</th><th>type</th></tr>",
        escape(&curl)
    );
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let contents = answer["content"].as_object().into_iter().flatten();
        let forms: Vec<String> = contents.map(|(_, content)| form(&content["schema"])).collect();
        let what = code(text(&answer["description"]));
        let forms = forms.join(", ");
        let _ = write!(page, "<tr><td>{status}</td><td>{what}</td><td>{forms}</td></tr>");
    }
    page.push_str("</table></details>");
}

/// Returns the example of a referenced schema.
fn example<'a>(document: &'a Value, schema: &Value) -> Option<&'a Value> {
    let pointer = schema["$ref"].as_str()?.strip_prefix('#')?;
    document.pointer(pointer)?.get("examples")?.get(0)
}

/// Describes in a few words what a schema requires.
fn form(schema: &Value) -> String {
    let refers = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(name) = refers.and_then(|refers| refers.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escape(name));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<&str> = words.iter().map(text).collect();
        return format!("<code>{}</code>", escape(&words.join(" ")));
    }
    if schema["items"].is_object() {
        return format!("list of {}", form(&schema["items"]));
    }
    let kind = escape(text(&schema["type"]));
    match (schema["format"].as_str(), schema["pattern"].as_str(), schema["maximum"].as_u64()) {
        (Some(format), _, _) => format!("{kind}, {}", escape(format)),
        (_, Some(pattern), _) => format!("{kind}, <code>{}</code>", escape(pattern)),
        (_, _, Some(most)) => {
            format!("{kind}, {}..{most}", schema["minimum"].as_u64().unwrap_or(0))
        }
        _ => kind,
    }
}

fn write_json(page: &mut String, value: &Value) {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let _ = write!(page, "<pre>{}</pre>", escape(&pretty));
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escapes HTML, and marks text in backticks as code.
fn code(text: &str) -> String {
    let mut written = String::new();
    for (place, part) in escape(text).split('`').enumerate() {
        let _ = match place % 2 {
            0 => write!(written, "{part}"),
            _ => write!(written, "<code>{part}</code>"),
        };
    }
    written
}
