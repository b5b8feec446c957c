//! The state of the terminal and how it changes: inputs in, effects out. Nothing here reads a clock, a file or a
//! terminal.
//!
//! Invariants:
//! - A draft is never lost: it is written, queued, on its way, put aside or in the history, until it was sent.
//! - No question is answered but by a key that [`crate::dialog`] lets count.
//! - What is printed comes from committed events; what is only previewed stays in the live zone. Only where a reply is
//!   given up, what was read of it is printed too, marked as not finished.

mod binding;
mod chord;
mod completing;
mod departure;
mod notice;
mod outgoing;
mod own_command;
mod pressing;
mod questions;
mod ran;
mod saved;
mod scrolling;
mod spoken;
mod writing;

use std::time::Duration;

use jiff::Timestamp;
use windlass_coordinator::Preview;
use windlass_coordinator::views::OpenQuestion;
use windlass_core::axes::{Axes, Surface};
use windlass_core::event::{Event as Happened, Record};
use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::session::Source;
use windlass_core::shown::{shown, shown_line};
use windlass_core::state::TaskState;
use windlass_term::{Paint, StatusPart};

use crate::Moment;
use crate::completion::Command;
use crate::composer::Draft;
use crate::history::History;
use crate::host::Layout;
use crate::keymap::{Action, Keymap};
use crate::keys::Event;
use crate::mode_line::Mode;
use crate::overlay::{Overlay, ViewKind};
use crate::screen::Size;
use crate::story::Story;
use crate::transcript::{Entry, Form, FormStyle, Transcript};

use binding::Binder;
pub use binding::Binding;
pub use chord::Chord;
pub use completing::Completing;
pub use departure::Departure;
pub use notice::Notice;
pub use outgoing::{Outgoing, Steered};
pub use own_command::OwnCommand;
use pressing::Pressing;
pub use questions::{QuestionKeys, Questions};
pub use saved::SavedDrafts;
pub use scrolling::Scrolling;
pub use spoken::{LastWords, STILL_WORKING};
pub use writing::{Answering, ComposerState, Purpose, Searching};

/// How soon a second Ctrl-C leaves, and a second Esc takes a message back.
const TWICE: Duration = Duration::from_millis(2000);
const TWICE_ESCAPE: Duration = Duration::from_millis(600);
/// The time between two pictures of what moves.
pub const FRAME: Duration = Duration::from_millis(120);
/// The time between two changes of the clock, where nothing moves.
const SECOND: Duration = Duration::from_secs(1);

/// What the terminal is opened with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub paint: Paint,
    pub animation: bool,
    pub keymap: Keymap,
    /// The name of the directory.
    pub project: String,
    pub user: String,
    /// Whether the profile `unrestricted` may be chosen.
    pub may_be_unrestricted: bool,
    /// Whether everything is said in lines that a screen reader reads once.
    pub screen_reader: bool,
    /// Whether keys edit as in vi.
    pub vim: bool,
    /// What the bottom line says besides the current activity, the most important first.
    pub status: Vec<StatusPart>,
}

/// What the task of the conversation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for a message.
    Idle,
    Working,
    /// It waits for an answer.
    Blocked,
    /// It was asked to stop.
    Stopping,
}

impl Phase {
    pub const fn is_working(self) -> bool {
        matches!(self, Self::Working | Self::Stopping)
    }
}

/// What is known of the session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    pub axes: Axes,
    pub role: Option<String>,
    /// The model, and how hard it thinks.
    pub model: String,
    pub effort: Option<String>,
    pub is_paused: bool,
}

impl SessionFacts {
    pub fn mode(&self) -> Mode {
        Mode { axes: self.axes, role: self.role.clone(), is_paused: self.is_paused }
    }
}

