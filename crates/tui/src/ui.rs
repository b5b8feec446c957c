//! The loop around the model: inputs from the terminal, the journal and the clock go in, effects are carried out,
//! frames are written.
//!
//! Invariants:
//! - The loop waits for nobody: what takes time is a job, and its outcome is an input.
//! - At most one frame in [`SHORTEST_FRAME`], and none where nothing changed.
//! - Leaving ends no task: what is driven here is parked first, or continues in the background. Going to another
//!   conversation leaves nothing.

mod console;
mod conversation;
mod drafts;
mod driver;
mod effects;
mod jobs;
mod own_commands;
mod pages;
mod painter;
mod work;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use windlass_coordinator::{Coordinator, Error, Update};
use windlass_core::id::{SessionId, TaskId};

use crate::app::{App, Effect, Input, Leaving};
use crate::host::{Host, Options};
use crate::keys::Event;
use crate::terminal;
use crate::transcript::Entry;
use console::Console;
use conversation::Conversation;
use drafts::Drafts;
use driver::Driver;
use effects::Effects;
use jobs::{Done, Jobs};
use painter::SHORTEST_FRAME;

/// How often the session is looked at for what others changed.
const SESSION_CHECK: Duration = Duration::from_secs(1);
/// How often a page that shows what happens is read again.
const PAGE_CHECK: Duration = Duration::from_secs(1);
/// So long after the person's editor has ended, an interrupt is one that its keys have sent to all of the terminal.
const EDITOR_INTERRUPT: Duration = Duration::from_millis(250);
/// Events that are taken in before the next frame.
const EVENTS_AT_ONCE: usize = 256;

/// How the terminal was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitReport {
    pub session: SessionId,
    /// Whether anything was said in it.
    pub exists: bool,
    /// The tasks that continue.
    pub background: Vec<TaskId>,
    /// Tasks that could not be handed over, and why.
    pub parked: Vec<(TaskId, String)>,
}

/// Why the terminal could not be used.
#[derive(Debug)]
pub enum Failed {
    Terminal(io::Error),
    Coordinator(Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Coordinator(error)
    }
}

struct Ui {
    coordinator: Coordinator,
    host: Arc<dyn Host>,
    options: Options,
    app: App,
    console: Console,
    drafts: Drafts,
    jobs: Jobs,
    driver: Driver,
    conversation: Conversation,
    began: Instant,
    check_session_at: Instant,
    reload_at: Option<Instant>,
    leaving: Option<Leaving>,
    /// Interrupts before this were meant for the person's editor.
    interrupts_count_from: Instant,
}

/// Opens the terminal and stays until the person leaves.
pub async fn run(
    coordinator: Coordinator,
    host: Arc<dyn Host>,
    options: Options,
) -> Result<ExitReport, Failed> {
    let mut ui = Ui::open(coordinator, host, options)?;
    let stayed = ui.stay().await;
    let left = ui.leave().await;
    // A terminal that has gone needs nothing put back.
    let _ = ui.console.painter.give();
    stayed?;
    Ok(left)
}

/// Signals from outside.
struct Signals {
    resize: Signal,
    end: Signal,
    hangup: Signal,
    interrupt: Signal,
    continued: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            resize: signal(SignalKind::window_change())?,
            end: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }
}

impl Ui {
    fn open(
        coordinator: Coordinator,
        host: Arc<dyn Host>,
        mut options: Options,
    ) -> Result<Self, Failed> {
        let drafts = Drafts::open(&options)?;
        let size = terminal::size();
        let mut app = App::new(options.settings.clone(), size, drafts.history());
        app.layout = options.layout;
        app.opened_at = coordinator.now();
        app.has_alternate_screen = options.has_alternate_screen;
        for line in std::mem::take(&mut options.greeting) {
            app.transcript.push(Entry::note(line));
        }
        let now = Instant::now();
        let mut ui = Self {
            console: Console::open(&options, size, &drafts.log())?,
            jobs: Jobs::new(coordinator.clone(), host.clone(), &options),
            driver: Driver::new(coordinator.clone()),
            conversation: Conversation::new(coordinator.clone(), options.session),
            began: now,
            check_session_at: now + SESSION_CHECK,
            reload_at: None,
            leaving: None,
            interrupts_count_from: now,
            coordinator,
            host,
            options,
            app,
            drafts,
        };
        // The first frame comes before anything else is read.
        ui.console.painter.paint(&mut ui.app)?;
        ui.begin();
        Ok(ui)
    }

