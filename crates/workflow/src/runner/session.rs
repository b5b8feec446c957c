//! One run of a program: its process, its clocks, its questions. How the program speaks is its [`Dialect`].

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use windlass_core::text::{suffix, with_causes};
use windlass_sandbox::{self as sandbox, Chunk, Exit, KillHandle, Sandbox, Stdin, Stream};

use super::acts::{Act, Outcome, exit_words};
use super::install::how_to_install;
use super::watchdog::{Due, Watchdog};
use super::{
    Activity, GivenAnswer, Job, Link, Order, Report, RunnerEnding, RunnerLimits, RunnerQuestion,
    RunnerResult, Usage,
};

/// How long a program prints nothing before its screen is read as a question.
const QUIET: Duration = Duration::from_millis(400);

/// After so long without a byte the screen is not read again.
const LAST_LOOK: Duration = Duration::from_millis(3200);

/// How much of the errors that a program printed is shown when it fails.
const ERROR_TAIL_BYTES: usize = 2000;

/// How a program speaks: pure, from bytes to acts and from answers to bytes.
pub(super) trait Dialect: Send {
    /// What is to be done when the program has started.
    fn open(&mut self) -> Vec<Act>;

    /// What its output means.
    fn read(&mut self, bytes: &[u8]) -> Vec<Act>;

    /// It has printed nothing for so long. Called a few times, then not again before the next byte.
    fn on_quiet(&mut self, _quiet: Duration) -> Vec<Act> {
        Vec::new()
    }

    /// Whether an answer is typed into a screen, which must not be changing at that moment.
    fn types_answers(&self) -> bool {
        false
    }

    /// A person's answer to a question that is open.
    fn answer(&mut self, question: &str, text: &str) -> Vec<Act>;

    /// The program's own way to end what it does.
    fn interrupt(&mut self) -> Vec<Act>;

    /// What it means that the program ended by itself without a result.
    fn on_exit(&mut self, exit: Exit) -> Outcome;
}

/// What to start, beside what the job says.
pub(super) struct Start<'a> {
    /// The name by which people know the runner.
    pub name: &'a str,
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Files in the directory of its own state, for what others must not read in its arguments: name and text.
    pub files: Vec<(&'static str, String)>,
}

/// Runs a program to its end.
pub(super) async fn run(
    dialect: &mut dyn Dialect,
    start: Start<'_>,
    job: &Job,
    sandbox: &dyn Sandbox,
    link: &mut Link,
) -> RunnerResult {
    for file in start.files {
        if let Err(why) = make_state(sandbox, job, file).await {
            return RunnerResult::failed(why);
        }
    }
    let program = start.argv.first().cloned().unwrap_or_default();
    let command = sandbox::Command {
        argv: Some(start.argv),
        env: [start.environment, job.environment.clone()].concat(),
        grace: job.limits.grace,
        stdin: Stdin::Piped,
        ..sandbox::Command::script(job.id.clone(), "", job.directory.clone())
    };
    let mut running = match sandbox.start(command).await {
        Ok(running) => running,
        Err(error) => {
            let why = not_started(&program, &error);
            let _ = link.reports.send(Report::Activity(Activity::Ended)).await;
            return RunnerResult::failed(why);
        }
    };
    let (to_input, mut for_input) = mpsc::unbounded_channel::<Vec<u8>>();
    let mut input = running.take_input();
    // Beside the reading: a program that does not read must not keep us from reading what it writes.
    let mut writing = std::pin::pin!(async move {
        while let Some(bytes) = for_input.recv().await {
            if let Some(input) = &mut input {
                input.write(&bytes).await;
            }
        }
    });
    let mut is_writing = true;
    let mut session = Session::new(dialect, job, link, running.killer(), to_input);
    let opening = session.dialect.open();
    session.apply(opening).await;
    loop {
        let wake = session.next_deadline();
        tokio::select! {
            // What it has printed comes first: an answer must be one to what it shows now.
            biased;
            chunk = running.next() => match chunk {
                Some(chunk) => session.on_chunk(chunk).await,
                None => break,
            },
            order = session.link.orders.recv(), if session.is_heard => session.on_order(order).await,
            () = &mut writing, if is_writing => is_writing = false,
            () = sleep_until(wake) => session.on_deadline(wake).await,
        }
    }
    let exit = running.wait().await.exit;
    session.end(start.name, exit).await
}