/// What happens to the terminal.
pub enum Input {
    Terminal(Event),
    /// Several keys came at once; they follow.
    Burst,
    Resize(Size),
    /// Time has passed.
    Tick,
    /// The story of a task begins here.
    Follow(Box<TaskState>),
    Record(Box<Record>),
    Preview(Box<Preview>),
    Phase(Phase),
    Facts(SessionFacts),
    /// The mode was changed to this, and that was printed.
    ModeSaid(Axes),
    /// The questions that are open now.
    Questions(Vec<OpenQuestion>),
    /// A question was answered elsewhere.
    Settled {
        question: QuestionId,
        by: String,
        text: String,
    },
    /// Somebody else's question that the person chose from the inbox.
    ShowQuestion(Box<OpenQuestion>),
    /// A message has arrived where it was sent.
    Sent,
    /// A message could not be sent.
    NotSent {
        draft: Draft,
        why: String,
    },
    /// A message was taken back before it was read.
    Withdrawn(Draft),
    /// An answer was not accepted.
    NotAnswered {
        why: String,
    },
    Print(Entry),
    Notice(String),
    Files(Vec<String>),
    /// What a directory holds that the word at the cursor names.
    Place {
        place: String,
        names: Vec<String>,
    },
    Commands(Vec<Command>),
    Loaded(Box<Overlay>),
    /// A page that is open, read again. The person may have left it meanwhile.
    Refreshed(Box<Overlay>),
    /// What is written next is for this sub-agent.
    WriteTo(TaskId),
    /// The person's editor has ended, with what they wrote.
    Edited(Option<String>),
    /// Keys in force from now on and where they were kept, or why they were not.
    Bound {
        keymap: Box<Keymap>,
        kept: Result<String, String>,
    },
    /// The commands that the person runs now.
    OwnCommands(Vec<OwnCommand>),
    /// A command that the person ran, to be sent with the next message.
    Ran {
        command: String,
        printed: String,
    },
}

/// What the terminal wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Continue the conversation with this.
    Send(Draft),
    /// Pass this into the turn that runs.
    Steer(Draft),
    Answer {
        question: QuestionId,
        text: String,
    },
    Slash(String),
    /// Run a command in the sandbox, through the gate.
    Shell(String),
    /// End the commands that the person runs.
    StopShell,
    Interrupt,
    /// Take back what was sent into the turn, and interrupt it where it works.
    Withdraw {
        message: Steered,
        interrupts: bool,
    },
    Leave(Leaving),
    Suspend,
    Redraw,
    Edit(String),
    Load(ViewKind),
    OpenSession(SessionId),
    /// Put a conversation away, or take it back.
    Archive(SessionId, bool),
    OpenTask(TaskId),
    FindQuestion(QuestionId),
    /// Begin words to a sub-agent, and send them.
    WriteTo(TaskId),
    SteerAgent {
        task: TaskId,
        words: String,
    },
    Pause(TaskId),
    Resume(TaskId),
    Cancel(TaskId),
    /// Keep a binding of keys.
    Bind(Binding),
    IndexFiles,
    /// List a directory that the word at the cursor names, such as `/tmp/`.
    ListPlace(String),
    Copy(String),
    /// Keep what is written.
    Save,
    Remember(String),
    Notify(&'static str),
}

/// What becomes of a task at work when its person leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    Park,
    Background,
}

/// Everything that is shown.
pub struct App {
    pub settings: Settings,
    pub size: Size,
    pub facts: SessionFacts,
    pub writing: ComposerState,
    pub outgoing: Outgoing,
    pub questions: Questions,
    pub overlay: Option<Overlay>,
    /// The list that the page over it was opened from.
    covered: Option<Overlay>,
    pub story: Option<Story>,
    pub own_commands: Vec<OwnCommand>,
    pub phase: Phase,
    /// When the segment at work began.
    pub working_since: Timestamp,
    /// The time on the clock when the terminal was opened.
    pub opened_at: Timestamp,
    pub departure: Departure,
    pub enhanced_keys: bool,
    /// Whether the terminal keeps what a page covers. GNU screen does not, unless it is told to.
    pub has_alternate_screen: bool,
    pub transcript: Transcript,
    pub layout: Layout,
    /// Whether what is printed has no marks and line breaks of ours.
    pub is_raw: bool,
    pub notice: Notice,
    /// The keys of a chord that were pressed.
    pub chord: Chord,
    /// What the whole-screen layout shows.
    pub scrolling: Scrolling,
    /// What a screen reader has read last.
    pub spoken: LastWords,
    /// When the last input came.
    pub now: Moment,
    last_escape: Option<Moment>,
    is_focused: bool,
}

