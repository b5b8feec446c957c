//! What single events do to a task's state, where that takes more than a line.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{FoldError, OpenCall, Signal, Stage, TaskState, Unfinished, millis};
use crate::event::{LlmResponse, SubAgentComplete, ToolResult};
use crate::id::CallId;
use crate::injection::{Control, Injection};
use crate::message::{Finish, ToolRequest, Usage};
use crate::outcome::{Ending, Fact};
use crate::question::{Answer, Permission, Question, QuestionKind};
use crate::schedule::Expiry;
use crate::status::TaskStatus;

impl TaskState {
    pub(super) fn on_reply(&mut self, response: &LlmResponse) {
        let usage = &response.usage;
        self.spent(usage);
        self.spending.own_turns += 1;
        self.holds = 0;
        self.last_tokens = usage.input_tokens + usage.output_tokens;
        // What an agent says when it has saved its notes is not its last word.
        let flushing = self.cycle.on_reply(!response.calls.is_empty());
        let last = response.calls.is_empty() && !flushing;
        let (so_far, times) = match self.unfinished.take() {
            Some(Unfinished::Cut { text, times }) => (text, times),
            Some(Unfinished::Withheld) | None => (String::new(), 0),
        };
        (self.final_text, self.unfinished) = match response.finish {
            _ if !last => (None, None),
            Finish::Stop | Finish::ToolCalls => (Some(so_far + &response.text), None),
            Finish::Length => {
                let text = so_far + &response.text;
                (None, Some(Unfinished::Cut { text, times: times + 1 }))
            }
            Finish::ContentFilter => (None, Some(Unfinished::Withheld)),
        };
        self.open_calls = response
            .calls
            .iter()
            .map(|request| OpenCall { request: request.clone(), stage: Stage::Waiting })
            .collect();
    }

    pub(super) fn spent(&mut self, usage: &Usage) {
        self.usage.input_tokens += usage.input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        self.usage.total_tokens = self.usage.input_tokens + self.usage.output_tokens;
        self.cost_spent += usage.cost_usd.unwrap_or(0.0);
        self.priced |= usage.cost_usd.is_some();
        self.spending.settled(usage);
    }

    /// What a sub-agent took is part of what its parent took; its rounds and calls are its own.
    pub(super) fn on_sub_agent_end(&mut self, complete: &SubAgentComplete) {
        self.sub_agents.remove(&complete.call);
        complete.files_changed.iter().for_each(|path| self.on_file_change(path));
        self.usage.input_tokens += complete.usage.input_tokens;
        self.usage.output_tokens += complete.usage.output_tokens;
        self.usage.total_tokens = self.usage.input_tokens + self.usage.output_tokens;
        self.usage.sub_agents_spawned += complete.usage.sub_agents_spawned;
        self.cost_spent += complete.cost_usd.unwrap_or(0.0);
        self.priced |= complete.cost_usd.is_some();
    }

    pub(super) fn on_answer(
        &mut self,
        question: Question,
        answer: &Answer,
    ) -> Result<(), FoldError> {
        if question.kind == QuestionKind::Budget {
            self.spending.answered(&answer.text);
        }
        if question.permission(&answer.text) == Some(Permission::AllowAll)
            && let Some(rule) = &question.grants
            && !self.allow_rules.contains(rule)
        {
            self.allow_rules.push(rule.clone());
        }
        if let Some(call) = question.call {
            self.open_call("question_answered", call)?.stage =
                Stage::Answered(Box::new(question), answer.clone());
        }
        Ok(())
    }

    pub(super) fn on_tool_result(&mut self, result: &ToolResult) -> Result<(), FoldError> {
        let place = self.place("tool_result", result.call)?;
        let call = self.open_calls.remove(place);
        let ran = matches!(call.stage, Stage::Started(_) | Stage::Answered(..));
        self.usage.tool_calls += u32::from(ran);
        self.sub_agents.remove(&result.call);
        let flushing = self.cycle.is_flushing();
        if self.open_calls.is_empty() {
            self.usage.iterations += 1;
            self.cycle.on_round_end();
        }
        for fact in &result.outcome.facts {
            self.on_fact(fact);
        }
        if let Some(cut) = &result.outcome.truncated {
            self.outputs.push(cut.full_output_path.clone());
        }
        let ending = result.outcome.ending;
        let failed = matches!(ending, Ending::Error | Ending::Denied | Ending::Unknown);
        // What is refused while notes are saved says nothing about the work.
        if !flushing {
            let said = hash_of(result.outcome.comparable());
            self.guard.saw(&result.tool, canonical_hash(&call.request), said, failed);
        }
        Ok(())
    }

