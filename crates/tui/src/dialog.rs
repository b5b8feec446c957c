//! Questions to the person, inline where they arise.
//!
//! Invariant: a key answers only after [`QUIET`] without typing since the question came into sight, and a paste never
//! does. Until then keys go where they went before: into the text. [`crate::app::Questions`] counts the time.

mod plan_review;

use std::ops::Range;
use std::time::Duration;

use windlass_coordinator::views::OpenQuestion;
use windlass_core::id::QuestionId;
use windlass_core::question::{AcceptedAnswers, PERMISSION_OPTIONS, QuestionKind};
use windlass_core::shown::{shown, shown_line};
use windlass_core::text::one_line;
use windlass_term::question::{Call, Canvas};
use windlass_term::{Paint, question};

pub use plan_review::Comments;
use plan_review::PlanReview;

use crate::keys::{Code, Key};

/// How long nothing may have been typed before a key answers.
pub const QUIET: Duration = Duration::from_secs(1);

/// Stands before the goal of a task of another conversation.
const ANOTHER: &str = "another task asks: ";
const ALLOW_ALL: &str = PERMISSION_OPTIONS[2];
/// The choice of a plan question that says what should be different.
const REVISE: usize = 2;

/// An open question and where the person is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialog {
    pub asked: OpenQuestion,
    selected: usize,
    /// How far its text is scrolled.
    pub top: usize,
    /// Whether it is of another conversation: the person has chosen it from the inbox.
    pub is_of_another: bool,
    /// The plan that is asked about.
    plan: Option<PlanReview>,
}

/// One thing to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// An answer as it stands.
    Option(String),
    /// No, with a word to the agent.
    DenyWithWords,
    /// An answer in one's own words.
    Words,
    /// The plan in the person's editor; what they write is their comment.
    EditPlan,
    /// A word to single lines of the plan.
    CommentLines,
}

/// What a key did to a dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogAction {
    Nothing,
    /// Something in the dialog moved.
    Moved,
    Answer(String),
    /// The text is now the answer; this stands before it on the wire.
    Write {
        prefix: &'static str,
        first: Option<char>,
    },
    /// The text is now a comment on this line of the plan.
    Comment {
        line: usize,
    },
    Edit,
}

impl Dialog {
    pub fn new(asked: OpenQuestion) -> Self {
        let question = &asked.row.question;
        let text = match (&question.plan, question.kind) {
            (Some(plan), _) => Some(plan.text.as_str()),
            (None, QuestionKind::Plan) => question.context.as_deref(),
            (None, _) => None,
        };
        let plan = text.map(PlanReview::of);
        Self { asked, selected: 0, top: 0, is_of_another: false, plan }
    }

    /// The text of the plan that is asked about.
    pub fn plan(&self) -> Option<&str> {
        let question = &self.asked.row.question;
        let text = question.plan.as_ref().map(|plan| plan.text.as_str());
        text.or(question.context.as_deref()).filter(|_| self.plan.is_some())
    }

    /// What was said to lines of the plan.
    pub fn comments(&self) -> Comments {
        self.plan.as_ref().map(|plan| plan.comments.clone()).unwrap_or_default()
    }

    pub fn set_comments(&mut self, comments: Comments) {
        if let Some(plan) = &mut self.plan {
            plan.comments = comments;
        }
    }

    /// Says something to a line of the plan.
    pub fn comment(&mut self, line: usize, words: &str) {
        if let Some(plan) = &mut self.plan {
            plan.comment(line, words);
        }
    }

    /// What was said to a line of the plan before.
    pub fn said(&self, line: usize) -> Option<&str> {
        self.plan.as_ref()?.said(line)
    }

    /// Whether the keys go through the lines of the plan.
    pub fn is_commenting(&self) -> bool {
        self.plan.as_ref().is_some_and(PlanReview::is_commenting)
    }

    pub fn id(&self) -> QuestionId {
        self.asked.row.question.id
    }

