//! Reads what a page shows, as a job.

use std::process::Stdio;

use windlass_coordinator::views::{Filter, NextAction, Overview, TaskView};
use windlass_coordinator::{Coordinator, Error};
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_core::state::TaskState;
use windlass_core::text::{one_line, suffix};
use windlass_term::{Detail, Paint, Progress, diff, markdown, numbers, reasoning, strip_controls};

use super::{PAGE_CHECK, Ui};
use crate::app::Input;
use crate::keymap::{Action, Keymap, name};
use crate::overlay::{DiffOf, Item, Kind, List, Overlay, Page, PageLine, Target};

/// Tasks and sessions that are listed.
const MOST: usize = 200;
/// Characters of an id that name it well enough.
const SHORT_ID: usize = 7;
/// How wide prose and calls are laid out before they are broken for the screen.
const WIDE: usize = 160;

/// What a job needs to read a page.
struct Reader {
    coordinator: Coordinator,
    paint: Paint,
    workspace: std::path::PathBuf,
    followed: Option<TaskId>,
    session: windlass_core::id::SessionId,
    columns: usize,
}

impl Ui {
    pub(super) fn load(&mut self, kind: Kind) {
        self.reload_at = Some(tokio::time::Instant::now() + PAGE_CHECK);
        if kind == Kind::Help {
            let page = help(&self.options.settings.keymap, self.app.enhanced_keys);
            self.take_in(Input::Loaded(Box::new(Overlay::Page(page))));
            return;
        }
        let reader = Reader {
            coordinator: self.coordinator.clone(),
            paint: self.options.settings.paint,
            workspace: self.options.workspace.clone(),
            followed: self.conversation.task,
            session: self.conversation.session,
            columns: self.app.size.room(),
        };
        self.jobs.read(move || reader.read(kind));
    }
}

impl Reader {
    fn read(&self, kind: Kind) -> Result<Overlay, Error> {
        Ok(match kind {
            Kind::Tasks => Overlay::List(self.tasks()?),
            Kind::Inbox => Overlay::List(self.inbox()?),
            Kind::Sessions { everywhere } => Overlay::List(self.sessions(everywhere)?),
            Kind::Agents => Overlay::List(self.agents()?),
            Kind::Transcript { task } => Overlay::Page(self.transcript(task)?),
            Kind::Diff(of) => Overlay::Page(self.diff(of)?),
            Kind::Help | Kind::Text => Overlay::Page(Page::new(kind, "", Vec::new())),
        })
    }

    /// The whole overview: tasks with their sub-agents, questions, background commands, schedules (MS-226).
    fn tasks(&self) -> Result<List, Error> {
        let filter = Filter { limit: Some(MOST), ..Filter::default() };
        let overview = Overview::read(&self.coordinator, &filter)?;
        let now = self.coordinator.now();
        let mut items = Vec::new();
        for task in &overview.tasks {
            let indent = "  ".repeat(task.row.depth as usize);
            let status = status_words(task);
            let id = task.row.id.to_string();
            let line = format!(
                "{indent}{} {} {:>4} {:>8}  {}",
                suffix(&id, SHORT_ID),
                self.status(task, &format!("{status:<11}")),
                numbers::age(task.row.created_at, now),
                cost(task),
                one_line(&shown(&task.row.goal), WIDE),
            );
            items.push(Item {
                target: Target::Task(task.row.id),
                line,
                preview: self.preview(task),
            });
            for command in task.background.values() {
                let line = format!("{indent}    & {}", one_line(&shown(command), WIDE));
                let target = Target::Task(task.row.id);
                items.push(Item { target, line: self.paint.dim(&line), preview: Vec::new() });
            }
        }
        if !overview.schedules.is_empty() {
            let heading = |line: &str| Item {
                target: Target::Heading,
                line: line.to_owned(),
                preview: Vec::new(),
            };
            items.push(heading("Schedules"));
            items.extend(overview.schedules.iter().map(|row| {
                heading(&format!(
                    "  {}  {}",
                    suffix(&row.schedule.id.to_string(), SHORT_ID),
                    row.state
                ))
            }));
        }
        Ok(List::new(Kind::Tasks, "tasks", items))
    }

    fn status(&self, task: &TaskView, words: &str) -> String {
        use windlass_core::status::TaskStatus;
        match task.row.status {
            _ if task.waits_for_answer() => self.paint.yellow(words),
            TaskStatus::Running => self.paint.green(words),
            TaskStatus::Failed => self.paint.red(words),
            TaskStatus::Done | TaskStatus::Cancelled => self.paint.dim(words),
            _ => words.to_owned(),
        }
    }