/// Makes the directory of the program's own state: inside, so that it belongs to whoever the program runs as. Git
/// does not see it, for its work is committed as a whole.
const MAKE_STATE: &str = r#"mkdir -p "$STATE" && printf '*\n' > "$STATE/.gitignore" &&
umask 077 && rm -f "$STATE/$FILE" && cat > "$STATE/$FILE""#;

async fn make_state(
    sandbox: &dyn Sandbox,
    job: &Job,
    (name, text): (&str, String),
) -> Result<(), String> {
    let state = job.state.to_string_lossy().into_owned();
    let command = sandbox::Command {
        env: vec![("STATE".to_owned(), state), ("FILE".to_owned(), name.to_owned())],
        stdin: Stdin::Piped,
        ..sandbox::Command::script(job.id.clone(), MAKE_STATE, job.directory.clone())
    };
    let mut running = sandbox.start(command).await.map_err(|error| with_causes(&error))?;
    if let Some(mut input) = running.take_input() {
        input.write(text.as_bytes()).await;
    }
    match running.wait().await.exit {
        Exit::Code(0) => Ok(()),
        exit => Err(format!("`{}` cannot be made: {}", job.state.display(), exit_words(exit))),
    }
}

/// Why a program could not be started, and how to get it.
fn not_started(program: &str, error: &sandbox::Error) -> String {
    let is_missing = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
    match error {
        sandbox::Error::Start { source, .. } if is_missing(source) => how_to_install(program),
        error => with_causes(error),
    }
}

/// How far the end of a program is.
enum Phase {
    Working,
    /// Its own interrupt was sent; after this moment it gets SIGTERM.
    Interrupted(Instant),
    /// It was asked to end, and will be forced to.
    Killed,
}

struct Session<'a> {
    dialect: &'a mut dyn Dialect,
    link: &'a mut Link,
    /// Whether somebody can still give orders.
    is_heard: bool,
    limits: RunnerLimits,
    watchdog: Watchdog,
    killer: KillHandle,
    /// Closes the program's input when it is dropped.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    answers: Vec<GivenAnswer>,
    open: BTreeMap<String, RunnerQuestion>,
    /// How long nothing must have come before the screen is read; `None` when it need not be read again.
    quiet: Option<Duration>,
    last_output: Instant,
    /// An answer that is typed when the screen has not changed for a moment.
    to_type: Option<(String, String)>,
    activity: Option<Activity>,
    children: usize,
    outcome: Option<Outcome>,
    phase: Phase,
    /// Why it is ended by us; its result counts where this is `None`.
    why: Option<RunnerEnding>,
    printed: u64,
    errors: String,
    usage: Usage,
    session: Option<String>,
    notes: Vec<String>,
}

