//! From configuration to models: one client per base, shared by all models there.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, Once, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use windlass_core::reasoning::Effort;

use crate::{
    Auth, EffortForm, Efforts, KnownModel, KnownProvider, Model, ModelName, Prices, ReasoningUse,
    Retry, Script, Vision, Wire,
    http::{Endpoint, request_headers},
    script::ScriptModel,
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
    /// Which models can see pictures, by their names; else the table of known models says it.
    pub vision: BTreeMap<String, bool>,
}

/// Where a provider is, what it speaks, and what it wants to see. (ES-351, ES-352)
#[derive(Clone)]
pub struct Provider {
    /// The protocol it speaks.
    pub wire: Wire,
    /// Its base URL, to which the path of the wire is added.
    pub base: String,
    /// The key; may be missing for a server on this machine.
    pub key: Option<SecretString>,
    /// How the key is sent.
    pub auth: Auth,
    /// What is added to the base for Chat Completions; `{model}` stands for the model.
    pub chat_path: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// Parameters of every request's URL.
    pub query: Vec<(String, String)>,
    /// What becomes of its models' reasoning.
    pub reasoning: ReasoningUse,
    /// How Chat Completions say an effort.
    pub effort_form: EffortForm,
    /// Its words for efforts.
    pub efforts: Efforts,
    /// The most tokens its models can answer with, where that is configured.
    pub max_output: Option<u32>,
}

impl Provider {
    /// A provider that has nothing special.
    pub fn new(wire: Wire, base: &str, key: Option<SecretString>) -> Self {
        Self {
            wire,
            base: base.to_owned(),
            key,
            auth: Auth::ByWire,
            chat_path: "/chat/completions".to_owned(),
            headers: Vec::new(),
            query: Vec::new(),
            reasoning: wire.reasoning(),
            effort_form: EffortForm::Field,
            efforts: wire.efforts(),
            max_output: None,
        }
    }

    /// A provider that is known by name, with what its entry says.
    pub fn known(entry: &KnownProvider, wire: Wire, base: &str, key: Option<SecretString>) -> Self {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let mut provider = Self::new(wire, base, key);
        provider.auth = entry.auth;
        entry.chat_path.clone_into(&mut provider.chat_path);
        provider.query = pairs(entry.query);
        // What an entry says of reasoning is about the wire that the provider speaks.
        if wire == entry.wire || wire == entry.wire_elsewhere {
            provider.reasoning = entry.reasoning;
            provider.effort_form = entry.effort_form;
            provider.efforts = entry.efforts;
        }
        provider
    }

    /// The efforts that it takes, in words.
    pub fn efforts_in_words(&self) -> String {
        let words = self.efforts.iter().map(|(effort, _)| effort.as_str());
        match self.reasoning {
            ReasoningUse::Off => "none at all".to_owned(),
            _ => words.collect::<Vec<_>>().join(", "),
        }
    }

    /// Whether it takes this effort.
    pub fn can_take(&self, effort: Effort) -> bool {
        self.reasoning != ReasoningUse::Off
            && self.efforts.iter().any(|(known, _)| *known == effort)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A base may hold a password, and a header a key, so only what may be shown of them is.
        let base = parse_base(&self.base)
            .map_or_else(|_| "not a URL".to_owned(), |base| printable_base(&base));
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Provider")
            .field("wire", &self.wire)
            .field("base", &base)
            .field("key", &self.key)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
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
    /// A configured header cannot be sent.
    #[error("the header `{header}` of provider `{provider}` cannot be sent")]
    #[expect(missing_docs, reason = "the message says it")]
    BadHeader { provider: String, header: String },
    /// The provider has no word for the effort.
    #[error("`{model}` does not take the effort `{effort}`; it takes {takes}")]
    #[expect(missing_docs, reason = "the message says it")]
    Effort { model: ModelName, effort: Effort, takes: String },
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
        let (providers, vision) = (BTreeMap::new(), BTreeMap::new());
        Self { providers, retry, stall: crate::STALL, prices, vision }
    }
}

