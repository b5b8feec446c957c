//! Pages to read: the transcript, and what was changed.

use jiff::Timestamp;
use windlass_coordinator::Error;
use windlass_coordinator::views::Filter;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::outcome::Fact;
use windlass_core::shown::shown_line;
use windlass_core::state::TaskState;
use windlass_term::{Detail, Paint, Progress, diff, markdown, numbers, reasoning, strip_controls};

use super::Reader;
use crate::overlay::{DiffOf, Fold, Page, PageLine, ViewKind};
use crate::story::{Story, incomplete};
use crate::text::prose;
use crate::transcript::{self, Entry};

impl Reader {
    /// The conversation from its beginning: what people said, replies whole, outputs folded.
    pub(super) fn transcript(&self, of: Option<TaskId>) -> Result<Page, Error> {
        let tasks = match of {
            Some(task) => vec![task],
            None => {
                let view = self.coordinator.sessions().view(self.session)?;
                view.tasks.iter().map(|entry| entry.task_id).collect()
            }
        };
        let mut lines = Vec::new();
        for task in tasks {
            let records = self.coordinator.journals().of(task)?;
            self.tell(task, &records, &mut lines);
        }
        let is_empty = |line: &PageLine| line.text.is_empty() && line.fold == Fold::Always;
        lines.dedup_by(|next, before| is_empty(next) && is_empty(before));
        lines.extend(self.running(of.or(self.followed)));
        let is_growing = match of {
            Some(task) => !self.coordinator.tasks().has_ended(task)?,
            None => false,
        };
        let title = of.map_or("transcript".to_owned(), |task| format!("transcript of {task}"));
        let page = Page::new(ViewKind::Transcript { task: of }, title, lines);
        Ok(page.from_end().growing(is_growing))
    }

    /// The last line of what each running call of a task has printed.
    fn running(&self, of: Option<TaskId>) -> Vec<PageLine> {
        let of_task = self.running.iter().filter(|(task, _)| Some(*task) == of);
        of_task.map(|(_, last)| PageLine::of(self.paint.dim(&format!("  {last}")))).collect()
    }

    fn tell(&self, task: TaskId, records: &[Record], lines: &mut Vec<PageLine>) {
        let Some(first) = records.first() else { return };
        let folded = TaskState::fold([(first.at, &first.event)]);
        let Ok(Some(state)) = folded else { return };
        let (paint, width) = (self.paint, self.columns.saturating_sub(4).max(16));
        let mut brief = Progress::new(task, &state, paint);
        let mut full = Progress::new(task, &state, paint).with_detail(Detail::Full);
        let mut story = Story::new(&state, &self.settings);
        for record in records {
            let (short, long) = (brief.lines(record, width), full.lines(record, width));
            let printed = story.event(record, self.columns);
            match &record.event {
                Event::TaskCreated(created) => {
                    let text = created.goal_for_people();
                    said(text, paint, lines);
                    came_with(text, &created.command.goal, paint, lines);
                }
                // An answer stands below its question.
                Event::InjectionReceived(message) if message.question.is_some() => {}
                Event::InjectionReceived(message)
                    if message.control.is_none() || message.is_from_person() =>
                {
                    let text = message.text_for_people();
                    said(text, paint, lines);
                    came_with(text, &message.content, paint, lines);
                }
                Event::LlmResponse(response) => {
                    if let Some(thought) = &response.reasoning {
                        let lines_of = |detail| reasoning::lines(thought, paint, width, detail);
                        fold(lines_of(Detail::Brief), lines_of(Detail::Full), lines);
                    }
                    let text = strip_controls(&response.text);
                    let text = markdown::render(&text, paint, width.min(100));
                    lines.extend(text.lines().map(PageLine::of));
                    let why = incomplete(response).map(|why| PageLine::of(paint.yellow(why)));
                    lines.extend(why);
                    leave_gap(lines);
                }
                // As they were printed: what was asked and answered, and how it ended.
                Event::QuestionAsked(_)
                | Event::QuestionAnswered(_)
                | Event::QuestionClosed(_)
                | Event::StatusChanged(_) => {
                    let rows = printed.into_iter().flat_map(|entry| match entry {
                        Entry::Lines(rows) => rows,
                        Entry::Said { text, .. } | Entry::Reply(text) => vec![prose(&text)],
                    });
                    lines.extend(rows.map(PageLine::of));
                }
                _ => fold(short, long, lines),
            }
        }
    }

    pub(super) fn diff(&self, of: DiffOf) -> Result<Page, Error> {
        let mut lines = Vec::new();
        match (of, self.followed) {
            (DiffOf::WorkingTree, _) => lines.extend(self.working_tree()),
            (DiffOf::Task, Some(task)) => {
                for file in self.coordinator.artifacts().changes().of(task)? {
                    lines.push(self.file_heading(&file.file.path, file.file.is_new));
                    match &file.diff {
                        Some(text) => lines.extend(self.diff_lines(text)),
                        None => lines.push(PageLine::of(self.paint.dim("  (not shown: not text)"))),
                    }
                }
            }
            (DiffOf::Turn, Some(task)) => {
                let records = self.coordinator.journals().of(task)?;
                let turn = since_last_message(&records);
                lines.extend(self.edits(turn));
                if let Some(first) = turn.first() {
                    lines.extend(self.edits_below(task, first.at)?);
                }
            }
            (DiffOf::Task | DiffOf::Turn, None) => {}
        }
        if lines.is_empty() {
            let words: &[&str] = match of {
                DiffOf::WorkingTree => &["nothing was changed"],
                DiffOf::Turn | DiffOf::Task => &[
                    "no file was changed by `write` or `edit`",
                    "Tab: the working tree also has what commands changed",
                ],
            };
            lines.extend(words.iter().map(|words| PageLine::of(self.paint.dim(words))));
        }
        Ok(Page::new(ViewKind::Diff(of), of.words(), lines))
    }

