//! What a person can do next, in the words of the command line. Other surfaces have their own words for
//! the same types.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_coordinator::health::{Advice, Check};
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
            format!("waiting for {}", numbers::plural(*count, "task"))
        }
        NextAction::WaitForService => "waiting for windlass serve".to_owned(),
        NextAction::WaitForCheck { at } => format!("check at {}", local(&at.timestamp())),
        NextAction::WaitForModel { at } => format!("waiting until {}", local(&at.timestamp())),
        NextAction::SendMessage => "send or resume".to_owned(),
        NextAction::Resume => "resume".to_owned(),
        NextAction::Retry { .. } => "retry".to_owned(),
        NextAction::Review => "review".to_owned(),
        NextAction::Follow { deadline: Some(deadline) } => format!("due {}", local(deadline)),
        NextAction::Follow { deadline: None } => "follow".to_owned(),
        NextAction::Nothing => String::new(),
    }
}

/// A moment by the local clock, to the minute.
fn local(at: &Timestamp) -> impl std::fmt::Display {
    at.to_zoned(TimeZone::system()).strftime("%F %H:%M")
}

/// The command that a person types next; `None` where there is nothing to do.
pub fn command(action: &NextAction, task: TaskId) -> Option<String> {
    match action {
        NextAction::Answer { question } | NextAction::RaiseBudget { question } => {
            Some(answer_command(*question, &[]))
        }
        NextAction::Follow { .. } => Some(format!("windlass attach {task}")),
        NextAction::Retry { remedy } => Some(retry_command(*remedy, task)),
        NextAction::WaitForService => Some("windlass serve".to_owned()),
        NextAction::WaitForCheck { .. }
        | NextAction::WaitForModel { .. }
        | NextAction::SendMessage
        | NextAction::Resume
        | NextAction::Review => Some(format!("windlass resume {task}")),
        NextAction::WaitForTasks { .. } | NextAction::Nothing => None,
    }
}

/// The command that answers a question and resumes its task, with the first of the answers that are given.
pub fn answer_command(question: QuestionId, options: &[String]) -> String {
    let answer = options.first().map_or("\"…\"".to_owned(), |option| quoted(option));
    shown_line(&format!("windlass answer {question} {answer} --resume"))
}

/// The other answers, as they are typed.
pub fn other_answers(options: &[String]) -> Option<String> {
    let others: Vec<_> = options.iter().skip(1).map(|option| quoted(option)).collect();
    (!others.is_empty()).then(|| shown_line(&others.join(", ")))
}

fn quoted(option: &str) -> String {
    match option.contains(|char: char| !char.is_alphanumeric()) {
        true => format!("{option:?}"),
        false => option.to_owned(),
    }
}

/// The command that tries a failed task again, changed where the same again would fail again.
pub fn retry_command(remedy: Option<Remedy>, task: TaskId) -> String {
    let change = match remedy {
        Some(Remedy::StartEngine | Remedy::GetImage | Remedy::CheckSandbox) => " --sandbox local",
        Some(Remedy::CheckModelName) => " --model NAME",
        Some(_) | None => "",
    };
    format!("windlass retry {task}{change}")
}

/// How a failed task can be tried again. Where the same again cannot work, something comes first.
pub fn retry_words(error: Option<&ErrorDetails>, task: TaskId) -> String {
    let remedy = error.and_then(|error| error.remedy);
    let command = retry_command(remedy, task);
    if remedy == Some(Remedy::ResumeRun) {
        return format!("try it again with: windlass workflow resume {task}");
    }
    match error {
        Some(error) if !error.retryable && remedy.is_none() => {
            format!("see what happened with: windlass show {task}\ntry again with: {command}")
        }
        Some(error) if !error.retryable => format!("after that, try again with: {command}"),
        Some(_) | None => format!("try again with: {command}"),
    }
}

/// What to do about an error. Errors without a remedy bring their own words.
pub fn hint(error: &ErrorDetails) -> Option<String> {
    match error.remedy {
        Some(remedy) => Some(remedy_words(remedy).to_owned()),
        None => error.hint.clone().filter(|hint| !hint.is_empty()),
    }
}

