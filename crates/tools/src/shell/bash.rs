//! `bash`: one command, its output and its exit (ES-184, ES-206).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use windlass_core::outcome::{AbortCause, CallEnding, Fact, Outcome, Recovery};
use windlass_core::policy::Class;
use windlass_core::text::with_causes;
use windlass_core::tool_name;
use windlass_sandbox::{Command, CommandEnd, Error, Exit, KILL_GRACE, MAX_SCRIPT_BYTES, Running};

use super::collect::{Collector, Printed};
use super::{Shell, bound_files, exit_words, out_of_memory};
use crate::schema;
use crate::tool::{Bind, Call, Category, Prepared, Subject, Tool, ToolContext};
use crate::workspace::RuleGuard;

/// The exit code of bash for a text that is not a command.
const SYNTAX_CODE: i32 = 2;

/// How much of bash's message about such a text is kept.
const SYNTAX_BYTES: usize = 2000;

/// What the model reads about text that no process can be given.
const NUL_IN_COMMAND: &str = "The command holds a NUL character, which bash cannot run, so nothing of it was \
    run. Send it without; `printf '\\0'` prints one.";

/// Checking the syntax of a text takes a moment.
const SYNTAX_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Bash;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, as for `bash -c`.
    #[schemars(length(min = 1))]
    command: String,
    /// Seconds it may take. Default 120, at most 600.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// Leave it running and return at once. Default: false.
    background: Option<bool>,
}

impl Tool for Bash {
    fn name(&self) -> &'static str {
        tool_name::BASH
    }

    fn description(&self) -> &'static str {
        include_str!("descriptions/bash.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        schema::of::<Arguments>()
    }

    fn category(&self) -> Category {
        Category::Environment
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    fn subject(&self, arguments: &Value) -> Subject {
        let command = arguments["command"].as_str();
        command.map_or(Subject::Other, |command| Subject::Command(command.to_owned()))
    }

    fn prepare(
        &self,
        context: &ToolContext,
        call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        Box::pin(prepare(context.clone(), call))
    }
}

async fn prepare(context: ToolContext, mut call: Call) -> Result<Prepared, Outcome> {
    let arguments: Arguments = serde_json::from_value(call.arguments.take())
        .map_err(|error| Outcome::error(format!("The arguments of `bash` do not fit: {error}")))?;
    if arguments.command.contains('\0') {
        return Err(Outcome::error(NUL_IN_COMMAND));
    }
    if arguments.command.len() > MAX_SCRIPT_BYTES {
        return Err(Outcome::error(format!(
            "The command is {} bytes long, and a shell takes at most {MAX_SCRIPT_BYTES}, so nothing of it was run. Write \
             what is long into a file with `write` first.",
            arguments.command.len()
        )));
    }
    let start = directory(&context, &call);
    let mut analysis = context.shell.analyze(&arguments.command, &start, &context.workspace).await;
    for script in &mut analysis.scripts {
        script.hash = context.workspace.hash(&script.path).ok().flatten();
    }
    // A person is not asked about a text that no shell would run.
    if !analysis.parsed
        && let Some(error) = context.shell.syntax_error(&arguments.command).await
    {
        return Err(error);
    }
    let assessment = analysis.assessment.clone();
    // A command that only reads can be run again (§15.6).
    let background = arguments.background.unwrap_or(false);
    let rerun = assessment.class == Class::Read && !background;
    let recovery = if rerun { Recovery::Rerun } else { Recovery::Unknown };
    let depends_on = bound_files::may_use_others(&analysis).then(|| Arc::clone(&context.workspace));
    let (workspace, command) = (Arc::clone(&context.workspace), arguments.command.clone());
    let bind: Bind = Box::new(move |analysis| {
        analysis.map_or_else(Vec::new, |analysis| {
            bound_files::of(&workspace, &command, &start, analysis)
        })
    });
    let is_production = analysis.is_production();
    let act = Box::new(move || -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let workspace = &context.workspace;
            workspace.own_files().prepare_task_directory_for(&arguments.command);
            let guard = (!is_production)
                .then(|| RuleGuard::new(Arc::clone(workspace), context.shell.rule_record(call.id)));
            if background {
                let directory = directory(&context, &call);
                let shell = &context.shell;
                return shell
                    .start_background(call.id, &arguments.command, directory, call.live, guard)
                    .await;
            }
            let mut outcome = run(&context, &call, arguments).await;
            workspace.own_files().complete_task_directory();
            match guard {
                Some(guard) => {
                    guard.put_back(call.id).inspect(|note| outcome.add_note(note));
                }
                None => workspace.rule_files().accept_all(),
            }
            outcome
        })
    });
    Ok(Prepared {
        analysis: Some(Box::new(analysis)),
        bind: Some(bind),
        depends_on,
        ..Prepared::new(assessment, recovery, act)
    })
}

/// Where the last command of this agent ended.
fn directory(context: &ToolContext, call: &Call) -> PathBuf {
    match &call.facts.working_directory {
        Some(path) => PathBuf::from(path),
        None => context.shell.start_directory(),
    }
}

