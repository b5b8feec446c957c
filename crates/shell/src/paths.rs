//! Where a path leads and what writing or reading there would mean. Lexical: nothing is looked up.

use super::Context;
use super::state::{Arg, UNKNOWN};
use windlass_core::layout::TASKS_DIRECTORY;
use windlass_core::policy::class::{Assessment, Class, Risk};
use windlass_core::policy::files;
use windlass_core::policy::pattern::glob;

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Zone {
    Workspace,
    Scratch,
    Unknown,
    Outside,
    Device,
}

/// What a command does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    /// It names the file, as `fdisk -l` names a device.
    Mention,
    Write,
    Remove,
}

/// Files in a workspace that other programs run, as globs on the path inside it.
const RUN_BY_OTHERS: &[(&str, &str)] = &[
    (".git/hooks/*", "git runs"),
    (".git/*", "git obeys"),
    (".gitmodules", "git obeys"),
    (".husky/*", "git runs"),
    (".githooks/*", "git runs"),
    (".github/workflows/*", "the CI runs"),
    (".github/actions/*", "the CI runs"),
    (".gitlab-ci.yml", "the CI runs"),
    (".circleci/*", "the CI runs"),
    (".travis.yml", "the CI runs"),
    (".ci/*", "the CI runs"),
    (".buildkite/*", "the CI runs"),
    (".woodpecker*", "the CI runs"),
    (".drone.yml", "the CI runs"),
    ("azure-pipelines.yml", "the CI runs"),
    ("bitbucket-pipelines.yml", "the CI runs"),
    ("Jenkinsfile", "the CI runs"),
    ("package.json", "package managers run"),
    (".npmrc", "package managers obey"),
    (".envrc", "direnv runs"),
    (".pre-commit-config.yaml", "git runs"),
    (".vscode/tasks.json", "the editor runs"),
    (".vscode/settings.json", "the editor obeys"),
    (".cargo/config.toml", "cargo obeys"),
];

/// Where data is kept unless a person says otherwise: journals, keys, and workspaces of services and of evals.
const OWN_DATA: &str = "~/.local/share/windlass/*";

/// Files with secrets, as globs on the absolute path; `~` is the home directory.
const SECRETS: &[&str] = &[
    "~/.ssh/*",
    "/root/.ssh/*",
    "/home/*/.ssh/*",
    "/etc/shadow*",
    "/etc/gshadow*",
    "/etc/sudoers*",
    "/etc/ssh/*key",
    "~/.aws/*",
    "~/.azure/*",
    "~/.config/gcloud/*",
    "~/.config/gh/*",
    "~/.kube/config",
    "~/.docker/config.json",
    "~/.netrc",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.npmrc",
    "~/.pypirc",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.cargo/credentials*",
    "~/.gnupg/*",
    "~/.password-store/*",
    "~/.local/share/keyrings/*",
    "~/.mozilla/*",
    "~/.config/google-chrome/*",
    "~/.bash_history",
    "~/.zsh_history",
    "~/.config/windlass/*",
    OWN_DATA,
    "/proc/*/environ",
    "/proc/*/mem",
    "/run/secrets/*",
    "/var/run/secrets/*",
];

/// Files that run at every start of a shell, a session or the machine, or that decide what does; as globs on
/// the absolute path. Writing one leaves something that runs later, when nobody looks.
const RUN_AT_START: &[&str] = &[
    "~/.bashrc",
    "~/.bash_*",
    "~/.profile",
    "~/.zsh*",
    "~/.zprofile",
    "~/.zlogin",
    "~/.zlogout",
    "~/.kshrc",
    "~/.mkshrc",
    "~/.cshrc",
    "~/.tcshrc",
    "~/.login",
    "~/.config/fish/*",
    "~/.inputrc",
    "~/.xinitrc",
    "~/.xsession*",
    "~/.xprofile",
    "~/.config/autostart/*",
    "~/.config/systemd/*",
    "~/.local/share/systemd/*",
    "~/.config/environment.d/*",
    "~/.pam_environment",
    "~/.ssh/*",
    "~/.gitconfig",
    "~/.config/git/*",
    "~/.gitattributes",
    "~/.npmrc",
    "~/.yarnrc*",
    "~/.config/pip/*",
    "~/.pip/*",
    "~/.cargo/config*",
    "~/.vimrc",
    "~/.vim/*",
    "~/.config/nvim/*",
    "~/.emacs*",
    "~/.config/emacs/*",
    "~/.tmux.conf",
    "~/.config/tmux/*",
    "~/.screenrc",
    "~/.gdbinit",
    "~/.lldbinit",
    "~/.pythonrc*",
    "~/.direnvrc",
    "~/.config/direnv/*",
    "~/.local/bin/*",
    "~/bin/*",
    "~/.cargo/bin/*",
    "~/Library/LaunchAgents/*",
    "/etc/profile*",
    "/etc/bash*",
    "/etc/zsh*",
    "/etc/environment",
    "/etc/cron*",
    "/var/spool/cron*",
    "/etc/systemd/*",
    "/usr/lib/systemd/*",
    "/lib/systemd/*",
    "/etc/init.d/*",
    "/etc/rc*",
    "/etc/xdg/autostart/*",
    "/etc/ld.so.*",
    "/etc/ssh/*",
    "/etc/pam.d/*",
    "/Library/LaunchDaemons/*",
];

