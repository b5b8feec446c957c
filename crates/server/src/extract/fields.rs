//! Reads what a request carries into its type. What is wrong is said in plain words, with the name of the field.
//!
//! Invariant: no text of a library reaches the sender. A mismatch is found by what a field asks for, so that it can be
//! named; serde's own errors name types of the program.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer as _, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Reads a body of JSON.
pub fn of_json<T: DeserializeOwned>(value: Value) -> Result<T, FieldError> {
    T::deserialize(Given { value, is_text: false })
}

/// Reads the parameters after a `?`: each is a text, and none may be given twice.
pub fn of_parameters<T: DeserializeOwned>(
    given: impl IntoIterator<Item = (String, String)>,
) -> Result<T, FieldError> {
    let mut all = Map::new();
    for (name, text) in given {
        if all.contains_key(&name) {
            return Err(FieldError::of(&name, "is given twice"));
        }
        all.insert(name, Value::String(text));
    }
    T::deserialize(Given { value: Value::Object(all), is_text: true })
}

/// Which field is wrong, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The way to it, as `axes.workMode` or `pictures[2]`; empty for the whole.
    path: String,
    problem: String,
}

impl FieldError {
    fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    fn of(field: &str, problem: impl Into<String>) -> Self {
        Self { path: field.to_owned(), problem: problem.into() }
    }

    /// The same error, seen from one level above.
    fn prefix_path(self, name: &str) -> Self {
        let between = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{name}{between}{}", self.path), ..self }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "the body {}", self.problem),
            path => write!(f, "`{path}` {}", self.problem),
        }
    }
}

impl std::error::Error for FieldError {}

impl serde::de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(format!("is not right: {message}"))
    }

    fn invalid_type(given: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::new(format!("cannot be {}", words(&given)))
    }

    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::new("is out of range")
    }

    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        Self::new("has a wrong number of items")
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("cannot be `{given}`; it is one of: {}", known.join(", ")))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::of(field, format!("is not known; known are: {}", known.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of(field, "is missing")
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::of(field, "is given twice")
    }
}

