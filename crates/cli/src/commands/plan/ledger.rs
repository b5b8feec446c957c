//! The parts of `plan` that keep issues, decisions and snapshots.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};
use windlass_coordinator::plans::{
    DecisionDraft, IssueDraft, PlanningFilter, Snapshot, decision_blocks, issue_blocks,
    snapshot_blocks,
};
use windlass_coordinator::slash::Block;
use windlass_core::planning::Severity;
use windlass_skills::regular;

use super::{PlanAction, PlanContext};
use crate::failure::Failure;
use crate::show::out_json;

/// Arguments of `plan save-snapshot`.
#[derive(Debug, Args)]
pub struct SaveSnapshot {
    /// The task that leaves it
    #[arg(long, value_name = "TASK")]
    pub task: String,
    /// A file with the four fields as JSON, or a snapshot as markdown; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failing_tests", "tech_debt", "open_decisions", "next_task_intent"])]
    pub from: Option<PathBuf>,
    /// Tests that fail, as JSON: [{"file", "testName", "error"}]
    #[arg(long, value_name = "JSON")]
    pub failing_tests: Option<String>,
    /// What was left for later, as JSON: [{"file", "what", "whyDeferred"}]
    #[arg(long, value_name = "JSON")]
    pub tech_debt: Option<String>,
    /// What is not decided, as JSON: ["…"]
    #[arg(long, value_name = "JSON")]
    pub open_decisions: Option<String>,
    /// What the next task should do
    #[arg(long, value_name = "TEXT")]
    pub next_task_intent: Option<String>,
}

/// Carries out what keeps or reads rows and snapshots.
pub(super) fn execute(context: &PlanContext<'_>, action: PlanAction) -> Result<u8, Failure> {
    match action {
        PlanAction::LogIssue { severity, task, owner, description } => {
            log_issue(context, IssueDraft { task, severity, owner, description })
        }
        PlanAction::Issues { task, severity, owner, open } => {
            issues(context, task, severity, owner, open)
        }
        PlanAction::ResolveIssue { issue, resolution } => {
            let notes = context.notes()?;
            let issue = context.app.runtime.block_on(notes.resolve_issue(&issue, resolution))?;
            let text = format!("{} is resolved: {resolution}", issue.id);
            context.print(&issue, || vec![Block::Words { text }]);
            Ok(0)
        }
        PlanAction::LogDecision { title, reasoning, alternatives, task } => {
            log_decision(context, DecisionDraft { task, title, reasoning, alternatives })
        }
        PlanAction::Decisions { task } => {
            let notes = context.notes()?;
            let found = notes.decisions(&PlanningFilter { task, ..notes.filter() })?;
            context.print(&found, || decision_blocks(&found));
            Ok(0)
        }
        PlanAction::SaveSnapshot(save) => save_snapshot(context, &save),
        PlanAction::LoadSnapshot { task } => load_snapshot(context, task.as_deref()),
        PlanAction::Budget { task } => budget(context, task.as_deref()),
        PlanAction::New { .. }
        | PlanAction::List
        | PlanAction::Validate { .. }
        | PlanAction::Show { .. }
        | PlanAction::Activate { .. }
        | PlanAction::Status { .. }
        | PlanAction::Run(_)
        | PlanAction::ValidatePrompts { .. }
        | PlanAction::ListTemplates { .. }
        | PlanAction::Schema
        | PlanAction::Guidance => unreachable!("carried out by the caller"),
    }
}

fn log_issue(context: &PlanContext<'_>, draft: IssueDraft) -> Result<u8, Failure> {
    let plans = context.app.coordinator.plans();
    let active = plans.status(context.directory, None).ok();
    let issue = context.app.runtime.block_on(context.notes()?.log_issue(draft))?;
    if let (Some(plan), Some(task)) = (&active, &issue.task_id) {
        let mut tasks = plan.phases.iter().flat_map(|phase| &phase.tasks);
        if tasks.all(|known| known.id != *task) {
            context.note(&format!("note: the active plan `{}` has no task `{task}`", plan.name));
        }
    }
    context.print(&issue, || vec![Block::Words { text: format!("{} is logged", issue.id) }]);
    Ok(0)
}

fn issues(
    context: &PlanContext<'_>,
    task: Option<String>,
    severity: Option<Severity>,
    owner: Option<String>,
    open: bool,
) -> Result<u8, Failure> {
    let notes = context.notes()?;
    let filter = PlanningFilter { task, severity, owner, open, ..notes.filter() };
    let found = notes.issues(&filter)?;
    context.print(&found, || issue_blocks(&found));
    Ok(0)
}

