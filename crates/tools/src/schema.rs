//! Argument schemas: from types, and what the model reads when its arguments do not fit one.
//!
//! Invariants:
//! - A schema is self-contained and the same bytes on every run: providers' caches depend on it.
//! - Checking loads nothing: references are refused, so a schema cannot make us read a file or a page.

use boon::{Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// How many complaints are worth reading at once.
const MAX_COMPLAINTS: usize = 5;

/// The schema of a type's arguments, without what only costs tokens.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    if let Value::Object(root) = &mut schema {
        // The tool has a description of its own; the type's is for readers of the code.
        root.remove("description");
    }
    schema
}

/// Drops titles, integer formats and `null` alternatives; the check accepts an optional `null`.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("title").is_some_and(Value::is_string) {
                object.remove("title");
            }
            if object.get("format").is_some_and(|format| format.as_str().is_some_and(is_integer)) {
                object.remove("format");
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            let without_null = object.get("type").and_then(Value::as_array).and_then(|types| {
                match types.as_slice() {
                    [only, null] if null == "null" => Some(only.clone()),
                    _ => None,
                }
            });
            if let Some(only) = without_null {
                object.insert("type".to_owned(), only);
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_integer(format: &str) -> bool {
    format.starts_with("uint") || format.starts_with("int")
}

struct DenyAll;

impl UrlLoader for DenyAll {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("`{url}` is not loaded: schemas stand alone").into())
    }
}

/// One schema, compiled.
pub(crate) struct SchemaCheck {
    schemas: Schemas,
    index: SchemaIndex,
}

impl SchemaCheck {
    /// Compiles a schema, or says what is wrong with it.
    pub fn new(name: &str, schema: &Value) -> Result<Self, String> {
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(DenyAll));
        let url = format!("tool:///{name}");
        compiler.add_resource(&url, schema.clone()).map_err(|error| error.to_string())?;
        let mut schemas = Schemas::new();
        let index = compiler.compile(&url, &mut schemas).map_err(|error| error.to_string())?;
        Ok(Self { schemas, index })
    }

    /// What is wrong with the arguments, a line each; nothing when they fit.
    pub fn complaints(&self, schema: &Value, arguments: &Value) -> Vec<String> {
        let mut complaints = Vec::new();
        if let Err(error) = self.schemas.validate(arguments, self.index) {
            collect(&error, schema, arguments, &mut complaints);
        }
        complaints.truncate(MAX_COMPLAINTS);
        complaints
    }
}

/// Removes `null`s given for fields that need not be there.
pub(crate) fn drop_nulls(schema: &Value, arguments: &mut Value) {
    match arguments {
        Value::Object(fields) => {
            let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            fields.retain(|name, value| !value.is_null() || required.iter().any(|r| r == name));
            for (name, value) in fields {
                drop_nulls(&schema["properties"][name], value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_nulls(&schema["items"], item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect(error: &ValidationError<'_, '_>, schema: &Value, all: &Value, lines: &mut Vec<String>) {
    if !error.causes.is_empty() {
        for cause in &error.causes {
            collect(cause, schema, all, lines);
        }
        return;
    }
    let pointer = error.instance_location.to_string();
    let place = if pointer.is_empty() { "the arguments".to_owned() } else { field(&pointer) };
    let given = all.pointer(&pointer).map(shorten).unwrap_or_default();
    lines.push(match &error.kind {
        ErrorKind::Required { want } => format!("{place}: missing {}", quoted(want)),
        ErrorKind::AdditionalProperties { got } => {
            let got: Vec<_> = got.iter().map(AsRef::as_ref).collect();
            let allowed = allowed_at(schema, &pointer);
            format!("{place}: unknown field {}; allowed are {}", quoted(&got), quoted(&allowed))
        }
        ErrorKind::Enum { want } => {
            let want: Vec<_> = want.iter().filter_map(Value::as_str).collect();
            format!("{place}: {given} is not allowed; use one of {}", quoted(&want))
        }
        ErrorKind::Type { got, want } => {
            let want: Vec<_> = want.iter().map(|kind| kind.to_string()).collect();
            format!("{place}: must be of type {}, not {got}", want.join(" or "))
        }
        other => format!("{place}: {other}"),
    });
}

/// `/steps/0/status` as a reader of JSON would say it: `steps[0].status`.
fn field(pointer: &str) -> String {
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push_str(&format!("[{part}]"));
        } else {
            let dot = if text.is_empty() { "" } else { "." };
            text.push_str(&format!("{dot}{part}"));
        }
    }
    format!("`{text}`")
}

fn allowed_at<'s>(schema: &'s Value, pointer: &str) -> Vec<&'s str> {
    let mut here = schema;
    for part in pointer.split('/').skip(1) {
        let index = part.bytes().all(|byte| byte.is_ascii_digit());
        here = if index { &here["items"] } else { &here["properties"][part] };
    }
    here["properties"]
        .as_object()
        .map(|all| all.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}

fn shorten(value: &Value) -> String {
    windlass_core::text::one_line(&value.to_string(), 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_cannot_make_us_load_anything() {
        for url in ["file:///etc/hostname", "http://127.0.0.1:1/x", "tool:///other"] {
            let schema = serde_json::json!({ "$ref": url });
            assert!(SchemaCheck::new("x", &schema).is_err(), "{url}");
        }
    }
}
