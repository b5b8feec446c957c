//! The inbox: every question that waits for a person, and the answers.

use windlass_core::id::{InjectionId, QuestionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::question::Answer;
use windlass_core::session::{AxesChange, Scope, Source};
use windlass_store::{QuestionRow, QuestionState};

use crate::tasks::Parents;
use crate::views::{AskedCall, OpenQuestion, label, step_of};
use crate::{AxesChangeOutcome, AxesOrder, Coordinator, Error};

/// What people are asked.
#[derive(Clone, Copy)]
pub struct Inbox<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// What became of a question that somebody else may answer too.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionOutcome {
    /// It was answered.
    Answered(Answer),
    /// Nobody needs to answer it: it was closed, or its task has ended.
    Closed,
}

impl Inbox<'_> {
    /// Every open question, oldest first.
    pub fn open(self) -> Result<Vec<OpenQuestion>, Error> {
        let rows = self.coordinator.store.questions().open()?;
        rows.into_iter().map(|row| self.with_asker(row)).collect()
    }

    /// The questions that were answered last, the newest answer first.
    pub fn recently_answered(self, limit: u32) -> Result<Vec<QuestionRow>, Error> {
        Ok(self.coordinator.store.questions().recently_answered(limit)?)
    }

    /// The open questions and the task that asks each, oldest first.
    pub fn open_ids(self) -> Result<Vec<(QuestionId, TaskId)>, Error> {
        let rows = self.coordinator.store.questions().open()?;
        Ok(rows.into_iter().map(|row| (row.question.id, row.task)).collect())
    }

    /// The open questions of a task and of every agent below it, oldest first.
    pub fn open_in_tree(self, task: TaskId) -> Result<Vec<OpenQuestion>, Error> {
        let mut parents = Parents::default();
        let mut found = Vec::new();
        for row in self.coordinator.store.questions().open()? {
            if parents.is_at_or_below(self.coordinator, row.task, task)? {
                found.push(self.with_asker(row)?);
            }
        }
        Ok(found)
    }

    /// Resolves when a program that works for a task asks: it waits at its question, and its task runs on.
    pub async fn next_of_program(self, task: TaskId) -> Result<QuestionId, Error> {
        let mut changes = self.coordinator.store.changes();
        loop {
            changes.mark_seen();
            let open = self.open_in_tree(task)?;
            let asked = open.iter().find(|asked| asked.row.question.is_of_program());
            if let Some(asked) = asked {
                return Ok(asked.row.question.id);
            }
            changes.changed().await?;
        }
    }

    /// A question, open or not.
    pub fn get(self, question: QuestionId) -> Result<Option<OpenQuestion>, Error> {
        let row = self.coordinator.store.questions().get(question)?;
        row.map(|row| self.with_asker(row)).transpose()
    }

    /// A question by its own id, or by the id of the task that waits for it.
    pub fn find(self, text: &str) -> Result<QuestionId, Error> {
        let store = &self.coordinator.store;
        let unknown = match store.ids().question(text) {
            Ok(question) => return Ok(question),
            Err(error @ windlass_store::Error::UnknownQuestion(_)) => error,
            Err(error) => return Err(error.into()),
        };
        let Ok(task) = store.ids().task(text) else { return Err(unknown.into()) };
        let open = self.open_in_tree(task)?;
        match open.as_slice() {
            [only] => Ok(only.row.question.id),
            // The last one, so that a second answer is compared with the first.
            [] => match store.questions().of(task)?.last() {
                Some(last) => Ok(last.question.id),
                None => Err(Error::NothingAsked { task }),
            },
            several => {
                let questions = several.iter().map(|one| one.row.question.id).collect();
                Err(Error::SeveralQuestions { task, questions })
            }
        }
    }

    /// Answers a question, once, with what a person typed; returns the task that waits for it.
    pub async fn answer(self, question: QuestionId, text: &str, by: &str) -> Result<TaskId, Error> {
        self.answer_as(InjectionId::new(self.coordinator.now()), question, text, by).await
    }

    /// Answers a question from elsewhere and changes the axes of the session that asks with it: both or neither
    /// (MS-176).
    pub async fn answer_with_axes(
        self,
        question: QuestionId,
        text: &str,
        wanted: AxesChange,
        by: &str,
    ) -> Result<AxesChangeOutcome, Error> {
        let id = InjectionId::new(self.coordinator.now());
        let (task, injection) = self.read_answer(id, question, text, by)?;
        let session = self.coordinator.tasks().session_of(task)?;
        let order = AxesOrder {
            wanted,
            scope: Scope::Now,
            reason: format!("with the answer to {question}"),
            source: Source::Remote,
            by: by.to_owned(),
            id: None,
        };
        let session = self.coordinator.session(session);
        session.change_with(order, vec![(task, injection)]).await
    }

    /// The same by an id of the sender's, so that a repeated delivery has no further effect.
    pub(crate) async fn answer_as(
        self,
        id: InjectionId,
        question: QuestionId,
        text: &str,
        by: &str,
    ) -> Result<TaskId, Error> {
        let (task, injection) = self.read_answer(id, question, text, by)?;
        self.coordinator.messages().inject(task, injection).await?;
        Ok(task)
    }

    /// An answer as its task reads it.
    fn read_answer(
        self,
        id: InjectionId,
        question: QuestionId,
        text: &str,
        by: &str,
    ) -> Result<(TaskId, Injection), Error> {
        let row = self.coordinator.store.questions().get(question)?;
        let row = row.ok_or(Error::QuestionClosed { question })?;
        let Some(text) = row.question.read_answer(text) else {
            let (given, options) = (text.trim().to_owned(), row.question.options);
            return Err(Error::NotAnOption { given, options });
        };
        Ok((row.task, Injection::answer(id, question, &text).from(by)))
    }

    /// Resolves when somebody has answered a question or ended the task that asks.
    pub async fn wait_until_settled(self, question: QuestionId) -> Result<QuestionOutcome, Error> {
        let store = &self.coordinator.store;
        let mut changes = store.changes();
        loop {
            changes.mark_seen();
            let Some(row) = store.questions().get(question)? else {
                return Ok(QuestionOutcome::Closed);
            };
            if self.coordinator.tasks().has_ended(row.task)? {
                return Ok(QuestionOutcome::Closed);
            }
            match row.state {
                QuestionState::Open => {}
                QuestionState::Waiting(answer) | QuestionState::Answered(answer) => {
                    return Ok(QuestionOutcome::Answered(answer));
                }
                QuestionState::Closed { .. } => return Ok(QuestionOutcome::Closed),
            }
            changes.changed().await?;
        }
    }

    fn with_asker(self, row: QuestionRow) -> Result<OpenQuestion, Error> {
        let tasks = self.coordinator.tasks();
        let asker = tasks.get(row.task)?;
        let parent = asker.as_ref().and_then(|task| task.parent_id);
        let label = match parent {
            Some(parent) => label(&tasks.state(parent)?, row.task)
                .or(step_of(&tasks.state(row.task)?).map(str::to_owned)),
            None => None,
        };
        let call = match row.question.call {
            Some(_) => AskedCall::of(&tasks.state(row.task)?, &row),
            None => None,
        };
        Ok(OpenQuestion { row, asker, label, call })
    }
}
