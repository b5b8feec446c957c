//! JSON in which every name of an object occurs once. Parsers differ in which of two they take, so a request that has
//! two is refused: what a proxy has read of it may not be what is done.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value whose objects name nothing twice.
pub struct Unambiguous(pub Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unambiguous(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((name, Unambiguous(value))) = object.next_entry::<String, _>()? {
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format!("`{name}` is given twice")));
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        let read: Result<Unambiguous, _> = serde_json::from_str(text);
        read.map(|read| read.0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"b":[{"a":1,"c":2,"a":3}]}"#, r#"{"a":1,"\u0061":2}"#]
        {
            let refused = read(text).unwrap_err();
            assert!(refused.contains("`a` is given twice"), "{text}: {refused}");
        }
        assert!(read(r#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-4000..4000_i32).prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
            let object = prop::collection::btree_map(".{0,4}", inner, 0..4);
            prop_oneof![list, object.prop_map(|fields| fields.into_iter().collect())]
        })
    }

    proptest! {
        #[test]
        fn whatever_names_nothing_twice_is_read_as_it_is(value in values()) {
            prop_assert_eq!(read(&value.to_string()).unwrap(), value);
        }
    }
}
