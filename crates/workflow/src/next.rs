//! What comes next in a run: a pure function of the workflow and of what is journaled.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use windlass_core::event::{StepEnded, StepResult, WorkflowSource};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::status::StatusReason;

use crate::definition::{LoopWork, MAX_ROUNDS, OnFail, ParallelWork, Step, Work, Workflow};
use crate::state::{QuestionProgress, RunState, is_below, view};
use crate::template;

/// What a person may decide about a step that failed (`on_fail: ask`).
pub const FAILURE_OPTIONS: [&str; 3] = ["Try again", "Continue", "Stop"];

/// What comes next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// These steps may work now, side by side. Some may have begun before.
    Work(Vec<Leaf>),
    /// A step ends without working: it is skipped, or all inside it has ended.
    End(StepEnded),
    /// A person decides about a step that failed.
    Decide(StepEnded),
    /// A step that failed stops the run.
    Stop(StepEnded),
    Finished,
}

/// A step that works by itself, in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    pub path: String,
    pub step: Step,
    pub attempt: u32,
    /// The worktree that it works in, by name.
    pub worktree: String,
    pub variables: Map<String, Value>,
}

/// A run, as far as deciding needs it.
pub struct Run<'a> {
    pub id: TaskId,
    pub workflow: &'a Workflow,
    pub source: &'a WorkflowSource,
    pub state: &'a RunState,
    /// Loops and parallel steps whose time is up: nothing in them begins any more.
    pub overdue: &'a BTreeSet<String>,
}

/// The question about a step that failed.
pub fn failure_question(run: TaskId, ended: &StepEnded) -> QuestionId {
    question_about(run, &ended.step, ended.attempt)
}

fn question_about(run: TaskId, step: &str, attempt: u32) -> QuestionId {
    QuestionId::derived(&run.to_string(), &format!("failed {step} {attempt}"))
}

/// How a person says that a loop may have more rounds.
pub fn more_rounds(count: u32) -> String {
    match count {
        1 => "1 more round".to_owned(),
        count => format!("{count} more rounds"),
    }
}

/// How many rounds an answer adds; `own` where it says no number.
fn rounds_in(answer: &str, own: u32) -> Option<u32> {
    if answer == FAILURE_OPTIONS[0] {
        return Some(own);
    }
    let count: u32 = answer.split_whitespace().next()?.parse().ok()?;
    (1..=MAX_ROUNDS).contains(&count).then_some(count)
}

/// How many rounds a loop may have, and how often that has been said.
struct Bound {
    max: u32,
    attempt: u32,
}

/// What a walk over steps came to.
enum Walked {
    /// All have ended.
    Done,
    Found(Next),
}

/// Where a walk is.
#[derive(Clone, Default)]
struct At<'s> {
    /// Before the name of a step in its path.
    prefix: String,
    worktree: String,
    previous: Option<&'s StepEnded>,
    /// The round of the innermost loop.
    round: Option<(u32, u32)>,
    /// The step around it that has ended and is tried again: what failed in it before that end is tried again too.
    retried: Option<&'s StepEnded>,
    /// Whether all that failed here is tried again, whatever the file says of its failures.
    is_retried: bool,
}

impl<'a> Run<'a> {
    /// What comes next.
    pub fn next(&self) -> Next {
        match self.sequence(&self.workflow.steps, &mut At::default()) {
            Walked::Done => Next::Finished,
            Walked::Found(next) => next,
        }
    }

