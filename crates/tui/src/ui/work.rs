//! The conversation: its task is followed, driven here where nobody else does, and its questions are waited for.

use std::path::PathBuf;

use windlass_coordinator::Error;
use windlass_coordinator::views::OpenQuestion;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{Event, Record};
use windlass_core::id::{SessionId, TaskId};

use super::conversation::Conversation;
use super::effects::Effects;
use super::{ExitReport, Failed, Ui};
use crate::app::{App, Input, Leaving, Phase};
use crate::composer::Draft;
use crate::host::project_name;
use crate::keymap::Action;
use crate::transcript::Entry;

impl Ui {
    /// Takes over the session: its axes, its conversation, what was written before.
    pub(super) fn begin(&mut self) {
        self.show_facts();
        let commands = self.conversation.commands();
        self.take_in(Input::Commands(commands));
        if let Some(task) = self.conversation.current() {
            let _ = self.follow(task);
            // It may have been left in the middle of something.
            if self.conversation.is_interrupted(task) {
                let _ = self.drive(task);
            } else if let Ok(Some(until)) = self.coordinator.tasks().parked(task).until() {
                self.jobs.wait_while_parked(self.conversation.session, task, until);
            }
        }
        let saved = self.drafts.load(self.conversation.session);
        let has_arrived =
            saved.request().is_some_and(|request| self.conversation.has_arrived(request));
        saved.restore(&mut self.app, has_arrived);
        if let Some(message) = self.options.message.take() {
            let draft = Draft::of(&message);
            self.app.outgoing.sending = Some(draft.clone());
            Effects(self).send(draft);
        }
        self.console.painter.is_dirty = true;
    }

    /// Looks at what others changed in the session.
    pub(super) fn check_session(&mut self) -> Result<(), Failed> {
        self.conversation.watch_driver()?;
        if !self.conversation.has_changed() {
            return Ok(());
        }
        self.show_facts();
        let current = self.conversation.current();
        if current == self.conversation.task {
            return Ok(());
        }
        match current {
            Some(task) => self.follow(task),
            None => {
                self.unfollow();
                Ok(())
            }
        }
    }

    pub(super) fn show_facts(&mut self) {
        let facts = self.conversation.facts(&self.options);
        if self.app.facts != facts {
            self.take_in(Input::Facts(facts));
        }
    }

    /// Tells the story of a task from its last events on.
    pub(super) fn follow(&mut self, task: TaskId) -> Result<(), Failed> {
        let beginning = self.conversation.follow(task)?;
        self.take_in(Input::Follow(Box::new(beginning.state)));
        if beginning.is_cut {
            let way = self.app.settings.keymap.way(Action::Transcript);
            let line = format!("… earlier events are in the transcript ({way})");
            self.take_in(Input::Print(Entry::note(self.options.settings.paint.dim(&line))));
        }
        for record in beginning.records {
            self.take_in(Input::Record(Box::new(record)));
        }
        self.app.phase = beginning.phase;
        self.app.working_since = beginning.began.unwrap_or_else(|| self.coordinator.now());
        self.refresh_questions()?;
        self.show_facts();
        Ok(())
    }

    fn unfollow(&mut self) {
        self.conversation.unfollow();
        self.app.story = None;
        self.app.phase = Phase::Idle;
        self.app.questions.clear();
        self.console.painter.is_dirty = true;
    }

    /// Takes in one committed event.
    pub(super) fn record(&mut self, record: Record) -> Result<(), Failed> {
        self.conversation.has_news = true;
        let is_own = Some(record.task) == self.conversation.task;
        let asks = matches!(
            record.event,
            Event::QuestionAsked(_) | Event::QuestionAnswered(_) | Event::QuestionClosed(_)
        );
        let phase = match &record.event {
            Event::AgentStart(_) if is_own => Some(Phase::Working),
            Event::AgentEnd(result) if is_own => Some(match result.status {
                ResultStatus::BlockedUser => Phase::Blocked,
                _ => Phase::Idle,
            }),
            _ => None,
        };
        if matches!(record.event, Event::TaskCreated(_) | Event::InjectionReceived(_)) {
            // What was on its way has arrived.
            self.drafts.save_soon();
        }
        if phase == Some(Phase::Working) {
            self.conversation.watch_driver()?;
        }
        let moves = matches!(record.event, Event::ModeChanged(_) | Event::StatusChanged(_));
        let effects = self.take_in(Input::Record(Box::new(record)));
        Effects(self).postponed(effects);
        if asks || phase.is_some() {
            self.refresh_questions()?;
        }
        if moves || phase.is_some() {
            self.show_facts();
        }
        if let Some(phase) = phase {
            let effects = self.take_in(Input::Phase(phase));
            Effects(self).postponed(effects);
        }
        Ok(())
    }

    /// Shows the questions that are open at or below the conversation, and waits for each of them.
    pub(super) fn refresh_questions(&mut self) -> Result<(), Failed> {
        if self.conversation.task.is_none() {
            return Ok(());
        }
        let open = self.conversation.questions()?;
        open.iter().for_each(|asked| self.await_answer(asked));
        let effects = self.take_in(Input::Questions(open));
        Effects(self).postponed(effects);
        Ok(())
    }

