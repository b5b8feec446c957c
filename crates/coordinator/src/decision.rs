//! The six things that can happen to a message, and the one model call that chooses (ES-057…069).
//!
//! Invariants:
//! - One call per message, without tools. Any answer leads to a decision: one that makes no sense for this session is
//!   replaced by the fallback, and the log says so.
//! - The decision is data. Nothing is done here.

use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_core::id::TaskId;
use windlass_core::message::{Message, Prelude};
use windlass_core::status::TaskStatus;
use windlass_core::text::one_line;
use windlass_model::{Model, Options};
use windlass_store::TaskRow;

use crate::router::Router;

const PROMPT: &str = include_str!("prompts/router.md");

/// How freely the router words things (ES-068).
const TEMPERATURE: f64 = 0.1;

/// Tokens of a decision; the longest is a goal in the person's own words.
const MAX_OUTPUT_TOKENS: u32 = 2_000;

/// Tasks that the router sees, the newest; a session has three at work.
const MAX_LISTED: usize = 20;

/// Characters of a goal in that list.
const GOAL_WIDTH: usize = 200;

/// Bytes of a message that the router reads; the task gets the whole.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// It starts a task (ES-058).
    NewTask {
        /// What is wanted.
        goal: String,
    },
    /// It goes to a task (ES-059).
    InjectIntoActive { task_id: TaskId },
    /// A task ends for good (ES-060).
    CancelTask {
        task_id: TaskId,
        /// Why, in the person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A task is paused (ES-061).
    PauseTask { task_id: TaskId },
    /// A task is resumed (ES-062).
    ResumeTask { task_id: TaskId },
    /// It is answered with words, and nothing is started (ES-063).
    SmallTalk { response: String },
}

/// What the router knows of a session.
pub(crate) struct SessionTasks<'a> {
    /// Its live tasks, oldest first.
    pub(crate) tasks: &'a [TaskRow],
    /// The one that a message goes to by default.
    pub(crate) active: Option<TaskId>,
}

impl SessionTasks<'_> {
    /// What is done without a router: a message goes to the active task, else it is one (ES-064).
    pub(crate) fn fallback(&self, message: &str) -> Decision {
        match self.active {
            Some(task_id) => Decision::InjectIntoActive { task_id },
            None => Decision::NewTask { goal: message.to_owned() },
        }
    }

    /// A decision that can be carried out in this session, or what is wrong with it.
    fn check(&self, decision: Decision) -> Result<Decision, String> {
        let find = |id: TaskId| {
            let found = self.tasks.iter().find(|task| task.id == id);
            found.ok_or_else(|| format!("`{id}` is not a live task of the session"))
        };
        match &decision {
            Decision::NewTask { goal } if goal.trim().is_empty() => {
                return Err("the goal is empty".to_owned());
            }
            Decision::SmallTalk { response } if response.trim().is_empty() => {
                return Err("the response is empty".to_owned());
            }
            Decision::NewTask { .. } | Decision::SmallTalk { .. } => {}
            Decision::InjectIntoActive { task_id }
            | Decision::CancelTask { task_id, .. }
            | Decision::PauseTask { task_id } => drop(find(*task_id)?),
            Decision::ResumeTask { task_id } => {
                if find(*task_id)?.status != TaskStatus::Paused {
                    return Err(format!("`{task_id}` is not paused"));
                }
            }
        }
        Ok(decision)
    }

    /// The session and the message, as the router reads them.
    fn prompt(&self, message: &str) -> String {
        let mut text = String::from("Tasks of this session:\n");
        if self.tasks.is_empty() {
            text.push_str("(none)\n");
        }
        for task in self.tasks.iter().rev().take(MAX_LISTED) {
            let active = if Some(task.id) == self.active { " (active)" } else { "" };
            let goal = one_line(&task.goal, GOAL_WIDTH);
            text.push_str(&format!("- {} [{}]{active} {goal}\n", task.id, task.status));
        }
        let end = message.floor_char_boundary(MAX_MESSAGE_BYTES);
        text.push_str(&format!("\nThe message:\n{}", &message[..end]));
        text
    }
}

