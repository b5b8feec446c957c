//! What takes time, as jobs: each ends in inputs, or in something to do.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::io::AsyncWriteExt as _;
use tokio::task::{JoinError, JoinSet};
use windlass_coordinator::slash::{Effect as Followed, Reply, SlashInput};
use windlass_coordinator::{
    Coordinator, Error, NewSession, ParkedWait, Settled, Share, Talk, Uptake,
};
use windlass_core::axes::Axes;
use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::injection::Control;
use windlass_core::shown::shown;
use windlass_term::Paint;

use crate::app::{Input, Phase};
use crate::composer::Draft;
use crate::host::{Host, Options};
use crate::overlay::Overlay;
use crate::replies;
use crate::transcript::Entry;

/// What a job came to.
pub(super) enum Done {
    Inputs(Vec<Input>),
    /// A task has something to do.
    Work(TaskId),
    /// The session may have changed.
    Session(Vec<Input>),
    /// A question is no longer open.
    Settled(QuestionId, TaskId, Vec<Input>),
    /// The time of a parked task has come.
    Due(TaskId),
    /// What a list shows has changed.
    Listed,
}

/// The jobs that run.
pub(super) struct Jobs {
    set: JoinSet<Done>,
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
    pub async fn next(&mut self) -> Result<Done, JoinError> {
        match self.set.join_next().await {
            Some(done) => done,
            None => std::future::pending().await,
        }
    }

    pub fn end_all(&mut self) {
        self.set.abort_all();
    }

