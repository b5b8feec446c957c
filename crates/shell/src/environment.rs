//! Variables that make a later command run something, or something else.

use super::expand::join_fields;
use super::findings::display_text;
use super::paths::Zone;
use super::state::{Arg, UNKNOWN, Values};
use super::walk::Walk;
use super::{Via, address, options, special};
use windlass_core::policy::class::{Assessment, Class};
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
    "RSYNC_CONNECT_PROG",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "npm_config_script_shell",
    "NPM_CONFIG_SCRIPT_SHELL",
];

/// Endings of names whose value is most likely a command, where programs see it.
const COMMAND_ENDINGS: &[&str] = &[
    "*_COMMAND",
    "*_CMD",
    "*_SHELL",
    "*_SSH",
    "*_RSH",
    "*_ASKPASS",
    "*_BROWSER",
    "*_WRAPPER",
    "*_LAUNCHER",
    "*_RUNNER",
    "*_LINKER",
    "*_HOOK",
    "*_HOOKS",
    "*_PROGRAM",
    "*_PROG",
    "*_EXEC",
    "*_OPENER",
    "*_HANDLER",
    "*_PREPROCESSOR",
];

/// Where programs look for code of a language. A place in the workspace is the project's own.
const CODE_PATHS: &[&str] = &[
    "PYTHONPATH",
    "PERL5LIB",
    "PERLLIB",
    "RUBYLIB",
    "NODE_PATH",
    "LUA_PATH",
    "LUA_CPATH",
    "CLASSPATH",
    "PYTHONUSERBASE",
    "GEM_PATH",
    "FPATH",
];

/// Prompts, in which the shell runs substitutions.
const PROMPTS: &[&str] = &["PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT", "RPROMPT"];

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
    "BASH_LOADABLES_PATH",
    "DOTNET_STARTUP_HOOKS",
    "COR_PROFILER*",
    "CORECLR_PROFILER*",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "RIPGREP_CONFIG_PATH",
    "WGETRC",
    "CURL_HOME",
    "INPUTRC",
    "PYTEST_PLUGINS",
    "npm_config_userconfig",
    "npm_config_globalconfig",
    "npm_config_node_options",
    "NPM_CONFIG_USERCONFIG",
    "NPM_CONFIG_GLOBALCONFIG",
];

/// Who sees a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// This shell only.
    Shell,
    /// Programs that it starts.
    Exported,
}

/// Judges an assignment that a command or the shell's environment gets.
pub(super) fn judge_assignment(walk: &mut Walk<'_>, name: &str, values: &Values, scope: Scope) {
    // Each element of an array is one on its own, and so is the whole.
    let parts = values.iter().filter(|fields| fields.len() > 1).flatten().cloned();
    let wholes = values.iter().map(|fields| join_fields(fields));
    for value in parts.chain(wholes).collect::<Vec<_>>() {
        if let Some(assessment) = judge(walk, name, &value, scope) {
            walk.findings.note(assessment, &[Arg::literal(format!("{name}={}", value.text))]);
        }
    }
}

