//! A page that stays up to date: what it reads, which of its parts change, and the frame around them.

use maud::Markup;
use windlass_coordinator::{Coordinator, Error};
use windlass_core::id::{SessionId, TaskId};

use super::drafts::Drafts;
use super::live::PageContent;
use super::previews::Previews;
use super::task::{Tab, TaskPage};
use super::{
    commitments, cost, health, home, inbox, output, plans, proposal, schedules, session, settings,
    skills, tasks, workflow_run, workflows,
};
use crate::about::About;
use crate::auth::{Access, User};
use crate::checkup::Checkup;
use crate::queue::Queues;
use crate::skill_drafts::SkillTrials;

/// What a page reads from, and for whom.
pub struct PageSources<'a> {
    pub coordinator: &'a Coordinator,
    pub previews: &'a Previews,
    pub drafts: &'a Drafts,
    pub about: &'a About,
    pub checkup: &'a Checkup,
    pub queues: &'a Queues,
    pub trials: &'a SkillTrials,
    pub user: &'a User,
}

impl PageSources<'_> {
    /// Whether the reader may change anything.
    pub fn may_change(&self) -> bool {
        self.user.access > Access::Viewer
    }

    /// Whether the reader may see a task.
    pub fn may_see_task(&self, task: TaskId) -> Result<bool, Error> {
        let row = self.coordinator.tasks().get(task)?;
        row.map_or(Ok(false), |row| self.may_see_session(row.session_id))
    }

    /// Whether the reader may see a session.
    pub fn may_see_session(&self, session: SessionId) -> Result<bool, Error> {
        let owner = self.coordinator.sessions().view(session)?.user_id;
        Ok(self.user.may_see((!owner.is_empty()).then_some(owner.as_str())))
    }
}

/// A page that stays up to date.
pub trait View: Send {
    /// Reads what is new, and draws what changes. `None` where there is no such thing, or the reader may not see it.
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error>;

    /// The page around what changes.
    fn frame(&self, content: &PageContent) -> Markup;
}

/// The page of an address; `None` for one that no page has.
pub fn of(path: &str, query: &str) -> Option<Box<dyn View>> {
    let query = Query(query);
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    Some(match parts.as_slice() {
        [""] => Box::new(home::Home::new(&query)),
        ["inbox"] => Box::new(inbox::InboxPage),
        ["tasks"] => Box::new(tasks::TasksPage::new(&query)),
        ["tasks", id] => Box::new(TaskPage::new(id.parse().ok()?, Tab::Timeline, &query)),
        ["tasks", id, tab] => Box::new(TaskPage::new(id.parse().ok()?, Tab::read(tab)?, &query)),
        ["outputs", call] => Box::new(output::OutputPage::new(call)),
        ["plans"] => Box::new(plans::PlansPage),
        ["commitments"] => Box::new(commitments::CommitmentsPage::new(&query)),
        ["commitments", id] => Box::new(commitments::CommitmentPage { id: id.parse().ok()? }),
        ["schedules"] => Box::new(schedules::SchedulesPage),
        ["workflows"] => Box::new(workflows::WorkflowsPage::new(&query)),
        ["workflows", id] => Box::new(workflow_run::WorkflowRunPage { id: id.parse().ok()? }),
        ["skills"] => Box::new(skills::SkillsPage),
        ["skills", "proposals", number] => {
            Box::new(proposal::ProposalPage { number: number.parse().ok()? })
        }
        ["settings"] => Box::new(settings::SettingsPage),
        ["health"] => Box::new(health::HealthPage::new(&query)),
        ["cost"] => Box::new(cost::CostPage::new(&query)),
        ["sessions", id] => Box::new(session::SessionPage::new(id.parse().ok()?, &query)),
        _ => return None,
    })
}

/// The query of an address.
pub struct Query<'a>(pub &'a str);

impl Query<'_> {
    /// The value of a name, decoded; empty where there is none.
    pub fn get(&self, name: &str) -> String {
        let found = url::form_urlencoded::parse(self.0.as_bytes()).find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }
}
