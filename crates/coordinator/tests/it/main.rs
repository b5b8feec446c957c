//! The control plane through its public API: triggers in; tasks, injections and messages out. The model is
//! scripted over real HTTP, the clock is set, everything else is real.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod world;
mod routing;
mod conversations;
mod session_modes;
mod sessions;
mod slash;
mod roles;
mod follow_ups;
mod triggers;
mod schedules;
mod active_time;
mod deadlines;
mod silent_runs;
mod outages;
mod rate_limits;
mod views;
mod endings;
mod retention;
mod explanations;
