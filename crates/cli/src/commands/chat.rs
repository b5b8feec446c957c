//! `chat`: a conversation in plain lines, at a terminal or over a pipe.
//!
//! Invariants:
//! - A message waits for the answer to the one before it, so that a pipe is read in order. At a terminal what is
//!   typed while the agent works goes to it at once, as in `run`.
//! - Commands about running work (`/steer`, `/pause`, `/stop`, `/remote`) act at once in both.
//! - Answers are on stdout, everything else on stderr.

mod input;
mod work;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_coordinator::slash::{self, Effect, SlashInput};
use windlass_coordinator::{Coordinator, NewSession, Session, Share, Talk};
use windlass_core::axes::{Axes, ModelMode, PermissionProfile, RunControl, Surface, WorkMode};
use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::shown::{shown, shown_line};

use super::goal::Goal;
use super::interrupts::Interrupts;
use super::{AppContext, Execute, Start, ask, follow_up, run};
use crate::args::values::{dollars, one_of};
use crate::args::{PlaceArgs, Printing, SandboxArgs};
use crate::config::{Config, Flag};
use crate::failure::{self, Failure};
use crate::show::{self, note, replies};
use crate::wiring::{self, Project, place};
use input::{Input, NextLine};
use work::Ended;

/// Talk with an agent: a line is a message, `/help` lists the commands
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Chat {
    /// What to say first
    pub message: Option<String>,
    /// Continue the last conversation of this directory
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    pub continues: bool,
    /// Continue this session: its id or any unique suffix of it
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// Directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// What belongs to the workspace beyond it
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Ask before the conversation and its sub-agents cost more than this [default: no limit]
    #[arg(long, value_name = "USD", value_parser = dollars, allow_hyphen_values = true)]
    pub budget: Option<f64>,
    /// Model to use: PROVIDER/NAME or script:FILE; overrides --model-mode
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Which configured model to use: fast, smart or deep [default: smart]
    #[arg(long, value_name = "MODE", value_parser = one_of(ModelMode::ALL, ModelMode::as_str), hide_possible_values = true)]
    pub model_mode: Option<ModelMode>,
    /// Kind of work: chat, plan, build, review, repair or research [default: chat]
    #[arg(long, value_name = "MODE", value_parser = one_of(WorkMode::ALL, WorkMode::as_str), hide_possible_values = true)]
    pub mode: Option<WorkMode>,
    /// How far it goes alone: manual, assisted or autonomous [default: manual]
    #[arg(long, value_name = "CONTROL", value_parser = one_of(RunControl::ALL, RunControl::as_str), hide_possible_values = true)]
    pub control: Option<RunControl>,
    /// What it may do without asking: restricted, normal, trusted or unrestricted
    /// [default: normal]
    #[arg(long, value_name = "PROFILE", value_parser = one_of(PermissionProfile::ALL, PermissionProfile::as_str), hide_possible_values = true)]
    pub permission_profile: Option<PermissionProfile>,
    /// Work in a directory where another task is working
    #[arg(long)]
    pub share: bool,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Print commands, outputs and changes of files whole
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass chat                       a conversation in this directory
  windlass chat --continue            the last one, with its context
  windlass chat --mode plan \"a login page\"
  printf 'what is this?\\nand why?\\n' | windlass chat

A line that begins with a slash is a command; `/help` lists them, Ctrl-D leaves.
Ctrl-C pauses the work; the next message continues it.";

impl Execute for Chat {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let flags = self.model.iter().map(|model| Flag {
            flag: "--model".to_owned(),
            key: "models.model".to_owned(),
            value: model.clone(),
        });
        let flags = flags.collect();
        let (app, project) = start.sandbox(&self.sandbox).app_in(&self.workspace, flags)?;
        app.runtime.block_on(Conversation::open(&app, &project, &self)?.talk())
    }
}

/// A conversation at this terminal or pipe.
struct Conversation<'a> {
    app: &'a AppContext,
    args: &'a Chat,
    coordinator: Coordinator,
    session: SessionId,
    /// How the session begins, where it does not exist yet.
    new: NewSession,
    printing: Printing,
    user: String,
    /// The exit code that the last work left.
    code: u8,
    /// The question that was shown last.
    shown: Option<QuestionId>,
}

