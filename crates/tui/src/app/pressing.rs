//! What each key does, by where the person is: on a page, at a question, in a list, in the text.

use windlass_core::axes::{RunControl, WorkMode};

use super::binding::Binder;
use super::chord::Chorded;
use super::{App, Effect, Phase, Purpose, QuestionKeys, SavedDrafts, TWICE_ESCAPE, outgoing};
use crate::completion;
use crate::composer::Draft;
use crate::composer::vim::KeyUse;
use crate::dialog::{Dialog, DialogAction};
use crate::host::Layout;
use crate::keymap::{Action, Meaning};
use crate::keys::{Code, Direction, Key};
use crate::mode_line;
use crate::overlay::{Conversations, DiffOf, Overlay, PageAction, ViewKind};
use crate::view;

/// Commands that open a page when nothing follows them.
const VIEWS: &[(&str, ViewKind)] = &[
    ("/workflow", ViewKind::Workflows),
    ("/parallel", ViewKind::Workers),
    ("/plans", ViewKind::Plan),
    ("/commitments", ViewKind::Commitments),
    ("/roles", ViewKind::Roles),
];

/// What a person does with keys, and where it leads.
pub(super) struct Pressing<'a>(pub &'a mut App);

impl Pressing<'_> {
    /// What a key does; what has to survive it is saved.
    pub(super) fn press(&mut self, key: Key) -> Vec<Effect> {
        let before = SavedDrafts::of(self.0);
        let (armed, said) = (self.0.departure.until(), self.0.notice.clone());
        // On a page a notice stands where keys, and what they ask, are named.
        let is_on_page = self.0.overlay.is_some();
        let mut effects = self.react(key);
        // Another key is no second press; and what was remarked is over when the next thing is done.
        let is_disarmed = armed.is_some() && self.0.departure.until() == armed;
        if is_disarmed {
            self.0.departure.disarm();
        }
        let is_next_thing = is_on_page || matches!(key.code, Code::Enter | Code::Escape);
        if self.0.notice == said && (is_disarmed || is_next_thing) {
            self.0.notice.clear();
        }
        if SavedDrafts::of(self.0) != before && !effects.contains(&Effect::Save) {
            effects.push(Effect::Save);
        }
        effects
    }

    fn react(&mut self, key: Key) -> Vec<Effect> {
        if let Some(overlay) = &mut self.0.overlay {
            let is_bound = matches!(overlay, Overlay::Keys(keys) if keys.is_waiting());
            if !is_bound && self.0.settings.keymap.meaning(&[key]) == Meaning::Does(Action::Suspend)
            {
                return vec![Effect::Save, Effect::Suspend];
            }
            let rows = view::body_rows(overlay, self.0.size);
            let asked = overlay.press(key, rows, self.0.now);
            if let (PageAction::Open(_), Overlay::List(_)) = (&asked, &*overlay) {
                self.0.covered = Some(overlay.clone());
            }
            if asked == PageAction::Close
                && let Some(list) = self.uncover()
            {
                return vec![list];
            }
            if asked.closes() {
                (self.0.overlay, self.0.covered) = (None, None);
                // What was asked meanwhile has not been seen until now.
                self.0.questions.typed(self.0.now);
            }
            return match asked {
                PageAction::Bind(action, keys) => Binder(self.0).bind(action, keys),
                asked => wanted(asked),
            };
        }
        let action = match self.0.chord.press(key, &self.0.settings.keymap) {
            Chorded::Key(action) => action,
            Chorded::Waits | Chorded::Dropped => {
                self.0.questions.typed(self.0.now);
                return Vec::new();
            }
        };
        if self.0.departure.is_asked {
            return self.0.departure.press(key, action);
        }
        if let Some(effects) = self.press_dialog(key) {
            return effects;
        }
        self.0.questions.typed(self.0.now);
        if self.0.writing.searching.is_some() {
            self.0.writing.press_search(key, action);
            return Vec::new();
        }
        if self.0.outgoing.queue.selected().is_some() {
            return self.press_queue(key);
        }
        if let Some(effects) = self.0.writing.press_completion(key) {
            return effects;
        }
        match (self.0.writing.press_vim(key), action) {
            (KeyUse::Yes, _) => Vec::new(),
            (KeyUse::Instead(key), _) => self.edit(key),
            (KeyUse::No, Some(action)) => self.act(action),
            (KeyUse::No, None) => self.edit(key),
        }
    }

    /// Back from a page to the list that it was opened from, which is read again.
    fn uncover(&mut self) -> Option<Effect> {
        let is_page = matches!(self.0.overlay, Some(Overlay::Page(_)));
        let list = self.0.covered.take().filter(|_| is_page)?;
        let read = Effect::Load(list.kind().clone());
        self.0.overlay = Some(list);
        Some(read)
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        if let Some(overlay) = &mut self.0.overlay {
            overlay.paste(text);
            return Vec::new();
        }
        self.0.questions.typed(self.0.now);
        self.0.outgoing.queue.leave();
        self.0.writing.paste(text)
    }

    /// What a key does at a question; `None` where it is not for the question.
    fn press_dialog(&mut self, key: Key) -> Option<Vec<Effect>> {
        // Whoever goes through the lines of a plan has chosen to, and answers nothing by it.
        let is_commenting = self.0.questions.first().is_some_and(Dialog::is_commenting);
        if self.0.writing.answering.is_some() {
            return None;
        }
        match self.0.question_keys() {
            QuestionKeys::Elsewhere => return None,
            _ if is_commenting => {}
            QuestionKeys::Waiting => return None,
            QuestionKeys::Entering => match key.code {
                Code::Up | Code::Down if key == Key::plain(key.code) => {
                    self.0.questions.enter();
                    return Some(Vec::new());
                }
                Code::PageUp | Code::PageDown | Code::Tab => {}
                _ => return None,
            },
            QuestionKeys::Answering if !self.0.writing.composer.is_empty() => {
                if key == Key::plain(Code::Escape) {
                    self.0.questions.leave();
                    return Some(Vec::new());
                }
                // A letter may belong to the message.
                let has_options = self.0.questions.first().is_some_and(Dialog::has_options);
                if has_options && key.typed().is_some_and(|char| !char.is_ascii_digit()) {
                    return None;
                }
            }
            QuestionKeys::Answering => {}
        }
        if key == Key::plain(Code::Tab) && self.0.questions.len() > 1 && !is_commenting {
            self.0.questions.rotate();
            return Some(Vec::new());
        }
        let (question, pressed) = self.0.questions.press(key, view::dialog_page(self.0.size))?;
        match pressed {
            DialogAction::Nothing => return None,
            DialogAction::Moved => {
                // No further than its end, so that the way back begins there.
                let last = view::last_question_top(self.0);
                self.0.questions.scroll(Direction::Down, 0, last);
            }
            DialogAction::Answer(text) => {
                self.0.questions.typed(self.0.now);
                return Some(vec![self.0.answer(question, text)]);
            }
            DialogAction::Write { prefix, first } => {
                let first = first.map(String::from).unwrap_or_default();
                self.0.writing.start_answering(Purpose::Answer { question, prefix }, &first);
                self.0.questions.typed(self.0.now);
            }
            DialogAction::Comment { line } => {
                let said = self.0.questions.get(question).and_then(|dialog| dialog.said(line));
                let said = said.unwrap_or_default().to_owned();
                self.0.writing.start_answering(Purpose::Comment { question, line }, &said);
            }
            DialogAction::Edit => return Some(vec![Effect::Edit(self.0.questions.edit(question))]),
        }
        Some(Vec::new())
    }

    /// Back from an answer to what was written before it.
    pub(super) fn stop_answering(&mut self) {
        self.0.writing.stop_answering();
        self.0.questions.typed(self.0.now);
    }

    fn send_answer(&mut self) -> Vec<Effect> {
        let Some((purpose, text)) = self.0.writing.take_answer() else { return Vec::new() };
        match purpose {
            Purpose::Answer { question, prefix } => {
                vec![Effect::Save, self.0.answer(question, format!("{prefix}{text}"))]
            }
            Purpose::Comment { question, line } => {
                if let Some(dialog) = self.0.questions.get_mut(question) {
                    dialog.comment(line, &text);
                }
                vec![Effect::Save]
            }
            Purpose::Steer { agent } => {
                self.0.writing.history.push(&text);
                vec![Effect::Save, Effect::SteerAgent { task: agent, words: text }]
            }
        }
    }

    /// What the person wrote in their editor. At a plan it is what should change; else the message.
    pub(super) fn edited(&mut self, text: Option<String>) -> Vec<Effect> {
        let plan = self.0.questions.take_edited();
        self.0.questions.typed(self.0.now);
        let Some(text) = text else { return Vec::new() };
        let Some(question) = plan else {
            self.0.writing.cancel_search();
            self.0.writing.stop_browsing();
            self.0.writing.composer.replace(Draft::of(text.trim_end_matches('\n')));
            return vec![Effect::Save];
        };
        let before = self.0.questions.get(question).and_then(Dialog::plan);
        if before.is_none_or(|before| before.trim() == text.trim()) {
            self.0.say("the plan is unchanged");
            return Vec::new();
        }
        let purpose = Purpose::Answer { question, prefix: "Revise: " };
        self.0.writing.start_answering(purpose, &text);
        Vec::new()
    }

    fn press_queue(&mut self, key: Key) -> Vec<Effect> {
        match self.0.outgoing.press(key) {
            outgoing::Pressed::Moved => Vec::new(),
            outgoing::Pressed::Removed(draft) => {
                self.0.writing.history.push(&draft.expanded());
                vec![Effect::Save]
            }
            outgoing::Pressed::SendNow(draft) => self.send_now(draft),
            outgoing::Pressed::Edit(draft) => {
                self.0.writing.put_in_place(draft);
                Vec::new()
            }
        }
    }

    fn edit(&mut self, key: Key) -> Vec<Effect> {
        match key.code {
            // Inline, the terminal scrolls by itself.
            Code::PageUp => self.0.scrolling.page(Direction::Up),
            Code::PageDown => self.0.scrolling.page(Direction::Down),
            Code::Char('?') if self.0.writing.is_blank() => {
                return vec![Effect::Load(ViewKind::Help)];
            }
            _ => return self.0.writing.key(key, view::composer_columns(self.0.size)),
        }
        Vec::new()
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Send => self.send(),
            Action::Newline => self.0.writing.newline(),
            Action::SendNow => match self.0.writing.composer.is_empty() {
                true => self.0.outgoing.release(self.0.phase),
                false if self.0.writing.answering.is_some() => self.send_answer(),
                // A command is for the terminal, however it is sent.
                false if command_of(self.0.writing.composer.draft()).is_some() => self.send(),
                false => {
                    let draft = self.0.writing.composer.take();
                    self.send_now(draft)
                }
            },
            Action::Interrupt => self.escape(),
            Action::Leave => self.leave(),
            Action::EndOfInput => match self.0.writing.is_blank() {
                true => self.0.departure.begin(self.0.phase),
                false => self.edit(Key::plain(Code::Delete)),
            },
            Action::Suspend => vec![Effect::Save, Effect::Suspend],
            Action::Redraw => vec![Effect::Redraw],
            Action::Editor => vec![Effect::Edit(self.0.writing.composer.draft().expanded())],
            Action::HistorySearch => {
                self.0.writing.start_search();
                Vec::new()
            }
            Action::Unfold => {
                self.0.writing.composer.unfold();
                Vec::new()
            }
            Action::Queue => {
                self.0.outgoing.queue.select();
                Vec::new()
            }
            Action::Stash => {
                self.0.outgoing.queue.forget_edited();
                self.0.writing.swap_stash();
                Vec::new()
            }
            Action::CopyReply => match self.0.transcript.last_reply() {
                Some(reply) => vec![Effect::Copy(reply.to_owned())],
                None => {
                    self.0.say("there is no reply to copy yet");
                    Vec::new()
                }
            },
            Action::Raw => {
                self.0.is_raw = !self.0.is_raw;
                let back = self.0.settings.keymap.way(Action::Raw);
                self.0.say(match self.0.is_raw {
                    true => format!("raw: as it was written, for copying; {back} goes back"),
                    false => "as before: wrapped, with colours".to_owned(),
                });
                Vec::new()
            }
            Action::Layout => {
                set_up(self.0, "/tui", None);
                Vec::new()
            }
            other => match (page_of(other), axes_line(self.0, other)) {
                (Some(kind), _) => vec![Effect::Load(kind)],
                (None, Some(line)) => vec![Effect::Slash(line)],
                (None, None) => Vec::new(),
            },
        }
    }

    fn send(&mut self) -> Vec<Effect> {
        if self.0.writing.composer.take_backslash() {
            self.0.writing.composer.newline();
            return Vec::new();
        }
        let is_blank = self.0.writing.composer.draft().expanded().trim().is_empty();
        let purpose = self.0.writing.answering.as_ref().map(|answering| answering.purpose);
        match (is_blank, purpose) {
            // An empty comment takes one back.
            (true, Some(Purpose::Comment { .. })) | (false, Some(_)) => return self.send_answer(),
            (true, _) => return self.0.outgoing.release(self.0.phase),
            (false, None) => {}
        }
        self.0.writing.completing.close();
        self.0.scrolling.follow_end();
        self.0.writing.stop_browsing();
        let draft = self.0.writing.composer.take();
        self.0.writing.begin_text();
        let text = draft.expanded();
        // Pasted text is never a command, and a placeholder is no part of a command's name.
        let is_pasted = draft.begins_pasted();
        let own = if is_pasted { "" } else { draft.text.trim() };
        self.0.writing.history.push(&text);
        let mut effects = Vec::new();
        let word = own.split_whitespace().next().unwrap_or_default();
        if matches!(word, "/quit" | "/exit") {
            effects.extend(self.0.departure.begin(self.0.phase));
        } else if let Some(action) = Action::of_command(own) {
            effects.extend(self.act(action));
        } else if let Some((_, kind)) = VIEWS.iter().find(|(name, _)| *name == own) {
            effects.push(Effect::Load(kind.clone()));
        } else if matches!(word, "/tui" | "/vim") {
            set_up(self.0, word, own.split_whitespace().nth(1));
        } else if completion::is_of_terminal(word) {
            self.0.say(format!("nothing can follow `{word}`; write it alone"));
        } else if let Some(command) = command_of(&draft) {
            match command {
                Effect::Shell(command) if command.is_empty() => {
                    self.0.say("write the command that is to run after the `!`");
                }
                command => effects.push(command),
            }
        } else if self.0.outgoing.must_wait(self.0.phase) {
            if let Err(draft) = self.0.outgoing.queue.push(draft) {
                self.0.say(format!(
                    "{} messages are queued already: send or remove one first",
                    crate::queue::MOST
                ));
                self.0.writing.composer.replace(draft);
            }
            effects.extend(self.0.outgoing.send_next(self.0.phase));
        } else {
            effects.push(self.0.outgoing.send(draft));
        }
        self.0.outgoing.queue.forget_edited();
        effects.push(Effect::Save);
        effects
    }

    fn send_now(&mut self, draft: Draft) -> Vec<Effect> {
        self.0.writing.stop_browsing();
        self.0.writing.history.push(&draft.expanded());
        self.0.writing.begin_text();
        self.0.writing.completing.close();
        self.0.outgoing.queue.forget_edited();
        let sent = match self.0.phase {
            Phase::Idle => self.0.outgoing.send(draft),
            Phase::Working | Phase::Blocked | Phase::Stopping => {
                self.0.say("sent; the agent reads it after the current step");
                Effect::Steer(draft)
            }
        };
        vec![sent, Effect::Save]
    }

    fn escape(&mut self) -> Vec<Effect> {
        if self.0.writing.answering.is_some() {
            self.stop_answering();
            return Vec::new();
        }
        // The person's own command first: the next press is for the agent.
        if self.0.own_commands.iter().any(|own| !own.is_stopping) {
            self.0.own_commands.iter_mut().for_each(|own| own.is_stopping = true);
            return vec![Effect::StopShell];
        }
        let is_second = self.0.last_escape.is_some_and(|at| at + TWICE_ESCAPE > self.0.now);
        self.0.last_escape = Some(self.0.now);
        if is_second && let Some(draft) = self.0.outgoing.queue.take_last() {
            self.0.last_escape = None;
            self.take_back(draft);
            return Vec::new();
        }
        self.0.outgoing.is_wanted_back = is_second;
        let message = self.0.outgoing.steered.pop();
        match self.0.phase {
            Phase::Working => {
                self.0.phase = Phase::Stopping;
                self.0.outgoing.hold();
                vec![match message {
                    Some(message) => Effect::Withdraw { message, interrupts: true },
                    None => Effect::Interrupt,
                }]
            }
            Phase::Blocked if message.is_some() => {
                self.0.outgoing.is_wanted_back = true;
                let withdraw = |message| Effect::Withdraw { message, interrupts: false };
                message.map(withdraw).into_iter().collect()
            }
            Phase::Blocked => {
                let how = self.0.questions.first().map(Dialog::refusal);
                self.0.say(how.unwrap_or("a question waits for its answer"));
                Vec::new()
            }
            Phase::Idle | Phase::Stopping => Vec::new(),
        }
    }

    /// What was sent into the turn waits here again; a second Esc has asked for it meanwhile, or will.
    pub(super) fn withdrawn(&mut self, draft: Draft) -> Vec<Effect> {
        if std::mem::take(&mut self.0.outgoing.is_wanted_back) {
            self.take_back(draft);
        } else if let Err(draft) = self.0.outgoing.queue.push(draft) {
            self.0.writing.put_in_place(draft);
        } else {
            self.0.outgoing.hold();
        }
        vec![Effect::Save]
    }

    fn take_back(&mut self, draft: Draft) {
        let text = crate::text::prose_line(draft.expanded().trim());
        self.0.writing.put_in_place(draft);
        self.0.say(match self.0.settings.screen_reader {
            true => format!("taken back: {text}"),
            false => "taken back".to_owned(),
        });
    }

    /// Ctrl-C: first what is written, then the terminal.
    fn leave(&mut self) -> Vec<Effect> {
        if self.0.writing.answering.is_some() {
            self.stop_answering();
            return Vec::new();
        }
        if !self.0.writing.composer.is_empty() {
            self.0.writing.stop_browsing();
            let draft = self.0.writing.composer.take();
            self.0.writing.completing.close();
            self.0.outgoing.queue.forget_edited();
            self.0.say("kept in the history: Up brings it back");
            self.0.writing.history.push(&draft.expanded());
            return vec![Effect::Save];
        }
        if self.0.departure.press_twice(self.0.now) {
            self.0.notice.clear();
            return self.0.departure.begin(self.0.phase);
        }
        let key = self.0.settings.keymap.way(Action::Leave);
        self.0.say(format!("press {key} again to leave"));
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
fn wanted(asked: PageAction) -> Vec<Effect> {
    match asked {
        PageAction::Nothing | PageAction::Close | PageAction::Bind(..) => Vec::new(),
        PageAction::Open(kind) => vec![Effect::Load(kind)],
        PageAction::OpenSession(session) => vec![Effect::Save, Effect::OpenSession(session)],
        PageAction::Reopen(session) => {
            vec![Effect::Save, Effect::Archive(session, false), Effect::OpenSession(session)]
        }
        PageAction::Archive(session, is_archived) => vec![Effect::Archive(session, is_archived)],
        PageAction::OpenTask(task) => vec![Effect::Save, Effect::OpenTask(task)],
        PageAction::ShowQuestion(question) => vec![Effect::FindQuestion(question)],
        PageAction::Pause(task) => vec![Effect::Pause(task)],
        PageAction::Resume(task) => vec![Effect::Resume(task)],
        PageAction::Cancel(task) => vec![Effect::Cancel(task)],
        PageAction::WriteTo(task) => vec![Effect::WriteTo(task)],
        PageAction::TakeRole(role) => vec![Effect::Slash(format!("/{role}"))],
    }
}

/// What a draft runs that is a command.
fn command_of(draft: &Draft) -> Option<Effect> {
    let word = draft.text.split_whitespace().next().unwrap_or_default();
    let text = draft.expanded();
    match draft.text.chars().next().filter(|_| !draft.begins_pasted())? {
        '/' if !is_path(word) && !draft.holds_paste(word) => {
            Some(Effect::Slash(text.trim().to_owned()))
        }
        '!' => Some(Effect::Shell(text[1..].trim().to_owned())),
        _ => None,
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
