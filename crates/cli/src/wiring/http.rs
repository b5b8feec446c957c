//! From configuration and flags to the HTTP server of `serve`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use windlass_coordinator::Coordinator;
use windlass_server::{
    About, Access, Account, Error, Notify, Options, Server, Setting, Skill, SkillList, SkillWriter,
    TlsFiles, TokenHash,
};

use super::{Environment, skills};
use crate::args::values;
use crate::config::Config;
use crate::config::types::Tables;
use crate::failure::Failure;
use crate::show::note;

/// Where `serve` listens when nobody says so.
const USUAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7878);

/// The address of the API and the page.
#[derive(Clone, Debug, Args)]
pub struct HttpArgs {
    /// The address of the API and the page [default: `server.listen`]
    #[arg(long, value_name = "ADDRESS", value_parser = values::address)]
    pub listen: Option<SocketAddr>,
    /// Serve other machines without encryption
    #[arg(long)]
    pub plain_http: bool,
    /// Open no socket: no API and no page
    #[arg(long, conflicts_with_all = ["listen", "plain_http"])]
    pub no_http: bool,
}

/// A server that listens at the configured address. If nobody chose a port and the usual one is taken, it uses a free port.
pub async fn listen(
    environment: &Environment,
    config: &Config,
    args: &HttpArgs,
    coordinator: &Coordinator,
    writer: Arc<dyn SkillWriter>,
) -> Result<Option<Server>, Failure> {
    if args.no_http {
        return Ok(None);
    }
    refuse_second(coordinator).await?;
    let wanted = args.listen.or(config.server.listen);
    let options = Options {
        address: wanted.unwrap_or(USUAL),
        allowed_hosts: config.server.allowed_hosts.clone(),
        // The setting was read as addresses and networks.
        trusted_proxies: config
            .server
            .trusted_proxies
            .iter()
            .filter_map(|one| one.parse().ok())
            .collect(),
        tls: tls_files(environment, config)?,
        allows_plain: args.plain_http,
        owner: environment.user(),
        accounts: accounts(&config.server.users)?,
        refused_workspaces: ["HOME"]
            .iter()
            .filter_map(|name| environment.variables.get(*name))
            .map(PathBuf::from)
            .chain([PathBuf::from("/"), environment.data.clone()])
            .collect(),
        about: About { skill_writer: Some(writer), ..about(environment, config) },
        base_path: config.server.base_path.clone().unwrap_or_default(),
        notify: notify(config),
    };
    let bound = match Server::bind(coordinator.clone(), options.clone()).await {
        Err(Error::Listen { .. }) if wanted.is_none() => {
            note(&format!("notice: `{USUAL}` is taken by another program; a free port is used"));
            let free = SocketAddr::new(USUAL.ip(), 0);
            Server::bind(coordinator.clone(), Options { address: free, ..options }).await
        }
        bound => bound,
    };
    bound.map(Some).map_err(failure)
}

/// Where the owner gets notices that something waits.
fn notify(config: &Config) -> Option<Notify> {
    let server = &config.server;
    let token = server.notify_token.as_ref().map(|token| token.expose_secret().to_owned());
    Some(Notify {
        url: server.notify_url.as_ref()?.expose().clone(),
        token,
        after: server.notify_after_seconds,
        page: server.public_url.as_ref().map(|url| url.expose().clone()),
    })
}

/// One data directory has one page: a second would take over the address that `windlass open` goes by.
async fn refuse_second(coordinator: &Coordinator) -> Result<(), Failure> {
    // Without a service the address is that of one which was killed.
    let Ok(url) = running(coordinator) else { return Ok(()) };
    let host = url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    let answers = tokio::net::TcpStream::connect(host.unwrap_or_default()).await.is_ok();
    if !answers {
        return Ok(());
    }
    Err(Failure::usage(
        format!("a server already runs on `{}`, at {url}", data_directory(coordinator)),
        "`windlass open` opens its page; `windlass worker` or `serve --no-http` helps it with its tasks; \
         use another data directory with `--data DIR`",
    ))
}

fn data_directory(coordinator: &Coordinator) -> String {
    let database: PathBuf = coordinator.storage().database();
    database.parent().map(|path| path.display().to_string()).unwrap_or_default()
}

