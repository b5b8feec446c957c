//! Starts Chromium in a sandbox, with its own profile, which is deleted when Chromium ends.

use std::time::Duration;

use serde_json::json;
use windlass_sandbox::{Command, LoopbackProxy, Sandbox, SandboxKind, Stdin};

use super::connection::Connection;
use super::scene::Scene;
use super::{Config, Error};

/// How long the browser may take to start, on a machine that is busy.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What Chromium is started with wherever nobody looks at it: no window, nothing that it does on its own, no sounds.
pub const QUIET_FLAGS: [&str; 12] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--mute-audio",
    "--hide-scrollbars",
];

/// What a task's browser is started with beside it. All frames of a page are in one process, so that one connection sees
/// them; the proxy is used for this machine's own addresses too.
const TASK_FLAGS: [&str; 7] = [
    "--no-zygote",
    "--disable-quic",
    "--disable-breakpad",
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--proxy-bypass-list=<-loopback>",
];

/// Descriptor 3 is read and 4 is written by Chromium; they become the command's own standard streams. The profile is made
/// where temporary files go and removed by whoever ends first: this script, or the sandbox with all its files.
const SCRIPT: &str = r#"
exec 3<&0 4>&1 </dev/null >&2
profile=$(mktemp -d "${TMPDIR:-/tmp}/windlass-browser.XXXXXX") || exit 1
trap 'rm -rf "$profile"' EXIT
trap 'exit 143' TERM INT HUP
HOME="$profile" "$CHROMIUM_PROGRAM" "$@" --user-data-dir="$profile/data" \
    --proxy-server="${CHROMIUM_PROXY:-${http_proxy:?there is no proxy to browse through}}" &
wait $!
"#;

/// A browser that runs.
pub(super) struct Chromium {
    pub connection: Connection,
    /// Where it runs outside of a sandbox with a proxy of its own. It ends with the browser.
    _proxy: Option<LoopbackProxy>,
}

impl Chromium {
    /// Starts it, and waits until it answers.
    pub async fn start(config: &Config) -> Result<Self, Error> {
        tokio::time::timeout(START_TIMEOUT, start(config))
            .await
            .unwrap_or_else(|_| Err(Error::TooSlow("its start".to_owned())))
    }
}

async fn start(config: &Config) -> Result<Chromium, Error> {
    let sandbox: &dyn Sandbox = config.sandbox.as_ref();
    let proxy = match &config.egress {
        None => None,
        Some(egress) => {
            let proxy = LoopbackProxy::listen(egress.clone()).await;
            Some(proxy.map_err(|error| Error::NotStarted(error.to_string()))?)
        }
    };
    let report = sandbox.isolation();
    let mut env = vec![("CHROMIUM_PROGRAM".to_owned(), config.program.clone())];
    if let Some(proxy) = &proxy {
        env.push(("CHROMIUM_PROXY".to_owned(), format!("http://{}", proxy.address())));
    }
    let mut argv: Vec<String> = ["sh", "-c", SCRIPT, "sh"].map(str::to_owned).into();
    argv.extend(QUIET_FLAGS.iter().chain(&TASK_FLAGS).map(|flag| (*flag).to_owned()));
    // The sandbox that it runs in is the stronger one, and does not let it make its own. On the host its own is all there
    // is, and only root cannot have it.
    if report.kind != SandboxKind::Host || rustix::process::geteuid().is_root() {
        argv.push("--no-sandbox".to_owned());
    }
    let command = Command {
        argv: Some(argv),
        env,
        stdin: Stdin::Piped,
        ..Command::script("browser", String::new(), report.workspace)
    };
    let running = sandbox.start(command).await;
    let running = running.map_err(|error| Error::NotStarted(error.to_string()))?;
    let connection = Connection::open(running, Scene::new(config.reach.clone()), config.idle);
    let _use = connection.in_use();
    let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
    let attached = connection.call(None, "Target.setAutoAttach", attach).await;
    attached.map_err(|error| Error::NotStarted(error.to_string()))?;
    Ok(Chromium { connection, _proxy: proxy })
}
