//! Variables that make a later command run something, or something else.

use super::Via;
use super::expand::join_fields;
use super::state::{Arg, Values};
use super::walk::Walk;
use windlass_core::policy::class::{Assessment, Class, Risk};
use windlass_core::policy::pattern::glob;

/// Variables whose value is a command that programs run.
const COMMANDS: &[&str] = &[
    "PAGER",
    "*_PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "*_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "LESSOPEN",
    "LESSCLOSE",
    "PROMPT_COMMAND",
    "BROWSER",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC",
    "RUSTDOC",
    "CARGO_TARGET_*_RUNNER",
    "CARGO_TARGET_*_LINKER",
    "CC",
    "CXX",
    "LD",
    "AR",
    "SHELL",
    "TERMINAL",
    "RSYNC_RSH",
    "CVS_RSH",
    "SVN_SSH",
    "DOCKER_HOST_COMMAND",
    "FZF_DEFAULT_COMMAND",
    "MAKE",
    "HGEDITOR",
    "TAR_READER_OPTIONS",
    "GREP_COMMAND",
    "PYTHONBREAKPOINT",
];

/// Variables that load code into programs.
const LOADS: &[&str] = &[
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "BASH_ENV",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "GIT_CONFIG_*",
    "GIT_TEMPLATE_DIR",
    "GIT_EXEC_PATH",
    "ZDOTDIR",
    "BASH_FUNC_*",
    "SHELLOPTS",
    "BASHOPTS",
    "GCONV_PATH",
    "TAR_OPTIONS",
    "VIMINIT",
    "EXINIT",
    "LUA_INIT",
    "PHPRC",
    "R_PROFILE*",
    "GIO_EXTRA_MODULES",
    "GTK_MODULES",
];

/// Judges an assignment that a command or the shell's environment gets.
pub(super) fn judge_assignment(walk: &mut Walk<'_>, name: &str, values: &Values) {
    for fields in values {
        let value = join_fields(fields);
        if let Some(assessment) = judge(walk, name, &value) {
            walk.findings.note(assessment, &[Arg::literal(format!("{name}={}", value.text))]);
        }
    }
}

fn judge(walk: &mut Walk<'_>, name: &str, value: &Arg) -> Option<Assessment> {
    let one_of = |names: &[&str]| names.iter().any(|pattern| glob(pattern, name));
    if value.text.is_empty() {
        return None;
    }
    if one_of(COMMANDS) {
        let via = Via::Variable(name.to_owned());
        walk.in_subshell(via.clone(), |walk| match value.known() {
            Some(text) => walk.script(text, via),
            None => walk.script_text(value, name),
        });
        return None;
    }
    if one_of(LOADS) && !matches!(name, "GIT_CONFIG_NOSYSTEM" | "GIT_CONFIG_COUNT") {
        let harmless = matches!(&*value.text, "/dev/null" | "0" | "1");
        let null = name.starts_with("GIT_CONFIG") && harmless;
        return (!null).then(|| {
            Assessment::of(
                Class::Opaque,
                format!("`{name}` makes later commands load or obey other code"),
            )
        });
    }
    match name {
        "NODE_OPTIONS" => {
            let loads = ["-r", "--require", "--import", "--loader", "--experimental-loader"];
            let found = value
                .known()
                .is_none_or(|text| text.split([' ', '=']).any(|word| loads.contains(&word)));
            found
                .then(|| Assessment::of(Class::Opaque, "`NODE_OPTIONS` makes node load other code"))
        }
        "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS" | "JDK_JAVA_OPTIONS" => {
            let agent = value.known().is_none_or(|text| text.contains("agent"));
            agent.then(|| {
                Assessment::of(Class::Opaque, format!("`{name}` makes java load other code"))
            })
        }
        // `sh` reads the file this names; as a word it is a name of an environment.
        "ENV" => value
            .text
            .contains('/')
            .then(|| Assessment::of(Class::Opaque, "`ENV` names a file that shells run")),
        "RUSTFLAGS" | "CFLAGS" | "CXXFLAGS" | "LDFLAGS" => {
            let links = value.text.contains("linker=") || value.text.contains("-fplugin");
            links.then(|| Assessment::of(Class::Opaque, format!("`{name}` names a program to run")))
        }
        "PATH" => path(&walk.context.workspace, value),
        "HISTFILE" | "HISTSIZE" | "HISTFILESIZE" | "HISTCONTROL" => {
            Some(Assessment::of(Class::Destructive, "changes what the shell's history keeps"))
        }
        _ => None,
    }
}

/// A directory in front of the search path decides which programs later names mean.
fn path(workspace: &str, value: &Arg) -> Option<Assessment> {
    let shared = ["/tmp", "/var/tmp", "/dev/shm"];
    let mut judged = None;
    for entry in value.text.split(':') {
        let relative = !entry.starts_with(['/', '~', super::state::UNKNOWN]);
        if relative || shared.iter().any(|directory| entry.starts_with(directory)) {
            let reason = format!("`PATH` with `{entry}` lets later names mean other programs");
            return Some(Assessment::of(Class::Opaque, reason));
        }
        if entry.starts_with(workspace) {
            judged = Some(
                Assessment::of(Class::LocalCommand, "puts programs of the workspace on `PATH`")
                    .at_least(Risk::Medium),
            );
        }
    }
    judged
}
