//! Trust: what a project's file would run is run only after a person has approved it (§15.13).

use windlass_core::ending::Ending;
use windlass_core::event::{Event, QuestionClosed, WorkflowSource};
use windlass_core::id::QuestionId;
use windlass_core::question::Question;
use windlass_core::status::StatusReason;

use super::{Engine, Error, SegmentResult, decision, plain, stuck};
use crate::definition::{Base, Checkout, Maker, WorktreeSpec};
use crate::git::GitError;
use crate::state::QuestionProgress;

/// What a person may say to the commands of a workflow.
pub const TRUST_OPTIONS: [&str; 2] = ["Approve", "Stop"];

/// Something of the project that brings commands.
struct Bringer {
    source: WorkflowSource,
    /// Where each is, and what it runs.
    commands: Vec<(String, String)>,
}

impl Engine<'_> {
    /// Asks once, with every command of the file and of the repository's settings, unless they are approved; `None`
    /// where the run may work.
    pub(super) async fn check_approval(&self) -> Result<Option<SegmentResult>, Error> {
        let bringers = match self.bringers().await {
            Ok(bringers) => bringers,
            Err(why) => return Ok(Some(stuck(StatusReason::Error, why.to_string()))),
        };
        let is_open = |one: &&Bringer| !self.host.is_approved(&one.source);
        let unapproved: Vec<&Bringer> = bringers.iter().filter(is_open).collect();
        let asked = self.question_about(&unapproved);
        if unapproved.is_empty() {
            // A person may have said so elsewhere (`windlass trust`): then a question has its answer.
            self.close_approved(&bringers).await?;
            return Ok(None);
        }
        match self.journal.answer_to(asked.id).await.as_deref() {
            None => {
                self.ask(asked).await?;
                Ok(Some(plain(Ending::Blocked)))
            }
            Some(text) if text == TRUST_OPTIONS[0] => {
                for one in unapproved {
                    if let Err(error) = self.host.approve(&one.source) {
                        return Ok(Some(stuck(StatusReason::Error, error.message)));
                    }
                }
                Ok(None)
            }
            Some(_) => {
                let why = "its commands were not approved".to_owned();
                Ok(Some(plain(Ending::Cancelled(Some(why)))))
            }
        }
    }

    /// What brings commands that were not approved when the run was started.
    async fn bringers(&self) -> Result<Vec<Bringer>, GitError> {
        let mut bringers = Vec::new();
        let commands = self.workflow.commands();
        if !self.source.approved && !commands.is_empty() {
            bringers.push(Bringer { source: self.source.clone(), commands });
        }
        if let Checkout::Worktree(WorktreeSpec { maker: Maker::Git(spec), .. }) =
            &self.workflow.place
            && let Some(settings) = self.repository.settings(spec.base == Base::Fresh).await?
        {
            let source = settings.source(&self.source);
            let commands = vec![(source.path.clone(), source.text.clone())];
            bringers.push(Bringer { source, commands });
        }
        Ok(bringers)
    }

    /// One question that shows all of it. Other settings are another question.
    fn question_about(&self, bringers: &[&Bringer]) -> Question {
        let is_file = |one: &Bringer| one.source.path == self.source.path;
        let mut key = "trust".to_owned();
        for one in bringers.iter().filter(|one| !is_file(one)) {
            key = format!("{key} {}", one.source.text);
        }
        let id = QuestionId::derived(&self.id().to_string(), &key);
        let list = bringers.iter().flat_map(|one| &one.commands);
        let list = list.map(|(place, command)| format!("{place}:\n{command}"));
        let context = list.collect::<Vec<_>>().join("\n\n");
        let names = bringers.iter().map(|one| format!("`{}`", one.source.path));
        let names = names.collect::<Vec<_>>().join(" and ");
        let brings = if bringers.len() == 1 { "brings" } else { "bring" };
        let text = format!("{names} {brings} commands that nobody has approved. May it run them?");
        Question { context: Some(context), ..decision(id, text, &TRUST_OPTIONS) }
    }

    /// Closes what was asked about commands that are approved by now.
    async fn close_approved(&self, bringers: &[Bringer]) -> Result<(), Error> {
        // It may have been asked about both, or about one of them.
        let all: Vec<&Bringer> = bringers.iter().collect();
        for some in [all.as_slice(), &all[..all.len().min(1)], &all[all.len().min(1)..]] {
            let question = self.question_about(some).id;
            let is_open =
                self.journal.read(|_, run| run.asked(question) == QuestionProgress::Open).await;
            if is_open {
                let reason = "its commands are approved".to_owned();
                let closed = QuestionClosed { question, reason };
                self.commit(vec![Event::QuestionClosed(closed)]).await?;
            }
        }
        Ok(())
    }
}