    pub fn choices(&self) -> Vec<Choice> {
        let question = &self.asked.row.question;
        let options = question.options.iter().cloned().map(Choice::Option);
        match question.kind {
            QuestionKind::Permission => {
                let mut all: Vec<Choice> = options.collect();
                let at = all.len().min(2);
                all.insert(at, Choice::DenyWithWords);
                all
            }
            QuestionKind::Plan => {
                let own = [Choice::EditPlan, Choice::CommentLines];
                options.chain(own.into_iter().filter(|_| self.plan.is_some())).collect()
            }
            QuestionKind::Repair => options.collect(),
            QuestionKind::Budget | QuestionKind::Review => options.chain([Choice::Words]).collect(),
            QuestionKind::AskUser | QuestionKind::Runner => match question.accepts {
                AcceptedAnswers::Words | AcceptedAnswers::Rounds | AcceptedAnswers::Dollars => {
                    options.chain([Choice::Words]).collect()
                }
                AcceptedAnswers::Options | AcceptedAnswers::YesNo => options.collect(),
            },
        }
    }

    /// Whether its first two choices are a yes and a no, for which `y` and `n` stand.
    fn is_yes_or_no(&self) -> bool {
        let question = &self.asked.row.question;
        let is_decided = matches!(question.kind, QuestionKind::Permission | QuestionKind::Repair);
        is_decided || question.accepts == AcceptedAnswers::YesNo
    }

    /// Whether there are answers to choose from.
    pub fn has_options(&self) -> bool {
        !self.asked.row.question.options.is_empty()
    }