impl<'a> Conversation<'a> {
    fn open(app: &'a AppContext, project: &Project, args: &'a Chat) -> Result<Self, Failure> {
        let config = project.config();
        place::check(&app.environment, &args.workspace, args.place.confirm_workspace)?;
        // A project's file may make the profile stricter than the user's, and never looser.
        let own = app.environment.config(Path::new("/"))?.policy.profile;
        let axes = axes(args, config, own.unwrap_or(PermissionProfile::Normal));
        config.permits(axes.permission_profile)?;
        let choice = config.models.for_mode(axes.model_mode)?;
        follow_up::usable_model(project, &choice)?;
        // Refused before it is begun; what is configured counts by itself.
        run::budget(config, &choice.model, args.budget)?;
        let coordinator = app.coordinator.clone().with_limits(wiring::limits(config));
        let workspace = follow_up::here(&args.workspace).display().to_string();
        let user = app.environment.user();
        Ok(Self {
            app,
            args,
            session: session(&coordinator, args, &workspace)?,
            coordinator,
            new: NewSession {
                added: place::added(&app.environment, &args.place.add_dir)?,
                cost_budget: args.budget,
                ..NewSession::new(axes, user.clone(), Some(workspace))
            },
            printing: Printing { quiet: args.quiet, verbose: args.verbose, ..Printing::default() },
            user,
            code: 0,
            shown: None,
        })
    }

