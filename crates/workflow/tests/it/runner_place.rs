//! A worktree with a sandbox around it, and a way to follow a runner in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tokio::sync::mpsc;
use windlass_core::id::TaskId;
use windlass_core::layout::Layout;
use windlass_sandbox::local::{Config, Namespaces};
use windlass_sandbox::network::{AddressRules, HostRules};
use windlass_sandbox::{Egress, HomeFiles, Local, Network};
use windlass_workflow::runner::{
    Job, Link, Order, REPORTS, Report, Runner, RunnerLimits, RunnerQuestion, RunnerResult,
};

/// Directories of one job, removed with it.
pub struct Place {
    top: TempDir,
    pub work: PathBuf,
    /// Where the sandbox may connect to on this machine.
    reach: Option<String>,
    /// Variables of the sandbox besides its `PATH`.
    variables: Vec<(String, String)>,
}

impl Place {
    pub fn new() -> Self {
        let top = tempfile::Builder::new().prefix("windlass-runner-").tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["work", "data", "home"] {
            fs::create_dir(top.path().join(name)).unwrap();
        }
        let work = top.path().join("work");
        Self { top, work, reach: None, variables: Vec::new() }
    }

    /// The same, with a model server that may be reached through the sandbox's proxy.
    pub fn reaching(server: &windlass_testkit::ModelServer) -> Self {
        Self { reach: Some(server.address().to_string()), ..Self::new() }
    }

    /// The same, with variables that every program in the sandbox finds.
    pub fn with_variables(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { variables: variables.iter().map(owned).collect(), ..Self::new() }
    }

    /// A program of the worktree.
    pub fn program(&self, name: &str, script: &str) -> String {
        let path = self.work.join(name);
        fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub async fn sandbox(&self) -> Local {
        let path = self.work.to_str().unwrap();
        let layout = Layout::personal(TaskId::new(jiff::Timestamp::UNIX_EPOCH), path, path);
        let network = match &self.reach {
            None => Network::None,
            Some(address) => Network::Restricted(Egress {
                addresses: AddressRules { allowed: Vec::new() },
                hosts: HostRules::Only(Vec::new()),
                endpoints: vec![address.clone()],
                observer: Arc::new(|_| {}),
            }),
        };
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let config = Config {
            data: self.top.path().join("data"),
            workspace: self.work.clone(),
            layout,
            added: Vec::new(),
            home_files: HomeFiles::default(),
            home: self.top.path().join("home"),
            environment: [vec![path], self.variables.clone()].concat(),
            environment_names: self.variables.iter().map(|(name, _)| name.clone()).collect(),
            read_only: std::env::var_os("WINDLASS_TEST_RUNNERS")
                .map(PathBuf::from)
                .into_iter()
                .collect(),
            hidden: Vec::new(),
            skills: None,
            trace: None,
            network,
            limits: windlass_sandbox::ResourceLimits::DEFAULT,
            namespaces: Namespaces::IfAvailable,
        };
        Local::open(config).await.unwrap()
    }

    pub fn job(&self, prompt: &str) -> Job {
        Job {
            id: "step".to_owned(),
            prompt: prompt.to_owned(),
            directory: self.work.clone(),
            state: self.work.join(".windlass/runner"),
            environment: Vec::new(),
            mcp_servers: serde_json::Map::new(),
            instructions: None,
            git_directory: None,
            model: None,
            resume: None,
            answers: Vec::new(),
            limits: RunnerLimits::DEFAULT,
        }
    }

    /// Runs a job to its end; `react` says what to do about each report.
    pub async fn run(
        &self,
        runner: &dyn Runner,
        job: Job,
        mut react: impl FnMut(&Report) -> Option<Order>,
    ) -> Run {
        let sandbox = self.sandbox().await;
        let (reports, mut reported) = mpsc::channel(REPORTS);
        let (orders, ordered) = mpsc::channel(16);
        let run = runner.run(job, &sandbox, Link { reports, orders: ordered });
        let watch = async {
            let mut all = Vec::new();
            while let Some(report) = reported.recv().await {
                if let Some(order) = react(&report) {
                    orders.send(order).await.unwrap();
                }
                all.push(report);
            }
            all
        };
        let (ended, reports) = tokio::join!(run, watch);
        Run { ended, reports }
    }
}

/// What a runner did.
pub struct Run {
    pub ended: RunnerResult,
    pub reports: Vec<Report>,
}

impl Run {
    pub fn questions(&self) -> Vec<&RunnerQuestion> {
        let mut questions = Vec::new();
        for report in &self.reports {
            if let Report::Question(question) = report {
                questions.push(question);
            }
        }
        questions
    }

    /// What it did, one word for each change.
    pub fn activities(&self) -> Vec<String> {
        let word = |report: &Report| match report {
            Report::Activity(activity) => Some(activity.to_string()),
            _ => None,
        };
        self.reports.iter().filter_map(word).collect()
    }

    pub fn output(&self) -> String {
        let text = |report: &Report| match report {
            Report::Output(text) => Some(text.clone()),
            _ => None,
        };
        self.reports.iter().filter_map(text).collect()
    }
}

/// Answers every question with the same words.
pub fn always(answer: &str) -> impl FnMut(&Report) -> Option<Order> {
    let text = answer.to_owned();
    move |report| match report {
        Report::Question(question) => {
            Some(Order::Answer { question: question.id.clone(), text: text.clone() })
        }
        _ => None,
    }
}

/// Nobody is there.
pub fn silent(_: &Report) -> Option<Order> {
    None
}

/// A program that `scripts/test` has installed.
pub fn installed(path: &str) -> String {
    let home = std::env::var("WINDLASS_TEST_RUNNERS").expect("run this by `scripts/test`");
    let path = Path::new(&home).join(path);
    assert!(path.exists(), "{} is missing", path.display());
    path.to_str().unwrap().to_owned()
}
