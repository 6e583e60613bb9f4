//! Reads the fields of a JSON object and collects all errors.

use crate::conditions::Conditions;
use crate::problem::{Code, FieldError, Problem};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt::{self, Display};

/// Maximum number of fields of an object. Ours have a few dozen at most, and a parsed field needs many times the memory of its shortest
/// text.
const FIELDS_MAX: usize = 256;

/// Maximum number of entries in a list of strings.
const TEXTS_MAX: usize = 100_000;

/// The fields of one object of a request. Each is taken once; errors are collected.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    at: String,
    found: Vec<(String, &'a RawValue)>,
    errors: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    /// Splits an object into its fields. Unknown and repeated fields are errors.
    ///
    /// # Errors
    /// If the text is not JSON, or not an object.
    pub(crate) fn read(text: &'a str, at: &str, known: &[&str]) -> Result<Fields<'a>, Problem> {
        let found: Pairs<'a> = serde_json::from_str(text).map_err(|error| bad_json(&error, at))?;
        let mut fields = Fields { at: at.to_owned(), found: Vec::new(), errors: Vec::new() };
        for (name, value) in found.0 {
            if known.is_empty() {
                fields.wrong(&name, "is unknown: this object must be empty");
            } else if !known.contains(&name.as_str()) {
                let message = format!("is unknown: the known fields are {}", known.join(", "));
                fields.wrong(&name, message);
            } else if fields.found.iter().any(|(seen, _)| *seen == name) {
                fields.wrong(&name, "occurs twice: remove one of the two");
            } else {
                fields.found.push((name, value));
            }
        }
        Ok(fields)
    }

    /// Adds an error.
    pub(crate) fn wrong(&mut self, name: &str, message: impl Display) {
        self.errors.push(FieldError::new(pointer(&self.at, name), message));
    }

    /// Returns whether a field is still there; `null` counts as missing.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.found.iter().any(|(found, raw)| found == name && raw.get() != "null")
    }

    /// Returns where a field is in the request.
    pub(crate) fn pointer(&self, name: &str) -> String {
        pointer(&self.at, name)
    }

    /// Returns a field as written, including `null`, and keeps it.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.found.iter().find(|(found, _)| found == name).map(|(_, raw)| *raw)
    }

    /// Takes a field as written, including `null`.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let place = self.found.iter().position(|(found, _)| found == name)?;
        Some(self.found.swap_remove(place).1)
    }

    /// Takes a string field and parses it; `null` counts as missing.
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

    /// Takes a field that is a whole number; `null` counts as missing.
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

    /// Takes a boolean field; `null` counts as missing.
    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let raw = self.take(name).filter(|raw| raw.get() != "null")?;
        let parsed = raw.get().parse::<bool>().map_err(|_| "must be true or false".to_owned());
        self.judge(name, parsed)
    }

    /// Takes a field that is a list of whole numbers; `null` counts as empty.
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

    /// Takes a field that is a string or a list of strings, and parses them; `null` counts as empty.
    pub(crate) fn texts<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let Some(raw) = self.take(name).filter(|raw| raw.get() != "null") else {
            return Vec::new();
        };
        let no_texts = || "must be a string, or a list of strings".to_owned();
        let parsed = if let Ok(one) = serde_json::from_str::<String>(raw.get()) {
            parse(&one).map(|one| vec![one]).map_err(|error| error.to_string())
        } else if let Ok(list) = List::read(raw.get(), TEXTS_MAX) {
            let text = |raw: &&RawValue| {
                let text = serde_json::from_str::<String>(raw.get()).map_err(|_| no_texts())?;
                parse(&text).map_err(|error| error.to_string())
            };
            match list.count {
                count if count > TEXTS_MAX => {
                    Err(format!("must have {TEXTS_MAX} entries or fewer"))
                }
                _ => list.kept.iter().map(text).collect(),
            }
        } else {
            Err(no_texts())
        };
        self.judge(name, parsed).unwrap_or_default()
    }

    /// Returns whether a field has an error.
    pub(crate) fn is_wrong(&self, name: &str) -> bool {
        let at = pointer(&self.at, name);
        self.errors.iter().any(|error| error.field == at)
    }

    /// Adds errors that were found inside a field.
    pub(crate) fn note(&mut self, errors: Vec<FieldError>) {
        self.errors.extend(errors);
    }

    /// Returns all errors.
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
        // A program may produce an empty list by accident: it does not mean "everything".
        if has_list && found.is_empty() && !self.is_wrong(name) {
            self.wrong(name, "must not be an empty list: add a value, or leave out this condition");
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

/// Parses a whole number. JSON has only one type of number: some clients write 3 as `3.0`.
fn whole(text: &str) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if let Ok(number) = text.parse::<i64>() {
        return Some(number);
    }
    let number = serde_json::from_str::<f64>(text).ok()?;
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
    #[expect(clippy::cast_possible_truncation, reason = "the number is whole and small enough")]
    is_whole.then_some(number as i64)
}

