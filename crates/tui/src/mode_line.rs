//! The mode of a session: in words, as a badge for narrow terminals, as the title of the window (MS-098…119).

use windlass_core::axes::{Axes, ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_term::Paint;

/// Below this many columns the badge is short (MS-099).
pub const NARROW: usize = 80;
/// The longest title.
const TITLE_CHARS: usize = 240;

const DIM: &str = "2";
const ACCENT: &str = "35";
const SUCCESS: &str = "32";
const WARNING: &str = "33";
const ERROR: &str = "31";
const INFO: &str = "36";

/// Where the session stands, for its mode line.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    pub axes: Axes,
    /// The role, where one is taken (AX-096).
    pub role: Option<String>,
    /// Whether an autonomous session is paused: shown dimmed (MS-220).
    pub is_paused: bool,
}

/// How a mode is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeLineStyle {
    pub columns: usize,
    /// Whether the pulse of an autonomous session is at its bright half (MS-106).
    pub is_bright: bool,
}

impl Mode {
    /// `windlass build | autonomous | trusted | smart`, short where the terminal is narrow.
    pub fn line(&self, paint: Paint, look: ModeLineStyle) -> String {
        let name = if self.is_paused { paint.dim("windlass") } else { paint.bold("windlass") };
        format!("{name} {}", self.badge(paint, look))
    }

    /// The mode without the name of the program.
    pub fn badge(&self, paint: Paint, look: ModeLineStyle) -> String {
        let short = self.is_short(look.columns);
        let parts = self.parts(short).map(|(word, style)| match (self.is_paused, style) {
            (true, _) => paint.dim(&word),
            (false, style) => paint.with(&pulsing(style, &word, look), &word),
        });
        let badge = match short {
            true => parts.concat(),
            false => parts.join(&paint.dim(" | ")),
        };
        let role = self.role.as_deref().map(|role| format!(" {}", paint.with(ACCENT, role)));
        let paused = match (self.is_paused, short) {
            (false, _) => "",
            (true, true) => " ‖",
            (true, false) => " paused",
        };
        format!("{badge}{}{}", role.unwrap_or_default(), paint.yellow(paused))
    }

    /// Repair and review are said in full at any width (MS-100).
    fn is_short(&self, columns: usize) -> bool {
        let is_said = matches!(self.axes.work_mode, WorkMode::Repair | WorkMode::Review);
        columns < NARROW && !is_said
    }

    /// Each axis in its word or letter, and its colour.
    fn parts(&self, short: bool) -> [(String, &'static str); 4] {
        let Axes { work_mode, run_control, permission_profile, model_mode, .. } = self.axes;
        let one = |word: &str, letter: char, style: &'static str| match short {
            true => (format!("[{letter}]"), style),
            false => (word.to_owned(), style),
        };
        [
            one(work_mode.as_str(), work_letter(work_mode), work_style(work_mode)),
            one(run_control.as_str(), control_letter(run_control), control_style(run_control)),
            one(
                permission_profile.as_str(),
                profile_letter(permission_profile),
                profile_style(permission_profile),
            ),
            one(model_mode.as_str(), model_letter(model_mode), DIM),
        ]
    }

    /// The same for a screen reader: each axis by its name.
    pub fn words(&self) -> String {
        let Axes { work_mode, run_control, permission_profile, model_mode, .. } = self.axes;
        let role = self.role.as_deref().map(|role| format!(", role {role}")).unwrap_or_default();
        let paused = if self.is_paused { ", paused" } else { "" };
        format!(
            "{work_mode}, {run_control}, profile {permission_profile}, model {model_mode}{role}{paused}"
        )
    }

