//! Reads the fields of a JSON object, collecting every mistake.

use crate::conditions::Conditions;
use crate::problem::{Code, FieldError, Problem};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt::{self, Display};

/// The fields of one object of a request. Each is taken once; mistakes are collected.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    at: String,
    found: Vec<(String, &'a RawValue)>,
    errors: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    /// Splits an object into its fields. Fields that are not `known`, or there twice, are mistakes.
    ///
    /// # Errors
    /// Says that it is no JSON, or no object.
    pub(crate) fn read(text: &'a str, at: &str, known: &[&str]) -> Result<Fields<'a>, Problem> {
        let found: Pairs<'a> = serde_json::from_str(text).map_err(|error| bad_json(&error, at))?;
        let mut fields = Fields { at: at.to_owned(), found: Vec::new(), errors: Vec::new() };
        for (name, value) in found.0 {
            if known.is_empty() {
                fields.wrong(&name, "is unknown: there are no fields here");
            } else if !known.contains(&name.as_str()) {
                let message = format!("is unknown: the fields are {}", known.join(", "));
                fields.wrong(&name, message);
            } else if fields.found.iter().any(|(seen, _)| *seen == name) {
                fields.wrong(&name, "is there twice");
            } else {
                fields.found.push((name, value));
            }
        }
        Ok(fields)
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&mut self, name: &str, message: impl Display) {
        self.errors.push(FieldError::new(pointer(&self.at, name), message));
    }

    /// Returns whether a field is still there; one that is `null` is not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.found.iter().any(|(found, raw)| found == name && raw.get() != "null")
    }

    /// Returns a field as it is written, `null` included, and leaves it there.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.found.iter().find(|(found, _)| found == name).map(|(_, raw)| *raw)
    }

    /// Takes a field as it is written, `null` included.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let place = self.found.iter().position(|(found, _)| found == name)?;
        Some(self.found.swap_remove(place).1)
    }

    /// Takes a field that is a string of some form; one that is `null` is not there.
    pub(crate) fn text<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let raw = self.take(name).filter(|raw| raw.get() != "null")?;
        let parsed = match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => parse(&text).map_err(|error| error.to_string()),
            Err(_) => Err("must be a string".to_owned()),
        };
        self.judge(name, parsed)
    }

    /// Takes a field that is a whole number; one that is `null` is not there.
    pub(crate) fn number<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(i64) -> Result<T, E>,
    ) -> Option<T> {
        let raw = self.take(name).filter(|raw| raw.get() != "null")?;
        let parsed = match whole(raw.get()) {
            Some(number) => parse(number).map_err(|error| error.to_string()),
            None => Err("must be a whole number".to_owned()),
        };
        self.judge(name, parsed)
    }

    /// Takes a field that is true or false; one that is `null` is not there.
    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let raw = self.take(name).filter(|raw| raw.get() != "null")?;
        let parsed = raw.get().parse::<bool>().map_err(|_| "must be true or false".to_owned());
        self.judge(name, parsed)
    }

    /// Takes a field that is a list of whole numbers; one that is `null` is empty.
    pub(crate) fn numbers(&mut self, name: &str) -> Vec<u32> {
        let Some(raw) = self.take(name).filter(|raw| raw.get() != "null") else {
            return Vec::new();
        };
        let found = serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok();
        let number = |raw: &&RawValue| u32::try_from(whole(raw.get())?).ok();
        let parsed = found.and_then(|found| found.iter().map(number).collect::<Option<Vec<u32>>>());
        let parsed = parsed.ok_or_else(|| "must be a list of whole numbers".to_owned());
        self.judge(name, parsed).unwrap_or_default()
    }

    /// Takes a field that is a string of some form, or a list of them; one that is `null` is empty.
    pub(crate) fn texts<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let Some(raw) = self.take(name).filter(|raw| raw.get() != "null") else {
            return Vec::new();
        };
        let one = serde_json::from_str::<String>(raw.get()).map(|one| vec![one]);
        let texts = one.or_else(|_| serde_json::from_str::<Vec<String>>(raw.get()));
        let parsed = match texts {
            Ok(texts) => {
                let parsed: Result<Vec<T>, E> = texts.iter().map(|text| parse(text)).collect();
                parsed.map_err(|error| error.to_string())
            }
            Err(_) => Err("must be a string, or a list of strings".to_owned()),
        };
        self.judge(name, parsed).unwrap_or_default()
    }

    /// Returns whether something is wrong with a field.
    pub(crate) fn is_wrong(&self, name: &str) -> bool {
        let at = pointer(&self.at, name);
        self.errors.iter().any(|error| error.field == at)
    }

    /// Notes the mistakes that were found inside a field.
    pub(crate) fn note(&mut self, errors: Vec<FieldError>) {
        self.errors.extend(errors);
    }

    /// Returns what went wrong so far.
    pub(crate) fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }

    fn judge<T>(&mut self, name: &str, parsed: Result<T, String>) -> Option<T> {
        parsed.map_err(|message| self.wrong(name, message)).ok()
    }
}

