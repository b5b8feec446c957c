//! A task that is compacted and then starts three sub-agents, killed from the flush on.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_store::CommitPhase;
use windlass_testkit::{Answer, ModelServer, Request};

use crate::machine::{Crash, Machine, Power, Ran};
use crate::play::{Order, Play, differs};
use crate::scenario::{comparable, files, masked};

/// The provider's window and how it counts.
const WINDOW: &str = "16000";
const BYTES_PER_TOKEN: usize = 3;
/// Files that are read, one a turn; the context is full before the last.
const NOTES: usize = 5;
const GOAL: &str = "measure the boards";
const BOARDS: [&str; 3] = ["OAK", "ELM", "ASH"];
const SUMMARY: &str = "## Tool failures\n- none\n## Files\n- notes\n## Decisions\n- none\n## Findings\n\
                       - boards\n## Plan\n- none\n## User instructions\n- none";
const RUN: Order<'_> =
    Order { goal: GOAL, args: &["run", GOAL, "--json", "--context-window", WINDOW] };

pub struct Outcome {
    pub per_process: Vec<u64>,
    /// The commit of the first process after which the flush begins.
    pub flush_commit: u64,
    /// Compactions of the whole task.
    pub compactions: u64,
    result: Value,
    files: BTreeMap<String, String>,
    conversation: Vec<String>,
    summaries: usize,
}

/// The model: every reply follows from the conversation alone, so that a crash changes nothing.
fn server() -> ModelServer {
    let server = ModelServer::start_empty();
    server.answer_with(|request| Some(answer(request)));
    server
}

fn answer(request: &Request) -> Answer {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let text = |at: usize| messages[at]["content"].as_str().unwrap_or_default().to_owned();
    let (system, task, last) = (text(0), text(1), text(messages.len() - 1));
    let whole = String::from_utf8_lossy(&request.body).into_owned();
    let item = if system.contains("You summarize") {
        format!("say: {}", serde_json::to_string(SUMMARY).unwrap())
    } else if let Some(board) = BOARDS.iter().find(|board| task.contains(&format!("the {board}"))) {
        match request.replies {
            0 => format!("save_memo: {{filename: {board}.md, content: 'once ', append: true}}"),
            1 => format!("write: {{path: {board}.txt, content: measured}}"),
            _ => format!("say: 'The {board} board is long.'"),
        }
    } else if last.starts_with("You are approaching") {
        "save_memo: {filename: found.md, content: 'once ', append: true}".to_owned()
    } else if last.contains("memo/found.md`") {
        "say: saved".to_owned()
    } else if whole.contains("spawn_agent\",\"arguments") {
        "say: All measured.".to_owned()
    } else {
        match (0..NOTES).rfind(|n| whole.contains(&format!("note {n} line"))) {
            Some(n) if n + 1 == NOTES => {
                let spawn = |board| {
                    format!("{{spawn_agent: {{task: 'measure the {board}', label: {board}}}}}")
                };
                format!("calls: [{}]", BOARDS.map(spawn).join(", "))
            }
            last => format!("read: notes-{}.txt", last.map_or(0, |n| n + 1)),
        }
    };
    let input = request.body.len() / BYTES_PER_TOKEN;
    Answer::script(&format!("{item}\nusage: {{input: {input}, output: 20}}"))
}

pub fn play(crash: Option<(Crash, Power)>) -> Outcome {
    let machine = Machine::talking_to(server());
    for number in 0..NOTES {
        let text: String = (0..40)
            .map(|line| format!("note {number} line {line}: this board is long\n"))
            .collect();
        std::fs::write(machine.workspace().join(format!("notes-{number}.txt")), text).unwrap();
    }
    let mut play = Play::new(machine, crash);
    let ran = play.step(RUN.args);
    let flush_commit = commits_before_flush(&ran);
    let result = play.run_to_end(ran, &RUN, |_, task| panic!("{task} asks"));
    outcome(play, &result, flush_commit)
}

/// Each event of the first process is a commit or part of one, so this is late enough at worst.
fn commits_before_flush(ran: &Ran) -> u64 {
    let before = ran.stdout.lines().take_while(|line| !line.contains("\"memory_flush\""));
    let asked = before.filter(|line| line.contains("\"llm_request\"")).count() as u64;
    asked * 2
}

fn outcome(play: Play, result: &Value, flush_commit: u64) -> Outcome {
    let requests = play.machine.server.requests();
    let own = |request: &&Request| request.json()["messages"][1].to_string().contains(GOAL);
    let last = requests.iter().rev().find(own).unwrap();
    let conversation = last.messages().into_iter().map(|message| timeless(&masked(&message.raw)));
    let summaries = requests
        .iter()
        .filter(|request| String::from_utf8_lossy(&request.body).contains("You summarize part"));
    let files = files(&play.machine.workspace()).into_iter();
    let files = files.map(|(name, text)| (name, timeless(&masked(&text))));
    Outcome {
        compactions: result["usage"]["compactions"].as_u64().unwrap(),
        result: comparable(result),
        files: files.collect(),
        conversation: conversation.collect(),
        summaries: summaries.count(),
        per_process: play.per_process,
        flush_commit,
    }
}

/// A text without how long sub-agents took.
fn timeless(text: &str) -> String {
    let mut all = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("completed in ") {
        let (before, after) = rest.split_at(at + "completed in ".len());
        all.push_str(before);
        rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    all + rest
}

impl Outcome {
    /// From the flush on: before and after every commit; with a power failure after every fourth.
    pub fn crash_points(&self) -> Vec<(Crash, Power)> {
        let commits = self.flush_commit..=self.per_process[0];
        let at = |phase, power| move |commit| (Crash { process: 0, commit, phase }, power);
        let stays = commits.clone().flat_map(|commit| {
            [CommitPhase::Before, CommitPhase::After].map(|phase| at(phase, Power::Stays)(commit))
        });
        // A power failure cuts back to the last synced commit, so neighbouring points give the same result.
        let fails = commits.clone().step_by(4).map(at(CommitPhase::After, Power::Fails));
        stays.chain(fails).collect()
    }

    pub fn same_as(&self, unbroken: &Self) -> Result<(), String> {
        if self.result != unbroken.result {
            return differs("the result", &self.result, &unbroken.result);
        }
        if self.files != unbroken.files {
            return differs("the workspace", &self.files, &unbroken.files);
        }
        if self.conversation != unbroken.conversation {
            return differs("the conversation", &self.conversation, &unbroken.conversation);
        }
        // A kill between a request and its reply asks again; what was answered is not asked again.
        if self.summaries > unbroken.summaries + 1 {
            return differs("the number of summaries", &self.summaries, &unbroken.summaries);
        }
        Ok(())
    }
}
