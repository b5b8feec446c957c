//! Questions to the person, inline where they arise.
//!
//! Invariant: a key answers only after [`QUIET`] without typing since the question was shown, and a paste never
//! does. Until then keys go where they went before: into the text.

mod plan_review;

use std::ops::Range;
use std::time::Duration;

use windlass_coordinator::views::OpenQuestion;
use windlass_core::id::QuestionId;
use windlass_core::question::{BoundFile, PERMISSION_OPTIONS, QuestionKind};
use windlass_core::shown::{shown, shown_line};
use windlass_term::question::{Call, Canvas};
use windlass_term::{Paint, numbers, question};

pub use plan_review::Comments;
use plan_review::PlanReview;

use crate::Moment;
use crate::keys::{Code, Key};

/// How long nothing may have been typed before a key answers.
pub const QUIET: Duration = Duration::from_secs(1);

const ALLOW_ALL: &str = PERMISSION_OPTIONS[2];
/// Missing files that are named one by one.
const MOST_MISSING: usize = 3;
/// The choice of a plan question that says what should be different.
const REVISE: usize = 2;

/// An open question and where the person is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialog {
    pub asked: OpenQuestion,
    shown_at: Moment,
    selected: usize,
    /// How far its text is scrolled.
    pub top: usize,
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
pub enum Pressed {
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
    pub fn new(asked: OpenQuestion, now: Moment) -> Self {
        let question = &asked.row.question;
        let text = match (&question.plan, question.kind) {
            (Some(plan), _) => Some(plan.text.as_str()),
            (None, QuestionKind::Plan) => question.context.as_deref(),
            (None, _) => None,
        };
        let plan = text.map(PlanReview::of);
        Self { asked, shown_at: now, selected: 0, top: 0, plan }
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

    /// When keys begin to count, given when something was last typed.
    pub fn armed_at(&self, last_typed: Moment) -> Moment {
        self.shown_at.max(last_typed) + QUIET
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
            QuestionKind::AskUser
            | QuestionKind::Budget
            | QuestionKind::Review
            | QuestionKind::Runner => options.chain([Choice::Words]).collect(),
        }
    }

    pub fn selected(&self) -> usize {
        self.selected
    }

    /// What a key means here; it counts only where the caller has seen to [`QUIET`]. A page of its text has so many
    /// rows.
    pub fn press(&mut self, key: Key, page: usize) -> Pressed {
        if let Some(plan) = self.plan.as_mut().filter(|plan| plan.is_commenting()) {
            return plan.press(key, page);
        }
        let choices = self.choices();
        match key.code {
            Code::Up if !key.alt => {
                self.selected = self.selected.checked_sub(1).unwrap_or(choices.len() - 1);
                Pressed::Moved
            }
            Code::Down if !key.alt => {
                self.selected = (self.selected + 1) % choices.len();
                Pressed::Moved
            }
            Code::PageDown => {
                self.top += page;
                Pressed::Moved
            }
            Code::PageUp => {
                self.top = self.top.saturating_sub(page);
                Pressed::Moved
            }
            Code::Enter if !key.alt && !key.shift => self.choose(self.selected),
            Code::Char(char) if key.typed().is_some() => self.press_char(char, &choices),
            _ => Pressed::Nothing,
        }
    }

    fn press_char(&mut self, char: char, choices: &[Choice]) -> Pressed {
        let question = &self.asked.row.question;
        let is_asked = matches!(question.kind, QuestionKind::Permission | QuestionKind::Repair);
        let has_options = !question.options.is_empty();
        match char {
            '1'..='9' if has_options => {
                let at = char as usize - '1' as usize;
                if at < choices.len() { self.choose(at) } else { Pressed::Nothing }
            }
            'y' if is_asked => self.choose(0),
            'n' if is_asked => self.choose(1),
            'e' if self.plan.is_some() => Pressed::Edit,
            'c' if self.plan.is_some() => self.begin_commenting(),
            // Where there is nothing to choose, writing is answering.
            char if !has_options => Pressed::Write { prefix: "", first: Some(char) },
            _ => Pressed::Nothing,
        }
    }

    fn begin_commenting(&mut self) -> Pressed {
        if let Some(plan) = &mut self.plan {
            plan.begin();
        }
        Pressed::Moved
    }

    fn choose(&mut self, at: usize) -> Pressed {
        let is_plan = self.asked.row.question.kind == QuestionKind::Plan;
        match self.choices().get(at) {
            // The last choice of a plan wants to know what should be different; comments say it.
            Some(Choice::Option(_)) if is_plan && at == REVISE => {
                match self.comments().revision() {
                    Some(text) => Pressed::Answer(text),
                    None => Pressed::Write { prefix: "Revise: ", first: None },
                }
            }
            Some(Choice::Option(text)) => Pressed::Answer(text.clone()),
            Some(Choice::DenyWithWords) => Pressed::Write { prefix: "Deny: ", first: None },
            Some(Choice::Words) => Pressed::Write { prefix: "", first: None },
            Some(Choice::EditPlan) => Pressed::Edit,
            Some(Choice::CommentLines) => self.begin_commenting(),
            None => Pressed::Nothing,
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
        if let Some(agent) = self.asked.sub_agent() {
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
        let directory = std::path::Path::new(top).join(&binding.cwd);
        let mut lines = Vec::new();
        if !directory.as_os_str().is_empty() {
            let directory = windlass_core::shown::shown_path(&directory);
            lines.push(paint.dim(&format!("in {}", directory.trim_end_matches('/'))));
        }
        lines.extend(file_lines(&binding.files, top).iter().map(|line| paint.dim(line)));
        lines
    }

    /// The choices as lines, the selected one marked.
    pub fn choice_lines(&self, paint: Paint, is_armed: bool) -> Vec<String> {
        let question = &self.asked.row.question;
        let line = |(at, choice): (usize, Choice)| {
            let text = match choice {
                Choice::Option(text) => {
                    let rule = question.grants.as_ref().filter(|_| text == ALLOW_ALL);
                    let scope = rule.map(|rule| format!(": {}", shown(&rule.to_string())));
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

/// The files that a permission is bound to. Those that do not exist are counted where they are many: a command of git
/// is bound to the absence of every hook.
fn file_lines(files: &[BoundFile], workspace: &str) -> Vec<String> {
    let (there, missing): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.hash.is_some());
    // In a container the workspace has another name.
    let tops = [windlass_core::layout::WORKSPACE, workspace].map(|top| format!("{top}/"));
    let name = |file: &&BoundFile| {
        let inside = tops.iter().find_map(|top| file.path.strip_prefix(top.as_str()));
        shown_line(inside.unwrap_or(&file.path))
    };
    let mut lines: Vec<String> = there.iter().map(|file| format!("file {}", name(file))).collect();
    match missing.as_slice() {
        [first, .., last] if missing.len() > MOST_MISSING => lines.push(format!(
            "{} that do not exist: {} … {}",
            numbers::plural(missing.len(), "file"),
            name(first),
            name(last)
        )),
        few => lines.extend(few.iter().map(|file| format!("file {} (does not exist)", name(file)))),
    }
    lines
}

fn broken(lines: &[String], columns: usize) -> Vec<String> {
    lines.iter().flat_map(|line| crate::text::broken(line, columns)).collect()
}
