//! What one command does, without the commands that it runs. It is looked for among functions and builtins first, then
//! wrappers, shells and interpreters, then in the table.

use super::invocation::Invocation;
use super::paths::{self, Resolver, Use, Zone};
use super::shell::SHELLS;
use super::state::{Arg, UNKNOWN};
use super::table::{self, Files, Program};
use super::walk::Walk;
use super::{
    Context, Via, builtin, code, options, rules, sending, shell, special, wrapper, written,
};
use windlass_core::policy::class::{Assessment, Class};
use windlass_core::policy::pattern::glob;

/// Directories whose programs are the system's or the user's own tools.
const TOOL_DIRECTORIES: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
    "/usr/local/go/bin",
    "/usr/local/cargo/bin",
    "/snap/bin",
    "/usr/games",
    "/usr/libexec/git-core",
    "/usr/lib/git-core",
];

/// Names tried when a command name is a glob, such as `/bin/r?`.
const DANGEROUS: &[&str] = &[
    "rm", "sudo", "su", "doas", "dd", "mkfs", "shutdown", "reboot", "chmod", "chown", "kill", "mv",
    "sh", "bash", "eval", "curl", "wget", "shred",
];

/// The worse of two judgements.
pub(super) fn worse(left: Assessment, right: Assessment) -> Assessment {
    let (class, risk) = (left.class.max(right.class), left.risk.max(right.risk));
    let reason = match (left.risk, left.class) >= (right.risk, right.class) {
        true => left.reason,
        false => right.reason,
    };
    Assessment { class, risk, reason }
}

/// Judges a command; what it runs in turn is recorded in `found`.
pub(super) fn judge(walk: &mut Walk<'_>, argv: &[Arg]) -> Assessment {
    let Some((name, args)) = argv.split_first() else {
        return Assessment::of(Class::Read, "nothing to run");
    };
    if name.glob || name.known().is_none() {
        return judge_computed_name(walk, name, args);
    }
    judge_named(walk, &name.text.clone(), args)
}

/// A command whose name is only known when it runs: opaque, and as bad as what it may be.
fn judge_computed_name(walk: &mut Walk<'_>, name: &Arg, args: &[Arg]) -> Assessment {
    let mut judged =
        Assessment::of(Class::Opaque, "runs a command whose name is only known when it runs");
    if name.glob {
        // `!(rm x)` is a glob or a negated subshell, as the shell is set.
        if name.text.contains('(') {
            walk.script(&name.text.clone(), walk.findings.via.clone());
        }
        let base = name.text.rsplit('/').next().unwrap_or_default().to_owned();
        for candidate in DANGEROUS.iter().filter(|candidate| glob(&base, candidate)) {
            judged = worse(judged, judge_named(walk, candidate, args));
        }
        return judged;
    }
    // `$SHELL -c …` and `$0 -c …` are shells, whatever they are called.
    if args.first().is_some_and(|arg| arg.text.starts_with('-') && arg.text.ends_with('c')) {
        judged = worse(judged, shell::judge(walk, "sh", args));
    }
    // An unset variable leaves nothing: `r$x` may be `r`, and `$x rm` may be `rm`.
    let left = name.without_unknown();
    if !left.is_empty() && !left.ends_with('/') {
        judged = worse(judged, judge_named(walk, &left, args));
    } else if let Some((first, rest)) = args.split_first()
        && first.known().is_some_and(|text| !text.starts_with('-'))
    {
        judged = worse(judged, judge_named(walk, &first.text.clone(), rest));
    }
    judged
}