fn words(given: &Unexpected<'_>) -> &'static str {
    match given {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        Unexpected::Unit | Unexpected::Option => "null",
        _ => "a text",
    }
}

/// A value that a field is read from.
struct Given {
    value: Value,
    /// Whether numbers, too, were written as text.
    is_text: bool,
}

impl Given {
    fn mismatch<T>(&self, wanted: &str) -> Result<T, FieldError> {
        let found = match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        // Of a parameter everything is a text, and a number may be the wrong number.
        let says_little = self.is_text || self.value.is_number() && wanted.contains("number");
        let found = if says_little { String::new() } else { format!(", not {found}") };
        Err(FieldError::new(format!("must be {wanted}{found}")))
    }

    fn number(&self) -> Option<serde_json::Number> {
        match &self.value {
            Value::Number(number) => Some(number.clone()),
            Value::String(text) if self.is_text => text.parse().ok(),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        }
    }
}

macro_rules! numbers {
    ($wanted:literal, $read:ident, $visit:ident: $($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            match self.number().and_then(|number| number.$read()) {
                Some(number) => visitor.$visit(number),
                None => self.mismatch($wanted),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Given {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let is_text = self.is_text;
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                visitor.visit_seq(Items { items: items.into_iter().enumerate(), is_text })
            }
            Value::Object(fields) => {
                visitor.visit_map(Fields { fields: fields.into_iter(), next: None, is_text })
            }
        }
    }

    numbers!("a whole number of 0 or more", as_u64, visit_u64:
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);
    numbers!("a whole number", as_i64, visit_i64:
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64);
    numbers!("a number", as_f64, visit_f64: deserialize_f32 deserialize_f64);

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match &self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::String(text) if self.is_text && text == "true" => visitor.visit_bool(true),
            Value::String(text) if self.is_text && text == "false" => visitor.visit_bool(false),
            Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.mismatch("true or false"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        if self.value.is_string() { self.deserialize_any(visitor) } else { self.mismatch("a text") }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        if self.value.is_array() { self.deserialize_any(visitor) } else { self.mismatch("a list") }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value.is_object() {
            true => self.deserialize_any(visitor),
            false => self.mismatch("an object"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.value {
            Value::String(word) => visitor.visit_enum(word.into_deserializer()),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => self.mismatch(&format!("one of: {}", known.join(", "))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Items {
    items: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    is_text: bool,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = FieldError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, FieldError> {
        let Some((place, value)) = self.items.next() else { return Ok(None) };
        let read = seed.deserialize(Given { value, is_text: self.is_text });
        read.map(Some).map_err(|error| error.prefix_path(&format!("[{place}]")))
    }
}

struct Fields {
    fields: serde_json::map::IntoIter,
    next: Option<(String, Value)>,
    is_text: bool,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FieldError> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        self.next = Some((name.clone(), value));
        let name: StringDeserializer<FieldError> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, FieldError> {
        let (name, value) = self.next.take().unwrap_or_default();
        let read = seed.deserialize(Given { value, is_text: self.is_text });
        read.map_err(|error| error.prefix_path(&name))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Sent {
        goal: String,
        limit: Option<u32>,
        cost: Option<f64>,
        live: Option<bool>,
        word: Option<Word>,
        #[serde(default)]
        inner: Vec<Inner>,
        any: Option<Value>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        One,
        TwoWords,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        data: String,
    }

    fn refused(value: Value) -> String {
        of_json::<Sent>(value).unwrap_err().to_string()
    }

    #[test]
    fn what_fits_is_read() {
        let sent = json!({
            "goal": "x", "limit": 3, "cost": 1, "live": true, "word": "two_words",
            "inner": [{"data": "y"}], "any": [1, -2, 0.5, null, {"k": "v"}],
        });
        let read: Sent = of_json(sent.clone()).unwrap();
        assert_eq!(read, serde_json::from_value(sent).unwrap());
        let given = [("goal", "5"), ("limit", "3"), ("cost", "0.5"), ("live", "true")];
        let read: Sent =
            of_parameters(given.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap();
        assert_eq!(
            (read.goal.as_str(), read.limit, read.cost, read.live),
            ("5", Some(3), Some(0.5), Some(true))
        );
    }

    #[test]
    fn what_does_not_fit_is_named_in_plain_words() {
        for (sent, words) in [
            (json!({"goal": 5}), "`goal` must be a text, not a number"),
            (json!({"goal": null}), "`goal` must be a text, not null"),
            (json!({"limit": 5}), "`goal` is missing"),
            (
                json!({"goal": "x", "limit": "a"}),
                "`limit` must be a whole number of 0 or more, not a text",
            ),
            (json!({"goal": "x", "limit": -1}), "`limit` must be a whole number of 0 or more"),
            (json!({"goal": "x", "limit": 5_000_000_000_u64}), "`limit` is out of range"),
            (
                json!({"goal": "x", "word": "three"}),
                "`word` cannot be `three`; it is one of: one, two_words",
            ),
            (
                json!({"goal": "x", "inner": [{"data": "y"}, {"data": []}]}),
                "`inner[1].data` must be a text, not a list",
            ),
            (json!({"goal": "x", "inner": [{}]}), "`inner[0].data` is missing"),
            (json!(null), "the body must be an object, not null"),
            (json!(["x"]), "the body must be an object, not a list"),
        ] {
            assert_eq!(refused(sent), words);
        }
        assert!(refused(json!({"gaol": "x"})).starts_with("`gaol` is not known; known are: goal,"));
        let given = [("goal", "x"), ("limit", "abc")];
        let given = given.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let refused = of_parameters::<Sent>(given).unwrap_err();
        assert_eq!(refused.to_string(), "`limit` must be a whole number of 0 or more");
    }
}
