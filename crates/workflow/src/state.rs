//! What is known of a run: the fold of its events.
//!
//! Invariant: `apply` is the only way it changes. Where a run is resumed, the same fold says what comes next.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use windlass_core::event::{
    Event, MergeChanged, MergeState, StatusChanged, StepEnded, StepResult, StepStarted,
    WorktreeChanged,
};
use windlass_core::id::QuestionId;
use windlass_core::injection::InjectionType;
use windlass_core::question::Answer;
use windlass_core::status::{StatusReason, TaskStatus};

/// The type of a step that an agent works on.
const AGENT: &str = "agent";

/// Everything that is known of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// The state of each step, by its path.
    steps: BTreeMap<String, StepState>,
    /// Paths in the order in which they ended last.
    ended: Vec<String>,
    /// By name; the run's own has an empty one.
    pub worktrees: BTreeMap<String, WorktreeChanged>,
    /// The last of each merge step, by path.
    pub merges: BTreeMap<String, MergeChanged>,
    /// What people have said to it since its last agent began.
    pub messages: Vec<String>,
    /// Whether a question is open, or what was answered.
    questions: BTreeMap<QuestionId, Option<Answer>>,
}

/// How far a step is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepState {
    /// Its last attempt.
    pub started: Option<StepStarted>,
    /// How its last attempt ended.
    pub ended: Option<StepEnded>,
    /// Whether the run has stopped since then. Whoever resumes it wants a failed step tried again.
    pub has_stopped: bool,
    /// Whether the run has failed since then and is tried again.
    pub is_retried: bool,
}

/// What is known of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionProgress<'a> {
    /// Nobody was asked.
    No,
    Open,
    Answered(&'a Answer),
}