impl<'a> Session<'a> {
    fn new(
        dialect: &'a mut dyn Dialect,
        job: &Job,
        link: &'a mut Link,
        killer: KillHandle,
        input: mpsc::UnboundedSender<Vec<u8>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            dialect,
            link,
            is_heard: true,
            limits: job.limits,
            watchdog: Watchdog::new(job.limits, now),
            killer,
            input: Some(input),
            answers: job.answers.clone(),
            open: BTreeMap::new(),
            quiet: Some(QUIET),
            last_output: now,
            to_type: None,
            activity: None,
            children: 0,
            outcome: None,
            phase: Phase::Working,
            why: None,
            printed: 0,
            errors: String::new(),
            usage: Usage::default(),
            session: job.resume.clone(),
            notes: Vec::new(),
        }
    }

    async fn on_chunk(&mut self, chunk: Chunk) {
        let now = Instant::now();
        self.watchdog.on_output(now);
        self.printed += chunk.bytes.len() as u64;
        if self.printed > self.limits.output_bytes {
            let megabytes = self.limits.output_bytes / (1024 * 1024);
            self.kill(RunnerEnding::Failed(format!("it printed more than {megabytes} MiB")));
            return;
        }
        match chunk.stream {
            Stream::Out => {
                (self.last_output, self.quiet) = (now, Some(QUIET));
                let acts = self.dialect.read(&chunk.bytes);
                self.apply(acts).await;
            }
            Stream::Err => {
                self.errors.push_str(&String::from_utf8_lossy(&chunk.bytes));
                self.errors = suffix(&self.errors, ERROR_TAIL_BYTES).to_owned();
            }
        }
    }

    async fn on_order(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Answer { question, text }) if self.dialect.types_answers() => {
                self.to_type = Some((question, text));
                (self.last_output, self.quiet) = (Instant::now(), Some(QUIET));
            }
            Some(Order::Answer { question, text }) => self.answer(&question, &text).await,
            Some(Order::Stop) => self.interrupt(RunnerEnding::Stopped).await,
            None => {
                self.is_heard = false;
                self.interrupt(RunnerEnding::Stopped).await;
            }
        }
    }

    async fn answer(&mut self, question: &str, text: &str) {
        if self.open.remove(question).is_none() {
            return;
        }
        let acts = self.dialect.answer(question, text);
        self.apply(acts).await;
        if self.open.is_empty() {
            self.watchdog.resume(Instant::now());
        }
    }

    /// The next moment at which something is due, far away where nothing is.
    fn next_deadline(&self) -> Instant {
        const FAR: Duration = Duration::from_secs(24 * 3600);
        let phase = match self.phase {
            Phase::Working => self.watchdog.next().map(|(at, _)| at),
            Phase::Interrupted(until) => Some(until),
            Phase::Killed => None,
        };
        let quiet = self.quiet.filter(|_| matches!(self.phase, Phase::Working));
        let quiet = quiet.map(|quiet| self.last_output + quiet);
        phase.into_iter().chain(quiet).min().unwrap_or_else(|| Instant::now() + FAR)
    }

    async fn on_deadline(&mut self, now: Instant) {
        match self.phase {
            Phase::Working => {
                let is_due = |quiet: &mut Duration| now >= self.last_output + *quiet;
                if let Some(quiet) = self.quiet.take_if(is_due) {
                    self.quiet = Some(quiet * 2).filter(|next| *next <= LAST_LOOK);
                    if let Some((question, text)) = self.to_type.take() {
                        self.answer(&question, &text).await;
                    } else {
                        let acts = self.dialect.on_quiet(quiet);
                        self.apply(acts).await;
                    }
                }
                if let Some((_, due)) = self.watchdog.next().filter(|(at, _)| now >= *at) {
                    self.on_due(due).await;
                }
            }
            Phase::Interrupted(_) => self.terminate(),
            Phase::Killed => {}
        }
    }

    async fn on_due(&mut self, due: Due) {
        let limits = self.limits;
        match (due, &self.outcome) {
            (Due::Linger, _) if self.input.is_some() => {
                self.input = None;
                self.watchdog.on_result(Some(Instant::now()));
            }
            (Due::Linger, _) => {
                self.notes.push("it did not end after its result and was ended".to_owned());
                self.terminate();
            }
            (Due::Stall | Due::SilentAfterTool, Some(_)) => {
                let children = self.children;
                self.notes
                    .push(format!("{children} of its own tasks did not end after its result"));
                self.terminate();
            }
            (Due::Stall, None) => {
                let seconds = limits.stall.as_secs();
                self.interrupt(RunnerEnding::TimedOut(format!(
                    "it printed nothing for {seconds} s"
                )))
                .await;
            }
            (Due::SilentAfterTool, None) => {
                let seconds = limits.silence_after_tool.as_secs();
                let why = format!("it said nothing for {seconds} s after a tool's result");
                self.interrupt(RunnerEnding::TimedOut(why)).await;
            }
            (Due::Timeout, _) => {
                let seconds = limits.timeout.unwrap_or_default().as_secs();
                self.interrupt(RunnerEnding::TimedOut(format!("it took longer than {seconds} s")))
                    .await;
            }
        }
    }

    /// Does what acts say, and what follows from them.
    async fn apply(&mut self, acts: Vec<Act>) {
        let mut acts = VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Send(bytes) => {
                    if let Some(input) = &self.input {
                        let _ = input.send(bytes);
                    }
                }
                Act::Report(report) => self.report(report).await,
                Act::Ask(question) => acts.extend(self.ask(question).await),
                Act::Withdraw(id) => {
                    if self.open.remove(&id).is_some() {
                        self.report(Report::Withdrawn(id)).await;
                    }
                    if self.open.is_empty() {
                        self.watchdog.resume(Instant::now());
                    }
                }
                Act::ToolBegan(id) => self.watchdog.on_tool(&id),
                Act::ToolEnded(id) => self.watchdog.on_tool_result(&id),
                Act::Children(count) => {
                    self.children = count;
                    if count == 0 && self.outcome.is_some() {
                        self.watchdog.on_result(Some(Instant::now()));
                    }
                }
                Act::Busy => {
                    if self.outcome.is_some() && self.input.is_some() {
                        self.watchdog.on_result(None);
                    }
                }
                Act::Finish(outcome) => self.finish(outcome),
                Act::Note(note) => self.notes.push(note),
            }
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        if self.children == 0 {
            // Without input the program has nothing to wait for and ends.
            self.input = None;
            self.watchdog.on_result(Some(Instant::now()));
        }
    }

    /// Asks a person, or answers with what was said to the same question before a restart.
    async fn ask(&mut self, question: RunnerQuestion) -> Vec<Act> {
        let given = |answer: &GivenAnswer| answer.fingerprint == question.fingerprint;
        if let Some(at) = self.answers.iter().position(given) {
            let answer = self.answers.remove(at);
            self.report(Report::Replayed(answer.fingerprint)).await;
            return self.dialect.answer(&question.id, &answer.text);
        }
        self.open.insert(question.id.clone(), question.clone());
        self.watchdog.pause(Instant::now());
        self.report(Report::Activity(Activity::Waiting)).await;
        self.report(Report::Question(question)).await;
        Vec::new()
    }

    async fn report(&mut self, report: Report) {
        match &report {
            Report::Activity(activity) => {
                if self.activity.replace(*activity) == Some(*activity) {
                    return;
                }
            }
            Report::Session(id) => self.session = Some(id.clone()),
            Report::Usage(usage) => self.usage = *usage,
            Report::Output(_)
            | Report::Question(_)
            | Report::Withdrawn(_)
            | Report::Replayed(_) => {}
        }
        if self.link.reports.send(report).await.is_err() && matches!(self.phase, Phase::Working) {
            self.why = Some(RunnerEnding::Stopped);
            self.terminate();
        }
    }

    /// Ends it by its own interrupt first, so that it can save what it knows.
    async fn interrupt(&mut self, why: RunnerEnding) {
        if !matches!(self.phase, Phase::Working) {
            return;
        }
        self.why = Some(why);
        self.phase = Phase::Interrupted(Instant::now() + self.limits.interrupt);
        let acts = self.dialect.interrupt();
        self.apply(acts).await;
    }

    fn kill(&mut self, why: RunnerEnding) {
        if matches!(self.phase, Phase::Working) {
            self.why = Some(why);
            self.terminate();
        }
    }

    /// SIGTERM, and SIGKILL after the grace period.
    fn terminate(&mut self) {
        if !matches!(self.phase, Phase::Killed) {
            self.phase = Phase::Killed;
            self.input = None;
            self.killer.kill(self.limits.grace);
        }
    }

    async fn end(mut self, name: &str, exit: Exit) -> RunnerResult {
        // A run that is stopped will be resumed, and its questions with it.
        if self.why != Some(RunnerEnding::Stopped) {
            for id in std::mem::take(&mut self.open).into_keys() {
                self.report(Report::Withdrawn(id)).await;
            }
        }
        self.report(Report::Activity(Activity::Ended)).await;
        let outcome = match self.outcome.take() {
            Some(outcome) => outcome,
            None => self.dialect.on_exit(exit),
        };
        let how = match (self.why.take(), outcome.failure) {
            (Some(why), _) => why,
            (None, None) => RunnerEnding::Finished,
            (None, Some(failure)) => RunnerEnding::Failed(self.with_errors(name, failure)),
        };
        RunnerResult {
            how,
            text: outcome.text,
            usage: self.usage,
            session: self.session,
            notes: self.notes,
        }
    }

    fn with_errors(&self, name: &str, failure: String) -> String {
        match self.errors.trim() {
            "" => format!("`{name}`: {failure}"),
            errors => format!("`{name}`: {failure}\n{errors}"),
        }
    }
}

impl RunnerResult {
    /// The end of a job that never began.
    pub(super) fn failed(why: String) -> Self {
        Self {
            how: RunnerEnding::Failed(why),
            text: String::new(),
            usage: Usage::default(),
            session: None,
            notes: Vec::new(),
        }
    }
}
