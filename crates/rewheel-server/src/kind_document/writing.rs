//! Merges new kind settings into the stored ones: keeps masked secrets and applies patches.

use super::names;
use crate::callback::{MASKED, masked};
use crate::fields::{Fields, pointer};
use crate::problem::{Code, FieldError, Problem};
use rewheel_core::Kind;
use serde_json::{Map, Value};

/// Puts stored secrets back where the settings contain the mask that responses show, so that a client can send back what `GET` returned.
///
/// # Errors
/// Names a mask without a stored secret.
pub(crate) fn with_secrets(text: &str, before: Option<&Kind>) -> Result<String, Problem> {
    // Text that is not JSON has no mask; other code reports it.
    let Ok(mut settings) = serde_json::from_str::<Value>(text) else { return Ok(text.to_owned()) };
    let stored = before.map(stored).unwrap_or_default();
    if !unmask(&mut settings, &stored)? {
        return Ok(text.to_owned());
    }
    // Check before rewriting: the rewritten text would not show repeated fields.
    known_fields(text)?;
    Ok(settings.to_string())
}

/// Merges a patch into the settings of a kind, by RFC 7396.
///
/// # Errors
/// Names an unknown field, or a mask without a stored secret.
pub(crate) fn patched(text: &str, before: &Kind) -> Result<String, Problem> {
    known_fields(text)?;
    let patch: Value =
        serde_json::from_str(text).map_err(|error| crate::fields::bad_json(&error, ""))?;
    let stored = stored(before);
    let mut settings = shown(&stored);
    merge(&mut settings, patch);
    unmask(&mut settings, &stored)?;
    Ok(settings.to_string())
}

/// Rejects unknown and repeated settings.
pub(crate) fn known_fields(text: &str) -> Result<(), Problem> {
    let names = names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let errors = Fields::read(text, "", &names)?.into_errors();
    if errors.is_empty() { Ok(()) } else { Err(Problem::of_fields(Code::InvalidField, errors)) }
}

fn stored(kind: &Kind) -> Value {
    serde_json::from_str(&kind.settings).unwrap_or_else(|_| Value::Object(Map::new()))
}

/// Returns settings as responses show them.
fn shown(settings: &Value) -> Value {
    let mut shown = settings.clone();
    shown.get_mut("callback").into_iter().for_each(masked);
    shown
}