    /// The steps because of which the run fails at its end. One around another is not named beside it.
    pub fn failures(&self) -> Vec<&'a StepEnded> {
        let steps = self.workflow.all_steps();
        let counts = steps.iter().filter(|step| step.on_fail == OnFail::FailAtEnd);
        let ends = counts.filter_map(|step| self.state.last_of(&step.name));
        let failed: Vec<_> = ends.filter(|ended| ended.result == StepResult::Failed).collect();
        let is_around =
            |outer: &StepEnded| failed.iter().any(|ended| is_below(&ended.step, &outer.step));
        failed.iter().copied().filter(|ended| !is_around(ended)).collect()
    }

    fn sequence(&self, steps: &'a [Step], at: &mut At<'a>) -> Walked {
        for step in steps {
            if let Walked::Found(next) = self.step(step, at) {
                return Walked::Found(next);
            }
            let path = format!("{}{}", at.prefix, step.name);
            if let Some(ended) = self.state.end_of(&path)
                && ended.result != StepResult::Skipped
            {
                at.previous = Some(ended);
            }
        }
        Walked::Done
    }

    fn step(&self, step: &'a Step, at: &At<'a>) -> Walked {
        let path = format!("{}{}", at.prefix, step.name);
        let known = self.state.step(&path);
        if let Some(ended) = known.and_then(|known| known.ended.as_ref()) {
            if self.is_retried(step, at, ended) {
                let inside = At { is_retried: true, ..at.clone() };
                return self.again(step, &inside, path, ended);
            }
            if self.is_around_retried(ended) {
                return self.again(step, at, path, ended);
            }
            if !self.is_outdated(at, ended) {
                return self.ended(step, at, path, ended);
            }
            return match self.reason_not_to_run(step, at, &path) {
                Some(end) => Walked::Found(Next::End(end)),
                None => self.again(step, at, path, ended),
            };
        }
        let has_begun = known.is_some_and(|known| known.started.is_some());
        if !has_begun && let Some(end) = self.reason_not_to_run(step, at, &path) {
            return Walked::Found(Next::End(end));
        }
        if self.overdue.contains(&path) && !self.is_at_work_below(&path) {
            return Walked::Found(Next::End(self.overdue_end(step, &path)));
        }
        match &step.work {
            Work::Loop(work) => self.rounds(step, work, at, &path),
            Work::Parallel(work) => self.side_by_side(step, work, at, &path, 1),
            Work::Agent(_)
            | Work::Script { .. }
            | Work::Merge(_)
            | Work::PullRequest(_)
            | Work::Ask { .. } => {
                let attempt = known.and_then(|known| Some(known.started.as_ref()?.attempt));
                Walked::Found(Next::Work(vec![self.leaf(step, at, path, attempt.unwrap_or(1))]))
            }
        }
    }

    /// A step that has ended lets the walk continue, or stops it.
    fn ended(&self, step: &'a Step, at: &At<'a>, path: String, ended: &'a StepEnded) -> Walked {
        if ended.result != StepResult::Failed {
            return Walked::Done;
        }
        if self.is_let_pass(step, ended) {
            return Walked::Done;
        }
        let is_resumed = self.state.step(&path).is_some_and(|known| known.has_stopped)
            || at.retried.is_some_and(|outer| self.state.has_ended_before(ended, outer));
        if let Work::Loop(work) = &step.work {
            return match self.continues(work, &path, ended, is_resumed) {
                true => self.again(step, at, path, ended),
                false => self.stopped(step, ended),
            };
        }
        let answer = self.state.asked(failure_question(self.id, ended));
        let tries_again = matches!(answer, QuestionProgress::Answered(answer) if answer.text == FAILURE_OPTIONS[0]);
        match is_resumed || (step.on_fail == OnFail::Ask && tries_again) {
            true => self.again(step, at, path, ended),
            false => self.stopped(step, ended),
        }
    }

    /// The next attempt of a step that has ended.
    fn again(&self, step: &'a Step, at: &At<'a>, path: String, ended: &'a StepEnded) -> Walked {
        match &step.work {
            Work::Loop(_) | Work::Parallel(_)
                if self.overdue.contains(&path) && !self.is_at_work_below(&path) =>
            {
                Walked::Found(Next::End(self.overdue_end(step, &path)))
            }
            Work::Loop(work) => self.rounds(step, work, at, &path),
            Work::Parallel(work) => self.side_by_side(step, work, at, &path, ended.attempt + 1),
            Work::Agent(_)
            | Work::Script { .. }
            | Work::Merge(_)
            | Work::PullRequest(_)
            | Work::Ask { .. } => {
                let attempt = ended.attempt + 1;
                Walked::Found(Next::Work(vec![self.leaf(step, at, path, attempt)]))
            }
        }
    }

    /// Whether a run that failed at its end is tried again since this end: the steps because of which it failed are, with
    /// what failed inside them, and so are the tries none of which could be taken.
    fn is_retried(&self, step: &Step, at: &At<'a>, ended: &StepEnded) -> bool {
        let is_cause = at.is_retried || step.on_fail == OnFail::FailAtEnd;
        let is_retried = self.state.step(&ended.step).is_some_and(|known| known.is_retried);
        let has_failed = is_cause && ended.result == StepResult::Failed;
        is_retried && (has_failed || self.has_no_pick(step))
    }

    /// Whether a step inside this one is tried again, or was since this one ended: what comes of it is not in this one.
    fn is_around_retried(&self, ended: &StepEnded) -> bool {
        let path = &ended.step;
        let is_retried = self.state.step(path).is_some_and(|known| known.is_retried);
        let is_cause = |failed: &&StepEnded| is_below(&failed.step, path);
        let mut inside = self.state.ends_below(path);
        is_retried
            && (self.failures().iter().any(is_cause)
                || self.is_at_work_below(path)
                || inside.any(|inner| self.state.has_ended_before(ended, inner)))
    }

    /// Whether a question offers the results of this step, and failed.
    fn has_no_pick(&self, step: &Step) -> bool {
        self.workflow.all_steps().iter().any(|asks| {
            matches!(&asks.work, Work::Ask { from: Some(from), .. } if *from == step.name)
                && asks.on_fail == OnFail::FailAtEnd
                && self
                    .state
                    .last_of(&asks.name)
                    .is_some_and(|end| end.result == StepResult::Failed)
        })
    }

    /// Whether a step before this one was tried again since: what came of it is not in this one.
    fn is_outdated(&self, at: &At<'a>, ended: &StepEnded) -> bool {
        at.previous.is_some_and(|previous| self.state.has_ended_before(ended, previous))
    }

    /// Whether the file, or a person, lets the run continue after this failure.
    pub(crate) fn is_let_pass(&self, step: &Step, ended: &StepEnded) -> bool {
        match step.on_fail {
            OnFail::Continue | OnFail::FailAtEnd => true,
            OnFail::Stop => false,
            OnFail::Ask => match self.state.asked(failure_question(self.id, ended)) {
                QuestionProgress::Answered(answer) => answer.text == FAILURE_OPTIONS[1],
                QuestionProgress::No | QuestionProgress::Open => false,
            },
        }
    }

    /// A step that has failed and is not tried again.
    fn stopped(&self, step: &Step, ended: &StepEnded) -> Walked {
        let is_decided = matches!(
            self.state.asked(failure_question(self.id, ended)),
            QuestionProgress::Answered(_)
        );
        Walked::Found(match step.on_fail {
            OnFail::Ask if !is_decided => Next::Decide(ended.clone()),
            OnFail::Stop | OnFail::Continue | OnFail::FailAtEnd | OnFail::Ask => {
                Next::Stop(ended.clone())
            }
        })
    }

    /// Whether a loop that has failed runs on: a person has added rounds, or has resumed the run after its time was up
    /// or after it was stopped. Resumed after `Stop`, it asks for rounds once more.
    fn continues(&self, work: &LoopWork, path: &str, ended: &StepEnded, is_resumed: bool) -> bool {
        let answer = self.state.asked(question_about(self.id, path, ended.attempt));
        let is_stopped = matches!(answer, QuestionProgress::Answered(answer) if answer.text == FAILURE_OPTIONS[2]);
        let has_rounds = self.bound(work, path).attempt > ended.attempt && !is_stopped;
        let is_unfinished = ended.output["rounds"].is_null();
        has_rounds || is_resumed && (is_stopped || is_unfinished)
    }

    /// The rounds that a loop may have by now: its own, and those that a person has added each time they were used up.
    fn bound(&self, work: &LoopWork, path: &str) -> Bound {
        let mut bound = Bound { max: work.max, attempt: 1 };
        while let QuestionProgress::Answered(answer) =
            self.state.asked(question_about(self.id, path, bound.attempt))
        {
            let more = rounds_in(&answer.text, work.max);
            if more.is_none() && answer.text != FAILURE_OPTIONS[2] {
                break;
            }
            let max = bound.max.saturating_add(more.unwrap_or_default());
            bound = Bound { max, attempt: bound.attempt + 1 };
        }
        bound
    }

    /// The end of a step whose time is up.
    fn overdue_end(&self, step: &Step, path: &str) -> StepEnded {
        StepEnded {
            step: path.to_owned(),
            attempt: self.state.end_of(path).map_or(1, |ended| ended.attempt + 1),
            result: StepResult::Failed,
            output: Value::Null,
            error: Some(too_long(step)),
            reason: Some(StatusReason::Timeout),
        }
    }

    /// Whether a step inside another has begun and not ended.
    fn is_at_work_below(&self, path: &str) -> bool {
        self.state.steps().any(|(inner, known)| {
            is_below(inner, path) && known.started.is_some() && known.ended.is_none()
        })
    }

    /// Whether the time of a step around this one is up.
    fn is_below_overdue(&self, path: &str) -> bool {
        self.overdue.iter().any(|outer| is_below(path, outer))
    }

    fn leaf(&self, step: &'a Step, at: &At<'a>, path: String, attempt: u32) -> Leaf {
        Leaf {
            path,
            step: step.clone(),
            attempt,
            worktree: at.worktree.clone(),
            variables: self.variables(at),
        }
    }

    /// Why a step ends before it begins: a step that it needs did not succeed, or its condition does not hold.
    fn reason_not_to_run(&self, step: &Step, at: &At<'a>, path: &str) -> Option<StepEnded> {
        let end = |result, error: String| StepEnded {
            step: path.to_owned(),
            attempt: 1,
            result,
            output: Value::Null,
            error: Some(error),
            reason: (result == StepResult::Failed).then_some(StatusReason::Error),
        };
        let is_missing = |need: &&String| {
            self.state.last_of(need).is_none_or(|ended| ended.result != StepResult::Succeeded)
        };
        if let Some(need) = step.needs.iter().find(is_missing) {
            return Some(end(StepResult::Skipped, format!("`{need}` did not succeed")));
        }
        let condition = step.when.as_ref()?;
        match template::render(condition, &self.variables(at)) {
            Ok(text) if template::is_true(&text) => None,
            Ok(_) => Some(end(StepResult::Skipped, "its condition does not hold".to_owned())),
            Err(error) => Some(end(StepResult::Failed, format!("its condition: {error}"))),
        }
    }

    fn rounds(&self, step: &'a Step, work: &'a LoopWork, at: &At<'a>, path: &str) -> Walked {
        let mut inside = at.clone();
        inside.retried = self.state.end_of(path).or(at.retried);
        let Bound { max, attempt } = self.bound(work, path);
        // One whose time was up has an end already, without a question about its rounds.
        let attempt = attempt.max(self.state.end_of(path).map_or(1, |ended| ended.attempt));
        let end = |rounds, error| Walked::Found(Next::End(loop_end(path, attempt, rounds, error)));
        for round in 1..=max {
            inside.prefix = format!("{path}[{round}].");
            inside.round = Some((round, max));
            if let Walked::Found(next) = self.sequence(&work.steps, &mut inside) {
                return self.passed_on(step, path, next, attempt);
            }
            let Some(until) = &work.until else { continue };
            // It did not hold when the next round began, and outputs are those of the last round.
            let next = format!("{path}[{}].", round + 1);
            if self.state.steps().any(|(step, _)| step.starts_with(&next)) {
                continue;
            }
            match template::render(until, &self.variables(&inside)) {
                Ok(text) if template::is_true(&text) => return end(round, None),
                Ok(_) => {}
                Err(error) => return end(round, Some(format!("its condition: {error}"))),
            }
        }
        let error = work.until.is_some().then(|| match max {
            1 => "its condition does not hold after 1 round".to_owned(),
            rounds => format!("its condition does not hold after {rounds} rounds"),
        });
        end(max, error)
    }

    /// Where something inside stops, the step around it may still let the run continue.
    fn passed_on(&self, step: &'a Step, path: &str, next: Next, attempt: u32) -> Walked {
        match (next, step.on_fail) {
            (Next::Stop(inner), OnFail::Continue | OnFail::FailAtEnd | OnFail::Ask) => {
                let error = format!("step `{}` failed", inner.step);
                Walked::Found(Next::End(StepEnded {
                    step: path.to_owned(),
                    attempt,
                    result: StepResult::Failed,
                    output: Value::Null,
                    error: Some(error),
                    reason: inner.reason,
                }))
            }
            (next, _) => Walked::Found(next),
        }
    }

    fn side_by_side(
        &self,
        step: &'a Step,
        work: &'a ParallelWork,
        at: &At<'a>,
        path: &str,
        attempt: u32,
    ) -> Walked {
        let steps = &work.steps;
        let (mut leaves, mut stopped, mut undecided) = (Vec::new(), None, None);
        // Those that began first are first in the list, so the first ones that have not ended are at work.
        let mut free = work.workers.unwrap_or(u32::MAX);
        let has_ended = |step: &Step| self.state.end_of(&format!("{path}.{}", step.name)).is_some();
        // A branch waits for another one as a whole: only then is known what became of a step in it.
        let is_pending = |inner: &Step| {
            let others = steps.iter().filter(|other| other.name != inner.name);
            others.filter(|other| needs_of(inner, other)).any(|other| !has_ended(other))
        };
        for inner in steps.iter().filter(|inner| !is_pending(inner)) {
            if free == 0 {
                break;
            }
            let mut inside = At { prefix: format!("{path}."), ..at.clone() };
            inside.retried = self.state.end_of(path).or(at.retried);
            inside.worktree = match at.worktree.as_str() {
                "" => inner.name.clone(),
                outer => format!("{outer}-{}", inner.name),
            };
            match self.step(inner, &inside) {
                Walked::Done => {}
                Walked::Found(Next::Work(more)) => {
                    leaves.extend(more);
                    free = free.saturating_sub(1);
                }
                // The others work while a person decides.
                Walked::Found(decide @ Next::Decide(_)) => undecided = undecided.or(Some(decide)),
                // The others come to their end first.
                Walked::Found(stop @ Next::Stop(_)) => stopped = stopped.or(Some(stop)),
                Walked::Found(other) => return Walked::Found(other),
            }
        }
        let has_begun = |leaf: &Leaf| {
            self.state
                .step(&leaf.path)
                .is_some_and(|known| known.started.is_some() && known.ended.is_none())
        };
        leaves.retain(|leaf| has_begun(leaf) || !self.is_below_overdue(&leaf.path));
        if !leaves.is_empty() {
            return Walked::Found(Next::Work(leaves));
        }
        if let Some(decide) = undecided {
            return Walked::Found(decide);
        }
        if let Some(stop) = stopped {
            return self.passed_on(step, path, stop, attempt);
        }
        // What they did comes together in the worktree around them: that is work of the step itself.
        Walked::Found(Next::Work(vec![Leaf {
            attempt,
            path: path.to_owned(),
            step: step.clone(),
            worktree: at.worktree.clone(),
            variables: self.variables(at),
        }]))
    }

    /// What templates find before anything has run.
    pub(crate) fn opening_variables(&self) -> Map<String, Value> {
        self.variables(&At::default())
    }

    /// What templates find.
    fn variables(&self, at: &At<'a>) -> Map<String, Value> {
        let mut found = Map::new();
        let inputs: Map<String, Value> = self
            .workflow
            .inputs
            .iter()
            .filter_map(|(name, input)| {
                let given = self.source.inputs.get(name).or(input.default.as_ref())?;
                Some((name.clone(), Value::from(given.as_str())))
            })
            .collect();
        found.extend(inputs.clone());
        found.extend(self.state.outputs());
        for step in self.workflow.all_steps() {
            let Some(output) = &step.output else { continue };
            let value = found.get(&step.name).map(|view| named_output(step, view));
            // Of two steps with one name for their outputs, the one that has worked counts.
            let counts = self.state.has_worked(&step.name) || !found.contains_key(output);
            if let Some(value) = value.filter(|_| counts) {
                found.insert(output.clone(), value);
            }
        }
        let title = self.source.title.lines().next().unwrap_or_default();
        found.insert("inputs".to_owned(), Value::Object(inputs));
        found.insert(
            "bead".to_owned(),
            serde_json::json!({
                "id": self.id, "title": title, "description": self.source.title,
            }),
        );
        found.insert(
            "workflow".to_owned(),
            serde_json::json!({
                "name": self.workflow.name, "run": self.id,
            }),
        );
        let previous = at.previous.map_or_else(
            || serde_json::json!({ "success": true, "failed": false, "skipped": false, "error": null }),
            view,
        );
        found.insert("previous".to_owned(), previous);
        if let Some((round, max)) = at.round {
            found.insert("loop".to_owned(), serde_json::json!({ "round": round, "max": max }));
        }
        if let Some(tree) = self.state.worktrees.get(&at.worktree) {
            found.insert(
                "worktree".to_owned(),
                serde_json::json!({
                    "path": tree.path, "branch": tree.branch, "base": tree.base, "port": tree.port,
                }),
            );
        }
        found
    }
}

