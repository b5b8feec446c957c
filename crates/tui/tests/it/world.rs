//! A terminal with nobody behind it: the model, the views and the writer, and an emulator that shows what a person
//! would see.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use windlass_coordinator::views::{AskedCall, OpenQuestion, QuestionRow, QuestionState};
use windlass_core::axes::{Axes, ModelMode, PermissionProfile, RunControl, Surface, WorkMode};
use windlass_core::event::{Event, Record};
use windlass_core::id::{CallId, CommandId, QuestionId, SessionId, TaskId};
use windlass_core::question::PERMISSION_OPTIONS;
use windlass_core::state::TaskState;
use windlass_term::{Paint, StatusPart};
use windlass_tui::app::{App, Effect, Input, Settings};
use windlass_tui::history::History;
use windlass_tui::host::Layout;
use windlass_tui::keymap::Keymap;
use windlass_tui::keys::{Code, Direction, Event as Typed, Key, Wheel};
use windlass_tui::screen::{Abilities, Screen, Size};
use windlass_tui::text::Signs;
use windlass_tui::transcript::Entry;
use windlass_tui::view::{self, WholeScreen};

pub const PLAIN: Paint = Paint { on: false };
pub const COLOURS: Paint = Paint { on: true };

pub fn settings(paint: Paint) -> Settings {
    Settings {
        paint,
        animation: false,
        keymap: Keymap::default(),
        project: "shop".to_owned(),
        user: "ada".to_owned(),
        may_be_unrestricted: false,
        screen_reader: false,
        vim: false,
        status: StatusPart::ALL.to_vec(),
    }
}

/// A terminal, its emulator and its clock.
pub struct World {
    pub app: App,
    pub screen: Screen,
    pub parser: vt100::Parser,
    pub now: Duration,
    pub effects: Vec<Effect>,
    pub written: usize,
    /// Every byte of it.
    pub painted: String,
    whole_screen: WholeScreen,
    is_blank: bool,
}

impl World {
    pub fn new(columns: usize, rows: usize) -> Self {
        Self::with(settings(PLAIN), columns, rows)
    }

    pub fn with(settings: Settings, columns: usize, rows: usize) -> Self {
        let size = Size { columns, rows };
        let abilities = Abilities { signs: Signs::Unicode, colours: settings.paint.on };
        let mut world = Self {
            app: App::new(settings, size, History::default()),
            screen: Screen::new(size, abilities),
            parser: vt100::Parser::new(rows as u16, columns as u16, 10_000),
            now: Duration::from_secs(10),
            effects: Vec::new(),
            written: 0,
            painted: String::new(),
            whole_screen: WholeScreen::default(),
            is_blank: false,
        };
        world.input(Input::Tick);
        world.paint();
        world
    }

    pub fn input(&mut self, input: Input) {
        let effects = self.app.update(input, self.now);
        self.effects.extend(effects);
    }

    pub fn key(&mut self, key: Key) {
        self.input(Input::Terminal(Typed::Key(key)));
    }

    pub fn types(&mut self, text: &str) {
        for char in text.chars() {
            let code = if char == '\n' { Code::Enter } else { Code::Char(char) };
            self.key(Key::plain(code));
        }
    }

    pub fn paste(&mut self, text: &str) {
        self.input(Input::Terminal(Typed::Paste(text.to_owned())));
    }

