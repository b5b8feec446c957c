//! The text of a skill: YAML frontmatter between `---` lines, then markdown; or all of it YAML.
//!
//! Lenient where nothing is lost: keys in kebab or snake case, unknown keys, a list of tools as one
//! string; with a warning also a name with spaces, and a value with a colon that is not in quotes. Strict where a skill could not be called or chosen: name and description.

use std::str::FromStr;

use serde::Deserialize;
use windlass_core::axes::{PermissionProfile, UnknownValue};
use windlass_core::model_text::neutralize;

use crate::skill::{Context, Meta, SideEffects};
use windlass_core::role::Role;

/// As the Agent Skills layout has it.
pub const MAX_NAME_CHARS: usize = 64;
/// As the Agent Skills layout has it; every description is in every system prompt. A longer one is cut.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;

/// Why a text is not a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, where one is to blame.
    pub line: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl ParseError {
    fn new(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }

    /// Reports the line of `yaml` that has the named key.
    fn at_key(mut self, yaml: &str) -> Self {
        let key = self.reason.split('`').nth(1).unwrap_or_default().to_owned();
        let snake = key.replace('-', "_");
        let stands = |line: &str| {
            let written = line.split(':').next().unwrap_or_default().trim();
            !key.is_empty() && (written == key || written == snake)
        };
        let line = yaml.lines().position(stands);
        self.line = self.line.or(line.map(|index| index as u64 + 1));
        self
    }
}

/// A skill's text, read.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedSkill {
    /// What it says about itself.
    pub meta: Meta,
    /// The instructions alone.
    pub body: String,
    /// What should be better, and does not keep it from being used.
    pub warning: Option<ParseError>,
}

/// The keys of a frontmatter.
#[derive(Deserialize)]
struct Keys {
    name: Option<String>,
    description: Option<String>,
    #[serde(rename = "user-invocable", alias = "user_invocable")]
    user_invocable: Option<bool>,
    #[serde(rename = "model-invocable", alias = "model_invocable")]
    model_invocable: Option<bool>,
    #[serde(rename = "side-effects", alias = "side_effects")]
    side_effects: Option<String>,
    #[serde(rename = "permission-profile", alias = "permission_profile")]
    permission_profile: Option<String>,
    #[serde(rename = "allowed-tools", alias = "allowed_tools")]
    allowed_tools: Option<OneOrMany>,
    #[serde(rename = "author-type", alias = "author_type")]
    author_type: Option<String>,
    context: Option<String>,
    #[serde(rename = "genesis-scope", alias = "genesis_scope")]
    genesis_scope: Option<String>,
    hooks: Option<serde_json::Value>,
    /// The instructions, in a file that is all YAML.
    #[serde(alias = "body", alias = "instructions")]
    content: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads a markdown skill; `fallback` names it where it does not name itself.
pub fn parse_markdown(text: &str, fallback: &str) -> Result<ParsedSkill, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (front, body) = split(text)?;
    let placed = |error: ParseError| {
        // The fence is a line, too; what is missing altogether is missed there.
        let ParseError { line, reason } = error.at_key(front);
        ParseError { line: Some(line.map_or(1, |line| line + 1)), reason }
    };
    let (keys, unquoted) = read_keys(front).map_err(placed)?;
    let (meta, warning) = meta(keys, fallback).map_err(placed)?;
    Ok(ParsedSkill { meta, body: body.to_owned(), warning: unquoted.or(warning).map(placed) })
}

/// Reads a skill that is all YAML, its instructions under `content`.
pub fn parse_yaml(text: &str, fallback: &str) -> Result<ParsedSkill, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut keys, unquoted) = read_keys(text)?;
    let body = keys.content.take().ok_or_else(|| ParseError::new("`content` is missing"))?;
    let (meta, warning) = meta(keys, fallback).map_err(|error| error.at_key(text))?;
    let warning = unquoted.or(warning).map(|warning| warning.at_key(text));
    Ok(ParsedSkill { meta, body, warning })
}

/// Frontmatter and what follows it.
fn split(text: &str) -> Result<(&str, &str), ParseError> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        let reason = "the frontmatter is missing: the first line must be `---`".to_owned();
        return Err(ParseError { line: Some(1), reason });
    }
    let start = first.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Ok((
                &text[start..end],
                text[end + line.len()..].trim_start_matches(['\r', '\n']),
            ));
        }
        end += line.len();
    }
    let reason = "the frontmatter has no end: a line `---` is missing".to_owned();
    Err(ParseError { line: Some(1), reason })
}

/// The keys, and a warning where a value had to be put into quotes for them.
fn read_keys(yaml: &str) -> Result<(Keys, Option<ParseError>), ParseError> {
    let error = match read_yaml(yaml) {
        Ok(keys) => return Ok((keys, None)),
        Err(error) => error,
    };
    // What is wrong with the text as it is says more than what is wrong with ours.
    let (quoted, key) = quoted(yaml).ok_or_else(|| error.clone())?;
    let keys = read_yaml(&quoted).map_err(|_| error)?;
    let reason = format!("the value of `{key}` holds a colon and belongs in quotes");
    Ok((keys, Some(ParseError::new(reason))))
}

