//! `windlass` by itself: a conversation in this directory, at the interactive terminal.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::anyhow;
use windlass_coordinator::{BoxFuture, Coordinator, Error, NewSession, Share, files};
use windlass_core::axes::Axes;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::shown::{shown, shown_line, shown_path};
use windlass_tools::workspace::repository::boundary;
use windlass_tools::workspace::working_tree;
use windlass_tui::app::Settings;
use windlass_tui::host::{
    ChangedFile, Clipboard, Host, Layout, Message, Options, ShellEnd, ShellRun, Signal,
    UserMessage, project_name,
};
use windlass_tui::keymap::Keymap;
use windlass_tui::terminal::KeyModes;
use windlass_tui::text::Signs;
use windlass_tui::transcript::REPRINTED_ROWS;
use windlass_tui::{ExitReport, Failed};

use super::chat::{self, Chat, Opening};
use super::goal::{Goal, named_place};
use super::{AppContext, Execute as _, Start, config, exec};
use crate::args::ConversationArgs;
use crate::config::types::{Editing, Notify, TerminalScreen};
use crate::config::{Config, edit};
use crate::failure::Failure;
use crate::show::note;
use crate::wiring::{Environment, Project, place};

/// Opens the terminal; where that cannot redraw lines, the conversation is in plain lines.
pub(super) fn open(start: Start, args: ConversationArgs) -> Result<u8, Failure> {
    let style = windlass_term::TerminalStyle::detect();
    if !style.can_ask || !style.is_stdout_terminal {
        let hint = "`windlass chat` reads lines from a pipe; `windlass run \"…\"` works on a goal";
        return Err(Failure::usage("there is no terminal to open a conversation at", hint));
    }
    if !style.can_redraw {
        return Chat::plain(args).execute(start);
    }
    let (app, project) = chat::open_app(start, &args)?;
    let opening = Opening::check(&app, &project, &args)?;
    app.runtime.block_on(opening.take_over_flags(&args))?;
    let Opening { coordinator, session, new, chosen, workspace, share } = opening;
    let host = CommandLine {
        environment: app.environment.clone(),
        coordinator: coordinator.clone(),
        workspace: workspace.clone(),
    };
    let options = options(&app, &project, &workspace, session, new)?;
    let options = Options {
        model: chosen.model.to_string(),
        effort: chosen.effort.map(|effort| effort.to_string()),
        share,
        ..options
    };
    let left = app.runtime.block_on(windlass_tui::run(coordinator, Arc::new(host), options));
    match left {
        Ok(left) => Ok(report_exit(&left)),
        Err(Failed::Coordinator(error)) => Err(error.into()),
        Err(Failed::Terminal(error)) => {
            Err(anyhow::Error::from(error).context("the terminal cannot be used").into())
        }
    }
}

fn report_exit(left: &ExitReport) -> u8 {
    for (task, why) in &left.parked {
        note(&format!(
            "{task} is parked, because it cannot continue without you: {}",
            shown_line(why)
        ));
        note(&format!("resume it with: windlass resume {task}"));
    }
    for task in &left.background {
        note(&format!("{task} continues; watch it with: windlass attach {task}"));
    }
    if left.exists {
        note(&format!("continue with: windlass --session {}", left.session));
    }
    0
}