impl App {
    pub fn new(settings: Settings, size: Size, history: History) -> Self {
        let facts = SessionFacts {
            axes: Axes::interactive(Surface::Tui),
            role: None,
            model: String::new(),
            effort: None,
            is_paused: false,
        };
        let is_vim = settings.vim;
        Self {
            settings,
            size,
            facts,
            writing: ComposerState::new(history, is_vim),
            outgoing: Outgoing::default(),
            questions: Questions::default(),
            overlay: None,
            covered: None,
            story: None,
            own_commands: Vec::new(),
            phase: Phase::Idle,
            working_since: Timestamp::UNIX_EPOCH,
            opened_at: Timestamp::UNIX_EPOCH,
            departure: Departure::default(),
            enhanced_keys: false,
            has_alternate_screen: true,
            transcript: Transcript::default(),
            layout: Layout::Inline,
            is_raw: false,
            notice: Notice::default(),
            chord: Chord::default(),
            scrolling: Scrolling::default(),
            spoken: LastWords::default(),
            now: Moment::ZERO,
            last_escape: None,
            is_focused: true,
        }
    }

    /// Takes in one input; returns what is to be done about it.
    pub fn update(&mut self, input: Input, now: Moment) -> Vec<Effect> {
        self.now = self.now.max(now);
        self.notice.expire(self.now);
        self.departure.expire(self.now);
        let mut effects = self.take_in(input);
        effects.extend(self.writing.history.take_unkept().into_iter().map(Effect::Remember));
        if let Some(notice) = self.writing.take_notice(&self.settings.keymap) {
            self.say(notice);
        }
        if self.settings.screen_reader {
            spoken::announce(self);
        }
        let is_visible = self.shows_questions();
        self.questions.look(is_visible, self.now);
        effects
    }

    /// Whether a question would be in sight.
    fn shows_questions(&self) -> bool {
        let is_covered = self.overlay.is_some() || self.departure.is_asked;
        crate::view::can_ask(self.size) && !is_covered
    }

