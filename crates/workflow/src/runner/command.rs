//! Any program, on a pseudo-terminal. Its screen is read as a person would read it; answers are typed.
//!
//! Invariant: keys are only typed while the screen shows the very question that they answer.

use windlass_sandbox::{BoxFuture, Exit, Sandbox};

use std::time::Duration;

use super::acts::{Act, Outcome, exit_words};
use super::install::how_to_install;
use super::permission::fingerprint;
use super::reading::{Question, ScreenState, read_screen};
use super::screen::{COLUMNS, ROWS, Screen};
use super::session::{self, Dialect, Start};
use super::{Activity, Job, Link, Runner, RunnerQuestion, RunnerResult};
use crate::output::{AgentOutput, after_prompt};

/// What stands for the prompt in a command.
const PROMPT: &str = "{prompt}";

/// How long a program that waits at its own prompt must be silent before its work counts as done.
const DONE_AFTER: Duration = Duration::from_secs(3);

/// What a shell answers for a program that it does not find.
const NOT_FOUND: i32 = 127;

/// Any command as a runner.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its name in workflow files.
    pub name: String,
    /// The program and its arguments. `{prompt}` in one of them stands for the prompt; where none has it, the
    /// prompt is typed when the program has become quiet.
    pub argv: Vec<String>,
}

impl Runner for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn command_line(&self) -> String {
        self.argv.join(" ")
    }

    fn run<'a>(
        &'a self,
        job: Job,
        sandbox: &'a dyn Sandbox,
        mut link: Link,
    ) -> BoxFuture<'a, RunnerResult> {
        Box::pin(async move {
            let Some(program) = self.argv.first() else {
                return RunnerResult::failed(format!("the runner `{}` has no command", self.name));
            };
            let is_typed = !self.argv.iter().any(|argument| argument.contains(PROMPT));
            let argv: Vec<String> =
                self.argv.iter().map(|argument| argument.replace(PROMPT, &job.prompt)).collect();
            let start = Start {
                name: &self.name,
                argv: on_a_terminal(&argv),
                environment: environment(),
                files: Vec::new(),
            };
            let typed = is_typed.then(|| job.prompt.clone());
            let mut terminal = Terminal::new(program, &job.prompt, typed);
            session::run(&mut terminal, start, &job, sandbox, &mut link).await
        })
    }
}

