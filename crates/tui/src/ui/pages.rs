//! Reads what a page shows, as a job.

mod tasks;
mod texts;
mod work;

use windlass_coordinator::{Coordinator, Error};
use windlass_core::id::TaskId;
use windlass_term::Paint;

use super::{PAGE_CHECK, Ui};
use crate::app::Input;
use crate::keymap::{Action, Keymap};
use crate::overlay::{Overlay, Page, PageLine, ViewKind};

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
    pub(super) fn load(&mut self, kind: ViewKind) {
        self.reload_at = Some(tokio::time::Instant::now() + PAGE_CHECK);
        if kind == ViewKind::Help {
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
    fn read(&self, kind: ViewKind) -> Result<Overlay, Error> {
        Ok(match kind {
            ViewKind::Tasks => Overlay::List(self.tasks()?),
            ViewKind::Inbox => Overlay::List(self.inbox()?),
            ViewKind::Sessions { everywhere } => Overlay::List(self.sessions(everywhere)?),
            ViewKind::Agents => Overlay::List(self.agents()?),
            ViewKind::Workflows => Overlay::List(self.workflows()?),
            ViewKind::Workers => Overlay::List(self.workers()?),
            ViewKind::Commitments => Overlay::List(self.commitments()?),
            ViewKind::Roles => Overlay::List(self.roles()),
            ViewKind::Run { run } => Overlay::Page(self.run(run)?),
            ViewKind::Plan => Overlay::Page(self.plan()?),
            ViewKind::Transcript { task } => Overlay::Page(self.transcript(task)?),
            ViewKind::Diff(of) => Overlay::Page(self.diff(of)?),
            ViewKind::Help | ViewKind::Text => Overlay::Page(Page::new(kind, "", Vec::new())),
        })
    }
}

/// Every key and what it does.
fn help(keymap: &Keymap, enhanced: bool) -> Page {
    let mut lines = Vec::new();
    for action in Action::ALL {
        let mut keys: Vec<String> = keymap.names(*action);
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
        ("/vim", "edit as in vi, or no longer"),
    ];
    lines.push(PageLine::default());
    lines.extend(more.map(|(keys, about)| PageLine::of(format!("{keys:<28} {about}"))));
    lines.push(PageLine::default());
    lines.push(PageLine::of(
        "Bind keys in `[tui.keys]`: such as `editor = \"f4\"`. `/help` lists commands.",
    ));
    Page::new(ViewKind::Help, "keys", lines)
}