fn merge(into: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *into = patch;
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Value::Object(fields) = into else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Returns whether a stored secret replaced a mask.
fn unmask(settings: &mut Value, stored: &Value) -> Result<bool, Problem> {
    let shown = shown(stored);
    let mut unmasking = Unmasking { kept: false, errors: Vec::new() };
    if let Some(callback) = settings.get_mut("callback") {
        unmasking.put_back(callback, &stored["callback"], &shown["callback"], "/callback");
    }
    let is_clean = unmasking.errors.is_empty();
    if is_clean && unmasking.kept && !goes_to_the_same(&settings["callback"], &stored["callback"]) {
        // Otherwise a client that may write kinds, but not read their secrets, could redirect the secrets to its own host.
        let why = "has a new host, so masked secrets cannot be kept: send the real values of all headers and secrets";
        unmasking.errors.push(FieldError::new("/callback/url", why));
    }
    match unmasking.errors.is_empty() {
        true => Ok(unmasking.kept),
        false => Err(Problem::of_fields(Code::InvalidField, unmasking.errors)),
    }
}

struct Unmasking {
    kept: bool,
    errors: Vec<FieldError>,
}

impl Unmasking {
    fn put_back(&mut self, value: &mut Value, stored: &Value, shown: &Value, at: &str) {
        match value {
            // In a URL only the secret parts are masked.
            Value::String(text) if text.contains(MASKED) => {
                if *value == *shown {
                    *value = stored.clone();
                    self.kept = true;
                } else {
                    let why = "is a masked value, but the server has no stored secret for this field: send the real value, or use `${NAME}`";
                    self.errors.push(FieldError::new(at, why));
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.put_back(value, &stored[name], &shown[name], &pointer(at, name));
                }
            }
            Value::Array(items) => self.put_back_list(items, stored, shown, at),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Replaces a partly masked entry, such as a URL, by the stored entry that is shown in this way.
    fn put_back_parts(&mut self, items: &mut [Value], stored: &Value, shown: &Value, at: &str) {
        for (place, item) in items.iter_mut().enumerate() {
            if item == MASKED || !item.to_string().contains(MASKED) {
                continue;
            }
            match pairs(stored, shown).find(|(_, shown)| *shown == item) {
                Some((stored, _)) => {
                    *item = stored.clone();
                    self.kept = true;
                }
                None => {
                    let why =
                        "contains a masked value that matches no stored entry: send the real value";
                    self.errors.push(FieldError::new(format!("{at}/{place}"), why));
                }
            }
        }
    }

    /// Replaces masks by the stored secrets in order, also if new entries are put between them. If one mask is missing, it is unclear
    /// which secret to remove.
    fn put_back_list(&mut self, items: &mut [Value], stored: &Value, shown: &Value, at: &str) {
        self.put_back_parts(items, stored, shown, at);
        let hidden: Vec<&Value> = pairs(stored, shown)
            .filter(|(_, shown)| *shown == MASKED)
            .map(|(one, _)| one)
            .collect();
        let masks: Vec<&mut Value> = items.iter_mut().filter(|item| *item == MASKED).collect();
        if masks.is_empty() {
            return;
        }
        if masks.len() != hidden.len() {
            let why = format!(
                "has {} masked values, but the server has {} stored secrets: send all masked values back unchanged, or send the real value of each secret",
                masks.len(),
                hidden.len()
            );
            self.errors.push(FieldError::new(at, why));
            return;
        }
        for (mask, secret) in masks.into_iter().zip(hidden) {
            *mask = secret.clone();
        }
        self.kept = true;
    }
}

/// Returns the entries of a stored list, each with its masked form.
fn pairs<'a>(stored: &'a Value, shown: &'a Value) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    stored.as_array().into_iter().flatten().zip(shown.as_array().into_iter().flatten())
}

/// Returns whether a callback has no host besides those of the stored one.
fn goes_to_the_same(callback: &Value, stored: &Value) -> bool {
    let known = hosts(stored);
    hosts(callback).iter().all(|host| known.contains(host))
}

fn hosts(callback: &Value) -> Vec<String> {
    let further = callback["failover"].as_array().into_iter().flatten();
    let further = further.map(|one| if one.is_object() { &one["url"] } else { one });
    std::iter::once(&callback["url"]).chain(further).map(host).collect()
}

/// Returns scheme and host of a URL, or the whole text if it is not a URL.
fn host(url: &Value) -> String {
    let url = url.as_str().unwrap_or_default();
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url[after_scheme..].find(['/', '?', '#']).map_or(url.len(), |at| after_scheme + at);
    url[..end].to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{patched, with_secrets};
    use rewheel_core::{Kind, KindName, Version};
    use serde_json::{Value, json};

    fn kind(settings: &Value) -> Kind {
        Kind {
            name: KindName::parse("hook").unwrap(),
            settings: settings.to_string(),
            takeovers_max: 3,
            on_dead: rewheel_core::OnDead::Continue,
            paused: false,
            parked: None,
            suspects: Vec::new(),
            forced: false,
            generation: 0,
            version: Version::new(1),
        }
    }

    fn hook(secrets: &Value) -> Value {
        let headers = json!({"x-key": "hunter2", "x-env": "${PAY}"});
        let callback =
            json!({"url": "https://pay.example/hook", "headers": headers, "secrets": secrets});
        json!({"attempts_max": 3, "runner": "callback", "callback": callback})
    }

    fn put(text: &Value, before: Option<&Kind>) -> Result<Value, Vec<String>> {
        let text = with_secrets(&text.to_string(), before);
        text.map(|text| serde_json::from_str(&text).unwrap())
            .map_err(|problem| problem.errors.into_iter().map(|error| error.field).collect())
    }

    #[test]
    fn a_mask_keeps_what_is_stored() {
        let stored = hook(&json!(["s1", "s2"]));
        let before = kind(&stored);
        let mut sent = hook(&json!(["***", "***"]));
        sent["callback"]["headers"]["x-key"] = "***".into();
        assert_eq!(put(&sent, Some(&before)), Ok(stored.clone()));
        sent["callback"]["secrets"] = json!(["***", "new", "***"]);
        let rotated = put(&sent, Some(&before)).unwrap();
        assert_eq!(rotated["callback"]["secrets"], json!(["s1", "new", "s2"]));
        sent["callback"]["url"] = "https://PAY.example/other?x=1".into();
        assert!(put(&sent, Some(&before)).is_ok(), "it is the same host");
    }

    #[test]
    fn a_url_with_masked_parts_is_sent_back_as_it_is_shown() {
        let mut stored = hook(&json!(["s1"]));
        let url = "https://user:word@pay.example/hook?key=hunter2";
        stored["callback"]["url"] = url.into();
        stored["callback"]["failover"] = json!(["https://b.example/?key=b", {"url": "https://c.example/?key=c", "region": "eu"}]);
        let before = kind(&stored);
        let shown = super::shown(&stored);
        assert!(!shown.to_string().contains("hunter2") && !shown.to_string().contains("key=b"));
        assert_eq!(put(&shown, Some(&before)), Ok(stored.clone()));
        let mut fewer = shown.clone();
        fewer["callback"]["failover"].as_array_mut().unwrap().remove(0);
        let kept = put(&fewer, Some(&before)).unwrap();
        assert_eq!(kept["callback"]["failover"][0]["url"], "https://c.example/?key=c");
        let mut other = shown.clone();
        other["callback"]["url"] = "https://***@evil.example/hook?***".into();
        assert_eq!(put(&other, Some(&before)), Err(vec!["/callback/url".to_owned()]));
        let patched = patched(r#"{"attempts_max":4}"#, &before).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&patched).unwrap()["callback"]["url"], url);
    }

    #[test]
    fn a_mask_that_stands_for_nothing_is_named() {
        let before = kind(&hook(&json!(["s1", "s2"])));
        let check = |change: fn(&mut Value), before: Option<&Kind>, field: &str| {
            let mut sent = hook(&json!(["***", "***"]));
            change(&mut sent);
            assert_eq!(put(&sent, before), Err(vec![field.to_owned()]));
        };
        check(|_| (), None, "/callback/secrets");
        check(
            |sent| sent["callback"]["secrets"] = json!(["***"]),
            Some(&before),
            "/callback/secrets",
        );
        check(
            |sent| sent["callback"]["headers"]["x-new"] = "***".into(),
            Some(&before),
            "/callback/headers/x-new",
        );
        check(
            |sent| sent["callback"]["headers"]["x-env"] = "***".into(),
            Some(&before),
            "/callback/headers/x-env",
        );
        check(
            |sent| sent["callback"]["url"] = "https://evil.example/".into(),
            Some(&before),
            "/callback/url",
        );
        check(
            |sent| sent["callback"]["failover"] = json!([{"url": "https://evil.example/"}]),
            Some(&before),
            "/callback/url",
        );
        let twice = r#"{"attempts_max":1,"attempts_max":2,"callback":{"secrets":["***","***"],"url":"https://pay.example/"}}"#;
        assert!(with_secrets(twice, Some(&before)).is_err());
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let stored = hook(&json!(["s1"]));
        let patch = |patch: Value| {
            let text = patched(&patch.to_string(), &kind(&stored));
            text.map(|text| serde_json::from_str::<Value>(&text).unwrap()).map_err(|problem| {
                problem.errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
            })
        };
        assert_eq!(patch(json!({})), Ok(stored.clone()));
        let changed =
            patch(json!({"attempts_max": null, "callback": {"headers": {"x-env": null}}})).unwrap();
        assert_eq!(changed.get("attempts_max"), None);
        assert_eq!(changed["callback"]["headers"], json!({"x-key": "hunter2"}));
        assert_eq!(changed["callback"]["secrets"], json!(["s1"]));
        let rotated = patch(json!({"callback": {"secrets": ["new", "***"]}})).unwrap();
        assert_eq!(rotated["callback"]["secrets"], json!(["new", "s1"]));
        let moved = json!({"callback": {"url": "https://evil.example/"}});
        assert_eq!(patch(moved), Err(vec!["/callback/url".to_owned()]));
        let all = json!({"callback": {"url": "https://new.example/", "headers": {"x-key": "k2"}, "secrets": ["s2"]}});
        assert!(patch(all).is_ok(), "nothing is kept");
        assert_eq!(patch(json!({"atempts_max": null})), Err(vec!["/atempts_max".to_owned()]));
    }
}
