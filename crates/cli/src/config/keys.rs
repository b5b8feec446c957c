//! Which values of a configuration are keys: by their names, by where they stand in an address, and by their look.

use secrecy::ExposeSecret as _;
use url::Url;

use super::kind::Value;

/// Whether a name says that its value is a key.
pub fn names_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["auth", "key", "token", "secret", "cookie", "passw", "credential"];
    words.iter().any(|word| name.contains(word))
}

/// Whether a value looks like a key and not like a path, an address or a word: it is long, has no spaces, and has
/// letters and digits.
pub fn looks_like_key(value: &str) -> bool {
    let has = |of: fn(&char) -> bool| value.chars().any(|char| of(&char));
    value.len() >= 16
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && value.chars().all(|char| char.is_ascii_alphanumeric() || "-_=+".contains(char))
}

/// A name as the mark of a key can hold it.
pub fn mark_name(name: &str) -> String {
    name.replace(|char: char| !char.is_ascii_alphanumeric() && char != '.', "_")
}

/// The keys in what a program or a server is given under a name, such as a variable.
pub fn find_in_text(name: &str, value: &str) -> Vec<(String, String)> {
    if names_key(name) || looks_like_key(value) {
        return spellings(name, value);
    }
    Url::parse(value).map(|url| find_in_address(name, &url)).unwrap_or_default()
}

/// A key under the name of its mark: whole, and without the word before it, as in `Bearer KEY`.
pub fn spellings(name: &str, value: &str) -> Vec<(String, String)> {
    let last = value.rsplit(' ').next().filter(|last| *last != value);
    let all = std::iter::once(value).chain(last);
    all.map(|value| (mark_name(name), value.to_owned())).collect()
}

/// The keys in an address: its password, as it is written there and as it is meant, and the values of its query.
pub fn find_in_address(name: &str, url: &Url) -> Vec<(String, String)> {
    let written = url.password().unwrap_or_default();
    let pair = format!("p={}", written.replace('+', "%2B"));
    let meant = url::form_urlencoded::parse(pair.as_bytes()).map(|(_, value)| value.into_owned());
    let passwords = meant.chain([written.to_owned()]);
    let query = url.query_pairs().filter(|(name, _)| names_key(name));
    let all = passwords.chain(query.map(|(_, value)| value.into_owned()));
    all.filter(|text| !text.is_empty()).map(|text| (mark_name(name), text)).collect()
}

/// The parts of an address's path that look like keys: whoever knows them may post there.
pub fn find_in_path(name: &str, url: &Url) -> Vec<(String, String)> {
    let parts = url.path_segments().into_iter().flatten();
    parts.filter(|part| looks_like_key(part)).map(|part| (mark_name(name), part.into())).collect()
}

/// The keys in the value of a setting.
pub(super) fn find_in_value(name: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Secret(key) => vec![(name.to_owned(), key.expose_secret().to_owned())],
        Value::Url(base) => find_in_address(name, base.expose()),
        _ => Vec::new(),
    }
}
