//! `skills`: lists skills, shows one, makes a new one, and checks for errors.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use windlass_core::shown::{shown, shown_line, shown_path};
use windlass_skills::{Scope, SideEffects, Skill, Skills as SkillSet, inside, parse_markdown};
use windlass_term::{Table, numbers};

use super::eval::{self, Eval};
use super::proposals::{self, Proposals};
use super::{Execute, Start};
use crate::args::values;
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};
use crate::wiring::{Environment, skills};

/// List, show, create, check and evaluate skills
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Skills {
    /// What to do
    #[command(subcommand)]
    pub action: SkillsAction,
    /// The project's directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".", value_parser = values::directory())]
    pub workspace: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  windlass skills list                what agents and you can use here
  windlass skills show deploy         one of them, as it is now
  windlass run \"/deploy the web shop\"  call it by its name
  windlass skills new release-notes   create one, with a first eval case
  windlass skills check               which file is wrong, in which line
  windlass skills eval release-notes  does it help? with it and without
  windlass skills proposals           skills that repeated work suggests";

impl Execute for Skills {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        skills(start, &self)
    }
}

/// What to do with skills.
#[derive(Debug, Subcommand)]
pub enum SkillsAction {
    /// List the skills that can be used here
    List {
        /// Print each skill as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Print one skill as it is now
    Show {
        /// The skill's name, as `windlass skills list` shows it
        name: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a new skill, with a first eval case
    New {
        /// The new skill's name
        name: String,
        /// When agents should use it
        #[arg(long, value_name = "TEXT", default_value = "Say when to use this.")]
        description: String,
        /// Put it into the home directory, for all projects
        #[arg(long)]
        user: bool,
    },
    /// Print what is wrong with skill files; exit code 1 if something is
    Check {
        /// Check only the skill with this name
        name: Option<String>,
    },
    /// Run a skill's eval cases, with and without it
    Eval(Eval),
    /// List, show, accept and reject skills that were proposed for what tasks have in common
    Proposals(Proposals),
}

/// The longest description in a list, in characters.
const SHOWN_CHARS: usize = 60;

fn skills(start: Start, args: &Skills) -> Result<u8, Failure> {
    let workspace = &args.workspace;
    if let SkillsAction::Eval(eval) = &args.action {
        let hooks = start.hooks.clone();
        let environment = start.sandbox(&eval.sandbox).environment()?;
        return eval::eval(&environment, workspace, eval, hooks);
    }
    if let SkillsAction::Proposals(proposed) = &args.action {
        return proposals::proposals(start, proposed);
    }
    let environment = &start.environment()?;
    // So that its keys are hidden in what skills say. One that is wrong is reported where it is needed.
    let _ = environment.config(workspace);
    match &args.action {
        SkillsAction::List { json } => Ok(list(environment, workspace, *json)),
        SkillsAction::Show { name, json } => show(environment, workspace, name, *json),
        SkillsAction::New { name, description, user } => {
            new(environment, workspace, name, description, *user)
        }
        SkillsAction::Check { name } => check(environment, workspace, name.as_deref()),
        SkillsAction::Eval(_) | SkillsAction::Proposals(_) => unreachable!("carried out above"),
    }
}

fn list(environment: &Environment, workspace: &Path, json: bool) -> u8 {
    let found = skills::now(environment, workspace);
    let mut table = Table::new(&["SKILL", "FROM", "CALLED BY", "ABOUT"], &[]);
    let others: Vec<_> = found.contested().filter(|skill| !is_used(&found, skill)).collect();
    for skill in found.list().chain(others.iter().copied()) {
        let used = is_used(&found, skill);
        if json {
            let mut summary = summary(skill);
            summary["used"] = json!(used);
            out_json(&summary.to_string());
            continue;
        }
        let meta = &skill.meta;
        let by = match (meta.model_invocable, meta.user_invocable) {
            _ if !used => "nobody: yours wins",
            (true, true) => "agent, you",
            (true, false) => "agent",
            (false, true) => "you",
            (false, false) => "nobody",
        };
        let about = windlass_core::text::one_line(&meta.description, SHOWN_CHARS);
        let (name, from) = (shown_line(&meta.name), skill.scope.to_string());
        table.row(vec![name, from, by.to_owned(), shown_line(&about)]);
    }
    if !json && found.list().next().is_some() {
        show::print_table(&table);
    }
    if !json && found.list().next().is_none() {
        note("no skills; create one with `windlass skills new NAME`");
    }
    if !json && !others.is_empty() {
        note("your own skill of a name wins until you approve the project's: `windlass trust`");
    }
    found.problems().iter().for_each(|problem| note(&shown(&problem.to_string())));
    0
}

/// Whether a skill is the one that its name stands for.
fn is_used(found: &SkillSet, skill: &Skill) -> bool {
    found.get(&skill.meta.name).is_some_and(|used| used.path == skill.path)
}

/// What lists and pages say of a skill (AX-030).
fn summary(skill: &Skill) -> Value {
    let meta = &skill.meta;
    let side_effects = match &meta.side_effects {
        SideEffects::None => "none",
        SideEffects::CodeEdits => "code-edits",
        SideEffects::ProductionMutation => "production-mutation",
        SideEffects::Other(other) => other,
    };
    json!({
        "name": meta.name, "description": meta.description, "author_type": meta.author_type,
        "context": meta.context, "genesis_scope": meta.genesis_scope, "scope": skill.scope,
        "user_invocable": meta.user_invocable, "model_invocable": meta.model_invocable,
        "side_effects": side_effects, "permission_profile": meta.permission_profile,
        "allowed_tools": meta.allowed_tools, "hooks": meta.hooks, "path": skill.path,
        "version": skill.version,
    })
}

fn show(
    environment: &Environment,
    workspace: &Path,
    name: &str,
    json: bool,
) -> Result<u8, Failure> {
    let found = skills::now(environment, workspace);
    let skill = found.get(name).ok_or_else(|| unknown(&found, name))?;
    if json {
        let mut whole = summary(skill);
        whole["content"] = json!(skill.content);
        whole["body"] = json!(skill.body);
        let files: Vec<_> = skill.resources.iter().map(|file| &file.name).collect();
        whole["files"] = json!(files);
        out_json(&whole.to_string());
    } else {
        out(shown(&skill.content).trim_end());
    }
    Ok(0)
}

pub(super) fn unknown(found: &SkillSet, name: &str) -> Failure {
    let broken = found.problems().iter().find(|problem| {
        problem.path.iter().any(|part| Path::new(part).file_stem().is_some_and(|stem| stem == name))
    });
    match broken {
        Some(problem) => Failure::usage(
            format!("`{name}` cannot be used: {problem}"),
            "fix the file, then check again",
        ),
        None => {
            let names: Vec<_> = found.list().map(|skill| skill.meta.name.as_str()).collect();
            let hint = match names.is_empty() {
                true => "there are no skills here".to_owned(),
                false => format!("the skills here are: {}", names.join(", ")),
            };
            Failure::usage(format!("there is no skill `{name}`"), hint)
        }
    }
}

fn check(environment: &Environment, workspace: &Path, name: Option<&str>) -> Result<u8, Failure> {
    let found = skills::now(environment, workspace);
    if let Some(name) = name {
        let skill = found.get(name).ok_or_else(|| unknown(&found, name))?;
        let about = |problem: &&windlass_skills::Problem| problem.path.starts_with(&skill.path);
        let problems: Vec<_> = found.problems().iter().filter(about).collect();
        problems.iter().for_each(|problem| out(&shown(&problem.to_string())));
        return Ok(u8::from(!problems.is_empty()));
    }
    for problem in found.problems() {
        out(&shown(&problem.to_string()));
    }
    for skill in found.overridden() {
        note(&shown(&format!(
            "{}: another skill `{}` is used instead",
            skill.path.display(),
            skill.meta.name
        )));
    }
    if found.problems().is_empty() {
        note(&format!("{}, nothing wrong", numbers::plural(found.list().count(), "skill")));
    }
    Ok(u8::from(!found.problems().is_empty()))
}

fn new(
    environment: &Environment,
    workspace: &Path,
    name: &str,
    description: &str,
    user: bool,
) -> Result<u8, Failure> {
    let scope = if user { Scope::User } else { Scope::Project };
    let places = skills::directories(environment, workspace);
    let place = places.iter().rev().find(|(_, of)| *of == scope).ok_or_else(|| {
        Failure::usage("there is no directory for it", "run it in a project, or add `--user`")
    })?;
    let quoted = json!(description);
    let text = format!(
        "---\nname: {name}\ndescription: {quoted}\nside-effects: none\n---\n\n# {name}\n\nSay what to do, step by step.\n"
    );
    let refused = match parse_markdown(&text, name) {
        Ok(parsed) => parsed.warning,
        Err(error) => Some(error),
    };
    if let Some(error) = refused {
        return Err(Failure::usage(error.reason, "such as `windlass skills new release-notes`"));
    }
    let folder = place.0.join(name);
    if folder.exists() {
        let message = format!("`{}` already exists", folder.display());
        return Err(Failure::usage(message, "choose another name, or change what is there"));
    }
    // A person may have linked their own directory of skills to anywhere. A project's leads nowhere else.
    let above = if user { 0 } else { 2 };
    let top = place.0.ancestors().nth(above).unwrap_or(&place.0);
    let inner = |name: &str| folder.join(name).strip_prefix(top).map(Path::to_owned);
    let write = || -> anyhow::Result<()> {
        fs::create_dir_all(top)?;
        for directory in ["evals/case-1/hidden", "evals/case-1/work"] {
            inside::make_directory(top, &inner(directory)?)?;
        }
        for (name, text) in [
            ("SKILL.md", text.as_str()),
            ("evals/case-1/task.md", "Say what the agent should do, in a sentence or two.\n"),
            ("evals/case-1/grader.sh", GRADER),
        ] {
            inside::write_new(top, &inner(name)?, text.as_bytes())?;
        }
        Ok(())
    };
    write().with_context(|| format!("`{}` cannot be written", shown_path(&folder)))?;
    out(&shown_path(&folder));
    note("write SKILL.md, then a task and its grader; `windlass skills eval` tries them");
    Ok(0)
}

/// The grader of a new skill.
const GRADER: &str = "\
# Runs in the workspace the agent has left. Exit code 0 is a pass; what is printed last says why not.
# WINDLASS_EVAL_HIDDEN, _TRACE and _RESULT name the hidden files, the trace and the result.
echo 'this grader is not written yet'
exit 1
";
