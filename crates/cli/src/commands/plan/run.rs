//! `plan run` and `plan status`: working through a plan, and how far it is.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::plans::{NewActivation, PlanRun, PlanState, PlanStatus};
use windlass_coordinator::slash::Reach;
use windlass_core::axes::{Axes, PermissionProfile, RunControl};
use windlass_core::command::ExecutionConfig;
use windlass_core::event::Driver;
use windlass_core::shown::shown_line;

use super::PlanContext;
use crate::args::SandboxArgs;
use crate::args::values::{self, one_of};
use crate::commands::interrupts::{Interrupt, Interrupts};
use crate::commands::{AppContext, Start, ask, mail};
use crate::failure::{self, Failure};
use crate::show::{self, note};
use crate::wiring::{self, place};

/// Arguments of `plan run`.
#[derive(Debug, Args)]
pub struct RunPlan {
    /// The plan to activate first [default: the active one]
    pub plan: Option<String>,
    /// Work on its finished tasks once more; without it they stay finished
    #[arg(long)]
    pub again: bool,
    /// Model to use where an agent names none: PROVIDER/NAME or script:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// How much it does on its own: manual, assisted or autonomous [default: autonomous]
    #[arg(long, value_name = "CONTROL", value_parser = one_of(RunControl::ALL, RunControl::as_str), hide_possible_values = true)]
    pub control: Option<RunControl>,
    /// What it may do without asking: restricted, normal, trusted or unrestricted
    /// [default: trusted]
    #[arg(long, value_name = "PROFILE", value_parser = one_of(PermissionProfile::ALL, PermissionProfile::as_str), hide_possible_values = true)]
    pub permission_profile: Option<PermissionProfile>,
    /// Ask before a task and its sub-agents cost more than this [default: no limit]
    #[arg(long, value_name = "USD", value_parser = values::dollars, allow_hyphen_values = true)]
    pub budget: Option<f64>,
    /// Queue its tasks for `windlass serve` and return
    #[arg(long, conflicts_with = "sandbox")]
    pub detach: bool,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Works through the active plan until nothing is left that could run.
pub(super) fn run(
    start: Start,
    workspace: &Path,
    json: bool,
    args: RunPlan,
) -> Result<u8, Failure> {
    let (app, project) = start.sandbox(&args.sandbox).app_in(workspace, Vec::new())?;
    place::check(&app.environment, workspace, false)?;
    let execution_config =
        ExecutionConfig { model: args.model.clone(), ..ExecutionConfig::default() };
    let config = project.config().for_task(&execution_config)?;
    let profile = args.permission_profile.or(config.policy.profile);
    let axes = Axes::headless();
    let axes = Axes {
        run_control: args.control.unwrap_or(axes.run_control),
        permission_profile: profile.unwrap_or(axes.permission_profile),
        ..axes
    };
    config.permits(axes.permission_profile)?;
    let choice = config.models.for_mode(axes.model_mode)?;
    crate::commands::follow_up::usable_model(&project, &choice)?;
    let coordinator = app.coordinator.clone().with_limits(wiring::limits(&config));
    let run = PlanRun {
        axes,
        workspace: workspace.to_owned(),
        by: app.environment.user(),
        reach: Reach::Everything,
        driver: if args.detach { Driver::Service } else { Driver::Foreground },
        session: None,
        execution_config: ExecutionConfig {
            model: Some(choice.model.to_string()),
            effort: choice.effort,
            ..execution_config
        },
        cost_budget: args.budget.or(config.agent.budget_usd),
    };
    let app = AppContext { coordinator, ..app };
    let context = PlanContext { app: &app, directory: workspace, json };
    let runtime = &app.runtime;
    let plans = app.coordinator.plans();
    if args.plan.is_some() || args.again {
        let (named, by) = (args.plan.as_deref(), run.by.as_str());
        let reach = Reach::Everything;
        let new = NewActivation { directory: workspace, named, by, reach, again: args.again };
        runtime.block_on(plans.activate(new))?;
    }
    let begun = runtime.block_on(plans.begin(plans.need_active(workspace)?, run))?;
    if args.detach {
        context.print(&begun, || begun.blocks());
        mail::warn_without_service(&app)?;
        return Ok(0);
    }
    let status = runtime.block_on(drive(&context, &begun))?;
    let Some(status) = status else { return Ok(failure::INTERRUPTED) };
    context.print(&status, || status.blocks());
    if !json {
        print_questions(&app, &status)?;
    }
    Ok(exit_code(&status))
}

/// Drives the tasks and prints what becomes of each; `None` when Ctrl-C ended it.
async fn drive(
    context: &PlanContext<'_>,
    begun: &PlanStatus,
) -> Result<Option<PlanStatus>, Failure> {
    let stop = CancellationToken::new();
    let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
    let mut progress = Progress { json: context.json, shown: BTreeMap::new() };
    let plans = context.app.coordinator.plans();
    let driving = plans.drive(begun.plan_id, &stop, |status| progress.show(status));
    tokio::pin!(driving);
    loop {
        tokio::select! {
            ended = &mut driving => {
                let status = ended?;
                return Ok((!stop.is_cancelled()).then_some(status));
            }
            interrupt = interrupts.recv() => {
                if stop.is_cancelled() && interrupt != Interrupt::End {
                    note("stopped; continue with: windlass plan run");
                    return Ok(None);
                }
                note(&interrupt.words());
                stop.cancel();
            }
        }
    }
}

/// What a person has read of each task.
struct Progress {
    json: bool,
    shown: BTreeMap<String, String>,
}

impl Progress {
    fn show(&mut self, status: &PlanStatus) {
        let tasks = status
            .phases
            .iter()
            .flat_map(|phase| phase.tasks.iter().map(move |task| (&phase.title, task)));
        for (phase, task) in tasks {
            let words = task.words();
            let before = self.shown.insert(task.id.clone(), words.clone());
            let is_news = before.as_ref() != Some(&words) && !words.starts_with("waits for");
            if is_news && !self.json && words != "todo" {
                let counted = format!("{}/{}", status.done, status.total);
                let (phase, title) = (shown_line(phase), shown_line(&task.title));
                note(&format!("[{counted}] {phase} · {} {words}: {title}", task.id));
            }
        }
    }
}

/// What its tasks ask, and how to answer.
fn print_questions(app: &AppContext, status: &PlanStatus) -> Result<(), Failure> {
    let tasks = status.phases.iter().flat_map(|phase| &phase.tasks);
    for task in tasks.filter_map(|task| task.task_id) {
        for asked in app.coordinator.inbox().open_in_tree(task)? {
            ask::show_question(app, &asked);
            note(&format!("\n{}", show::answer_with(&asked.row.question).join("\n")));
        }
    }
    if status.state == PlanState::Blocked {
        note("then continue with: windlass plan run");
    }
    Ok(())
}

/// One code per outcome, as for one task.
fn exit_code(status: &PlanStatus) -> u8 {
    match status.state {
        PlanState::Done => 0,
        PlanState::Failed => 1,
        PlanState::Blocked => 3,
        PlanState::Waiting | PlanState::Running => 4,
    }
}

/// Shows how far a plan is.
pub(super) fn status(context: &PlanContext<'_>, plan: Option<&str>) -> Result<u8, Failure> {
    let status = context.app.coordinator.plans().status(context.directory, plan)?;
    context.print(&status, || status.blocks());
    Ok(0)
}
