//! Asking a person before a task of a plan starts, where the plan says so (MS-216).

use windlass_core::ending::Ending;
use windlass_core::event::Event;
use windlass_core::planning::{Approval, PlanTask};
use windlass_core::question::{
    AcceptedAnswers, PERMISSION_OPTIONS, Permission, Question, QuestionKind,
};
use windlass_core::state::TaskState;
use windlass_store::Level;

use crate::Error;
use crate::journal::Journal;

/// Asks whether the task may start, unless that was answered; how it ends, where the answer was no.
pub(crate) async fn ask_to_start(task: &mut Journal) -> Result<Option<Ending>, Error> {
    let state = task.state();
    let asks = |plan: &&PlanTask| plan.approval == Approval::Required;
    let plan = state.created.plan.as_deref().filter(asks);
    let Some(plan) = plan.filter(|_| state.created.depth == 0 && !state.attempts.started) else {
        return Ok(None);
    };
    match state.start_answer.as_ref().map(|answer| (&answer.given, &answer.by)) {
        Some((Permission::Allow | Permission::AllowAll, _)) => Ok(None),
        Some((Permission::Deny { comment }, by)) => {
            let why = format!("{by} did not let it start. {comment}");
            Ok(Some(Ending::Cancelled(Some(why.trim_end().to_owned()))))
        }
        None if state.open_questions.get(state.start_question()).is_some() => Ok(None),
        None => {
            let question = question(state, plan);
            task.commit(vec![Event::QuestionAsked(question)], Level::Synced).await?;
            Ok(None)
        }
    }
}

fn question(state: &TaskState, plan: &PlanTask) -> Question {
    let risk = plan.risk.map(|risk| format!(", risk {risk}")).unwrap_or_default();
    let mut context = format!("It changes: {}{risk}.\n", plan.mutation);
    if !plan.verification.is_empty() {
        let commands: String =
            plan.verification.iter().map(|command| format!("\n  {command}")).collect();
        context += &format!("It is done when these commands of the plan pass:{commands}\n");
    }
    let [allow, deny, _] = PERMISSION_OPTIONS.map(str::to_owned);
    Question {
        id: state.start_question(),
        kind: QuestionKind::Permission,
        call: None,
        question: format!("May task `{}` of plan `{}` start?", plan.key, plan.name),
        options: vec![allow, deny],
        context: Some(format!("{context}\n{}", state.command().goal)),
        binding: None,
        diff: None,
        grants: None,
        accepts: AcceptedAnswers::Words,
        asked: None,
        plan: None,
    }
}
