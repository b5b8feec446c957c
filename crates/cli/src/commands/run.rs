//! `run`, `headless`, `resume` and `retry`: drive a task here and show it while it goes on.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{Draft, Limits, Share, SubmitOptions, Submitted, Update};
use windlass_core::axes::{Axes, RunControl};
use windlass_core::command::{
    CompactionOverrides, ExecutionConfig, ResultStatus, TaskCommand, TaskResult,
};
use windlass_core::event::{Deadline, Driver};
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_core::schedule::DeadlineAction;
use windlass_core::status::StatusReason;
use windlass_model::Recorder;
use windlass_term::strip_controls;

use super::interrupts::{Interrupt, Interrupts};
use super::wait::{self, Waited};
use super::{AppContext, ask};
use crate::args::{Headless, How, Printing, Resume, Until};
use crate::config::{self, Config, Flag, ModelChoice, Notice};
use crate::failure::{self, Failure};
use crate::next_action;
use crate::show::{self, Screen, note, out};
use crate::times;
use crate::wiring::{self, Environment, mcp, models, skills};

/// The largest goal taken from a file or standard input.
const MAX_GOAL_BYTES: u64 = 1024 * 1024;

pub(super) fn run(app: &AppContext, goal: &str, how: &How) -> Result<u8, Failure> {
    let servers = how.mcp_config.as_deref().map(|path| mcp::given(&app.environment, path));
    let servers = servers.transpose()?;
    let (draft, limits) = draft(app, goal, how)?;
    if how.detach {
        return detach(app, draft, how, servers.as_ref());
    }
    app.runtime.block_on(async {
        let task = app.coordinator.clone().with_limits(limits).tasks().submit(draft).await?;
        keep(app, task, servers.as_ref())?;
        drive(app, task, &how.printing).await
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
    how: &How,
    servers: Option<&config::File>,
) -> Result<u8, Failure> {
    let (coordinator, now) = (&app.coordinator, app.coordinator.now());
    let session_id = match &how.session {
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
        cost_budget: draft.cost_budget,
        deadline: draft.deadline,
    };
    keep(app, command.task_id, servers)?;
    let config = app.environment.config(&how.workspace)?;
    let coordinator = coordinator.clone().with_limits(wiring::limits(&config));
    let submitted = app.runtime.block_on(coordinator.tasks().submit_command(command, options))?;
    let place = submitted.place.map(|place| format!(", number {place} in line of its session"));
    if how.printing.json {
        let Submitted { task, place, .. } = submitted;
        out(&json!({ "task_id": task, "session_id": session_id, "place": place }).to_string());
    } else {
        out(&submitted.task.to_string());
    }
    if how.printing.shows_progress() {
        let place = place.unwrap_or_default();
        let task = submitted.task;
        note(&format!(
            "queued for `windlass serve`{place}; follow it with `windlass events {task} --follow`"
        ));
    }
    Ok(0)
}

/// `headless [autonomous] GOAL` and `headless --autonomous GOAL` (MS-177, MS-178).
pub(super) fn headless(app: &AppContext, mut args: Headless) -> Result<u8, Failure> {
    let autonomous = args.words.len() == 2 && args.words[0] == "autonomous";
    let goal = match args.words.as_slice() {
        [word] if word == "autonomous" => {
            let hint = "say what is to be done: `windlass headless autonomous \"fix the build\"`";
            return Err(Failure::usage("the goal is missing", hint));
        }
        [goal] => goal,
        [_, goal] if autonomous => goal,
        words => {
            let hint = format!("quote the goal: `windlass headless \"{}\"`", words.join(" "));
            return Err(Failure::usage("the goal is more than one argument", hint));
        }
    };
    if autonomous || args.autonomous {
        args.how.control = Some(RunControl::Autonomous);
    }
    run(app, goal, &args.how)
}

pub(super) fn resume(app: &AppContext, args: &Resume) -> Result<u8, Failure> {
    let task = app.coordinator.tasks().find(&args.task)?;
    app.runtime.block_on(async {
        app.coordinator.control().resume(task, &app.environment.user()).await?;
        drive(app, task, &args.printing).await
    })
}

pub(super) fn retry(app: &AppContext, args: &Resume) -> Result<u8, Failure> {
    let task = app.coordinator.tasks().find(&args.task)?;
    app.runtime.block_on(async {
        app.coordinator.tasks().retry(task).await?;
        drive(app, task, &args.printing).await
    })
}

/// The task that is wanted, and the limits it is made under.
fn draft(app: &AppContext, goal: &str, args: &How) -> Result<(Draft, Limits), Failure> {
    let wishes = ExecutionConfig {
        timeout_seconds: args.timeout,
        max_iterations: args.max_iterations,
        model: args.model.clone(),
        compaction: args.context_window.map(|tokens| CompactionOverrides {
            context_window_tokens: Some(tokens),
            ..CompactionOverrides::default()
        }),
    };
    // Refused here rather than after a task was made for it.
    let environment = Environment { flags: flags(args), ..app.environment.clone() };
    let given = environment.config(&args.workspace)?;
    let config = given.for_task(&wishes)?;
    let axes = axes(args, &config);
    config.permits(axes.permission_profile)?;
    let choice = config.models.for_mode(axes.model_mode)?;
    models::open(&config, choice).map_err(|details| {
        let otherwise = match choice {
            ModelChoice::Script(_) => "`docs/scripts.md` tells how a script is written",
            ModelChoice::Served { .. } => "see `windlass models`",
        };
        let hint = next_action::hint(&details).unwrap_or_else(|| otherwise.to_owned());
        Failure::usage(&details.message, hint)
    })?;
    let budget = budget(&config, choice, args.budget)?;
    args.record.as_deref().map(check_recording).transpose()?;
    let goal = skills::goal(&app.environment, &args.workspace, &axes, read_goal(goal)?)?;
    if args.printing.shows_progress() {
        print_notices(&given);
        let all = skills::now(&environment, &args.workspace);
        let found = mcp::found(&environment, &given, &args.workspace, &all, None);
        let told = found.notices.into_iter().chain(skills::notices(&environment, &all));
        told.for_each(|notice| note(&format!("notice: {}", strip_controls(&notice))));
    }
    let draft = Draft {
        user_id: Some(app.environment.user()),
        goal,
        constraints: args.constraint.iter().filter(|one| !one.trim().is_empty()).cloned().collect(),
        workspace: args.workspace.clone(),
        share: if args.share { Share::Allowed } else { Share::Alone },
        axes,
        execution_config: ExecutionConfig { model: Some(choice.to_string()), ..wishes },
        resume_context: None,
        driver: Driver::Foreground,
        cost_budget: budget,
        deadline: deadline(app, &args.until)?,
        dependency_blockers: Vec::new(),
    };
    Ok((draft, wiring::limits(&config)))
}

/// The axes to start with: as flags say, else as configured, else as usual.
fn axes(args: &How, config: &Config) -> Axes {
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
fn deadline(app: &AppContext, until: &Until) -> Result<Option<Deadline>, Failure> {
    let Some(text) = &until.deadline else { return Ok(None) };
    let now = app.coordinator.now();
    let at = times::moment(text, now, &jiff::tz::TimeZone::system())?;
    if at <= now {
        return Err(Failure::usage(
            format!("the deadline `{text}` has passed already"),
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
fn print_notices(config: &Config) {
    let told = config.notices.iter().filter(|one| !matches!(one, Notice::FollowsSmart { .. }));
    told.for_each(|notice| note(&format!("notice: {}", strip_controls(&notice.to_string()))));
}

/// The flags that are settings, so that an error names the flag.
fn flags(args: &How) -> Vec<Flag> {
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
        Ok(false) => Err(Failure::usage(format!("`{place}` is there and is no recording"), hint)),
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

/// Drives a task, prints it as it goes on, and turns its outcome into an exit code. A question is
/// asked inline where a person can answer, and the task goes on.
pub(super) async fn drive(
    app: &AppContext,
    task: TaskId,
    printing: &Printing,
) -> Result<u8, Failure> {
    // A sub-agent goes on with the task that started it.
    let task = app.coordinator.tasks().root(task)?;
    let stop = CancellationToken::new();
    let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
    let mut screen = Screen::new(printing, app.style, task, &app.coordinator.tasks().state(task)?);
    let mut typed = ask::Typed::default();
    loop {
        let segment = segment(app, task, &mut screen, &stop, &mut interrupts);
        let Some(result) = segment.await? else { return Ok(failure::INTERRUPTED) };
        if let Some(until) = wait::held_until(app, &result, &stop)? {
            match wait::until(app, task, until, &mut screen, &mut interrupts).await? {
                Waited::Over => continue,
                Waited::Interrupted => return Ok(failure::INTERRUPTED),
                Waited::Elsewhere => {
                    let result = app.coordinator.tasks().last_result(task)?.unwrap_or(result);
                    return code(app, &result, &stop);
                }
            }
        }
        let asked = result.hitl_request.as_ref().filter(|_| {
            let blocked = result.status == ResultStatus::BlockedUser;
            blocked && app.style.can_ask && !printing.json && !stop.is_cancelled()
        });
        let answered = match asked {
            Some(asked) => {
                screen.clear();
                ask::inline(app, asked, &mut typed, &mut interrupts).await?
            }
            None => {
                screen.end(&result);
                if printing.shows_progress() {
                    tell_what_else_is_asked(app, &result)?;
                }
                ask::Answered::No
            }
        };
        match answered {
            ask::Answered::Yes => {}
            ask::Answered::No => return code(app, &result, &stop),
            ask::Answered::Over => {
                let result = app.coordinator.tasks().last_result(task)?.unwrap_or(result);
                screen.end(&result);
                return code(app, &result, &stop);
            }
        }
    }
}

/// Several agents of a tree may ask; the screen shows the first.
fn tell_what_else_is_asked(app: &AppContext, result: &TaskResult) -> Result<(), Failure> {
    let Some(asked) = &result.hitl_request else { return Ok(()) };
    if let Some(asker) = ask::asking_sub_agent(app, asked.request_id)? {
        note(&format!("it is asked by {asker}"));
    }
    match app.coordinator.inbox().below(result.task_id)?.len() {
        0 | 1 => {}
        many => note(&format!("{} more to answer: see `windlass inbox`", many - 1)),
    }
    Ok(())
}

/// One run segment, to its result; `None` when a second Ctrl-C ended it.
async fn segment(
    app: &AppContext,
    task: TaskId,
    screen: &mut Screen,
    stop: &CancellationToken,
    interrupts: &mut Interrupts,
) -> Result<Option<TaskResult>, Failure> {
    let coordinator = &app.coordinator;
    let from = last_seq(app, task)?;
    let mut feed = match screen.shows_sub_agents() {
        true => coordinator.feed().follow_all(task, from)?,
        false => coordinator.feed().follow(task, from),
    };
    let mut frames = tokio::time::interval(show::FRAME);
    let live = screen.is_live();
    // On a worker, where what it waits for arrives: on this thread, which shows, each event would cost a
    // hop and wait for the showing of the one before.
    let mut driving = JoinSet::new();
    let (driver, stopped) = (coordinator.clone(), stop.clone());
    driving.spawn(async move { driver.tasks().drive(task, &stopped).await });
    let result = loop {
        tokio::select! {
            Some(ended) = driving.join_next() => {
                break ended.context("the task's job ended badly")??;
            }
            update = feed.next(), if screen.shows_events() => match update? {
                Update::Event(record) => screen.event(&record),
                Update::Preview(preview) => screen.preview(&preview),
            },
            _ = frames.tick(), if live => screen.tick(),
            interrupt = interrupts.recv() => {
                let again = stop.is_cancelled() && interrupt != Interrupt::End;
                if again {
                    screen.say(&format!("stopped; go on with: windlass resume {task}"));
                    return Ok(None);
                }
                if !stop.is_cancelled() {
                    screen.say("pausing; press Ctrl-C again to stop at once");
                }
                stop.cancel();
            }
        }
    };
    while let Some(record) = feed.committed()? {
        screen.event(&record);
    }
    Ok(Some(result))
}

fn last_seq(app: &AppContext, task: TaskId) -> Result<u64, Failure> {
    let row = app.coordinator.tasks().get(task)?;
    Ok(row.map_or(0, |row| row.last_seq))
}

fn code(app: &AppContext, result: &TaskResult, stop: &CancellationToken) -> Result<u8, Failure> {
    if stop.is_cancelled() && result.status == ResultStatus::Paused {
        return Ok(failure::INTERRUPTED);
    }
    let row = app.coordinator.tasks().get(result.task_id)?;
    let blocked = result.status == ResultStatus::BlockedUser;
    if blocked && row.is_some_and(|row| row.reason == StatusReason::Budget) {
        return Ok(failure::BUDGET);
    }
    Ok(failure::exit_code(result))
}
