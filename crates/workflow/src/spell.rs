//! Prompts of agent steps: the rendered spell, wrapped by a system prompt that holds the output contract (WF-038…052).

use serde_json::{Map, Value};
use windlass_core::event::WorkflowSource;
use windlass_core::model_text::neutralize;
use windlass_core::text::one_line;

use crate::definition::Spell;
use crate::template;

/// Ours, where the project has none of its own.
const SYSTEM_PROMPT: &str = include_str!("prompts/system_prompt.md");

/// What every system prompt must hold (WF-052).
pub const PLACEHOLDER: &str = "spell_content";

/// The longest line about a step.
const ABOUT_CHARS: usize = 200;

/// Why there is no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("spell `{name}`: {source}")]
    Spell { name: String, source: template::Error },
    #[error("the spell: {0}")]
    Inline(template::Error),
    #[error("the system prompt: {0}")]
    System(template::Error),
    #[error("the run has no spell `{0}`")]
    Missing(String),
}

/// The final prompt of a step (WF-050).
pub fn prompt(
    source: &WorkflowSource,
    spell: &Spell,
    variables: &Map<String, Value>,
) -> Result<String, PromptError> {
    let content = content(source, spell, variables)?;
    let mut variables = variables.clone();
    variables.insert(PLACEHOLDER.to_owned(), content.trim_end().into());
    let system = source.system_prompt.as_deref().unwrap_or(SYSTEM_PROMPT);
    let prompt = template::render(system, &variables).map_err(PromptError::System)?;
    // Spells are files of the project. No agent reads a character in them that a person does not see.
    Ok(neutralize(&prompt))
}

/// The spell as it is written; empty where the run has none of that name.
pub fn text<'s>(source: &'s WorkflowSource, spell: &'s Spell) -> &'s str {
    match spell {
        Spell::Inline(text) => text,
        Spell::Named(name) => source.spells.get(name).map_or("", String::as_str),
    }
}

/// The rendered spell, without what wraps it.
fn content(
    source: &WorkflowSource,
    spell: &Spell,
    variables: &Map<String, Value>,
) -> Result<String, PromptError> {
    match spell {
        Spell::Inline(text) => template::render(text, variables).map_err(PromptError::Inline),
        Spell::Named(name) => {
            let text = source.spells.get(name).ok_or_else(|| PromptError::Missing(name.clone()))?;
            template::render(text, variables)
                .map_err(|source| PromptError::Spell { name: name.clone(), source })
        }
    }
}

/// What a step asks for, in a line for people; empty where the spell cannot be rendered.
pub fn about(source: &WorkflowSource, spell: &Spell, variables: &Map<String, Value>) -> String {
    let text = content(source, spell, variables).unwrap_or_default();
    let mut lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    one_line(lines.find(|line| !line.is_empty()).unwrap_or_default(), ABOUT_CHARS)
}

/// Checks a project's own system prompt: what it wraps must have a place in it.
pub fn check_system_prompt(text: &str) -> Result<(), String> {
    template::check(text).map_err(|error| error.to_string())?;
    let marked = |mark: &str| {
        let mut variables = Map::new();
        for name in template::RESERVED {
            variables.insert(name.to_owned(), Value::Object(Map::new()));
        }
        variables.insert(PLACEHOLDER.to_owned(), mark.into());
        template::render(text, &variables)
    };
    // Rendering shows it best. Where other variables are missing, the text must at least name it.
    let holds = match marked("\u{e001}") {
        Ok(rendered) => rendered.contains('\u{e001}'),
        Err(_) => text.contains(&format!(".{PLACEHOLDER}")),
    };
    match holds {
        true => Ok(()),
        false => Err(format!("it must hold `{{{{.{PLACEHOLDER}}}}}`, the place of the spell")),
    }
}
