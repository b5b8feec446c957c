//! What the table's rows cannot say: checks that look into operands and values.

use super::Via;
use super::classify::{opaque, worse};
use super::findings::display_text;
use super::invocation::Invocation;
use super::options;
use super::paths::{Resolver, Use, Zone};
use super::state::{Arg, Input};
use super::walk::Walk;
use windlass_core::policy::class::{Assessment, Class};

mod git;
mod obeyed;
mod sed;
mod sql;

/// The call without an alias that it defines itself.
pub(super) fn without_alias(program: &str, args: &[Arg]) -> Option<Vec<Arg>> {
    (program == "git").then(|| git::without_alias(args)).flatten()
}

/// What this call means beyond its row.
pub(super) fn check(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let paths = walk.paths();
    match call.program {
        "git" | "hub" => git::check(walk, call),
        "sed" | "gsed" => sed::check(walk, call),
        "psql" | "mysql" | "mariadb" | "sqlite3" | "sqlite" | "duckdb" | "cockroach"
        | "clickhouse-client" | "sqlcmd" | "usql" | "pgcli" | "mycli" | "litecli" | "bq"
        | "snowsql" | "trino" | "cqlsh" => sql::check(walk, call),
        "rm" | "grm" | "unlink" | "rmdir" | "shred" | "rimraf" | "truncate" => {
            removal(&paths, call)
        }
        "chmod" | "chown" | "chgrp" | "setfacl" => ownership(&paths, call),
        "dd" | "gdd" | "dcfldd" => dd(&paths, call),
        "mv" | "gmv" | "cp" | "gcp" | "ln" | "tee" => system_targets(&paths, call),
        "find" | "gfind" => find(&paths, call),
        "tar" | "gtar" | "bsdtar" => tar(&paths, call),
        "make" | "gmake" => make(walk, call),
        "curl" | "wget" | "wget2" => download(&paths, call),
        "sftp" => obeyed::judge(walk, call).or_else(|| copy_elsewhere(&walk.paths(), call)),
        "scp" | "rsync" | "rclone" => copy_elsewhere(&paths, call),
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "rustc" | "javac" => {
            compiler(&paths, call)
        }
        "zip"
            if call.operands.first().is_some_and(|archive| {
                paths.judge(archive, Use::Write).is_some_and(|found| found.class > Class::Edit)
            }) =>
        {
            call.operands.first().and_then(|archive| paths.judge(archive, Use::Write))
        }
        "zip" => call
            .args
            .iter()
            .any(|arg| arg.text == "-TT")
            .then(|| opaque("runs a program named by an option")),
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" | "zstd" | "unzstd" | "lz4"
        | "pigz" | "compress" | "uncompress" => compress(&paths, call),
        "kill" | "pkill" | "killall" | "skill" | "fuser" => kill(call),
        "install" => set_id(call.values("-m|--mode").next().unwrap_or_default()),
        "setcap" => Some(Assessment::of(
            Class::Catastrophic,
            "gives a program privileges that its user does not have",
        )),
        "fzf" | "sk" | "peco" => options::bindings(walk, call),
        "man" | "less" => pager(walk, call),
        "vim" | "vi" | "nvim" | "view" | "ex" | "vimdiff" => {
            editor(call).or_else(|| obeyed::judge(walk, call))
        }
        "ed" | "red" | "gdb" | "lldb" | "dc" | "ftp" | "lftp" | "gnuplot" | "m4" => {
            obeyed::judge(walk, call)
        }
        "socat" => obeyed::socat(walk, call),
        "at" | "batch" => {
            if let Input::Text(text) = walk.state.input.clone() {
                walk.follow_argument(&text, "at");
            }
            None
        }
        "cmake" => cmake_tool(walk, call),
        "pip" | "pip3" | "uv" | "npm" | "pnpm" | "yarn" | "bun" | "cargo" | "gem" | "go"
        | "poetry" | "pdm" | "pipx" | "composer" => foreign_package(call),
        "date" | "hostname" => machine_setting(call),
        "docker" | "podman" => docker(&paths, call),
        _ => None,
    }
}