    fn preview(&self, task: &TaskView) -> Vec<String> {
        let row = &task.row;
        let mut lines = vec![
            format!("{}  {}", row.id, row.axes),
            one_line(&shown(&row.goal), 4 * WIDE),
            self.paint.dim(&shown_line(&row.workspace)),
        ];
        lines.extend(row.model.as_ref().map(|model| format!("model {}", shown_line(model))));
        if let Some(plan) = &row.plan {
            lines.push(format!("plan {}/{}", plan.done(), plan.steps.len()));
        }
        lines.push(format!("next: {}", next_words(&task.next_action())));
        let last = row.result.as_ref().and_then(|result| result.final_message.as_ref());
        lines.extend(last.map(|text| one_line(&strip_controls(text), 4 * WIDE)));
        lines
    }

    fn inbox(&self) -> Result<List, Error> {
        let open = self.coordinator.inbox().open()?;
        let now = self.coordinator.now();
        let items = open.iter().map(|asked| {
            let question = &asked.row.question;
            let goal = asked.asker.as_ref().map(|task| one_line(&shown(&task.goal), 60));
            Item {
                target: Target::Question(question.id),
                line: format!(
                    "{:>4}  {}  {}",
                    numbers::age(asked.row.asked_at, now),
                    one_line(&shown(&question.question), WIDE),
                    self.paint.dim(&goal.unwrap_or_default()),
                ),
                preview: crate::dialog::Dialog::new(asked.clone(), crate::Moment::ZERO)
                    .body(self.columns, self.paint),
            }
        });
        let mut items: Vec<Item> = items.collect();
        for proposal in self.coordinator.skill_proposals().open()? {
            let reasons = proposal.reasons().into_iter().map(|reason| shown_line(&reason));
            let accept = format!("accept it with: {}", proposal.accept_command());
            items.push(Item {
                target: Target::Proposal(proposal.number),
                line: format!(
                    "{:>4}  {}",
                    numbers::age(proposal.made_at, now),
                    one_line(&shown(&proposal.summary()), WIDE),
                ),
                preview: reasons.chain([accept]).collect(),
            });
        }
        Ok(List::new(Kind::Inbox, "questions", items))
    }

    fn sessions(&self, everywhere: bool) -> Result<List, Error> {
        let own = self.workspace.display().to_string();
        let now = self.coordinator.now();
        let mut items = Vec::new();
        for row in self.coordinator.sessions().newest(MOST as u32)? {
            let Some(last) = row.tasks.last() else { continue };
            let Some(task) = self.coordinator.tasks().get(*last)? else { continue };
            if !everywhere && task.workspace != own {
                continue;
            }
            let first =
                row.tasks.first().and_then(|first| self.coordinator.tasks().get(*first).ok()?);
            let goal = first.map_or_else(|| task.goal.clone(), |first| first.goal);
            let used = task.completed_at.or(task.paused_at).unwrap_or(task.created_at);
            let mut preview = vec![
                format!("{}  {}", row.id, row.axes),
                self.paint.dim(&shown_line(&task.workspace)),
                format!("❯ {}", one_line(&shown(&task.goal), 4 * WIDE)),
            ];
            let said = task.result.as_ref().and_then(|result| result.final_message.as_ref());
            preview.extend(said.map(|text| one_line(&strip_controls(text), 4 * WIDE)));
            items.push((
                used,
                Item {
                    target: Target::Session(row.id),
                    line: format!(
                        "{:>4}  {:<9}  {}",
                        numbers::age(used, now),
                        task.status.as_str(),
                        one_line(&shown(&goal), WIDE)
                    ),
                    preview,
                },
            ));
        }
        items.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
        let title = if everywhere { "conversations" } else { "conversations of this directory" };
        let items = items.into_iter().map(|(_, item)| item).collect();
        Ok(List::new(Kind::Sessions { everywhere }, title, items))
    }

    /// The sub-agents of the conversation and its background commands.
    fn agents(&self) -> Result<List, Error> {
        let mut items = Vec::new();
        if let Some(root) = self.followed {
            let filter = Filter { root: Some(root), ..Filter::default() };
            for task in self.coordinator.tasks().list(&filter)?.iter().rev() {
                let is_own = task.row.id == root;
                if !is_own {
                    let indent = "  ".repeat(task.row.depth.saturating_sub(1) as usize);
                    let status = self.status(task, &format!("{:<11}", status_words(task)));
                    let goal = one_line(&shown(&task.row.goal), WIDE);
                    items.push(Item {
                        target: Target::Task(task.row.id),
                        line: format!("{indent}{status} {goal}"),
                        preview: self.preview(task),
                    });
                }
                items.extend(task.background.values().map(|command| Item {
                    target: Target::Heading,
                    line: format!("& {}", one_line(&shown(command), WIDE)),
                    preview: Vec::new(),
                }));
            }
        }
        Ok(List::new(Kind::Agents, "sub-agents and background commands", items))
    }