fn judge(walk: &mut Walk<'_>, name: &str, value: &Arg, scope: Scope) -> Option<Assessment> {
    let one_of = |names: &[&str]| names.iter().any(|pattern| glob(pattern, name));
    // Without a directory programs are looked for in the current one.
    if value.text.is_empty() && name != "PATH" {
        return None;
    }
    if matches!(name, "GIT_DIR" | "GIT_WORK_TREE" | "GIT_COMMON_DIR" | "GIT_INDEX_FILE")
        || matches!(name, "GIT_OBJECT_DIRECTORY" | "GIT_ALTERNATE_OBJECT_DIRECTORIES")
    {
        walk.findings.git.mark_moved();
    }
    if PROMPTS.contains(&name) {
        return prompt(walk, name, value);
    }
    // A name like any other counts only where programs see it and its value is a command.
    let likely = scope == Scope::Exported
        && one_of(COMMAND_ENDINGS)
        && value.known().is_some_and(options::looks_like_command);
    if one_of(COMMANDS) || (likely && !one_of(LOADS)) {
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
    if CODE_PATHS.contains(&name) {
        let outside =
            |entry: &str| !entry.is_empty() && walk.paths().place(entry) > Zone::Workspace;
        return value.text.split(':').any(outside).then(|| {
            let reason = format!("`{name}` makes programs load code from outside the workspace");
            Assessment::of(Class::Opaque, reason)
        });
    }
    by_value(walk, name, value)
}

/// A prompt: the substitutions in it run whenever it is shown; `PS4` before every traced command.
fn prompt(walk: &mut Walk<'_>, name: &str, value: &Arg) -> Option<Assessment> {
    match value.known() {
        Some(text) => {
            walk.in_subshell(Via::Variable(name.to_owned()), |walk| {
                walk.expander().document(text);
            });
            None
        }
        None => {
            let reason =
                format!("`{name}` is a prompt, and what it runs is only known when it runs");
            Some(Assessment::of(Class::Opaque, reason))
        }
    }
}

/// Variables of which only some values make a program run something.
fn by_value(walk: &mut Walk<'_>, name: &str, value: &Arg) -> Option<Assessment> {
    match name {
        "NODE_OPTIONS" => {
            let loads = ["-r", "--require", "--import", "--loader", "--experimental-loader"];
            let found = value
                .known()
                .is_none_or(|text| text.split([' ', '=']).any(|word| loads.contains(&word)));
            found
                .then(|| Assessment::of(Class::Opaque, "`NODE_OPTIONS` makes node load other code"))
        }
        "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS" | "JDK_JAVA_OPTIONS" | "MAVEN_OPTS"
        | "GRADLE_OPTS" | "SBT_OPTS" => {
            let agent = value.known().is_none_or(|text| text.contains("agent"));
            agent.then(|| {
                Assessment::of(Class::Opaque, format!("`{name}` makes java load other code"))
            })
        }
        // `sh` reads the file this names; as a word it is a name of an environment.
        "ENV" => value
            .text
            .contains(['/', '.'])
            .then(|| Assessment::of(Class::Opaque, "`ENV` names a file that shells run")),
        "RUSTFLAGS" | "CFLAGS" | "CXXFLAGS" | "LDFLAGS" => {
            let links = value.text.contains("linker=") || value.text.contains("-fplugin");
            links.then(|| Assessment::of(Class::Opaque, format!("`{name}` names a program to run")))
        }
        "MAKEFLAGS" | "GOFLAGS" | "PYTEST_ADDOPTS" | "LESS" | "MANOPT" | "GREP_OPTIONS" => {
            let runs = ["--eval", "-toolexec", "-exec", "-p ", "+!", "+|", "-P", "SHELL="];
            let found =
                value.known().is_none_or(|text| runs.iter().any(|mark| text.contains(mark)));
            found.then(|| Assessment::of(Class::Opaque, format!("`{name}` names something to run")))
        }
        "PIP_INDEX_URL"
        | "PIP_EXTRA_INDEX_URL"
        | "UV_INDEX_URL"
        | "UV_DEFAULT_INDEX"
        | "npm_config_registry"
        | "NPM_CONFIG_REGISTRY" => special::is_foreign(&value.text)
            .then(|| Assessment::of(Class::Opaque, format!("`{name}` names another registry"))),
        name if name.to_ascii_lowercase().ends_with("_proxy") => address::judge(&value.text),
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
        let relative = !entry.starts_with(['/', '~', UNKNOWN]);
        if relative || shared.iter().any(|directory| entry.starts_with(directory)) {
            let entry = display_text(entry);
            let reason = format!("`PATH` with `{entry}` lets later names mean other programs");
            return Some(Assessment::of(Class::Opaque, reason));
        }
        let is_computed = entry.starts_with(UNKNOWN);
        if is_computed || entry.starts_with(workspace) {
            let whose = if is_computed { "some other place" } else { "the workspace" };
            let reason = format!("lets later names mean programs of {whose}");
            judged = Some(Assessment::of(Class::Build, reason));
        }
    }
    judged
}