impl Models {
    /// Keeps the settings; connects to nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, clients: Mutex::default() }
    }

    /// Makes a model ready to be asked; its provider decides how much it thinks. No request is sent.
    pub fn open(&self, name: &ModelName) -> Result<Arc<dyn Model>, SetupError> {
        self.open_with(name, None)
    }

    /// As `open`, for a model that thinks this much.
    pub fn open_with(
        &self,
        name: &ModelName,
        effort: Option<Effort>,
    ) -> Result<Arc<dyn Model>, SetupError> {
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
        if let Some(effort) = effort.filter(|effort| !provider.can_take(*effort)) {
            let takes = provider.efforts_in_words();
            return Err(SetupError::Effort { model: name.clone(), effort, takes });
        }
        let known = KnownModel::find(name);
        let most = known.and_then(|known| known.max_output);
        Ok(Arc::new(ServedModel {
            endpoint: self.endpoint(name, provider)?,
            effort,
            effort_form: provider.effort_form,
            efforts: provider.efforts,
            reasoning: provider.reasoning,
            vision: self.vision(name),
            reasons: known.is_none_or(|known| known.reasons),
            max_output: provider.max_output.or(most.and_then(|most| u32::try_from(most).ok())),
            summaries_refused: AtomicBool::new(false),
        }))
    }

    /// Whether a model can see. One that nothing is known of cannot: it would refuse the whole request.
    fn vision(&self, name: &ModelName) -> Vision {
        let said = self.settings.vision.get(&name.to_string()).copied();
        let known = || KnownModel::find(name).is_some_and(|known| known.sees);
        if said.unwrap_or_else(known) { Vision::Seeing } else { Vision::Blind }
    }

    fn endpoint(&self, name: &ModelName, provider: &Provider) -> Result<Endpoint, SetupError> {
        let who = || name.provider().to_owned();
        let base = parse_base(&provider.base)
            .map_err(|detail| SetupError::BadBase { provider: who(), detail })?;
        let shown = printable_base(&base);
        if provider.key.is_none() && !loopback(&base) && base.password().is_none() {
            return Err(SetupError::KeyMissing { provider: who(), base: shown });
        }
        let headers = provider_headers(provider).map_err(|wrong| match wrong {
            BadHeader::Key => SetupError::BadKey { provider: who() },
            BadHeader::Named(header) => SetupError::BadHeader { provider: who(), header },
        })?;
        Ok(Endpoint {
            name: name.clone(),
            wire: provider.wire,
            url: request_url(&base, provider, name.model()),
            client: self.client(&base, &shown)?,
            base: shown,
            headers,
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

/// What cannot be sent as a header.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadHeader {
    #[error("its key holds characters no header can carry")]
    Key,
    #[error("the header `{0}` cannot be sent")]
    Named(String),
}

/// The headers of every request to a provider.
pub(crate) fn provider_headers(provider: &Provider) -> Result<HeaderMap, BadHeader> {
    let key = provider.key.as_ref();
    let headers = match (provider.wire, provider.auth) {
        (Wire::Chat | Wire::Responses, Auth::ByWire) => crate::chat::headers(key),
        (Wire::Anthropic, Auth::ByWire) => crate::anthropic::headers(key),
        (_, Auth::ApiKey) => {
            let key = key.map(|key| key.expose_secret().trim().to_owned());
            request_headers(HeaderName::from_static("api-key"), key)
        }
    };
    let mut headers = headers.ok_or(BadHeader::Key)?;
    for (header, value) in &provider.headers {
        let (name, value) = (HeaderName::try_from(header), HeaderValue::try_from(value));
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err(BadHeader::Named(header.clone()));
        };
        // It may be a key.
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
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
    } else if let Some(tls) = crate::tls::kept() {
        client = client.tls_backend_preconfigured(tls);
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
pub(crate) fn printable_base(base: &Url) -> String {
    let mut base = base.clone();
    // Fails only for URLs without a host, which `parse_base` refuses.
    let _ = base.set_username("");
    let _ = base.set_password(None);
    base.set_query(None);
    base.set_fragment(None);
    base.as_str().trim_end_matches('/').to_owned()
}

fn request_url(base: &Url, provider: &Provider, model: &str) -> Url {
    let path = base.path().trim_end_matches('/');
    let path = match provider.wire {
        Wire::Chat => format!("{path}{}", provider.chat_path.replace("{model}", model)),
        Wire::Responses => format!("{path}/responses"),
        Wire::Anthropic if path.ends_with("/v1") => format!("{path}/messages"),
        Wire::Anthropic => format!("{path}/v1/messages"),
    };
    let mut url = base.clone();
    url.set_path(&path);
    for (name, value) in &provider.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    url
}
