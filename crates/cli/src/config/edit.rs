//! Changes one setting in the text of the user's file. Comments and order stay as they are.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value as Toml, value};

use super::error::{ConfigError, Source};
use super::kind::{Value, ValueKind};
use super::settings::{MODEL_FACTS, PROVIDER_FIELDS, Setting};
use super::suggest;
use super::types::Timeout;
use super::written::Raw;

/// The text with one more setting, or with another value of it. The value is read as in a variable.
pub fn set(text: &str, key: &str, word: &str) -> Result<String, ConfigError> {
    // It is not in the file yet, so an error names the setting and no place.
    set_value(text, key, word).map_err(|error| ConfigError { source_place: None, ..error })
}

fn set_value(text: &str, key: &str, word: &str) -> Result<String, ConfigError> {
    let source = Source::Default;
    let (path, setting) = find(key).ok_or_else(|| suggest::unknown_key(key, source.clone()))?;
    if !setting.kind.fits_a_word() {
        let problem =
            format!("holds more than one value; allowed: {}", setting.kind.allowed_values());
        let hint = "edit your configuration file: `windlass config path` says where it is";
        return Err(ConfigError::at(key, source, problem).hint(hint));
    }
    let raw = Raw::Word(word.to_owned());
    let read = setting
        .kind
        .read(&raw)
        .map_err(|refused| super::layers::refusal(setting, key, &raw, source.clone(), refused.0))?;
    let mut document = parse(text)?;
    let (last, tables) = path.split_last().ok_or_else(|| not_a_table(key))?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        table = subtable(table, name).ok_or_else(|| not_a_table(key))?;
    }
    // A mode that has a table keeps its effort.
    let is_table = table.get(last).is_some_and(Item::is_table_like);
    let last = if matches!(setting.kind, ValueKind::Mode) && is_table {
        table = subtable(table, last).ok_or_else(|| not_a_table(key))?;
        "model"
    } else {
        last.as_str()
    };
    match table.get_mut(last).and_then(Item::as_value_mut) {
        Some(held) => replace(held, toml(&read, word)),
        None => {
            table.insert(last, value(toml(&read, word)));
        }
    }
    Ok(document.to_string())
}

/// The text without a setting.
pub fn unset(text: &str, key: &str) -> Result<String, ConfigError> {
    let (path, _) = find(key).ok_or_else(|| unknown(key))?;
    let mut document = parse(text)?;
    let (last, tables) = path.split_last().ok_or_else(|| not_a_table(key))?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        let next = table.get_mut(name).and_then(Item::as_table_like_mut);
        table = next.ok_or_else(|| not_set(key))?;
    }
    table.remove(last).ok_or_else(|| not_set(key))?;
    Ok(document.to_string())
}

/// The text with other keys for an action of the terminal; without any, its defaults count again.
pub fn bind(text: &str, action: &str, keys: Option<&str>) -> Result<String, ConfigError> {
    let mut document = parse(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in ["tui", "keys"] {
        table = subtable(table, part).ok_or_else(|| not_a_table("tui.keys"))?;
    }
    match (keys, table.get_mut(action).and_then(Item::as_value_mut)) {
        (Some(keys), Some(held)) => replace(held, Toml::from(keys)),
        (Some(keys), None) => {
            table.insert(action, value(keys));
        }
        (None, _) => {
            table.remove(action);
        }
    }
    Ok(document.to_string())
}

/// Puts another value in place of one; a comment after it stays.
fn replace(held: &mut Toml, new: Toml) {
    let decor = held.decor().clone();
    *held = new;
    *held.decor_mut() = decor;
}

/// There is no such setting.
pub fn unknown(key: &str) -> ConfigError {
    let error = suggest::unknown_key(key, Source::Default);
    ConfigError { source_place: None, ..error }
}

fn not_set(key: &str) -> ConfigError {
    let problem = format!("`{key}` is not in your configuration file");
    ConfigError::missing(problem, "see where it comes from with `windlass config --changed`")
}

/// The text with one more MCP server: a program and its arguments, or an address.
pub fn add_server(text: &str, name: &str, server: &NewServer) -> Result<String, ConfigError> {
    let mut document = parse(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in ["mcp", "servers"] {
        table = subtable(table, part).ok_or_else(|| not_a_table("mcp.servers"))?;
    }
    if table.contains_key(name) {
        let problem = format!("there is already an MCP server `{name}` in your configuration file");
        return Err(ConfigError::missing(problem, "choose another name, or remove it there"));
    }
    let mut entry = Table::new();
    match server {
        NewServer::Program { command, args } => {
            entry.insert("command", value(command));
            if !args.is_empty() {
                entry.insert("args", value(args.iter().collect::<Array>()));
            }
        }
        NewServer::Address(url) => {
            entry.insert("url", value(url));
        }
    }
    table.insert(name, Item::Table(entry));
    Ok(document.to_string())
}

/// An MCP server as it is added.
pub enum NewServer {
    Program {
        command: String,
        args: Vec<String>,
    },
    /// Where it answers over HTTP.
    Address(String),
}

fn parse(text: &str) -> Result<DocumentMut, ConfigError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let problem = format!("the file is not valid TOML: {}", error.message());
        ConfigError::missing(problem, "correct it first")
    })
}

