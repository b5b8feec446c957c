//! The program as a service: `serve` and `worker` as processes, on either bus.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod world;
mod limits;
mod serve;
mod http;
mod stopped;
mod worker;
mod redis_cli;
mod triggers;
mod clock;
