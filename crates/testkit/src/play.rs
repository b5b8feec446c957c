//! `play`: text in, text out. A goal and a scripted model in, the journal or the context a reader wants to
//! see out. Only this module knows the API, so a refactoring touches it and not a hundred tests.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{Clock, Coordinator, Preview, PreviewContent, Share, TaskDraft, Update};
use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, TaskResult};
use windlass_core::event::Driver;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::status::TaskStatus;
use windlass_store::{Options, Store};

use crate::ModelServer;

mod equip;
mod scene;
mod text;

use equip::Props;
use scene::{Scene, Step};

/// Plays a scene to its end and returns the task's journal, one event a line. The scene is the model's
/// script with a goal in front; [`scene`] has the other keys.
pub async fn play(script: &str) -> String {
    let stage = Stage::set(script);
    let task = stage.play().await;
    stage.journal(task)
}

/// Plays a scene to its end and returns what the model saw in its last request (or in request `show`):
/// every message, and the system prompt as its headings.
pub async fn play_context(script: &str) -> String {
    let stage = Stage::set(script);
    stage.play().await;
    let (requests, number) = (stage.server.requests(), stage.scene.show);
    let number = number.unwrap_or(requests.len());
    let request = requests.get(number - 1).unwrap_or_else(|| panic!("no request {number}"));
    stage.mask(&text::context(&request.json(), text::System::Headings))
}

/// Plays a scene and returns the first request whole: system prompt, tools and messages.
pub async fn play_first_request(script: &str) -> String {
    let stage = Stage::set(script);
    stage.play().await;
    let request = stage.server.requests()[0].json();
    stage.mask(&text::context(&request, text::System::Whole))
}

/// A machine for one or more runs of the same script.
pub struct Stage {
    pub server: ModelServer,
    /// The control plane.
    pub coordinator: Coordinator,
    /// Its store, for a test that checks what was kept.
    pub store: Store,
    root: tempfile::TempDir,
    scene: Scene,
    clock: Arc<StageClock>,
}

/// The clock of a stage: the machine's own until a test sets it.
#[derive(Default)]
struct StageClock {
    calendar: Mutex<Option<Timestamp>>,
    advanced: Mutex<Duration>,
    meanwhile: Mutex<Option<Happening>>,
}

/// What another process does whenever the calendar is read.
type Happening = Box<dyn FnMut() + Send>;

impl Clock for StageClock {
    fn now(&self) -> Timestamp {
        // Taken out while it happens: it may ask for the time itself.
        let happening = lock(&self.meanwhile).take();
        if let Some(mut happening) = happening {
            happening();
            *lock(&self.meanwhile) = Some(happening);
        }
        lock(&self.calendar).unwrap_or_else(Timestamp::now)
    }

    fn running_time(&self) -> Duration {
        Clock::running_time(&Timestamp::now) + *lock(&self.advanced)
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    /// Prepares a machine for a script.
    pub fn set(script: &str) -> Self {
        let script = scene::unindent(script);
        let scene = Scene::parse(&script);
        let server = ModelServer::start(&script);
        let root = tempfile::tempdir().expect("a throwaway directory");
        scene.write_files(root.path());
        let store =
            Store::open(root.path().join("data"), Options::default()).expect("a fresh store");
        let equip = Props::new(server.base(), store.clone(), &scene, root.path());
        let clock = Arc::new(StageClock::default());
        let coordinator = Coordinator::new(store.clone(), Arc::new(equip), clock.clone());
        Self { server, coordinator, store, root, scene, clock }
    }

    /// Answers, from elsewhere, what tasks of this status ask, whenever a task or the coordinator looks at
    /// the clock: at known places between two of their steps, which no wait could hit.
    pub fn answer_meanwhile(&self, status: TaskStatus, text: &'static str) {
        let coordinator = self.coordinator.clone();
        let happens = move || answer_questions_of(&coordinator, status, text);
        *lock(&self.clock.meanwhile) = Some(Box::new(happens));
    }

    /// Stops the coordinator's calendar at an instant; it stays there until it is set again. Nothing runs any
    /// longer by that: somebody has set the clock, or the machine has slept.
    pub fn set_clock(&self, at: Timestamp) {
        *lock(&self.clock.calendar) = Some(at);
    }

    /// Lets time pass: a calendar that was set moves forward, and everything runs so much longer.
    pub fn advance(&self, by: SignedDuration) {
        self.set_clock(self.coordinator.now() + by);
        *lock(&self.clock.advanced) += by.unsigned_abs();
    }

    /// Where the agent works.
    pub fn workspace(&self) -> PathBuf {
        self.root.path().join(scene::WORKSPACE)
    }

    /// The goal, before it is submitted.
    pub fn draft(&self) -> TaskDraft {
        let default = Axes::headless();
        let axes = Axes {
            permission_profile: self.scene.profile().unwrap_or(default.permission_profile),
            run_control: self.scene.control().unwrap_or(default.run_control),
            work_mode: self.scene.mode().unwrap_or(default.work_mode),
            ..default
        };
        TaskDraft {
            user_id: None,
            goal: self.scene.goal.clone(),
            pictures: Vec::new(),
            constraints: self.scene.constraints.clone(),
            workspace: self.workspace(),
            added: Vec::new(),
            share: Share::Allowed,
            axes,
            execution_config: ExecutionConfig {
                role: self.scene.role(),
                ..ExecutionConfig::default()
            },
            resume_context: None,
            driver: Driver::Foreground,
            cost_budget: None,
            deadline: None,
            dependency_blockers: Vec::new(),
        }
    }

    /// Submits the goal.
    pub async fn submit(&self) -> TaskId {
        self.coordinator.tasks().submit(self.draft()).await.expect("the goal is accepted")
    }

    /// Drives a task until its segment ends.
    pub async fn drive(&self, task: TaskId) -> TaskResult {
        let stop = CancellationToken::new();
        self.coordinator.tasks().drive(task, &stop).await.expect("the task is driven")
    }

    /// Submits, drives, and returns the journal.
    pub async fn run(&self) -> String {
        let task = self.submit().await;
        self.drive(task).await;
        self.journal(task)
    }

    /// Plays the whole scene: what happens before, during and between the segments of its task.
    pub async fn play(&self) -> TaskId {
        let task = self.submit().await;
        for step in &self.scene.before {
            take(step.clone(), &self.coordinator, task).await;
        }
        self.take_steps_at_requests(task);
        if let Some(pipe) = &self.scene.crash_when_written {
            self.crash_when_written(task, pipe).await;
        }
        if let Some(number) = self.scene.crash_at_request {
            self.crash_at_request(task, number).await;
        }
        self.drive(task).await;
        for step in &self.scene.then {
            take(step.clone(), &self.coordinator, task).await;
            self.drive(task).await;
        }
        task
    }

    /// Takes the steps of `at_request` when the request arrives, before it is answered.
    fn take_steps_at_requests(&self, task: TaskId) {
        let steps = self.scene.at_request.clone();
        if steps.is_empty() {
            return;
        }
        let coordinator = self.coordinator.clone();
        let arrived = Mutex::new(0);
        self.server.answer_with(move |_| {
            let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
            *arrived += 1;
            for step in steps.get(&*arrived).into_iter().flatten() {
                let (coordinator, step) = (coordinator.clone(), step.clone());
                elsewhere(async move { take(step, &coordinator, task).await });
            }
            None
        });
    }

    /// Drives the task and drops it, as a crash does, when a command has written to a pipe of the
    /// workspace.
    async fn crash_when_written(&self, task: TaskId, pipe: &str) {
        let path = self.workspace().join(pipe);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe can be made");
        let pipe = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&path);
        let pipe = pipe.expect("a fresh pipe can be read");
        tokio::select! {
            _ = self.drive(task) => panic!("the task ended before it wrote:\n{}", self.journal(task)),
            ready = pipe.readable() => ready.expect("the pipe is open"),
        }
        std::fs::remove_file(&path).expect("the pipe can be removed");
    }