fn removal(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let recursive = call.has("-r|-R|--recursive|-d") || call.program == "rimraf";
    let forced = call.has("-f|--force") && call.has("-r|-R|--recursive");
    let vital = |arg: &&&Arg| {
        let known = arg.without_unknown();
        paths.is_vital(&known) && !known.is_empty()
    };
    if let Some(worst) = call.operands.iter().find(vital).filter(|_| recursive) {
        let reason = format!("removes `{}`", display_text(&worst.text));
        return Some(Assessment::of(Class::Catastrophic, reason));
    }
    if call.program == "rimraf" || call.has("--no-preserve-root") || forced {
        let how = if forced { "rm -rf" } else { call.program };
        let first = call.operands.iter().find_map(|arg| arg.known());
        let instead = match first {
            Some(path) => format!("rm -r {}", display_text(path)),
            None => "rm -r".to_owned(),
        };
        let reason = format!(
            "`{how}` deletes a directory tree without confirmation; `{instead}` can be approved"
        );
        return Some(Assessment::of(Class::Catastrophic, reason));
    }
    None
}

fn ownership(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let recursive = call.has("-R|--recursive");
    let vital = call.operands.iter().skip(1).find(|arg| paths.is_vital(&arg.without_unknown()));
    if let Some(arg) = vital.filter(|_| recursive) {
        let reason = format!("changes the permissions of all of `{}`", display_text(&arg.text));
        return Some(Assessment::of(Class::Catastrophic, reason));
    }
    match call.program {
        "chmod" => set_id(call.word(0).unwrap_or_default()),
        _ => None,
    }
}

/// A mode that lets others run a file with its owner's or group's privileges.
fn set_id(mode: &str) -> Option<Assessment> {
    let symbolic = mode.split(',').any(|part| {
        let change = part.trim_start_matches(|c: char| "ugoa".contains(c));
        change.starts_with(['+', '=']) && change.contains('s')
    });
    let octal = mode.trim_start_matches(['=', '+']).trim_start_matches('0');
    let numeric = octal.len() == 4 && octal.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let gains = symbolic || (numeric && octal.starts_with(['2', '3', '4', '5', '6', '7']));
    gains.then(|| {
        Assessment::of(Class::Catastrophic, "lets others run a file with its owner's privileges")
    })
}

fn dd(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let mut judged = None;
    for arg in call.args {
        let usage = match arg.text.split_once('=') {
            Some(("of", file)) => (file, Use::Write),
            Some(("if", file)) => (file, Use::Read),
            _ => continue,
        };
        if let Some(found) = paths.judge(&Arg::literal(usage.0), usage.1) {
            judged = Some(judged.map_or(found.clone(), |old| worse(old, found)));
        }
    }
    judged
}

/// Moving or linking over a directory that the system needs.
fn system_targets(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    if !matches!(call.program, "mv" | "gmv") {
        return None;
    }
    let sources = call.operands.split_last().map(|(_, sources)| sources).unwrap_or_default();
    sources
        .iter()
        .find(|arg| paths.is_vital(&arg.without_unknown()) && !arg.without_unknown().is_empty())
        .map(|arg| {
            Assessment::of(Class::Catastrophic, format!("moves `{}` away", display_text(&arg.text)))
        })
}

fn find(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let mut judged = None;
    for value in call.values("-fprintf|-fprint|-fprint0|-fls") {
        judged = paths.judge(&Arg::literal(value), Use::Write).or(judged);
    }
    if call.has("-exec|-execdir|-ok|-okdir") {
        // What it runs reads the files that it finds.
        for pattern in call.values("-name|-iname|-path|-ipath") {
            judged = paths.judge(&Arg::literal(pattern), Use::Read).or(judged);
        }
    }
    let start = call.operands.first().map(|arg| arg.without_unknown()).unwrap_or_default();
    if call.has("-delete") && paths.is_vital(&start) && !start.is_empty() {
        judged = Some(Assessment::of(Class::Catastrophic, format!("deletes all of `{start}`")));
    }
    judged
}

