//! What takes time, as jobs: each ends in inputs, or in something to do.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::io::AsyncWriteExt as _;
use tokio::task::{JoinError, JoinSet};
use windlass_coordinator::slash::{Block, Effect as Followed, Field, Reply, SlashInput};
use windlass_coordinator::{
    Coordinator, Error, MessageReader, NewSession, ParkedWait, QuestionOutcome, Share, Talk,
};
use windlass_core::axes::Axes;
use windlass_core::id::{InjectionId, QuestionId, SessionId, TaskId};
use windlass_core::injection::Control;
use windlass_core::shown::shown;
use windlass_term::Paint;

use super::own_commands::{self, OwnCommands};
use crate::app::{Input, Phase, Steered};
use crate::completion::Command;
use crate::composer::Draft;
use crate::host::{Host, Options, UserMessage};
use crate::overlay::Overlay;
use crate::replies;
use crate::transcript::Entry;

/// What a job came to.
pub(super) enum Done {
    Inputs(Vec<Input>),
    /// A message arrived at a task; what the person should know about it.
    Sent(TaskId, Vec<String>),
    /// A task has something to do.
    Work(TaskId),
    /// The same, after what a command has reported.
    Reported(Input, TaskId),
    /// The session may have changed.
    Session(Vec<Input>),
    /// A question is no longer open.
    Settled(QuestionId, TaskId, Vec<Input>),
    /// The time of a parked task has come.
    Due(TaskId),
    /// What a list shows has changed.
    Listed,
}

/// A message to be sent.
pub(super) struct Outgo {
    pub draft: Draft,
    pub written: UserMessage,
    /// Where the files are that it names.
    pub directory: PathBuf,
    /// The name that it is sent under.
    pub request: Option<String>,
}

fn not_sent(draft: Draft, why: String) -> Done {
    Done::Inputs(vec![Input::NotSent { draft, why }])
}

/// The jobs that run.
pub(super) struct Jobs {
    /// Each with the session that it is about.
    set: JoinSet<(SessionId, Done)>,
    /// The session that is shown: most jobs are about it.
    pub session: SessionId,
    /// The commands of the person that run.
    pub own: OwnCommands,
    coordinator: Coordinator,
    host: Arc<dyn Host>,
    user: String,
    new: NewSession,
    share: Share,
    paint: Paint,
    /// Whether the app says the mode by itself.
    says_mode: bool,
}

impl Jobs {
    pub fn new(coordinator: Coordinator, host: Arc<dyn Host>, options: &Options) -> Self {
        Self {
            set: JoinSet::new(),
            session: options.session,
            own: OwnCommands::default(),
            coordinator,
            host,
            user: options.settings.user.clone(),
            new: options.new.clone(),
            share: options.share,
            paint: options.settings.paint,
            says_mode: options.settings.screen_reader,
        }
    }

    /// What the next one came to; never, where none runs.
    pub async fn next(&mut self) -> Result<(SessionId, Done), JoinError> {
        match self.set.join_next().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }

    pub fn end_all(&mut self) {
        self.set.abort_all();
    }

    fn spawn(&mut self, job: impl Future<Output = Done> + Send + 'static) {
        self.spawn_about(self.session, job);
    }

    fn spawn_about(
        &mut self,
        session: SessionId,
        job: impl Future<Output = Done> + Send + 'static,
    ) {
        self.set.spawn(async move { (session, job.await) });
    }

    fn spawn_blocking(&mut self, job: impl FnOnce() -> Done + Send + 'static) {
        let session = self.session;
        self.set.spawn_blocking(move || (session, job()));
    }

