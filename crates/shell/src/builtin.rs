//! What the shell does itself: builtins that change what the shell knows, or hide text that runs.

use super::environment::{self, Scope};
use super::paths::Resolver;
use super::state::Arg;
use super::walk::Walk;
use super::{Via, output};
use windlass_core::policy::class::{Assessment, Class};

/// Judges a builtin; `None` when `name` is not a builtin, or the table says what it does.
pub(super) fn judge(walk: &mut Walk<'_>, name: &str, args: &[Arg]) -> Option<Assessment> {
    match name {
        "history" | "fc" => Some(history(name, args)),
        "hash" | "enable" if args.iter().any(|arg| matches!(&*arg.text, "-p" | "-f")) => {
            Some(Assessment::of(Class::Opaque, "replaces a command by a file"))
        }
        _ => setting(walk, name, args).or_else(|| reader(walk, name, args)),
    }
}

/// A builtin that sets something of the shell: its directory, variables, arguments, aliases.
fn setting(walk: &mut Walk<'_>, name: &str, args: &[Arg]) -> Option<Assessment> {
    let harmless = |reason: &str| Some(Assessment::of(Class::Read, reason));
    match name {
        "cd" | "pushd" | "popd" | "chdir" => {
            let directory = directory_after(&walk.paths(), name, args);
            walk.state.enter(directory);
            harmless("changes the directory of this shell")
        }
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            declare(walk, name, args);
            harmless("sets variables of this shell")
        }
        "unset" => {
            for arg in args {
                walk.expander().evaluate_index(arg);
                walk.state.variables.remove(&*arg.text);
            }
            if args.iter().any(|arg| arg.text.starts_with("HIST")) {
                return Some(Assessment::of(Class::Destructive, "stops the shell's history"));
            }
            harmless("unsets variables of this shell")
        }
        "set" => {
            if let Some(at) = args.iter().position(|arg| arg.text == "--") {
                walk.state.set_positional(&args[at + 1..]);
            } else if args.first().is_some_and(|arg| !arg.text.starts_with(['-', '+'])) {
                walk.state.set_positional(args);
            }
            if args.windows(2).any(|pair| pair[0].text == "+o" && pair[1].text == "history") {
                return Some(Assessment::of(Class::Destructive, "stops the shell's history"));
            }
            harmless("sets options of this shell")
        }
        "shift" => {
            walk.state.positional = None;
            harmless("shifts the arguments of this shell")
        }
        "alias" => {
            for arg in args {
                alias(walk, arg);
            }
            harmless("names commands of this shell")
        }
        _ => None,
    }
}

/// A builtin that reads its words: as names of variables, as arithmetic, or as text that runs later.
fn reader(walk: &mut Walk<'_>, name: &str, args: &[Arg]) -> Option<Assessment> {
    let harmless = |reason: &str| Some(Assessment::of(Class::Read, reason));
    match name {
        "read" | "mapfile" | "readarray" | "getopts" => {
            read_variables(walk, name, args);
            option_script(walk, name, args, &["-C"]);
            harmless("reads input into variables")
        }
        "printf" => {
            if let [option, variable, rest @ ..] = args
                && option.text == "-v"
            {
                walk.expander().evaluate_index(variable);
                let words: Option<Vec<&str>> = rest.iter().map(Arg::known).collect();
                let text = words.and_then(|words| match &words[..] {
                    ["--", format, rest @ ..] | [format, rest @ ..] => output::printf(format, rest),
                    [] => None,
                });
                let value = text.map_or_else(Arg::unknown, Arg::literal);
                walk.variables().set(&variable.text, vec![vec![value]]);
            }
            harmless("prints text")
        }
        "wait" => {
            for arg in args {
                walk.expander().evaluate_index(arg);
            }
            harmless("waits")
        }
        "test" | "[" => {
            for arg in args {
                walk.expander().evaluate_index(arg);
            }
            harmless("compares")
        }
        "let" => {
            for arg in args {
                walk.expander().arithmetic(&arg.without_unknown());
            }
            harmless("computes")
        }
        "trap" => {
            let options = args.iter().take_while(|arg| arg.text == "--").count();
            if let [text, _, ..] = &args[options..]
                && !text.text.is_empty()
                && !text.text.starts_with('-')
            {
                walk.follow_text(Via::Script("trap".to_owned()), text, "trap");
            }
            harmless("judged by the text it runs later")
        }
        "complete" | "bind" | "compgen" => {
            option_script(walk, name, args, &["-C", "-x", "-F"]);
            for pair in args.windows(2).filter(|pair| pair[0].text == "-W") {
                walk.expander().document(&pair[1].without_unknown());
            }
            harmless("sets up the line editor")
        }
        _ => None,
    }
}

