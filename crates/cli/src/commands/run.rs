//! `run`: work on a goal here and show it.

use std::fs::OpenOptions;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use windlass_coordinator::{
    CoordinatorLimits, Error as Coordinated, FollowUp, Share, Submission, SubmitOptions, TaskDraft,
};
use windlass_core::axes::{Axes, ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::command::{CompactionOverrides, ExecutionConfig, Outage, TaskCommand};
use windlass_core::event::{Deadline, Driver};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::schedule::DeadlineAction;
use windlass_core::shown::shown;
use windlass_model::Recorder;

use super::drive::drive;
use super::goal::Goal;
use super::{AppContext, Execute, Start, follow_up, mail};
use crate::args::{DeadlineArgs, RunArgs};
use crate::config::{self, Config, Flag, ModelChoice};
use crate::failure::Failure;
use crate::show::{note, out, out_json};
use crate::times;
use crate::wiring::{self, Project, mcp, models, place, skills};

/// Work on a goal until it is done
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// The goal; `-` reads it from standard input, `@FILE` from a file. In a longer text `@FILE` attaches
    /// that file, and piped input is also attached
    pub goal: Option<String>,
    /// How it is run
    #[command(flatten)]
    pub options: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass run \"fix the flaky test\"
  windlass run @goal.md --constraint \"keep the public API\" --timeout 1800
  git diff | windlass run -p \"review this diff\" --mode review
  windlass run \"explain @src/parser.rs\"
  windlass run --continue \"now add a test\"
  windlass run \"upgrade the parser\" --model anthropic/NAME --control assisted
  windlass run \"ping\" --model script:replies.yaml --json

Ctrl-C once pauses the task and says how to resume it; twice stops at once.";

impl Execute for Run {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let (app, project) = start.app_for_run(&self.options)?;
        run(&app, &project, self.goal.as_deref(), &self.options)
    }
}

pub(super) fn run(
    app: &AppContext,
    project: &Project,
    goal: Option<&str>,
    args: &RunArgs,
) -> Result<u8, Failure> {
    check_review(args)?;
    if args.continues {
        return continue_last(app, project, goal, args);
    }
    let servers =
        args.mcp_config.as_deref().map(|path| mcp::read_task_servers(&app.environment, path));
    let servers = servers.transpose()?;
    let (draft, limits) = draft(app, project, goal, args)?;
    if args.detach {
        return detach(app, draft, limits, args, servers.as_ref());
    }
    app.runtime.block_on(async {
        let task = app.coordinator.clone().with_limits(limits).tasks().submit(draft).await?;
        keep(app, task, servers.as_ref())?;
        drive(app, task, &args.printing).await
    })
}

/// Keeps the MCP servers that a task was given, before it runs.
fn keep(app: &AppContext, task: TaskId, servers: Option<&config::File>) -> Result<(), Failure> {
    if let Some(servers) = servers {
        let data = app.environment.data.display();
        mcp::keep(&app.environment, task, servers)
            .with_context(|| format!("`{data}` cannot be written to"))?;
    }
    Ok(())
}

/// Hands a goal to the service and returns.
fn detach(
    app: &AppContext,
    draft: TaskDraft,
    limits: CoordinatorLimits,
    args: &RunArgs,
    servers: Option<&config::File>,
) -> Result<u8, Failure> {
    let (coordinator, now) = (&app.coordinator, app.coordinator.now());
    let session_id = match &args.session {
        None => SessionId::new(now),
        Some(text) => coordinator.sessions().find(text)?.ok_or_else(|| {
            let hint = "list them with `windlass sessions`; without `--session` a new one is made";
            Failure::usage(format!("there is no session `{text}`"), hint)
        })?,
    };
    let command = TaskCommand {
        constraints: draft.constraints,
        execution_config: draft.execution_config,
        ..TaskCommand::new(now, session_id, draft.goal)
    };
    let options = SubmitOptions {
        user_id: draft.user_id,
        axes: draft.axes,
        workspace: Some(draft.workspace),
        added: draft.added,
        cost_budget: draft.cost_budget,
        deadline: draft.deadline,
        outage: Outage::Park,
        continues: None,
        pictures: draft.pictures,
    };
    keep(app, command.task_id, servers)?;
    let coordinator = coordinator.clone().with_limits(limits);
    let submitted = app.runtime.block_on(coordinator.tasks().submit_command(command, options))?;
    let place = submitted.place.map(|place| format!(", number {place} in line of its session"));
    if args.printing.json {
        let Submission { task, place, .. } = submitted;
        out_json(&json!({ "task_id": task, "session_id": session_id, "place": place }).to_string());
    } else {
        out(&submitted.task.to_string());
    }
    if args.printing.shows_progress() {
        let place = place.unwrap_or_default();
        let task = submitted.task;
        note(&format!(
            "queued for `windlass serve`{place}; watch it with `windlass attach {task}`"
        ));
        mail::warn_without_service(app)?;
    }
    Ok(0)
}

