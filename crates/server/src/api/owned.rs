//! Whether a user may see a thing. What belongs to another user looks as if it did not exist.

use windlass_coordinator::Coordinator;
use windlass_coordinator::views::{TaskOrigin, TaskView};
use windlass_core::id::{SessionId, TaskId};

use crate::auth::User;
use crate::problem::Problem;
use crate::state::AppState;

/// Where a task belongs, if the user may see it.
pub async fn task(state: &AppState, user: &User, task: TaskId) -> Result<TaskOrigin, Problem> {
    let origin = state.read(move |coordinator| coordinator.tasks().origin(task)).await?;
    let origin = origin.filter(|origin| user.may_see(origin.user.as_deref()));
    origin.ok_or_else(|| Problem::not_found("unknown-task", format!("there is no task `{task}`")))
}

/// Whether the user may see a session; one that nobody has used is everybody's to begin.
pub async fn session(state: &AppState, user: &User, session: SessionId) -> Result<(), Problem> {
    let view = state.read(move |coordinator| coordinator.sessions().view(session)).await?;
    let owner = Some(view.user_id.as_str()).filter(|owner| !owner.is_empty());
    match (owner.is_none() && view.tasks.is_empty()) || user.may_see(owner) {
        true => Ok(()),
        false => {
            let detail = format!("there is no session `{session}`");
            Err(Problem::not_found("unknown-session", detail))
        }
    }
}

/// A task as lists show it, if the user may see it.
pub async fn view(state: &AppState, user: &User, id: TaskId) -> Result<TaskView, Problem> {
    let user = user.clone();
    let read = move |coordinator: &Coordinator| {
        let origin = coordinator.tasks().origin(id)?;
        match origin.is_some_and(|origin| user.may_see(origin.user.as_deref())) {
            true => coordinator.tasks().view(id).map(Some),
            false => Ok(None),
        }
    };
    let view = state.read(read).await?;
    view.ok_or_else(|| Problem::not_found("unknown-task", format!("there is no task `{id}`")))
}
