//! What a sub-agent that has ended hands back to the agent that started it.

use windlass_core::event::{Event, SubAgentComplete, SubAgentSpawn, SubAgentStatus};
use windlass_core::outcome::{Fact, Outcome};
use windlass_core::secrets::holds_mark;
use windlass_core::state::{OpenCall, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_tools::output;
use windlass_tools::workspace::{Purpose, Replacement, content_hash};

use super::Delegation;
use crate::Error;
use crate::calls::result;

impl Delegation {
    /// The event that a sub-agent has ended, and the result of its call. `parent` is the task that started it.
    pub(super) fn result(
        &self,
        open: &OpenCall,
        spawn: &SubAgentSpawn,
        state: &TaskState,
        parent: &TaskState,
    ) -> Result<Vec<Event>, Error> {
        let why = self.tree.store().tasks().get(spawn.task_id)?.and_then(|row| row.detail);
        let complete = complete(spawn, state, why);
        let mut outcome = match complete.status {
            SubAgentStatus::Completed => Outcome::ok(""),
            SubAgentStatus::Failed | SubAgentStatus::Timeout => Outcome::error(""),
        };
        let written = spawn.write_output_to.as_deref().filter(|_| !complete.output.is_empty());
        let write = |path| match holds_mark(&complete.output) {
            true => Err("it holds a mark in place of a key".to_owned()),
            false => self
                .write_output(open, path, complete.output.as_bytes(), [parent, state])
                .map_err(|error| error.to_string()),
        };
        let note = match written.map(|path| (path, write(path))) {
            None => String::new(),
            Some((path, Ok(fact))) => {
                outcome = outcome.with(fact);
                let path = self.parts.world.workspace.layout().in_full(path);
                format!("\n\nOutput written to: {path}")
            }
            Some((path, Err(error))) => format!("\n\nOutput not written to {path}: {error}"),
        };
        let (id, limit) = (open.request.id, self.parts.settings.tool_output_max_tokens);
        let said = complete.error.as_deref().filter(|_| complete.output.is_empty());
        let text = said.unwrap_or(&complete.output).to_owned();
        let (text, truncated) = output::fit(text, id, limit, &self.parts.world.workspace);
        // The headline has times and tokens, which differ although nothing else does.
        let body = format!("Result:\n{text}{note}");
        outcome.fingerprint = Some(content_hash(body.as_bytes()));
        outcome.text = format!("{}\n\n{body}", headline(&complete));
        outcome.truncated = truncated;
        let duration_ms = complete.duration_ms;
        let event = Event::SubAgentComplete(Box::new(complete));
        Ok(std::iter::once(event).chain(result(open, outcome, duration_ms)).collect())
    }

    /// Writes the output where that was decided when the sub-agent began. A version of the file that neither of the two
    /// tasks knows is not replaced: another sub-agent may have written it, and believes that it is there.
    fn write_output(
        &self,
        open: &OpenCall,
        path: &str,
        content: &[u8],
        tasks: [&TaskState; 2],
    ) -> Result<Fact, windlass_tools::workspace::Error> {
        let workspace = &self.parts.world.workspace;
        let before = workspace.hash(path)?;
        let hash = content_hash(content);
        let is_known =
            |before: &String| tasks.iter().any(|task| task.files.known.get(path) == Some(before));
        if before.as_ref().is_some_and(|before| *before != hash && !is_known(before)) {
            return Err(windlass_tools::workspace::Error::Changed { path: path.to_owned() });
        }
        if before.as_ref() != Some(&hash) {
            workspace.replace(Replacement {
                call: open.request.id,
                path,
                before: before.as_deref(),
                content,
                purpose: Purpose::Agent,
            })?;
        }
        Ok(Fact::FileChanged { path: path.to_owned(), hash, diff: None })
    }
}

/// How a sub-agent ended; `why` is the reason that a person or a limit gave for ending it.
fn complete(spawn: &SubAgentSpawn, state: &TaskState, why: Option<String>) -> SubAgentComplete {
    let status = match state.status {
        TaskStatus::Done => SubAgentStatus::Completed,
        TaskStatus::Todo
        | TaskStatus::Running
        | TaskStatus::Verifying
        | TaskStatus::Reviewing
        | TaskStatus::Blocked
        | TaskStatus::Paused
        | TaskStatus::Retrying
        | TaskStatus::Failed
        | TaskStatus::Cancelled => match state.reason == StatusReason::Timeout {
            true => SubAgentStatus::Timeout,
            false => SubAgentStatus::Failed,
        },
    };
    let error = match status {
        SubAgentStatus::Completed => None,
        SubAgentStatus::Failed | SubAgentStatus::Timeout => Some(match &state.error {
            Some(error) => error.message.clone(),
            None => match why {
                Some(why) => format!("it was cancelled: {why}"),
                None => "it was cancelled".to_owned(),
            },
        }),
    };
    let mut files_changed = state.files.changed.clone();
    files_changed.sort();
    SubAgentComplete {
        call: spawn.call,
        task_id: spawn.task_id,
        label: spawn.label.clone(),
        status,
        output: state.last_reply.final_text.clone().unwrap_or_default(),
        usage: state.spending.usage,
        cost_usd: state.spending.known_cost(),
        duration_ms: state.spending.usage.duration_ms,
        files_changed,
        error,
        verdict: state.verdict.clone(),
    }
}

/// The first line of a result (ES-243).
fn headline(complete: &SubAgentComplete) -> String {
    let (label, status) = (&complete.label, complete.status);
    let seconds = (complete.duration_ms + 500) / 1_000;
    let tokens = with_commas(complete.usage.total_tokens);
    format!("Sub-agent \"{label}\" {status} in {seconds}s ({tokens} tokens).")
}

/// A number with a comma between groups of three digits.
fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-243
    #[test]
    fn tokens_are_grouped_by_thousands() {
        let texts = [0, 999, 1_000, 2_340, 1_234_567].map(with_commas);
        assert_eq!(texts, ["0", "999", "1,000", "2,340", "1,234,567"]);
    }
}