/// The task that is wanted, and the limits it is made under.
fn draft(
    app: &AppContext,
    project: &Project,
    goal: Option<&str>,
    args: &RunArgs,
) -> Result<(TaskDraft, CoordinatorLimits), Failure> {
    let wishes = execution_config(args);
    place::check(&app.environment, &args.workspace, args.place.confirm_workspace)?;
    // Refused here rather than after a task was made for it.
    let config = project.config().for_task(&wishes)?;
    let axes = axes(args, Axes::headless(), config.policy.profile);
    config.permits(axes.permission_profile)?;
    let choice = config.models.for_mode(axes.model_mode)?;
    follow_up::usable_model(project, &choice)?;
    let budget = budget(&config, &choice.model, args.budget)?;
    args.record.as_deref().map(check_recording).transpose()?;
    let mut goal = Goal::read(goal, Path::new("."))?;
    let pictures = goal.keep_pictures(&app.coordinator, config.facts(&choice.model).vision)?;
    goal.text = skills::goal(project, &axes, goal.text)?;
    if args.printing.shows_progress() {
        print_notices(app, project)?;
    }
    let draft = TaskDraft {
        user_id: Some(app.environment.user()),
        goal: goal.with_attachments(),
        pictures,
        constraints: constraints(args),
        workspace: args.workspace.clone(),
        added: place::added_directories(&app.environment, &args.place.add_dir)?,
        share: if args.share { Share::Allowed } else { Share::Alone },
        axes,
        // An accepted plan is carried out by another mode's model, unless the person has named one.
        execution_config: match axes.work_mode {
            WorkMode::Plan => wishes,
            WorkMode::Chat
            | WorkMode::Build
            | WorkMode::Review
            | WorkMode::Repair
            | WorkMode::Research => ExecutionConfig {
                model: Some(choice.model.to_string()),
                effort: choice.effort,
                ..wishes
            },
        },
        resume_context: None,
        driver: Driver::Foreground,
        cost_budget: budget,
        deadline: deadline(app, &args.deadline)?,
        dependency_blockers: Vec::new(),
    };
    Ok((draft, wiring::limits(&config)))
}

/// Continues the last task of this directory: an ended one by a follow-up, any other by a message.
fn continue_last(
    app: &AppContext,
    project: &Project,
    goal: Option<&str>,
    args: &RunArgs,
) -> Result<u8, Failure> {
    let tasks = app.coordinator.tasks();
    let last = tasks
        .in_directory(&follow_up::real_directory(&args.workspace))
        .newest()?
        .ok_or_else(|| {
            let hint =
                "start one with `windlass run \"…\"`, or name one: `windlass send TASK \"…\"`";
            Failure::usage("there is no task of this directory to continue", hint)
        })?;
    let before = tasks.state(last.row.id)?;
    if let Some(process) = last.driven_by {
        let task = before.id();
        let hint = format!("send it a message: `windlass send {task} \"…\"`");
        return Err(Failure::usage(format!("`{task}` is running in process {process}"), hint));
    }
    let mut goal = Goal::read(goal, Path::new("."))?;
    goal.text = skills::goal(project, &before.axes, goal.text)?;
    let mut wanted = FollowUp {
        constraints: constraints(args),
        share: if args.share { Share::Allowed } else { Share::Alone },
        axes: Some(axes(args, before.axes, None)),
        execution_config: execution_config(args),
        deadline: deadline(app, &args.deadline)?,
        ..FollowUp::message("", app.environment.user())
    };
    let wishes = wanted.execution_config_after(before.execution_config());
    let (config, choice) = follow_up::check_model(app, &before, &wishes)?;
    wanted.pictures = goal.keep_pictures(&app.coordinator, config.facts(&choice.model).vision)?;
    wanted.text = goal.with_attachments();
    if wanted.text.trim().is_empty() {
        return Err(Coordinated::EmptyGoal.into());
    }
    config.permits(wanted.axes.unwrap_or(before.axes).permission_profile)?;
    wanted.cost_budget = budget(&config, &choice.model, args.budget)?;
    if args.printing.shows_progress() {
        print_notices(app, project)?;
        note(&format!("continues {}", before.id()));
    }
    if before.status.is_terminal() {
        return follow_up::follow_up(app, &before, wanted, &args.printing);
    }
    let (task, user) = (before.id(), app.environment.user());
    app.runtime.block_on(async {
        follow_up::change_model(app, task, args.model.as_deref()).await?;
        let (text, pictures) = (&wanted.text, wanted.pictures);
        app.coordinator.messages().send_with_pictures(task, text, pictures, &user).await?;
        app.coordinator.control().resume(task, &user).await?;
        drive(app, task, &args.printing).await
    })
}

/// What this run does differently from the configuration.
fn execution_config(args: &RunArgs) -> ExecutionConfig {
    ExecutionConfig {
        timeout_seconds: args.timeout,
        max_iterations: args.max_iterations,
        model: args.model.clone(),
        effort: args.effort,
        compaction: args.context_window.map(|tokens| CompactionOverrides {
            context_window_tokens: Some(tokens),
            ..CompactionOverrides::default()
        }),
        outage: None,
        role: args.role,
        contract: None,
    }
}

