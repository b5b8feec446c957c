//! What the shell does itself: builtins that change what the shell knows, or hide text that runs.

use super::expand::join_fields;
use super::state::{Arg, UNKNOWN};
use super::walk::Walk;
use super::{Via, environment, paths};
use windlass_core::policy::class::{Assessment, Class};

impl Walk<'_> {
    /// Judges a builtin; `None` when `name` is none, or the table says what it does.
    pub(super) fn builtin(&mut self, name: &str, args: &[Arg]) -> Option<Assessment> {
        let harmless = |reason: &str| Some(Assessment::of(Class::Read, reason));
        match name {
            "cd" | "pushd" | "popd" | "chdir" => {
                self.change_directory(name, args);
                harmless("changes the directory of this shell")
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for arg in args {
                    self.declare(arg);
                }
                harmless("sets variables of this shell")
            }
            "unset" => {
                for arg in args {
                    self.names_in(arg);
                    self.state.variables.remove(&*arg.text);
                }
                if args.iter().any(|arg| arg.text.starts_with("HIST")) {
                    return Some(Assessment::of(Class::Destructive, "stops the shell's history"));
                }
                harmless("unsets variables of this shell")
            }
            "set" => {
                if let Some(at) = args.iter().position(|arg| arg.text == "--") {
                    self.state.positional = Some(vec![args[at + 1..].to_vec()]);
                    self.state.changes += 1;
                } else if args.first().is_some_and(|arg| !arg.text.starts_with(['-', '+'])) {
                    self.state.positional = Some(vec![args.to_vec()]);
                    self.state.changes += 1;
                }
                if args.windows(2).any(|pair| pair[0].text == "+o" && pair[1].text == "history") {
                    return Some(Assessment::of(Class::Destructive, "stops the shell's history"));
                }
                harmless("sets options of this shell")
            }
            "shift" => {
                self.state.positional = None;
                harmless("shifts the arguments of this shell")
            }
            "read" | "mapfile" | "readarray" | "getopts" => {
                for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
                    self.names_in(arg);
                    self.state.set(&arg.text, vec![vec![Arg::unknown()]]);
                }
                self.option_script(name, args, &["-C"]);
                harmless("reads input into variables")
            }
            "printf" => {
                if let Some(at) = args.iter().position(|arg| arg.text == "-v")
                    && let Some(variable) = args.get(at + 1)
                {
                    self.names_in(variable);
                    self.state.set(&variable.text, vec![vec![Arg::unknown()]]);
                }
                harmless("prints text")
            }
            "test" | "[" => {
                for arg in args {
                    self.names_in(arg);
                }
                harmless("compares")
            }
            "let" => {
                for arg in args {
                    self.expand_document(&arg.text.replace(UNKNOWN, ""));
                }
                harmless("computes")
            }
            "trap" => {
                let options = args.iter().take_while(|arg| arg.text == "--").count();
                if let [text, _, ..] = &args[options..]
                    && !text.text.is_empty()
                    && !text.text.starts_with('-')
                {
                    self.in_subshell(Via::Script("trap".to_owned()), |walk| {
                        walk.script_text(text, "trap");
                    });
                }
                harmless("judged by the text it runs later")
            }
            "alias" => {
                for arg in args {
                    self.alias(arg);
                }
                harmless("names commands of this shell")
            }
            "complete" | "bind" => {
                self.option_script(name, args, &["-C", "-x", "-F"]);
                harmless("sets up the line editor")
            }
            "hash" | "enable" if args.iter().any(|arg| matches!(&*arg.text, "-p" | "-f")) => {
                Some(Assessment::of(Class::Opaque, "replaces a command by a file"))
            }
            "history" | "fc" => match args.first().map(|arg| &*arg.text) {
                Some("-c" | "-d" | "-w" | "-a" | "-cw" | "-r" | "-n") => {
                    Some(Assessment::of(Class::Destructive, "changes the shell's history"))
                }
                Some("-s") => {
                    Some(Assessment::of(Class::Opaque, "runs a command from the history"))
                }
                _ if name == "fc" => {
                    Some(Assessment::of(Class::Opaque, "runs a command from the history"))
                }
                _ => harmless("shows the history"),
            },
            _ => None,
        }
    }

    fn change_directory(&mut self, name: &str, args: &[Arg]) {
        let target = args.iter().find(|arg| !arg.text.starts_with('-') || arg.text == "-");
        let target = match (name, target.map(|arg| (arg.known(), arg))) {
            ("popd", _) | (_, Some((None, _))) => None,
            (_, None) => Some(self.context.home.clone()),
            (_, Some((Some("-"), _))) => None,
            (_, Some((Some(path), _))) => match &self.resolve_all(path)[..] {
                [only] => only.clone(),
                _ => None,
            },
        };
        self.state.enter(target);
    }

    fn declare(&mut self, arg: &Arg) {
        self.names_in(arg);
        if let Some((name, value)) = arg.text.split_once('=') {
            let name = name.trim_end_matches('+').to_owned();
            let values = vec![vec![Arg::literal(value)]];
            environment::judge_assignment(self, &name, &values);
            if !self.state.variables.contains_key(&name) || !value.starts_with('(') {
                self.state.set(&name, values);
            }
        }
    }

    fn alias(&mut self, arg: &Arg) {
        let Some((name, value)) = arg.text.split_once('=') else { return };
        let (name, value) = (name.to_owned(), value.to_owned());
        let text = Arg::literal(&*value);
        self.in_subshell(Via::Alias(name.clone()), |walk| walk.script_text(&text, "alias"));
        self.state.aliases.insert(name, value);
        self.state.changes += 1;
    }

    /// Options whose value is text that runs later.
    fn option_script(&mut self, name: &str, args: &[Arg], options: &[&str]) {
        for pair in args.windows(2) {
            if options.contains(&&*pair[0].text) {
                let text = pair[1].clone();
                self.in_subshell(Via::Script(name.to_owned()), |walk| {
                    walk.script_text(&text, name)
                });
            }
        }
    }

    /// A word used as a variable's name: an index in it is evaluated, even where it was quoted.
    pub(super) fn names_in(&mut self, arg: &Arg) {
        let executes = arg.text.contains("[$(") || arg.text.contains("[`");
        if executes || (arg.text.contains('[') && arg.text.contains("$(")) {
            let text = arg.text.replace(UNKNOWN, "");
            self.expand_document(&text);
        }
    }

    /// Judges a file the command names.
    pub(super) fn judge_path(&self, file: &Arg, usage: paths::Use) -> Option<Assessment> {
        paths::judge(self.context, &self.state.directories, file, usage)
    }

    /// Where a path may lead.
    pub(super) fn place(&self, path: &str) -> paths::Place {
        paths::worst_place(self.context, &self.state.directories, path)
    }

    /// The absolute paths a path may be; `None` where the directory is not known.
    pub(super) fn resolve_all(&self, path: &str) -> Vec<Option<String>> {
        let directories = self.state.directories.iter();
        directories.map(|from| paths::resolve(from.as_deref(), path)).collect()
    }

    /// Follows an alias, with the arguments it is called with.
    pub(super) fn follow_alias(&mut self, name: &str, value: &str, args: &[Arg]) {
        let key = format!("alias {name}");
        if self.active.contains(&key) {
            return;
        }
        self.active.push(key);
        let mut text = value.to_owned();
        for arg in args {
            text.push(' ');
            text.push_str(&quote_again(arg));
        }
        self.script(&text, Via::Alias(name.to_owned()));
        self.active.pop();
    }

    /// Records a part of a command that is judged separately.
    pub(super) fn note(&mut self, assessment: Assessment, words: &[Arg]) {
        let command = super::walk::display_text(&join_fields(words).text);
        let via = self.via.clone();
        let words = words.iter().map(|arg| arg.known().map(str::to_owned)).collect();
        self.found.push(super::ShellCommand {
            command,
            via,
            assessment,
            words,
            commands: Vec::new(),
        });
    }
}

/// An argument as text that reads back as the same argument.
pub(super) fn quote_again(arg: &Arg) -> String {
    match arg.known() {
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => "$__unknown__".to_owned(),
    }
}
