//! What surfaces show: computed here once, drawn by each in its own way. The rules of what a task waits for and
//! what a person can do next are here too, and nowhere above.

mod attendance;
mod changes;
pub(crate) mod cost;
mod family;
mod next_action;
mod overview;
mod question;
mod session;
mod session_details;
pub(crate) mod task;

pub use attendance::Attendance;
pub use changes::{ChangedFile, FileDiff};
pub use cost::{CostReport, CostSum, CostTurn, is_simulated};
pub use family::{TaskLine, in_families};
pub use next_action::NextAction;
pub use overview::{Overview, Totals};
pub use question::{AskedCall, OpenQuestion};
pub(crate) use question::{label, step_of};
pub use session::{EntryStatus, SessionSummary, SessionView, TaskEntry};
pub use session_details::{PendingChange, SessionDetails};
pub use task::{Compaction, TaskDetails, TaskView};
// Rows that need no rule of ours are shown as they are.
pub use windlass_store::{
    Filter, ListPlace, ModeTransition, QuestionRow, QuestionState, RuntimeRow, ScheduleRow,
    SchedulerRow, SessionFilter, SessionPlace, SessionRow, TaskOrigin, TaskRow,
};
