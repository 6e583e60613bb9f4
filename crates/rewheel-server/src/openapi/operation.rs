//! Describes one operation of the document.

use super::shape::{between, reference};
use crate::problem::{Code, MEDIA_TYPE};
use rewheel_core::Limits;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Problems that every operation may return.
const ALWAYS: [Code; 7] = [
    Code::BadRequest,
    Code::Unauthorized,
    Code::Forbidden,
    Code::UrlTooLong,
    Code::HeadersTooLarge,
    Code::Overloaded,
    Code::Internal,
];

/// What a route does, takes and answers with.
#[derive(Debug)]
pub(crate) struct Operation {
    name: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Vec<(u16, &'static str, Value)>,
    headers: Vec<(&'static str, &'static str)>,
    codes: Vec<Code>,
}

impl Operation {
    /// Starts with its `operationId` and one sentence.
    pub(crate) fn new(name: &'static str, summary: &'static str) -> Operation {
        Operation {
            name,
            summary,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            headers: Vec::new(),
            codes: ALWAYS.to_vec(),
        }
    }

    /// Adds a parameter of the URL.
    pub(crate) fn query(self, name: &str, description: &str, schema: Value) -> Operation {
        self.parameter("query", name, description, schema)
    }

    /// Adds a header that may be there.
    pub(crate) fn header(self, name: &str, description: &str, schema: Value) -> Operation {
        self.parameter("header", name, description, schema)
    }

    /// Adds a part of the path.
    pub(crate) fn at(mut self, name: &str, description: &str, schema: Value) -> Operation {
        self = self
            .parameter("path", name, description, schema)
            .may(&[Code::NotFound, Code::BadQuery]);
        if let Some(parameter) = self.parameters.last_mut() {
            parameter["required"] = true.into();
        }
        self
    }

