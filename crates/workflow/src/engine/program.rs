//! Agent steps that another program works on: its task, its questions and its end.
//!
//! Invariants:
//! - What a program asks is a question of its step's task, in the one inbox. An answer is given once.
//! - A program that a crash has interrupted is resumed by its own session, where it has one.

use std::path::Path;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_core::axes::PermissionProfile;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Event, QuestionClosed, RunnerReported, StatusChanged, WorkflowPart};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::{PERMISSION_OPTIONS, Permission, Question, QuestionKind};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::RuntimeRow;

use super::children::Wanted;
use super::journal::RunJournal;
use super::steps::key;
use super::{Engine, Error, Trouble, Wait, question};
use crate::definition::AgentWork;
use crate::next::Leaf;
use crate::runner::{
    Activity, Asks, Ended, GivenAnswer, How, Job, Limits, Link, Order, REPORTS, Report, Runner,
    RunnerQuestion, Usage,
};
use crate::state::Asked;

/// Answers that may wait for a program.
const ORDERS: usize = 32;

/// What a program said, or why it said nothing.
type Said = Result<String, (String, StatusReason)>;

impl Engine<'_> {
    /// Has another program work on a step; what it said at its end.
    pub(super) async fn program(
        &self,
        leaf: &Leaf,
        work: &AgentWork,
        runner: &str,
        prompt: &str,
        directory: &Path,
        halt: &CancellationToken,
    ) -> Result<Said, Trouble> {
        let wanted = Wanted {
            key: &key(leaf),
            goal: prompt.to_owned(),
            directory,
            part: WorkflowPart::Program { step: leaf.path.clone(), runner: runner.to_owned() },
            timeout_seconds: leaf.step.timeout.map(|timeout| timeout.as_secs()),
            model: work.model.clone(),
            profile: work.profile,
        };
        let task = self.create(wanted).await?;
        let state = windlass_agent::History::read(self.tree.store(), task)?.into_state();
        let has_failed = matches!(state.reason, StatusReason::Timeout | StatusReason::Error);
        if state.status.is_terminal() || (state.status == TaskStatus::Blocked && has_failed) {
            return Ok(self.said_before(task)?);
        }
        let command = self.workflow.runners.get(runner).map(Vec::as_slice);
        let runner = match self.host.runner(directory, runner, command) {
            Ok(runner) => runner,
            Err(error) => return Ok(Err((with_hint(error), StatusReason::Error))),
        };
        let journal = RunJournal::open(self.tree.stream(task)?, state)?;
        journal.drain(self.now()).await?;
        self.check_start(&journal, &*runner).await?;
        let place = journal.read(|state, _| state.clone()).await;
        let place = match self.host.sandbox(&place).await {
            Ok(place) => place,
            Err(error) => return Ok(Err((with_hint(error), StatusReason::Error))),
        };
        journal.begin(self.now(), runner.name()).await?;
        let (resume, answers) = self.before(task)?;
        let job = Job {
            id: task.to_string(),
            prompt: prompt.to_owned(),
            directory: place.sandbox.isolation().workspace,
            state: place.state,
            environment: place.environment,
            mcp_servers: place.mcp_servers,
            model: work.model.clone(),
            resume,
            answers,
            limits: Limits { stall: place.stall, timeout: leaf.step.timeout, ..Limits::DEFAULT },
        };
        self.show_worker(task, work.model.clone(), directory).await;
        let ended = self.attend(&journal, &*runner, job, &*place.sandbox, halt).await;
        place.sandbox.stop().await;
        // A row that stays behind names a process that has ended.
        let _ = self.tree.store().owners().runtime().clear(task, std::process::id()).await;
        self.conclude(journal, ended?, halt).await
    }

    /// Shows who works where (MS-140, MS-144). That it is not shown holds up nothing.
    async fn show_worker(&self, task: TaskId, current_model: Option<String>, directory: &Path) {
        let runtime = RuntimeRow {
            process_pid: std::process::id(),
            worktree_path: Some(directory.display().to_string()),
            current_model,
            context_usage_percent: None,
            last_heartbeat_at: self.now(),
        };
        let _ = self.tree.store().owners().runtime().set(task, runtime).await;
    }

    /// The gate, for a program: below `trusted` a person says whether it may start.
    async fn check_start(&self, journal: &RunJournal, runner: &dyn Runner) -> Result<(), Trouble> {
        if journal.read(|task, _| task.axes.permission_profile).await >= PermissionProfile::Trusted
        {
            return Ok(());
        }
        let id = QuestionId::derived(&journal.id().to_string(), "start");
        let answer = journal.read(|_, asked| match asked.asked(id) {
            Asked::Answered(answer) => Some(answer.text.clone()),
            Asked::No | Asked::Open => None,
        });
        let text = format!("May `{}` work in this worktree?", runner.name());
        let asked = Question {
            kind: QuestionKind::Permission,
            options: PERMISSION_OPTIONS.map(str::to_owned).to_vec(),
            ..question(id, text)
        };
        match answer.await.map(|text| asked.permission(&text)) {
            Some(Some(Permission::Allow | Permission::AllowAll)) => Ok(()),
            Some(_) => {
                Err(Trouble::Failed(format!("`{}` was not allowed to start", runner.name())))
            }
            None => {
                journal.ask(self.now(), asked).await?;
                self.block(journal).await?;
                Err(Trouble::Wait(Wait::Child(journal.id())))
            }
        }
    }

    async fn block(&self, journal: &RunJournal) -> Result<(), Error> {
        let status = journal.read(|task, _| task.status).await;
        let moved = StatusChanged::new(status, TaskStatus::Blocked, StatusReason::Question);
        match status {
            TaskStatus::Blocked => Ok(()),
            _ => journal.commit(self.now(), vec![Event::StatusChanged(moved)]).await,
        }
    }

    async fn unblock(&self, journal: &RunJournal) -> Result<(), Error> {
        let (status, is_open) =
            journal.read(|task, _| (task.status, !task.open_questions.is_empty())).await;
        let moved = StatusChanged::new(status, TaskStatus::Running, StatusReason::User);
        match status == TaskStatus::Blocked && !is_open {
            true => journal.commit(self.now(), vec![Event::StatusChanged(moved)]).await,
            false => Ok(()),
        }
    }

    /// Passes reports into the journal and answers to the program, until it has ended.
    async fn attend(
        &self,
        journal: &RunJournal,
        runner: &dyn Runner,
        job: Job,
        sandbox: &dyn windlass_sandbox::Sandbox,
        halt: &CancellationToken,
    ) -> Result<Ended, Error> {
        let (reports, mut received) = mpsc::channel(REPORTS);
        let (orders, order_list) = mpsc::channel(ORDERS);
        let running = runner.run(job, sandbox, Link { reports, orders: order_list });
        tokio::pin!(running);
        let mut mail = self.tree.store().mailbox().changes();
        let mut open: Vec<(QuestionId, RunnerQuestion)> = Vec::new();
        let mut is_stopping = false;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                biased;
                count = received.recv_many(&mut batch, REPORTS) => {
                    if count > 0 {
                        self.note_reports(journal, batch, &mut open).await?;
                    }
                    if count == 0 {
                        return Ok(running.await);
                    }
                }
                ended = &mut running => {
                    received.close();
                    while let Some(report) = received.recv().await {
                        batch.push(report);
                    }
                    self.note_reports(journal, batch, &mut open).await?;
                    return Ok(ended);
                }
                changed = mail.changed() => changed?,
                () = halt.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    // A full channel means that it has not read its last orders; it ends by its own limits then.
                    let _ = orders.try_send(Order::Stop);
                }
            }
            journal.drain(self.now()).await?;
            self.pass_answers(journal, &orders, &mut open).await?;
        }
    }

    async fn pass_answers(
        &self,
        journal: &RunJournal,
        orders: &mpsc::Sender<Order>,
        open: &mut Vec<(QuestionId, RunnerQuestion)>,
    ) -> Result<(), Error> {
        let mut given = Vec::new();
        for (id, asked) in open.iter() {
            let answer = journal.read(|_, run| match run.asked(*id) {
                Asked::Answered(answer) => Some(answer.text.clone()),
                Asked::No | Asked::Open => None,
            });
            if let Some(text) = answer.await {
                given.push(*id);
                // It may have ended meanwhile.
                let _ = orders.send(Order::Answer { question: asked.id.clone(), text }).await;
            }
        }
        open.retain(|(id, _)| !given.contains(id));
        if !given.is_empty() {
            self.unblock(journal).await?;
        }
        Ok(())
    }

    async fn note_reports(
        &self,
        journal: &RunJournal,
        reports: Vec<Report>,
        open: &mut Vec<(QuestionId, RunnerQuestion)>,
    ) -> Result<(), Error> {
        let mut printed = String::new();
        let mut events = Vec::new();
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        let mut note =
            |reported: RunnerReported| events.push(Event::RunnerReported(Box::new(reported)));
        for report in reports {
            match report {
                Report::Output(text) => printed.push_str(&text),
                Report::Session(session) => {
                    note(RunnerReported { session: Some(session), ..RunnerReported::default() });
                }
                Report::Activity(activity) => {
                    let activity = Some(activity.to_string());
                    note(RunnerReported { activity, ..RunnerReported::default() });
                }
                Report::Question(asked) => new.push(asked),
                Report::Withdrawn(id) => {
                    new.retain(|asked| asked.id != id);
                    gone.extend(open.extract_if(.., |(_, asked)| asked.id == id));
                }
                // Its end has the sum.
                Report::Usage(_) => {}
            }
        }
        if !printed.is_empty() {
            note(RunnerReported { output: Some(printed), ..RunnerReported::default() });
        }
        for (question, _) in &gone {
            let reason = "the program asks no more".to_owned();
            let closed = QuestionClosed { question: *question, reason };
            events.push(Event::QuestionClosed(closed));
        }
        if !events.is_empty() {
            journal.commit(self.now(), events).await?;
        }
        if !gone.is_empty() {
            self.unblock(journal).await?;
        }
        for asked in new {
            let id = self.question_id(journal, &asked.fingerprint).await?;
            open.push((id, asked));
        }
        for (id, asked) in open.iter() {
            if journal.read(|_, run| run.asked(*id) == Asked::No).await {
                journal.ask(self.now(), in_inbox(*id, asked)).await?;
                self.block(journal).await?;
            }
        }
        Ok(())
    }

    /// The same for the same question after a restart. One that is asked once more after its end is another one.
    async fn question_id(
        &self,
        journal: &RunJournal,
        fingerprint: &str,
    ) -> Result<QuestionId, Error> {
        let is_it = |question: &Question| {
            question.binding.as_ref().is_some_and(|binding| binding.arguments_hash == fingerprint)
        };
        let mut last = None;
        let mut asked = 0;
        for record in self.tree.store().journal().of(journal.id())? {
            match record.event {
                Event::QuestionAsked(question) if is_it(&question) => {
                    (last, asked) = (Some(question.id), asked + 1);
                }
                _ => {}
            }
        }
        if let Some(last) = last
            && journal.read(|_, run| run.asked(last) == Asked::Open).await
        {
            return Ok(last);
        }
        let task = journal.id().to_string();
        Ok(QuestionId::derived(&task, &format!("{fingerprint} {asked}")))
    }

    /// Its session and the answers to its questions, from before a restart.
    fn before(&self, task: TaskId) -> Result<(Option<String>, Vec<GivenAnswer>), Error> {
        let (mut session, mut asked, mut answers) = (None, Vec::new(), Vec::new());
        for record in self.tree.store().journal().of(task)? {
            match record.event {
                Event::RunnerReported(reported) => session = reported.session.or(session),
                Event::QuestionAsked(question) => asked.push(question),
                Event::QuestionAnswered(answered) => {
                    let question = asked.iter().find(|question| question.id == answered.question);
                    let fingerprint = question.and_then(|question| question.binding.clone());
                    answers.extend(fingerprint.map(|binding| GivenAnswer {
                        fingerprint: binding.arguments_hash,
                        text: answered.answer.text,
                    }));
                }
                _ => {}
            }
        }
        Ok((session, answers))
    }

    /// What a program said whose task has ended.
    fn said_before(&self, task: TaskId) -> Result<Said, Error> {
        let ends =
            self.tree.store().journal().of(task)?.into_iter().rev().find_map(|record| match record
                .event
            {
                Event::AgentEnd(result) => Some(*result),
                _ => None,
            });
        let result = ends.and_then(|result| match result.error_details {
            Some(error) => Some(Err((error.message, StatusReason::Error))),
            None => result.final_message.map(Ok),
        });
        Ok(result.unwrap_or_else(|| Err(("it was cancelled".to_owned(), StatusReason::Error))))
    }

    async fn conclude(
        &self,
        journal: RunJournal,
        ended: Ended,
        halt: &CancellationToken,
    ) -> Result<Said, Trouble> {
        let done = RunnerReported {
            activity: Some(Activity::Ended.to_string()),
            usage: used(ended.usage),
            ..RunnerReported::default()
        };
        journal.commit(self.now(), vec![Event::RunnerReported(Box::new(done))]).await?;
        let (ending, said) = match ended.how {
            How::Finished => (Ending::Done, Ok(ended.text.clone())),
            How::TimedOut(why) => {
                let error = ErrorDetails::new(ErrorType::Timeout, why.clone());
                (
                    Ending::Stuck { reason: StatusReason::Timeout, error },
                    Err((why, StatusReason::Timeout)),
                )
            }
            How::Failed(why) => {
                let error = ErrorDetails::new(ErrorType::Workflow, why.clone());
                (
                    Ending::Stuck { reason: StatusReason::Error, error },
                    Err((why, StatusReason::Error)),
                )
            }
            How::Stopped if halt.is_cancelled() => {
                let ending = Ending::paused(StatusReason::Shutdown);
                journal.end(&self.tree, &ending, None).await?;
                return Err(Trouble::Wait(Wait::Parked));
            }
            How::Stopped => {
                let why = "it was stopped".to_owned();
                (Ending::Cancelled(Some(why.clone())), Err((why, StatusReason::Error)))
            }
        };
        journal.end(&self.tree, &ending, Some(ended.text)).await?;
        Ok(said)
    }
}

/// What a program used, as a task's sums take it; nothing where it said nothing.
fn used(usage: Usage) -> Option<windlass_core::message::Usage> {
    let said = windlass_core::message::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cost_usd: usage.cost_usd,
        ..Default::default()
    };
    (usage != Usage::default()).then_some(said)
}

/// A program's question as the inbox shows it.
fn in_inbox(id: QuestionId, asked: &RunnerQuestion) -> Question {
    let kind = match asked.asks {
        Asks::Permission => QuestionKind::Permission,
        Asks::Choice | Asks::Confirm | Asks::Text => QuestionKind::Runner,
    };
    Question {
        kind,
        options: asked.options.clone(),
        context: asked.context.clone(),
        // After a restart the same question is known by this.
        binding: Some(windlass_core::question::Binding {
            arguments_hash: asked.fingerprint.clone(),
            cwd: String::new(),
            files: Vec::new(),
        }),
        ..question(id, asked.question.clone())
    }
}

fn with_hint(error: ErrorDetails) -> String {
    match error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message,
    }
}
