//! Builds JSON schemas.

use serde_json::{Map, Value, json};

/// A builder for the schema of an object.
#[derive(Debug, Default)]
pub(super) struct Object {
    fields: Map<String, Value>,
    required: Vec<&'static str>,
}

impl Object {
    pub(super) fn new() -> Object {
        Object::default()
    }

    /// Adds a required field, with its description.
    pub(super) fn has(mut self, name: &'static str, schema: Value, description: &str) -> Object {
        self.required.push(name);
        self.may(name, schema, description)
    }

    /// Adds an optional field, with its description.
    pub(super) fn may(mut self, name: &'static str, schema: Value, description: &str) -> Object {
        self.fields.insert(name.to_owned(), about(schema, description));
        self
    }

    /// The schema of a response: later releases may add fields.
    pub(super) fn open(self, description: &str) -> Value {
        json!({
            "type": "object", "description": description, "properties": self.fields,
            "required": self.required,
        })
    }

    /// The schema of a request: unknown fields are rejected.
    pub(super) fn closed(self, description: &str) -> Value {
        let mut schema = self.open(description);
        schema["additionalProperties"] = false.into();
        schema
    }
}

/// Adds an example.
pub(super) fn example(mut schema: Value, example: Value) -> Value {
    schema["examples"] = json!([example]);
    schema
}

/// Adds a description.
pub(super) fn about(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

pub(crate) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Allows `null` as well.
pub(super) fn or_null(mut schema: Value) -> Value {
    match (schema.get("type"), schema.get("enum")) {
        (Some(Value::String(only)), None) => {
            schema["type"] = json!([only, "null"]);
            schema
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

pub(crate) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

/// A text that is not empty.
pub(crate) fn word() -> Value {
    json!({"type": "string", "minLength": 1})
}

pub(crate) fn flag() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    json!({"type": "string", "enum": words.into_iter().collect::<Vec<_>>()})
}

/// A whole number that is not negative.
pub(super) fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(super) fn between(least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

pub(crate) fn id() -> Value {
    json!({"type": "string", "format": "uuid"})
}

pub(crate) fn kind() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"})
}

/// A time in a response.
pub(super) fn time() -> Value {
    json!({
        "type": "string", "format": "date-time",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
    })
}

/// A time as it is asked for: in any offset.
pub(crate) fn time_asked() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// A duration in a response.
pub(super) fn duration() -> Value {
    json!({"type": "string", "pattern": "^([0-9]+(ns|us|ms|s|m|h|d))+$"})
}

/// A duration in a request.
pub(crate) fn duration_asked() -> Value {
    json!({"type": "string", "pattern": "^([0-9]{1,6}(ms|s|m|h|d)){1,5}$"})
}

/// A name without control characters.
pub(crate) fn name(bytes_max: usize) -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": bytes_max,
        "pattern": "^[^\u{0}-\u{1f}\u{7f}-\u{9f}]+$",
    })
}

/// A rate: a number per unit of time.
pub(super) fn rate() -> Value {
    json!({"type": "string", "pattern": "^([1-9][0-9]{0,5}|1000000)/(s|m|h|d)$"})
}
