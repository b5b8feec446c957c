//! Which task a command is about: the one that is named, or the last one of this directory.

use std::path::Path;

use windlass_coordinator::views::TaskView;
use windlass_core::id::TaskId;
use windlass_core::shown::shown;
use windlass_core::text::one_line;
use windlass_term::numbers;

use super::{AppContext, follow_up};
use crate::failure::Failure;
use crate::show::{note, task_page};

/// How wide a goal gets beside other words.
pub(super) const GOAL_WIDTH: usize = 60;

/// The task with this id. Without one the last task of this directory, and a person reads on stderr which it is.
pub(super) fn find_or_last(app: &AppContext, given: Option<&str>) -> Result<TaskId, Failure> {
    let tasks = app.coordinator.tasks();
    if let Some(text) = given {
        return Ok(tasks.find(text)?);
    }
    let here = follow_up::real_directory(Path::new("."));
    let Some(last) = tasks.in_directory(&here).newest()? else {
        let what = format!("no task was started in `{}`", here.display());
        let hint = "name a task: `windlass tasks` lists those of all directories; or start one here with \
                    `windlass run \"…\"`";
        return Err(Failure::usage(what, hint));
    };
    let task = last.row.id;
    let which = format!("the last task of this directory: {task} {}", describe(app, &last));
    note(&app.style.wrap_note(&which));
    Ok(task)
}

/// A task's goal and where it stands, to recognize it by.
pub(super) fn describe(app: &AppContext, task: &TaskView) -> String {
    let goal = one_line(&shown(task.row.goal.trim()), GOAL_WIDTH);
    let age = numbers::age(task.row.updated_at, app.coordinator.now());
    format!("“{goal}” ({}, {age} ago)", task_page::status_words(task))
}
