//! Pages to read: the transcript, and what was changed.

use std::process::Stdio;

use windlass_coordinator::Error;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_core::state::TaskState;
use windlass_term::{Detail, Paint, Progress, diff, markdown, reasoning, strip_controls};

use super::Reader;
use crate::Moment;
use crate::overlay::{DiffOf, Page, PageLine, ViewKind};
use crate::story::{Story, incomplete};
use crate::transcript::Entry;

/// Files that git does not know, and bytes of one of them, that are shown.
const MOST_NEW: usize = 100;
const NEW_BYTES: u64 = 256 * 1024;

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
            let records = self.coordinator.tasks().journal(task)?;
            self.tell(task, &records, &mut lines);
        }
        let title = of.map_or("transcript".to_owned(), |task| format!("transcript of {task}"));
        Ok(Page::new(ViewKind::Transcript { task: of }, title, lines).from_end())
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
            let printed = story.event(record, self.columns, Moment::ZERO);
            match &record.event {
                Event::TaskCreated(created) => said(&created.command.goal, paint, lines),
                Event::InjectionReceived(message) if message.control.is_none() => {
                    said(&message.content, paint, lines);
                }
                Event::LlmResponse(response) => {
                    if let Some(thought) = &response.reasoning {
                        let lines_of = |detail| reasoning::lines(thought, paint, width, detail);
                        lines.extend(lines_of(Detail::Brief).into_iter().map(PageLine::of));
                        lines.extend(lines_of(Detail::Full).into_iter().map(PageLine::folded));
                    }
                    let text = strip_controls(&response.text);
                    let text = markdown::render(&text, paint, width.min(100));
                    lines.extend(text.lines().map(PageLine::of));
                    let why = incomplete(response).map(|why| PageLine::of(paint.yellow(why)));
                    lines.extend(why);
                    lines.push(PageLine::default());
                }
                // As they were printed: what was asked and answered, and how it ended.
                Event::QuestionAsked(_)
                | Event::QuestionAnswered(_)
                | Event::QuestionClosed(_)
                | Event::StatusChanged(_) => {
                    let rows = printed.into_iter().flat_map(|entry| match entry {
                        Entry::Lines(rows) => rows,
                        Entry::Said { text, .. } | Entry::Reply(text) => vec![shown(&text)],
                    });
                    lines.extend(rows.map(PageLine::of));
                }
                // What is cut in the brief form is there in full when unfolded.
                _ if short == long => lines.extend(short.into_iter().map(PageLine::of)),
                _ => {
                    lines.extend(short.into_iter().map(PageLine::of));
                    lines.extend(long.into_iter().map(PageLine::folded));
                }
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
                let records = self.coordinator.tasks().journal(task)?;
                lines.extend(self.turn(&records));
            }
            (DiffOf::Task | DiffOf::Turn, None) => {}
        }
        if lines.is_empty() {
            lines.push(PageLine::of(self.paint.dim("nothing was changed")));
        }
        Ok(Page::new(ViewKind::Diff(of), of.words(), lines))
    }

    /// The changes since the last message.
    fn turn(&self, records: &[Record]) -> Vec<PageLine> {
        use windlass_core::injection::InjectionType;
        use windlass_core::outcome::Fact;
        let is_message = |record: &Record| match &record.event {
            Event::TaskCreated(_) => true,
            Event::InjectionReceived(message) => {
                message.injection_type == InjectionType::UserMessage
            }
            _ => false,
        };
        let from = records.iter().rposition(is_message).unwrap_or(0);
        let mut lines = Vec::new();
        for record in &records[from..] {
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
        let text = self.git(&["--no-pager", "diff", "--no-color", "--no-ext-diff", "HEAD"]);
        let is_heading = |line: &str| line.starts_with("diff --git ");
        let mut lines = Vec::new();
        for file in
            text.split_inclusive('\n').collect::<Vec<_>>().chunk_by(|_, next| !is_heading(next))
        {
            let path = file[0].rsplit(" b/").next().unwrap_or_default().trim_end();
            lines.push(self.file_heading(path, false));
            let body = file.iter().skip_while(|line| !line.starts_with("@@")).copied();
            lines.extend(self.diff_lines(&body.collect::<String>()));
        }
        // Files that git does not know yet are changes too.
        let unknown = self.git(&["ls-files", "--others", "--exclude-standard", "-z"]);
        for path in unknown.split_terminator('\0').take(MOST_NEW) {
            lines.push(self.file_heading(path, true));
            lines.extend(self.new_file(path));
        }
        lines
    }

    /// A file of the working tree that git does not know.
    fn new_file(&self, path: &str) -> Vec<PageLine> {
        let path = self.workspace.join(path);
        let is_small =
            path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() < NEW_BYTES);
        let text = is_small.then(|| std::fs::read_to_string(path).ok()).flatten();
        match text.filter(|text| !text.contains('\0')) {
            Some(text) => {
                let added = text.lines().map(|line| format!("+{line}\n"));
                self.diff_lines(&added.collect::<String>())
            }
            None => vec![PageLine::of(self.paint.dim("  (not shown: not text, or too long)"))],
        }
    }

    /// What git prints in this directory; nothing where there is no git or no repository.
    fn git(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default()
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

fn said(text: &str, paint: Paint, lines: &mut Vec<PageLine>) {
    lines.push(PageLine::default());
    for (at, line) in shown(text.trim_end()).lines().enumerate() {
        let line = paint.bold(&format!("{}{line}", if at == 0 { "❯ " } else { "  " }));
        lines.push(PageLine { is_heading: at == 0, ..PageLine::of(line) });
    }
    lines.push(PageLine::default());
}