/// Paths as the shell sees them: from each directory it may be in.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    pub context: &'a Context,
    /// Every directory a relative path may start at; `None` for one that is not known.
    pub directories: &'a [Option<String>],
}

impl Resolver<'_> {
    /// The absolute paths a path may be; `None` where the directory is not known.
    pub(super) fn resolve(&self, path: &str) -> Vec<Option<String>> {
        self.directories.iter().map(|from| resolve_from(from.as_deref(), path)).collect()
    }

    /// The worst of the places a path may lead.
    pub(super) fn place(&self, path: &str) -> Zone {
        let places = self.resolve(path).into_iter().map(|path| match path {
            Some(path) if path.contains(UNKNOWN) => unknown_place(self.context, &path),
            Some(path) => place(self.context, &path),
            None => Zone::Unknown,
        });
        places.max().unwrap_or(Zone::Unknown)
    }

    /// Whether a path is the root, a home, or another place whose loss ruins the machine.
    pub(super) fn is_vital(&self, path: &str) -> bool {
        let bare = path.trim_end_matches(['*', '.']).trim_end_matches('/');
        if path.starts_with('/') && bare.is_empty() {
            return true;
        }
        let home = self.context.home.trim_end_matches('/');
        let workspace = &self.context.workspace;
        self.resolve(if bare.is_empty() { path } else { bare }).into_iter().flatten().any(|path| {
            path == "/"
                || path == home
                || workspace.starts_with(&format!("{path}/"))
                || (path.matches('/').count() == 1
                    && !matches!(&*path, "/tmp" | "/mnt" | "/media")
                    && !workspace.starts_with(&path))
        })
    }

    /// Whether every path that a command names lies inside the workspace and is neither its root nor in `.git`.
    /// Each word counts as a path: a word that is not one is judged as a name inside the directory.
    pub(super) fn confines(&self, argv: &[Arg]) -> bool {
        argv.iter().skip(1).all(|arg| {
            let word = arg.text.split_once('=').map_or(&*arg.text, |(_, value)| value);
            let path = match word.strip_prefix('-') {
                Some(option) if !option.starts_with('-') => option.get(1..).unwrap_or_default(),
                Some(_) => "",
                None => word,
            };
            // A letter before the path is an option's: `-C/etc`.
            let bare_option = word.starts_with('-') && !path.contains('/');
            path.is_empty() || bare_option || self.is_confined(path)
        })
    }

    fn is_confined(&self, path: &str) -> bool {
        self.resolve(path).iter().all(|path| {
            let inside = path
                .as_deref()
                .filter(|path| !path.contains(UNKNOWN))
                .and_then(|path| inside(self.context, path));
            let first = inside.and_then(|inside| inside.split('/').next()).unwrap_or_default();
            let everything = first.chars().all(|c| matches!(c, '*' | '?' | '.'));
            !everything && !glob(first, ".git") && !first.eq_ignore_ascii_case(".git")
        })
    }

    /// What using this file would mean; `None` for a harmless read.
    pub(super) fn judge(&self, file: &Arg, usage: Use) -> Option<Assessment> {
        let context = self.context;
        let path = &*file.text;
        if path.is_empty() || path == "-" {
            return None;
        }
        let shown = super::findings::display_text(path);
        let absolute: Vec<String> = self.resolve(path).into_iter().flatten().collect();
        if absolute.iter().any(|path| secret(context, path)) {
            let reason = format!("`{shown}` holds secrets");
            return Some(match usage {
                Use::Read | Use::Mention => {
                    Assessment::of(Class::Read, reason).at_least(Risk::High)
                }
                Use::Write | Use::Remove => Assessment::of(Class::Destructive, reason),
            });
        }
        if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
            return Some(Assessment::of(
                Class::Publish,
                format!("`{shown}` is a network connection"),
            ));
        }
        if usage == Use::Mention {
            return None;
        }
        if usage == Use::Read {
            let raw = absolute
                .iter()
                .any(|path| path.starts_with("/dev/") && place(context, path) == Zone::Device);
            return raw.then(|| {
                Assessment::of(Class::Read, format!("reads the raw device `{shown}`"))
                    .at_least(Risk::High)
            });
        }
        // Of a place that is not known at all more is said below.
        if !path.starts_with(UNKNOWN) && absolute.iter().any(|path| may_be_rule(context, path)) {
            return Some(Assessment::of(
                Class::Production,
                format!("may change a file that says what an agent may do: `{shown}`"),
            ));
        }
        if let Some(care) = self.judge_target(&absolute, &shown) {
            return Some(care);
        }
        self.judge_change(path, &shown, usage)
    }

    /// A file of which a change means more than a change of a file.
    fn judge_target(&self, absolute: &[String], shown: &str) -> Option<Assessment> {
        let context = self.context;
        if absolute.iter().any(|path| changes_rules(context, path)) {
            return Some(Assessment::of(
                Class::Production,
                format!("changes `{shown}`, which says what an agent may do"),
            ));
        }
        let runs_at_start = |path: &String| {
            let location = Location::new(context, path);
            RUN_AT_START.iter().any(|file| location.is_at(file))
        };
        if absolute.iter().any(runs_at_start) {
            return Some(Assessment::of(
                Class::Destructive,
                format!("changes `{shown}`, which decides what runs at a later start"),
            ));
        }
        let who = absolute.iter().find_map(|path| run_by_others(context, path))?;
        Some(Assessment::of(Class::Destructive, format!("changes `{shown}`, which {who}")))
    }

    /// A change, by where it is.
    fn judge_change(&self, path: &str, shown: &str, usage: Use) -> Option<Assessment> {
        if path.starts_with(UNKNOWN) && usage == Use::Write {
            return Some(Assessment::of(
                Class::Opaque,
                "writes a file that is only known when it runs",
            ));
        }
        let verb = if usage == Use::Remove { "removes" } else { "writes" };
        match self.place(path) {
            Zone::Workspace | Zone::Scratch if is_sink(shown) => None,
            Zone::Workspace | Zone::Scratch => Some(
                Assessment::of(Class::Edit, format!("{verb} `{shown}`")).at_least(Risk::Medium),
            ),
            Zone::Unknown => Some(Assessment::of(
                Class::Opaque,
                format!("{verb} `{shown}` in a directory that is only known when it runs"),
            )),
            Zone::Outside => Some(Assessment::of(
                Class::Destructive,
                format!("{verb} `{shown}`, which is outside the workspace"),
            )),
            Zone::Device => {
                Some(Assessment::of(Class::Catastrophic, format!("{verb} the device `{shown}`")))
            }
        }
    }
}

