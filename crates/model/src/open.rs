//! From configuration to models: one client per base, shared by all models there.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};

use reqwest::{Client, Url, redirect};
use secrecy::SecretString;

use crate::{
    Model, ModelName, Prices, Retry, Script, http::Endpoint, script::ScriptModel,
    served::ServedModel,
};

/// How long connecting may take before the server counts as unreachable.
const CONNECT: Duration = Duration::from_secs(15);

/// What all models need to know. Comes from configuration as a whole.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The providers by the name models are prefixed with.
    pub providers: BTreeMap<String, Provider>,
    /// How failures are retried.
    pub retry: Retry,
    /// How long a server may send nothing.
    pub stall: Duration,
    /// What models cost where the provider does not say.
    pub prices: Prices,
}

/// Where a provider is, what it speaks, and what it wants to see. (ES-351, ES-352)
#[derive(Clone)]
pub struct Provider {
    /// The protocol it speaks.
    pub dialect: Dialect,
    /// Its base URL. `/chat/completions` or `/v1/messages` is added to it.
    pub base: String,
    /// The key; may be missing for a server on this machine.
    pub key: Option<SecretString>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A base may hold a password, so only what may be shown of it is.
        let base =
            parse_base(&self.base).map_or_else(|_| "not a URL".to_owned(), |base| shown(&base));
        f.debug_struct("Provider")
            .field("dialect", &self.dialect)
            .field("base", &base)
            .field("key", &self.key)
            .finish()
    }
}

/// The protocols we speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Chat Completions, as OpenAI, LiteLLM and most others serve it.
    OpenAi,
    Anthropic,
}

/// Why a model cannot be used as configured.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SetupError {
    /// No provider of that name is configured.
    #[error("model `{model}` names the provider `{}`, which is not configured ({known})", .model.provider())]
    #[expect(missing_docs, reason = "the message says it")]
    UnknownProvider { model: ModelName, known: String },
    /// The base is not a URL we can use.
    #[error("the base of provider `{provider}` is not an http or https URL: {detail}")]
    #[expect(missing_docs, reason = "the message says it")]
    BadBase { provider: String, detail: String },
    /// A server elsewhere needs a key. (ES-351)
    #[error("provider `{provider}` at {base} needs an API key, and none is set")]
    #[expect(missing_docs, reason = "the message says it")]
    KeyMissing { provider: String, base: String },
    /// The key cannot be sent.
    #[error("the API key of provider `{provider}` holds characters no header can carry")]
    #[expect(missing_docs, reason = "the message says it")]
    BadKey { provider: String },
    /// No client, most likely for want of trusted certificates.
    #[error("cannot set up connections to {base}: {detail}")]
    #[expect(missing_docs, reason = "the message says it")]
    Client { base: String, detail: String },
    /// The script cannot be read.
    #[error("cannot use the script `{path}`: {detail}")]
    #[expect(missing_docs, reason = "the message says it")]
    Script { path: String, detail: String },
}

/// Opens models. Keeps one client per base, so that connections are shared and reused.
#[derive(Debug)]
pub struct Models {
    settings: Settings,
    clients: Mutex<HashMap<String, Client>>,
}

impl Default for Settings {
    fn default() -> Self {
        let (retry, prices) = (Retry::default(), Prices::default());
        Self { providers: BTreeMap::new(), retry, stall: crate::STALL, prices }
    }
}

impl Models {
    /// Keeps the settings; connects to nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, clients: Mutex::default() }
    }

    /// Makes a model ready to be asked. No request is sent.
    pub fn open(&self, name: &ModelName) -> Result<Arc<dyn Model>, SetupError> {
        if let Some(path) = name.script() {
            let script = Script::load(path).map_err(|detail| SetupError::Script {
                path: path.display().to_string(),
                detail: detail.to_string(),
            })?;
            return Ok(Arc::new(ScriptModel::new(name.clone(), script)));
        }
        let provider = self.settings.providers.get(name.provider()).ok_or_else(|| {
            let known: Vec<_> = self.settings.providers.keys().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "no provider is".to_owned(),
                false => format!("configured: {}", known.join(", ")),
            };
            SetupError::UnknownProvider { model: name.clone(), known }
        })?;
        let (endpoint, dialect) = (self.endpoint(name, provider)?, provider.dialect);
        Ok(Arc::new(ServedModel { endpoint, dialect }))
    }

    fn endpoint(&self, name: &ModelName, provider: &Provider) -> Result<Endpoint, SetupError> {
        let who = || name.provider().to_owned();
        let base = parse_base(&provider.base)
            .map_err(|detail| SetupError::BadBase { provider: who(), detail })?;
        let shown = shown(&base);
        if provider.key.is_none() && !loopback(&base) && base.password().is_none() {
            return Err(SetupError::KeyMissing { provider: who(), base: shown });
        }
        let headers = match provider.dialect {
            Dialect::OpenAi => crate::openai::headers(provider.key.as_ref()),
            Dialect::Anthropic => crate::anthropic::headers(provider.key.as_ref()),
        };
        Ok(Endpoint {
            name: name.clone(),
            url: request_url(&base, provider.dialect),
            client: self.client(&base, &shown)?,
            base: shown,
            headers: headers.ok_or_else(|| SetupError::BadKey { provider: who() })?,
            key: provider.key.clone(),
            retry: self.settings.retry,
            stall: self.settings.stall,
            price: self.settings.prices.of(name),
        })
    }

    fn client(&self, base: &Url, shown: &str) -> Result<Client, SetupError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(shown) {
            return Ok(client.clone());
        }
        let client = build_client(base).map_err(|error| {
            let detail = error.to_string();
            SetupError::Client { base: shown.to_owned(), detail }
        })?;
        clients.insert(shown.to_owned(), client.clone());
        Ok(client)
    }
}

pub(crate) fn build_client(base: &Url) -> Result<Client, reqwest::Error> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error says that someone installed one before us, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    // A redirected POST becomes a GET, and a key must not follow it anywhere.
    let mut client = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")));
    if base.scheme() == "http" {
        // Reading the system's certificates takes milliseconds at start, and they may be missing.
        client = client.tls_certs_only([]);
    }
    if loopback(base) {
        client = client.no_proxy();
    }
    client.build()
}

pub(crate) fn parse_base(text: &str) -> Result<Url, String> {
    // The text may hold a password, so it is not repeated.
    let url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(format!("its scheme is `{scheme}`")),
    }
}

/// Whether a server is on this machine, where a key is optional.
pub(crate) fn loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost" || host.ends_with(".localhost"), |ip| ip.is_loopback())
}

/// The base without what is nobody's business.
pub(crate) fn shown(base: &Url) -> String {
    let mut base = base.clone();
    // Fails only for URLs without a host, which `parse_base` refuses.
    let _ = base.set_username("");
    let _ = base.set_password(None);
    base.set_query(None);
    base.set_fragment(None);
    base.as_str().trim_end_matches('/').to_owned()
}

fn request_url(base: &Url, dialect: Dialect) -> Url {
    let path = base.path().trim_end_matches('/');
    let path = match dialect {
        Dialect::OpenAi => format!("{path}/chat/completions"),
        Dialect::Anthropic if path.ends_with("/v1") => format!("{path}/messages"),
        Dialect::Anthropic => format!("{path}/v1/messages"),
    };
    let mut url = base.clone();
    url.set_path(&path);
    url
}