    /// Continues the conversation, or begins it.
    pub fn send(&mut self, session: SessionId, draft: Draft, text: String) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let (new, user, share) = (self.new.clone(), self.user.clone(), self.share);
        self.set.spawn(async move {
            let text = host.message(&text);
            let session = coordinator.session(session);
            let sent = async {
                session.begin(new).await?;
                let talk = Talk { share, ..Talk::here(text, user) };
                session.conversation().send(talk).await
            };
            match sent.await {
                Ok(sent) => Done::Work(sent.task()),
                Err(error) => {
                    let why = host.explain(error);
                    Done::Inputs(vec![Input::NotSent { draft, why }])
                }
            }
        });
    }

    pub fn answer(&mut self, question: QuestionId, text: String) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        self.set.spawn(async move {
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
    pub fn wait_for_answer(&mut self, question: QuestionId, task: TaskId) {
        let coordinator = self.coordinator.clone();
        self.set.spawn(async move {
            let settled = coordinator.inbox().wait_until_settled(question).await;
            let (by, text) = match settled {
                Ok(Settled::Answered(answer)) => (answer.by, answer.text),
                Ok(Settled::Closed) | Err(_) => (String::new(), String::new()),
            };
            Done::Settled(question, task, vec![Input::Settled { question, by, text }])
        });
    }

    /// Waits until the time of a parked task has come.
    pub fn wait_while_parked(&mut self, task: TaskId, until: Timestamp) {
        let coordinator = self.coordinator.clone();
        self.set.spawn(async move {
            match coordinator.tasks().wait_while_parked(task, until).await {
                Ok(ParkedWait::Due) => Done::Due(task),
                _ => Done::Inputs(Vec::new()),
            }
        });
    }

    /// Sees to it that what was sent to a task is read: a segment that is about to end reads nothing any more.
    pub fn wait_for_uptake(&mut self, task: TaskId) {
        let coordinator = self.coordinator.clone();
        self.set.spawn(async move {
            match coordinator.messages().wait_for_uptake(task).await {
                Ok(Uptake::AfterResume) => Done::Due(task),
                Ok(Uptake::NothingToDo | Uptake::ByService) | Err(_) => Done::Inputs(Vec::new()),
            }
        });
    }

    /// Runs a slash command; its reply is laid out for so many columns.
    pub fn slash(&mut self, session: SessionId, line: String, columns: usize) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let (new, user, paint) = (self.new.clone(), self.user.clone(), self.paint);
        let (share, says_mode) = (self.share, self.says_mode);
        self.set.spawn(async move {
            let session = coordinator.session(session);
            let ran = async {
                session.begin(new).await?;
                session.run(SlashInput { share, ..SlashInput::here(line.clone(), user) }).await
            };
            match ran.await {
                Ok(Reply { effect: Followed::Work { task }, .. }) => Done::Work(task),
                Ok(Reply { effect: Followed::Axes { .. }, .. }) if says_mode => {
                    Done::Session(Vec::new())
                }
                Ok(Reply { effect: Followed::Axes { axes }, .. }) => {
                    let line = paint.dim(&format!("mode: {axes}"));
                    Done::Session(vec![Input::Print(Entry::note(line))])
                }
                Ok(reply) => {
                    let mut lines = vec![paint.dim(&shown(&line))];
                    lines.extend(replies::lines(&reply.blocks, paint, columns));
                    Done::Session(vec![Input::Print(Entry::Lines(lines))])
                }
                Err(error) => {
                    let why = host.explain(error);
                    let lines = why.lines().map(|line| paint.red(line)).collect();
                    Done::Inputs(vec![Input::Print(Entry::Lines(lines))])
                }
            }
        });
    }

    /// Runs a command of the person's in the sandbox, through the gate.
    pub fn shell(&mut self, axes: Axes, command: String) {
        let (host, paint) = (self.host.clone(), self.paint);
        self.set.spawn(async move {
            let heading = paint.bold(&format!("! {}", shown(&command)));
            let (printed, is_error) = match host.shell(axes, &command).await {
                Ok(printed) => (printed, false),
                Err(why) => (why, true),
            };
            let line = |line: &str| match is_error {
                true => paint.red(&format!("  {line}")),
                false => paint.dim(&format!("  {line}")),
            };
            let text = windlass_term::strip_controls(&printed);
            let lines = std::iter::once(heading).chain(text.lines().map(line)).collect();
            let input = (!is_error).then(|| Input::Ran { command, printed });
            let print = Input::Print(Entry::Lines(lines));
            Done::Inputs(std::iter::once(print).chain(input).collect())
        });
    }

    pub fn control(&mut self, task: TaskId, control: Control) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        let is_resume = control == Control::Resume;
        self.set.spawn(async move {
            match coordinator.control().steer(task, control, &user).await {
                Ok(_) if is_resume => Done::Work(task),
                Ok(steered) => Done::Session(vec![Input::Notice(format!("{task} {steered}"))]),
                Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
            }
        });
    }

    /// Puts a conversation away, or takes it back.
    pub fn archive(&mut self, session: SessionId, is_archived: bool) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        self.set.spawn(async move {
            match coordinator.session(session).archive(is_archived, &user).await {
                Ok(()) => Done::Listed,
                Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
            }
        });
    }

    pub fn interrupt(&mut self, task: TaskId) {
        let (coordinator, host) = (self.coordinator.clone(), self.host.clone());
        let user = self.user.clone();
        self.set.spawn(async move {
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

    pub fn index_files(&mut self, directory: PathBuf) {
        self.set.spawn_blocking(move || {
            Done::Inputs(vec![Input::Files(windlass_coordinator::files::list(&directory))])
        });
    }

    /// Reads a page, which becomes this input.
    pub fn read(
        &mut self,
        input: fn(Box<Overlay>) -> Input,
        read: impl FnOnce() -> Result<Overlay, Error> + Send + 'static,
    ) {
        let host = self.host.clone();
        self.set.spawn_blocking(move || match read() {
            Ok(overlay) => Done::Inputs(vec![input(Box::new(overlay))]),
            Err(error) => Done::Inputs(vec![Input::Notice(host.explain(error))]),
        });
    }

    /// Hands a text to a program that keeps the clipboard.
    pub fn copy(&mut self, words: Vec<String>, text: String) {
        self.set.spawn(async move {
            let notice = match copy_by(&words, &text).await {
                Ok(()) => "copied".to_owned(),
                Err(why) => format!("not copied: {why}"),
            };
            Done::Inputs(vec![Input::Notice(notice)])
        });
    }
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
