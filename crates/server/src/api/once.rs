//! Requests that may be repeated: with the sender's key, the same request again has no further effect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use windlass_core::id::{CommandId, TaskId};

use super::answers::{self, digest_of};
use crate::auth::User;
use crate::extract::{Body, fields_of};
use crate::problem::Problem;
use crate::state::AppState;

/// The header with the sender's key.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The longest key.
const MAX_KEY_BYTES: usize = 200;

/// A request that may be repeated. The same key with another request is refused.
#[derive(Debug)]
pub struct Once {
    /// The same for every repetition; `None` where the sender gave no key.
    name: Option<String>,
    /// While it is held, the same request by another connection waits.
    _turn: Option<OwnedMutexGuard<()>>,
}

/// The keys of requests that are being answered, each with its turn. A repetition that comes before the answer waits, so
/// that it finds what the first came to.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    async fn take(&self, name: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.get(name).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::default();
                turns.insert(name.to_owned(), Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}

/// A request without a body.
impl FromRequestParts<AppState> for Once {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        Self::note(parts, state, "").await
    }
}

/// A request with a body of JSON, and whether it may be repeated.
pub struct Change<T> {
    pub once: Once,
    pub body: T,
}

impl<T: DeserializeOwned + Send> FromRequest<AppState> for Change<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let request = Request::from_parts(parts.clone(), body);
        let Body(sent) = Body::<Value>::from_request(request, state).await?;
        let text = sent.to_string();
        // What is refused for its fields takes no key.
        let body = fields_of(sent)?;
        let once = Once::note(&mut parts, state, &text).await?;
        Ok(Self { once, body })
    }
}

impl Once {
    /// Takes note of a request by the sender's key.
    async fn note(parts: &mut Parts, state: &AppState, body: &str) -> Result<Self, Problem> {
        let Some(key) = parts.headers.get(IDEMPOTENCY_KEY) else {
            return Ok(Self { name: None, _turn: None });
        };
        let key = key.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
        let key = key.map(str::to_owned).ok_or_else(|| {
            let detail = format!("`Idempotency-Key` is 1 to {MAX_KEY_BYTES} visible letters");
            Problem::bad_request(detail)
        })?;
        let user = User::from_request_parts(parts, state).await?;
        let name = format!("{}\0{key}", user.name);
        let turn = state.turns.take(&name).await;
        let mark = digest_of(&format!("{} {} {body}", parts.method, parts.uri.path()));
        let first = state.coordinator.triggers().first_request(&name, mark.clone()).await?;
        match first == mark {
            true => Ok(Self { name: Some(name), _turn: Some(turn) }),
            false => Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "key-reused",
                "this `Idempotency-Key` was used for another request",
            )),
        }
    }

    /// The id of a task that this request starts.
    pub fn task_id(&self, state: &AppState) -> TaskId {
        match &self.name {
            Some(name) => TaskId::derived(name, "task"),
            None => TaskId::new(state.now()),
        }
    }

    /// The id of the command.
    pub fn command_id(&self, state: &AppState) -> CommandId {
        match &self.name {
            Some(name) => CommandId::derived(name, "command"),
            None => CommandId::new(state.now()),
        }
    }

    /// The sender's own id, for what takes one.
    pub fn name(&self) -> Option<String> {
        self.name.clone()
    }

    /// What the first such request came to, where it is not to be seen from what it made.
    pub async fn outcome(&self, state: &AppState) -> Result<Option<String>, Problem> {
        let Some(name) = self.outcome_name() else { return Ok(None) };
        state.read(move |coordinator| coordinator.triggers().request(&name)).await
    }

    /// Keeps what it came to.
    pub async fn keep(&self, state: &AppState, outcome: String) -> Result<(), Problem> {
        if let Some(name) = self.outcome_name() {
            state.coordinator.triggers().first_request(&name, outcome).await?;
        }
        Ok(())
    }

    /// Does something, and answers a repetition as the first request was answered.
    pub async fn first<T: Serialize>(
        &self,
        state: &AppState,
        change: impl Future<Output = Result<T, Problem>>,
    ) -> Result<Value, Problem> {
        if let Some(known) = self.outcome(state).await? {
            return Ok(serde_json::from_str(&known).unwrap_or_default());
        }
        let answer = json!(change.await?);
        self.keep(state, answer.to_string()).await?;
        Ok(answer)
    }

    /// Changes a thing, and shows it as the change left it.
    pub async fn change<T: Serialize>(
        &self,
        state: &AppState,
        change: impl Future<Output = Result<T, Problem>>,
    ) -> Result<Json<Value>, Problem> {
        self.first(state, change).await.map(Json)
    }

    /// Makes a new thing.
    pub async fn created<T: Serialize>(
        &self,
        state: &AppState,
        make: impl Future<Output = Result<T, Problem>>,
    ) -> Result<Response, Problem> {
        self.first(state, make).await.map(answers::created)
    }

    /// Removes a thing.
    pub async fn removed(
        &self,
        state: &AppState,
        remove: impl Future<Output = Result<(), Problem>>,
    ) -> Result<StatusCode, Problem> {
        self.first(state, remove).await.map(|_| StatusCode::NO_CONTENT)
    }

    fn outcome_name(&self) -> Option<String> {
        self.name.as_ref().map(|name| format!("{name}\0outcome"))
    }
}
