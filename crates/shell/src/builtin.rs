//! What the shell does itself: builtins that change what the shell knows, or hide text that runs.

use super::paths::Resolver;
use super::state::Arg;
use super::walk::Walk;
use super::{Via, environment};
use windlass_core::policy::class::{Assessment, Class};

/// Judges a builtin; `None` when `name` is none, or the table says what it does.
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
            for arg in args {
                declare(walk, arg);
            }
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
            for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
                walk.expander().evaluate_index(arg);
                walk.state.set_unknown(&arg.text);
            }
            option_script(walk, name, args, &["-C"]);
            harmless("reads input into variables")
        }
        "printf" => {
            if let Some(at) = args.iter().position(|arg| arg.text == "-v")
                && let Some(variable) = args.get(at + 1)
            {
                walk.expander().evaluate_index(variable);
                walk.state.set_unknown(&variable.text);
            }
            harmless("prints text")
        }
        "test" | "[" => {
            for arg in args {
                walk.expander().evaluate_index(arg);
            }
            harmless("compares")
        }
        "let" => {
            for arg in args {
                walk.expander().document(&arg.without_unknown());
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
        "complete" | "bind" => {
            option_script(walk, name, args, &["-C", "-x", "-F"]);
            harmless("sets up the line editor")
        }
        _ => None,
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

fn declare(walk: &mut Walk<'_>, arg: &Arg) {
    walk.expander().evaluate_index(arg);
    if let Some((name, value)) = arg.text.split_once('=') {
        let name = name.trim_end_matches('+').to_owned();
        let values = vec![vec![Arg::literal(value)]];
        environment::judge_assignment(walk, &name, &values);
        if !walk.state.variables.contains_key(&name) || !value.starts_with('(') {
            walk.state.set(&name, values);
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