    /// Takes inputs in until the person leaves.
    async fn stay(&mut self) -> Result<(), Failed> {
        let mut signals = Signals::listen()?;
        while self.leaving.is_none() {
            let wake = self.wake();
            tokio::select! {
                events = self.console.next() => match events {
                    Some(events) => self.events(events).await?,
                    None => self.leaving = Some(Leaving::Park),
                },
                update = self.conversation.update() => self.update(update?)?,
                done = self.jobs.next() => match done {
                    Ok((session, done)) => Effects(self).done(session, done).await?,
                    Err(error) => self.input(Input::Notice(format!("a job failed: {error}"))).await?,
                },
                (task, result) = self.driver.ended() => self.drive_ended(task, result).await?,
                _ = signals.resize.recv() => self.console.painter.resize_soon(),
                _ = signals.end.recv() => self.leaving = Some(Leaving::Park),
                _ = signals.hangup.recv() => self.leaving = Some(Leaving::Park),
                // Sent by another process: the key itself is a byte.
                _ = signals.interrupt.recv() => {
                    if Instant::now() >= self.interrupts_count_from {
                        self.leaving = Some(Leaving::Park);
                    }
                }
                _ = signals.continued.recv() => self.console.continued()?,
                () = tokio::time::sleep_until(wake) => self.tick().await?,
            }
            self.console.painter.paint_when_due(&mut self.app)?;
        }
        Ok(())
    }

    /// When something is due.
    fn wake(&self) -> Instant {
        let app = self.app.next_wake().map(|at| self.began + at);
        let all = [self.console.wake(), app, self.drafts.wake(), self.reload_at];
        all.into_iter().flatten().min().unwrap_or(self.check_session_at).min(self.check_session_at)
    }

    async fn events(&mut self, events: Vec<Event>) -> Result<(), Failed> {
        let keys = events.iter().filter(|event| matches!(event, Event::Key(_))).count();
        let burst = (keys > 1).then_some(Input::Burst);
        self.inputs(burst.into_iter().chain(events.into_iter().map(Input::Terminal)).collect())
            .await
    }

    async fn inputs(&mut self, inputs: Vec<Input>) -> Result<(), Failed> {
        for input in inputs {
            Box::pin(self.input(input)).await?;
        }
        Ok(())
    }

    /// Takes one input in, and carries out what it asks for.
    async fn input(&mut self, input: Input) -> Result<(), Failed> {
        for effect in self.take_in(input) {
            Effects(self).carry_out(effect).await?;
        }
        Ok(())
    }

    /// Takes one input in; what it asks for is left to the caller.
    fn take_in(&mut self, input: Input) -> Vec<Effect> {
        let now = self.began.elapsed();
        self.console.painter.is_dirty = true;
        self.app.departure.has_other_work = self.driver.has_other(self.conversation.task);
        self.app.update(input, now)
    }

    /// An event or a preview, and those that are committed already.
    fn update(&mut self, update: Update) -> Result<(), Failed> {
        match update {
            Update::Preview(preview) => {
                self.take_in(Input::Preview(Box::new(preview)));
            }
            Update::Event(record) => {
                self.record(*record)?;
                for _ in 0..EVENTS_AT_ONCE {
                    let Some(record) = self.conversation.next_committed()? else { break };
                    self.record(record)?;
                }
            }
        }
        Ok(())
    }

    async fn tick(&mut self) -> Result<(), Failed> {
        let now = Instant::now();
        let is_due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        let events = self.console.expired();
        self.events(events).await?;
        if is_due(&mut self.reload_at) {
            self.reload();
        }
        if let Some(size) = self.console.painter.take_resize() {
            self.input(Input::Resize(size)).await?;
        }
        if let Some(why) = self.drafts.save_when_due(&self.app) {
            self.input(Input::Notice(why)).await?;
        }
        if self.check_session_at <= now {
            self.check_session_at = now + SESSION_CHECK;
            self.check_session()?;
        }
        Effects(self).show_own_commands();
        let at = self.began.elapsed();
        let wake = self.app.next_wake();
        self.console.painter.is_dirty |= wake.is_some_and(|wake| wake <= at + SHORTEST_FRAME);
        self.app.update(Input::Tick, at);
        Ok(())
    }

    /// Reads the page that is open again, where it shows what happens. A long conversation takes a while to read, so
    /// its pages are read again only where something was added.
    fn reload(&mut self) {
        let open = self.app.overlay.as_ref().filter(|overlay| overlay.is_live());
        match open.map(|overlay| overlay.kind().clone()) {
            Some(kind) if kind.is_of_conversation() && !self.conversation.has_news => {
                self.reload_at = Some(Instant::now() + PAGE_CHECK);
            }
            Some(kind) => self.refresh(kind),
            None => {}
        }
    }
}