/// A command with a known name.
fn judge_named(walk: &mut Walk<'_>, name: &str, args: &[Arg]) -> Assessment {
    if name.is_empty() {
        return Assessment::of(Class::Read, "an empty command name runs nothing");
    }
    if !walk.budget.spend_arguments(args.len()) {
        return opaque("holds too much to analyze");
    }
    if name.starts_with('-') {
        // The keyword `time` took no options: in another shell these are the program's.
        let argv: Vec<Arg> =
            std::iter::once(Arg::literal(name)).chain(args.iter().cloned()).collect();
        return judge_program(walk, "time", &argv);
    }
    let (program, place) = program_at(&walk.paths(), name);
    let expanded = special::without_alias(&program, args);
    let args = expanded.as_deref().unwrap_or(args);
    let mut judged = judge_program(walk, &program, args);
    if let Some(found) = rules::judge(walk, &program, args, judged.class) {
        judged = worse(found, judged);
    }
    if name.contains('/') {
        if place.class > Class::Read {
            walk.mark_run(name);
        }
        // A test runs the project's code as well, and stays a test.
        if judged.class != Class::Test || place.class > Class::Build {
            judged = worse(judged, place);
        }
        judged = shell::written_file(walk, name, "", args).into_iter().fold(judged, worse);
    }
    if !name.contains('/') && !table::is_known(name) {
        for original in walk.written.copies_named(name) {
            let argv = std::iter::once(Arg::literal(original)).chain(args.iter().cloned());
            walk.follow_words(Via::Alias(name.to_owned()), &argv.collect::<Vec<_>>());
        }
    }
    if let Some(bodies) = walk.state.functions.get(name).cloned() {
        if walk.active.iter().any(|active| active == name) && walk.forks > 0 {
            let reason = format!("function `{name}` starts itself again and again: a fork bomb");
            return Assessment::of(Class::Catastrophic, reason);
        }
        for body in bodies {
            walk.follow_function(name, &body, Some(args));
        }
        // The program of that name counts only where it is worse than an unknown one.
        if matches!(judged.class, Class::LocalCommand | Class::Build) && !table::is_known(name) {
            judged = Assessment::of(Class::Read, format!("calls function `{name}`"));
        }
    }
    if let Some(value) = walk.state.aliases.get(name).cloned() {
        walk.follow_alias(name, &value, args);
        if judged.class == Class::LocalCommand {
            judged = Assessment::of(Class::Read, format!("is the alias `{name}`"));
        }
    }
    let own = apply_custom_rules(walk.context, &program, args, judged.clone());
    walk.findings.reclassified |= own.class < judged.class;
    own
}

/// The program's own name, and what its place means.
fn program_at(paths: &Resolver<'_>, name: &str) -> (String, Assessment) {
    let harmless = Assessment::of(Class::Read, "a program of the system");
    let Some((directory, base)) = name.rsplit_once('/') else {
        return (name.to_owned(), harmless);
    };
    let home_tools =
        [".cargo/bin", ".local/bin", "go/bin", ".bun/bin", ".deno/bin", ".nvm", ".pyenv"];
    let place = match paths.resolve(directory).into_iter().next().flatten() {
        Some(path) if TOOL_DIRECTORIES.contains(&&*path) => harmless,
        Some(path)
            if home_tools
                .iter()
                .any(|tools| path.starts_with(&paths::join(&paths.context.home, tools))) =>
        {
            harmless
        }
        _ => match paths.place(name) {
            Zone::Workspace => {
                Assessment::of(Class::Build, format!("runs `{name}`, a program of the workspace"))
            }
            Zone::Device | Zone::Unknown | Zone::Scratch | Zone::Outside => Assessment::of(
                Class::Opaque,
                format!("runs `{name}`, a program outside the workspace"),
            ),
        },
    };
    (base.to_owned(), place)
}

fn judge_program(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
    if shows_version(program, args) {
        return Assessment::of(Class::Read, "shows help or a version");
    }
    match program {
        "eval" => return shell::eval(walk, args),
        "source" | "." => return shell::source(walk, args),
        shell if SHELLS.contains(&shell) => return shell::judge(walk, shell, args),
        _ => {}
    }
    if let Some(judged) = builtin::judge(walk, program, args) {
        return judged;
    }
    if let Some(judged) = wrapper::judge(walk, program, args) {
        return match table::program(program) {
            Some(_) => worse(judged, judge_by_table(walk, program, args)),
            None => judged,
        };
    }
    if let Some(judged) = code::interpreter(walk, program, args) {
        return judged;
    }
    judge_by_table(walk, program, args)
}

fn judge_by_table(walk: &mut Walk<'_>, program: &str, args: &[Arg]) -> Assessment {
    let in_options = options::judge(walk, program, args);
    let Some(entry) = table::program(program) else {
        let judged = judge_unknown_program(&walk.paths(), program, args);
        return in_options.into_iter().fold(judged, worse);
    };
    let invocation = Invocation::new(program, args, entry.values, entry.style);
    let mut judged = match table::row_of(entry, &invocation) {
        Some(row) => {
            let risk = row.risk.unwrap_or(row.class.base_risk());
            Assessment::of(row.class, row.reason).at_least(risk)
        }
        None => Assessment::of(
            Class::Opaque,
            format!("calls `{program}` in a way that is not known here"),
        ),
    };
    judged = judge_files(&walk.paths(), entry, &invocation, judged);
    written::remember(walk, entry, &invocation);
    let runs = matches!(judged.class, Class::Build | Class::Test | Class::LocalCommand);
    let hidden = runs.then(|| options::hidden(walk, program, args)).flatten();
    let fetched = runs.then(|| written::run_fetched(walk, &invocation)).flatten();
    let beyond = [
        in_options,
        hidden,
        fetched,
        sending::judge(&walk.state.input, &invocation),
        special::check(walk, &invocation),
    ];
    // What was found in the operands says more than the row.
    beyond.into_iter().flatten().fold(judged, |judged, found| worse(found, judged))
}