async fn run(context: &ToolContext, call: &Call, arguments: Arguments) -> Outcome {
    let shell = &context.shell;
    let asked = arguments.timeout.map_or(shell.limits.default_timeout, Duration::from_secs);
    let timeout = asked.min(shell.limits.max_timeout);
    let command = Command {
        timeout: Some(timeout),
        ..Command::script(call.id.to_string(), arguments.command, directory(context, call))
    };
    // Before it starts: a command whose output cannot be kept does not run.
    let collector = match Collector::new(shell, call.id, call.live.clone()) {
        Ok(collector) => collector,
        Err(error) => return Outcome::error(format!("Its output cannot be kept: {error}.")),
    };
    let (running, note) = match shell.start(command).await {
        Ok(started) => started,
        Err(outcome) => return outcome,
    };
    let (ended, collector) = follow(running, collector, call).await;
    let finished = collector.finish(shell.task, shell.now(), call.limit_tokens, &context.workspace);
    let printed = match finished {
        Ok(printed) => printed,
        Err(error) => Printed::instead(format!("Its output could not be kept: {error}.")),
    };
    let words = match ended.exit {
        Exit::OutOfMemory => Some(out_of_memory(shell.sandbox.isolation().memory_bytes)),
        exit => exit_words(exit, Some(timeout)),
    };
    outcome(ended, printed.with_note_before(&note.unwrap_or_default()), words)
}

impl Shell {
    /// What bash says about a text that our reader could not parse. Nothing of the text is run.
    async fn syntax_error(&self, text: &str) -> Option<Outcome> {
        let argv = ["bash", "-n", "-c", text].map(str::to_owned).to_vec();
        let command = Command {
            argv: Some(argv),
            timeout: Some(SYNTAX_TIMEOUT),
            ..Command::script("syntax", "", self.start_directory())
        };
        let mut running = self.sandbox.start(command).await.ok()?;
        let mut said = Vec::new();
        while let Some(chunk) = running.next().await {
            said.extend_from_slice(&chunk.bytes[..chunk.bytes.len().min(SYNTAX_BYTES)]);
            said.truncate(SYNTAX_BYTES);
        }
        let said = String::from_utf8_lossy(&said);
        (running.wait().await.exit == Exit::Code(SYNTAX_CODE)).then(|| {
            let said = said.trim();
            Outcome::error(format!(
                "bash cannot read this command, so nothing of it was run. Fix its syntax and call again:\n{said}"
            ))
        })
    }

    /// Starts a command; in the workspace when its directory is gone, and then with a note that says so.
    pub(super) async fn start(
        &self,
        command: Command,
    ) -> Result<(Running, Option<String>), Outcome> {
        let failed = |error: Error| {
            Outcome::error(format!("The command did not start: {}.", with_causes(&error)))
        };
        let home = self.start_directory();
        let elsewhere =
            (command.cwd != home).then(|| Command { cwd: home.clone(), ..command.clone() });
        match (self.sandbox.start(command).await, elsewhere) {
            (Ok(running), _) => Ok((running, None)),
            (Err(Error::Start { .. }), Some(elsewhere)) => {
                let running = self.sandbox.start(elsewhere).await.map_err(failed)?;
                let place = home.display();
                Ok((
                    running,
                    Some(format!("[the working directory is gone; this ran in {place}]\n")),
                ))
            }
            (Err(error), _) => Err(failed(error)),
        }
    }
}

/// Reads until the end; ends the tree when the call is to stop.
async fn follow(
    mut running: Running,
    mut collector: Collector,
    call: &Call,
) -> (CommandEnd, Collector) {
    let killer = running.killer();
    let mut stopping = false;
    loop {
        tokio::select! {
            chunk = running.next() => match chunk {
                // A disk that takes no more costs the rest of the output, not the command.
                Some(chunk) => drop(collector.take(&chunk)),
                None => break,
            },
            () = collector.has_news() => collector.show_news(),
            () = call.stop.cancelled(), if !stopping => {
                stopping = true;
                killer.kill(KILL_GRACE);
            }
        }
    }
    (running.wait().await, collector)
}

fn outcome(ended: CommandEnd, printed: Printed, words: Option<String>) -> Outcome {
    let Printed { mut text, mut display, has_controls, truncated } = printed;
    let is_silent = text.is_empty() && words.is_none() && ended.refused.is_empty();
    // A person sees that nothing was printed.
    let differs = has_controls || words.is_some() || !ended.refused.is_empty() || is_silent;
    if is_silent {
        text.push_str("(no output)");
    }
    if let Some(words) = words {
        add_line(&mut text, &format!("[{words}]"));
        // People read an exit code from its field.
        if !matches!(ended.exit, Exit::Code(_)) {
            add_line(&mut display, &words);
        }
    }
    for refusal in &ended.refused {
        add_line(&mut text, &format!("[{refusal}]"));
        add_line(&mut display, refusal);
    }
    let (ending, exit_code, aborted_by) = match ended.exit {
        Exit::Code(0) => (CallEnding::Ok, Some(0), None),
        Exit::Code(code) => (CallEnding::Error, Some(code), None),
        Exit::Signal(signal) => (CallEnding::Error, None, Some(AbortCause::Signal(signal))),
        Exit::TimedOut => (CallEnding::Error, None, Some(AbortCause::Timeout)),
        Exit::OutOfMemory => (CallEnding::Error, None, Some(AbortCause::OutOfMemory)),
        Exit::Killed => (CallEnding::Cancelled, None, None),
        Exit::Lost => (CallEnding::Unknown, None, None),
    };
    let directory = ended.cwd.map(|path| path.display().to_string());
    Outcome {
        truncated,
        exit_code,
        aborted_by,
        display: differs.then_some(display),
        facts: directory.map(|path| Fact::WorkingDirectory { path }).into_iter().collect(),
        ..Outcome::ended(ending, text)
    }
}

/// Adds a line of ours to what a command printed.
fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}