impl RunState {
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut state = Self::default();
        events.into_iter().for_each(|event| state.apply(event));
        state
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::WorkflowStepStarted(started) => {
                let step = self.steps.entry(started.step.clone()).or_default();
                *step = StepState { started: Some((**started).clone()), ..StepState::default() };
                self.ended.retain(|path| *path != started.step);
                if started.kind == AGENT {
                    self.messages.clear();
                }
            }
            Event::InjectionReceived(said) if said.injection_type == InjectionType::UserMessage => {
                self.messages.push(said.content.clone());
            }
            Event::WorkflowStepEnded(ended) => {
                let step = self.steps.entry(ended.step.clone()).or_default();
                step.ended = Some((**ended).clone());
                (step.has_stopped, step.is_retried) = (false, false);
                self.ended.retain(|path| *path != ended.step);
                self.ended.push(ended.step.clone());
            }
            Event::WorktreeChanged(tree) => {
                self.worktrees.insert(tree.name.clone(), (**tree).clone());
            }
            Event::MergeChanged(merge) => {
                self.merges.insert(merge.step.clone(), (**merge).clone());
            }
            Event::QuestionAsked(question) => drop(self.questions.insert(question.id, None)),
            Event::QuestionAnswered(answered) => {
                self.questions.insert(answered.question, Some(answered.answer.clone()));
            }
            Event::QuestionClosed(closed) => drop(self.questions.remove(&closed.question)),
            Event::StatusChanged(moved) if is_stuck(moved) => {
                let failed = self.steps.values_mut().filter(|step| step.ended.is_some());
                failed.for_each(|step| step.has_stopped = true);
            }
            Event::StatusChanged(moved) if moved.to == TaskStatus::Retrying => {
                let ended = self.steps.values_mut().filter(|step| step.ended.is_some());
                ended.for_each(|step| step.is_retried = true);
            }
            // The rest is the task's own.
            _ => {}
        }
    }

    pub fn step(&self, path: &str) -> Option<&StepState> {
        self.steps.get(path)
    }

    /// Every step that has begun or ended, by path.
    pub fn steps(&self) -> impl Iterator<Item = (&String, &StepState)> {
        self.steps.iter()
    }

    /// How a step ended.
    pub fn end_of(&self, path: &str) -> Option<&StepEnded> {
        self.steps.get(path)?.ended.as_ref()
    }

    /// Whether one end was journaled before another.
    pub fn has_ended_before(&self, one: &StepEnded, other: &StepEnded) -> bool {
        let place = |ended: &StepEnded| self.ended.iter().position(|path| *path == ended.step);
        place(one) < place(other)
    }

    /// How the newest step of a name ended, in whatever round.
    pub fn last_of(&self, name: &str) -> Option<&StepEnded> {
        let path = self.ended.iter().rev().find(|path| name_of(path) == name)?;
        self.end_of(path)
    }

    /// How the steps inside another ended, each the last time, in the order in which they ended.
    pub fn ends_below<'s>(&'s self, outer: &'s str) -> impl Iterator<Item = &'s StepEnded> {
        let inside = self.ended.iter().filter(move |path| is_below(path, outer));
        inside.filter_map(|path| self.end_of(path))
    }

    /// Why what was done in a step is of no use: an agent in it, or the step itself, did not succeed.
    pub fn why_unusable(&self, path: &str) -> Option<String> {
        let Some(ended) = self.end_of(path) else { return Some("it has not ended".to_owned()) };
        let is_of_agent = |ended: &&StepEnded| {
            let step = self.steps.get(&ended.step).and_then(|step| step.started.as_ref());
            step.is_some_and(|started| started.kind == AGENT)
        };
        // Of several rounds the last counts.
        let mut agents: BTreeMap<&str, &StepEnded> = BTreeMap::new();
        for ended in self.ends_below(path).filter(is_of_agent) {
            agents.insert(name_of(&ended.step), ended);
        }
        let all = agents.into_values().chain([ended]);
        let failed = all.into_iter().find(|ended| ended.result != StepResult::Succeeded)?;
        Some(failed.error.clone().unwrap_or_else(|| "it did not succeed".to_owned()))
    }

    /// The heads of a branch that merges have taken to their targets.
    pub fn merged_heads(&self, branch: &str) -> Vec<String> {
        let is_it =
            |merge: &&MergeChanged| merge.branch == branch && merge.state == MergeState::Merged;
        self.merges.values().filter(is_it).map(|merge| merge.head.clone()).collect()
    }

    pub fn asked(&self, question: QuestionId) -> QuestionProgress<'_> {
        match self.questions.get(&question) {
            None => QuestionProgress::No,
            Some(None) => QuestionProgress::Open,
            Some(Some(answer)) => QuestionProgress::Answered(answer),
        }
    }

    /// What steps have left for templates, by their names. Of several rounds the last counts; a round in which a step was
    /// skipped takes nothing away.
    pub fn outputs(&self) -> Map<String, Value> {
        let mut found: Map<String, Value> = Map::new();
        for ended in self.ended.iter().filter_map(|path| self.end_of(path)) {
            let name = name_of(&ended.step);
            match (ended.result, found.get_mut(name), view(ended)) {
                (StepResult::Skipped, Some(Value::Object(before)), Value::Object(skipped)) => {
                    before.extend(skipped);
                }
                (_, _, view) => drop(found.insert(name.to_owned(), view)),
            }
        }
        found
    }

    /// Whether a step has worked, in any round.
    pub fn has_worked(&self, name: &str) -> bool {
        let ends = self.ended.iter().filter(|path| name_of(path) == name);
        ends.filter_map(|path| self.end_of(path)).any(|end| end.result != StepResult::Skipped)
    }
}

/// Whether a run stops here because of a step that failed.
pub(crate) fn is_stuck(moved: &StatusChanged) -> bool {
    let reasons = [StatusReason::Error, StatusReason::Timeout, StatusReason::MergeConflict];
    moved.to == TaskStatus::Blocked && reasons.contains(&moved.reason)
}

/// A step's output as templates see it: with `success` and `failed`, whatever it is.
pub fn view(ended: &StepEnded) -> Value {
    let mut fields = match &ended.output {
        Value::Object(fields) => fields.clone(),
        Value::Null => Map::new(),
        other => Map::from_iter([("output".to_owned(), other.clone())]),
    };
    let is = |result| Value::Bool(ended.result == result);
    fields.insert("success".to_owned(), is(StepResult::Succeeded));
    fields.insert("failed".to_owned(), is(StepResult::Failed));
    fields.insert("skipped".to_owned(), is(StepResult::Skipped));
    let error = ended.error.clone().map_or(Value::Null, Value::String);
    fields.entry("error").or_insert(error);
    Value::Object(fields)
}

/// Whether a path leads into the step of another.
pub fn is_below(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// The name of the step that a path leads to: `test` of `fix[2].test`.
pub fn name_of(path: &str) -> &str {
    let last = path.rsplit('.').next().unwrap_or(path);
    last.split('[').next().unwrap_or(last)
}
