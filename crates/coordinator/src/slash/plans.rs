//! `/plans SUBCOMMAND`: what `windlass plan` does, in the session's directory.

use std::path::Path;
use std::str::FromStr;

use serde_json::{Map, Value};
use windlass_core::axes::{Axes, UnknownValue, parse};
use windlass_core::command::ExecutionConfig;
use windlass_core::planning::{Resolution, Severity};

use super::run::Invocation;
use super::{Block, Effect, Reach, Reply, SlashInput};
use crate::plans::{
    DecisionDraft, IssueDraft, NewActivation, PlanRun, PlanningFilter, TEMPLATES, check_prompts,
    decision_blocks, issue_blocks, plan_blocks, snapshot_blocks,
};
use crate::{Error, Session};

/// What may follow `/plans`, in the order of its completion.
pub(super) const SUBCOMMANDS: &[&str] = &[
    "status",
    "list",
    "show",
    "validate",
    "activate",
    "run",
    "validate-prompts",
    "issues",
    "log-issue",
    "resolve-issue",
    "decisions",
    "log-decision",
    "save-snapshot",
    "load-snapshot",
    "list-templates",
    "budget",
];

/// `/plans` as a person has called it.
#[derive(Clone, Copy)]
pub(super) struct PlanCommand<'a> {
    invocation: Invocation<'a>,
    session: Session<'a>,
    input: &'a SlashInput,
}

impl<'a> PlanCommand<'a> {
    pub(super) fn new(invocation: Invocation<'a>) -> Self {
        let Invocation { session, input, .. } = invocation;
        Self { invocation, session, input }
    }

    /// Carries out a subcommand; without one, shows how far the active plan is.
    pub(super) async fn carry_out(self) -> Result<Reply, Error> {
        let words =
            split(self.invocation.rest).map_err(|problem| self.invocation.usage_error(problem))?;
        let (name, rest) =
            words.split_first().map_or(("status", &[][..]), |(name, rest)| (name.as_str(), rest));
        let options = Options::read(self.invocation, rest)?;
        let directory = self.invocation.own_directory()?;
        let directory = directory.as_path();
        self.check_reach(directory, &options)?;
        let blocks = match name {
            "run" => return self.run_plan(directory).await,
            "log-issue" | "resolve-issue" | "log-decision" | "save-snapshot" | "activate" => {
                self.change_plan(name, directory, &options).await?
            }
            _ => self.read_plan(name, directory, &options)?,
        };
        Ok(self.invocation.reply(blocks))
    }

    /// Whoever may change only what is theirs names no file elsewhere, and nothing of a plan that another activated.
    fn check_reach(self, directory: &Path, options: &Options<'_>) -> Result<(), Error> {
        if self.input.reach == Reach::Everything {
            return Ok(());
        }
        let refused = |what: &str| Err(Error::NotAllowed { what: what.to_owned() });
        let leaves = |name: &str| Path::new(name).is_absolute() || name.contains("..");
        if options.first().is_some_and(leaves) {
            return refused("that is a file outside the session's directory");
        }
        let plans = self.session.coordinator.plans();
        let project = plans.project(directory).display().to_string();
        let mut all = plans.list()?.into_iter().filter(|plan| plan.project == project);
        match all.any(|plan| !self.input.may_see(Some(&plan.activated_by))) {
            true => refused("somebody else has activated a plan of this directory"),
            false => Ok(()),
        }
    }

    /// Whether whoever typed it may see what was logged for a plan of the directory; what was logged for none is
    /// nobody's.
    fn may_see_note(self, plan: Option<&String>) -> bool {
        self.input.may_see(plan.map(|_| self.input.by.as_str()))
    }