/// Whether a step, or one inside it, needs another one or what is inside that.
fn needs_of(step: &Step, other: &Step) -> bool {
    let is_it = |need: &String| *need == other.name || other.has_inside(need);
    step.needs.iter().any(is_it) || step.work.steps().iter().any(|inner| needs_of(inner, other))
}

/// What a step leaves under the name of its `output`: of a command what it printed, of a question the answer.
fn named_output(step: &Step, view: &Value) -> Value {
    let field = match step.work {
        Work::Script { .. } => "output",
        Work::Ask { .. } => "answer",
        Work::Merge(_) => "commit",
        Work::PullRequest(_) => "url",
        Work::Agent(_) | Work::Loop(_) | Work::Parallel(_) => return view.clone(),
    };
    view.get(field).cloned().unwrap_or(Value::Null)
}

/// What is said of a step that took longer than its `timeout`.
fn too_long(step: &Step) -> String {
    let seconds = step.timeout.unwrap_or_default().as_secs();
    format!("it took too long: its `timeout` is {seconds} seconds")
}

fn loop_end(path: &str, attempt: u32, rounds: u32, error: Option<String>) -> StepEnded {
    StepEnded {
        step: path.to_owned(),
        attempt,
        result: if error.is_none() { StepResult::Succeeded } else { StepResult::Failed },
        output: serde_json::json!({ "rounds": rounds }),
        reason: error.as_ref().map(|_| StatusReason::Error),
        error,
    }
}
