//! Reads what a page shows, as a job.

mod tasks;
mod texts;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_coordinator::{Coordinator, Error};
use windlass_core::id::TaskId;
use windlass_term::Paint;

use super::{PAGE_CHECK, Ui};
use crate::app::{Input, Settings};
use crate::host::Host;
use crate::overlay::{Overlay, Page, ViewKind};
use crate::story::Story;

/// What a job needs to read a page.
struct Reader {
    coordinator: Coordinator,
    host: Arc<dyn Host>,
    paint: Paint,
    settings: Settings,
    workspace: std::path::PathBuf,
    followed: Option<TaskId>,
    session: windlass_core::id::SessionId,
    columns: usize,
    /// The names of sub-agents.
    labels: BTreeMap<TaskId, String>,
    /// The last line of what each running call has printed, and whose call it is.
    running: Vec<(TaskId, String)>,
}

impl Ui {
    pub(super) fn load(&mut self, kind: ViewKind) {
        self.reload_at = Some(tokio::time::Instant::now() + PAGE_CHECK);
        if kind == ViewKind::Help {
            let page = self.app.key_list();
            self.take_in(Input::Loaded(Box::new(Overlay::Keys(page))));
            return;
        }
        read(self, kind, Input::Loaded);
    }

    /// Reads a page again that is open.
    pub(super) fn refresh(&mut self, kind: ViewKind) {
        match kind {
            ViewKind::Help => self.load(kind),
            kind => {
                self.reload_at = Some(tokio::time::Instant::now() + PAGE_CHECK);
                read(self, kind, Input::Refreshed);
            }
        }
    }
}

fn read(ui: &mut Ui, kind: ViewKind, input: fn(Box<Overlay>) -> Input) {
    ui.conversation.has_news = false;
    let reader = Reader {
        coordinator: ui.coordinator.clone(),
        host: ui.host.clone(),
        paint: ui.options.settings.paint,
        settings: ui.app.settings.clone(),
        workspace: ui.options.workspace.clone(),
        followed: ui.conversation.task,
        session: ui.conversation.session,
        columns: ui.app.size.room(),
        labels: ui.app.story.as_ref().map(|story| story.labels().clone()).unwrap_or_default(),
        running: ui.app.story.as_ref().map(Story::last_lines).unwrap_or_default(),
    };
    ui.jobs.read(input, move || reader.read(kind));
}

impl Reader {
    fn read(&self, kind: ViewKind) -> Result<Overlay, Error> {
        Ok(match kind {
            ViewKind::Tasks => Overlay::List(self.tasks()?),
            ViewKind::Inbox => Overlay::List(self.inbox()?),
            ViewKind::Sessions(of) => Overlay::List(self.sessions(of)?),
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