    /// The subcommands that only read.
    fn read_plan(
        self,
        name: &str,
        directory: &Path,
        options: &Options<'_>,
    ) -> Result<Vec<Block>, Error> {
        let plans = self.session.coordinator.plans();
        let notes = plans.notes(directory)?;
        let task = options.get("task").map(str::to_owned);
        let filter = PlanningFilter { task, ..notes.filter() };
        Ok(match name {
            "status" => plans.status(directory, options.first())?.blocks(),
            "list" => {
                let files = plans.files(directory);
                let rows = files.iter().map(|path| vec![path.display().to_string()]).collect();
                vec![Block::table(&["PLAN"], &[], rows)]
            }
            "show" => plan_blocks(&plans.read(directory, options.first())?.plan),
            "validate" => {
                let file = plans.read(directory, options.first())?;
                words(format!(
                    "{} is valid: {} tasks",
                    file.path.display(),
                    file.plan.tasks().count()
                ))
            }
            "validate-prompts" => {
                let file = plans.read(directory, options.first())?;
                let found = check_prompts(&file.plan, &file.document);
                let lines = found.iter().map(ToString::to_string);
                words(
                    lines.chain([format!("{} errors", found.len())]).collect::<Vec<_>>().join("\n"),
                )
            }
            "issues" => {
                let severity = options.word(self.invocation, "severity")?;
                let owner = options.get("owner").map(str::to_owned);
                let open = options.get("open").is_some();
                let filter = PlanningFilter { severity, owner, open, ..filter };
                let mut found = notes.issues(&filter)?;
                found.retain(|issue| self.may_see_note(issue.plan_id.as_ref()));
                issue_blocks(&found)
            }
            "decisions" => {
                let mut found = notes.decisions(&filter)?;
                found.retain(|decision| self.may_see_note(decision.plan_id.as_ref()));
                decision_blocks(&found)
            }
            "load-snapshot" => match notes.load_snapshot(options.get("task"))? {
                Some(snapshot) => snapshot_blocks(&snapshot),
                None => words("There is no snapshot."),
            },
            "list-templates" => {
                let rows =
                    TEMPLATES.iter().map(|one| vec![one.name.to_owned(), one.about.to_owned()]);
                vec![Block::table(&["TEMPLATE", "ABOUT"], &[], rows.collect())]
            }
            "budget" => {
                let task = self.session.target(options.first().unwrap_or_default())?;
                match self.session.coordinator.tasks().details(task)?.gauge {
                    Some(gauge) => words(format!(
                        "{:.1} % of the context is used, {}: {}",
                        gauge.percent, gauge.level, gauge.recommendation
                    )),
                    None => words("Its model was not asked yet."),
                }
            }
            other => {
                let known = SUBCOMMANDS.join(", ");
                return Err(self
                    .invocation
                    .usage_error(format!("`{other}` is not one of: {known}")));
            }
        })
    }

    /// The subcommands that write something down.
    async fn change_plan(
        self,
        name: &str,
        directory: &Path,
        options: &Options<'_>,
    ) -> Result<Vec<Block>, Error> {
        let plans = self.session.coordinator.plans();
        let notes = plans.notes(directory)?;
        let task = options.get("task").map(str::to_owned);
        let text = |name: &str| options.get(name).unwrap_or_default().to_owned();
        Ok(match name {
            "activate" => {
                let new = NewActivation {
                    directory,
                    named: options.first(),
                    by: &self.input.by,
                    reach: self.input.reach,
                    again: options.get("again").is_some(),
                };
                plans.activate(new).await?.blocks()
            }
            "log-issue" => {
                let severity: Option<Severity> = options.word(self.invocation, "severity")?;
                let severity = severity.ok_or(Error::MissingField { field: "severity" })?;
                let owner = options.get("owner").map(str::to_owned);
                let description = text("description");
                let draft = IssueDraft { task, severity, owner, description };
                words(format!("{} is logged", notes.log_issue(draft).await?.id))
            }
            "resolve-issue" => {
                let resolution: Option<Resolution> = options.word(self.invocation, "resolution")?;
                let resolution = resolution.ok_or(Error::MissingField { field: "resolution" })?;
                let named =
                    options.first().ok_or_else(|| self.invocation.usage_error("name the issue"))?;
                let issue = notes.find_issue(named)?;
                if !self.may_see_note(issue.plan_id.as_ref()) {
                    return Err(windlass_store::Error::UnknownIssue(named.to_owned()).into());
                }
                let issue = notes.resolve_issue(named, resolution).await?;
                words(format!("{} is resolved: {resolution}", issue.id))
            }
            "log-decision" => {
                let alternatives = options.all("alternatives");
                let alternatives = alternatives.flat_map(|list| list.split(',')).map(str::to_owned);
                let draft = DecisionDraft {
                    task,
                    title: text("title"),
                    reasoning: text("reasoning"),
                    alternatives: alternatives.collect(),
                };
                words(format!("{} is logged", notes.log_decision(draft).await?.id))
            }
            _ => {
                let task = task.ok_or(Error::MissingField { field: "task" })?;
                let fields = snapshot_fields(self.invocation, options)?;
                let saved = notes.save_snapshot(&task, &fields).await?;
                words(format!("{} is saved; /clear is now safe", saved.path))
            }
        })
    }

