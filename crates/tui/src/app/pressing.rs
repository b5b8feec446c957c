//! What each key does, by where the person is: on a page, at a question, in a list, in the text.

use windlass_core::axes::{RunControl, WorkMode};
use windlass_core::shown::shown_line;

use super::binding::Binder;
use super::chord::Chorded;
use super::{App, Effect, Phase, Purpose, Saved, TWICE_ESCAPE, outgoing};
use crate::composer::Draft;
use crate::composer::vim::Taken;
use crate::dialog::{Dialog, Pressed};
use crate::host::Layout;
use crate::keymap::Action;
use crate::keys::{Code, Direction, Key};
use crate::mode_line;
use crate::overlay::{Asked, Conversations, DiffOf, ViewKind};
use crate::view;

/// Commands that open a page when nothing follows them.
const VIEWS: &[(&str, ViewKind)] = &[
    ("/workflow", ViewKind::Workflows),
    ("/parallel", ViewKind::Workers),
    ("/plans", ViewKind::Plan),
    ("/commitments", ViewKind::Commitments),
    ("/roles", ViewKind::Roles),
];

impl App {
    /// What a key does; what has to survive it is saved.
    pub(super) fn press(&mut self, key: Key) -> Vec<Effect> {
        let before = Saved::of(self);
        let mut effects = self.pressed(key);
        if Saved::of(self) != before && !effects.contains(&Effect::Save) {
            effects.push(Effect::Save);
        }
        effects
    }