/// Writes whole numbers without a fraction, anywhere in a document.
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

/// Returns the problem for invalid JSON.
pub(crate) fn bad_json(error: &serde_json::Error, at: &str) -> Problem {
    let problem = Problem::new(
        Code::BadJson,
        format!("the body is not valid JSON, or not the expected structure: {error}"),
    );
    if at.is_empty() {
        return problem;
    }
    Problem { errors: vec![FieldError::new(at, error)], ..problem }
}

/// Returns the JSON pointer of a field of the object at `at`.
pub(crate) fn pointer(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// An object's fields in order, each as written.
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
                    if pairs.len() == FIELDS_MAX {
                        let why = format_args!("an object has more than {FIELDS_MAX} fields");
                        return Err(A::Error::custom(why));
                    }
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        from.deserialize_map(Object)
    }
}

/// The first entries of a list, each as written.
///
/// Entries beyond the limit are counted but not kept: a list of a million zeros needs eight times its own size.
#[derive(Debug)]
pub(crate) struct List<'a> {
    pub(crate) kept: Vec<&'a RawValue>,
    pub(crate) count: usize,
}

impl<'a> List<'a> {
    /// Reads a list, and keeps at most `kept_max` entries.
    ///
    /// # Errors
    /// If the text is not JSON, or not a list.
    pub(crate) fn read(text: &'a str, kept_max: usize) -> Result<List<'a>, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(text);
        let list = json.deserialize_seq(ListOf { kept_max })?;
        json.end()?;
        Ok(list)
    }
}

struct ListOf {
    kept_max: usize,
}

impl<'de> Visitor<'de> for ListOf {
    type Value = List<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<List<'de>, A::Error> {
        let mut list = List { kept: Vec::new(), count: 0 };
        while list.count < self.kept_max {
            let Some(entry) = entries.next_element::<&RawValue>()? else { return Ok(list) };
            list.kept.push(entry);
            list.count += 1;
        }
        while entries.next_element::<IgnoredAny>()?.is_some() {
            list.count += 1;
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, FIELDS_MAX, Fields, List, TEXTS_MAX, pointer, whole};

    #[test]
    fn what_is_parsed_does_not_outgrow_what_was_sent() {
        let object = |fields| format!("{{{}}}", vec![r#""":0"#; fields].join(","));
        let read = |text: &str| Fields::read(text, "", &["a"]).map(|fields| fields.errors.len());
        assert_eq!(read(&object(FIELDS_MAX)).unwrap(), FIELDS_MAX);
        let problem = read(&object(FIELDS_MAX + 1)).unwrap_err();
        assert!(problem.detail.contains("more than 256 fields"), "{problem:?}");
        let list = format!("[{}]", ["0"; 10].join(","));
        let list = List::read(&list, 3).unwrap();
        assert_eq!((list.kept.len(), list.count), (3, 10));
        assert!(List::read("[1,2", 3).is_err() && List::read("[1] 2", 3).is_err());
        for (entries, wrong) in [(TEXTS_MAX, 0), (TEXTS_MAX + 1, 1)] {
            let text = format!(r#"{{"a":[{}]}}"#, vec![r#""x""#; entries].join(","));
            let mut fields = Fields::read(&text, "", &["a"]).unwrap();
            let texts = fields.texts("a", |text| Ok::<_, String>(text.len()));
            assert_eq!((texts.len(), fields.errors.len()), (TEXTS_MAX * (1 - wrong), wrong));
        }
    }

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
        assert_eq!(errors[0].message, "is unknown: the known fields are a");
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
