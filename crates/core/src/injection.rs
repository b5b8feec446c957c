//! Messages pushed into a running task, and the exact words the model reads for each (ES-070…075).

use std::collections::BTreeMap;

use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::id::{ChangeId, InjectionId, QuestionId, ScheduleId};
use crate::picture::Picture;
use crate::policy::allow::AllowRule;
use crate::schedule::Expiry;
use crate::session::{AxesChange, Scope, Source};
use crate::string_enum;

/// An injection's text is cut here; a larger one is refused when it arrives.
pub const MAX_INJECTION_BYTES: usize = 256 * 1024;

/// The word for the model of the model mode, in place of one that a person has named.
pub const DEFAULT_MODEL: &str = "default";

/// The key under which a notice has the skills that the agent knows.
const ANNOUNCED_SKILLS: &str = "told_skills";

string_enum! {
    /// What kind of message it is (ES-071).
    InjectionType ("injection type") {
        /// A person says something.
        UserMessage = "user_message",
        /// A person answers a question.
        HitlResponse = "hitl_response",
        /// Something happened elsewhere.
        ExternalEvent = "external_event",
        /// A person or the coordinator steers the task.
        SystemControl = "system_control",
    }
}

/// What a `system_control` injection does to the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum Control {
    /// Park at the next boundary; a running call finishes first.
    Pause,
    /// Park now: what runs is ended, with its output so far as its result.
    Interrupt,
    Resume,
    /// A person's words to this one agent, also to a sub-agent, which reads no messages (decision 67).
    Steer {
        words: String,
    },
    /// Take back a rule that an `Allow All` gave.
    Revoke {
        rule: AllowRule,
    },
    /// Stop for good, now.
    Cancel {
        /// Why, in the person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A schedule watches the task: with nothing to do, the task is parked until then (ES-282).
    Watch {
        schedule: ScheduleId,
        /// When it speaks next; `None` when this was the last time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Zoned>,
    },
    /// A schedule no longer watches the task.
    Unwatch {
        schedule: ScheduleId,
    },
    /// Ask another model from the next request on.
    UseModel {
        /// As `provider/model`; [`DEFAULT_MODEL`] is the one of the model mode.
        model: String,
    },
    /// Other axes from the next boundary on; a running call keeps its own.
    ChangeAxes {
        change: ChangeId,
        wanted: AxesChange,
        scope: Scope,
        source: Source,
        reason: String,
    },
    /// A rule that a person gave elsewhere in the session.
    Grant {
        rule: AllowRule,
    },
    /// Its time is up.
    Expire {
        /// What becomes of it.
        action: Expiry,
    },
}

/// One message for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// A second one with the same id is dropped.
    pub id: InjectionId,
    pub injection_type: InjectionType,
    /// What it says, in the sender's words.
    pub content: String,
    /// What people read in place of the content, where that carries more than was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// What it shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// The question it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// What it does, when it is control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Who sent it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Anything else the sender attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
}

impl Injection {
    fn new(id: InjectionId, injection_type: InjectionType, content: String) -> Self {
        let by = String::new();
        let pictures = Vec::new();
        Self {
            id,
            injection_type,
            content,
            shown: None,
            pictures,
            question: None,
            control: None,
            by,
            metadata: None,
        }
    }

    /// A person says something.
    pub fn message(id: InjectionId, text: impl Into<String>) -> Self {
        Self::new(id, InjectionType::UserMessage, text.into())
    }

    /// A person answers.
    pub fn answer(id: InjectionId, question: QuestionId, text: impl Into<String>) -> Self {
        let question = Some(question);
        Self { question, ..Self::new(id, InjectionType::HitlResponse, text.into()) }
    }

    /// Something happened elsewhere.
    pub fn event(id: InjectionId, payload: impl Into<String>) -> Self {
        Self::new(id, InjectionType::ExternalEvent, payload.into())
    }

    /// A person steers.
    pub fn control(id: InjectionId, control: Control) -> Self {
        let content = match &control {
            Control::Pause => "pause".to_owned(),
            Control::Interrupt => "interrupt".to_owned(),
            Control::Resume => include_str!("prompts/task_resumed.md").trim_end().to_owned(),
            Control::Steer { words } => words.clone(),
            Control::Revoke { rule } => format!("revoke: {rule}"),
            Control::Cancel { reason } => reason.clone().unwrap_or_else(|| "cancel".to_owned()),
            Control::Watch { .. } => "watch".to_owned(),
            Control::Unwatch { .. } => "unwatch".to_owned(),
            Control::UseModel { model } => format!("model: {model}"),
            Control::ChangeAxes { wanted, .. } => format!("axes: {wanted}"),
            Control::Grant { rule } => format!("allow: {rule}"),
            Control::Expire { .. } => "its time is up".to_owned(),
        };
        let control = Some(control);
        Self { control, ..Self::new(id, InjectionType::SystemControl, content) }
    }

    /// Whether a person says something to the agent with it.
    pub fn is_from_person(&self) -> bool {
        self.injection_type == InjectionType::UserMessage
            || matches!(self.control, Some(Control::Steer { .. }))
    }

