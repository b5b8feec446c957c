//! `chat`: a conversation in plain lines, at a terminal or over a pipe.
//!
//! Invariants:
//! - A message waits for the answer to the one before it, so that a pipe is read in order. At a terminal what is
//!   typed while the agent works goes to it at once, as in `run`.
//! - Commands about running work (`/steer`, `/pause`, `/stop`, `/remote`) act at once in both.
//! - Answers are on stdout, everything else on stderr.

mod input;
mod opening;
mod work;

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use windlass_coordinator::slash::{self, Effect, SlashInput};
use windlass_coordinator::{Session, Talk};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::shown::shown_line;

use super::goal::Goal;
use super::interrupts::Interrupts;
use super::{AppContext, Execute, Start, ask};
use crate::args::{ConversationArgs, PrintOptions};
use crate::failure::{self, Failure};
use crate::show::{self, note, replies};
use crate::wiring::Project;
use input::{ChatInput, NextLine};
pub(super) use opening::{Opening, open_app};
use work::WorkEnd;

/// Talk with an agent: a line is a message, `/help` lists the commands
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Chat {
    /// The first message
    pub message: Option<String>,
    /// Which conversation, and how
    #[command(flatten)]
    pub conversation: ConversationArgs,
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

impl Chat {
    /// The conversation of a terminal that cannot redraw lines.
    pub(super) fn plain(conversation: ConversationArgs) -> Self {
        Self { message: None, conversation, quiet: false, verbose: false }
    }
}

impl Execute for Chat {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let (app, project) = open_app(start, &self.conversation)?;
        app.runtime.block_on(ChatLoop::open(&app, &project, &self)?.talk())
    }
}

/// A conversation at this terminal or pipe.
struct ChatLoop<'a> {
    app: &'a AppContext,
    args: &'a Chat,
    opening: Opening,
    printing: PrintOptions,
    user: String,
    /// The exit code that the last work left.
    code: u8,
    /// The question that was shown last.
    shown: Option<QuestionId>,
}

impl<'a> ChatLoop<'a> {
    fn open(app: &'a AppContext, project: &Project, args: &'a Chat) -> Result<Self, Failure> {
        Ok(Self {
            app,
            args,
            opening: Opening::check(app, project, &args.conversation)?,
            printing: PrintOptions {
                quiet: args.quiet,
                verbose: args.verbose,
                ..PrintOptions::default()
            },
            user: app.environment.user(),
            code: 0,
            shown: None,
        })
    }

    fn session(&self) -> Session<'_> {
        self.opening.coordinator.session(self.opening.session)
    }

    /// Reads lines and works on them until the input ends.
    async fn talk(mut self) -> Result<u8, Failure> {
        let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
        let mut input = ChatInput::open(self.app.style).context("standard input cannot be read")?;
        self.greet()?;
        self.opening.take_over_flags(&self.args.conversation).await?;
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
                    if asked.is_some() && !slash::is_command(&line) {
                        // No answer: it waits as before, and is shown again.
                        (self.code, self.shown) = (failure::BLOCKED, None);
                    }
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
            let task = self.opening.coordinator.inbox().answer(question, line, &self.user).await?;
            return Ok(Some(self.opening.coordinator.tasks().root(task)?));
        }
        self.begin().await?;
        let message = Goal::of_message(line, Path::new("."));
        message.print_notices();
        // Which model reads it may change with the message.
        let pictures = message.keep_pictures(&self.opening.coordinator, Some(true))?;
        let shown = message.shown_text(line);
        let talk = Talk { shown, pictures, ..self.message(message.with_attachments()) };
        let sent = self.session().conversation().send(talk).await?;
        Ok(Some(sent.task()))
    }

    fn message(&self, text: String) -> Talk {
        Talk { share: self.opening.share, ..Talk::here(text, &self.user) }
    }

    async fn command(&mut self, line: &str) -> Result<Option<TaskId>, Failure> {
        self.begin().await?;
        let input = SlashInput { share: self.opening.share, ..SlashInput::here(line, &self.user) };
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
        Ok(self.session().begin(self.opening.new.clone()).await?)
    }

    /// A session that is continued may have been left in the middle of something.
    async fn finish_what_was_begun(
        &mut self,
        input: &mut ChatInput,
        interrupts: &mut Interrupts,
    ) -> Result<(), Failure> {
        let Some(task) = self.session().state().ok().and_then(|state| state.conversation) else {
            return Ok(());
        };
        let details = self.opening.coordinator.tasks().details(task)?;
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
        let open = self.opening.coordinator.inbox().open_in_tree(task)?;
        Ok(open.first().map(|asked| asked.row.question.id))
    }

    /// Shows a question, once.
    fn show_question(&mut self, question: Option<QuestionId>) -> Result<(), Failure> {
        if let Some(id) = question.filter(|_| self.shown != question)
            && let Some(asked) = self.opening.coordinator.inbox().get(id)?
        {
            ask::show_question(self.app, &asked);
            self.shown = question;
        }
        Ok(())
    }

    /// A line that was not accepted as an answer: the question still waits.
    fn say_how_to_answer(&self, question: Option<QuestionId>) -> Result<(), Failure> {
        let Some(question) = question.filter(|_| !self.app.style.can_ask) else { return Ok(()) };
        if let Some(asked) = self.opening.coordinator.inbox().get(question)? {
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
        input: &mut ChatInput,
        interrupts: &mut Interrupts,
    ) -> Result<(), Failure> {
        match work::work(self, task, input, interrupts).await {
            Ok(WorkEnd::Waits(code)) => self.code = code,
            Ok(WorkEnd::Asks(question)) => {
                self.show_question(Some(question))?;
                self.code = failure::BLOCKED;
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
        let axes = known.as_ref().map_or(self.opening.new.axes, |state| state.axes);
        let paint = self.app.style.notes;
        if self.app.style.can_ask {
            let directory = self.opening.new.workspace.as_deref().unwrap_or_default();
            let line = format!("windlass {axes}");
            note(&format!("{}  {}", paint.bold(&line), paint.dim(&shown_line(directory))));
            note(&paint.dim("A line is a message. /help lists commands, Ctrl-D leaves."));
        }
        Ok(())
    }

    fn leave(&self, code: u8) -> u8 {
        if self.session().exists().unwrap_or(false) {
            let id = self.opening.session;
            note(
                &self.app.style.notes.dim(&format!("continue with: windlass chat --session {id}")),
            );
        }
        code
    }
}
