//! The server as a whole: what it needs, how it starts, how long it runs.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{Coordinator, open_files};

use crate::about::About;
use crate::access_log::{AccessLog, Lines};
use crate::api::Turns;
use crate::auth::{Account, Auth, Links, Setup};
use crate::checkup::Checkup;
use crate::client::ProxyNetwork;
use crate::events::EventFan;
use crate::guard::Names;
use crate::notify::{Notifier, Notify, Presence};
use crate::page::{Drafts, Previews};
use crate::queue::Queues;
use crate::skill_drafts::SkillTrials;
use crate::state::{AppState, Shared};
use crate::{listen, routes};

/// The files of an encrypted server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates in PEM, the server's own first.
    pub certificates: PathBuf,
    /// Its key in PEM.
    pub key: PathBuf,
}

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    pub address: SocketAddr,
    /// Names besides the address that requests may have.
    pub allowed_hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` names the client.
    pub trusted_proxies: Vec<ProxyNetwork>,
    pub tls: Option<TlsFiles>,
    /// Whether others than this machine may be served unencrypted.
    pub allows_plain: bool,
    /// Who the token in the data directory stands for.
    pub owner: String,
    pub accounts: Vec<Account>,
    /// Directories that no task works in.
    pub refused_workspaces: Vec<PathBuf>,
    /// What the program knows of itself.
    pub about: About,
    /// The path under which a proxy shows it, such as `/agents`; empty for none.
    pub base_path: String,
    /// Where notices for the owner go; `None` for nowhere.
    pub notify: Option<Notify>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`{address}` can be reached from other machines, and the connection would not be encrypted"
    )]
    Plain { address: SocketAddr },
    #[error("`{address}` cannot be listened on")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the token's file `{}` cannot be used", path.display())]
    Token { path: PathBuf, source: io::Error },
    #[error("the certificate `{}` or its key `{}` cannot be used: {problem}", files.certificates.display(), files.key.display())]
    Tls { files: TlsFiles, problem: String },
    #[error("there are two users `{name}`")]
    SameName { name: String },
    #[error("`{path}` is not a path to show pages under")]
    BasePath { path: String },
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    state: AppState,
    lines: Lines,
    stop: CancellationToken,
}

impl Server {
    /// Listens at the address.
    pub async fn bind(coordinator: Coordinator, options: Options) -> Result<Self, Error> {
        let wanted = options.address;
        if !wanted.ip().is_loopback() && options.tls.is_none() && !options.allows_plain {
            return Err(Error::Plain { address: wanted });
        }
        check_names(&options)?;
        let base = base_path(&options.base_path)?;
        let tls = options.tls.map(acceptor).transpose()?;
        let failed = |source| Error::Listen { address: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let path = coordinator.storage().token_file();
        let setup = Setup {
            owner: options.owner,
            accounts: options.accounts,
            port: address.port(),
            is_tls: tls.is_some(),
        };
        let auth = Auth::open(&coordinator.storage(), setup);
        let stop = CancellationToken::new();
        let (access_log, lines) = AccessLog::new();
        let state = AppState::new(Shared {
            auth: auth.map_err(|source| Error::Token { path, source })?,
            events: EventFan::new(stop.clone()),
            about: options.about,
            previews: Previews::default(),
            drafts: Drafts::new(coordinator.storage().drafts_directory()),
            queues: Queues::open(coordinator.storage().queue_directory()),
            trials: SkillTrials::default(),
            presence: Presence::default(),
            notify: options.notify,
            checkup: Checkup::default(),
            turns: Turns::default(),
            names: Names::new(address, &options.allowed_hosts),
            trusted_proxies: options.trusted_proxies,
            access_log,
            address,
            is_tls: tls.is_some(),
            refused_workspaces: options.refused_workspaces,
            base,
            openapi: routes::openapi(),
            coordinator,
        });
        Ok(Self { listener, tls, state, lines, stop })
    }

    pub fn address(&self) -> SocketAddr {
        self.state.address
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        self.state.url("/")
    }

    /// A link that signs a browser in as the owner, once. The code is behind the `#`, which browsers do not send.
    pub fn login_link(&self) -> io::Result<String> {
        login_link(&self.state.coordinator, &self.state.url(""), self.state.auth.owner())
    }

    /// Answers until `stop`. What other processes need to find this one is in a file meanwhile.
    pub async fn run(self, stop: CancellationToken) -> Result<(), windlass_coordinator::Error> {
        let Self { listener, tls, state, lines, stop: stop_readers } = self;
        let file = AddressFile::write(&state);
        let most = listen::MAX_CONNECTIONS.min(open_files::connection_capacity());
        let (log, router) = (state.coordinator.storage().access_log_file(), routes::all(&state));
        let mut jobs = JoinSet::new();
        let (until, readers, stop_gathering) = (stop.clone(), stop_readers, stop.clone());
        jobs.spawn(async move {
            // A stream ends only when its token is cancelled.
            until.cancelled().await;
            readers.cancel();
            Ok(())
        });
        jobs.spawn(async move {
            listen::serve(listener, tls, router, most, stop).await;
            Ok(())
        });
        let tailing = state.clone();
        jobs.spawn(async move { tailing.events.run(&tailing.coordinator).await });
        let (sending, until) = (state.clone(), stop_gathering.clone());
        jobs.spawn(async move {
            let commits = sending.previews.changes();
            let send = sending.queues.clone().run(sending.coordinator.clone(), commits);
            until.run_until_cancelled(send).await;
            Ok(())
        });
        if state.notify.is_some() {
            let (telling, until) = (state.clone(), stop_gathering.clone());
            jobs.spawn(async move { tell_owner(&telling, &until).await });
        }
        let (gathering, until) = (state.clone(), stop_gathering);
        jobs.spawn(async move {
            let gather = gathering.previews.clone().run(gathering.coordinator.clone());
            until.run_until_cancelled(gather).await.unwrap_or(Ok(()))
        });
        let trials = state.trials.clone();
        drop(state);
        jobs.spawn(async move {
            lines.run(log).await;
            Ok(())
        });
        let mut outcome = Ok(());
        while let Some(ended) = jobs.join_next().await {
            let ended = ended
                .unwrap_or_else(|error| Err(windlass_coordinator::Error::Job(error.to_string())));
            outcome = outcome.and(ended);
        }
        trials.finish().await;
        drop(file);
        outcome
    }
}