    /// Drives the task and drops it, as a crash does, while the model has a request to answer.
    async fn crash_at_request(&self, task: TaskId, number: usize) {
        let gate = crate::Gate::new();
        let held = gate.clone();
        let arrived = Mutex::new(0);
        self.server.answer_with(move |_| {
            let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
            *arrived += 1;
            (*arrived == number).then(|| crate::Answer::script("say: lost").gated(0, &held))
        });
        tokio::select! {
            _ = self.drive(task) => panic!("the task ended before:\n{}", self.journal(task)),
            () = gate.reached() => {}
        }
        self.server.answer_with(|_| None);
        gate.open();
    }

    /// Interrupts a task as soon as a call of it, or of a sub-agent of it, has printed something.
    pub async fn interrupt_when_it_prints(&self, task: TaskId) {
        let mut feed = self.coordinator.feed().follow_all(task, 0).expect("it can be followed");
        loop {
            let update = feed.next().await.expect("its events can be read");
            if let Update::Preview(Preview { live: PreviewContent::Output { .. }, .. }) = update {
                break;
            }
        }
        let interrupt = self.coordinator.control().steer(task, Control::Interrupt, "ada");
        interrupt.await.expect("it can be interrupted");
    }

    /// A task's journal, one event a line.
    pub fn journal(&self, task: TaskId) -> String {
        let records = self.store.journal().of(task).expect("the journal is there");
        let events = records.iter().map(|record| &record.event);
        self.mask(&text::journal(events))
    }

    /// Replaces what varies from run to run.
    fn mask(&self, text: &str) -> String {
        text::mask(text, self.root.path())
    }
}

/// One step of a person, or of another process.
async fn take(step: Step, coordinator: &Coordinator, task: TaskId) {
    match step {
        Step::Send(text) => {
            coordinator.messages().send(task, &text, "ada").await.expect("the message is accepted");
        }
        Step::Event(payload) => {
            coordinator
                .messages()
                .event(task, &payload, "sensor")
                .await
                .expect("the event is accepted");
        }
        Step::Answer(text) => {
            let open = coordinator.inbox().open().expect("questions can be read");
            let question = open.first().expect("a question is open").row.question.id;
            coordinator
                .inbox()
                .answer(question, &text, "ada")
                .await
                .expect("the answer is accepted");
        }
        Step::Pause => {
            coordinator
                .control()
                .steer(task, Control::Pause, "ada")
                .await
                .expect("it can be paused");
        }
        Step::Cancel => {
            let cancel = Control::Cancel { reason: None };
            coordinator.control().steer(task, cancel, "ada").await.expect("it can be cancelled");
        }
        Step::Resume => coordinator.control().resume(task, "ada").await.expect("it can be resumed"),
    }
}

/// Answers open questions of tasks with this status.
fn answer_questions_of(coordinator: &Coordinator, status: TaskStatus, text: &'static str) {
    for asked in coordinator.inbox().open().expect("questions can be read") {
        let asker = asked.asker.expect("who asks is a task");
        if asker.status == status {
            let (coordinator, question) = (coordinator.clone(), asked.row.question.id);
            elsewhere(async move {
                let answered = coordinator.inbox().answer(question, text, "ada").await;
                answered.expect("an open question");
            });
        }
    }
}

/// Runs something to its end on another thread, from code that cannot wait for it.
fn elsewhere(work: impl Future<Output = ()> + Send + 'static) {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(work);
    };
    std::thread::spawn(run).join().expect("what happens elsewhere succeeds");
}