/// `tar xf a` without a dash, archives on other machines, and where things are unpacked.
fn tar(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let archive = call.values("-f|--file").next().or_else(|| call.word(1));
    let absolute = call.has("-P|--absolute-names");
    let letters = call.args.first().map(|arg| &*arg.text).filter(|text| !text.starts_with('-'));
    let extracts = call.has("-x|--extract|--get") || letters.is_some_and(|l| l.contains('x'));
    if absolute && extracts {
        return Some(Assessment::of(Class::Destructive, "unpacks to absolute paths"));
    }
    let creates =
        call.has("-c|--create|-r|-u|--append") || letters.is_some_and(|l| l.contains('c'));
    match archive {
        Some(archive) if creates => paths.judge(&Arg::literal(archive), Use::Write),
        _ => None,
    }
}

fn make(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let shell = call.operands.iter().find_map(|arg| arg.text.strip_prefix("SHELL="));
    let evaluated = call.values("--eval").next().is_some() || call.has("--eval");
    // A variable's value is expanded by make, and then by the shell of a recipe.
    let values = call.operands.iter().filter_map(|arg| arg.text.split_once('='));
    for (_, value) in values.filter(|(_, value)| value.contains(['`', '('])) {
        walk.expander().document(&value.replace("$(shell ", "$("));
    }
    if let Some(shell) = shell {
        walk.follow_argument(shell, "make");
    }
    if call.values("-f|--file|--makefile").any(|file| matches!(file, "-" | "/dev/stdin")) {
        if let Input::Text(text) = walk.state.input.clone() {
            let recipes = text.lines().filter_map(|line| {
                line.strip_prefix('\t').or_else(|| line.split_once(';').map(|(_, recipe)| recipe))
            });
            for recipe in recipes.map(|line| line.trim_start_matches(['@', '-', '+'])) {
                walk.follow_argument(recipe, "make");
            }
        }
        return Some(opaque("runs rules that it reads from its input"));
    }
    let outside = call
        .values("-f|--file|--makefile|-C|--directory")
        .any(|path| walk.paths().place(path) > Zone::Scratch);
    if outside {
        return Some(opaque("runs rules from outside the workspace"));
    }
    (evaluated || shell.is_some()).then(|| opaque("runs rules that are given on the command line"))
}

fn download(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let mut judged = None;
    for arg in call.args {
        let file = arg.text.split_once('@').map(|(_, file)| file);
        let file = file.or_else(|| arg.text.strip_prefix("file://"));
        if let Some(file) = file
            && let Some(found) = paths.judge(&Arg::literal(file), Use::Read)
        {
            judged =
                Some(worse(found, Assessment::of(Class::Publish, "may send a secret elsewhere")));
        }
    }
    judged
}

/// `rsync a b` stays here when no side names a machine.
fn copy_elsewhere(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let target = call.operands.last()?;
    if target.text.contains(':') {
        return None;
    }
    paths.judge(target, Use::Write)
}

fn compiler(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    let loads = |arg: &Arg| {
        let text = &*arg.text;
        matches!(text, "-wrapper" | "-load" | "-B")
            || ["-fplugin=", "-specs=", "--specs=", "-fpass-plugin="]
                .iter()
                .any(|o| text.starts_with(o))
            || ["linker=", "-Clinker="].iter().any(|o| text.starts_with(o))
    };
    if call.args.iter().any(loads) {
        return Some(opaque("makes the compiler run or load another program"));
    }
    let at = call.args.iter().position(|arg| arg.text == "-o")?;
    let file = call.args.get(at + 1)?;
    paths.judge(file, Use::Write).filter(|found| found.class > Class::Edit)
}