/// The path, absolute and without `.` and `..`; `None` when it depends on an unknown directory.
fn resolve_from(from: Option<&str>, path: &str) -> Option<String> {
    let joined = match path.strip_prefix('/') {
        Some(_) => path.to_owned(),
        None => join(from?, path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// A directory and a path in it.
pub(super) fn join(directory: &str, path: &str) -> String {
    format!("{}/{path}", directory.trim_end_matches('/'))
}

fn is_under(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where an absolute path leads.
fn place(context: &Context, path: &str) -> Zone {
    match path {
        "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty" | "/dev/zero"
        | "/dev/full" | "/dev/random" | "/dev/urandom" => Zone::Workspace,
        path if path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/") => {
            Zone::Workspace
        }
        path if inside(context, path).is_some() => Zone::Workspace,
        path if context.scratch.iter().any(|scratch| is_under(path, scratch)) => Zone::Scratch,
        path if is_under(path, "/dev/shm") => Zone::Outside,
        path if ["/dev", "/sys", "/proc", "/boot"].iter().any(|root| is_under(path, root)) => {
            Zone::Device
        }
        _ => Zone::Outside,
    }
}

/// A path with unknown parts: outside if what is known already leads there.
fn unknown_place(context: &Context, path: &str) -> Zone {
    let known = path.split(UNKNOWN).next().unwrap_or_default();
    let directory = known.rfind('/').map_or("/", |at| &known[..at]);
    match place(context, directory) {
        _ if directory.is_empty() || known.is_empty() => Zone::Unknown,
        Zone::Workspace => Zone::Workspace,
        other => other,
    }
}

/// Files that swallow what is written.
fn is_sink(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("/proc/self/fd/")
}

/// What of a path is below the workspace, by whichever name it is called, or below a directory added to it.
fn inside<'p>(context: &Context, path: &'p str) -> Option<&'p str> {
    let tops = std::iter::once(&context.workspace).chain(&context.more_workspaces);
    tops.filter(|top| is_under(path, top))
        .find_map(|top| path.strip_prefix(top.trim_end_matches('/')))
        .map(|rest| rest.trim_start_matches('/'))
}

fn run_by_others(context: &Context, path: &str) -> Option<&'static str> {
    let inside = inside(context, path)?;
    if inside.split('/').any(|part| part == "node_modules") {
        return None;
    }
    let is_at_any_depth = |pattern: &str| files::tails(inside).any(|tail| is_at(pattern, tail));
    RUN_BY_OTHERS.iter().find(|(pattern, _)| is_at_any_depth(pattern)).map(|(_, who)| *who)
}

