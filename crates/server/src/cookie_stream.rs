//! Streams to a browser end when it is signed out, and when its cookie expires: who may not send requests any more is
//! not shown what happens. The browser asks again, and learns that it has to sign in.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;
use tokio::time::{Interval, interval};

use crate::auth::SignIn;
use crate::state::AppState;

/// How often a quiet stream looks whether its cookie has expired.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// An answer to a browser; a stream in it ends with the browser's session.
pub fn bound_to(session: SignIn, state: &AppState, answer: Response) -> Response {
    let media = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !media.is_some_and(|media| media.starts_with(b"text/event-stream")) {
        return answer;
    }
    answer.map(|body| {
        let stream = CookieStream {
            body: body.into_data_stream(),
            sign_outs: state.auth.sign_outs(),
            look_again: interval(LOOK_AGAIN),
            state: state.clone(),
            session,
        };
        Body::from_stream(stream::unfold(stream, |mut stream| async move {
            let chunk = stream.next().await?;
            Some((chunk, stream))
        }))
    })
}

/// What is streamed to one browser.
struct CookieStream {
    state: AppState,
    session: SignIn,
    body: BodyDataStream,
    sign_outs: watch::Receiver<u64>,
    look_again: Interval,
}

impl CookieStream {
    /// What is sent next; `None` when nothing more may be.
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            let chunk = tokio::select! {
                // The state has the sender, so this never fails.
                Ok(()) = self.sign_outs.changed() => None,
                _ = self.look_again.tick() => None,
                chunk = self.body.next() => Some(chunk),
            };
            if !self.state.auth.is_valid(&self.session, self.state.now()) {
                return None;
            }
            if let Some(chunk) = chunk {
                return chunk;
            }
        }
    }
}