    fn pressed(&mut self, key: Key) -> Vec<Effect> {
        if let Some(overlay) = &mut self.overlay {
            let rows = view::body_rows(overlay, self.size);
            let asked = overlay.press(key, rows, self.now);
            if asked.closes() {
                self.overlay = None;
                // What was asked meanwhile has not been seen until now.
                self.questions.typed(self.now);
            }
            return match asked {
                Asked::Bind(action, keys) => Binder(self).bind(action, keys),
                asked => wanted(asked),
            };
        }
        let action = match self.chord.press(key, &self.settings.keymap) {
            Chorded::Key(action) => action,
            Chorded::Waits | Chorded::Dropped => {
                self.questions.typed(self.now);
                return Vec::new();
            }
        };
        if self.departure.is_asked {
            return self.departure.press(key, action);
        }
        if let Some(effects) = self.press_dialog(key) {
            return effects;
        }
        self.questions.typed(self.now);
        if self.writing.searching.is_some() {
            self.writing.press_search(key, action);
            return Vec::new();
        }
        if self.outgoing.queue.selected().is_some() {
            return self.press_queue(key);
        }
        if let Some(effects) = self.writing.press_completion(key) {
            return effects;
        }
        match (self.writing.press_vim(key), action) {
            (Taken::Yes, _) => Vec::new(),
            (Taken::Instead(key), _) => self.edit(key),
            (Taken::No, Some(action)) => self.act(action),
            (Taken::No, None) => self.edit(key),
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        if let Some(overlay) = &mut self.overlay {
            overlay.paste(text);
            return Vec::new();
        }
        self.questions.typed(self.now);
        self.outgoing.queue.leave();
        self.writing.paste(text)
    }

    /// What a key does at a question; `None` where it is not for the question.
    fn press_dialog(&mut self, key: Key) -> Option<Vec<Effect>> {
        // Whoever goes through the lines of a plan has chosen to, and answers nothing by it.
        let is_commenting = self.questions.first().is_some_and(Dialog::is_commenting);
        if self.writing.answering.is_some() || !(is_commenting || self.is_armed()) {
            return None;
        }
        if key == Key::plain(Code::Tab) && self.questions.len() > 1 && !is_commenting {
            self.questions.rotate();
            return Some(Vec::new());
        }
        let (question, pressed) = self.questions.press(key, view::dialog_page(self.size))?;
        match pressed {
            Pressed::Nothing => return None,
            Pressed::Moved => {
                // No further than its end, so that the way back begins there.
                let last = view::last_question_top(self);
                self.questions.scroll(Direction::Down, 0, last);
            }
            Pressed::Answer(text) => {
                self.questions.remove(question);
                self.questions.typed(self.now);
                return Some(vec![Effect::Answer { question, text }]);
            }
            Pressed::Write { prefix, first } => {
                let first = first.map(String::from).unwrap_or_default();
                self.writing.start_answering(question, Purpose::Answer { prefix }, &first);
                self.questions.typed(self.now);
            }
            Pressed::Comment { line } => {
                let said = self.questions.get(question).and_then(|dialog| dialog.said(line));
                let said = said.unwrap_or_default().to_owned();
                self.writing.start_answering(question, Purpose::Comment { line }, &said);
            }
            Pressed::Edit => return Some(vec![Effect::Edit(self.questions.edit(question))]),
        }
        Some(Vec::new())
    }

    /// Back from an answer to what was written before it.
    pub(super) fn stop_answering(&mut self) {
        self.writing.stop_answering();
        self.questions.typed(self.now);
    }

    fn send_answer(&mut self) -> Vec<Effect> {
        let Some((question, purpose, text)) = self.writing.take_answer() else { return Vec::new() };
        match purpose {
            Purpose::Answer { prefix } => {
                self.questions.remove(question);
                let text = format!("{prefix}{text}");
                vec![Effect::Save, Effect::Answer { question, text }]
            }
            Purpose::Comment { line } => {
                if let Some(dialog) = self.questions.get_mut(question) {
                    dialog.comment(line, &text);
                }
                vec![Effect::Save]
            }
        }
    }

    /// What the person wrote in their editor. At a plan it is what should change; else the message.
    pub(super) fn edited(&mut self, text: Option<String>) -> Vec<Effect> {
        let plan = self.questions.take_edited();
        self.questions.typed(self.now);
        let Some(text) = text else { return Vec::new() };
        let Some(question) = plan else {
            self.writing.composer.replace(Draft::of(text.trim_end_matches('\n')));
            return vec![Effect::Save];
        };
        let before = self.questions.get(question).and_then(Dialog::plan);
        if before.is_none_or(|before| before.trim() == text.trim()) {
            self.say("the plan is unchanged");
            return Vec::new();
        }
        let purpose = Purpose::Answer { prefix: "Revise: " };
        self.writing.start_answering(question, purpose, &text);
        Vec::new()
    }

    fn press_queue(&mut self, key: Key) -> Vec<Effect> {
        match self.outgoing.press(key) {
            outgoing::Pressed::Moved => Vec::new(),
            outgoing::Pressed::Removed(draft) => {
                self.writing.history.push(&draft.expanded());
                vec![Effect::Save]
            }
            outgoing::Pressed::SendNow(draft) => self.send_now(draft),
            outgoing::Pressed::Edit(draft) => {
                self.writing.put_in_place(draft);
                Vec::new()
            }
        }
    }

    fn edit(&mut self, key: Key) -> Vec<Effect> {
        match key.code {
            // Inline, the terminal scrolls by itself.
            Code::PageUp => self.scrolling.page(Direction::Up),
            Code::PageDown => self.scrolling.page(Direction::Down),
            Code::Char('?') if self.writing.is_blank() => {
                return vec![Effect::Load(ViewKind::Help)];
            }
            _ => return self.writing.key(key, view::composer_columns(self.size)),
        }
        Vec::new()
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Send => self.send(),
            Action::Newline => self.writing.newline(),
            Action::SendNow => match self.writing.composer.is_empty() {
                true => self.outgoing.release(self.phase),
                false if self.writing.answering.is_some() => self.send_answer(),
                false => {
                    let draft = self.writing.composer.take();
                    self.send_now(draft)
                }
            },
            Action::Interrupt => self.escape(),
            Action::Leave => self.leave(),
            Action::EndOfInput => match self.writing.is_blank() {
                true => self.departure.begin(self.phase),
                false => self.edit(Key::plain(Code::Delete)),
            },
            Action::Suspend => vec![Effect::Save, Effect::Suspend],
            Action::Redraw => vec![Effect::Redraw],
            Action::Editor => vec![Effect::Edit(self.writing.composer.draft().expanded())],
            Action::HistorySearch => {
                self.writing.start_search();
                Vec::new()
            }
            Action::Unfold => {
                self.writing.composer.unfold();
                Vec::new()
            }
            Action::Queue => {
                self.outgoing.queue.select();
                Vec::new()
            }
            Action::Stash => {
                self.writing.swap_stash();
                Vec::new()
            }
            Action::CopyReply => match self.transcript.last_reply() {
                Some(reply) => vec![Effect::Copy(reply.to_owned())],
                None => {
                    self.say("there is no reply to copy yet");
                    Vec::new()
                }
            },
            Action::Raw => {
                self.is_raw = !self.is_raw;
                let back = self.settings.keymap.way(Action::Raw);
                self.say(match self.is_raw {
                    true => format!("raw: as it was written, for copying; {back} goes back"),
                    false => "as before: wrapped, with colours".to_owned(),
                });
                Vec::new()
            }
            Action::Layout => {
                set_up(self, "/tui", None);
                Vec::new()
            }
            other => match (page_of(other), axes_line(self, other)) {
                (Some(kind), _) => vec![Effect::Load(kind)],
                (None, Some(line)) => vec![Effect::Slash(line)],
                (None, None) => Vec::new(),
            },
        }
    }

