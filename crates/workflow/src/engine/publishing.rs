//! Handing work to others: a branch is pushed, and a draft of a pull request opened for it.

use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_core::event::{StepEnded, StepResult};

use super::steps::{Attempt, CommandLine};
use super::{StepEnd, Trouble};
use crate::definition::PullRequestWork;
use crate::{template, worktree};

/// What a shell says of a program that it does not find.
const NOT_FOUND: i64 = 127;

impl Attempt<'_> {
    /// Pushes the branch of the worktree and opens a draft. The gate is asked as for every command that publishes.
    pub(super) async fn pull_request(self, work: &PullRequestWork) -> Result<StepEnd, Trouble> {
        let directory = self.worktrees().place(&self.leaf.worktree).await?;
        let left_out = self.left_out(&directory.display().to_string()).await?;
        let command = match self.text().await {
            Some(text) => text,
            None => {
                let (tree, message) = (PathBuf::from(&directory), self.title());
                // What an agent left without committing it is its work all the same.
                let commit = move |git: &_| worktree::commit_all(git, &tree, &message);
                self.engine.repository.with(commit).await?;
                self.command(&work.script(), self.request(work).await?)?
            }
        };
        let program = Some(work.program());
        let rerun = work.command.is_none();
        let end =
            self.run_command(CommandLine { text: command, directory, program, rerun }).await?;
        Ok(match end {
            StepEnd::Ended(ended) => StepEnd::Ended(with_link(ended, work.program(), left_out)),
            waiting @ StepEnd::Waiting(_) => waiting,
        })
    }

    /// What the command finds as `{{.request}}`, besides what every step finds.
    async fn request(
        self,
        work: &PullRequestWork,
    ) -> Result<serde_json::Map<String, Value>, Trouble> {
        let mut variables = self.variables().await;
        let render = |text: &str| {
            template::render(text, &variables).map_err(|error| Trouble::Failed(error.to_string()))
        };
        let title = work.title.as_deref().map(render).transpose()?;
        let body = work.body.as_deref().map(render).transpose()?;
        let request = json!({
            "remote": work.remote.as_deref().unwrap_or("origin"),
            "target": self.target(work.target.as_ref()).await?,
            "title": title.unwrap_or_else(|| self.title()),
            "body": body.unwrap_or_default(),
        });
        variables.insert("request".to_owned(), request);
        Ok(variables)
    }
}

/// Keeps the address that the command has printed and what was not committed, and says what is missing.
fn with_link(mut ended: StepEnded, program: &str, left_out: Vec<String>) -> StepEnded {
    let printed = ended.output["output"].as_str().unwrap_or_default();
    let is_link = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    let link = printed.split_whitespace().rfind(is_link).map(str::to_owned);
    if ended.result == StepResult::Failed && ended.output["exit_code"] == NOT_FOUND {
        ended.error = Some(format!(
            "`{program}` is not installed where the step runs; install it, or name another program with `command`"
        ));
    }
    if let (StepResult::Succeeded, Some(fields)) = (ended.result, ended.output.as_object_mut()) {
        fields.insert("url".to_owned(), link.map_or(Value::Null, Value::String));
        fields.insert("left_out".to_owned(), json!(left_out));
    }
    ended
}