    pub(super) fn on_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::FileRead { path, hash } => {
                self.known_files.insert(path.clone(), hash.clone());
            }
            Fact::FileChanged { path, hash, .. } => {
                self.known_files.insert(path.clone(), hash.clone());
                self.on_file_change(path);
            }
            Fact::WorkingDirectory { path } => self.working_directory = Some(path.clone()),
            Fact::BackgroundStarted { call, command } => {
                self.background.insert(*call, command.clone());
            }
            // The plan and deliverables have events of their own; which skills bind it, the context knows.
            Fact::Plan(_) | Fact::Published(_) | Fact::SkillRead { .. } => {}
        }
    }

    fn on_file_change(&mut self, path: &str) {
        if !self.changed_files.iter().any(|known| known == path) {
            self.changed_files.push(path.to_owned());
        }
    }

    pub(super) fn on_injection(&mut self, injection: &Injection) {
        match &injection.control {
            Some(Control::Cancel { reason }) => self.signal = Some(Signal::Cancel(reason.clone())),
            // A cancel that waits is not softened by a pause that follows it.
            Some(Control::Pause) if matches!(self.signal, None | Some(Signal::Pause)) => {
                self.signal = Some(Signal::Pause);
            }
            Some(Control::Resume) if self.signal == Some(Signal::Pause) => self.signal = None,
            Some(Control::Revoke { rule }) => self.allow_rules.retain(|given| given != rule),
            Some(Control::Watch { schedule, next }) => match next {
                Some(_) => drop(self.schedules.insert(*schedule)),
                None => drop(self.schedules.remove(schedule)),
            },
            Some(Control::Unwatch { schedule }) => drop(self.schedules.remove(schedule)),
            // What a person said first stands.
            Some(Control::Expire { action }) if self.signal.is_none() => {
                self.signal = Some(Signal::Expired(*action, injection.content.clone()));
            }
            Some(Control::Pause | Control::Resume | Control::Expire { .. }) | None => {}
        }
        if let Some(told) = injection.told_skills() {
            self.told_skills = told;
        }
        if injection.text_for_model().is_some() {
            self.final_text = None;
            // What follows answers this, and does not go on from where the reply was cut.
            self.unfinished = None;
        }
    }

    pub(super) fn clear_signal(&mut self) {
        let obeyed = match self.signal {
            Some(Signal::Cancel(_)) => self.status.is_terminal(),
            Some(Signal::Pause | Signal::Expired(Expiry::Pause, _)) => {
                self.status == TaskStatus::Paused || self.status.is_terminal()
            }
            Some(Signal::Expired(Expiry::Fail | Expiry::Complete, _)) => self.status.is_terminal(),
            None => false,
        };
        if obeyed {
            self.signal = None;
        }
    }

    pub(super) fn end_segment(&mut self) {
        if let Some((from, heard)) = self.segment.take() {
            self.usage.duration_ms += millis(from, heard);
        }
    }

    pub(super) fn place(&self, event: &'static str, call: CallId) -> Result<usize, FoldError> {
        self.open_calls
            .iter()
            .position(|open| open.request.id == call)
            .ok_or(FoldError::NoSuchCall { event, call })
    }

    pub(super) fn open_call(
        &mut self,
        event: &'static str,
        call: CallId,
    ) -> Result<&mut OpenCall, FoldError> {
        let place = self.place(event, call)?;
        Ok(&mut self.open_calls[place])
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Two calls are the same when tool and arguments are, whatever the order of keys.
fn canonical_hash(request: &ToolRequest) -> u64 {
    let arguments = serde_json::from_str::<serde_json::Value>(&request.arguments)
        .map_or_else(|_| request.arguments.clone(), |value| value.to_string());
    hash_of((&request.name, arguments))
}
