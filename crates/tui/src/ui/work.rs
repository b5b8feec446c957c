//! The conversation: its task is followed, driven here where nobody else does, and its questions are waited for.

use windlass_coordinator::Error;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{Event, Record};
use windlass_core::id::{SessionId, TaskId};

use super::conversation::Conversation;
use super::{Failed, Left, Ui};
use crate::app::{App, Input, Leaving, Phase};
use crate::composer::Draft;
use crate::keymap::Action;
use crate::transcript::Entry;

impl Ui {
    /// Takes over the session: its axes, its conversation, what was written before.
    pub(super) fn begin(&mut self) {
        self.show_facts();
        let commands = self.conversation.commands();
        self.take_in(Input::Commands(commands));
        let mut said = Vec::new();
        if let Some(task) = self.conversation.current() {
            said = self.follow(task).unwrap_or_default();
            // It may have been left in the middle of something.
            if self.conversation.is_interrupted(task) {
                let _ = self.drive(task);
            }
        }
        let saved = self.drafts.load(self.conversation.session);
        saved.restore(&mut self.app, &said);
        if let Some(message) = self.options.message.take() {
            let draft = Draft::of(&message);
            self.app.outgoing.sending = Some(draft.clone());
            self.send(draft);
        }
        self.console.painter.is_dirty = true;
    }

    /// Looks at what others changed in the session.
    pub(super) fn check_session(&mut self) -> Result<(), Failed> {
        if !self.conversation.has_changed() {
            return Ok(());
        }
        self.show_facts();
        let current = self.conversation.current();
        if current == self.conversation.task {
            return Ok(());
        }
        match current {
            Some(task) => self.follow(task).map(drop),
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

    /// Tells the story of a task from its last events on; returns what people have said in it.
    pub(super) fn follow(&mut self, task: TaskId) -> Result<Vec<String>, Failed> {
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
        self.refresh_questions()?;
        self.show_facts();
        Ok(beginning.said)
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
        let moves = matches!(record.event, Event::ModeChanged(_) | Event::StatusChanged(_));
        let effects = self.take_in(Input::Record(Box::new(record)));
        self.postponed(effects);
        if asks || phase.is_some() {
            self.refresh_questions()?;
        }
        if moves || phase.is_some() {
            self.show_facts();
        }
        if let Some(phase) = phase {
            let effects = self.take_in(Input::Phase(phase));
            self.postponed(effects);
        }
        Ok(())
    }

    /// Shows the questions that are open at or below the conversation, and waits for each of them.
    pub(super) fn refresh_questions(&mut self) -> Result<(), Failed> {
        if self.conversation.task.is_none() {
            return Ok(());
        }
        let open = self.conversation.questions()?;
        for asked in &open {
            let question = asked.row.question.id;
            if self.conversation.must_await(question) {
                self.jobs.wait_for_answer(question, asked.row.task);
            }
        }
        let effects = self.take_in(Input::Questions(open));
        self.postponed(effects);
        Ok(())
    }

    /// Drives a task here, unless somebody drives it.
    pub(super) fn drive(&mut self, task: TaskId) -> Result<(), Failed> {
        let task = self.coordinator.tasks().root(task)?;
        if self.conversation.task != Some(task) {
            self.follow(task)?;
        }
        match self.driver.start(task, &self.options.settings.user)? {
            true => {
                self.take_in(Input::Phase(Phase::Working));
            }
            false => self.jobs.wait_for_uptake(task),
        }
        Ok(())
    }

    /// A segment ended here.
    pub(super) async fn drive_ended(
        &mut self,
        task: TaskId,
        result: Result<TaskResult, Error>,
    ) -> Result<(), Failed> {
        // Its last events first.
        while let Some(record) = self.conversation.committed()? {
            self.record(record)?;
        }
        match result {
            Ok(result) => self.segment_ended(task, &result).await,
            // Another process was faster; it is watched.
            Err(error) if error.driving_process().is_some() => Ok(()),
            Err(error) => {
                let why = self.host.explain(error);
                let lines = why.lines().map(|line| self.options.settings.paint.red(line)).collect();
                self.input(Input::Print(Entry::Lines(lines))).await?;
                self.input(Input::Phase(Phase::Idle)).await
            }
        }
    }

    async fn segment_ended(&mut self, task: TaskId, result: &TaskResult) -> Result<(), Failed> {
        if let Some(until) = self.coordinator.tasks().parked_until(task)? {
            self.jobs.wait_while_parked(task, until);
            let at = until.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
            return self.input(Input::Notice(format!("the model is asked again at {at}"))).await;
        }
        // An answer may have come before the segment ended.
        let blocked = result.status == ResultStatus::BlockedUser;
        if blocked && self.coordinator.inbox().below(task)?.is_empty() {
            return self.drive(task);
        }
        // So may a message.
        self.jobs.wait_for_uptake(task);
        Ok(())
    }

    /// Parks what is driven here, keeps what is written, and says how it was left.
    pub(super) async fn leave(&mut self) -> Left {
        self.drafts.save(&self.app, self.conversation.session);
        let mut background = None;
        if let Some(task) = self.driver.stop() {
            let words = "leaving: waiting for the running step, at most 10 seconds".to_owned();
            self.take_in(Input::Notice(words));
            // A terminal that has gone shows nothing.
            let _ = self.console.painter.paint(&mut self.app);
            self.driver.wait_until_parked().await;
            if self.leaving == Some(Leaving::Background) && self.host.background(task).is_ok() {
                background = Some(task);
            }
        }
        self.jobs.end_all();
        let session = self.conversation.session;
        let exists = self.coordinator.session(session).exists().unwrap_or(false);
        Left { session, exists, background }
    }

    /// Another conversation takes the place of this one.
    pub(super) fn open_session(&mut self, session: SessionId) {
        self.drafts.save(&self.app, self.conversation.session);
        // Leaving it parks it, as leaving the terminal does.
        self.driver.leave();
        self.unfollow();
        self.conversation = Conversation::new(self.coordinator.clone(), session);
        let line = self.options.settings.paint.dim(&format!("── {session}"));
        self.take_in(Input::Print(Entry::note(line)));
        let (settings, size) = (self.options.settings.clone(), self.app.size);
        let fresh = App::new(settings, size, self.drafts.history());
        let before = std::mem::replace(&mut self.app, fresh);
        self.app.take_over(before);
        self.begin();
    }
}
