//! Trust: what a project's file would run is run only after a person has approved it (§15.13).

use windlass_core::ending::Ending;
use windlass_core::event::{Event, QuestionClosed};
use windlass_core::id::QuestionId;
use windlass_core::question::Question;
use windlass_core::status::StatusReason;

use super::{Concluded, Engine, Error, plain, question, stuck};
use crate::state::Asked;

/// What a person may say to the commands of a workflow.
pub const TRUST_OPTIONS: [&str; 2] = ["Approve", "Stop"];

impl Engine<'_> {
    /// Asks once, with every command of the file, unless they are approved; `None` where the run may work.
    pub(super) async fn check_approval(&self) -> Result<Option<Concluded>, Error> {
        let commands = self.workflow.commands();
        if self.source.approved || commands.is_empty() {
            return Ok(None);
        }
        let id = QuestionId::derived(&self.id().to_string(), "trust");
        match self.journal.answer_to(id).await.as_deref() {
            // A person may have said so elsewhere (`windlass trust`): then the question has its answer.
            None if self.host.is_approved(&self.source) => {
                if self.journal.read(|_, run| run.asked(id) == Asked::Open).await {
                    let reason = "its commands are approved".to_owned();
                    let closed = QuestionClosed { question: id, reason };
                    self.commit(vec![Event::QuestionClosed(closed)]).await?;
                }
                Ok(None)
            }
            None => {
                let list = commands.iter().map(|(place, command)| format!("{place}:\n{command}"));
                let context = list.collect::<Vec<_>>().join("\n\n");
                let text = format!(
                    "`{}` brings commands that nobody has approved. May it run them?",
                    self.source.path
                );
                let asked = Question {
                    context: Some(context),
                    options: TRUST_OPTIONS.map(str::to_owned).to_vec(),
                    ..question(id, text)
                };
                self.ask(asked).await?;
                Ok(Some(plain(Ending::Blocked)))
            }
            Some(text) if text == TRUST_OPTIONS[0] => match self.host.approve(&self.source) {
                Ok(()) => Ok(None),
                Err(error) => Ok(Some(stuck(StatusReason::Error, error.message))),
            },
            Some(_) => {
                let why = "its commands were not approved".to_owned();
                Ok(Some(plain(Ending::Cancelled(Some(why)))))
            }
        }
    }
}