fn constraints(args: &RunArgs) -> Vec<String> {
    args.constraint.iter().filter(|one| !one.trim().is_empty()).cloned().collect()
}

/// The axes to start with: as flags say, else as configured, else as before.
fn axes(args: &RunArgs, base: Axes, configured: Option<PermissionProfile>) -> Axes {
    let profile = args.permission_profile.or(configured);
    let base = args.mode.map_or(base, |mode| base.in_mode(mode));
    // Somebody who asks for a plan wants to read it before it is carried out; whoever wants both says so.
    let run_control = match args.mode {
        Some(WorkMode::Plan) => RunControl::Assisted,
        Some(_) | None => base.run_control,
    };
    Axes {
        run_control: args.control.unwrap_or(run_control),
        permission_profile: profile.unwrap_or(base.permission_profile),
        model_mode: args.model_mode.unwrap_or(base.model_mode),
        ..base
    }
}

/// Work is judged by the deep model, or not at all (MS-031).
fn check_review(args: &RunArgs) -> Result<(), Failure> {
    let other_model = args.model_mode.filter(|mode| *mode != ModelMode::Deep);
    match other_model.filter(|_| args.mode == Some(WorkMode::Review)) {
        Some(mode) => {
            let hint = "leave `--model-mode` out, or choose the model itself with `--model`";
            Err(Failure::usage(format!("mode `review` takes the deep model, not `{mode}`"), hint))
        }
        None => Ok(()),
    }
}

/// When the task must be finished.
fn deadline(app: &AppContext, until: &DeadlineArgs) -> Result<Option<Deadline>, Failure> {
    let Some(text) = &until.deadline else { return Ok(None) };
    let now = app.coordinator.now();
    let at = times::moment(text, now, &jiff::tz::TimeZone::system())?;
    if at <= now {
        return Err(Failure::usage(
            format!("the deadline `{text}` is in the past"),
            "name a later time",
        ));
    }
    Ok(Some(Deadline { at, action: until.deadline_action.unwrap_or(DeadlineAction::Fail) }))
}

/// What the task may cost. Without a price nobody could tell when that is spent.
pub(super) fn budget(
    config: &Config,
    choice: &ModelChoice,
    given: Option<f64>,
) -> Result<Option<f64>, Failure> {
    let budget = given.or(config.agent.budget_usd);
    let priced =
        models::price(config, choice).is_some() || matches!(choice, ModelChoice::Script(_));
    if budget.is_some() && !priced {
        let hint = format!(
            "say what it costs per million tokens in the configuration: [models.\"{choice}\"] \
             input = …, output = …"
        );
        return Err(Failure::usage(
            format!("there is a budget, but no price for `{choice}`"),
            hint,
        ));
    }
    Ok(budget)
}

/// What the person should know before it starts. That modes share a model is for `windlass config`.
fn print_notices(app: &AppContext, project: &Project) -> Result<(), Failure> {
    let unusable = |details| Failure::of_details(&details);
    let notices = config::notice::lines(&project.config().notices).into_iter();
    let servers = project.servers().map_err(unusable)?.startable(&app.environment, None);
    let skills = project.skills().map_err(unusable)?.current();
    let hooks = skills::notices(&app.environment, project.directory(), &skills);
    let all = notices.chain(servers.notices).chain(hooks);
    all.for_each(|notice| note(&format!("notice: {}", shown(&notice))));
    Ok(())
}

/// The flags that are settings, so that an error names the flag.
pub(super) fn flags(args: &RunArgs) -> Vec<Flag> {
    let given = [
        ("--model", "models.model", args.model.clone()),
        ("--effort", "models.effort", args.effort.map(|effort| effort.to_string())),
        ("--timeout", "agent.timeout_seconds", args.timeout.map(|limit| limit.to_string())),
        ("--max-iterations", "agent.max_iterations", args.max_iterations.map(|n| n.to_string())),
        ("--context-window", "agent.context_window", args.context_window.map(|n| n.to_string())),
    ];
    let flag = |(flag, key, value): (&str, &str, Option<String>)| {
        Some(Flag { flag: flag.to_owned(), key: key.to_owned(), value: value? })
    };
    given.into_iter().filter_map(flag).collect()
}

/// Nobody wants to learn at the end of a long run that there is no recording of it, nor that it took the
/// place of something else.
fn check_recording(path: &Path) -> Result<(), Failure> {
    let hint = "name another file with `--record FILE`";
    let place = path.display();
    let opened = || OpenOptions::new().create(true).append(true).open(path).map(drop);
    match Recorder::may_replace(path).and_then(|free| opened().map(|()| free)) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(Failure::usage(format!("`{place}` already exists and is not a recording"), hint))
        }
        Err(error) => {
            let error = anyhow::Error::from(error).context(format!("`{place}` cannot be written"));
            Err(Failure { hint: Some(hint.into()), ..error.into() })
        }
    }
}