    /// Continues the conversation, or begins it.
    pub fn send(&mut self, message: Outgo) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let (new, user, share) = (self.new.clone(), self.user.clone(), self.share);
        let id = self.session;
        self.spawn(async move {
            let Outgo { draft, written, directory, request } = message;
            let read = host.clone();
            let read = tokio::task::spawn_blocking(move || read.message(&directory, &written));
            let message = match read.await {
                Ok(Ok(message)) => message,
                Ok(Err(why)) => return not_sent(draft, why),
                Err(error) => return not_sent(draft, error.to_string()),
            };
            let session = coordinator.session(id);
            let sent = async {
                session.begin(new).await?;
                let talk = Talk { shown: message.shown, ..Talk::here(message.text, user) };
                let talk = Talk { share, pictures: message.pictures, request, ..talk };
                session.conversation().send(talk).await
            };
            match sent.await {
                Ok(sent) => Done::Sent(sent.task(), message.notices),
                Err(error) => not_sent(draft, host.explain(error)),
            }
        });
    }

    pub fn answer(&mut self, question: QuestionId, text: String) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        self.spawn(async move {
            match coordinator.inbox().answer(question, &text, &user).await {
                Ok(task) => Done::Work(task),
                // Somebody was quicker; what became of it is seen at once.
                Err(error) if error.is_settled_elsewhere() => Done::Inputs(Vec::new()),
                Err(error) => {
                    let why = host.explain(error);
                    Done::Session(vec![Input::NotAnswered { why }])
                }
            }
        });
    }

    /// Waits until a question is answered, wherever that happens.
    pub fn wait_for_answer(&mut self, session: SessionId, question: QuestionId, task: TaskId) {
        let coordinator = self.coordinator.clone();
        self.spawn_about(session, async move {
            let settled = coordinator.inbox().wait_until_settled(question).await;
            let (by, text) = match settled {
                Ok(QuestionOutcome::Answered(answer)) => (answer.by, answer.text),
                Ok(QuestionOutcome::Closed) | Err(_) => (String::new(), String::new()),
            };
            Done::Settled(question, task, vec![Input::Settled { question, by, text }])
        });
    }

    /// Waits until the time of a parked task has come.
    pub fn wait_while_parked(&mut self, session: SessionId, task: TaskId, until: Timestamp) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        self.spawn_about(session, async move {
            match coordinator.tasks().parked(task).wait(until).await {
                Ok(ParkedWait::Due) => Done::Due(task),
                Ok(ParkedWait::Driven | ParkedWait::Moved(_)) => Done::Inputs(Vec::new()),
                Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
            }
        });
    }

    /// Sees to it that what was sent to a task is read: a segment that is about to end reads nothing any more.
    pub fn wait_for_uptake(&mut self, session: SessionId, task: TaskId) {
        let coordinator = self.coordinator.clone();
        self.spawn_about(session, async move {
            match coordinator.messages().wait_for_uptake(task).await {
                Ok(MessageReader::AfterResume) => Done::Due(task),
                Ok(MessageReader::NothingToDo | MessageReader::ByService) | Err(_) => {
                    Done::Inputs(Vec::new())
                }
            }
        });
    }

    /// Runs a slash command; its reply is laid out for so many columns.
    pub fn slash(&mut self, line: String, columns: usize) {
        let session = self.session;
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let (new, user, paint) = (self.new.clone(), self.user.clone(), self.paint);
        let (share, says_mode) = (self.share, self.says_mode);
        self.spawn(async move {
            let session = coordinator.session(session);
            let ran = async {
                session.begin(new).await?;
                session.run(SlashInput { share, ..SlashInput::here(line.clone(), user) }).await
            };
            let ran = ran.await;
            let print = |blocks: &[Block]| {
                let lines = replies::lines(blocks, paint, columns);
                let heading = [String::new(), paint.dim(&shown(&line))];
                Input::Print(Entry::Lines(heading.into_iter().chain(lines).collect()))
            };
            match ran {
                Ok(Reply { effect: Followed::Work { task }, blocks, .. }) => {
                    // The last one says where the work is done, which is seen.
                    match blocks.split_last() {
                        Some((_, report @ [_, _, ..])) => Done::Reported(print(report), task),
                        _ => Done::Work(task),
                    }
                }
                Ok(Reply { effect: Followed::Axes { axes }, blocks, .. }) => {
                    let report = (blocks.len() > 1).then(|| print(&blocks));
                    let words = mode_words(axes, &blocks);
                    // It holds already: its event, which may come with the next message, says nothing new.
                    let holds = words == axes.to_string();
                    let line = paint.dim(&format!("mode: {}", shown(&words)));
                    let line = (!holds || !says_mode).then(|| Input::Print(Entry::note(line)));
                    let said = holds.then_some(Input::ModeSaid(axes));
                    Done::Session(report.into_iter().chain(line).chain(said).collect())
                }
                Ok(reply) if line.trim() == "/help" => {
                    Done::Session(vec![print(&[&reply.blocks[..], &of_terminal()[..]].concat())])
                }
                Ok(reply) => Done::Session(vec![print(&reply.blocks)]),
                Err(error) => {
                    let why = host.explain(error);
                    let why = why.lines().map(|line| paint.red(&format!("  {line}")));
                    let heading = [String::new(), paint.dim(&shown(&line))];
                    let lines = heading.into_iter().chain(why).collect();
                    Done::Inputs(vec![Input::Print(Entry::Lines(lines))])
                }
            }
        });
    }

    /// Runs a command of the person's in the sandbox, through the gate.
    pub fn shell(&mut self, directory: PathBuf, axes: Axes, command: String, columns: usize) {
        let (host, paint) = (self.host.clone(), self.paint);
        let started = self.own.start(self.session, &command);
        self.spawn(async move {
            let ended = host.shell(&directory, axes, started.run(&command)).await;
            let lines = own_commands::lines(&command, &ended, paint, columns);
            let print = Input::Print(Entry::Lines(lines));
            let ran = ended.ok().map(|end| Input::Ran { command, printed: end.for_agent() });
            Done::Inputs(std::iter::once(print).chain(ran).collect())
        });
    }

    pub fn control(&mut self, task: TaskId, name: String, control: Control) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        let is_resume = control == Control::Resume;
        self.spawn(async move {
            match coordinator.control().steer(task, control, &user).await {
                Ok(_) if is_resume => Done::Work(task),
                Ok(steered) => Done::Session(vec![Input::Notice(format!("{name} {steered}"))]),
                Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
            }
        });
    }

    /// Tries a task again that has failed.
    pub fn retry(&mut self, task: TaskId) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        self.spawn(async move {
            match coordinator.tasks().retry(task).await {
                Ok(()) => Done::Work(task),
                Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
            }
        });
    }

    /// Puts a conversation away, or takes it back.
    pub fn archive(&mut self, session: SessionId, is_archived: bool) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        self.spawn(async move {
            match coordinator.session(session).archive(is_archived, &user).await {
                Ok(()) => Done::Listed,
                Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
            }
        });
    }

    pub fn interrupt(&mut self, task: TaskId) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        self.spawn(async move {
            match coordinator.control().steer(task, Control::Interrupt, &user).await {
                // The journal says what became of it.
                Ok(_) => Done::Session(Vec::new()),
                Err(error) => {
                    let why = format!("not interrupted: {}", host.explain(error));
                    Done::Inputs(vec![Input::Phase(Phase::Working), Input::Notice(why)])
                }
            }
        });
    }

    /// Takes back a message that the task has not read yet, and interrupts its turn where that is wanted.
    pub fn withdraw(&mut self, task: TaskId, message: Steered, interrupts: bool) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        self.spawn(async move {
            let id = InjectionId::derived(&message.request, "message");
            // Where nobody can say, it counts as read.
            let is_back = coordinator.messages().withdraw(task, id).await.unwrap_or(false);
            let back = is_back.then_some(Input::Withdrawn(message.draft));
            let interrupted = match interrupts {
                true => {
                    coordinator.control().steer(task, Control::Interrupt, &user).await.map(drop)
                }
                false => Ok(()),
            };
            let failed = interrupted.err().map(|error| {
                let why = format!("not interrupted: {}", host.explain(error));
                [Input::Phase(Phase::Working), Input::Notice(why)]
            });
            Done::Session(back.into_iter().chain(failed.into_iter().flatten()).collect())
        });
    }

    pub fn index_files(&mut self, directory: PathBuf) {
        self.spawn_blocking(move || {
            Done::Inputs(vec![Input::Files(windlass_coordinator::files::list(&directory))])
        });
    }

    /// Lists a directory that a message names.
    pub fn list_place(&mut self, directory: PathBuf, place: String) {
        let host = self.host.clone();
        self.spawn_blocking(move || {
            let names = host.entries(&directory, &place);
            Done::Inputs(vec![Input::Place { place, names }])
        });
    }

    /// Reads a page, which becomes this input.
    pub fn read(
        &mut self,
        input: fn(Box<Overlay>) -> Input,
        read: impl FnOnce() -> Result<Overlay, Error> + Send + 'static,
    ) {
        let host = self.host.clone();
        self.spawn_blocking(move || match read() {
            Ok(overlay) => Done::Inputs(vec![input(Box::new(overlay))]),
            Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
        });
    }

    /// Hands a text to a program that keeps the clipboard.
    pub fn copy(&mut self, words: Vec<String>, text: String, copied: &'static str) {
        self.spawn(async move {
            let notice = match copy_by(&words, &text).await {
                Ok(()) => copied.to_owned(),
                Err(why) => format!("not copied: {why}"),
            };
            Done::Inputs(vec![Input::Notice(notice)])
        });
    }
}

/// What is said of a change of the mode: the axes, and what the reply adds to them, such as when they take effect.
fn mode_words(axes: Axes, blocks: &[Block]) -> String {
    match blocks {
        [Block::Words { text }] => text.clone(),
        _ => axes.to_string(),
    }
}

/// The commands that only the terminal has.
fn of_terminal() -> [Block; 2] {
    let field = |command: Command| Field { name: command.name, value: command.help };
    let heading = Block::Heading { text: "in the terminal".to_owned() };
    [heading, Block::Fields { fields: Command::of_terminal().map(field).collect() }]
}

async fn copy_by(words: &[String], text: &str) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("no program".to_owned());
    };
    let failed = |error: std::io::Error| format!("`{program}`: {error}");
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes()).await.map_err(failed)?;
    }
    match child.wait().await.map_err(failed)?.success() {
        true => Ok(()),
        false => Err(format!("`{program}` failed")),
    }
}
