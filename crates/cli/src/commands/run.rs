//! `run`, `resume` and `retry`: drive a task here and show it while it goes on.

use std::io::Read as _;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{Draft, Share, Update};
use windlass_core::axes::Axes;
use windlass_core::command::{CompactionOverrides, ExecutionConfig, ResultStatus, TaskResult};
use windlass_core::event::Driver;
use windlass_core::id::TaskId;

use super::Setting;
use crate::args::{Printing, Resume, Run};
use crate::failure::{self, Failure};
use crate::show::{self, Screen};
use crate::wiring::models;

/// The largest goal taken from a file or standard input.
const MAX_GOAL_BYTES: u64 = 1024 * 1024;

pub(super) fn run(setting: &Setting, args: Run) -> Result<u8, Failure> {
    let draft = draft(setting, &args)?;
    setting.runtime.block_on(async {
        let task = setting.coordinator.submit(draft).await?;
        drive(setting, task, &args.printing).await
    })
}

pub(super) fn resume(setting: &Setting, args: Resume) -> Result<u8, Failure> {
    let task = setting.coordinator.store().find_task(&args.task)?;
    setting.runtime.block_on(drive(setting, task, &args.printing))
}

pub(super) fn retry(setting: &Setting, args: Resume) -> Result<u8, Failure> {
    let task = setting.coordinator.store().find_task(&args.task)?;
    setting.runtime.block_on(async {
        setting.coordinator.retry(task).await?;
        drive(setting, task, &args.printing).await
    })
}

fn draft(setting: &Setting, args: &Run) -> Result<Draft, Failure> {
    let base = Axes::headless();
    let axes = Axes {
        work_mode: args.mode.unwrap_or(base.work_mode),
        run_control: args.control.unwrap_or(base.run_control),
        permission_profile: args.permission_profile.unwrap_or(base.permission_profile),
        ..base
    };
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
    let config = setting.surroundings.config(&args.workspace)?.for_task(&wishes)?;
    config.permits(axes.permission_profile)?;
    let choice = config.models.for_mode(axes.model_mode)?;
    models::open(&config, choice).map_err(|details| {
        Failure::usage(&details.message, details.hint.clone().unwrap_or_default())
    })?;
    Ok(Draft {
        goal: goal(&args.goal)?,
        constraints: args.constraint.clone(),
        workspace: args.workspace.clone(),
        share: if args.share { Share::Allowed } else { Share::Alone },
        axes,
        execution_config: ExecutionConfig { model: Some(choice.to_string()), ..wishes },
        resume_context: None,
        driver: Driver::Foreground,
        cost_budget: None,
        dependency_blockers: Vec::new(),
    })
}

fn goal(text: &str) -> Result<String, Failure> {
    let mut goal = String::new();
    match text.strip_prefix('@') {
        _ if text == "-" => {
            let mut input = std::io::stdin().lock().take(MAX_GOAL_BYTES);
            input
                .read_to_string(&mut goal)
                .context("the goal cannot be read from standard input")?;
        }
        Some(path) => {
            let file = std::fs::File::open(path)
                .and_then(|file| file.take(MAX_GOAL_BYTES).read_to_string(&mut goal));
            file.with_context(|| format!("the goal cannot be read from `{path}`"))?;
        }
        None => text.clone_into(&mut goal),
    }
    Ok(goal)
}

/// Drives a task, prints it as it goes on, and turns its outcome into an exit code.
pub(super) async fn drive(
    setting: &Setting,
    task: TaskId,
    printing: &Printing,
) -> Result<u8, Failure> {
    let coordinator = &setting.coordinator;
    let stop = CancellationToken::new();
    let mut following = coordinator.follow(task, last_seq(setting, task)?);
    let mut screen = Screen::new(printing);
    screen.begin(task);

    let driving = coordinator.drive(task, &stop);
    tokio::pin!(driving);
    let result = loop {
        tokio::select! {
            result = &mut driving => break result?,
            update = following.next() => match update? {
                Update::Event(record) => screen.event(&record),
                Update::Preview(preview) => screen.preview(&preview),
            },
            _ = tokio::signal::ctrl_c() => {
                if stop.is_cancelled() {
                    return Ok(failure::INTERRUPTED);
                }
                show::note("pausing; press Ctrl-C again to stop at once");
                stop.cancel();
            }
        }
    };
    while let Some(record) = following.committed()? {
        screen.event(&record);
    }
    screen.end(&result);
    Ok(code(&result, &stop))
}

fn last_seq(setting: &Setting, task: TaskId) -> Result<u64, Failure> {
    let row = setting.coordinator.store().task(task)?;
    Ok(row.map_or(0, |row| row.last_seq))
}

fn code(result: &TaskResult, stop: &CancellationToken) -> u8 {
    if stop.is_cancelled() && result.status == ResultStatus::Paused {
        return failure::INTERRUPTED;
    }
    failure::exit_code(result)
}