/// The command on a pseudo-terminal of the sandbox. `script` is in every Debian and knows how to make one; the size
/// is set before the program looks at it.
fn on_a_terminal(argv: &[String]) -> Vec<String> {
    let quoted: Vec<String> = argv.iter().map(|word| quote(word)).collect();
    let command = format!("stty rows {ROWS} cols {COLUMNS}; exec {}", quoted.join(" "));
    [
        "script",
        "--quiet",
        "--flush",
        "--return",
        "--echo",
        "never",
        "--command",
        &command,
        "/dev/null",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn environment() -> Vec<(String, String)> {
    [
        ("TERM", "xterm-256color".to_owned()),
        ("COLUMNS", COLUMNS.to_string()),
        ("LINES", ROWS.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// A program's screen, and what is to be typed.
struct Terminal {
    program: String,
    prompt: String,
    screen: Screen,
    /// The prompt, until it is typed.
    to_type: Option<String>,
    /// The question that is open.
    open: Option<(String, Question)>,
    asked: u32,
    /// Whether it was seen at work since it has the prompt.
    has_worked: bool,
    /// Whether a line was typed after which it has printed nothing yet.
    has_typed: bool,
}

impl Terminal {
    fn new(program: &str, prompt: &str, to_type: Option<String>) -> Self {
        Self {
            program: program.to_owned(),
            prompt: prompt.to_owned(),
            screen: Screen::default(),
            to_type,
            open: None,
            asked: 0,
            has_worked: false,
            has_typed: false,
        }
    }

    fn seen(&self) -> ScreenState {
        read_screen(&self.screen.rows(), self.screen.cursor_row())
    }

    /// What it said of its work.
    fn said(&self) -> String {
        after_prompt(self.screen.text(), &self.prompt).to_owned()
    }

    /// Whether its work is done: it waits for more, or has said what every agent says at its end.
    fn is_done(&self, seen: &ScreenState) -> bool {
        let has_ended = || AgentOutput::read(&self.said()).is_ok();
        self.has_worked && (*seen == ScreenState::Finished || has_ended())
    }

    fn ask(&mut self, question: Question) -> Act {
        self.asked += 1;
        let id = format!("screen/{}", self.asked);
        let ask = RunnerQuestion {
            id: id.clone(),
            // With what stands above it: the same words ask about another command.
            fingerprint: fingerprint(&[
                &question.text,
                &question.options.join("\n"),
                &question.context,
            ]),
            asks: question.asks,
            question: question.text.clone(),
            options: question.options.clone(),
            context: Some(question.context.clone()).filter(|context| !context.is_empty()),
            edits: Vec::new(),
        };
        self.open = Some((id, question));
        Act::Ask(ask)
    }

    /// A question on the screen: asked once, and withdrawn when the screen shows something else.
    fn on_question(&mut self, seen: Option<Question>) -> Vec<Act> {
        let mut acts = Vec::new();
        if let Some((id, open)) = self.open.take() {
            if seen.as_ref() == Some(&open) {
                self.open = Some((id, open));
                return acts;
            }
            acts.push(Act::Withdraw(id));
        }
        acts.extend(seen.map(|question| self.ask(question)));
        acts
    }

    /// Types the prompt as a paste, so that its lines are not entered one by one.
    fn type_prompt(&mut self) -> Vec<Act> {
        let Some(prompt) = self.to_type.take() else { return Vec::new() };
        self.has_typed = true;
        let text = match prompt.contains('\n') {
            true => format!("\x1b[200~{prompt}\x1b[201~\r"),
            false => format!("{prompt}\r"),
        };
        vec![Act::Send(text.into_bytes()), Act::activity(Activity::Thinking)]
    }
}

impl Dialect for Terminal {
    fn open(&mut self) -> Vec<Act> {
        vec![Act::activity(Activity::Thinking)]
    }

    fn read(&mut self, bytes: &[u8]) -> Vec<Act> {
        let mut text = String::new();
        if std::mem::take(&mut self.has_typed) {
            text.push_str(self.screen.end_line(bytes));
        }
        text.push_str(&self.screen.write(bytes));
        let activity = match self.seen() {
            ScreenState::Working(activity) => {
                self.has_worked |= self.to_type.is_none();
                activity
            }
            ScreenState::Question(_)
            | ScreenState::Finished
            | ScreenState::Error(_)
            | ScreenState::Stopped(_)
            | ScreenState::Nothing => Activity::Writing,
        };
        let mut acts = vec![Act::output(text)];
        if self.open.is_none() {
            acts.push(Act::activity(activity));
        }
        acts
    }

    fn on_quiet(&mut self, quiet: Duration) -> Vec<Act> {
        match self.seen() {
            ScreenState::Question(question) => self.on_question(Some(question)),
            ScreenState::Working(activity) => {
                let mut acts = self.on_question(None);
                acts.push(Act::activity(activity));
                acts
            }
            ScreenState::Finished
            | ScreenState::Error(_)
            | ScreenState::Stopped(_)
            | ScreenState::Nothing
                if self.to_type.is_some() =>
            {
                let mut acts = self.on_question(None);
                acts.extend(self.type_prompt());
                acts
            }
            seen if self.is_done(&seen) && quiet >= DONE_AFTER => {
                let mut acts = self.on_question(None);
                acts.push(Act::Finish(Outcome { text: self.said(), failure: None }));
                acts
            }
            ScreenState::Stopped(why) if self.has_worked && quiet >= DONE_AFTER => {
                let mut acts = self.on_question(None);
                acts.push(Act::Finish(Outcome { text: self.said(), failure: Some(why) }));
                acts
            }
            ScreenState::Finished
            | ScreenState::Error(_)
            | ScreenState::Stopped(_)
            | ScreenState::Nothing => self.on_question(None),
        }
    }

    fn types_answers(&self) -> bool {
        true
    }

    fn answer(&mut self, question: &str, text: &str) -> Vec<Act> {
        let Some((_, asked)) = self.open.take_if(|(id, _)| id == question) else {
            return Vec::new();
        };
        match self.seen() {
            ScreenState::Question(shown) if shown == asked => match shown.keys(text) {
                Some(keys) => {
                    self.has_worked = true;
                    self.has_typed = shown.takes_a_line();
                    vec![Act::Send(keys), Act::activity(Activity::Thinking)]
                }
                // Not an answer to it: it is asked once more.
                None => vec![self.ask(shown)],
            },
            ScreenState::Question(other) => {
                let note = "its screen changed before an answer was typed; it was asked again";
                vec![Act::Note(note.to_owned()), self.ask(other)]
            }
            ScreenState::Working(_)
            | ScreenState::Finished
            | ScreenState::Error(_)
            | ScreenState::Stopped(_)
            | ScreenState::Nothing => {
                let note = "its question was gone before the answer was typed";
                vec![Act::Note(note.to_owned())]
            }
        }
    }

    fn interrupt(&mut self) -> Vec<Act> {
        vec![Act::Send(vec![0x03])]
    }

    fn on_exit(&mut self, exit: Exit) -> Outcome {
        let text = self.screen.text();
        let failure = match exit {
            Exit::Code(0) if text.trim().is_empty() => Some("it printed nothing".to_owned()),
            Exit::Code(0) => None,
            Exit::Code(NOT_FOUND) => Some(how_to_install(&self.program)),
            exit if AgentOutput::read(&self.said()).is_ok() => {
                Some(format!("after its result {}", exit_words(exit)))
            }
            exit => Some(format!("{}; {}", last_line(text), exit_words(exit))),
        };
        Outcome { text: self.said(), failure }
    }
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").trim()
}
