//! `run`: work on a goal here and show it.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use windlass_coordinator::{Draft, Limits, Share, SubmitOptions, Submitted};
use windlass_core::axes::Axes;
use windlass_core::command::{CompactionOverrides, ExecutionConfig, Outage, TaskCommand};
use windlass_core::event::{Deadline, Driver};
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_core::schedule::DeadlineAction;
use windlass_core::shown::shown;
use windlass_model::Recorder;

use super::drive::drive;
use super::{AppContext, Execute, Start};
use crate::args::{DeadlineArgs, RunArgs};
use crate::config::{self, Config, Flag, ModelChoice};
use crate::failure::Failure;
use crate::show::{note, out, out_json};
use crate::wiring::{self, Project, mcp, models, place, skills};
use crate::{next_action, times};

/// Work on a goal until it is done
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// The goal; `-` reads it from standard input, `@FILE` from a file
    pub goal: String,
    /// How it is run
    #[command(flatten)]
    pub options: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass run \"fix the flaky test\"
  windlass run @goal.md --constraint \"keep the public API\" --timeout 1800
  git diff | windlass run - --mode review -p
  windlass run \"upgrade the parser\" --model anthropic/NAME --control assisted
  windlass run \"ping\" --model script:replies.yaml --json

Ctrl-C once pauses the task and says how to resume it; twice stops at once.";

impl Execute for Run {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let (app, project) = start.app_for_run(&self.options)?;
        run(&app, &project, &self.goal, &self.options)
    }
}

/// How a script is written, for someone who has only the program.
const SCRIPT_FORM: &str = "\
a script is a YAML file with the model's replies, in order:
  replies:
    - bash: ls            # a tool and its main argument
    - say: All done.      # words alone end the task";

/// The largest goal taken from a file or standard input.
const MAX_GOAL_BYTES: u64 = 1024 * 1024;

pub(super) fn run(
    app: &AppContext,
    project: &Project,
    goal: &str,
    args: &RunArgs,
) -> Result<u8, Failure> {
    let servers = args.mcp_config.as_deref().map(|path| mcp::given(&app.environment, path));
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
    draft: Draft,
    limits: Limits,
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
        command_id: CommandId::new(now),
        session_id,
        task_id: TaskId::new(now),
        goal: draft.goal,
        constraints: draft.constraints,
        execution_config: draft.execution_config,
        resume_context: None,
    };
    let options = SubmitOptions {
        user_id: draft.user_id,
        axes: draft.axes,
        workspace: Some(draft.workspace),
        added: draft.added,
        cost_budget: draft.cost_budget,
        deadline: draft.deadline,
        outage: Outage::Park,
    };
    keep(app, command.task_id, servers)?;
    let coordinator = coordinator.clone().with_limits(limits);
    let submitted = app.runtime.block_on(coordinator.tasks().submit_command(command, options))?;
    let place = submitted.place.map(|place| format!(", number {place} in line of its session"));
    if args.printing.json {
        let Submitted { task, place, .. } = submitted;
        out_json(&json!({ "task_id": task, "session_id": session_id, "place": place }).to_string());
    } else {
        out(&submitted.task.to_string());
    }
    if args.printing.shows_progress() {
        let place = place.unwrap_or_default();
        let task = submitted.task;
        note(&format!(
            "queued for `windlass serve`{place}; follow it with `windlass events {task} --follow`"
        ));
    }
    Ok(0)
}

/// The task that is wanted, and the limits it is made under.
fn draft(
    app: &AppContext,
    project: &Project,
    goal: &str,
    args: &RunArgs,
) -> Result<(Draft, Limits), Failure> {
    let wishes = ExecutionConfig {
        timeout_seconds: args.timeout,
        max_iterations: args.max_iterations,
        model: args.model.clone(),
        compaction: args.context_window.map(|tokens| CompactionOverrides {
            context_window_tokens: Some(tokens),
            ..CompactionOverrides::default()
        }),
        outage: None,
    };
    place::check(&app.environment, &args.workspace, args.place.confirm_workspace)?;
    // Refused here rather than after a task was made for it.
    let config = project.config().for_task(&wishes)?;
    let axes = axes(args, &config);
    config.permits(axes.permission_profile)?;
    let choice = config.models.for_mode(axes.model_mode)?;
    project.model(choice).map_err(|details| {
        let otherwise = match choice {
            ModelChoice::Script(_) => SCRIPT_FORM,
            ModelChoice::Served { .. } => "see `windlass models`",
        };
        let hint = next_action::hint(&details).unwrap_or_else(|| otherwise.to_owned());
        Failure::usage(&details.message, hint)
    })?;
    let budget = budget(&config, choice, args.budget)?;
    args.record.as_deref().map(check_recording).transpose()?;
    let goal = skills::goal(project, &axes, read_goal(goal)?)?;
    if args.printing.shows_progress() {
        print_notices(app, project)?;
    }
    let draft = Draft {
        user_id: Some(app.environment.user()),
        goal,
        constraints: args.constraint.iter().filter(|one| !one.trim().is_empty()).cloned().collect(),
        workspace: args.workspace.clone(),
        added: place::added(&app.environment, &args.place.add_dir)?,
        share: if args.share { Share::Allowed } else { Share::Alone },
        axes,
        execution_config: ExecutionConfig { model: Some(choice.to_string()), ..wishes },
        resume_context: None,
        driver: Driver::Foreground,
        cost_budget: budget,
        deadline: deadline(app, &args.deadline)?,
        dependency_blockers: Vec::new(),
    };
    Ok((draft, wiring::limits(&config)))
}

/// The axes to start with: as flags say, else as configured, else as usual.
fn axes(args: &RunArgs, config: &Config) -> Axes {
    let base = Axes::headless();
    let profile = args.permission_profile.or(config.policy.profile);
    Axes {
        work_mode: args.mode.unwrap_or(base.work_mode),
        run_control: args.control.unwrap_or(base.run_control),
        permission_profile: profile.unwrap_or(base.permission_profile),
        model_mode: args.model_mode.unwrap_or(base.model_mode),
        ..base
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
fn budget(
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
    let servers = project.servers().map_err(unusable)?.found(&app.environment, None);
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

/// The goal as it is given, from standard input or from a file: text of a bounded size.
fn read_goal(text: &str) -> Result<String, Failure> {
    let (place, hint, bytes) = match text.strip_prefix('@') {
        _ if text == "-" => {
            let bytes = limited(std::io::stdin().lock());
            ("standard input".to_owned(), "hand in text: `git diff | windlass run -`", bytes)
        }
        Some(path) => {
            let bytes = File::open(path).and_then(limited);
            (
                format!("`{path}`"),
                "name a text file that you can read: `windlass run @goal.md`",
                bytes,
            )
        }
        None => return Ok(text.to_owned()),
    };
    let bytes = match bytes {
        Ok(bytes) if bytes.len() as u64 > MAX_GOAL_BYTES => Err(std::io::Error::other(
            "it is larger than 1 MiB; put long texts into files and name them in the goal",
        )),
        other => other,
    };
    let goal = bytes.map_err(anyhow::Error::from).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("it is not text in UTF-8"))
    });
    let failed = goal.with_context(|| format!("the goal cannot be read from {place}"));
    failed.map_err(|error| Failure { hint: Some(hint.into()), ..error.into() })
}

/// Everything, or one byte more than may be.
fn limited(source: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_GOAL_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