fn not_a_table(key: &str) -> ConfigError {
    let problem = format!("`{key}` cannot be set: a part of its name is a value in the file");
    ConfigError::missing(problem, "correct the file first")
}

/// The table of this name; it is added if it is missing.
fn subtable<'a>(table: &'a mut dyn TableLike, name: &str) -> Option<&'a mut dyn TableLike> {
    let made = || {
        let mut made = Table::new();
        // A table that holds only tables needs no heading of its own.
        made.set_implicit(true);
        Item::Table(made)
    };
    table.entry(name).or_insert_with(made).as_table_like_mut()
}

/// The names that lead to a setting, and the setting: `agent.max_iterations`, `models."gpt-4o".input`,
/// `models.providers.acme.base`, `models.deep.effort`.
fn find(key: &str) -> Option<(Vec<String>, &'static Setting)> {
    if let Some(setting) = Setting::find(key) {
        let path = key.split('.').map(str::to_owned).collect();
        return Some((path, setting));
    }
    let path = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
    if let Some((name, field)) =
        key.strip_prefix("models.providers.").and_then(|rest| rest.rsplit_once('.'))
    {
        let known = PROVIDER_FIELDS.iter().find(|known| known.key == field)?;
        return Some((path(&["models", "providers", name, field]), known));
    }
    let (model, field) = key.strip_prefix("models.")?.rsplit_once('.')?;
    if ["fast", "smart", "deep"].contains(&model) && ["model", "effort"].contains(&field) {
        let setting = Setting::find(&format!("models.{field}"))?;
        return Some((path(&["models", model, field]), setting));
    }
    let fact = MODEL_FACTS.iter().find(|fact| fact.key == field)?;
    let model = model.trim_matches('"').to_owned();
    Some((vec!["models".to_owned(), model, field.to_owned()], fact))
}