    fn take_in(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Terminal(Event::Key(key)) => return Pressing(self).press(key),
            Input::Terminal(Event::Paste(text)) => return Pressing(self).paste(&text),
            Input::Terminal(Event::Wheel(wheel)) => self.wheel(wheel),
            Input::Terminal(Event::Focus(is_focused)) => self.is_focused = is_focused,
            // Nobody presses several keys at once: they were typed ahead, or are a paste that is not marked as one.
            Input::Burst => self.questions.typed(self.now),
            Input::Terminal(Event::EnhancedKeys) => self.enhanced_keys = true,
            Input::Terminal(Event::GnuScreen) => self.has_alternate_screen = false,
            Input::Resize(size) => self.size = size,
            Input::Tick => {}
            Input::Follow(state) => {
                self.outgoing.steered.clear();
                self.story = Some(Story::new(&state, &self.settings));
            }
            Input::Record(record) => return self.record(&record),
            Input::Preview(preview) => {
                if let Some(story) = &mut self.story {
                    story.preview(&preview);
                }
            }
            Input::Phase(phase) => return self.set_phase(phase),
            Input::Facts(facts) => self.facts = facts,
            Input::ModeSaid(axes) => {
                self.story.iter_mut().for_each(|story| story.mode_said(axes));
            }
            Input::Questions(open) => return self.ask(open),
            Input::Settled { question, by, text } => self.settled(question, &by, &text),
            Input::ShowQuestion(asked) => {
                self.overlay = None;
                self.questions.show(*asked);
            }
            Input::Sent => {
                self.writing.ran.forget_sent();
                return vec![Effect::Save];
            }
            Input::NotSent { draft, why } => return self.not_sent(draft, &why),
            Input::Withdrawn(draft) => return Pressing(self).withdrawn(draft),
            Input::NotAnswered { why } => {
                let line = format!("not answered: {}", shown(&why));
                self.transcript.push(Entry::note(self.settings.paint.yellow(&line)));
            }
            Input::Print(entry) => self.transcript.push(entry),
            Input::Notice(text) => self.say(text),
            Input::Files(files) => {
                self.writing.completing.set_files(files);
                return self.writing.complete();
            }
            Input::Place { place, names } => {
                self.writing.completing.set_place(place, names);
                return self.writing.complete();
            }
            Input::Commands(commands) => self.writing.completing.set_commands(commands),
            Input::Loaded(overlay) => {
                // What was said before would hide what keys do on the page.
                self.notice.clear();
                self.overlay = Some(overlay.in_place_of(self.overlay.take()));
            }
            Input::Refreshed(overlay) => {
                if self.overlay.as_ref().is_some_and(|open| open.kind() == overlay.kind()) {
                    self.overlay = Some(overlay.in_place_of(self.overlay.take()));
                }
            }
            Input::WriteTo(agent) => {
                self.overlay = None;
                self.questions.typed(self.now);
                self.writing.start_answering(Purpose::Steer { agent }, "");
            }
            Input::Edited(text) => return Pressing(self).edited(text),
            Input::Bound { keymap, kept } => Binder(self).bound(*keymap, kept),
            Input::OwnCommands(running) => self.own_commands = running,
            Input::Ran { command, printed } => self.writing.ran.add(&command, &printed),
        }
        Vec::new()
    }

    /// When something changes without an input.
    pub fn next_wake(&self) -> Option<Moment> {
        let is_moving = self.phase.is_working() || !self.own_commands.is_empty();
        let moving = is_moving.then(|| {
            let step = match (self.settings.screen_reader, self.settings.animation) {
                (true, _) => STILL_WORKING,
                (false, true) => FRAME,
                (false, false) => SECOND,
            };
            let count = self.now.as_millis() / step.as_millis() + 1;
            Moment::from_millis(u64::try_from(count * step.as_millis()).unwrap_or(u64::MAX))
        });
        let [armed, notice] = [self.questions.armed_at(), self.notice.until()];
        let all = [armed, notice, self.departure.until(), moving];
        all.into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// The time on the clock.
    fn clock(&self) -> Timestamp {
        self.opened_at.saturating_add(self.now).unwrap_or(self.opened_at)
    }

    /// How long ago something happened.
    pub fn elapsed(&self, since: Timestamp) -> Duration {
        Duration::try_from(self.clock().duration_since(since)).unwrap_or_default()
    }

    /// How entries are printed.
    pub fn form(&self) -> Form {
        let style = match (self.settings.screen_reader, self.is_raw) {
            (true, _) => FormStyle::Spoken,
            (false, true) => FormStyle::Raw,
            (false, false) => FormStyle::Drawn,
        };
        Form { columns: self.size.columns, paint: self.settings.paint, style }
    }

    /// The title of the window.
    pub fn title(&self) -> String {
        self.facts.mode().title(&self.settings.project, !self.questions.is_empty())
    }

    /// Takes over what belongs to the terminal, not to a conversation.
    pub fn take_over(&mut self, mut before: Self) {
        self.transcript = before.transcript;
        (self.layout, self.is_raw) = (before.layout, before.is_raw);
        self.writing.take_vim(&mut before.writing);
        self.writing.completing.take_commands(before.writing.completing);
        self.enhanced_keys = before.enhanced_keys;
        self.has_alternate_screen = before.has_alternate_screen;
        self.is_focused = before.is_focused;
        (self.now, self.opened_at) = (before.now, before.opened_at);
        self.questions.typed(before.questions.last_typed());
        self.facts = before.facts;
    }

    fn say(&mut self, text: impl Into<String>) {
        self.notice.say(text, self.now);
    }

    fn record(&mut self, record: &Record) -> Vec<Effect> {
        let Some(story) = &mut self.story else { return Vec::new() };
        let is_message = record.task == story.task();
        if is_message && matches!(record.event, Happened::AgentStart(_)) {
            self.working_since = record.at;
        }
        for entry in story.event(record, self.size.columns) {
            if is_message && matches!(entry, Entry::Said { .. }) {
                self.outgoing.arrived();
            }
            self.transcript.push(entry);
        }
        match &record.event {
            Happened::InjectionReceived(message) => self.outgoing.read(message.id),
            Happened::StatusChanged(moved) if is_message => self.outgoing.moved(moved),
            _ => {}
        }
        let is_repair = matches!(&record.event,
            Happened::ModeChanged(changed) if changed.source == Source::Repair);
        notification(is_repair && !self.is_focused, "the mode was changed for a repair")
    }

    fn set_phase(&mut self, phase: Phase) -> Vec<Effect> {
        let was_working = self.phase.is_working();
        if phase == Phase::Working && !was_working {
            self.working_since = self.clock();
        }
        self.phase = phase;
        if phase != Phase::Idle {
            return Vec::new();
        }
        if std::mem::take(&mut self.departure.is_asked) {
            // Nothing is left to be parked.
            let way = self.settings.keymap.way(Action::EndOfInput);
            self.say(format!("the work has ended; {way} leaves"));
        }
        // Neither the person nor the queue is waited for.
        if self.story.as_ref().is_some_and(|story| story.parked_words().is_some()) {
            return Vec::new();
        }
        let mut effects = notification(was_working && !self.is_focused, "the agent waits for you");
        effects.extend(self.outgoing.send_next(phase));
        effects
    }

    fn ask(&mut self, open: Vec<OpenQuestion>) -> Vec<Effect> {
        let (is_new, gone) = self.questions.set(open);
        for words in gone {
            self.writing.history.push(&words);
        }
        self.drop_stale_answer();
        notification(is_new && !self.is_focused, "a question waits")
    }

    fn settled(&mut self, question: QuestionId, by: &str, text: &str) {
        if let Some(dialog) = self.questions.remove(question) {
            let line = match by {
                "" => "that question is no longer open".to_owned(),
                by => format!("answered by {by}: {text}"),
            };
            self.say(shown_line(&line));
            if let Some(words) = dialog.comments().revision() {
                self.writing.history.push(&words);
            }
        }
        self.drop_stale_answer();
    }

    /// An answer that was being written to a question that is gone goes into the history.
    fn drop_stale_answer(&mut self) {
        let purpose = self.writing.answering.as_ref().map(|answering| answering.purpose);
        let question = purpose.and_then(Purpose::question);
        if question.is_some_and(|question| self.questions.get(question).is_none()) {
            Pressing(self).stop_answering();
        }
    }

    fn not_sent(&mut self, draft: Draft, why: &str) -> Vec<Effect> {
        self.outgoing.not_sent(&draft);
        self.writing.ran.take_back();
        let why = format!("not sent: {}", shown(why));
        let lines = why.lines().map(|line| self.settings.paint.red(line)).collect();
        self.transcript.push(Entry::Lines(lines));
        match self.writing.is_blank() {
            true => self.writing.composer.replace(draft),
            false => self.outgoing.put_back(draft),
        }
        vec![Effect::Save]
    }
}

/// Notifies a person who looks elsewhere, where there is reason to.
fn notification(is_due: bool, words: &'static str) -> Vec<Effect> {
    is_due.then_some(Effect::Notify(words)).into_iter().collect()
}
