//! A kind's failure rules, as written in config files, REST and the store.

use rewheel::{Category, StatusSet};
use rewheel_core::{FailureRule, FailureRules, RuleError, Sticky};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Writes the rules in the form that [`deserialize`] reads.
pub(crate) fn serialize<S: Serializer>(router: &FailureRules, to: S) -> Result<S::Ok, S::Error> {
    router.rules().iter().map(written).collect::<Vec<Value>>().serialize(to)
}

/// Reads rules. Parsed manually, so that every error names the number of its rule.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<FailureRules, D::Error> {
    let mut router = FailureRules::new();
    for (rule, value) in (1..).zip(Vec::<Value>::deserialize(from)?) {
        let wrong = |(key, why)| RuleError { rule, key, why };
        router = router.rule(read(value).map_err(wrong).map_err(D::Error::custom)?);
    }
    Ok(router)
}

/// The invalid part of a rule, and the reason.
type Wrong = (Option<&'static str>, String);

fn read(value: Value) -> Result<FailureRule, Wrong> {
    let Value::Object(mut fields) = value else {
        return Err((None, "must be a table with `when` and `then`".to_owned()));
    };
    let action = match fields.remove("then") {
        Some(Value::String(text)) => {
            text.parse().map_err(|error| (Some("then"), format!("{error}")))?
        }
        Some(_) => return Err((Some("then"), "must be a string such as \"snooze 5m\"".to_owned())),
        None => return Err((Some("then"), "is required: the action".to_owned())),
    };
    let rule = FailureRule::new(action).sticky(match fields.remove("sticky") {
        Some(Value::Bool(true)) => Sticky::Yes,
        Some(Value::Bool(false)) => Sticky::No,
        None | Some(Value::Null) => Sticky::ByWait,
        Some(_) => return Err((Some("sticky"), "must be true or false".to_owned())),
    });
    let when = fields.remove("when");
    no_more(&fields, "when, then, sticky").map_err(|why| (None, why))?;
    match when {
        None | Some(Value::Null) => Ok(rule),
        Some(Value::Object(when)) => looking_at(rule, when),
        Some(_) => Err((Some("when"), "must be a table such as { status = \"409\" }".to_owned())),
    }
}

fn looking_at(mut rule: FailureRule, mut when: Map<String, Value>) -> Result<FailureRule, Wrong> {
    if when.is_empty() {
        let why =
            "is empty: set category, code, status or message, or remove it to match every failure";
        return Err((Some("when"), why.to_owned()));
    }
    for text in texts(&mut when, "category")? {
        let category: Category = text.parse().map_err(|_| {
            let known: Vec<_> = Category::ALL.iter().map(|known| known.as_str()).collect();
            let known = known.join(", ");
            (Some("category"), format!("`{text}` is not one of {known}"))
        })?;
        rule = rule.on_category(category);
    }
    for text in texts(&mut when, "code")? {
        rule = rule.on_code(&text);
    }
    for text in texts(&mut when, "status")? {
        let statuses: StatusSet =
            text.parse().map_err(|error| (Some("status"), format!("{error}")))?;
        if statuses.is_empty() {
            return Err((Some("status"), "must name a status, such as 409 or 5xx".to_owned()));
        }
        rule = rule.on_status(statuses);
    }
    match when.remove("message") {
        None => {}
        Some(Value::String(part)) => rule = rule.on_message(&part),
        Some(_) => return Err((Some("message"), "must be a string".to_owned())),
    }
    no_more(&when, "category, code, status, message").map_err(|why| (Some("when"), why))?;
    Ok(rule)
}

/// Reads one text, or several; a status may be a number.
fn texts(when: &mut Map<String, Value>, name: &'static str) -> Result<Vec<String>, Wrong> {
    let wrong = || (Some(name), "must be a string or a list of strings".to_owned());
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        Value::Number(number) if name != "category" => Ok(number.to_string()),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong())
        }
    };
    match when.remove(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(several)) if several.is_empty() => {
            Err((Some(name), "is empty: name at least one".to_owned()))
        }
        Some(Value::Array(several)) => several.into_iter().map(text).collect(),
        Some(one) => Ok(vec![text(one)?]),
    }
}

fn no_more(fields: &Map<String, Value>, known: &str) -> Result<(), String> {
    match fields.keys().next() {
        Some(name) => Err(format!("unknown key `{name}`: the keys are {known}")),
        None => Ok(()),
    }
}

fn written(rule: &FailureRule) -> Value {
    let mut when = Map::new();
    let categories = rule.categories.iter().map(|category| category.to_string()).collect();
    put(&mut when, "category", categories);
    put(&mut when, "code", rule.codes.clone());
    if !rule.statuses.is_empty() {
        when.insert("status".to_owned(), rule.statuses.to_string().into());
    }
    if let Some(part) = &rule.message {
        when.insert("message".to_owned(), part.as_str().into());
    }
    let mut fields = Map::new();
    if !when.is_empty() {
        fields.insert("when".to_owned(), when.into());
    }
    fields.insert("then".to_owned(), rule.action.to_string().into());
    match rule.sticky {
        Sticky::ByWait => {}
        Sticky::Yes => drop(fields.insert("sticky".to_owned(), true.into())),
        Sticky::No => drop(fields.insert("sticky".to_owned(), false.into())),
    }
    fields.into()
}

/// Writes one text as a string, several as a list.
fn put(when: &mut Map<String, Value>, name: &str, mut texts: Vec<String>) {
    let value = match texts.len() {
        0 => return,
        1 => texts.remove(0).into(),
        _ => texts.into(),
    };
    when.insert(name.to_owned(), value);
}

#[cfg(test)]
mod tests;