    fn send(&mut self) -> Vec<Effect> {
        if self.writing.composer.take_backslash() {
            self.writing.composer.newline();
            return Vec::new();
        }
        let is_blank = self.writing.composer.draft().expanded().trim().is_empty();
        let purpose = self.writing.answering.as_ref().map(|answering| answering.purpose);
        match (is_blank, purpose) {
            // An empty comment takes one back.
            (true, Some(Purpose::Comment { .. })) | (false, Some(_)) => return self.send_answer(),
            (true, _) => return self.outgoing.release(self.phase),
            (false, None) => {}
        }
        self.writing.completing.close();
        self.scrolling.follow_end();
        let draft = self.writing.composer.take();
        self.writing.begin_text();
        let text = draft.expanded();
        self.writing.history.push(&text);
        let mut effects = Vec::new();
        let word = text.split_whitespace().next().unwrap_or_default();
        if matches!(word, "/quit" | "/exit") {
            effects.extend(self.departure.begin(self.phase));
        } else if let Some(action) = Action::of_command(text.trim()) {
            effects.extend(self.act(action));
        } else if let Some((_, kind)) = VIEWS.iter().find(|(name, _)| *name == text.trim()) {
            effects.push(Effect::Load(kind.clone()));
        } else if matches!(word, "/tui" | "/vim") {
            set_up(self, word, text.split_whitespace().nth(1));
        } else if text.starts_with('/') && !is_path(word) {
            effects.push(Effect::Slash(text.trim().to_owned()));
        } else if let Some(command) = text.strip_prefix('!') {
            effects.push(Effect::Shell(command.trim().to_owned()));
        } else if self.outgoing.must_wait(self.phase) {
            if let Err(draft) = self.outgoing.queue.push(draft) {
                self.say(format!(
                    "{} messages are queued already: send or remove one first",
                    crate::queue::MOST
                ));
                self.writing.composer.replace(draft);
            }
            effects.extend(self.outgoing.send_next(self.phase));
        } else {
            effects.push(self.outgoing.send(draft));
        }
        effects.push(Effect::Save);
        effects
    }

    fn send_now(&mut self, draft: Draft) -> Vec<Effect> {
        self.writing.history.push(&draft.expanded());
        self.writing.begin_text();
        self.writing.completing.close();
        let sent = match self.phase {
            Phase::Idle => self.outgoing.send(draft),
            Phase::Working | Phase::Blocked | Phase::Stopping => {
                self.say("sent; the agent reads it after the current step");
                Effect::Steer(draft)
            }
        };
        vec![sent, Effect::Save]
    }

    fn escape(&mut self) -> Vec<Effect> {
        if self.writing.answering.is_some() {
            self.stop_answering();
            return Vec::new();
        }
        let is_second = self.last_escape.is_some_and(|at| at + TWICE_ESCAPE > self.now);
        self.last_escape = Some(self.now);
        if is_second && let Some(draft) = self.outgoing.queue.take_last() {
            self.last_escape = None;
            let text = shown_line(draft.expanded().trim());
            self.writing.put_in_place(draft);
            self.say(match self.settings.screen_reader {
                true => format!("taken back: {text}"),
                false => "taken back".to_owned(),
            });
            return Vec::new();
        }
        match self.phase {
            Phase::Working => {
                self.phase = Phase::Stopping;
                self.outgoing.hold();
                vec![Effect::Interrupt]
            }
            Phase::Idle | Phase::Blocked | Phase::Stopping => Vec::new(),
        }
    }

