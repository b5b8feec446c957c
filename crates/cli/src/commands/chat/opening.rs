//! Which conversation is opened, and how: what its arguments and the configuration say, checked before it begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_coordinator::slash::SlashInput;
use windlass_coordinator::{Coordinator, Error, NewSession, Share};
use windlass_core::axes::{Axes, ModelMode, PermissionProfile, RunControl, Surface, WorkMode};
use windlass_core::id::SessionId;
use windlass_core::shown::shown;

use super::super::{AppContext, Start, follow_up, run};
use crate::args::ConversationArgs;
use crate::config::types::ModelChoice;
use crate::config::{Config, Flag, ModelSelection};
use crate::failure::Failure;
use crate::wiring::{self, Project, place};

/// What a conversation with these arguments works with.
pub(in crate::commands) fn open_app(
    start: Start,
    args: &ConversationArgs,
) -> Result<(AppContext, Arc<Project>), Failure> {
    if !args.workspace.is_dir() {
        let problem = match args.workspace.try_exists() {
            Ok(true) => "is not a directory".to_owned(),
            Ok(false) => "does not exist".to_owned(),
            Err(error) => format!("cannot be opened: {error}"),
        };
        return Err(Error::Workspace { path: args.workspace.clone(), problem }.into());
    }
    let flag = |model: &String| Flag {
        flag: "--model".to_owned(),
        key: "models.model".to_owned(),
        value: model.clone(),
    };
    let flags = args.model.iter().map(flag).collect();
    start.sandbox(&args.sandbox).app_in(&args.workspace, flags)
}

/// A conversation that can be held, as its arguments and the configuration say.
pub(in crate::commands) struct Opening {
    pub coordinator: Coordinator,
    pub session: SessionId,
    /// How the session begins, where it does not exist yet.
    pub new: NewSession,
    pub chosen: ModelSelection,
    pub workspace: PathBuf,
    pub share: Share,
}

impl Opening {
    /// Refuses what cannot be, before anything is begun.
    pub fn check(
        app: &AppContext,
        project: &Project,
        args: &ConversationArgs,
    ) -> Result<Self, Failure> {
        let config = project.config();
        place::check(&app.environment, &args.workspace, args.place.confirm_workspace)?;
        // A project's file may make the profile stricter than the user's, and never looser.
        let own = app.environment.config(Path::new("/"))?.policy.profile;
        let axes = axes(args, config, own.unwrap_or(PermissionProfile::Normal));
        config.permits(axes.permission_profile)?;
        let coordinator = app.coordinator.clone().with_limits(wiring::limits(config));
        let workspace = follow_up::real_directory(&args.workspace);
        let directory = workspace.display().to_string();
        let session = session(&coordinator, args, &directory)?;
        let chosen = match config.models.for_mode(axes.model_mode) {
            Ok(chosen) => chosen,
            // What is continued keeps the model that it began with.
            Err(missing) => own_model(&coordinator, session)?.ok_or(missing)?,
        };
        follow_up::usable_model(project, &chosen)?;
        // What is configured counts by itself.
        run::budget(config, &chosen.model, args.budget)?;
        let new = NewSession {
            added: place::added_directories(&app.environment, &args.place.add_dir)?,
            cost_budget: args.budget,
            model: args.model.clone(),
            ..NewSession::new(axes, app.environment.user(), Some(directory.clone()))
        };
        let share = if args.share { Share::Allowed } else { Share::Alone };
        Ok(Self { coordinator, session, new, chosen, workspace, share })
    }

    /// What the arguments say of a session that exists.
    pub async fn take_over_flags(&self, args: &ConversationArgs) -> Result<(), Failure> {
        let session = self.coordinator.session(self.session);
        if !session.exists()? {
            return Ok(());
        }
        if !self.new.added.is_empty() || self.new.cost_budget.is_some() {
            let hint = "begin another one, without `--continue` and `--session`";
            let words =
                "`--add-dir` and `--budget` are for a new conversation: this one keeps its own";
            return Err(Failure::usage(words, hint));
        }
        let words = [
            ("mode", args.mode.map(WorkMode::as_str)),
            ("control", args.control.map(RunControl::as_str)),
            ("permission-profile", args.permission_profile.map(PermissionProfile::as_str)),
            ("model-mode", args.model_mode.map(ModelMode::as_str)),
            ("model", args.model.as_deref()),
        ];
        for (name, value) in words {
            if let Some(value) = value {
                session
                    .run(SlashInput::here(format!("/{name} {value}"), &self.new.user_id))
                    .await?;
            }
        }
        Ok(())
    }
}

/// The session that the arguments name; else a new one.
fn session(
    coordinator: &Coordinator,
    args: &ConversationArgs,
    workspace: &str,
) -> Result<SessionId, Failure> {
    if let Some(text) = &args.session {
        return coordinator.sessions().find(text)?.ok_or_else(|| {
            let hint = "list them with `windlass sessions`";
            Failure::usage(format!("there is no session `{}`", shown(text)), hint)
        });
    }
    if args.continues {
        return coordinator.sessions().newest_in(workspace)?.ok_or_else(|| {
            let hint = "begin one with `windlass`";
            Failure::usage("there is no conversation of this directory to continue", hint)
        });
    }
    Ok(SessionId::new(coordinator.now()))
}

/// The model of a conversation that exists: its own, or that of its task.
fn own_model(
    coordinator: &Coordinator,
    session: SessionId,
) -> Result<Option<ModelSelection>, Error> {
    let session = coordinator.session(session);
    if !session.exists()? {
        return Ok(None);
    }
    let of_task = match session.state()?.conversation {
        Some(task) => coordinator.tasks().state(task)?.created.command.execution_config.model,
        None => None,
    };
    let model = session.details()?.model.or(of_task);
    Ok(model.and_then(|model| model.parse::<ModelChoice>().ok()).map(ModelSelection::from))
}

/// The axes of a new conversation: as flags say, else as configured, else as designed (MS-020). `own` is the
/// loosest profile that the user's file lets it have.
fn axes(args: &ConversationArgs, config: &Config, own: PermissionProfile) -> Axes {
    let configured = config.policy.profile.map_or(own, |profile| profile.min(own));
    Axes {
        work_mode: args.mode.unwrap_or(config.agent.chat_mode),
        run_control: args.control.unwrap_or(config.agent.chat_control),
        permission_profile: args.permission_profile.unwrap_or(configured),
        model_mode: args.model_mode.unwrap_or(config.agent.chat_model_mode),
        surface: Surface::Tui,
    }
}
