//! The engine: carries out what comes next, side by side where the workflow says so, until the run ends or waits.
//!
//! Invariants:
//! - It remembers nothing: a run that was killed and one that was not take the same decisions from the same journal.
//! - Everything it starts has ended when [`Engine::run`] returns.

mod journal;
mod repository;
mod children;
mod places;
mod steps;
mod program;
mod merging;
mod publishing;
mod picking;
mod approval;
mod deadlines;
mod preview;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use windlass_agent::Tree;
use windlass_core::command::TaskResult;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{Event, StepEnded, StepResult, WorkflowSource};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::{AcceptedAnswers, Question, QuestionKind};
use windlass_core::state::TaskState;
use windlass_core::status::StatusReason;
use windlass_store::Stream;

use crate::Host;
use crate::definition::{MergeWork, OnFail, PullRequestWork, Step, Work, Workflow};
use crate::git::{Git, GitError};
use crate::next::{FAILURE_OPTIONS, Leaf, Next, Run, failure_question, more_rounds};
use crate::state::{QuestionProgress, name_of};
use crate::worktree;
use children::Children;
use deadlines::Deadlines;
use journal::RunJournal;
use places::Worktrees;
use repository::Repository;
use steps::Attempt;

pub use approval::TRUST_OPTIONS;
pub use preview::{Rendered, Setting, render};

/// What keeps a run from being journaled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Agent(#[from] windlass_agent::Error),
    #[error("the workflow of `{task}` cannot be read: {reason}")]
    Source { task: TaskId, reason: String },
}

impl From<windlass_store::Error> for Error {
    fn from(error: windlass_store::Error) -> Self {
        Self::Agent(error.into())
    }
}

/// How a segment of a run ends, and what is said of it.
#[derive(Debug)]
pub struct SegmentResult {
    pub ending: Ending,
    pub message: Option<String>,
}

/// Works on one run.
pub struct Engine<'a> {
    host: &'a dyn Host,
    tree: Arc<Tree>,
    journal: RunJournal,
    workflow: Workflow,
    source: WorkflowSource,
    /// The project's directory.
    directory: PathBuf,
    repository: Repository,
    /// One worktree is planned at a time: the second may want what the first has, and must not have its place.
    making: tokio::sync::Mutex<()>,
}

/// How the work on a step ended.
enum StepEnd {
    Ended(StepEnded),
    Waiting(Wait),
}

/// What a step waits for.
#[derive(Clone, Debug, PartialEq)]
enum Wait {
    /// An answer to a question of the run itself.
    Answer(QuestionId),
    /// An answer to a question of the step's task.
    Child(TaskId),
    /// More money for the step's task.
    Budget(TaskId),
    /// Something that keeps the step's task from working until then.
    Until(StatusReason, Timestamp),
    /// It was parked with the process.
    Parked,
}

/// Why a step cannot work.
enum Trouble {
    Failed(String),
    TimedOut(String),
    Conflict(String),
    Wait(Wait),
    Journal(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Journal(error)
    }
}

impl From<windlass_agent::Error> for Trouble {
    fn from(error: windlass_agent::Error) -> Self {
        Self::Journal(error.into())
    }
}

impl From<windlass_store::Error> for Trouble {
    fn from(error: windlass_store::Error) -> Self {
        Self::Journal(error.into())
    }
}

impl From<GitError> for Trouble {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Unresolved { .. } => Self::Conflict(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl<'a> Engine<'a> {
    /// An engine for a run. `state` is that of its task, whose stream this is.
    pub fn open(
        host: &'a dyn Host,
        tree: Arc<Tree>,
        stream: Stream,
        state: TaskState,
        source: WorkflowSource,
    ) -> Result<Self, Error> {
        let task = state.id();
        let workflow = Workflow::read(&source.text, &source.name)
            .map_err(|error| Error::Source { task, reason: error.to_string() })?;
        let directory = PathBuf::from(&state.created.workspace);
        let journal = RunJournal::open(stream, state)?;
        let (repository, making) = (Repository::NONE, tokio::sync::Mutex::default());
        Ok(Self { host, tree, journal, workflow, source, directory, repository, making })
    }

    /// Ends the segment. Refused while an answer waits that nobody has read.
    pub async fn end(&self, concluded: SegmentResult) -> Result<TaskResult, Error> {
        self.journal.end(&self.tree, &concluded.ending, concluded.message).await
    }

    fn id(&self) -> TaskId {
        self.journal.id()
    }

    fn now(&self) -> Timestamp {
        self.tree.now()
    }

    /// Journals what happened in the run.
    async fn commit(&self, events: Vec<Event>) -> Result<(), Error> {
        self.journal.commit(self.now(), events).await
    }

    /// Asks a person, once.
    async fn ask(&self, question: Question) -> Result<(), Error> {
        self.journal.ask(self.now(), question).await
    }

    /// Whether a signal has ended the run for good.
    async fn is_ending(&self) -> bool {
        let signal = self.journal.read(|task, _| Ending::from_signal(task)).await;
        signal.as_ref().is_some_and(ends_for_good)
    }

    /// The tasks below the run.
    fn children(&self) -> Children<'_> {
        Children { engine: self }
    }

    fn deadlines(&self) -> Deadlines<'_> {
        Deadlines { engine: self }
    }

