//! One connection to Redis that is made when needed and made again when it was lost.
//!
//! Invariants:
//! - Every command has an answer, an error or an end: a server that is stopped or cut off is noticed.
//! - A command whose connection was lost is sent once more; all that we send may happen twice.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError};
use tokio::sync::Mutex;

use super::Error;

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an answer may take, beyond the time that a command waits on purpose. The crate's own 500 ms
/// are less than a sync of a busy disk.
const ANSWER: Duration = Duration::from_secs(5);

pub(super) struct Wire {
    client: Client,
    place: String,
    connection: Mutex<Option<MultiplexedConnection>>,
}

/// What was asked, for whoever sends it.
pub(super) enum Ask<'a> {
    One(&'a Cmd),
    Many(&'a Pipeline),
}

impl Wire {
    pub(super) fn new(client: Client, place: String) -> Self {
        Self { client, place, connection: Mutex::default() }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Sends a command and reads its answer.
    pub(super) async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.ask(Ask::One(command), Duration::ZERO).await
    }

    /// Sends several commands at once.
    pub(super) async fn run_all<T: FromRedisValue>(&self, all: &Pipeline) -> Result<T, Error> {
        self.ask(Ask::Many(all), Duration::ZERO).await
    }

    /// Sends a command that itself waits up to `wait`. Nothing else may use the wire meanwhile. The
    /// flag says whether the connection is a new one.
    pub(super) async fn wait<T: FromRedisValue>(
        &self,
        command: &Cmd,
        wait: Duration,
    ) -> Result<T, Error> {
        self.ask(Ask::One(command), wait).await
    }

    /// Whether there is no connection, so that the next command makes a new one.
    pub(super) async fn is_down(&self) -> bool {
        self.connection.lock().await.is_none()
    }

    async fn ask<T: FromRedisValue>(&self, ask: Ask<'_>, wait: Duration) -> Result<T, Error> {
        match self.try_once(&ask, wait).await {
            Err(error) if wait.is_zero() && is_lost(&error) => {
                self.try_once(&ask, wait).await.map_err(|error| self.classify(error))
            }
            answered => answered.map_err(|error| self.classify(error)),
        }
    }

    async fn try_once<T: FromRedisValue>(
        &self,
        ask: &Ask<'_>,
        wait: Duration,
    ) -> Result<T, RedisError> {
        let mut connection = self.connection().await?;
        let answer = async {
            match ask {
                Ask::One(command) => command.query_async(&mut connection).await,
                Ask::Many(all) => all.query_async(&mut connection).await,
            }
        };
        let answer = match tokio::time::timeout(wait + ANSWER, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                let late = std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time");
                Err(RedisError::from(late))
            }
        };
        if answer.as_ref().is_err_and(is_lost) {
            *self.connection.lock().await = None;
        }
        answer
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        // Answers are timed here, because one connection waits on purpose.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(None);
        let made = self.client.get_multiplexed_async_connection_with_config(&config);
        let connection = match tokio::time::timeout(CONNECT + ANSWER, made).await {
            Ok(made) => made?,
            Err(_) => {
                let late =
                    std::io::Error::new(std::io::ErrorKind::TimedOut, "no connection in time");
                return Err(RedisError::from(late));
            }
        };
        *held = Some(connection.clone());
        Ok(connection)
    }

    fn classify(&self, source: RedisError) -> Error {
        let place = self.place.clone();
        if is_locked_out(&source) {
            return Error::WrongPassword { place, source };
        }
        match is_lost(&source) || is_starting(&source) {
            true => Error::Unreachable { place, source },
            false => Error::Refused { place, source },
        }
    }
}

/// A wrong user name or password, or none where one is needed.
fn is_locked_out(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::AuthenticationFailed)
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"))
}

fn is_lost(error: &RedisError) -> bool {
    if is_locked_out(error) {
        return false;
    }
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error()
        || matches!(error.kind(), ErrorKind::Parse)
}

/// A server that reads its files, or that is not in charge for now.
fn is_starting(error: &RedisError) -> bool {
    matches!(error.code(), Some("LOADING" | "BUSY" | "TRYAGAIN" | "MASTERDOWN" | "READONLY"))
}