/// `cmake -E rm -rf x` and its like are commands of their own.
fn cmake_tool(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let at = call.args.iter().position(|arg| arg.text == "-E")?;
    let (tool, rest) = call.args.get(at + 1..)?.split_first()?;
    let (words, skip): (&[&str], usize) = match &*tool.text {
        "rm" => (&["rm"], 0),
        "remove" => (&["rm", "-f"], 0),
        "remove_directory" => (&["rm", "-rf"], 0),
        "env" => (&["env"], 0),
        "time" => (&["time"], 0),
        "chdir" => (&[], 1),
        "rename" => (&["mv"], 0),
        "copy" | "copy_directory" | "copy_if_different" => (&["cp"], 0),
        "create_symlink" => (&["ln", "-s"], 0),
        _ => return None,
    };
    let words = words.iter().map(|word| Arg::literal(*word));
    let argv: Vec<Arg> = words.chain(rest.iter().skip(skip).cloned()).collect();
    walk.follow_words(Via::Wrapper("cmake".to_owned()), &argv);
    None
}

/// A package from an address of its own instead of the registry runs whoever's code that is.
fn foreign_package(call: &Invocation) -> Option<Assessment> {
    let mut words = call.operands.iter().map(|arg| &*arg.text);
    let subcommand = words.find(|word| !matches!(*word, "pip" | "tool")).unwrap_or_default();
    let installs = matches!(
        subcommand,
        "install" | "i" | "add" | "ci" | "exec" | "x" | "dlx" | "run" | "sync"
    );
    let options = "-i|--index-url|--extra-index-url|--index|--default-index|--registry|--source|--git|\
        -f|--find-links|--from|--with";
    let foreign = words.any(is_foreign) || call.values(options).any(is_foreign);
    (installs && foreign)
        .then(|| opaque("installs code from an address instead of the usual registry"))
}

/// Whether a package or a registry is an address that is not a usual registry's.
pub(super) fn is_foreign(text: &str) -> bool {
    const REGISTRIES: &[&str] = &[
        "pypi.org",
        "pythonhosted.org",
        "pytorch.org",
        "npmjs.org",
        "yarnpkg.com",
        "rubygems.org",
        "crates.io",
        "packagist.org",
    ];
    let address = text.split_once("://").filter(|(scheme, _)| !scheme.ends_with("file"));
    let host = address.and_then(|(_, rest)| rest.split(['/', ':']).next());
    let known = |host: &str| {
        REGISTRIES.iter().any(|name| host == *name || host.ends_with(&format!(".{name}")))
    };
    host.is_some_and(|host| !known(host)) || text.starts_with("github:")
}

/// Compressing replaces the file, unless the result is only printed.
fn compress(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    if call.has("-c|--stdout|--to-stdout|-l|--list|-t|--test") {
        return None;
    }
    call.operands.iter().filter_map(|file| paths.judge(file, Use::Write)).reduce(worse)
}