    /// One notch of the wheel over a row of the screen.
    pub fn wheel(&mut self, direction: Direction, row: usize) {
        self.input(Input::Terminal(Typed::Wheel(Wheel { direction, row })));
    }

    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.input(Input::Tick);
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        let saves = |effect: &Effect| !matches!(effect, Effect::Save | Effect::Remember(_));
        std::mem::take(&mut self.effects).into_iter().filter(saves).collect()
    }

    /// Writes a frame to the emulator.
    pub fn paint(&mut self) {
        self.screen.set_alternate(self.app.has_alternate_screen);
        let text = match view::overlay(&mut self.app) {
            Some(frame) => self.screen.paint_overlay(&frame),
            None if self.app.layout == Layout::Full => {
                let frame = self.whole_screen.frame(&mut self.app);
                self.screen.paint_overlay(&frame)
            }
            None if self.screen.has_lost_rows() => {
                let zone = view::zone(&self.app);
                let (form, shown) = (self.app.form(), self.screen.rows_above());
                let rows = self.app.transcript.take_with_shown(form, form, shown);
                self.screen.paint(&rows, &zone)
            }
            None => {
                let entries = self.app.transcript.take_new();
                let rows = Entry::all_rows(&entries, self.app.form(), &mut self.is_blank);
                self.screen.paint(&rows, &view::zone(&self.app))
            }
        };
        self.written += text.len();
        self.painted += &text;
        self.process(&text);
    }

    /// The emulator knows no clearing of the scrollback: a new one takes its place. GNU screen neither has an alternate
    /// screen nor clears its scrollback; what is cleared of the screen goes into it.
    fn process(&mut self, text: &str) {
        let text = match self.app.has_alternate_screen {
            true => text.to_owned(),
            false => {
                let rows = self.parser.screen().size().0;
                let scrolled = "\n".repeat(usize::from(rows));
                let plain = text.replace("\u{1b}[?1049h", "").replace("\u{1b}[?1049l", "");
                let scrolled = format!("\u{1b}7\u{1b}[{rows};1H{scrolled}\u{1b}8");
                plain.replace("\u{1b}[3J", "").replace("\u{1b}[2J", &scrolled)
            }
        };
        match text.rsplit_once("\u{1b}[3J") {
            None => self.parser.process(text.as_bytes()),
            Some((_, after)) => {
                let (rows, columns) = self.parser.screen().size();
                self.parser = vt100::Parser::new(rows, columns, 10_000);
                self.parser.process(after.as_bytes());
            }
        }
    }

    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.parser.screen_mut().set_size(rows as u16, columns as u16);
        let size = Size { columns, rows };
        let (must_reprint, before) = (self.screen.resize(size), self.app.form());
        self.whole_screen.clear();
        self.input(Input::Resize(size));
        if must_reprint && self.app.layout == Layout::Inline {
            let (zone, form) = (view::zone(&self.app), self.app.form());
            let shown = self.screen.rows_above();
            let transcript = &mut self.app.transcript;
            let rows = match self.app.has_alternate_screen {
                true => {
                    transcript.take_new();
                    transcript.rows(form, 1000)
                }
                false => transcript.take_with_shown(form, before, shown),
            };
            let text = self.screen.reprint(&rows, &zone);
            self.process(&text);
        }
        self.paint();
    }

    /// The screen as a person sees it.
    pub fn shown(&mut self) -> String {
        self.paint();
        trimmed(&self.parser.screen().contents())
    }

    /// Everything above the screen and on it.
    pub fn all(&mut self) -> String {
        self.paint();
        let rows = usize::from(self.parser.screen().size().0);
        self.parser.screen_mut().set_scrollback(usize::MAX);
        let mut lines = Vec::new();
        let mut above = self.parser.screen().scrollback();
        while above > 0 {
            self.parser.screen_mut().set_scrollback(above);
            let contents = self.parser.screen().contents();
            let page: Vec<&str> = contents.split('\n').collect();
            lines.extend(page.iter().take(above.min(rows)).map(|line| (*line).to_owned()));
            above = above.saturating_sub(rows);
        }
        self.parser.screen_mut().set_scrollback(0);
        lines.push(self.parser.screen().contents());
        trimmed(&lines.join("\n"))
    }

    /// Tells the story of a task that was asked this.
    pub fn begin(&mut self, goal: &str) -> TaskId {
        let created = created(goal);
        let state = TaskState::fold([(Timestamp::UNIX_EPOCH, &created)]).unwrap().unwrap();
        let task = state.id();
        self.input(Input::Follow(Box::new(state)));
        self.record(task, created);
        task
    }

    pub fn record(&mut self, task: TaskId, event: Event) {
        let at = Timestamp::UNIX_EPOCH + self.now;
        let record = Record { pos: 1, task, seq: 1, at, iteration: 0, event };
        self.input(Input::Record(Box::new(record)));
    }

    pub fn reply(&mut self, task: TaskId, text: &str) {
        self.record(task, reply(text));
    }

    /// Asks whether a command may run.
    pub fn ask(&mut self, command: &str) -> QuestionId {
        let asked = permission(command);
        let id = asked.row.question.id;
        self.input(Input::Questions(vec![asked]));
        id
    }
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

pub fn axes(work: WorkMode, control: RunControl, profile: PermissionProfile) -> Axes {
    Axes {
        work_mode: work,
        run_control: control,
        permission_profile: profile,
        model_mode: ModelMode::Smart,
        surface: Surface::Tui,
    }
}

/// Events as a journal has them, so that new fields of theirs need no change here.
pub fn event(kind: &str, body: serde_json::Value) -> Event {
    Event::from_parts(kind, 1, &body.to_string()).unwrap()
}

pub fn created(goal: &str) -> Event {
    let now = Timestamp::UNIX_EPOCH;
    let task = TaskId::new(now);
    event(
        "task_created",
        json!({
            "command": {
                "command_id": CommandId::new(now),
                "session_id": SessionId::new(now),
                "task_id": task,
                "goal": goal,
            },
            "root": task,
            "axes": Axes::interactive(Surface::Tui),
            "workspace": "/shop",
            "driver": "foreground",
            "max_retries": 3,
        }),
    )
}

pub fn reply(text: &str) -> Event {
    event(
        "llm_response",
        json!({
            "text": text,
            "finish": "stop",
            "usage": { "input_tokens": 900, "cached_tokens": 0, "output_tokens": 100 },
            "model": "test/model",
            "latency_ms": 5,
        }),
    )
}

pub fn call(id: CallId, command: &str) -> Event {
    let arguments = json!({ "command": command });
    let recovery = serde_json::to_value(windlass_core::outcome::Recovery::Unknown).unwrap();
    event(
        "tool_call",
        json!({ "call": id, "tool": "bash", "arguments": arguments, "recovery": recovery }),
    )
}

pub fn result(id: CallId, printed: &str) -> Event {
    event(
        "tool_result",
        json!({ "call": id, "tool": "bash", "ending": "ok", "text": printed, "duration_ms": 5 }),
    )
}

pub fn permission(command: &str) -> OpenQuestion {
    let question = json!({
        "id": QuestionId::new(Timestamp::UNIX_EPOCH),
        "kind": "permission",
        "question": "Run this command? It removes files.",
        "options": PERMISSION_OPTIONS,
        "binding": { "arguments_hash": "x", "cwd": "/shop" },
    });
    let call = AskedCall { tool: "bash".to_owned(), arguments: json!({ "command": command }) };
    open(question, Some(call))
}

pub fn open(question: serde_json::Value, call: Option<AskedCall>) -> OpenQuestion {
    let row = QuestionRow {
        task: TaskId::new(Timestamp::UNIX_EPOCH),
        question: serde_json::from_value(question).unwrap(),
        state: QuestionState::Open,
        asked_at: Timestamp::UNIX_EPOCH,
    };
    OpenQuestion { row, asker: None, label: None, call }
}

pub fn bindings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, keys)| ((*name).to_owned(), (*keys).to_owned())).collect()
}
