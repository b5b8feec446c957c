//! Which models a server has, as it says itself.

use std::time::Duration;

use serde::Deserialize;

use crate::http::{Cause, cause, innermost};
use crate::memory::{BodyError, read_body};
use crate::open::{build_client, parse_base, provider_headers};
use crate::{Provider, redact};

/// How long a server may take to list its models; a person waits for it.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The largest list that is read.
const MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct Listing {
    data: Vec<ModelEntry>,
}

#[derive(Deserialize)]
struct ModelEntry {
    id: String,
}

/// Asks a server which models it has. The error says in words why it does not tell.
pub async fn list_models(provider: &Provider) -> Result<Vec<String>, String> {
    let base = parse_base(&provider.base)?;
    let headers = provider_headers(provider).map_err(|error| error.to_string())?;
    let client = build_client(&base).map_err(|error| innermost(&error))?;
    let mut url = base.clone();
    url.set_path(&format!("{}/models", base.path().trim_end_matches('/')));
    let asked = client.get(url).headers(headers).timeout(TIMEOUT).send();
    let unreachable = |error: reqwest::Error| {
        let error = error.without_url();
        match cause(&error) {
            Cause::Refused => "not running".to_owned(),
            _ if error.is_timeout() => "it does not answer".to_owned(),
            Cause::Tls(_) | Cause::Closed | Cause::Other => {
                redact::clean(&innermost(&error), provider.key.as_ref())
            }
        }
    };
    let response = asked.await.map_err(unreachable)?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("it answers with status {}", status.as_u16()));
    }
    let bytes = read_body(response, MAX_BYTES).await.map_err(|error| match error {
        BodyError::Broken(error) => unreachable(error),
        BodyError::TooLarge => format!("its list has more than {MAX_BYTES} bytes"),
    })?;
    let listing: Listing = serde_json::from_slice(&bytes)
        .map_err(|_| "it answers with something that is not a list of models".to_owned())?;
    let mut names: Vec<_> = listing.data.into_iter().map(|listed| listed.id).collect();
    names.sort();
    Ok(names)
}