    /// `windlass[build|A|trusted|smart] project`, without what could control a terminal (MS-103).
    pub fn title(&self, project: &str, needs_attention: bool) -> String {
        let Axes { work_mode, run_control, permission_profile, model_mode, .. } = self.axes;
        let control = control_letter(run_control);
        let attention = if needs_attention { "! " } else { "" };
        let title = format!(
            "{attention}windlass[{work_mode}|{control}|{permission_profile}|{model_mode}] {project}"
        );
        let hidden = |char: &char| !windlass_core::shown::is_hidden(*char);
        title.chars().filter(hidden).take(TITLE_CHARS).collect()
    }
}

/// What a change of the axes has changed: `chat → plan, normal → trusted`.
pub fn change_words(from: Axes, to: Axes) -> String {
    let words = |axes: Axes| {
        let Axes { work_mode, run_control, permission_profile, model_mode, surface: _ } = axes;
        [work_mode.as_str(), run_control.as_str(), permission_profile.as_str(), model_mode.as_str()]
    };
    let pairs = words(from).into_iter().zip(words(to)).filter(|(from, to)| from != to);
    let changed: Vec<String> = pairs.map(|(from, to)| format!("{from} → {to}")).collect();
    if changed.is_empty() { to.to_string() } else { changed.join(", ") }
}

/// The style of a word; that of an autonomous session is bold in one half of its pulse.
fn pulsing(style: &str, word: &str, look: ModeLineStyle) -> String {
    let is_pulse = matches!(word, "autonomous" | "[A]") && style == SUCCESS;
    if is_pulse && look.is_bright { format!("1;{style}") } else { style.to_owned() }
}

const fn work_letter(mode: WorkMode) -> char {
    match mode {
        WorkMode::Chat => 'C',
        WorkMode::Plan => 'P',
        WorkMode::Build => 'B',
        WorkMode::Review | WorkMode::Repair | WorkMode::Research => 'R',
    }
}

const fn work_style(mode: WorkMode) -> &'static str {
    match mode {
        WorkMode::Chat => DIM,
        WorkMode::Plan => ACCENT,
        WorkMode::Build => SUCCESS,
        WorkMode::Review => WARNING,
        WorkMode::Repair => ERROR,
        WorkMode::Research => INFO,
    }
}

const fn control_letter(control: RunControl) -> char {
    match control {
        RunControl::Manual => 'M',
        RunControl::Assisted => 'S',
        RunControl::Autonomous => 'A',
    }
}

const fn control_style(control: RunControl) -> &'static str {
    match control {
        RunControl::Manual => DIM,
        RunControl::Assisted => WARNING,
        RunControl::Autonomous => SUCCESS,
    }
}

const fn profile_letter(profile: PermissionProfile) -> char {
    match profile {
        PermissionProfile::Restricted => 'R',
        PermissionProfile::Normal => 'N',
        PermissionProfile::Trusted => 'T',
        PermissionProfile::Unrestricted => 'U',
    }
}

const fn profile_style(profile: PermissionProfile) -> &'static str {
    match profile {
        PermissionProfile::Restricted => SUCCESS,
        PermissionProfile::Normal => DIM,
        PermissionProfile::Trusted => WARNING,
        PermissionProfile::Unrestricted => ERROR,
    }
}

const fn model_letter(mode: ModelMode) -> char {
    match mode {
        ModelMode::Fast => 'F',
        ModelMode::Smart => 'S',
        ModelMode::Deep => 'D',
    }
}

/// The work mode after this one.
pub fn next_work_mode(mode: WorkMode) -> WorkMode {
    next(WorkMode::ALL, mode)
}

/// The profile after this one; `unrestricted` only where the person has opted in (MS-097).
pub fn next_profile(profile: PermissionProfile, may_be_unrestricted: bool) -> PermissionProfile {
    match next(PermissionProfile::ALL, profile) {
        PermissionProfile::Unrestricted if !may_be_unrestricted => PermissionProfile::Restricted,
        next => next,
    }
}

fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let at = all.iter().position(|one| *one == now).unwrap_or(0);
    all[(at + 1) % all.len()]
}
