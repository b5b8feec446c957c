//! The parts of `plan` that keep issues, decisions and snapshots.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use windlass_coordinator::plans::{
    DecisionDraft, IssueDraft, PlanningFilter, Snapshot, decision_blocks, issue_blocks,
    snapshot_blocks,
};
use windlass_coordinator::slash::Block;
use windlass_core::planning::Severity;

use super::{Call, PlanAction};
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
pub(super) fn execute(call: &Call<'_>, action: PlanAction) -> Result<u8, Failure> {
    match action {
        PlanAction::LogIssue { severity, task, owner, description } => {
            log_issue(call, IssueDraft { task, severity, owner, description })
        }
        PlanAction::Issues { task, severity, owner, open } => {
            issues(call, task, severity, owner, open)
        }
        PlanAction::ResolveIssue { issue, resolution } => {
            let notes = call.notes()?;
            let issue = call.app.runtime.block_on(notes.resolve_issue(&issue, resolution))?;
            let text = format!("{} is resolved: {resolution}", issue.id);
            call.print(&issue, || vec![Block::Words { text }]);
            Ok(0)
        }
        PlanAction::LogDecision { title, reasoning, alternatives, task } => {
            log_decision(call, DecisionDraft { task, title, reasoning, alternatives })
        }
        PlanAction::Decisions { task } => {
            let notes = call.notes()?;
            let found = notes.decisions(&PlanningFilter { task, ..notes.filter() })?;
            call.print(&found, || decision_blocks(&found));
            Ok(0)
        }
        PlanAction::SaveSnapshot(save) => save_snapshot(call, &save),
        PlanAction::LoadSnapshot { task } => load_snapshot(call, task.as_deref()),
        PlanAction::Budget { task } => budget(call, task.as_deref()),
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

fn log_issue(call: &Call<'_>, draft: IssueDraft) -> Result<u8, Failure> {
    let plans = call.app.coordinator.plans();
    let active = plans.status(call.directory, None).ok();
    let issue = call.app.runtime.block_on(call.notes()?.log_issue(draft))?;
    if let (Some(plan), Some(task)) = (&active, &issue.task_id) {
        let mut tasks = plan.phases.iter().flat_map(|phase| &phase.tasks);
        if tasks.all(|known| known.id != *task) {
            call.note(&format!("note: the active plan `{}` has no task `{task}`", plan.name));
        }
    }
    call.print(&issue, || vec![Block::Words { text: format!("{} is logged", issue.id) }]);
    Ok(0)
}

fn issues(
    call: &Call<'_>,
    task: Option<String>,
    severity: Option<Severity>,
    owner: Option<String>,
    open: bool,
) -> Result<u8, Failure> {
    let notes = call.notes()?;
    let filter = PlanningFilter { task, severity, owner, open, ..notes.filter() };
    let found = notes.issues(&filter)?;
    call.print(&found, || issue_blocks(&found));
    Ok(0)
}

fn log_decision(call: &Call<'_>, draft: DecisionDraft) -> Result<u8, Failure> {
    let decision = call.app.runtime.block_on(call.notes()?.log_decision(draft))?;
    call.print(&decision, || vec![Block::Words { text: format!("{} is logged", decision.id) }]);
    Ok(0)
}

fn save_snapshot(call: &Call<'_>, args: &SaveSnapshot) -> Result<u8, Failure> {
    let fields = match &args.from {
        Some(path) => read_fields(path)?,
        None => given_fields(args)?,
    };
    let notes = call.notes()?;
    let saved = call.app.runtime.block_on(notes.save_snapshot(&args.task, &fields))?;
    let data = json!({ "path": saved.path, "snapshot": saved.snapshot });
    let text = format!("{} is saved; /clear is now safe", saved.path);
    call.print(&data, || vec![Block::Words { text }]);
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

/// The four fields from a file: JSON, or a snapshot as it is kept.
fn read_fields(path: &PathBuf) -> Result<Map<String, Value>, Failure> {
    let hint = "it holds failingTests, techDebt, openDecisions and nextTaskIntent";
    let place = path.display();
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(path).map(|found| text = found),
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

fn load_snapshot(call: &Call<'_>, task: Option<&str>) -> Result<u8, Failure> {
    let found = call.notes()?.load_snapshot(task)?;
    let Some(snapshot) = found else {
        if call.json {
            out_json("null");
        }
        call.note("there is no snapshot");
        return Ok(1);
    };
    call.print(&snapshot, || snapshot_blocks(&snapshot));
    Ok(0)
}

/// How full a task's context is (PL-034).
fn budget(call: &Call<'_>, task: Option<&str>) -> Result<u8, Failure> {
    let tasks = call.app.coordinator.tasks();
    let task = match task {
        Some(text) => tasks.find(text)?,
        None => match tasks.in_directory(call.directory).newest()? {
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
    call.print(&gauge, || {
        let percent = format!("{:.1} % of the context is used", gauge.percent);
        vec![Block::Words {
            text: format!("{task}: {percent}, {}: {}", gauge.level, gauge.recommendation),
        }]
    });
    Ok(0)
}