/// `read`, `mapfile` and `getopts`: the input in variables, where the text says what it is.
fn read_variables(walk: &mut Walk<'_>, builtin: &str, args: &[Arg]) {
    let with_value: &[&str] = match builtin {
        "read" => &["-d", "-n", "-N", "-p", "-t", "-u", "-i"],
        _ => &["-d", "-n", "-O", "-s", "-u", "-C", "-c"],
    };
    let (mut names, mut array, mut rest) = (Vec::new(), builtin != "read", args.iter());
    while let Some(arg) = rest.next() {
        match &*arg.text {
            "-a" if builtin == "read" => array = true,
            option if with_value.contains(&option) => drop(rest.next()),
            option if option.starts_with('-') => {
                array |= builtin == "read" && option.ends_with('a')
            }
            _ => names.push(arg.clone()),
        }
    }
    for name in &names {
        walk.expander().evaluate_index(name);
    }
    // Other ends of a line, counts and escapes are not followed.
    let plain = |option: &str| match builtin {
        "read" => !option.contains(['d', 'n', 'N', 'u', 'i']),
        _ => option == "-t",
    };
    let options = args.iter().filter(|arg| arg.text.starts_with('-'));
    let plain = options.clone().all(|option| plain(&option.text));
    let raw = builtin != "read" || options.into_iter().any(|option| option.text.contains('r'));
    let lines: Option<Vec<String>> =
        walk.input_text().map(|text| text.lines().map(str::to_owned).collect());
    let escaped = |lines: &Vec<String>| !raw && lines.iter().any(|line| line.contains('\\'));
    let followed = |lines: &Vec<String>| plain && !lines.is_empty() && !escaped(lines);
    let Some(lines) = lines.filter(|lines| builtin != "getopts" && followed(lines)) else {
        for name in &names {
            walk.variables().set(&name.text, vec![vec![Arg::unknown()]]);
        }
        return;
    };
    if builtin != "read" {
        let name = names.first().map_or("MAPFILE", |name| &name.text).to_owned();
        walk.variables().set(&name, vec![lines.into_iter().map(Arg::literal).collect()]);
        return;
    }
    // Which line a loop is at is not followed: it may be any.
    let fields: Vec<Vec<String>> = lines.iter().map(|line| walk.expander().fields(line)).collect();
    if array {
        let values = fields.into_iter().map(|line| line.into_iter().map(Arg::literal).collect());
        let name = names.first().map_or("REPLY", |name| &name.text).to_owned();
        return walk.variables().set(&name, values.collect());
    }
    if names.is_empty() {
        return walk
            .variables()
            .set("REPLY", lines.into_iter().map(|l| vec![Arg::literal(l)]).collect());
    }
    for (index, name) in names.iter().enumerate() {
        let last = index + 1 == names.len();
        let value = |line: &Vec<String>| {
            let taken = line.get(index..).unwrap_or_default();
            let taken = if last { taken } else { &taken[..taken.len().min(1)] };
            vec![Arg::literal(taken.join(" "))]
        };
        walk.variables().set(&name.text, fields.iter().map(value).collect());
    }
}

fn history(name: &str, args: &[Arg]) -> Assessment {
    match args.first().map(|arg| &*arg.text) {
        Some("-c" | "-d" | "-w" | "-a" | "-cw" | "-r" | "-n") => {
            Assessment::of(Class::Destructive, "changes the shell's history")
        }
        Some("-s") => Assessment::of(Class::Opaque, "runs a command from the history"),
        _ if name == "fc" => Assessment::of(Class::Opaque, "runs a command from the history"),
        _ => Assessment::of(Class::Read, "shows the history"),
    }
}

/// The directory that `cd`, `pushd` or `popd` leads to; `None` when the text does not say.
fn directory_after(paths: &Resolver<'_>, name: &str, args: &[Arg]) -> Option<String> {
    let target = args.iter().find(|arg| !arg.text.starts_with('-') || arg.text == "-");
    match (name, target.map(Arg::known)) {
        ("popd", _) | (_, Some(None | Some("-"))) => None,
        (_, None) => Some(paths.context.home.clone()),
        (_, Some(Some(path))) => match &paths.resolve(path)[..] {
            [only] => only.clone(),
            _ => None,
        },
    }
}

/// `declare`, `export` and their like: values are set, evaluated, or made names of other variables.
fn declare(walk: &mut Walk<'_>, builtin: &str, args: &[Arg]) {
    let (options, words): (Vec<&Arg>, Vec<&Arg>) =
        args.iter().partition(|arg| arg.text.starts_with(['-', '+']));
    let has = |letter: char| {
        options.iter().any(|option| option.text.starts_with('-') && option.text.contains(letter))
    };
    let scope = match builtin == "export" || has('x') {
        true => Scope::Exported,
        false => Scope::Shell,
    };
    for arg in words {
        walk.expander().evaluate_index(arg);
        let (name, value) = match arg.text.split_once('=') {
            Some((name, value)) => (name.trim_end_matches('+'), Some(value)),
            None => (&*arg.text, None),
        };
        if has('i') {
            walk.state.integers.insert(name.to_owned());
        }
        let Some(value) = value else {
            // What was only a variable of this shell is now seen by programs.
            if scope == Scope::Exported
                && !has('f')
                && let Some(values) = walk.state.value(name)
            {
                environment::judge_assignment(walk, name, &values, scope);
            }
            continue;
        };
        if has('n') {
            walk.expander().evaluate_index(&Arg::literal(value));
            walk.state.references.insert(name.to_owned(), value.to_owned());
            walk.state.changes += 1;
            continue;
        }
        if has('i') {
            walk.expander().arithmetic(value);
        }
        let values = vec![vec![Arg::literal(value)]];
        environment::judge_assignment(walk, name, &values, scope);
        if !walk.state.variables.contains_key(name) || !value.starts_with('(') {
            walk.state.set(name, values);
        }
    }
}

fn alias(walk: &mut Walk<'_>, arg: &Arg) {
    let Some((name, value)) = arg.text.split_once('=') else { return };
    walk.follow_text(Via::Alias(name.to_owned()), &Arg::literal(value), "alias");
    walk.state.define_alias(name, value);
}

/// Options whose value is text that runs later.
fn option_script(walk: &mut Walk<'_>, name: &str, args: &[Arg], options: &[&str]) {
    for pair in args.windows(2) {
        if options.contains(&&*pair[0].text) {
            walk.follow_text(Via::Script(name.to_owned()), &pair[1], name);
        }
    }
}
