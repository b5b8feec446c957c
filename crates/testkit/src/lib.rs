//! What the tests of every crate share. A dev-dependency only; nothing of ours is faked here.

mod signal;
mod model_server;
mod messages;
mod play;
mod redis;
mod browser;
mod pictures;
mod git;
mod terminal;

pub use browser::{Browser, Context, Page};
pub use git::{by_hand, git};
pub use messages::{RawMessage, assert_extends, messages, messages_array};
pub use model_server::{Answer, Gate, ModelServer, Request, TlsServer};
pub use pictures::{bomb, png};
pub use play::{Stage, play, play_context, play_first_request};
pub use redis::RedisServer;
pub use terminal::on_terminal;