    /// How a person who wants none of it says so.
    pub fn refusal(&self) -> &'static str {
        let question = &self.asked.row.question;
        match question.kind {
            QuestionKind::Permission => "to refuse it, answer Deny, or Deny and what to do instead",
            QuestionKind::Repair => "to refuse it, answer with the second choice",
            QuestionKind::Plan => "to refuse the plan, answer Revise and say what to change",
            QuestionKind::AskUser | QuestionKind::Runner
                if question.accepts != AcceptedAnswers::Words =>
            {
                "the run waits for one of the choices"
            }
            QuestionKind::AskUser
            | QuestionKind::Budget
            | QuestionKind::Review
            | QuestionKind::Runner => "the agent waits for an answer, also one in your own words",
        }
    }

    pub fn selected(&self) -> usize {
        self.selected
    }

    /// What a key means here; it counts only where the caller has seen to [`QUIET`]. A page of its text has so many
    /// rows.
    pub fn press(&mut self, key: Key, page: usize) -> DialogAction {
        if let Some(plan) = self.plan.as_mut().filter(|plan| plan.is_commenting()) {
            return plan.press(key, page);
        }
        let choices = self.choices();
        match key.code {
            Code::Up if !key.alt => {
                self.selected = self.selected.checked_sub(1).unwrap_or(choices.len() - 1);
                DialogAction::Moved
            }
            Code::Down if !key.alt => {
                self.selected = (self.selected + 1) % choices.len();
                DialogAction::Moved
            }
            Code::PageDown => {
                self.top += page;
                DialogAction::Moved
            }
            Code::PageUp => {
                self.top = self.top.saturating_sub(page);
                DialogAction::Moved
            }
            Code::Enter if !key.alt && !key.shift => self.choose(self.selected),
            Code::Char(char) if key.typed().is_some() => self.press_char(char, &choices),
            _ => DialogAction::Nothing,
        }
    }

    fn press_char(&mut self, char: char, choices: &[Choice]) -> DialogAction {
        let is_asked = self.is_yes_or_no();
        let has_options = self.has_options();
        match char {
            '1'..='9' if has_options => {
                let at = char as usize - '1' as usize;
                if at < choices.len() { self.choose(at) } else { DialogAction::Nothing }
            }
            'y' if is_asked => self.choose(0),
            'n' if is_asked => self.choose(1),
            'e' if self.plan.is_some() => DialogAction::Edit,
            'c' if self.plan.is_some() => self.begin_commenting(),
            // Where there is nothing to choose, writing is answering.
            char if !has_options => DialogAction::Write { prefix: "", first: Some(char) },
            _ => DialogAction::Nothing,
        }
    }

    fn begin_commenting(&mut self) -> DialogAction {
        if let Some(plan) = &mut self.plan {
            plan.begin();
        }
        DialogAction::Moved
    }

    fn choose(&mut self, at: usize) -> DialogAction {
        let is_plan = self.asked.row.question.kind == QuestionKind::Plan;
        match self.choices().get(at) {
            // The last choice of a plan wants to know what should be different; comments say it.
            Some(Choice::Option(_)) if is_plan && at == REVISE => {
                match self.comments().revision() {
                    Some(text) => DialogAction::Answer(text),
                    None => DialogAction::Write { prefix: "Revise: ", first: None },
                }
            }
            Some(Choice::Option(text)) => DialogAction::Answer(text.clone()),
            Some(Choice::DenyWithWords) => DialogAction::Write { prefix: "Deny: ", first: None },
            Some(Choice::Words) => DialogAction::Write { prefix: "", first: None },
            Some(Choice::EditPlan) => DialogAction::Edit,
            Some(Choice::CommentLines) => self.begin_commenting(),
            None => DialogAction::Nothing,
        }
    }

    /// What is asked, with everything that it approves: nothing of it is cut, it can be scrolled.
    pub fn body(&self, columns: usize, paint: Paint) -> Vec<String> {
        self.body_and_focus(columns, paint).0
    }

    /// The same, and which of its rows must be in sight.
    pub fn body_and_focus(
        &self,
        columns: usize,
        paint: Paint,
    ) -> (Vec<String>, Option<Range<usize>>) {
        let place = Canvas { paint, columns: Some(columns) };
        let asked = &self.asked.row.question;
        let mut lines = Vec::new();
        if let Some(task) = self.asked.asker.as_ref().filter(|_| self.is_of_another) {
            let goal = one_line(&shown(&task.goal), columns.saturating_sub(ANOTHER.len()));
            lines.push(paint.dim(&format!("{ANOTHER}{goal}")));
        } else if let Some(agent) = self.asked.sub_agent() {
            let label = self.asked.label.as_deref().unwrap_or("sub-agent");
            let who = format!("{} ({}) asks", shown_line(label), agent.id);
            lines.push(paint.dim(&who));
        }
        lines.extend(question::heading(asked, place));
        let mut focus = None;
        if let Some(plan) = &self.plan {
            lines = broken(&lines, columns);
            let (rows, at) = plan.rows(place);
            focus = at.map(|at| at.start + lines.len()..at.end + lines.len());
            lines.extend(rows);
            lines.extend(asked.plan.iter().flat_map(|plan| question::plan_terms(plan, place)));
        } else {
            let call = self.asked.call.as_ref();
            let call = call.map(|call| Call { tool: &call.tool, arguments: &call.arguments });
            lines.extend(question::about(asked, call, place));
        }
        lines.extend(self.place_lines(paint));
        (broken(&lines, columns), focus)
    }

    /// The directory and the files that a permission is bound to.
    fn place_lines(&self, paint: Paint) -> Vec<String> {
        let Some(binding) = &self.asked.row.question.binding else { return Vec::new() };
        let top = self.asked.asker.as_ref().map_or("", |task| task.workspace.as_str());
        let lines = question::binding_lines(binding, top);
        lines.iter().map(|line| paint.dim(&format!("  {line}"))).collect()
    }

    /// The choices as lines, the selected one marked.
    pub fn choice_lines(&self, paint: Paint, is_armed: bool) -> Vec<String> {
        let question = &self.asked.row.question;
        let line = |(at, choice): (usize, Choice)| {
            let text = match choice {
                Choice::Option(text) => {
                    let rule = question.allow_all_description().filter(|_| text == ALLOW_ALL);
                    let scope = rule.map(|rule| format!(": {}", shown(&rule)));
                    let scope = scope.or_else(|| self.comment_count(at)).unwrap_or_default();
                    format!("{}{scope}", shown_line(&text))
                }
                Choice::DenyWithWords => "Deny, and say what to do instead".to_owned(),
                Choice::Words => "Answer in your own words".to_owned(),
                Choice::EditPlan => "Edit it in your editor, and say what to change".to_owned(),
                Choice::CommentLines => "Comment on single lines".to_owned(),
            };
            let text = format!("{}. {text}", at + 1);
            match (at == self.selected, is_armed) {
                (true, true) => format!("{} {}", paint.yellow("❯"), paint.bold(&text)),
                (_, true) => format!("  {text}"),
                (_, false) => paint.dim(&format!("  {text}")),
            }
        };
        self.choices().into_iter().enumerate().map(line).collect()
    }

    /// How many comments the choice to revise carries.
    fn comment_count(&self, choice: usize) -> Option<String> {
        let count = self.comments().len();
        let is_revise = self.plan.is_some() && choice == REVISE;
        (is_revise && count > 0).then(|| match count {
            1 => ", with your comment".to_owned(),
            count => format!(", with your {count} comments"),
        })
    }
}

fn broken(lines: &[String], columns: usize) -> Vec<String> {
    lines.iter().flat_map(|line| crate::text::broken(line, columns)).collect()
}