    /// The conversation from its beginning: what people said, replies whole, outputs folded.
    fn transcript(&self, of: Option<TaskId>) -> Result<Page, Error> {
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
        Ok(Page::new(Kind::Transcript { task: of }, title, lines).from_end())
    }

    fn tell(&self, task: TaskId, records: &[Record], lines: &mut Vec<PageLine>) {
        let Some(first) = records.first() else { return };
        let folded = TaskState::fold([(first.at, &first.event)]);
        let Ok(Some(state)) = folded else { return };
        let (paint, width) = (self.paint, self.columns.saturating_sub(4).max(16));
        let mut brief = Progress::new(task, &state, paint);
        let mut full = Progress::new(task, &state, paint).with_detail(Detail::Full);
        for record in records {
            let (short, long) = (brief.lines(record, width), full.lines(record, width));
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
                    lines.push(PageLine::default());
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

    fn diff(&self, of: DiffOf) -> Result<Page, Error> {
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
        Ok(Page::new(Kind::Diff(of), of.words(), lines))
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
        let output = std::process::Command::new("git")
            .args(["--no-pager", "diff", "--no-color", "--no-ext-diff", "HEAD"])
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let text = text.unwrap_or_default();
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
        lines
    }

    fn file_heading(&self, path: &str, is_new: bool) -> PageLine {
        let new = if is_new { " (new)" } else { "" };
        PageLine::heading(self.paint.bold(&format!("{}{new}", shown_line(path))))
    }

    fn diff_lines(&self, text: &str) -> Vec<PageLine> {
        let lines = diff::lines(text, self.paint, usize::MAX, Detail::Full);
        lines.into_iter().map(PageLine::of).collect()
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

fn status_words(task: &TaskView) -> &'static str {
    match task.is_interrupted() {
        true => "interrupted",
        false => task.row.status.as_str(),
    }
}

fn cost(task: &TaskView) -> String {
    match task.cost_usd {
        None if task.row.usage.total_tokens > 0 => "-".to_owned(),
        dollars => numbers::dollars(dollars.unwrap_or(0.0)),
    }
}

fn next_words(action: &NextAction) -> String {
    match action {
        NextAction::Answer { .. } => "answer its question".to_owned(),
        NextAction::RaiseBudget { .. } => "raise its budget, or stop it".to_owned(),
        NextAction::WaitForTasks { count } => format!("it waits for {count} other tasks"),
        NextAction::WaitForService => "it waits for `windlass serve`".to_owned(),
        NextAction::WaitForCheck { at } => format!("it is checked on at {}", at.strftime("%H:%M")),
        NextAction::WaitForModel { at } => format!("it asks its model at {}", at.strftime("%H:%M")),
        NextAction::SendMessage => "a message continues it".to_owned(),
        NextAction::Resume => "r resumes it".to_owned(),
        NextAction::Retry { .. } => "`windlass retry` tries it again".to_owned(),
        NextAction::Review => "review what it did".to_owned(),
        NextAction::Follow { .. } => "it works; Enter watches it".to_owned(),
        NextAction::Nothing => "nothing, it has ended".to_owned(),
    }
}

/// Every key and what it does.
fn help(keymap: &Keymap, enhanced: bool) -> Page {
    let mut lines = Vec::new();
    for action in Action::ALL {
        let mut keys: Vec<String> = keymap.keys(*action).into_iter().map(name).collect();
        if !enhanced {
            // Terminals of the old kind cannot tell these keys from others.
            keys.retain(|key| !key.starts_with("Ctrl+Shift+") && key != "Ctrl+Enter");
        }
        lines.push(PageLine::of(format!("{:<28} {}", keys.join(", "), action.about())));
    }
    let more = [
        ("Tab", "complete a command or a file"),
        ("Up, Down", "earlier messages"),
        ("Ctrl+A/E, Ctrl+U/K/W, Ctrl+Y", "edit as in a shell; Ctrl+_ undoes"),
        ("@name", "name a file"),
        ("!command", "run a command in the sandbox"),
    ];
    lines.push(PageLine::default());
    lines.extend(more.map(|(keys, about)| PageLine::of(format!("{keys:<28} {about}"))));
    lines.push(PageLine::default());
    lines.push(PageLine::of(
        "Bind keys in `[tui.keys]`: such as `editor = \"f4\"`. `/help` lists commands.",
    ));
    Page::new(Kind::Help, "keys", lines)
}