fn toml(read: &Value, word: &str) -> Toml {
    let text = || Toml::from(word.trim());
    match read {
        Value::Whole(number) => i64::try_from(*number).map_or_else(|_| text(), Toml::from),
        Value::Number(number) => Toml::from(*number),
        Value::Switch(on) => Toml::from(*on),
        Value::List(items) => Toml::from(items.iter().collect::<Array>()),
        Value::Time(..) | Value::Timeout(Timeout::After(_)) | Value::Size(_) => {
            word.trim().parse::<i64>().map_or_else(|_| text(), Toml::from)
        }
        Value::Text(_)
        | Value::Secret(_)
        | Value::Url(_)
        | Value::Listen(_)
        | Value::Sandbox(_)
        | Value::Timeout(Timeout::Off | Timeout::ByOrigin)
        | Value::Model(_)
        | Value::Mode(_)
        | Value::Pairs(_)
        | Value::Deny(_)
        | Value::Classes(_)
        | Value::Tables(_) => text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_and_the_effort_of_a_mode_are_set() {
        let text = set("", "models.providers.acme.base", "https://acme.example/v1").unwrap();
        let text = set(&text, "models.deep.effort", "high").unwrap();
        insta::assert_snapshot!(set(&text, "models.deep", "acme/big").unwrap(), @r#"
        [models.providers.acme]
        base = "https://acme.example/v1"

        [models.deep]
        effort = "high"
        model = "acme/big"
        "#);
        assert!(set("", "models.deep.effort", "ultra").is_err());
    }

    #[test]
    fn a_setting_is_changed_and_comments_stay() {
        let text = "# mine\n[agent]\nmax_iterations = 5 # enough\n";
        insta::assert_snapshot!(set(text, "agent.max_iterations", "50").unwrap(), @r"
        # mine
        [agent]
        max_iterations = 50 # enough
        ");
        let mut all = String::new();
        for (key, word) in [
            ("models.smart", "openai/gpt-4o"),
            ("models.\"gpt-4.1\".input", "2.5"),
            ("agent.bash_timeout_seconds", "2m"),
            ("sandbox.allow_hosts", "crates.io, *.crates.io"),
            ("policy.allow_unrestricted", "yes"),
        ] {
            all = set(&all, key, word).unwrap();
        }
        insta::assert_snapshot!(all, @r#"
        [models]
        smart = "openai/gpt-4o"

        [models."gpt-4.1"]
        input = 2.5

        [agent]
        bash_timeout_seconds = "2m"

        [sandbox]
        allow_hosts = ["crates.io", "*.crates.io"]

        [policy]
        allow_unrestricted = true
        "#);
    }

    #[test]
    fn keys_are_bound_and_comments_stay() {
        let text = "# mine\n[tui.keys]\neditor = \"f4\" # as at work\n";
        let text = bind(text, "editor", Some("f5")).unwrap();
        let text = bind(&text, "diff", Some("ctrl+x,d")).unwrap();
        insta::assert_snapshot!(text, @r#"
        # mine
        [tui.keys]
        editor = "f5" # as at work
        diff = "ctrl+x,d"
        "#);
        let text = bind(&bind("", "diff", Some("f6")).unwrap(), "diff", None).unwrap();
        assert_eq!(text.trim(), "[tui.keys]");
        assert!(bind("tui = 1", "diff", Some("f6")).is_err());
    }

    #[test]
    fn a_server_is_added_once() {
        let program = |command: &str, args: &[&str]| NewServer::Program {
            command: command.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
        };
        let text = add_server("", "time", &program("uvx", &["mcp-server-time"])).unwrap();
        let address = NewServer::Address("https://mcp.example".to_owned());
        let text = add_server(&text, "docs", &address).unwrap();
        insta::assert_snapshot!(text, @r#"
        [mcp.servers.time]
        command = "uvx"
        args = ["mcp-server-time"]

        [mcp.servers.docs]
        url = "https://mcp.example"
        "#);
        assert!(add_server(&text, "time", &program("x", &[])).is_err());
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_its_reason() {
        let refused = |key, word| set("", key, word).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                refused("agent.max_iterations", "none"),
                refused("agent.max_iteration", "5"),
                refused("policy.deny", "rm"),
                set("agent = 1", "agent.max_iterations", "5").unwrap_err().to_string(),
                set("[agent", "agent.max_iterations", "5").unwrap_err().to_string(),
            ]
            .join("\n"),
            @r#"
        `agent.max_iterations` = `none`: allowed: a whole number from 1 to 1000000
        `agent.max_iteration`: there is no such setting (did you mean `agent.max_iterations`?)
        `policy.deny`: holds more than one value; allowed: a list of `{ pattern = "…", reason = "…" }` (edit your configuration file: `windlass config path` says where it is)
        `agent.max_iterations` cannot be set: a part of its name is a value in the file (correct the file first)
        the file is not valid TOML: unclosed table, expected `]` (correct it first)
        "#
        );
    }
}
