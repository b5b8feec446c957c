//! Clients of the servers that help to remember: the Context Service and an embeddings endpoint. Neither is
//! a model. They live here because this crate is the one that speaks HTTP to servers with keys.

mod context_service;
mod embeddings;

pub use context_service::{ContextService, ContextServiceError, Facts};
pub use embeddings::{Embeddings, EmbeddingsError};

/// Why a body was not read.
pub(crate) enum BodyError {
    /// The connection broke or took too long.
    Broken(reqwest::Error),
    /// There is more of it than the limit.
    TooLarge,
}

/// Reads a response's body of at most `limit` bytes.
pub(crate) async fn read_body(
    mut response: reqwest::Response,
    limit: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            return Err(BodyError::TooLarge);
        }
    }
    Ok(body)
}
