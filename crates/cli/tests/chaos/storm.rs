//! The storm: random events that hit tasks and processes.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::json;
use windlass_coordinator::bus::{Bus, InStream};
use windlass_core::event::Event;
use windlass_core::id::{InjectionId, QuestionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::status::TaskStatus;

use crate::model::Finish;
use crate::world::{PATIENCE, Process, World};

/// Tasks in a storm.
const TASKS: usize = 6;

/// Tasks that are cancelled on the way.
const CANCELS: usize = 2;

/// How often something happens.
const STEP: Duration = Duration::from_millis(60);

pub struct Storm {
    pub world: World,
    pub tasks: Vec<TaskId>,
    /// Messages that were acknowledged, by what they say.
    pub sent: HashMap<String, TaskId>,
    pub cancelled: HashSet<TaskId>,
    finish: Finish,
    bus: Box<dyn Bus>,
    processes: Vec<(&'static str, Option<Process>)>,
    chance: Chance,
    answered: HashSet<QuestionId>,
    kills: usize,
    stops: usize,
    restarts: usize,
    serial: usize,
}

impl Storm {
    pub async fn begin(
        world: World,
        finish: Finish,
        processes: &[&'static str],
        seed: u64,
    ) -> Self {
        let processes = processes.iter().map(|name| (*name, Some(world.start(&[name])))).collect();
        let bus = world.bus();
        let mut storm = Self {
            world,
            tasks: Vec::new(),
            sent: HashMap::new(),
            cancelled: HashSet::new(),
            finish,
            bus,
            processes,
            chance: Chance(seed),
            answered: HashSet::new(),
            kills: 0,
            stops: 0,
            restarts: 0,
            serial: 0,
        };
        for number in 0..TASKS {
            let mut submission = storm.world.submission(&format!("task {number}"));
            submission.json["execution_config"] = json!({ "max_iterations": 100_000 });
            storm.send(InStream::TaskCommand, &submission.json).await;
            storm.tasks.push(submission.task);
        }
        storm
    }

    /// Causes random events for this long.
    pub async fn rage(&mut self, long: Duration) {
        let begun = Instant::now();
        let mut redis_restarted = self.world.redis.is_none();
        while begun.elapsed() < long {
            if !redis_restarted && begun.elapsed() > long / 2 {
                redis_restarted = true;
                self.world.redis.as_mut().unwrap().restart();
                self.restarts += 1;
            }
            match self.chance.random_below(100) {
                0..6 => self.kill(),
                6..9 => self.stop(),
                9..40 => self.start_what_is_down(),
                40..60 => self.message().await,
                60..66 => self.control("pause").await,
                66..80 => self.control("resume").await,
                80..82 => self.cancel().await,
                _ => self.answer_all().await,
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Starts every process, answers every question, and waits until all tasks have ended.
    pub async fn calm(&mut self) {
        self.start_what_is_down();
        let begun = Instant::now();
        while let Some(unseen) = self.unseen() {
            assert!(begun.elapsed() < PATIENCE, "never seen: {unseen}");
            self.tend().await;
        }
        self.finish.now();
        while !self.open().is_empty() {
            let late = begun.elapsed() > PATIENCE;
            assert!(!late, "these never end: {:#?}", self.standing(&self.open()));
            self.tend().await;
        }
        // The last messages may still wait to be published.
        let store = &self.world.store;
        let published = || store.bus().outbox().pending(1).unwrap().is_empty().then_some(());
        self.world.until("everything is published", published).await;
    }

    pub fn summary(&self) -> String {
        let (kills, stops) = (self.kills, self.stops);
        let (messages, answers) = (self.sent.len(), self.answered.len());
        let events: usize = self.tasks.iter().map(|task| self.world.journal(*task).len()).sum();
        let (cancelled, restarts) = (self.cancelled.len(), self.restarts);
        format!(
            "{} tasks, {events} events; {kills} kills, {stops} stops, {restarts} restarts of Redis; \
             {messages} messages, {answers} answers, {cancelled} cancelled",
            self.tasks.len()
        )
    }

    /// Resumes paused tasks, answers questions, and lets everything run for a while.
    async fn tend(&mut self) {
        for task in self.open() {
            if self.world.task(task).is_none_or(|row| row.status == TaskStatus::Paused) {
                self.steer(task, "resume").await;
            }
        }
        self.answer_all().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    /// A message to a task that was not cancelled and has not seen it yet.
    fn unseen(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        for task in &self.tasks {
            seen.extend(self.world.journal(*task).into_iter().filter_map(
                |record| match record.event {
                    Event::InjectionReceived(injection) => Some(injection.content),
                    _ => None,
                },
            ));
        }
        let unseen = |(words, task): &(&String, &TaskId)| {
            !self.cancelled.contains(task) && !seen.contains(*words)
        };
        self.sent.iter().find(unseen).map(|(words, _)| words.as_str())
    }

    fn open(&self) -> Vec<TaskId> {
        let is_open =
            |task: &&TaskId| self.world.task(**task).is_none_or(|row| !row.status.is_terminal());
        self.tasks.iter().filter(is_open).copied().collect()
    }

    fn standing(&self, tasks: &[TaskId]) -> Vec<String> {
        let words = |task: &TaskId| match self.world.task(*task) {
            Some(row) => format!("{task} is {} ({}), {} turns", row.status, row.reason, row.turns),
            None => format!("{task} is unknown"),
        };
        tasks.iter().map(words).collect()
    }

    fn kill(&mut self) {
        let which = self.chance.random_below(self.processes.len());
        if let Some(process) = self.processes[which].1.take() {
            process.kill();
            self.kills += 1;
        }
    }

    /// Stops one process by a signal. It may still be parking its tasks when the next one starts.
    fn stop(&mut self) {
        let which = self.chance.random_below(self.processes.len());
        if let Some(process) = self.processes[which].1.take() {
            process.signal(Signal::TERM);
            process.until_says("stopped");
            self.stops += 1;
        }
    }

    fn start_what_is_down(&mut self) {
        for (name, process) in &mut self.processes {
            if process.is_none() {
                *process = Some(self.world.start(&[name]));
            }
        }
    }

    /// Sends one message by a random route. It counts once it is acknowledged.
    async fn message(&mut self) {
        let Some(task) = self.any_open() else { return };
        if self.world.task(task).is_none() {
            return;
        }
        let words = self.name("message");
        match self.chance.random_below(3) {
            0 => {
                let event = json!({ "request_id": words, "task_id": task, "payload": words });
                self.send(InStream::ExternalEvent, &event).await;
            }
            1 => {
                let injection = Injection::message(InjectionId::new(Timestamp::now()), &words);
                while self.bus.push(task, &injection).await.is_err() {
                    tokio::time::sleep(STEP).await;
                }
            }
            _ => {
                let injection = Injection::message(InjectionId::new(Timestamp::now()), &words);
                self.world.store.mailbox().inject(task, injection, Timestamp::now()).await.unwrap();
            }
        }
        self.sent.insert(words, task);
    }

    async fn control(&mut self, action: &str) {
        if let Some(task) = self.any_open() {
            self.steer(task, action).await;
        }
    }

    async fn steer(&mut self, task: TaskId, action: &str) {
        let name = self.name("control");
        let control = json!({ "command_id": name, "task_id": task, "action": action });
        self.send(InStream::TaskControl, &control).await;
    }

    async fn cancel(&mut self) {
        let Some(task) = self.any_open() else { return };
        if self.cancelled.len() < CANCELS {
            self.cancelled.insert(task);
            self.steer(task, "cancel").await;
        }
    }

    /// Answers every open question, sometimes twice.
    async fn answer_all(&mut self) {
        for row in self.world.store.questions().open().unwrap() {
            let twice = self.chance.random_below(4) == 0;
            for _ in 0..1 + usize::from(twice) {
                let answer = json!({ "request_id": row.question.id, "response": "go on" });
                self.send(InStream::HitlResponse, &answer).await;
            }
            self.answered.insert(row.question.id);
        }
    }

    fn any_open(&mut self) -> Option<TaskId> {
        let open: Vec<_> =
            self.open().into_iter().filter(|task| !self.cancelled.contains(task)).collect();
        (!open.is_empty()).then(|| open[self.chance.random_below(open.len())])
    }

    /// Retries until the message is acknowledged: a bus that is down comes back.
    async fn send(&self, stream: InStream, json: &serde_json::Value) {
        while self.bus.submit(stream, None, &json.to_string()).await.is_err() {
            tokio::time::sleep(STEP).await;
        }
    }

    fn name(&mut self, what: &str) -> String {
        self.serial += 1;
        format!("{what}-{}", self.serial)
    }
}

/// Random numbers, the same for the same seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn random_below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize % limit
    }
}