    /// Adds the parameters of a list that has pages.
    pub(crate) fn paged(self) -> Operation {
        let most = u64::try_from(Limits::PAGE_MAX).unwrap_or(u64::MAX);
        let cursor = json!({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"});
        self.query("limit", "Maximum number of results (default 100).", between(1, most)).query(
            "cursor",
            "The value of `next` in the previous page. Leave it out for the first page.",
            cursor,
        )
    }

    /// Adds the header `If-Match`.
    pub(crate) fn if_match(self, description: &str) -> Operation {
        let tag = json!({"type": "string", "pattern": "^(\\*|(W/)?\"?[0-9]{1,18}\"?)$"});
        self.header("If-Match", description, tag)
    }

    fn parameter(mut self, place: &str, name: &str, description: &str, schema: Value) -> Operation {
        self.parameters.push(json!({
            "name": name, "in": place, "description": description, "schema": schema,
        }));
        self
    }

    /// Says what has to be sent.
    pub(crate) fn takes(self, schema: &str) -> Operation {
        self.body(schema, true)
    }

    /// Says what can be sent.
    pub(crate) fn may_take(self, schema: &str) -> Operation {
        self.body(schema, false)
    }

    fn body(mut self, schema: &str, is_required: bool) -> Operation {
        self.body = Some(json!({
            "required": is_required,
            "content": {"application/json": {"schema": reference(schema)}},
        }));
        self.may(&[
            Code::BadJson,
            Code::InvalidField,
            Code::TooLarge,
            Code::TooSlow,
            Code::UnknownEncoding,
        ])
    }

    /// Adds a success response.
    pub(crate) fn gives(self, status: u16, description: &'static str, schema: &str) -> Operation {
        self.gives_as(status, description, ("application/json", reference(schema)))
    }

    /// Adds a success response that is not JSON.
    pub(crate) fn gives_as(
        mut self,
        status: u16,
        description: &'static str,
        (media_type, schema): (&str, Value),
    ) -> Operation {
        self.answers.push((status, description, json!({media_type: {"schema": schema}})));
        self
    }

    /// Adds a header of the success responses.
    pub(crate) fn with(mut self, name: &'static str, description: &'static str) -> Operation {
        self.headers.push((name, description));
        self
    }

    /// Adds the responses to a request that changes many jobs.
    pub(crate) fn starts_operation(self) -> Operation {
        self.gives(
            200,
            "The number of jobs that the operation would change, and examples. Only for requests with `dry_run`.",
            "Preview",
        )
        .gives(202, "The operation has started.", "Operation")
        .with("Location", "URL of the operation.")
        .writes()
    }

    /// Adds problems that the operation may return.
    pub(crate) fn may(mut self, codes: &[Code]) -> Operation {
        for code in codes {
            if !self.codes.contains(code) {
                self.codes.push(*code);
            }
        }
        self
    }

    /// Adds the problems of every operation that reads the store or its own query parameters.
    pub(crate) fn reads(self) -> Operation {
        self.may(&[Code::BadQuery, Code::StoreUnavailable])
    }

    /// Adds the problems of every operation that changes the store.
    pub(crate) fn writes(self) -> Operation {
        self.reads().may(&[Code::ShuttingDown, Code::DiskFull, Code::InvalidField])
    }

    /// Returns the operation as an object of the OpenAPI document, under one of the tags of the document.
    pub(crate) fn document(&self, tag: &str) -> Value {
        let mut responses = Map::new();
        for (status, description, content) in &self.answers {
            let mut headers = request_id();
            for (name, description) in &self.headers {
                headers[*name] = json!({"description": description, "schema": {"type": "string"}});
            }
            let answer =
                json!({"description": description, "headers": headers, "content": content});
            responses.insert(status.to_string(), answer);
        }
        for (status, codes) in self.by_status() {
            let answer = responses.entry(status.to_string()).or_insert_with(|| json!({}));
            problems(answer, status, &codes);
        }
        let mut document = json!({
            "operationId": self.name, "tags": [tag], "summary": self.summary,
            "responses": responses,
        });
        if !self.parameters.is_empty() {
            document["parameters"] = self.parameters.clone().into();
        }
        if let Some(body) = &self.body {
            document["requestBody"] = body.clone();
        }
        document
    }

    fn by_status(&self) -> BTreeMap<u16, Vec<&'static str>> {
        let mut by_status: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
        for code in &self.codes {
            by_status.entry(code.status()).or_default().push(code.as_str());
        }
        by_status
    }
}

fn request_id() -> Value {
    let description = "Id of the request. The server uses the id that the client sends, or generates one, and writes it to its log.";
    json!({"x-request-id": {"description": description, "schema": {"type": "string"}}})
}

/// Adds the problem responses of a status.
fn problems(answer: &mut Value, status: u16, codes: &[&str]) {
    let said: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
    let said = said.join(", ");
    let description = match answer["description"].as_str() {
        Some(success) => format!("{success} Or an error with one of these codes: {said}."),
        None => format!("An error with one of these codes: {said}."),
    };
    answer["description"] = description.into();
    let mut headers = request_id();
    if matches!(status, 429 | 503) {
        let seconds = json!({"type": "integer", "minimum": 0});
        headers["Retry-After"] = json!({"description": "Number of seconds to wait before the next request.", "schema": seconds});
    }
    if status == 401 {
        let description = "The authentication scheme that the server expects: a bearer token.";
        headers["WWW-Authenticate"] =
            json!({"description": description, "schema": {"type": "string"}});
    }
    answer["headers"] = headers;
    let only = json!({"properties": {"code": {"enum": codes}, "status": {"const": status}}});
    let example = codes.first().map(|code| example(code, status));
    answer["content"][MEDIA_TYPE] =
        json!({"schema": {"allOf": [reference("Problem"), only]}, "example": example});
}

fn example(code: &str, status: u16) -> Value {
    let title = code.replace('_', " ");
    json!({
        "type": format!("urn:rewheel:problem:{code}"), "title": title, "status": status, "code": code,
        "detail": "what failed", "errors": [], "hint": "what to do",
        "request_id": "5f6a7b8c9d0e1f2a",
    })
}