    /// Notices when a question is answered, wherever that happens.
    pub(super) fn await_answer(&mut self, asked: &OpenQuestion) {
        let question = asked.row.question.id;
        if self.conversation.must_await(question) {
            self.jobs.wait_for_answer(self.conversation.session, question, asked.row.task);
        }
    }

    /// Drives a task here, unless somebody drives it. One of another conversation is driven unseen.
    pub(super) fn drive(&mut self, task: TaskId) -> Result<(), Failed> {
        let task = self.coordinator.tasks().root(task)?;
        let session = self.session_of(task)?;
        let is_shown = session == self.conversation.session;
        if is_shown && self.conversation.task != Some(task) {
            self.follow(task)?;
        }
        match self.driver.start(task, &self.options.settings.user)? {
            true if is_shown => {
                self.take_in(Input::Phase(Phase::Working));
            }
            true => {}
            false => self.jobs.wait_for_uptake(session, task),
        }
        Ok(())
    }

    fn session_of(&self, task: TaskId) -> Result<SessionId, Error> {
        let row = self.coordinator.tasks().get(task)?;
        Ok(row.map_or(self.conversation.session, |row| row.session_id))
    }

    /// A segment ended here.
    pub(super) async fn drive_ended(
        &mut self,
        task: TaskId,
        result: Result<TaskResult, Error>,
    ) -> Result<(), Failed> {
        // Its last events first.
        while let Some(record) = self.conversation.next_committed()? {
            self.record(record)?;
        }
        match result {
            Ok(result) => self.segment_ended(task, &result),
            // Another process was faster; it is watched.
            Err(error) if error.driving_process().is_some() => Ok(()),
            Err(error) if self.session_of(task)? != self.conversation.session => {
                tracing::warn!(%task, %error, "a task of another conversation cannot be driven");
                Ok(())
            }
            Err(error) => {
                let why = self.host.explain(error);
                let lines = why.lines().map(|line| self.options.settings.paint.red(line)).collect();
                self.input(Input::Print(Entry::Lines(lines))).await?;
                self.input(Input::Phase(Phase::Idle)).await
            }
        }
    }

    fn segment_ended(&mut self, task: TaskId, result: &TaskResult) -> Result<(), Failed> {
        let session = self.session_of(task)?;
        let is_shown = session == self.conversation.session;
        if let Some(until) = self.coordinator.tasks().parked(task).until()? {
            self.jobs.wait_while_parked(session, task, until);
            return Ok(());
        }
        if result.status == ResultStatus::BlockedUser {
            let open = self.coordinator.inbox().open_in_tree(task)?;
            // An answer may have come before the segment ended.
            if open.is_empty() {
                return self.drive(task);
            }
            for asked in open.iter().filter(|_| !is_shown) {
                self.jobs.wait_for_answer(session, asked.row.question.id, asked.row.task);
            }
        }
        // So may a message.
        self.jobs.wait_for_uptake(session, task);
        Ok(())
    }

    /// Parks what is driven here, keeps what is written, and says how it was left.
    pub(super) async fn leave(&mut self) -> ExitReport {
        self.drafts.save(&self.app);
        let (mut background, mut parked) = (Vec::new(), Vec::new());
        let tasks = self.driver.stop();
        if !tasks.is_empty() {
            let words = "leaving: waiting for the running step, at most 10 seconds".to_owned();
            self.take_in(Input::Notice(words));
            // A terminal that has gone shows nothing.
            let _ = self.console.painter.paint(&mut self.app);
            self.driver.wait_until_parked().await;
        }
        for task in tasks.into_iter().filter(|_| self.leaving == Some(Leaving::Background)) {
            match self.host.background(task) {
                Ok(()) => background.push(task),
                Err(why) => parked.push((task, why)),
            }
        }
        self.jobs.end_all();
        let session = self.conversation.session;
        let exists = self.coordinator.session(session).exists().unwrap_or(false);
        ExitReport { session, exists, background, parked }
    }

    /// Another conversation takes the place of this one, whose work continues.
    pub(super) fn open_session(&mut self, session: SessionId) {
        self.drafts.save(&self.app);
        self.unfollow();
        self.conversation = Conversation::new(self.coordinator.clone(), session);
        self.jobs.session = session;
        if let Some(workspace) = self.conversation.workspace() {
            self.enter(workspace);
        }
        let line = self.options.settings.paint.dim(&format!("── {session}"));
        self.take_in(Input::Print(Entry::note(line)));
        let (settings, size) = (self.options.settings.clone(), self.app.size);
        let fresh = App::new(settings, size, self.drafts.history());
        let before = std::mem::replace(&mut self.app, fresh);
        self.app.take_over(before);
        self.begin();
    }

    /// What belongs to the directory is that of the session from now on.
    fn enter(&mut self, workspace: PathBuf) {
        if self.options.workspace == workspace {
            return;
        }
        self.options.settings.project = project_name(&workspace);
        self.console.enter(&workspace);
        self.drafts.enter(&workspace);
        self.options.workspace = workspace;
    }
}