    /// What the agents below a task have changed since then.
    fn edits_below(&self, task: TaskId, since: Timestamp) -> Result<Vec<PageLine>, Error> {
        let below = Filter { root: Some(task), ..Filter::default() };
        let mut lines = Vec::new();
        for view in self.coordinator.tasks().list(&below)?.iter().rev() {
            if view.row.id != task {
                let records = self.coordinator.journals().of(view.row.id)?;
                let from = records.partition_point(|record| record.at < since);
                lines.extend(self.edits(&records[from..]));
            }
        }
        Ok(lines)
    }

    fn edits(&self, records: &[Record]) -> Vec<PageLine> {
        let mut lines = Vec::new();
        for record in records {
            let Event::ToolResult(result) = &record.event else { continue };
            for fact in &result.outcome.facts {
                if let Fact::FileChanged { path, diff: Some(text), .. } = fact {
                    lines.push(self.file_heading(path, false));
                    lines.extend(self.diff_lines(text));
                }
            }
        }
        lines
    }

    fn working_tree(&self) -> Vec<PageLine> {
        let read = self.host.working_tree(&self.workspace);
        // Pages are read on a thread of their own.
        let files = match tokio::runtime::Handle::current().block_on(read) {
            Ok(Some(files)) => files,
            Ok(None) => {
                return vec![PageLine::of(self.paint.dim("there is no git repository here"))];
            }
            Err(why) => return vec![PageLine::of(self.paint.red(&shown_line(&why)))],
        };
        let mut lines = Vec::new();
        for file in files {
            lines.push(self.file_heading(&file.path, file.is_new));
            match &file.diff {
                Some(text) => lines.extend(self.diff_lines(text)),
                None => {
                    let why = "  (not shown: not text, or too long)";
                    lines.push(PageLine::of(self.paint.dim(why)));
                }
            }
        }
        lines
    }

    fn file_heading(&self, path: &str, is_new: bool) -> PageLine {
        let new = if is_new { " (new)" } else { "" };
        PageLine::heading(self.paint.bold(&format!("{}{new}", shown_line(path))))
    }

    fn diff_lines(&self, text: &str) -> Vec<PageLine> {
        let lines = diff::lines(text, self.paint, usize::MAX, Detail::Full);
        // A jump stops at each hunk too.
        let line = |text: String| PageLine {
            is_heading: strip_controls(&text).starts_with("  @@"),
            ..PageLine::of(text)
        };
        lines.into_iter().map(line).collect()
    }
}

/// What is cut in the brief form is there in full when unfolded, in its place.
fn fold(short: Vec<String>, long: Vec<String>, lines: &mut Vec<PageLine>) {
    if short == long {
        return lines.extend(short.into_iter().map(PageLine::of));
    }
    lines.extend(short.into_iter().map(PageLine::brief));
    lines.extend(long.into_iter().map(PageLine::folded));
}

fn said(text: &str, paint: Paint, lines: &mut Vec<PageLine>) {
    leave_gap(lines);
    let text = prose(text.trim_end());
    let cut = transcript::left_out(text.lines().count());
    for (at, line) in text.lines().enumerate() {
        let line = paint.bold(&format!("{}{line}", if at == 0 { "❯ " } else { "  " }));
        let fold = match cut {
            Some((from, to)) if (from..to).contains(&at) => Fold::WhileUnfolded,
            _ => Fold::Always,
        };
        if let Some((from, to)) = cut.filter(|(from, _)| *from == at) {
            let more = numbers::plural(to - from, "more line");
            lines.push(PageLine::brief(paint.dim(&format!("  … {more}"))));
        }
        lines.push(PageLine { text: line, is_heading: at == 0, fold });
    }
    leave_gap(lines);
}

/// What the agent read besides the words of a message: files that they name, commands that the person ran.
fn came_with(text: &str, content: &str, paint: Paint, lines: &mut Vec<PageLine>) {
    let rest = match content.split_once(text) {
        _ if content == text => return,
        Some((before, after)) => format!("{}\n{}", before.trim_end(), after.trim_start()),
        // Where what came with it is named in the message.
        None => content.to_owned(),
    };
    let rest = prose(rest.trim());
    let more = numbers::plural(rest.lines().count(), "more line");
    lines.pop_if(|last| last.text.is_empty());
    lines.push(PageLine::brief(paint.dim(&format!("  … {more} that came with it"))));
    lines.extend(rest.lines().map(|line| PageLine::folded(paint.dim(&format!("  {line}")))));
    leave_gap(lines);
}

/// One empty line, unless there is one.
fn leave_gap(lines: &mut Vec<PageLine>) {
    if lines.last().is_none_or(|last| *last != PageLine::default()) {
        lines.push(PageLine::default());
    }
}

/// What happened since a person last said something.
fn since_last_message(records: &[Record]) -> &[Record] {
    let is_message = |record: &Record| match &record.event {
        Event::TaskCreated(_) => true,
        Event::InjectionReceived(message) => message.is_from_person(),
        _ => false,
    };
    let from = records.iter().rposition(is_message).unwrap_or(0);
    &records[from..]
}