/// What to do about what a check found. Checks without typed advice bring their own words.
pub fn check_hint(check: &Check) -> Option<String> {
    match check.advice {
        Some(advice) => Some(advice_words(advice).to_owned()),
        None => check.hint.clone(),
    }
}

const fn advice_words(advice: Advice) -> &'static str {
    match advice {
        Advice::RemoveTasks => "make room: `windlass prune` removes finished tasks",
        Advice::LimitStore => {
            "`windlass prune` removes finished tasks; `keep_days` in [store] does so daily"
        }
        Advice::RestartProcesses => "restart `windlass serve`; resume what a terminal drives",
        Advice::CheckModelServer => {
            "start its server, or name another with `--model` or in the configuration"
        }
    }
}

/// The flags, settings and commands that a remedy means here.
pub const fn remedy_words(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::CheckModelServer => {
            "check that the model server runs and that its address is right (LITELLM_API_BASE, \
             OPENAI_BASE_URL or ANTHROPIC_BASE_URL)"
        }
        Remedy::WaitForModelServer => {
            "wait a while; `windlass models --test` says whether it answers again"
        }
        Remedy::CheckModelAddress => "check the address: another program answers there",
        Remedy::CheckCertificate => "check the base URL's scheme and the server's certificate",
        Remedy::SetModelKey => "check that key; `windlass models --test` tries it",
        Remedy::CheckModelName => {
            "check the model's name; windlass never uses another model in its place"
        }
        Remedy::ChangeModel => "try again, or with another model (`--model`)",
        Remedy::RaiseAccountLimit => "wait, or raise the account's limit",
        Remedy::ReadServerMessage => "see what the server says about the request",
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
        Remedy::FixScript => "add the missing reply to the script, or correct its `expect`",
        Remedy::CheckRecording => "check the path given to `--record`",
        Remedy::RaiseRounds => {
            "a retry gives it as many steps again; `agent.max_iterations` (`--max-iterations`) sets how many"
        }
        Remedy::RaiseTimeout => {
            "a retry gives it as much time again; `--timeout` (AGENT_TIMEOUT_SECONDS) sets how much"
        }
        Remedy::RaiseBudget => "a retry asks again whether to raise the budget",
        Remedy::ReadEvents => "see where it stopped with `windlass events`",
        Remedy::CheckContextService => {
            "start the Context Service or correct CONTEXT_SERVICE_URL; unset it to keep memories in the \
             data directory"
        }
        Remedy::RaiseSandboxMemory => {
            "raise `sandbox.memory` (CONTAINER_MEMORY), or have it work in smaller pieces"
        }
        Remedy::CheckSandbox => {
            "`windlass image check` says more; `--sandbox local` needs no container engine"
        }
        Remedy::GetImage => {
            "build it with `windlass image build`, get it with `docker pull`, or name another with \
             CONTAINER_IMAGE"
        }
        Remedy::StartEngine => {
            "start the container engine, or name another with DOCKER_HOST; `--sandbox local` needs none"
        }
        Remedy::FreeEngineDisk => "make room where the engine keeps its data (`docker system df`)",
        Remedy::UseHostSandbox => {
            "`--sandbox host` runs commands without isolation, if that is what you want"
        }
        Remedy::RepairPath => {
            "make it usable again, or end the task with `windlass cancel`; nothing was run"
        }
        Remedy::ApproveByAnother => {
            "let somebody else approve it with `windlass commitments approve`"
        }
        Remedy::ResumeRun => {
            "`windlass workflow status` shows the steps; a resumed run tries the one that failed again"
        }
        Remedy::SeeSkills => "`windlass skills list` shows what each skill needs",
        Remedy::CheckConfiguration => "see `windlass config`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_whom_a_task_waits_for() {
        let words = [1, 2].map(|count| list_words(&NextAction::WaitForTasks { count }));
        assert_eq!(words, ["waiting for 1 task", "waiting for 2 tasks"]);
        assert_eq!(list_words(&NextAction::WaitForService), "waiting for windlass serve");
    }
}
