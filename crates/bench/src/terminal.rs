//! The interactive terminal: its start, a key's way to the screen, a stream, an idle minute, and its memory.

mod stream;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use windlass_core::axes::{Axes, Surface};
use windlass_core::event::{Event, Record};
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_core::state::TaskState;
use windlass_testkit::on_terminal;
use windlass_tui::app::{App, Input, Settings};
use windlass_tui::history::History;
use windlass_tui::keymap::Keymap;
use windlass_tui::keys::{Code, Event as Typed, Key};
use windlass_tui::screen::{Abilities, Screen, Size};
use windlass_tui::text::Signs;
use windlass_tui::view;

use crate::Effort;
use crate::figures::{Figure, Unit, median, quantile};
use crate::place::{BenchDir, environment, program};
use crate::server::Server;

/// Events that the aims are stated for.
const EVENTS: usize = 10_000;
const FEW_EVENTS: usize = 100;
const KEYS: usize = 1_000;
/// Tokens a second of a fast model.
const TOKENS: usize = 2_000;
const TOKEN_PAUSE: Duration = Duration::from_millis(2);

pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = vec![first_paint(effort)?, key_to_paint()?];
    figures.extend(streamed()?);
    figures.extend(idle(effort)?);
    figures.push(memory()?);
    Ok(figures)
}

/// From the start of the program to its first frame.
fn first_paint(effort: Effort) -> Result<Figure> {
    let server = Server::start("true", 0, None);
    let place = BenchDir::new()?;
    let mut times = Vec::new();
    for _ in 0..effort.starts() {
        let begun = Instant::now();
        let mut screen = Terminal::open(&place, &server.base())?;
        screen.until("manual")?;
        times.push(begun.elapsed());
    }
    let ms = median(&times).as_secs_f64() * 1e3;
    Ok(Figure::new("terminal: start to first paint", ms, Unit::Milliseconds).at_most(60.0))
}

/// One key at 10,000 events: what changes, what is drawn, and the bytes of it.
fn key_to_paint() -> Result<Figure> {
    let mut world = World::with_events(EVENTS)?;
    let mut times = Vec::new();
    for at in 0..KEYS {
        let char = char::from(b'a' + (at % 26) as u8);
        let begun = Instant::now();
        world.input(Input::Terminal(Typed::Key(Key::plain(Code::Char(char)))));
        world.paint();
        times.push(begun.elapsed());
    }
    let ms = quantile(&times, 0.95).as_secs_f64() * 1e3;
    let what = format!("terminal: key to paint at {EVENTS} events, p95");
    Ok(Figure::new(what, ms, Unit::Milliseconds).at_most(16.0))
}

/// A reply at 500 tokens a second: frames a second, and every character is there.
fn streamed() -> Result<Vec<Figure>> {
    let place = BenchDir::new()?;
    let base = stream::serve(TOKENS, TOKEN_PAUSE)?;
    let mut screen = Terminal::open(&place, &base)?;
    screen.until("manual")?;
    screen.types("talk")?;
    screen.until("talk")?;
    screen.types("\r")?;
    screen.until("tok1 ")?;
    let (begun, before) = (Instant::now(), screen.frames());
    screen.until("waiting for you")?;
    let seconds = begun.elapsed().as_secs_f64();
    let frames = (screen.frames() - before) as f64 / seconds;
    let text = windlass_term::strip_controls(&String::from_utf8_lossy(&screen.written));
    let words: std::collections::HashSet<&str> = text.split_whitespace().collect();
    let lost = (0..TOKENS).filter(|n| !words.contains(format!("tok{n}").as_str())).count();
    ensure!(lost == 0, "{lost} of {TOKENS} tokens were never shown");
    let detail = format!("{TOKENS} tokens in {seconds:.1} s, none lost");
    Ok(vec![
        Figure::new("terminal: frames a second of a stream", frames, Unit::Times)
            .at_most(61.0)
            .from(detail),
    ])
}

/// Bytes and processor time of a terminal that shows nothing new.
fn idle(effort: Effort) -> Result<Vec<Figure>> {
    let server = Server::start("true", 0, None);
    let place = BenchDir::new()?;
    let config = place.path("home").join(".config/windlass");
    std::fs::create_dir_all(&config)?;
    std::fs::write(config.join("config.toml"), "[tui]\nanimation = false\n")?;
    let mut screen = Terminal::open(&place, &server.base())?;
    screen.until("manual")?;
    screen.drain(Duration::from_secs(2))?;
    let time = match effort {
        Effort::Quick => Duration::from_secs(5),
        Effort::Full => Duration::from_secs(60),
    };
    let (bytes, cpu) = (screen.written.len(), processor_time(screen.child.id())?);
    screen.drain(time)?;
    let bytes = (screen.written.len() - bytes) as f64;
    let cpu = (processor_time(screen.child.id())? - cpu).as_secs_f64() / time.as_secs_f64();
    let seconds = time.as_secs();
    Ok(vec![
        Figure::new(format!("terminal: bytes in {seconds} idle seconds"), bytes, Unit::Times)
            .at_most(0.0),
        Figure::new("terminal: percent of a core while idle", cpu * 100.0, Unit::Times)
            .at_most(0.2),
    ])
}