    /// Ctrl-C: first what is written, then the terminal.
    fn leave(&mut self) -> Vec<Effect> {
        if self.writing.answering.is_some() {
            self.stop_answering();
            return Vec::new();
        }
        if !self.writing.composer.is_empty() {
            let draft = self.writing.composer.take();
            self.writing.completing.close();
            self.say("kept in the history: Up brings it back");
            self.writing.history.push(&draft.expanded());
            return vec![Effect::Save];
        }
        if self.departure.press_twice(self.now) {
            self.notice.clear();
            return self.departure.begin(self.phase);
        }
        let key = self.settings.keymap.way(Action::Leave);
        self.say(format!("press {key} again to leave"));
        Vec::new()
    }
}

/// The page that a key opens.
fn page_of(action: Action) -> Option<ViewKind> {
    Some(match action {
        Action::Transcript => ViewKind::Transcript { task: None },
        Action::Diff => ViewKind::Diff(DiffOf::Turn),
        Action::Tasks => ViewKind::Tasks,
        Action::Inbox => ViewKind::Inbox,
        Action::Sessions => ViewKind::Sessions(Conversations::OfDirectory),
        Action::Agents => ViewKind::Agents,
        Action::Help => ViewKind::Help,
        _ => return None,
    })
}

/// The command that changes an axis.
fn axes_line(app: &App, action: Action) -> Option<String> {
    let axes = app.facts.axes;
    Some(match action {
        Action::CycleWorkMode => {
            format!("/mode {}", mode_line::next_work_mode(axes.work_mode))
        }
        Action::Repair => format!("/mode {}", WorkMode::Repair),
        Action::Autonomous => format!("/control {}", RunControl::Autonomous),
        Action::Assisted => format!("/control {}", RunControl::Assisted),
        Action::Manual => format!("/control {}", RunControl::Manual),
        Action::CycleProfile => {
            let may = app.settings.may_be_unrestricted;
            let next = mode_line::next_profile(axes.permission_profile, may);
            format!("/permission-profile {next}")
        }
        _ => return None,
    })
}

/// What is to be done about what a person does on a page.
fn wanted(asked: Asked) -> Vec<Effect> {
    match asked {
        Asked::Nothing | Asked::Close | Asked::Bind(..) => Vec::new(),
        Asked::Open(kind) => vec![Effect::Load(kind)],
        Asked::OpenSession(session) => vec![Effect::Save, Effect::OpenSession(session)],
        Asked::Reopen(session) => {
            vec![Effect::Save, Effect::Archive(session, false), Effect::OpenSession(session)]
        }
        Asked::Archive(session, is_archived) => vec![Effect::Archive(session, is_archived)],
        Asked::OpenTask(task) => vec![Effect::Save, Effect::OpenTask(task)],
        Asked::ShowQuestion(question) => vec![Effect::FindQuestion(question)],
        Asked::Pause(task) => vec![Effect::Pause(task)],
        Asked::Resume(task) => vec![Effect::Resume(task)],
        Asked::Cancel(task) => vec![Effect::Cancel(task)],
        Asked::WriteAbout(task) => vec![Effect::WriteAbout(task)],
        Asked::TakeRole(role) => vec![Effect::Slash(format!("/{role}"))],
    }
}

/// A path such as `/etc/hosts` is not a command.
fn is_path(word: &str) -> bool {
    word[1..].contains('/')
}

/// Commands about the terminal itself: what is not said is switched over.
fn set_up(app: &mut App, command: &str, wanted: Option<&str>) {
    let layout = match wanted {
        Some("inline") => Some(Layout::Inline),
        Some("full") => Some(Layout::Full),
        Some(_) => None,
        None => Some(app.layout.other()),
    };
    match (command, layout, wanted) {
        ("/tui", Some(layout), _) => {
            app.layout = layout;
            app.scrolling.follow_end();
            let back = app.settings.keymap.way(Action::Layout);
            app.say(match layout {
                Layout::Inline => "inline: the terminal scrolls".to_owned(),
                Layout::Full => {
                    format!("full screen: PgUp, PgDn and the wheel scroll; {back} goes back")
                }
            });
        }
        ("/tui", None, _) => app.say("`/tui inline` or `/tui full`"),
        (_, _, Some("on")) => app.writing.set_vim(true),
        (_, _, Some("off")) => app.writing.set_vim(false),
        (_, _, Some(_)) => app.say("`/vim on` or `/vim off`"),
        (_, _, None) => app.writing.set_vim(app.writing.vim.is_none()),
    }
}
