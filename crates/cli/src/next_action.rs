//! What a person can do next, in the words of the command line. Other surfaces have their own words for
//! the same types.

use jiff::tz::TimeZone;
use windlass_coordinator::views::NextAction;
use windlass_core::error::{ErrorDetails, Remedy};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::shown::shown_line;
use windlass_term::numbers;

/// What comes next for a task, in the width of a list's column.
pub fn list_words(action: &NextAction) -> String {
    match action {
        NextAction::Answer { .. } | NextAction::RaiseBudget { .. } => "answer".to_owned(),
        NextAction::WaitForTasks { count } => {
            format!("waits for {}", numbers::plural(*count, "task"))
        }
        NextAction::WaitForService => "a service starts it".to_owned(),
        NextAction::WaitForCheck { at } => format!("check {}", at.strftime("%H:%M:%S")),
        NextAction::WaitForModel { at } => {
            let at = at.with_time_zone(TimeZone::system());
            format!("waits until {}", at.strftime("%F %H:%M"))
        }
        NextAction::SendMessage => "send".to_owned(),
        NextAction::Resume => "resume".to_owned(),
        NextAction::Retry { .. } => "retry".to_owned(),
        NextAction::Review => "review".to_owned(),
        NextAction::Follow { deadline: Some(deadline) } => format!("due {deadline:.0}"),
        NextAction::Follow { deadline: None } => "works".to_owned(),
        NextAction::Nothing => String::new(),
    }
}

/// The command that a person types next; `None` where there is nothing to do.
pub fn command(action: &NextAction, task: TaskId) -> Option<String> {
    match action {
        NextAction::Answer { question } | NextAction::RaiseBudget { question } => {
            Some(answer_command(*question, &[]))
        }
        NextAction::Follow { .. } => Some(format!("windlass events {task} --follow")),
        NextAction::Retry { .. } => Some(format!("windlass retry {task}")),
        NextAction::WaitForCheck { .. }
        | NextAction::WaitForModel { .. }
        | NextAction::SendMessage
        | NextAction::Resume
        | NextAction::Review => Some(format!("windlass resume {task}")),
        NextAction::WaitForTasks { .. } | NextAction::WaitForService | NextAction::Nothing => None,
    }
}

/// The command that answers a question and resumes its task. Where the answers are given, the first is written
/// out and the others are named behind it.
pub fn answer_command(question: QuestionId, options: &[String]) -> String {
    let quoted = |option: &String| match option.contains(|char: char| !char.is_alphanumeric()) {
        true => format!("{option:?}"),
        false => option.clone(),
    };
    let mut options = options.iter().map(quoted);
    let Some(first) = options.next() else {
        return format!("windlass answer {question} \"…\" --resume");
    };
    let others: Vec<_> = options.collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("   (or {})", others.join(", ")),
    };
    shown_line(&format!("windlass answer {question} {first} --resume{others}"))
}

/// What to do about an error. Errors without a remedy bring their own words.
pub fn hint(error: &ErrorDetails) -> Option<String> {
    match error.remedy {
        Some(remedy) => Some(remedy_words(remedy).to_owned()),
        None => error.hint.clone().filter(|hint| !hint.is_empty()),
    }
}

/// The flags, settings and commands that a remedy means here.
pub const fn remedy_words(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::CheckModelServer => {
            "check that the model server runs and that its base URL is right (LITELLM_API_BASE, \
             OPENAI_BASE_URL or ANTHROPIC_BASE_URL), then `windlass retry`"
        }
        Remedy::WaitForModelServer => {
            "the model server has a problem; `windlass retry` when it has passed"
        }
        Remedy::CheckModelAddress => "check the base URL: another program answers there",
        Remedy::CheckCertificate => "check the base URL's scheme and the server's certificate",
        Remedy::SetModelKey => {
            "check the API key (LITELLM_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY)"
        }
        Remedy::CheckModelName => {
            "check the model's name (LITELLM_MODEL, `--model`); no other model is used in its place"
        }
        Remedy::ChangeModel => "try another model (`--model`), or `windlass retry`",
        Remedy::RaiseAccountLimit => "wait, or raise the account's limit; then `windlass retry`",
        Remedy::ReadServerMessage => "see what the server says; `windlass show` has the whole run",
        Remedy::RephraseGoal => {
            "use another model (`--model`), or start a new task with another wording"
        }
        Remedy::AskForLess => {
            "ask for less in one answer, or for a file; or use a model with a larger output limit"
        }
        Remedy::SetContextWindow => {
            "set the model's real window with `--context-window` or use a model with a larger one"
        }
        Remedy::ShrinkContext => {
            "use a model with a larger window (`--model`), or set its real window with \
             `--context-window`; put long texts into files and name them instead"
        }
        Remedy::FixScript => "extend the script, or fix its `expect`",
        Remedy::CheckRecording => "check the path given to `--record`",
        Remedy::RaiseRounds => {
            "`windlass retry` gives it as many again; `agent.max_iterations` (AGENT_MAX_ITERATIONS, \
             `--max-iterations`) sets how many"
        }
        Remedy::RaiseTimeout => {
            "`windlass retry` gives it as much again; `--timeout` (AGENT_TIMEOUT_SECONDS) sets how much"
        }
        Remedy::RaiseBudget => "`windlass retry` asks again",
        Remedy::ReadEvents => "see where it stopped with `windlass events`, then `windlass retry`",
        Remedy::CheckContextService => {
            "start the Context Service or correct CONTEXT_SERVICE_URL; unset it to use the memories in \
             the data directory; then `windlass retry`"
        }
        Remedy::RaiseSandboxMemory => {
            "raise `sandbox.memory` (`CONTAINER_MEMORY`), or have it work in smaller pieces"
        }
        Remedy::CheckSandbox => {
            "`windlass image check` looks closer; `--sandbox local` needs no engine"
        }
        Remedy::GetImage => {
            "`windlass image build` makes it; or get it with `docker pull`, or name another with \
             `CONTAINER_IMAGE`"
        }
        Remedy::StartEngine => {
            "start the engine, name another with `DOCKER_HOST`, or add `--sandbox local`"
        }
        Remedy::FreeEngineDisk => "make room where the engine keeps its data (`docker system df`)",
        Remedy::UseHostSandbox => {
            "`--sandbox host` runs commands without isolation, if that is what you want"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_whom_a_task_waits_for() {
        let words = [1, 2].map(|count| list_words(&NextAction::WaitForTasks { count }));
        assert_eq!(words, ["waits for 1 task", "waits for 2 tasks"]);
        assert_eq!(list_words(&NextAction::WaitForService), "a service starts it");
    }
}