impl Conditions for Fields<'_> {
    fn all<T, E: Display>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let is_list = |raw: &RawValue| raw.get().starts_with('[');
        let has_list = self.get(name).is_some_and(is_list);
        let found = self.texts(name, parse);
        // A list that somebody computed, and that came out empty, does not mean everything.
        if has_list && found.is_empty() && !self.is_wrong(name) {
            self.wrong(name, "must not be empty: leave it out");
        }
        found
    }

    fn one<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.text(name, parse)
    }
}

/// Reads a whole number. JSON has only one sort of number: some write 3 as `3.0`.
fn whole(text: &str) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if let Ok(number) = text.parse::<i64>() {
        return Some(number);
    }
    let number = serde_json::from_str::<f64>(text).ok()?;
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    is_whole.then_some(number as i64)
}

/// Writes whole numbers without a fraction, wherever they are in a document.
pub(crate) fn without_fractions(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = whole(&number.to_string()) {
                *value = whole.into();
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(without_fractions),
        Value::Object(parts) => parts.values_mut().for_each(without_fractions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Says where JSON ends to be JSON.
pub(crate) fn bad_json(error: &serde_json::Error, at: &str) -> Problem {
    let problem = Problem::new(Code::BadJson, format!("the body is not what it must be: {error}"));
    if at.is_empty() {
        return problem;
    }
    Problem { errors: vec![FieldError::new(at, error)], ..problem }
}

/// Points at a field of the object at `at`.
pub(crate) fn pointer(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// An object's fields in their order, each as it is written.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Pairs<'a>, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry::<String, &RawValue>()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        from.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Fields, pointer, whole};

    #[test]
    fn a_pointer_escapes_what_points() {
        assert_eq!(pointer("/jobs/3", "a/b~c"), "/jobs/3/a~1b~0c");
    }

    #[test]
    fn what_is_no_object_is_bad_json() {
        for bad in ["", "[]", "17", "{\"a\":}", "{\"a\":1", "{\"a\":1}}", "null"] {
            let problem = Fields::read(bad, "", &["a"]).unwrap_err();
            assert_eq!(problem.code, Code::BadJson, "{bad:?}");
        }
    }

    #[test]
    fn unknown_and_repeated_fields_are_named() {
        let fields = Fields::read(r#"{"a":1,"b":2,"a":3}"#, "", &["a"]).unwrap();
        let errors = fields.into_errors();
        let named: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(named, ["/b", "/a"]);
        assert_eq!(errors[0].message, "is unknown: the fields are a");
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for (text, number) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("7e2", Some(700)),
            ("-0", Some(0)),
            ("7.5", None),
            ("1e300", None),
            ("\"7\"", None),
        ] {
            assert_eq!(whole(text), number, "{text}");
        }
    }

    #[test]
    fn null_is_not_there() {
        let mut fields = Fields::read(r#"{"a":null,"b":"x"}"#, "", &["a", "b"]).unwrap();
        assert_eq!(fields.number("a", Ok::<i64, String>), None);
        assert_eq!(fields.text("b", |text| text.parse::<i64>()), None);
        assert_eq!(fields.into_errors().len(), 1);
    }
}