/// Whether an absolute path leads to a file of the workspace that changes an agent's own rules.
fn changes_rules(context: &Context, path: &str) -> bool {
    let stands_for = |file: &String| glob(&without_brackets(path), file);
    let is_below = |file: &String| {
        path.strip_prefix(&**file).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_glob = has_glob(path);
    inside(context, path).is_some_and(files::changes_rules)
        || is_of_other_task(context, path)
        || context.linked_rules.iter().any(is_below)
        || is_glob && context.rule_files.iter().chain(&context.linked_rules).any(stands_for)
}

/// Whether an absolute path is among the files of tasks and not this task's own.
fn is_of_other_task(context: &Context, path: &str) -> bool {
    let Some(own) = &context.task_directory else { return false };
    let is_own =
        || path.strip_prefix(&**own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_tasks = |inside: &str| {
        inside
            .to_ascii_lowercase()
            .strip_prefix(TASKS_DIRECTORY)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    inside(context, path).is_some_and(is_tasks) && !is_own()
}

/// Whether a path in a known directory whose rest is only known when it runs may be a rule of an agent that starts at
/// the top, or where this one did.
fn may_be_rule(context: &Context, path: &str) -> bool {
    if !path.contains(UNKNOWN) {
        return false;
    }
    let pattern = without_brackets(&path.replace(UNKNOWN, "*"));
    let tops = std::iter::once(&context.workspace).chain(&context.more_workspaces);
    let mut directories = tops.chain([&context.directory]);
    directories
        .any(|directory| files::rule_names().any(|name| glob(&pattern, &join(directory, name))))
}

/// A glob in which a set of characters is any character.
fn without_brackets(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| match part.split_once(']') {
        Some((_, rest)) => format!("{path}?{rest}"),
        None => format!("{path}[{part}"),
    })
}

/// Whether a path is what a glob names. What is copied over a directory lands in it.
fn is_at(pattern: &str, path: &str) -> bool {
    glob(pattern, path) || pattern.strip_suffix("/*") == Some(path)
}

/// An absolute path, and what of it is below the home directory: looked up once for many globs.
struct Location<'p> {
    path: &'p str,
    in_home: Option<&'p str>,
}

impl<'p> Location<'p> {
    fn new(context: &Context, path: &'p str) -> Self {
        let in_home = path.strip_prefix(context.home.trim_end_matches('/'));
        Self { path, in_home }
    }

    /// Whether it is what a glob names, in which `~` is the home directory.
    fn is_at(&self, pattern: &str) -> bool {
        match pattern.strip_prefix('~') {
            Some(below) => self.in_home.is_some_and(|path| is_at(below, path)),
            None => is_at(pattern, self.path),
        }
    }
}

/// Whether an absolute path, possibly with globs in it, may name a secret, by its text or by a link.
fn secret(context: &Context, path: &str) -> bool {
    let path = path.replace(UNKNOWN, "");
    let stands_for = |link: &String| has_glob(&path) && can_overlap(&without_brackets(&path), link);
    names_secret(context, &path)
        || context.linked_secrets.iter().any(|link| is_under(&path, link) || stands_for(link))
}

fn has_glob(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Whether an absolute path, possibly with globs in it, may name a secret by its text.
pub fn names_secret(context: &Context, path: &str) -> bool {
    if files::is_secret(path) {
        return true;
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    // A public key is meant to be read.
    if name.ends_with(".pub") || matches!(name, "known_hosts" | "authorized_keys.example") {
        return false;
    }
    // A workspace that we made there is the agent's own; the rest of the directory is not.
    let is_own = |pattern: &str| {
        pattern == OWN_DATA
            && Location::new(context, &context.workspace).is_at(OWN_DATA)
            && inside(context, path).is_some()
    };
    let location = Location::new(context, path);
    let home = context.home.trim_end_matches('/');
    SECRETS.iter().any(|pattern| {
        let may_be = || has_glob(path) && can_overlap(path, &pattern.replacen('~', home, 1));
        (location.is_at(pattern) || may_be()) && !is_own(pattern)
    })
}

/// Whether two globs can name the same path, part by part.
fn can_overlap(left: &str, right: &str) -> bool {
    let (left, right): (Vec<_>, Vec<_>) = (left.split('/').collect(), right.split('/').collect());
    left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| glob(a, b) || glob(b, a))
}