fn options(
    app: &AppContext,
    project: &Project,
    workspace: &Path,
    session: SessionId,
    new: NewSession,
) -> Result<Options, Failure> {
    let config = project.config();
    let variable = |name: &str| {
        app.environment.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    };
    let settings = Settings {
        paint: app.style.results,
        animation: config.tui.animation && !config.tui.screen_reader,
        screen_reader: config.tui.screen_reader,
        keymap: keymap(config)?,
        project: project_name(workspace),
        user: app.environment.user(),
        may_be_unrestricted: config.policy.allow_unrestricted,
        vim: config.tui.editing == Editing::Vim,
        // Checked when the configuration was read.
        status: config.tui.status.iter().filter_map(|part| part.parse().ok()).collect(),
    };
    let is_tmux = variable("TMUX").is_some();
    // Its font has few signs, and it has one screen.
    let is_linux_console = variable("TERM") == Some("linux");
    Ok(Options {
        settings,
        layout: match config.tui.screen {
            TerminalScreen::Inline => Layout::Inline,
            TerminalScreen::Full => Layout::Full,
        },
        signal: match config.ui.notify {
            Notify::Off => Signal::Off,
            Notify::Bell => Signal::Bell,
            Notify::Osc9 => Signal::Desktop,
        },
        clipboard: clipboard(&variable),
        key_modes: KeyModes { enhanced: config.tui.enhanced_keys, is_tmux },
        is_gnu_screen: variable("STY").is_some() && !is_tmux,
        signs: match (is_unicode(&variable), is_linux_console) {
            (false, _) => Signs::Ascii,
            (true, true) => Signs::Latin,
            (true, false) => Signs::Unicode,
        },
        has_alternate_screen: !is_linux_console,
        title: config.tui.title,
        mouse: config.tui.mouse,
        rewrap: config.tui.rewrap,
        has_links: has_links(variable("TERM").unwrap_or_default(), is_tmux),
        reprinted_rows: reprinted_rows(&variable),
        state: app.environment.data.join("terminal"),
        workspace: workspace.to_owned(),
        editor: editor(&variable),
        session,
        new,
        model: String::new(),
        effort: None,
        share: Share::Alone,
        message: None,
        greeting: Vec::new(),
    })
}

fn keymap(config: &Config) -> Result<Keymap, Failure> {
    let text = |(name, keys): (&String, &serde_json::Value)| {
        (name.clone(), keys.as_str().unwrap_or_default().to_owned())
    };
    let bindings = config.tui.keys.0.iter().map(text).collect();
    // Checked when the configuration was read.
    Keymap::with(&bindings).map_err(|problem| anyhow!("`tui.keys`: {problem}").into())
}

/// Whether the locale's letters are Unicode; unset, as most terminals are today.
fn is_unicode<'a>(variable: &impl Fn(&str) -> Option<&'a str>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Whether a terminal knows links or ignores them. tmux, which often calls itself screen, handles them.
fn has_links(term: &str, is_tmux: bool) -> bool {
    is_tmux || !(matches!(term, "" | "linux" | "dumb") || term.starts_with("screen"))
}

/// As many rows as a terminal keeps, where that is known; what is printed beyond them would only scroll past.
fn reprinted_rows<'a>(variable: &impl Fn(&str) -> Option<&'a str>) -> usize {
    let is_alacritty = variable("ALACRITTY_WINDOW_ID").is_some()
        || variable("TERM").is_some_and(|term| term.starts_with("alacritty"));
    match variable("TERM_PROGRAM") {
        Some("vscode") => 1000,
        Some("WezTerm") => 3500,
        _ if variable("WT_SESSION").is_some() => 9001,
        _ if is_alacritty => 10_000,
        _ => REPRINTED_ROWS,
    }
}

/// On this desktop its clipboard, else inside tmux its buffer, over SSH and elsewhere the terminal's own.
fn clipboard<'a>(variable: &impl Fn(&str) -> Option<&'a str>) -> Clipboard {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    let is_remote = variable("SSH_CONNECTION").is_some();
    let has = |program: &str| {
        let path = variable("PATH").unwrap_or_default();
        std::env::split_paths(path).any(|directory| directory.join(program).is_file())
    };
    if !is_remote && variable("WAYLAND_DISPLAY").is_some() && has("wl-copy") {
        Clipboard::Program(words(&["wl-copy"]))
    } else if !is_remote && variable("DISPLAY").is_some() && has("xclip") {
        Clipboard::Program(words(&["xclip", "-selection", "clipboard"]))
    } else if variable("TMUX").is_some() {
        Clipboard::Tmux(words(&["tmux", "load-buffer", "-w", "-"]))
    } else {
        Clipboard::Terminal
    }
}