/// Memory after 10,000 events, beside that after 100.
fn memory() -> Result<Figure> {
    let [few, many] = [FEW_EVENTS, EVENTS].map(|events| -> Result<f64> {
        let output = Command::new(std::env::current_exe()?)
            .args(["terminal-memory", &events.to_string()])
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    });
    let (few, many) = (few?, many?);
    let detail = format!("{:.1} MB / {:.1} MB", many / 1024.0, few / 1024.0);
    let what = format!("terminal: memory at {EVENTS} events beside {FEW_EVENTS}");
    Ok(Figure::new(what, many / few, Unit::Times).at_most(1.2).from(detail))
}

/// What the child of [`memory`] does: prints its resident kilobytes after so many events.
pub fn resident_after(events: usize) -> Result<u64> {
    let world = World::with_events(events)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
    drop(world);
    Ok(kilobytes.parse()?)
}

/// The model, the views and the writer without a terminal.
struct World {
    app: App,
    screen: Screen,
    now: Duration,
}

impl World {
    fn with_events(count: usize) -> Result<Self> {
        let size = Size { columns: 120, rows: 40 };
        let settings = Settings {
            paint: windlass_term::Paint { on: true },
            animation: true,
            keymap: Keymap::default(),
            project: "shop".to_owned(),
            user: "ada".to_owned(),
            may_be_unrestricted: false,
            vim: false,
            screen_reader: false,
            status: windlass_term::StatusPart::ALL.to_vec(),
        };
        let mut world = Self {
            app: App::new(settings, size, History::default()),
            screen: Screen::new(size, Abilities { signs: Signs::Unicode, colours: true }),
            now: Duration::ZERO,
        };
        let now = Timestamp::UNIX_EPOCH;
        let task = TaskId::new(now);
        let created = json!({
            "command": {
                "command_id": CommandId::new(now), "session_id": SessionId::new(now),
                "task_id": task, "goal": "measure",
            },
            "root": task, "axes": Axes::interactive(Surface::Tui), "workspace": "/shop",
            "driver": "foreground", "max_retries": 3,
        });
        let created = Event::from_parts("task_created", 1, &created.to_string())?;
        let state = TaskState::fold([(now, &created)])?.context("a created task has a state")?;
        world.input(Input::Follow(Box::new(state)));
        for number in 0..count {
            let reply = json!({
                "text": format!("Reply **{number}** with `code` and some words that fill a line or two of it."),
                "finish": "stop", "model": "m", "latency_ms": 1,
                "usage": { "input_tokens": 10, "cached_tokens": 0, "output_tokens": 10 },
            });
            let event = Event::from_parts("llm_response", 1, &reply.to_string())?;
            let seq = number as u64 + 2;
            let record = Record { pos: 1, task, seq, at: now, iteration: 0, event };
            world.input(Input::Record(Box::new(record)));
            world.paint();
        }
        Ok(world)
    }

    fn input(&mut self, input: Input) {
        self.now += Duration::from_millis(1);
        self.app.update(input, self.now);
    }

    fn paint(&mut self) -> usize {
        let form = self.app.form();
        let entries = self.app.transcript.take_new();
        let rows: Vec<String> = entries.iter().flat_map(|entry| entry.rows(form)).collect();
        self.screen.paint(&rows, &view::zone(&self.app)).len()
    }
}

/// The program on a pseudo-terminal. It ends when this is dropped.
struct Terminal {
    main: File,
    child: Child,
    written: Vec<u8>,
}

impl Terminal {
    fn open(place: &BenchDir, base: &str) -> Result<Self> {
        let server = Server::start("true", 0, None);
        let mut command = Command::new(program("windlass")?);
        command
            .env_clear()
            .envs(environment(&server, place))
            .env("LITELLM_API_BASE", base)
            .env("WINDLASS_DATA", place.data())
            .env("TERM", "xterm-256color")
            .current_dir(place.workspace());
        let (main, child) = on_terminal(command, 120, 40)?;
        Ok(Self { main, child, written: Vec::new() })
    }

    fn types(&mut self, text: &str) -> Result<()> {
        Ok(self.main.write_all(text.as_bytes())?)
    }

    fn until(&mut self, text: &str) -> Result<()> {
        let begun = Instant::now();
        let from = self.written.len();
        loop {
            let seen = String::from_utf8_lossy(&self.written[from.saturating_sub(64)..]);
            if seen.contains(text) {
                return Ok(());
            }
            ensure!(begun.elapsed() < Duration::from_secs(30), "`{text}` was never shown");
            self.read(Duration::from_secs(1))?;
        }
    }

    /// Reads for so long.
    fn drain(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.read(left)?;
        }
        Ok(())
    }

    fn read(&mut self, time: Duration) -> Result<()> {
        let wait = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let mut polled = [PollFd::new(&self.main, PollFlags::IN)];
        if poll(&mut polled, Some(&wait))? > 0 {
            let mut piece = [0; 65536];
            let count = self.main.read(&mut piece)?;
            self.written.extend_from_slice(&piece[..count]);
        }
        Ok(())
    }

    fn frames(&self) -> usize {
        self.written.windows(8).filter(|bytes| bytes == b"\x1b[?2026h").count()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process has used of the processor so far.
fn processor_time(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| -> Result<u64> { Ok(fields.get(at).context("short stat")?.parse()?) };
    // Counted in hundredths of a second on Linux.
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}
