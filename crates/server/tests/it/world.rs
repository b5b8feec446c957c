//! A server on a free port, a service beside it, and what a test sends to them.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::bus::{EmbeddedBus, InStream};
use windlass_coordinator::{Coordinator, Service};
use windlass_server::{About, Access, Account, Options, Server, SkillList, TokenHash};
use windlass_testkit::Stage;

pub struct World {
    pub stage: Stage,
    pub base: String,
    pub link: String,
    pub client: Client,
    stop: CancellationToken,
    jobs: JoinSet<Result<(), windlass_coordinator::Error>>,
}

/// How a server of tests is set up.
pub fn options() -> Options {
    Options {
        address: "127.0.0.1:0".parse().unwrap(),
        allowed_hosts: Vec::new(),
        trusted_proxies: Vec::new(),
        tls: None,
        allows_plain: false,
        owner: "ada".to_owned(),
        accounts: Vec::new(),
        refused_workspaces: vec!["/".into()],
        about: About {
            settings: [].into(),
            skills: Arc::new(SkillList::default),
            skill_writer: None,
        },
        base_path: String::new(),
        notify: None,
    }
}

/// Somebody whose token is their name and `-token`.
pub fn account(name: &str, access: Access) -> Account {
    Account { name: name.to_owned(), token: TokenHash::of(&format!("{name}-token")), access }
}

impl World {
    /// A server and nobody who drives tasks.
    pub async fn new() -> Self {
        Self::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await
    }

    pub async fn with(stage: Stage, options: Options) -> Self {
        // Another test of this process may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = Server::bind(stage.coordinator.clone(), options).await.unwrap();
        let base = server.url().trim_end_matches('/').to_owned();
        let link = server.login_link().unwrap();
        let (stop, mut jobs) = (CancellationToken::new(), JoinSet::new());
        jobs.spawn(server.run(stop.clone()));
        let client = Self::client().build().unwrap();
        Self { stage, base, link, client, stop, jobs }
    }

    /// A client that takes any certificate, and follows nothing.
    pub fn client() -> ClientBuilder {
        Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(60))
            .danger_accept_invalid_certs(true)
    }

    /// Drives tasks in this process too, as `serve` does.
    pub fn serve_tasks(&mut self) {
        let service = Service {
            name: "test".to_owned(),
            streams: vec![InStream::TaskCommand],
            tasks: 4,
            claim_after: Duration::from_secs(30),
            drain: Duration::from_secs(5),
        };
        let coordinator = self.stage.coordinator.clone();
        let bus = Arc::new(EmbeddedBus::of(&coordinator));
        self.jobs.spawn(service.run(coordinator, bus, self.stop.clone()));
    }

    pub fn coordinator(&self) -> &Coordinator {
        &self.stage.coordinator
    }

    pub fn token(&self) -> String {
        let path = self.coordinator().storage().token_file();
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// A request without anything that says who sends it.
    pub fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    /// A request of somebody.
    pub fn by(&self, token: &str, method: Method, path: &str) -> RequestBuilder {
        self.anonymous(method, path).bearer_auth(token)
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.by(&self.token(), Method::GET, path)
    }

    pub fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.by(&self.token(), Method::POST, path).json(body)
    }

    /// Hands in a goal.
    pub async fn submit(&self, goal: &str) -> String {
        let (status, body) = answer(self.post("/v1/tasks", &json!({ "goal": goal }))).await;
        assert_eq!(status, 201, "{body}");
        body["task_id"].as_str().unwrap().to_owned()
    }

    /// The cookie that the login link is traded for, as a `Cookie` header has it.
    pub async fn cookie(&self) -> String {
        let code = self.link.split_once('#').unwrap().1;
        let login = self.anonymous(Method::POST, "/v1/login").json(&json!({ "code": code }));
        let response = login.send().await.unwrap();
        assert_eq!(response.status(), 200);
        set_cookie(&response).split(';').next().unwrap().to_owned()
    }

    /// Stops everything; what it has written stays.
    pub async fn stop(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.jobs.join_next().await {
            ended.unwrap().unwrap();
        }
    }
}

pub fn set_cookie(response: &Response) -> &str {
    response.headers()["set-cookie"].to_str().unwrap()
}

/// The status and the JSON of an answer.
pub async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The status and the last word of the type of a problem.
pub async fn problem(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json", "{status}");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["status"], status);
    let kind = body["type"].as_str().unwrap();
    (status, kind.strip_prefix("urn:windlass:problem:").unwrap().to_owned())
}
