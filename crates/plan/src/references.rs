//! Whether a prompt says what to use, and does not only describe it (PL-006, PL-063…067).
//!
//! A prompt names a skill (`/skill-name`), a tool of an MCP server (`mcp:server:tool`, `mcp:tool`), a generator
//! (`nx generate @scope/plugin:gen`) or a command. A description alone leaves the agent to find it again.

use serde::Serialize;

use crate::document::{item_path, key_path};
use crate::{Document, Plan, Problem};

/// What a prompt names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
pub enum Reference {
    Skill(String),
    McpTool(String),
    Generator(String),
    Command(String),
}

/// Directories of a file system: a word that begins with one of them is a path.
const DIRECTORIES: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "skills",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
    "workspace",
];

/// Programs whose name with an argument can only be a command, also outside of backticks.
const PROGRAMS: &[&str] = &[
    "npx",
    "npm",
    "pnpm",
    "yarn",
    "bunx",
    "nx",
    "cargo",
    "pytest",
    "windlass",
    "plan-cli",
    "uvx",
    "pip",
    "pip3",
    "python3",
    "docker",
    "kubectl",
    "terraform",
    "gradle",
    "mvn",
    "dotnet",
];

/// Programs whose name is a common word too: only in backticks are they commands.
const QUOTED_PROGRAMS: &[&str] = &[
    "python", "node", "deno", "bun", "go", "make", "just", "git", "bash", "sh", "uv", "ruby",
    "perl", "php", "java", "curl", "jq", "rg", "grep", "sed", "awk", "find", "cmake", "ctest",
    "tox", "poetry", "rake", "bundle", "mix", "swift", "zig", "tsc", "tsx", "eslint", "ruff",
    "black", "mypy", "gh", "ls", "cat", "psql", "sqlite3", "helm", "ansible", "task",
];

/// What a prompt names first; `None` where it names nothing.
pub fn reference(prompt: &str) -> Option<Reference> {
    let words: Vec<&str> = prompt.split_whitespace().map(bare).collect();
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1).copied().unwrap_or_default();
        if let Some(name) = skill(word) {
            return Some(Reference::Skill(name.to_owned()));
        }
        if let Some(name) = mcp_tool(word) {
            return Some(Reference::McpTool(name.to_owned()));
        }
        if *word == "nx" && matches!(next, "generate" | "g") {
            let generator = words.get(place + 2).filter(|name| is_generator(name));
            if let Some(name) = generator {
                return Some(Reference::Generator((*name).to_owned()));
            }
            continue;
        }
        if PROGRAMS.contains(word) && is_argument(next) {
            return Some(Reference::Command(format!("{word} {next}")));
        }
    }
    quoted_command(prompt).map(Reference::Command)
}

/// The tasks whose prompts name nothing.
pub fn check_prompts(plan: &Plan, document: &Document) -> Vec<Problem> {
    let mut found = Vec::new();
    for (number, phase) in plan.phases.iter().enumerate() {
        let tasks = key_path(&item_path("phases", number), "tasks");
        for (index, task) in phase.tasks.iter().enumerate() {
            let in_steps = task
                .steps
                .iter()
                .any(|step| !matches!(step.step, 0 | 99) && reference(&step.text).is_some());
            if reference(&task.best_pattern_prompt).is_none() && !in_steps {
                let path = key_path(&item_path(&tasks, index), "bestPatternPrompt");
                let message = format!(
                    "the prompt of task `{}` names nothing to use: write `/skill-name`, \
                     `mcp:server:tool`, `nx generate @scope/plugin:gen` or a command",
                    task.id
                );
                found.push(document.problem(&path, message));
            }
        }
    }
    found
}

/// A word without the punctuation around it.
fn bare(word: &str) -> &str {
    let before = |c: char| matches!(c, '(' | '[' | '{' | '"' | '\'' | '`' | '*' | '“' | '„');
    let after = |c: char| {
        matches!(
            c,
            ')' | ']' | '}' | '"' | '\'' | '`' | '*' | '”' | ',' | ';' | '!' | '?' | '.' | ':'
        )
    };
    word.trim_start_matches(before).trim_end_matches(after)
}

/// The name of a skill: one name after one slash.
fn skill(word: &str) -> Option<&str> {
    let name = word.strip_prefix('/')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    (begins && name.chars().all(is_plain) && !DIRECTORIES.contains(&name)).then_some(name)
}

fn mcp_tool(word: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let rest = word.strip_prefix("mcp:")?;
    let parts: Vec<&str> = rest.split(':').collect();
    let fits =
        parts.len() <= 2 && parts.iter().all(|part| !part.is_empty() && part.chars().all(is_plain));
    fits.then_some(word)
}

fn is_generator(name: &str) -> bool {
    let Some((plugin, generator)) = name.split_once(':') else { return false };
    !generator.is_empty() && (plugin.starts_with('@') && plugin.contains('/') || !plugin.is_empty())
}

/// Whether a word can follow the name of a program: a command of it, an option, a file.
fn is_argument(word: &str) -> bool {
    const PROSE: &[&str] = &[
        "and",
        "or",
        "is",
        "are",
        "to",
        "the",
        "a",
        "an",
        "for",
        "in",
        "on",
        "with",
        "so",
        "which",
        "that",
        "if",
        "when",
        "as",
        "at",
        "by",
        "of",
        "should",
        "must",
        "can",
        "will",
        "output",
        "package",
        "packages",
        "workspace",
        "project",
        "projects",
        "command",
        "commands",
    ];
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:=+".contains(c);
    !word.is_empty() && word.chars().all(plain) && !PROSE.contains(&word)
}

/// A command in backticks: a program with an argument, or a script of the project.
fn quoted_command(prompt: &str) -> Option<String> {
    let mut spans = prompt.split('`').skip(1).step_by(2);
    spans.find_map(|span| {
        let mut words = span.split_whitespace();
        let (program, argument) = (words.next()?, words.next());
        let is_script = program.starts_with("./") && program.len() > 2;
        let is_program = PROGRAMS.contains(&program) || QUOTED_PROGRAMS.contains(&program);
        (is_script || is_program && argument.is_some()).then(|| span.trim().to_owned())
    })
}
