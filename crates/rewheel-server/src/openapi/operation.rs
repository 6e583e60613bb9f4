//! Builds one operation of the OpenAPI document.

use super::shape::reference;
use crate::problem::{Code, MEDIA_TYPE};
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

/// A method and a path.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    name: &'static str,
    tag: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Vec<(u16, &'static str, Value)>,
    headers: Vec<(&'static str, &'static str)>,
    codes: Vec<Code>,
}

impl Operation {
    pub(super) fn new(
        (method, path): (&'static str, &'static str),
        (tag, name): (&'static str, &'static str),
        summary: &'static str,
    ) -> Operation {
        Operation {
            method,
            path,
            name,
            tag,
            summary,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            headers: Vec::new(),
            codes: ALWAYS.to_vec(),
        }
    }

    /// Adds a query parameter.
    pub(super) fn query(self, name: &str, description: &str, schema: Value) -> Operation {
        self.parameter("query", name, description, schema)
    }

    /// Adds an optional header.
    pub(super) fn header(self, name: &str, description: &str, schema: Value) -> Operation {
        self.parameter("header", name, description, schema)
    }

    /// Adds a path parameter.
    pub(super) fn at(mut self, name: &str, description: &str, schema: Value) -> Operation {
        self = self
            .parameter("path", name, description, schema)
            .may(&[Code::NotFound, Code::BadQuery]);
        if let Some(parameter) = self.parameters.last_mut() {
            parameter["required"] = true.into();
        }
        self
    }

    fn parameter(mut self, place: &str, name: &str, description: &str, schema: Value) -> Operation {
        self.parameters.push(json!({
            "name": name, "in": place, "description": description, "schema": schema,
        }));
        self
    }

    /// Sets the required request body.
    pub(super) fn takes(self, schema: &str) -> Operation {
        self.body(schema, true)
    }

    /// Sets the optional request body.
    pub(super) fn may_take(self, schema: &str) -> Operation {
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
    pub(super) fn gives(self, status: u16, description: &'static str, schema: &str) -> Operation {
        self.gives_as(status, description, ("application/json", reference(schema)))
    }

    /// Adds a success response that is not JSON.
    pub(super) fn gives_as(
        mut self,
        status: u16,
        description: &'static str,
        (media_type, schema): (&str, Value),
    ) -> Operation {
        self.answers.push((status, description, json!({media_type: {"schema": schema}})));
        self
    }

    /// Adds a header of success responses.
    pub(super) fn with(mut self, name: &'static str, description: &'static str) -> Operation {
        self.headers.push((name, description));
        self
    }

    /// Adds problems that the operation may return.
    pub(super) fn may(mut self, codes: &[Code]) -> Operation {
        for code in codes {
            if !self.codes.contains(code) {
                self.codes.push(*code);
            }
        }
        self
    }

    /// Adds the problems of operations that read the store and have parameters.
    pub(super) fn reads(self) -> Operation {
        self.may(&[Code::BadQuery, Code::StoreUnavailable])
    }

    /// Adds the problems of operations that change something.
    pub(super) fn writes(self) -> Operation {
        self.reads().may(&[Code::ShuttingDown, Code::DiskFull, Code::InvalidField])
    }

    pub(super) fn document(&self) -> Value {
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
            "operationId": self.name, "tags": [self.tag], "summary": self.summary,
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
    let description = "Id of the request, from the client or generated; also in the server log.";
    json!({"x-request-id": {"description": description, "schema": {"type": "string"}}})
}

/// Adds the problem responses of a status.
fn problems(answer: &mut Value, status: u16, codes: &[&str]) {
    let said: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
    let said = said.join(", ");
    let description = match answer["description"].as_str() {
        Some(success) => format!("{success} Or a problem: {said}."),
        None => format!("A problem: {said}."),
    };
    answer["description"] = description.into();
    let mut headers = request_id();
    if matches!(status, 429 | 503) {
        let seconds = json!({"type": "integer", "minimum": 0});
        headers["Retry-After"] =
            json!({"description": "Seconds to wait before the next try.", "schema": seconds});
    }
    if status == 401 {
        let description = "The request needs a token.";
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