    fn worktrees<'e>(&'e self, halt: &'e CancellationToken, attempt: u32) -> Worktrees<'e> {
        Worktrees { engine: self, halt, attempt }
    }

    /// Works until the run ends or waits.
    pub async fn run(&mut self, stop: &CancellationToken) -> Result<SegmentResult, Error> {
        self.journal.drain(self.now()).await?;
        if let Some(ending) = self.journal.read(|task, _| Ending::from_signal(task)).await {
            return Ok(plain(ending));
        }
        self.journal.begin(self.now(), &self.workflow.name).await?;
        self.repository = match Repository::open(&self.directory, &self.workflow.place).await {
            Ok(repository) => repository,
            Err(reason) => return Ok(stuck(StatusReason::Error, reason)),
        };
        if let Some(concluded) = self.check_approval().await? {
            return Ok(concluded);
        }
        if let Some(reason) = self.missing_target().await {
            return Ok(stuck(StatusReason::Error, reason));
        }
        let halt = stop.child_token();
        self.work(stop, &halt).await
    }

    /// Why a merge would find no branch to merge into: said before anything has worked, not after.
    async fn missing_target(&self) -> Option<String> {
        let has_begun = self.journal.read(|_, run| run.steps().next().is_some()).await;
        let needs_one = |step: &&Step| match &step.work {
            Work::Merge(MergeWork { target, .. })
            | Work::PullRequest(PullRequestWork { target, .. }) => target.is_none(),
            Work::Agent(_)
            | Work::Script { .. }
            | Work::Loop(_)
            | Work::Parallel(_)
            | Work::Ask { .. } => false,
        };
        let steps = self.workflow.all_steps();
        if has_begun {
            return None;
        }
        for target in self.merge_targets() {
            let name = format!("refs/heads/{target}");
            let found = self.repository.with(move |git| git.commit(&name)).await;
            if matches!(found, Ok(None)) {
                return Some(format!("there is no branch `{target}` to merge into"));
            }
        }
        if self.workflow.target.is_some() || !steps.iter().any(needs_one) {
            return None;
        }
        if let Some(begun_on) = self.source.branch.clone() {
            let find = move |git: &Git| worktree::branch_of_start(git, &begun_on);
            let found = self.repository.with(find).await;
            let Err(Trouble::Failed(reason)) = found else { return None };
            return Some(reason);
        }
        let branch = self.repository.with(|git| git.branch_in(git.top())).await;
        matches!(branch, Ok(None)).then(|| merging::DETACHED.to_owned())
    }

    /// The branches of this repository that the file names as targets of merges.
    fn merge_targets(&self) -> BTreeSet<String> {
        let steps = self.workflow.all_steps();
        let named = steps.iter().filter_map(|step| match &step.work {
            Work::Merge(work) => work.target.clone().or_else(|| self.workflow.target.clone()),
            Work::PullRequest(_)
            | Work::Agent(_)
            | Work::Script { .. }
            | Work::Loop(_)
            | Work::Parallel(_)
            | Work::Ask { .. } => None,
        });
        named.collect()
    }

    /// What comes next; `is_at_work` says which steps work now.
    async fn next(&self, is_at_work: impl Fn(&str) -> bool) -> Result<Next, Error> {
        let overdue = self.deadlines().overdue(is_at_work).await?;
        Ok(self.look(&overdue, |run| run.next()).await)
    }