fn editor<'a>(variable: &impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let words = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or("vi");
    words.split_whitespace().map(str::to_owned).collect()
}

/// What the terminal needs of the command line.
struct CommandLine {
    environment: Environment,
    coordinator: Coordinator,
    workspace: PathBuf,
}

fn without_keys(coordinator: &Coordinator, text: &str) -> String {
    let mut stream = coordinator.artifacts().outputs().redacted();
    let mut clean = stream.push(text.as_bytes()).into_owned();
    clean.extend(stream.finish());
    String::from_utf8_lossy(&clean).into_owned()
}

impl Host for CommandLine {
    fn message(&self, directory: &Path, written: &UserMessage) -> Result<Message, String> {
        let mut message = Goal::of_pasted(&written.text, &written.own_words, directory);
        // Which model reads it may change with the message.
        let pictures = message.keep_pictures(&self.coordinator, Some(true));
        let pictures = pictures.map_err(|failure| shown_line(&format!("{:#}", failure.error)))?;
        let notices = std::mem::take(&mut message.notices);
        let shown = message.shown_text(&written.typed);
        Ok(Message { text: message.with_attachments(), shown, pictures, notices })
    }

    fn entries(&self, directory: &Path, place: &str) -> Vec<String> {
        files::entries(&named_place(place, directory))
    }

    fn explain(&self, error: Error) -> String {
        let failure = Failure::from(error);
        let mut words = shown(&failure.error.to_string());
        for cause in failure.error.chain().skip(1) {
            words += &format!(": {}", shown(&cause.to_string()));
        }
        match failure.hint.filter(|hint| !hint.is_empty()) {
            Some(hint) => format!("{words}\n{}", shown(&hint)),
            None => words,
        }
    }

    fn background(&self, task: TaskId) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        // This process owns the task until it has ended.
        let after = "while kill -0 \"$0\" 2>/dev/null; do sleep 0.1; done; exec \"$@\"";
        let started = std::process::Command::new("sh")
            .args(["-c", after, &std::process::id().to_string()])
            .arg(program)
            .arg("--data")
            .arg(&self.environment.data)
            .args(["resume", &task.to_string(), "--quiet"])
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Not of this terminal's job, so that its end does not end it.
            .process_group(0)
            .spawn();
        started.map(drop).map_err(|error| error.to_string())
    }

    fn bind(&self, action: &str, keys: Option<&str>) -> Result<String, String> {
        let kept = config::change_user_file(|text| edit::bind(text, action, keys));
        let (path, _) = kept.map_err(|failure| shown_line(&format!("{:#}", failure.error)))?;
        Ok(shown_path(&path))
    }

    fn shell<'a>(
        &'a self,
        directory: &'a Path,
        axes: Axes,
        run: ShellRun<'a>,
    ) -> BoxFuture<'a, Result<ShellEnd, String>> {
        Box::pin(async move {
            let (environment, coordinator) = (&self.environment, &self.coordinator);
            let ran = exec::for_person(environment, coordinator, directory, axes, run);
            ran.await.map_err(|failure| shown_line(&format!("{:#}", failure.error)))
        })
    }

    fn working_tree<'a>(
        &'a self,
        directory: &'a Path,
    ) -> BoxFuture<'a, Result<Option<Vec<ChangedFile>>, String>> {
        Box::pin(async move {
            let home = place::home(&self.environment);
            let top = boundary(directory, home.as_deref());
            let files = working_tree::changes(&top, self.environment.search_path()).await?;
            let file = |file: working_tree::ChangedFile| ChangedFile {
                path: file.path,
                is_new: file.is_new,
                diff: file.diff.map(|diff| without_keys(&self.coordinator, &diff)),
            };
            Ok(files.map(|files| files.into_iter().map(file).collect()))
        })
    }
}
