//! What a sub-agent that has ended hands back to the agent that started it.

use windlass_core::event::{Event, SubAgentComplete, SubAgentSpawn, SubAgentStatus};
use windlass_core::outcome::{Fact, Outcome};
use windlass_core::state::{OpenCall, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_tools::output;
use windlass_tools::workspace::{Purpose, Replacement, content_hash};

use super::Delegation;
use crate::Error;
use crate::calls::result;

impl Delegation {
    /// The event that a sub-agent has ended, and the result of its call.
    pub(super) fn result(
        &self,
        open: &OpenCall,
        spawn: &SubAgentSpawn,
        state: &TaskState,
    ) -> Result<Vec<Event>, Error> {
        let why = self.tree.store().tasks().get(spawn.task_id)?.and_then(|row| row.detail);
        let complete = complete(spawn, state, why);
        let mut outcome = match complete.status {
            SubAgentStatus::Completed => Outcome::ok(""),
            SubAgentStatus::Failed | SubAgentStatus::Timeout => Outcome::error(""),
        };
        let written = spawn.write_output_to.as_deref().filter(|_| !complete.output.is_empty());
        let note = match written.map(|path| (path, self.write_output(open, path, &complete))) {
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

    fn write_output(
        &self,
        open: &OpenCall,
        path: &str,
        complete: &SubAgentComplete,
    ) -> Result<Fact, windlass_tools::workspace::Error> {
        let workspace = &self.parts.world.workspace;
        let current = workspace.write_target(path, Purpose::Agent)?;
        let content = complete.output.as_bytes();
        let hash = content_hash(content);
        if current.hash.as_deref() != Some(&hash) {
            workspace.replace(Replacement {
                call: open.request.id,
                path: &current.path,
                before: current.hash.as_deref(),
                content,
                purpose: Purpose::Agent,
            })?;
        }
        Ok(Fact::FileChanged { path: current.path, hash, diff: None })
    }
}

/// What became of a sub-agent, and in whose words it was ended, if somebody's.
fn complete(spawn: &SubAgentSpawn, state: &TaskState, why: Option<String>) -> SubAgentComplete {
    let status = match (state.status, state.reason) {
        (TaskStatus::Done, _) => SubAgentStatus::Completed,
        (_, StatusReason::Timeout) => SubAgentStatus::Timeout,
        _ => SubAgentStatus::Failed,
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
    let tokens = grouped(complete.usage.total_tokens);
    format!("Sub-agent \"{label}\" {status} in {seconds}s ({tokens} tokens).")
}

/// A number with a comma between groups of three digits.
fn grouped(number: u64) -> String {
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
        let texts = [0, 999, 1_000, 2_340, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "2,340", "1,234,567"]);
    }
}