/// Tells the owner that something waits, until the server stops.
async fn tell_owner(
    state: &AppState,
    stop: &CancellationToken,
) -> Result<(), windlass_coordinator::Error> {
    let Some(notify) = &state.notify else { return Ok(()) };
    let (coordinator, presence) = (&state.coordinator, &state.presence);
    let notifier = Notifier { coordinator, presence, notify, inbox: state.url("/inbox") };
    stop.run_until_cancelled(notifier.run()).await.unwrap_or(Ok(()))
}

fn check_names(options: &Options) -> Result<(), Error> {
    let mut names = vec![options.owner.as_str()];
    for account in &options.accounts {
        if names.contains(&account.name.as_str()) {
            return Err(Error::SameName { name: account.name.clone() });
        }
        names.push(&account.name);
    }
    Ok(())
}

/// A path of plain parts, without a slash at its end.
fn base_path(text: &str) -> Result<String, Error> {
    let path = text.trim_end_matches('/');
    let is_plain = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        !part.is_empty() && part != ".." && part != "." && part.bytes().all(is_plain)
    };
    let parts = path.strip_prefix('/').map(|rest| rest.split('/').all(is_plain));
    match path.is_empty() || parts == Some(true) {
        true => Ok(path.to_owned()),
        false => Err(Error::BasePath { path: text.to_owned() }),
    }
}

fn acceptor(files: TlsFiles) -> Result<TlsAcceptor, Error> {
    let config = || -> Result<ServerConfig, Box<dyn std::error::Error>> {
        let certificates =
            CertificateDer::pem_file_iter(&files.certificates)?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_file(&files.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    };
    match config() {
        Ok(config) => Ok(TlsAcceptor::from(Arc::new(config))),
        Err(error) => {
            let problem = error.to_string();
            Err(Error::Tls { files, problem })
        }
    }
}

/// Says where the server listens, while it does.
struct AddressFile {
    path: PathBuf,
    text: String,
}

impl AddressFile {
    /// If it cannot be written, the person gives the address to `open`.
    fn write(state: &AppState) -> Self {
        let path = state.coordinator.storage().address_file();
        let text = state.url("");
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()));
        if let Err(error) = written {
            tracing::warn!(%error, path = %path.display(), "the server's address was not written");
        }
        Self { path, text }
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // Another server of the same data directory may have written its own meanwhile.
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A link that signs a browser in once, at the server of this data directory that is reached at `url`.
pub fn login_link(coordinator: &Coordinator, url: &str, user: &str) -> io::Result<String> {
    let links = Links::new(coordinator.storage().login_directory());
    Ok(format!("{url}/login#{}", links.make(user, coordinator.now())?))
}

/// Where a server of this data directory listens, as it says itself.
pub fn address_of(coordinator: &Coordinator) -> Option<String> {
    let text = std::fs::read_to_string(coordinator.storage().address_file()).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