impl Router<'_> {
    /// Asks the router once; what fails or makes no sense is replaced by the fallback.
    pub(crate) async fn decide(self, known: &SessionTasks<'_>, message: &str) -> Decision {
        let asked = async {
            let model =
                self.coordinator.agents.router().await.map_err(|details| details.message)?;
            ask(&*model, known, message).await
        };
        let decided = match tokio::time::timeout(self.coordinator.limits.router, asked).await {
            Ok(decided) => decided,
            Err(_) => {
                Err(format!("no answer within {} s", self.coordinator.limits.router.as_secs()))
            }
        };
        decided.unwrap_or_else(|problem| {
            let fallback = known.fallback(message);
            tracing::warn!(problem, ?fallback, "router not usable");
            fallback
        })
    }
}

async fn ask(
    model: &dyn Model,
    known: &SessionTasks<'_>,
    message: &str,
) -> Result<Decision, String> {
    let prelude = Prelude { system: PROMPT.to_owned(), tools: Vec::new() };
    let mut transcript = model.transcript(&prelude);
    transcript.push(&Message::user(known.prompt(message)));
    let options = Options {
        temperature: Some(TEMPERATURE),
        max_output_tokens: Some(MAX_OUTPUT_TOKENS),
        schema: Some(schema()),
    };
    let reply = model.reply(&transcript, &options, &mut |_| {}).await;
    let reply = reply.map_err(|error| error.to_string())?;
    known.check(read(&reply.text)?)
}

/// The object in a reply; some servers put a fence or a word around it.
fn read(text: &str) -> Result<Decision, String> {
    let object = match (text.find('{'), text.rfind('}')) {
        (Some(from), Some(to)) if from < to => &text[from..=to],
        _ => return Err("the reply is not a JSON object".to_owned()),
    };
    serde_json::from_str(object).map_err(|error| format!("the reply cannot be read: {error}"))
}

/// The shape of a decision (ES-069).
fn schema() -> serde_json::Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let words = [
        "new_task",
        "inject_into_active",
        "cancel_task",
        "pause_task",
        "resume_task",
        "small_talk",
    ];
    json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": words},
            "goal": text("with new_task: what is wanted"),
            "task_id": text("the listed task that is meant"),
            "reason": text("with cancel_task: why"),
            "response": text("with small_talk: the answer"),
        },
        "required": ["decision"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-069: about fifty lines, not a hundred and twenty.
    #[test]
    fn the_routers_prompt_is_short() {
        assert!(PROMPT.lines().count() <= 60, "{}", PROMPT.lines().count());
    }

    /// ES-058…063: each decision carries what it needs, and nothing is read without it.
    #[test]
    fn a_decision_is_read_with_what_it_needs_or_not_at_all() {
        let id = "task_00000000000000000000000001";
        let task_id = id.parse().unwrap();
        let goods = [
            (
                r#"{"decision":"new_task","goal":"fix it"}"#.to_owned(),
                Decision::NewTask { goal: "fix it".to_owned() },
            ),
            (
                format!(r#"{{"decision":"inject_into_active","task_id":"{id}"}}"#),
                Decision::InjectIntoActive { task_id },
            ),
            (
                format!(r#"{{"decision":"cancel_task","task_id":"{id}","reason":"wrong"}}"#),
                Decision::CancelTask { task_id, reason: Some("wrong".to_owned()) },
            ),
            (
                format!(r#"{{"decision":"pause_task","task_id":"{id}"}}"#),
                Decision::PauseTask { task_id },
            ),
            (
                format!("```json\n{{\"decision\":\"resume_task\",\"task_id\":\"{id}\"}}\n```"),
                Decision::ResumeTask { task_id },
            ),
            (
                r#"{"decision":"small_talk","response":"hello"}"#.to_owned(),
                Decision::SmallTalk { response: "hello".to_owned() },
            ),
        ];
        for (good, decision) in goods {
            assert_eq!(read(&good), Ok(decision), "{good}");
        }
        for bad in [
            "",
            "hello",
            "}{",
            r#"{"decision":"explode"}"#,
            r#"{"decision":"new_task"}"#,
            r#"{"decision":"inject_into_active"}"#,
            r#"{"decision":"cancel_task","reason":"wrong"}"#,
            r#"{"decision":"resume_task"}"#,
            r#"{"decision":"small_talk"}"#,
            r#"{"decision":"pause_task","task_id":"the first one"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
