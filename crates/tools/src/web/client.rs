//! One GET through the rules: addresses judged after resolution, redirects followed by hand, everything
//! bounded, a passing fault tried once more (ES-207).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, redirect};
use url::{Host, Url};
use windlass_sandbox::network::{HostRules, Refusal};

use super::Reach;

/// The largest answer that is read; a page this long is a download.
pub(super) const MAX_BYTES: usize = 10 << 20;
/// How long a whole fetch may take, redirects and the second try included.
pub(super) const MAX_TIME: Duration = Duration::from_secs(60);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server may send nothing.
const READ: Duration = Duration::from_secs(20);
/// The most redirects that are followed; no honest site needs more.
const MAX_REDIRECTS: usize = 5;
/// The pause between a temporary error and the second try.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest wait a server may ask for before the second try.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The user agent that servers see.
pub(super) const AGENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));

/// A page as the server sent it.
pub(super) struct Fetched {
    /// Its address after all redirects.
    pub url: Url,
    /// Its content type, in lower case, with parameters.
    pub content_type: String,
    pub bytes: Vec<u8>,
    /// Whether the page was longer than the limit.
    pub cut: bool,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("`{0}` is not an address that can be fetched; use a whole http or https URL")]
    NotAUrl(String),
    #[error("`{0}:` addresses are refused; only http and https are fetched")]
    Scheme(String),
    #[error(transparent)]
    Refused(#[from] RefusedAddress),
    #[error("`{host}` is not among the hosts that may be reached (`sandbox.allow_hosts`)")]
    Host { host: String },
    #[error("more than {MAX_REDIRECTS} redirects")]
    TooManyRedirects,
    #[error("it redirects without saying where to")]
    NoLocation,
    #[error("the server answered {0}")]
    Status(StatusCode),
    #[error("it could not be reached: {0}")]
    Unreachable(String),
    #[error("it took longer than {} s", MAX_TIME.as_secs())]
    TooSlow,
}

/// An address that the rules refuse.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "`{host}` is at {address}, which is {why}; such addresses are refused unless `web.allow_addresses` \
     in the user's configuration allows them"
)]
pub(crate) struct RefusedAddress {
    host: String,
    address: IpAddr,
    why: Refusal,
}

/// Fetches pages through the rules.
#[derive(Clone)]
pub(super) struct Fetcher {
    /// Made for the first page: it reads every certificate that the system trusts, which takes longer
    /// than the rest of a start.
    client: Arc<OnceLock<Client>>,
    reach: Reach,
}

impl Fetcher {
    pub fn new(reach: Reach) -> Self {
        Self { client: Arc::default(), reach }
    }

    fn client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        install_tls();
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(READ)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(AGENT)
            .dns_resolver(Arc::new(FilteringResolver(self.reach.clone())))
            .build()
            .map_err(|error| Error::Unreachable(error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The page at an address, wherever it redirects to.
    pub async fn fetch(&self, address: &str) -> Result<Fetched, Error> {
        let url = Url::parse(address).map_err(|_| Error::NotAUrl(address.to_owned()))?;
        tokio::time::timeout(MAX_TIME, self.follow(url)).await.unwrap_or(Err(Error::TooSlow))
    }

    async fn follow(&self, mut url: Url) -> Result<Fetched, Error> {
        for _ in 0..=MAX_REDIRECTS {
            self.reach.judge(&url)?;
            let response = self.get(&url).await?;
            if !response.status().is_redirection() {
                return read(url, response).await;
            }
            let target = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let target = target.and_then(|to| url.join(to).ok()).ok_or(Error::NoLocation)?;
            url = target;
        }
        Err(Error::TooManyRedirects)
    }

    /// Sends one request. A temporary error is tried once more, after a pause.
    async fn get(&self, url: &Url) -> Result<Response, Error> {
        let accept =
            "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5";
        let client = self.client()?;
        let send = || client.get(url.clone()).header(ACCEPT, accept).send();
        let pause = match send().await {
            Ok(response) if !is_passing(response.status()) => return check_status(response),
            Ok(response) => retry_after(&response),
            Err(error) => match refusal_in(&error) {
                Some(refused) => return Err(refused.into()),
                None => PAUSE,
            },
        };
        tokio::time::sleep(pause).await;
        match send().await {
            Ok(response) => check_status(response),
            Err(error) => Err(unreachable(&error)),
        }
    }
}

impl Reach {
    /// What can be checked before resolving: the scheme, the host's name, an address written as one.
    pub(crate) fn judge(&self, url: &Url) -> Result<(), Error> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::Scheme(url.scheme().to_owned()));
        }
        let host = url.host_str().ok_or_else(|| Error::NotAUrl(url.to_string()))?.to_owned();
        if !self.hosts.allow(&host, url.port_or_known_default().unwrap_or(0)) {
            return Err(Error::Host { host });
        }
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        let refused = |why| RefusedAddress { host, address, why };
        Ok(self.addresses.check(address).map_err(refused)?)
    }
}

fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

fn retry_after(response: &Response) -> Duration {
    let asked = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
    let asked = asked.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    asked.unwrap_or(PAUSE).min(MAX_PAUSE)
}

fn check_status(response: Response) -> Result<Response, Error> {
    let status = response.status();
    let fine = status.is_success() || status.is_redirection();
    if fine { Ok(response) } else { Err(Error::Status(status)) }
}

async fn read(url: Url, mut response: Response) -> Result<Fetched, Error> {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    let (mut bytes, mut cut) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        let room = MAX_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Fetched { url, content_type, bytes, cut })
}

/// The cause of an error, in one line. It leaves out the address, which may contain a secret.
pub(super) fn unreachable(error: &reqwest::Error) -> Error {
    if let Some(refused) = refusal_in(error) {
        return refused.into();
    }
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let what = match error {
        error if error.is_timeout() => "it did not answer in time".to_owned(),
        _ => deepest.to_string(),
    };
    Error::Unreachable(windlass_core::text::one_line(&what, 200))
}

fn refusal_in(error: &reqwest::Error) -> Option<RefusedAddress> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<RefusedAddress>() {
            return Some(refused.clone());
        }
        source = cause.source();
    }
    None
}

/// Resolves names and gives only addresses that the rules allow.
struct FilteringResolver(Reach);

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0.clone();
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = (reach.lookup)(host.clone()).await?;
            let mut allowed = Vec::new();
            let mut refused = None;
            for address in found {
                match reach.addresses.check(address) {
                    Ok(()) => allowed.push(SocketAddr::new(address, 0)),
                    Err(why) => refused = refused.or(Some((address, why))),
                }
            }
            match refused {
                // One bad address spoils a name: a mixed answer is how rebinding begins.
                Some((address, why)) => Err(RefusedAddress { host, address, why }.into()),
                None => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("hosts", &self.reach.hosts as &HostRules).finish()
    }
}

/// Chooses the provider of cryptography, once.
pub(crate) fn install_tls() {
    // An error says that someone installed one before us, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