/// Adds what the files mean that the command names.
fn judge_files(
    paths: &Resolver<'_>,
    entry: &Program,
    invocation: &Invocation,
    mut judged: Assessment,
) -> Assessment {
    let operands = &invocation.operands;
    // These look at a device's name, size and owner, not at what it holds.
    let looks = matches!(
        invocation.program,
        "ls" | "dir" | "vdir" | "stat" | "file" | "readlink" | "realpath" | "du" | "df" | "namei"
    );
    let usage = if entry.files == Files::None || looks { Use::Mention } else { Use::Read };
    for operand in operands {
        if let Some(secret) = paths.judge(operand, usage) {
            judged = worse(judged, secret);
        }
    }
    let writes_last = !invocation.has("-t|--target-directory");
    let written: Vec<(&Arg, Use)> = match entry.files {
        Files::None | Files::Reads => Vec::new(),
        Files::Writes => operands.iter().map(|arg| (*arg, Use::Write)).collect(),
        Files::Removes => operands.iter().map(|arg| (*arg, Use::Remove)).collect(),
        Files::WritesLast if writes_last && operands.len() > 1 => {
            operands.last().map(|arg| (*arg, Use::Write)).into_iter().collect()
        }
        Files::Moves => {
            let last = operands.len().saturating_sub(usize::from(writes_last));
            let usage = |index| if index < last { Use::Remove } else { Use::Write };
            operands.iter().enumerate().map(|(index, arg)| (*arg, usage(index))).collect()
        }
        Files::WritesLast => Vec::new(),
    };
    for (file, usage) in written {
        let file = Arg { text: file.text.trim_start_matches("file://").to_owned(), ..file.clone() };
        if let Some(write) = paths.judge(&file, usage) {
            judged = worse(judged, write);
        }
    }
    for name in entry.outputs.split_whitespace() {
        for value in invocation.values(name) {
            if let Some(write) = paths.judge(&Arg::literal(value), Use::Write) {
                judged = worse(judged, write);
            }
        }
    }
    judged
}

fn judge_unknown_program(paths: &Resolver<'_>, program: &str, args: &[Arg]) -> Assessment {
    // `uv run main.py` and its like run a file by its name.
    let endings = [".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".sh", ".pl", ".php", ".lua"];
    let mut judged = match endings.iter().any(|ending| program.ends_with(ending)) {
        true => Assessment::of(Class::Build, format!("runs `{program}`, code of the workspace")),
        false => Assessment::of(Class::LocalCommand, format!("runs `{program}`")),
    };
    let carries = |arg: &Arg| arg.text.split_once("://").is_some_and(|(_, rest)| is_unknown(rest));
    if args.iter().any(carries) {
        let reason = "sends the content of a file, a variable or a command as a part of a request";
        judged = worse(judged, Assessment::of(Class::Publish, reason));
    }
    for arg in args {
        let value = arg.text.split_once('=').map_or(&*arg.text, |(_, value)| value);
        if let Some(secret) = paths.judge(&Arg::literal(value), Use::Read) {
            judged = worse(judged, secret);
        }
    }
    judged
}

/// The configuration's own classes and production patterns.
fn apply_custom_rules(
    context: &Context,
    program: &str,
    args: &[Arg],
    judged: Assessment,
) -> Assessment {
    let words: Vec<Option<String>> = std::iter::once(Some(program.to_owned()))
        .chain(args.iter().map(|arg| arg.known().map(str::to_owned)))
        .collect();
    let mut judged = judged;
    if let Some(rule) = context.custom_rules.iter().rfind(|rule| rule.pattern.matches_words(&words))
    {
        let own = Assessment::of(rule.class, rule.reason.clone());
        // What destroys stays what it is, whatever the configuration calls it.
        judged = if judged.class >= Class::Destructive { worse(judged, own) } else { own };
    }
    if let Some(pattern) = context.production.iter().find(|p| p.matches_words(&words)) {
        let reason = format!("`{pattern}` touches production");
        judged = worse(judged, Assessment::of(Class::Production, reason));
    }
    judged
}

/// Whether a known program is only asked what it is.
fn shows_version(program: &str, args: &[Arg]) -> bool {
    const SHORT: &[&str] =
        &["node", "npm", "yarn", "pnpm", "ruby", "perl", "php", "docker", "terraform", "go", "tsc"];
    let [only] = args else { return false };
    match &*only.text {
        "--help" | "--version" | "-V" | "-version" => {
            table::is_known(program)
                || code::is_interpreter(program)
                || wrapper::is_wrapper(program)
        }
        "-v" => SHORT.contains(&program),
        _ => false,
    }
}

/// An opaque judgement.
pub(super) fn opaque(reason: impl Into<String>) -> Assessment {
    Assessment::of(Class::Opaque, reason)
}

/// Whether an argument's text is not wholly known.
pub(super) fn is_unknown(text: &str) -> bool {
    text.contains(UNKNOWN)
}