/// The same YAML with quotes around each one-line value that holds a colon without them, and the key of the first one.
fn quoted(yaml: &str) -> Option<(String, String)> {
    let mut first = None;
    let lines = yaml.lines().map(|line| {
        let Some((key, value)) = line.split_once(": ") else { return line.to_owned() };
        let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        let is_plain = value.trim_start().starts_with(|c: char| c.is_alphanumeric());
        if key.is_empty() || !is_key || !is_plain || !value.contains(':') {
            return line.to_owned();
        }
        first.get_or_insert_with(|| key.to_owned());
        format!("{key}: '{}'", value.trim().replace('\'', "''"))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    Some((text, first?))
}

fn read_yaml(yaml: &str) -> Result<Keys, ParseError> {
    serde_saphyr::from_str(yaml).map_err(|error| {
        let line = error.location().map(|at| at.line()).filter(|&line| line > 0);
        let text = error.without_snippet().to_string();
        // The line is said with the file's name, and there it counts the fence.
        let text = text.split(" at line ").next().unwrap_or(&text);
        ParseError { line, reason: windlass_core::text::one_line(text, 200) }
    })
}

/// What a skill says about itself, and what should be better.
fn meta(keys: Keys, fallback: &str) -> Result<(Meta, Option<ParseError>), ParseError> {
    let (name, renamed) = usable_name(keys.name, fallback)?;
    // Agents read it in their prompts, from skills that nobody may have looked at.
    let mut description = neutralize(keys.description.unwrap_or_default().trim());
    if description.is_empty() {
        return Err(ParseError::new("`description` is missing"));
    }
    let length = description.chars().count();
    let cut = (length > MAX_DESCRIPTION_CHARS).then(|| {
        let kept: String = description.chars().take(MAX_DESCRIPTION_CHARS - 1).collect();
        description = format!("{}…", kept.trim_end());
        ParseError::new(format!(
            "`description` has {length} characters; only the first {MAX_DESCRIPTION_CHARS} are used"
        ))
    });
    let side_effects = match keys.side_effects.as_deref() {
        None | Some("none") => SideEffects::None,
        Some("code-edits" | "code_edits") => SideEffects::CodeEdits,
        Some("production-mutation" | "production_mutation") => SideEffects::ProductionMutation,
        Some(other) => SideEffects::Other(other.to_owned()),
    };
    let meta = Meta {
        name,
        description,
        user_invocable: keys.user_invocable.unwrap_or(true),
        model_invocable: keys.model_invocable.unwrap_or(true)
            && side_effects != SideEffects::ProductionMutation,
        side_effects,
        permission_profile: word("permission-profile", keys.permission_profile)?
            .unwrap_or(PermissionProfile::Restricted),
        allowed_tools: keys.allowed_tools.map(tools),
        author_type: word::<Role>("author-type", keys.author_type)?,
        context: word("context", keys.context)?.unwrap_or(Context::Inline),
        genesis_scope: keys.genesis_scope,
        hooks: keys.hooks,
    };
    Ok((meta, renamed.or(cut)))
}

/// The name that a skill gives itself. One with spaces is a title: the name is that of its place then.
fn usable_name(
    name: Option<String>,
    fallback: &str,
) -> Result<(String, Option<ParseError>), ParseError> {
    let name = name.unwrap_or_else(|| fallback.to_owned());
    let Err(error) = check_name(&name) else { return Ok((name, None)) };
    let is_title = name.contains(' ') && check_name(&name.replace(' ', "-")).is_ok();
    if !is_title || check_name(fallback).is_err() {
        return Err(error);
    }
    let reason = format!("`name` `{name}` holds spaces; the skill is called `{fallback}`");
    Ok((fallback.to_owned(), Some(ParseError::new(reason))))
}

/// One word of a closed set.
fn word<T>(key: &str, given: Option<String>) -> Result<Option<T>, ParseError>
where
    T: FromStr<Err = UnknownValue>,
{
    let read = |text: String| {
        text.parse().map_err(|error: UnknownValue| {
            let UnknownValue { given, allowed, .. } = error;
            ParseError::new(format!("`{key}` may not be `{given}`; allowed: {allowed}"))
        })
    };
    given.map(read).transpose()
}

/// A name is also a directory under `/skills` and a slash command.
fn check_name(name: &str) -> Result<(), ParseError> {
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME_CHARS {
        return Err(ParseError::new(format!(
            "`name` has {length} characters; 1 to {MAX_NAME_CHARS} are allowed"
        )));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if !name.chars().all(allowed) || name.starts_with('.') {
        return Err(ParseError::new(format!(
            "`name` `{}` may hold only letters, digits, `-`, `_`, `.` and `:`, and not begin with a dot",
            name
        )));
    }
    Ok(())
}

fn tools(given: OneOrMany) -> Vec<String> {
    match given {
        OneOrMany::Many(names) => names,
        OneOrMany::One(names) => {
            names.split([',', ' ']).filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
        }
    }
}