/// Process 1 is the machine, -1 is every process, and a user's processes are nearly every one.
fn kill(call: &Invocation) -> Option<Assessment> {
    let all = match call.program {
        "kill" => {
            // The first word may be a signal, and `-s` and `-n` take one.
            let signal = match call.args {
                [_] => 0,
                [first, ..] if matches!(&*first.text, "-s" | "-n" | "--signal") => 2,
                [first, ..] if first.text.starts_with('-') && first.text != "--" => 1,
                _ => 0,
            };
            let targets = call.args.get(signal..).unwrap_or_default();
            let every = |arg: &Arg| matches!(arg.text.parse(), Ok(-1 | 1));
            targets.iter().any(every) && !call.has("-0|-l|-L|--list")
        }
        "fuser" => {
            let root = call.operands.iter().any(|arg| matches!(&*arg.text, "/" | "/home" | "/usr"));
            call.has("-k|--kill") && (root || call.has("-m|--mount"))
        }
        _ => {
            // Other capitals after one dash are the name of a signal: `-USR1`, `-HUP`.
            let by_user = call.args.iter().any(|arg| {
                let name = arg.text.split('=').next().unwrap_or_default();
                let number =
                    name.strip_prefix("-U").is_some_and(|user| user.parse::<u32>().is_ok());
                number
                    || name.starts_with("-u")
                    || matches!(name, "-U" | "-G" | "-v" | "-t" | "--user" | "--uid" | "--euid")
                    || matches!(name, "--group" | "--inverse" | "--terminal" | "--ns")
            });
            let any =
                |arg: &&Arg| matches!(&*arg.text, "." | ".*" | "" | "*" | "^" | "$" | ".+" | "/");
            let of_init = call
                .args
                .windows(2)
                .any(|pair| matches!(&*pair[0].text, "-P" | "--parent") && pair[1].text == "1");
            by_user || of_init || call.operands.iter().any(any)
        }
    };
    all.then(|| Assessment::of(Class::Catastrophic, "ends every process of a user or the machine"))
}

/// `vim '+!command'`: what follows a plus sign is an editor command, unless it is a line.
fn editor(call: &Invocation) -> Option<Assessment> {
    let commands = call.args.iter().filter_map(|arg| arg.text.strip_prefix('+'));
    let mut acting = commands.filter(|text| !text.bytes().all(|b| b.is_ascii_digit() || b == b'/'));
    let mut settings = call.values("-u|-U|-i").filter(|file| !matches!(*file, "NONE" | "NORC"));
    acting.next().or_else(|| settings.next()).map(|_| opaque("runs editor commands"))
}

/// `man -P command` and `less +!command` run a command.
fn pager(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let mut texts: Vec<String> = Vec::new();
    for (index, arg) in call.args.iter().enumerate() {
        if matches!(&*arg.text, "-P" | "--pager" | "-H" | "--html") && call.program == "man" {
            texts.extend(call.args.get(index + 1).map(|arg| arg.text.clone()));
        }
        let glued = ["-P", "--pager=", "-H", "--html=", "+!", "+:!", "++!"];
        texts.extend(glued.iter().find_map(|option| {
            arg.text.strip_prefix(option).filter(|text| !text.is_empty()).map(str::to_owned)
        }));
    }
    for text in &texts {
        walk.follow_argument(text, call.program);
    }
    None
}

fn machine_setting(call: &Invocation) -> Option<Assessment> {
    let sets = match call.program {
        "date" => call.has("-s|--set"),
        _ => !call.operands.is_empty(),
    };
    sets.then(|| Assessment::of(Class::Catastrophic, "changes a setting of the machine"))
}

/// Mounting the host into a container gives the container the host.
fn docker(paths: &Resolver<'_>, call: &Invocation) -> Option<Assessment> {
    if call.word(0) == Some("cp")
        && let Some(target) = call.operands.last().filter(|target| !target.text.contains(':'))
        && let Some(found) = paths.judge(target, Use::Write)
    {
        return Some(found);
    }
    let volumes = call.args.iter().zip(call.args.iter().skip(1));
    for (option, value) in volumes {
        if !matches!(&*option.text, "-v" | "--volume" | "--mount") {
            continue;
        }
        let source = value
            .text
            .split(',')
            .find_map(|part| part.strip_prefix("source=").or_else(|| part.strip_prefix("src=")));
        let source = source.unwrap_or_else(|| value.text.split(':').next().unwrap_or_default());
        if source.contains("docker.sock")
            || (source.starts_with(['/', '~']) && paths.is_vital(source))
        {
            return Some(Assessment::of(
                Class::Catastrophic,
                "gives a container the whole machine",
            ));
        }
        if source.starts_with(['/', '~']) && paths.place(source) > Zone::Scratch {
            return Some(Assessment::of(
                Class::Destructive,
                "gives a container files outside the workspace",
            ));
        }
    }
    None
}