    /// Looks at the run as it is known.
    async fn look<T>(&self, overdue: &BTreeSet<String>, look: impl FnOnce(&Run<'_>) -> T) -> T {
        let (id, workflow, source) = (self.id(), &self.workflow, &self.source);
        self.journal.read(|_, state| look(&Run { id, workflow, source, state, overdue })).await
    }

    /// Why a run that has come to its end has failed, where the workflow says so.
    async fn failures(&self) -> Vec<String> {
        self.look(&BTreeSet::new(), |run| run.failures().into_iter().map(failure_words).collect())
            .await
    }

    async fn work(
        &self,
        stop: &CancellationToken,
        halt: &CancellationToken,
    ) -> Result<SegmentResult, Error> {
        let mut mail = self.tree.store().mailbox().changes();
        let mut running = FuturesUnordered::new();
        let mut waiting: BTreeMap<String, Option<Wait>> = BTreeMap::new();
        loop {
            self.journal.drain(self.now()).await?;
            let signal = self.journal.read(|task, _| Ending::from_signal(task)).await;
            if signal.is_some() || stop.is_cancelled() {
                if signal.as_ref().is_some_and(ends_for_good) {
                    self.children().cancel("its run has ended").await?;
                }
                halt.cancel();
                while let Some((_, end)) = running.next().await {
                    self.note(end).await?;
                }
                return Ok(plain(signal.unwrap_or(Ending::paused(StatusReason::Shutdown))));
            }
            self.forget_answered(&mut waiting).await?;
            let idle = match self.next(|path| waiting.contains_key(path)).await? {
                Next::End(ended) => {
                    self.end_step(ended).await?;
                    continue;
                }
                Next::Work(leaves) => {
                    for leaf in leaves {
                        if !waiting.contains_key(&leaf.path) {
                            waiting.insert(leaf.path.clone(), None);
                            running.push(self.step(leaf, halt));
                        }
                    }
                    waits(&waiting)
                }
                Next::Decide(ended) => {
                    self.ask_about(&ended).await?;
                    plain(Ending::Blocked)
                }
                Next::Stop(ended) => {
                    self.offer_rounds(&ended).await?;
                    let reason = ended.reason.unwrap_or(StatusReason::Error);
                    stuck(reason, failure_words(&ended))
                }
                Next::Finished => return self.worktrees(halt, 1).finish().await,
            };
            if running.is_empty() {
                return Ok(idle);
            }
            tokio::select! {
                Some((path, end)) = running.next() => {
                    waiting.remove(&path);
                    if let Some(wait) = self.note(end).await? {
                        waiting.insert(path, Some(wait));
                    }
                }
                changed = mail.changed() => changed?,
                () = stop.cancelled() => {}
            }
        }
    }

    /// Journals how a step ended; what it waits for where it has not.
    async fn note(&self, end: Result<StepEnd, Error>) -> Result<Option<Wait>, Error> {
        match end? {
            StepEnd::Waiting(wait) => Ok(Some(wait)),
            StepEnd::Ended(ended) => self.end_step(ended).await.map(|()| None),
        }
    }

    /// Journals the end of a step. Where a person decides about a failure, they are asked at once: what works beside it
    /// may take long.
    async fn end_step(&self, ended: StepEnded) -> Result<(), Error> {
        self.commit(vec![Event::WorkflowStepEnded(Box::new(ended.clone()))]).await?;
        let steps = self.workflow.all_steps();
        let step = steps.into_iter().find(|step| step.name == name_of(&ended.step));
        match step.is_some_and(|step| step.on_fail == OnFail::Ask) {
            true if ended.result == StepResult::Failed => self.ask_about(&ended).await,
            true | false => Ok(()),
        }
    }

    /// Steps whose answer has come work again.
    async fn forget_answered(
        &self,
        waiting: &mut BTreeMap<String, Option<Wait>>,
    ) -> Result<(), Error> {
        let mut answered = Vec::new();
        for (path, wait) in waiting.iter() {
            let is_over = match wait {
                Some(Wait::Answer(question)) => {
                    let question = *question;
                    self.journal
                        .read(|_, run| matches!(run.asked(question), QuestionProgress::Answered(_)))
                        .await
                }
                Some(Wait::Child(task) | Wait::Budget(task)) => {
                    self.children().has_mail_below(*task)?
                }
                Some(Wait::Until(..) | Wait::Parked) | None => false,
            };
            if is_over {
                answered.push(path.clone());
            }
        }
        waiting.retain(|path, _| !answered.contains(path));
        Ok(())
    }

    async fn step(&self, leaf: Leaf, halt: &CancellationToken) -> (String, Result<StepEnd, Error>) {
        let path = leaf.path.clone();
        let leaf = match self.deadlines().limited(leaf) {
            Ok(leaf) => leaf,
            Err(error) => return (path, Err(error)),
        };
        let done = Attempt { engine: self, leaf: &leaf, halt }.work().await;
        let failed = |error: String, reason| {
            let ended = StepEnded {
                error: Some(error),
                reason: Some(reason),
                ..leaf.ended(StepResult::Failed)
            };
            Ok(StepEnd::Ended(ended))
        };
        let end = match done {
            Ok(end) => Ok(end),
            Err(Trouble::Failed(error)) => failed(error, StatusReason::Error),
            Err(Trouble::TimedOut(error)) => failed(error, StatusReason::Timeout),
            Err(Trouble::Conflict(error)) => failed(error, StatusReason::MergeConflict),
            Err(Trouble::Wait(wait)) => Ok(StepEnd::Waiting(wait)),
            Err(Trouble::Journal(error)) => Err(error),
        };
        (path, end)
    }

    /// Asks what follows a step that failed.
    async fn ask_about(&self, ended: &StepEnded) -> Result<(), Error> {
        let id = failure_question(self.id(), ended);
        let text = format!("Step `{}` failed. What now?", ended.step);
        let context = ended.error.clone();
        self.ask(Question { context, ..decision(id, text, &FAILURE_OPTIONS) }).await
    }

    /// A loop that has used up its rounds may get more. One that ended without that is tried again when it is resumed.
    async fn offer_rounds(&self, ended: &StepEnded) -> Result<(), Error> {
        if ended.output["rounds"].is_null() {
            return Ok(());
        }
        let steps = self.workflow.all_steps();
        let step = steps.into_iter().find(|step| step.name == name_of(&ended.step));
        let Some(Work::Loop(work)) = step.map(|step| &step.work) else { return Ok(()) };
        let question = Question {
            context: ended.error.clone(),
            options: vec![more_rounds(work.max), FAILURE_OPTIONS[2].to_owned()],
            accepts: AcceptedAnswers::Rounds,
            ..question(
                failure_question(self.id(), ended),
                format!("Loop `{}` has used up its rounds. How many more may it have?", ended.step),
            )
        };
        self.ask(question).await
    }
}

impl Leaf {
    /// An end of this attempt that says nothing more.
    fn ended(&self, result: StepResult) -> StepEnded {
        StepEnded {
            step: self.path.clone(),
            attempt: self.attempt,
            result,
            output: serde_json::Value::Null,
            error: None,
            reason: None,
        }
    }
}

/// Whether a signal ends a run for good: what works for it ends with it, and is not waited for as before a pause.
fn ends_for_good(signal: &Ending) -> bool {
    match signal {
        Ending::Cancelled(_) | Ending::Failed(_) | Ending::Partial(_) => true,
        Ending::Done
        | Ending::Blocked
        | Ending::OverBudget
        | Ending::Paused { .. }
        | Ending::Waiting { .. }
        | Ending::Stuck { .. } => false,
    }
}

/// What a run is for, in a line.
fn title(workflow: &Workflow, source: &WorkflowSource) -> String {
    match source.title.trim() {
        "" => format!("Workflow {}", workflow.name),
        title => title.to_owned(),
    }
}

/// A question of the run itself.
fn question(id: QuestionId, text: String) -> Question {
    Question {
        id,
        kind: QuestionKind::AskUser,
        call: None,
        question: text,
        options: Vec::new(),
        context: None,
        binding: None,
        diff: None,
        grants: None,
        asked: None,
        plan: None,
        accepts: AcceptedAnswers::Words,
    }
}

/// A question of the run whose options are all that it can do. Of two, the first is a yes and the second a no.
fn decision(id: QuestionId, text: String, options: &[&str]) -> Question {
    let accepts = match options {
        [_, _] => AcceptedAnswers::YesNo,
        _ => AcceptedAnswers::Options,
    };
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    Question { options, accepts, ..question(id, text) }
}

fn plain(ending: Ending) -> SegmentResult {
    SegmentResult { ending, message: None }
}

/// A step that failed leaves the run blocked; resumed, it is tried again (WF-024, WF-029).
fn stuck(reason: StatusReason, message: String) -> SegmentResult {
    let kind =
        if reason == StatusReason::Timeout { ErrorType::Timeout } else { ErrorType::Workflow };
    let error = ErrorDetails::new(kind, message).with_remedy(Remedy::ResumeRun);
    SegmentResult { ending: Ending::Stuck { reason, error }, message: None }
}

fn failure_words(ended: &StepEnded) -> String {
    let error = ended.error.as_deref().unwrap_or("it did not succeed");
    format!("step `{}`: {error}", ended.step)
}

/// How a segment ends in which every step that could work waits.
fn waits(waiting: &BTreeMap<String, Option<Wait>>) -> SegmentResult {
    let all: Vec<_> = waiting.values().flatten().collect();
    if all.iter().any(|wait| matches!(wait, Wait::Budget(_))) {
        return plain(Ending::OverBudget);
    }
    if all.iter().any(|wait| matches!(wait, Wait::Answer(_) | Wait::Child(_))) {
        return plain(Ending::Blocked);
    }
    let until = all.iter().filter_map(|wait| match wait {
        Wait::Until(reason, until) => Some((*until, *reason)),
        Wait::Answer(_) | Wait::Child(_) | Wait::Budget(_) | Wait::Parked => None,
    });
    match until.max_by_key(|(until, _)| *until) {
        Some((until, reason)) => {
            let detail = "a step cannot continue before then".to_owned();
            plain(Ending::Waiting { reason, until, detail })
        }
        None => plain(Ending::paused(StatusReason::Shutdown)),
    }
}