    /// Begins the run of the active plan. A service drives its tasks; a terminal drives the first that can run.
    async fn run_plan(self, directory: &Path) -> Result<Reply, Error> {
        let state = self.session.state()?;
        let axes = state.axes;
        // A conversation talks; what a plan says is built.
        let axes = Axes { work_mode: windlass_core::axes::WorkMode::Build, ..axes };
        let run = PlanRun {
            axes,
            workspace: directory.to_owned(),
            by: self.input.by.clone(),
            reach: self.input.reach,
            driver: windlass_core::event::Driver::Service,
            session: Some(self.session.id()),
            execution_config: ExecutionConfig { model: state.model, ..ExecutionConfig::default() },
            cost_budget: None,
        };
        let plans = self.session.coordinator.plans();
        let status = plans.begin(plans.need_active(directory)?, run).await?;
        let mut blocks = status.blocks();
        if !self.session.coordinator.queue().has_service()? {
            let text = "No service runs here, so nothing is worked on yet. It begins when a service is started.";
            blocks.push(Block::Words { text: text.to_owned() });
        }
        let first =
            status.phases.iter().flat_map(|phase| &phase.tasks).find_map(|task| task.task_id);
        let reply = self.invocation.reply(blocks);
        Ok(match first {
            Some(task) => reply.with(Effect::Steered { task }),
            None => reply,
        })
    }
}

fn words(text: impl Into<String>) -> Vec<Block> {
    vec![Block::Words { text: text.into() }]
}

/// The four fields of a snapshot, as options give them in JSON.
fn snapshot_fields(
    called: Invocation<'_>,
    options: &Options<'_>,
) -> Result<Map<String, Value>, Error> {
    let mut fields = Map::new();
    for (option, field) in [
        ("failing-tests", "failingTests"),
        ("tech-debt", "techDebt"),
        ("open-decisions", "openDecisions"),
    ] {
        let Some(text) = options.get(option) else { continue };
        let value = serde_json::from_str(text)
            .map_err(|error| called.usage_error(format!("`--{option}` is not JSON: {error}")))?;
        fields.insert(field.to_owned(), value);
    }
    if let Some(text) = options.get("next-task-intent") {
        fields.insert("nextTaskIntent".to_owned(), text.into());
    }
    Ok(fields)
}

/// Words and options after a subcommand.
struct Options<'w> {
    words: Vec<&'w str>,
    options: Vec<(&'w str, &'w str)>,
}

/// Options that take no value.
const FLAGS: &[&str] = &["open", "again"];

/// Options that take one.
const OPTIONS: &[&str] = &[
    "task",
    "severity",
    "owner",
    "description",
    "resolution",
    "title",
    "reasoning",
    "alternatives",
    "failing-tests",
    "tech-debt",
    "open-decisions",
    "next-task-intent",
];

impl<'w> Options<'w> {
    fn read(called: Invocation<'_>, given: &'w [String]) -> Result<Self, Error> {
        let (mut words, mut options) = (Vec::new(), Vec::new());
        let mut rest = given.iter();
        while let Some(word) = rest.next() {
            let Some(option) = word.strip_prefix("--") else {
                words.push(word.as_str());
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            let value = match (FLAGS.contains(&name), OPTIONS.contains(&name), value) {
                (true, _, None) => "",
                (_, true, Some(value)) => value,
                (_, true, None) => rest
                    .next()
                    .ok_or_else(|| called.usage_error(format!("`--{name}` needs a value")))?,
                _ => return Err(called.usage_error(format!("`--{name}` is not an option of it"))),
            };
            options.push((name, value));
        }
        Ok(Self { words, options })
    }

    fn first(&self) -> Option<&'w str> {
        self.words.first().copied()
    }

    fn get(&self, name: &str) -> Option<&'w str> {
        self.all(name).next()
    }

    fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'w str> + 's {
        self.options.iter().filter(move |(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn word<T: FromStr<Err = UnknownValue>>(
        &self,
        called: Invocation<'_>,
        name: &str,
    ) -> Result<Option<T>, Error> {
        let given = self.get(name).map(|word| word.replace('-', "_"));
        given.map(|word| parse(&word).map_err(|unknown| called.usage_error(unknown))).transpose()
    }
}

/// Splits a line into words; quotes keep several together.
fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut is_word) = (Vec::new(), String::new(), false);
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(end), _) if char == end => quote = None,
            (Some('"'), '\\') => word.extend(chars.next()),
            (Some(_), _) => word.push(char),
            (None, '"' | '\'') => (quote, is_word) = (Some(char), true),
            (None, _) if char.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (None, _) => {
                word.push(char);
                is_word = true;
            }
        }
    }
    if let Some(quote) = quote {
        return Err(format!("a {quote} has no end"));
    }
    if is_word {
        words.push(word);
    }
    Ok(words)
}