    /// What people read of it.
    pub fn text_for_people(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.content)
    }

    /// The same, of which people read this.
    pub fn shown_as(self, shown: Option<String>) -> Self {
        Self { shown, ..self }
    }

    /// The same, saying why in these words.
    pub fn with_content(mut self, words: impl Into<String>) -> Self {
        self.content = words.into();
        self
    }

    /// The harness tells the agent what changed around it; `skills` are those it knows now.
    pub fn notice(
        id: InjectionId,
        text: impl Into<String>,
        skills: Option<&BTreeMap<String, String>>,
    ) -> Self {
        let metadata = skills.map(|skills| serde_json::json!({ ANNOUNCED_SKILLS: skills }));
        Self { metadata, ..Self::new(id, InjectionType::SystemControl, text.into()) }
    }

    /// The skills that the agent knows after a notice that announced some.
    pub fn announced_skills(&self) -> Option<BTreeMap<String, String>> {
        let notice = self.injection_type == InjectionType::SystemControl && self.control.is_none();
        let skills = self.metadata.as_ref()?.get(ANNOUNCED_SKILLS)?;
        notice.then(|| serde_json::from_value(skills.clone()).ok()).flatten()
    }

    /// The same, showing these.
    pub fn with_pictures(mut self, pictures: Vec<Picture>) -> Self {
        self.pictures = pictures;
        self
    }

    /// The same, with its sender's name.
    pub fn from(mut self, by: impl Into<String>) -> Self {
        self.by = by.into();
        self
    }

    /// What the model reads; `None` for control that it need not know of.
    pub fn text_for_model(&self) -> Option<String> {
        let content = &self.content;
        let filled = |prompt: &str| Some(prompt.trim_end().replace("{content}", content));
        match (self.injection_type, &self.control) {
            (InjectionType::UserMessage, _)
            | (InjectionType::SystemControl, Some(Control::Steer { .. })) => {
                filled(include_str!("prompts/user_message.md"))
            }
            (InjectionType::HitlResponse, _) => filled(include_str!("prompts/answer.md")),
            (InjectionType::ExternalEvent, _) => filled(include_str!("prompts/external_event.md")),
            (
                InjectionType::SystemControl,
                Some(
                    Control::Pause
                    | Control::Interrupt
                    | Control::Cancel { .. }
                    | Control::Revoke { .. }
                    | Control::Unwatch { .. }
                    | Control::UseModel { .. }
                    | Control::ChangeAxes { .. }
                    | Control::Grant { .. }
                    | Control::Expire { .. },
                ),
            ) => None,
            (
                InjectionType::SystemControl,
                Some(Control::Resume | Control::Watch { .. }) | None,
            ) => Some(content.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    /// ES-072, ES-073, ES-074, ES-075
    #[test]
    fn the_model_reads_exactly_these_words() {
        let id = InjectionId::new(Timestamp::UNIX_EPOCH);
        let question = QuestionId::new(Timestamp::UNIX_EPOCH);
        let texts = [
            Injection::message(id, "use tabs"),
            Injection::answer(id, question, "blue"),
            Injection::event(id, r#"{"build":"green"}"#),
            Injection::control(id, Control::Resume),
            Injection::control(id, Control::Steer { words: "only the tests".to_owned() }),
            Injection::control(id, Control::Pause),
        ]
        .map(|injection| injection.text_for_model().unwrap_or_else(|| "(nothing)".into()));
        insta::assert_snapshot!(texts.join("\n"), @r#"
        User says: use tabs
        User responded to your question: blue
        Event received: {"build":"green"}
        Task resumed by user
        User says: only the tests
        (nothing)
        "#);
    }

    /// ES-070
    #[test]
    fn an_injection_has_a_type_content_and_perhaps_metadata() {
        let mut injection = Injection::message(InjectionId::new(Timestamp::UNIX_EPOCH), "use tabs");
        let json = serde_json::to_value(&injection).unwrap();
        assert_eq!(
            (&json["injection_type"], &json["content"]),
            (&"user_message".into(), &"use tabs".into())
        );
        assert!(json.get("metadata").is_none());
        injection.metadata = Some(serde_json::json!({ "channel": "mail" }));
        let json = serde_json::to_string(&injection).unwrap();
        assert_eq!(serde_json::from_str::<Injection>(&json).unwrap(), injection);
    }

    /// ES-071
    #[test]
    fn an_unknown_injection_type_is_refused() {
        let read = |kind: &str| {
            let json = format!(
                r#"{{"id":"inj_00000000000000000000000000","injection_type":"{kind}","content":"x"}}"#
            );
            serde_json::from_str::<Injection>(&json)
        };
        for known in ["user_message", "hitl_response", "external_event", "system_control"] {
            assert_eq!(read(known).unwrap().injection_type.as_str(), known);
        }
        for unknown in ["order", "", "User_Message"] {
            let refused = read(unknown).unwrap_err().to_string();
            let said = format!("unknown variant `{unknown}`, expected one of `user_message`");
            assert!(refused.starts_with(&said), "{refused}");
        }
    }
}
