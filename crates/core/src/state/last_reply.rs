//! The last reply of the model: its calls that are open, and whether it is final.

use super::FoldError;
use crate::event::{LlmResponse, ToolCall};
use crate::id::{CallId, QuestionId};
use crate::message::{Finish, ToolRequest};
use crate::question::{Answer, Question};

/// The last reply of the model, and what of it is still to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastReply {
    /// Its calls that have no result yet, in order.
    pub open_calls: Vec<OpenCall>,
    /// Its text, when it was final and nothing has come since.
    pub final_text: Option<String>,
    /// What is missing, where a final reply is not complete.
    pub unfinished: Option<Unfinished>,
}

/// How far an open call has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// Nothing has happened to it.
    Waiting,
    /// A person is asked about it.
    Asked(QuestionId),
    /// A person has answered this question.
    Answered(Box<Question>, Answer),
    /// It was started; whether it ended is not known.
    Started(Box<ToolCall>),
}

/// A call of the last reply that has no result yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// What the model asked for.
    pub request: ToolRequest,
    /// How far it has come.
    pub stage: Stage,
}

/// A final reply that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// Cut at the model's output limit; the next reply continues from there.
    Cut {
        /// What was said so far.
        text: String,
        /// How many replies in a row were cut.
        times: u32,
    },
    /// The provider withheld the rest.
    Withheld,
}

impl LastReply {
    /// The question that a person has answered, while the call that asked it still waits.
    pub(super) fn answered_question(&self, id: QuestionId) -> Option<&Question> {
        self.open_calls.iter().find_map(|open| match &open.stage {
            Stage::Answered(question, _) if question.id == id => Some(question.as_ref()),
            Stage::Answered(..) | Stage::Waiting | Stage::Asked(_) | Stage::Started(_) => None,
        })
    }

    /// A reply while notes are saved takes the place of the last one. It is never final.
    pub(super) fn on_flush_reply(&mut self, response: &LlmResponse) {
        (self.final_text, self.unfinished) = (None, None);
        self.open(&response.calls);
    }

    /// A new reply takes the place of the last one.
    pub(super) fn on_reply(&mut self, response: &LlmResponse) {
        let (so_far, times) = match self.unfinished.take() {
            Some(Unfinished::Cut { text, times }) => (text, times),
            Some(Unfinished::Withheld) | None => (String::new(), 0),
        };
        (self.final_text, self.unfinished) = match response.finish {
            _ if !response.calls.is_empty() => (None, None),
            Finish::Stop | Finish::ToolCalls => (Some(so_far + &response.text), None),
            Finish::Length => {
                let text = so_far + &response.text;
                (None, Some(Unfinished::Cut { text, times: times + 1 }))
            }
            Finish::ContentFilter => (None, Some(Unfinished::Withheld)),
        };
        self.open(&response.calls);
    }

    fn open(&mut self, calls: &[ToolRequest]) {
        let open =
            |request: &ToolRequest| OpenCall { request: request.clone(), stage: Stage::Waiting };
        self.open_calls = calls.iter().map(open).collect();
    }

    /// A call that an event names.
    pub(super) fn open_call(
        &mut self,
        event: &'static str,
        call: CallId,
    ) -> Result<&mut OpenCall, FoldError> {
        let place = self.place(event, call)?;
        Ok(&mut self.open_calls[place])
    }

    /// Takes out a call that has its result.
    pub(super) fn close_call(
        &mut self,
        event: &'static str,
        call: CallId,
    ) -> Result<OpenCall, FoldError> {
        let place = self.place(event, call)?;
        Ok(self.open_calls.remove(place))
    }

    fn place(&self, event: &'static str, call: CallId) -> Result<usize, FoldError> {
        self.open_calls
            .iter()
            .position(|open| open.request.id == call)
            .ok_or(FoldError::NoSuchCall { event, call })
    }
}
