//! The loop at its own seam: a goal and a scripted model in, a journal or a context out.

#![expect(clippy::unwrap_used, reason = "what a test sets up must be there")]

mod journal;
mod control;
mod calls;
mod permissions;
mod modes;
mod roles;
mod contract;
mod plan_review;
mod plan_corpus;
mod approvals;
mod messages;
mod limits;
mod compaction;
mod crashes;
mod skills;
mod sub_agents;
mod contexts;
mod pictures;