    fn session(&self) -> Session<'_> {
        self.coordinator.session(self.session)
    }

    /// Reads lines and works on them until there are none.
    async fn talk(mut self) -> Result<u8, Failure> {
        let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
        let mut input = Input::open(self.app.style).context("standard input cannot be read")?;
        self.greet()?;
        self.take_over_flags().await?;
        if let Some(first) = &self.args.message {
            input.put_back(first.clone());
        }
        self.finish_what_was_begun(&mut input, &mut interrupts).await?;
        loop {
            let asked = self.open_question()?;
            // It may have been asked before this conversation was taken up, or by another process.
            self.show_question(asked)?;
            let prompt = if asked.is_some() { "answer> " } else { "> " };
            let next = tokio::select! {
                next = input.next(prompt) => next,
                _ = interrupts.recv() => {
                    input.leave();
                    return Ok(self.leave(failure::INTERRUPTED));
                }
            };
            let NextLine::Line(line) = next else { break };
            let line = line.trim().to_owned();
            if line.is_empty() {
                continue;
            }
            if matches!(line.as_str(), "/quit" | "/exit") {
                break;
            }
            let work = match self.take(&line, asked).await {
                Ok(work) => work,
                Err(failure) => {
                    show::error(&failure);
                    self.say_how_to_answer(asked)?;
                    self.code = failure.code;
                    None
                }
            };
            if let Some(task) = work {
                self.work_on(task, &mut input, &mut interrupts).await?;
            }
        }
        input.leave();
        let code = self.code;
        Ok(self.leave(code))
    }

    /// What a line means; the task that has something to do then.
    async fn take(
        &mut self,
        line: &str,
        asked: Option<QuestionId>,
    ) -> Result<Option<TaskId>, Failure> {
        if slash::is_command(line) {
            return self.command(line).await;
        }
        if let Some(question) = asked {
            let task = self.coordinator.inbox().answer(question, line, &self.user).await?;
            return Ok(Some(self.coordinator.tasks().root(task)?));
        }
        self.begin().await?;
        let message = Goal::of_message(line, Path::new("."));
        message.print_notices();
        // Which model reads it may change with the message.
        let pictures = message.keep_pictures(&self.coordinator, Some(true))?;
        let talk = Talk { pictures, ..self.message(message.with_attachments()) };
        let sent = self.session().conversation().send(talk).await?;
        Ok(Some(sent.task()))
    }

    fn message(&self, text: String) -> Talk {
        Talk { share: self.share(), ..Talk::here(text, &self.user) }
    }

    fn share(&self) -> Share {
        if self.args.share { Share::Allowed } else { Share::Alone }
    }

    async fn command(&mut self, line: &str) -> Result<Option<TaskId>, Failure> {
        self.begin().await?;
        let input = SlashInput { share: self.share(), ..SlashInput::here(line, &self.user) };
        let reply = self.session().run(input).await?;
        replies::print(&reply, self.app.style);
        self.code = 0;
        Ok(match reply.effect {
            Effect::Work { task } => Some(task),
            Effect::None | Effect::Axes { .. } | Effect::Steered { .. } | Effect::Cleared => None,
        })
    }

    /// The session exists from the first line on, and not before: who only looks leaves nothing (MS-021).
    async fn begin(&self) -> Result<(), Failure> {
        if self.session().exists()? {
            return Ok(());
        }
        self.session().begin(self.new.clone()).await?;
        if self.args.model.is_some() {
            self.session().choose_model(self.args.model.as_deref(), &self.user).await?;
        }
        Ok(())
    }

    /// Flags that change a session which exists.
    async fn take_over_flags(&self) -> Result<(), Failure> {
        if !self.session().exists()? {
            return Ok(());
        }
        if !self.new.added.is_empty() || self.new.cost_budget.is_some() {
            let hint = "begin another with `windlass chat`, without `--continue` and `--session`";
            let words =
                "`--add-dir` and `--budget` are for a new conversation: this one keeps its own";
            return Err(Failure::usage(words, hint));
        }
        let words = [
            ("mode", self.args.mode.map(WorkMode::as_str)),
            ("control", self.args.control.map(RunControl::as_str)),
            ("permission-profile", self.args.permission_profile.map(PermissionProfile::as_str)),
            ("model-mode", self.args.model_mode.map(ModelMode::as_str)),
            ("model", self.args.model.as_deref()),
        ];
        for (name, value) in words {
            if let Some(value) = value {
                let input = SlashInput::here(format!("/{name} {value}"), &self.user);
                self.session().run(input).await?;
            }
        }
        Ok(())
    }

    /// A session that is continued may have been left in the middle of something.
    async fn finish_what_was_begun(
        &mut self,
        input: &mut Input,
        interrupts: &mut Interrupts,
    ) -> Result<(), Failure> {
        let Some(task) = self.session().state().ok().and_then(|state| state.conversation) else {
            return Ok(());
        };
        let details = self.coordinator.tasks().details(task)?;
        if details.view.is_interrupted() {
            note(&format!("resuming {task}, which was interrupted"));
            self.work_on(task, input, interrupts).await?;
        }
        Ok(())
    }

    /// The first question that the session's work waits for.
    fn open_question(&self) -> Result<Option<QuestionId>, Failure> {
        let Ok(state) = self.session().state() else { return Ok(None) };
        let Some(task) = state.conversation else { return Ok(None) };
        let open = self.coordinator.inbox().below(task)?;
        Ok(open.first().map(|asked| asked.row.question.id))
    }

    /// Shows a question, once.
    fn show_question(&mut self, question: Option<QuestionId>) -> Result<(), Failure> {
        if let Some(id) = question.filter(|_| self.shown != question)
            && let Some(asked) = self.coordinator.inbox().get(id)?
        {
            ask::show_question(self.app, &asked);
            self.shown = question;
        }
        Ok(())
    }

    /// A line that was not accepted as an answer: the question still waits.
    fn say_how_to_answer(&self, question: Option<QuestionId>) -> Result<(), Failure> {
        let Some(question) = question.filter(|_| !self.app.style.can_ask) else { return Ok(()) };
        if let Some(asked) = self.coordinator.inbox().get(question)? {
            for line in show::answer_with(&asked.row.question) {
                note(&line);
            }
        }
        Ok(())
    }

    /// Works on a task until it waits for the person again.
    async fn work_on(
        &mut self,
        task: TaskId,
        input: &mut Input,
        interrupts: &mut Interrupts,
    ) -> Result<(), Failure> {
        match work::work(self, task, input, interrupts).await {
            Ok(Ended::Waits(code)) => self.code = code,
            Ok(Ended::Asks(question)) => {
                self.show_question(Some(question))?;
                self.code = QUESTION;
            }
            Err(failure) => {
                show::error(&failure);
                self.code = failure.code;
            }
        }
        Ok(())
    }

    fn greet(&self) -> Result<(), Failure> {
        let known = self.session().state().ok();
        let axes = known.as_ref().map_or(self.new.axes, |state| state.axes);
        let paint = self.app.style.notes;
        if self.app.style.can_ask {
            let directory = self.new.workspace.as_deref().unwrap_or_default();
            let line = format!("windlass {axes}");
            note(&format!("{}  {}", paint.bold(&line), paint.dim(&shown_line(directory))));
            note(&paint.dim("A line is a message. /help lists commands, Ctrl-D leaves."));
        }
        Ok(())
    }

    fn leave(&self, code: u8) -> u8 {
        if self.session().exists().unwrap_or(false) {
            let id = self.session;
            note(
                &self.app.style.notes.dim(&format!("continue with: windlass chat --session {id}")),
            );
        }
        code
    }
}

/// A question is open: the exit code of `run`.
const QUESTION: u8 = 3;

/// The session that the arguments name; else a new one.
pub(super) fn session(
    coordinator: &Coordinator,
    args: &Chat,
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
            let hint = "begin one with `windlass chat`";
            Failure::usage("there is no conversation of this directory to continue", hint)
        });
    }
    Ok(SessionId::new(coordinator.now()))
}

/// The axes of a new conversation: as flags say, else as configured, else as designed (MS-020). `own` is the
/// loosest profile that the user's file lets it have.
pub(super) fn axes(args: &Chat, config: &Config, own: PermissionProfile) -> Axes {
    let configured = config.policy.profile.map_or(own, |profile| profile.min(own));
    Axes {
        work_mode: args.mode.unwrap_or(config.agent.chat_mode),
        run_control: args.control.unwrap_or(config.agent.chat_control),
        permission_profile: args.permission_profile.unwrap_or(configured),
        model_mode: args.model_mode.unwrap_or(config.agent.chat_model_mode),
        surface: Surface::Tui,
    }
}