/// What the page shows of the configuration and of the skills for work outside of any project.
fn about(environment: &Environment, config: &Config) -> About {
    let rows = config.report().into_iter();
    let settings =
        rows.map(|row| Setting { key: row.key, value: row.effective, source: row.source });
    let root = Path::new("/");
    let directories = skills::directories(environment, root);
    let approved = skills::approval_fn(environment.data.clone(), root);
    let read = move || {
        let found = windlass_skills::Skills::load(&directories, &approved);
        let skill = |skill: &windlass_skills::Skill| Skill {
            name: skill.meta.name.clone(),
            description: skill.meta.description.clone(),
            source: skill.scope.to_string(),
            is_for_agents: skill.meta.model_invocable,
            is_for_people: skill.meta.user_invocable,
            text: skill.body.clone(),
        };
        SkillList {
            skills: found.list().map(skill).collect(),
            problems: found.problems().iter().map(ToString::to_string).collect(),
        }
    };
    About { settings: settings.collect(), skills: Arc::new(read), skill_writer: None }
}

/// Says where the page is, and how to sign in.
pub fn announce(server: &Server) -> Result<(), Failure> {
    let link = server.login_link().map_err(anyhow::Error::from)?;
    note(&format!("page and API at {}", server.url()));
    note(&format!(
        "sign in with {link} (works once, for {} minutes; `windlass open` makes another)",
        windlass_server::LINK_SECONDS / 60
    ));
    Ok(())
}

fn tls_files(environment: &Environment, config: &Config) -> Result<Option<TlsFiles>, Failure> {
    let path = |text: &String| super::expand_home(text, &environment.variables);
    match (&config.server.tls_certificate, &config.server.tls_key) {
        (Some(certificates), Some(key)) => {
            Ok(Some(TlsFiles { certificates: path(certificates), key: path(key) }))
        }
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => Err(Failure::usage(
            "a certificate and its key belong together",
            "set both `server.tls_certificate` and `server.tls_key`",
        )),
    }
}

fn accounts(tables: &Tables) -> Result<Vec<Account>, Failure> {
    tables.0.iter().map(|(name, fields)| account(name, fields)).collect()
}

fn account(name: &str, fields: &Value) -> Result<Account, Failure> {
    let wrong = |problem: String| {
        let hint = "a user has `token_sha256` (`printf %s TOKEN | sha256sum`) and `access` (viewer, operator \
                    or admin)";
        Failure::usage(format!("`server.users.{name}`: {problem}"), hint)
    };
    let known = ["token_sha256", "access"];
    let fields = fields.as_object().ok_or_else(|| wrong("it is not a table".to_owned()))?;
    if let Some(other) = fields.keys().find(|field| !known.contains(&field.as_str())) {
        return Err(wrong(format!("there is no field `{other}`")));
    }
    let text = |field: &str| {
        let found = fields.get(field).and_then(Value::as_str);
        found.ok_or_else(|| wrong(format!("`{field}` is missing or not a text")))
    };
    let token = TokenHash::parse(text("token_sha256")?)
        .ok_or_else(|| wrong("`token_sha256` is not 64 hexadecimal digits".to_owned()))?;
    let access: Access =
        text("access")?.parse().map_err(|error| wrong(format!("`access`: {error}")))?;
    if name.is_empty() || name.contains(char::is_control) {
        return Err(wrong("is not a name".to_owned()));
    }
    Ok(Account { name: name.to_owned(), token, access })
}

/// What to do when a server does not start.
fn failure(error: Error) -> Failure {
    let hint = match &error {
        Error::Plain { .. } => {
            "set `server.tls_certificate` and `server.tls_key`, or add `--plain-http` where others on \
             the way cannot listen"
        }
        Error::Listen { .. } => "choose another address with `--listen 127.0.0.1:PORT`",
        Error::Token { .. } => "remove the file: a new token is made at the next start",
        Error::Tls { .. } => "name a certificate and a key in PEM that belong together",
        Error::BasePath { .. } => "set `server.base_path` to a path such as `/agents`",
        Error::SameName { .. } => "give each user in `[server.users]` another name than yours",
    };
    Failure { hint: Some(hint.to_owned()), ..anyhow::Error::from(error).into() }
}

/// Where the server of a data directory can be reached, and the person that its token stands for.
pub fn running(coordinator: &Coordinator) -> Result<String, Failure> {
    let serves = coordinator.queue().has_service()?;
    windlass_server::address_of(coordinator).filter(|_| serves).ok_or_else(|| {
        Failure::usage(
            format!("no server runs on `{}`", data_directory(coordinator)),
            "start one with `windlass serve`, or name its data directory with `--data DIR`",
        )
    })
}