fn log_decision(context: &PlanContext<'_>, draft: DecisionDraft) -> Result<u8, Failure> {
    let decision = context.app.runtime.block_on(context.notes()?.log_decision(draft))?;
    context.print(&decision, || vec![Block::Words { text: format!("{} is logged", decision.id) }]);
    Ok(0)
}

fn save_snapshot(context: &PlanContext<'_>, args: &SaveSnapshot) -> Result<u8, Failure> {
    let fields = match &args.from {
        Some(path) => read_fields(path)?,
        None => given_fields(args)?,
    };
    let notes = context.notes()?;
    let saved = context.app.runtime.block_on(notes.save_snapshot(&args.task, &fields))?;
    let data = json!({ "path": saved.path, "snapshot": saved.snapshot });
    let text = format!("{} is saved; /clear is now safe", saved.path);
    context.print(&data, || vec![Block::Words { text }]);
    Ok(0)
}

/// The four fields as flags give them; one that is not given is missing.
fn given_fields(args: &SaveSnapshot) -> Result<Map<String, Value>, Failure> {
    let mut fields = Map::new();
    let lists = [
        ("failingTests", "--failing-tests", &args.failing_tests),
        ("techDebt", "--tech-debt", &args.tech_debt),
        ("openDecisions", "--open-decisions", &args.open_decisions),
    ];
    for (field, flag, given) in lists {
        let Some(text) = given else { continue };
        let value = serde_json::from_str(text).map_err(|error| {
            Failure::usage(
                format!("`{flag}` is not JSON: {error}"),
                format!("write `{flag} '[]'` where `{field}` is empty"),
            )
        })?;
        fields.insert(field.to_owned(), value);
    }
    if let Some(text) = &args.next_task_intent {
        fields.insert("nextTaskIntent".to_owned(), text.as_str().into());
    }
    Ok(fields)
}

/// The largest snapshot that is read.
const MAX_SNAPSHOT_BYTES: u64 = 4 << 20;

/// The four fields from a file: JSON, or a snapshot as it is kept.
fn read_fields(path: &Path) -> Result<Map<String, Value>, Failure> {
    let hint = "it holds failingTests, techDebt, openDecisions and nextTaskIntent";
    let place = path.display();
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => regular::read_text(path, MAX_SNAPSHOT_BYTES).map(|found| text = found),
    };
    read.map_err(|error| Failure::usage(format!("`{place}` cannot be read: {error}"), hint))?;
    if text.trim_start().starts_with('{') {
        let wrong = |error| Failure::usage(format!("`{place}` is not JSON: {error}"), hint);
        return serde_json::from_str(&text).map_err(wrong);
    }
    let snapshot = Snapshot::parse(&text);
    let snapshot = snapshot.map_err(|error| Failure::usage(format!("`{place}`: {error}"), hint))?;
    Ok(snapshot.fields())
}

fn load_snapshot(context: &PlanContext<'_>, task: Option<&str>) -> Result<u8, Failure> {
    let found = context.notes()?.load_snapshot(task)?;
    let Some(snapshot) = found else {
        if context.json {
            out_json("null");
        }
        context.note(
            "there is no snapshot; a task of a plan leaves one when it ends, and \
             `windlass plan save-snapshot` saves one",
        );
        return Ok(1);
    };
    context.print(&snapshot, || snapshot_blocks(&snapshot));
    Ok(0)
}

/// How full a task's context is (PL-034).
fn budget(context: &PlanContext<'_>, task: Option<&str>) -> Result<u8, Failure> {
    let tasks = context.app.coordinator.tasks();
    let task = match task {
        Some(text) => tasks.find(text)?,
        None => match tasks.in_directory(context.directory).newest()? {
            Some(newest) => newest.row.id,
            None => {
                let hint = "name a task; see `windlass tasks`";
                return Err(Failure::usage("there is no task of this directory", hint));
            }
        },
    };
    let Some(gauge) = tasks.details(task)?.gauge else {
        return Err(Failure::usage(
            format!("`{task}` has not asked its model yet"),
            "its context is measured with its first request",
        ));
    };
    context.print(&gauge, || {
        let percent = format!("{:.1} % of the context is used", gauge.percent);
        vec![Block::Words {
            text: format!("{task}: {percent}, {}: {}", gauge.level, gauge.recommendation),
        }]
    });
    Ok(0)
}
